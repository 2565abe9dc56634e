package latency

import (
	"strings"
	"testing"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

func TestAnObjectiveHasAnInterval(t *testing.T) {
	// run has n logins of 1, 2, … milliseconds and more, all slower by the shift.
	run := func(n, shift int64) *result.Run {
		s := result.Series{Scenario: "Login", Endpoint: "login", Whole: true, Requests: n, Total: result.NewHistogram()}
		for i := range n {
			s.Total.Record((i + 1 + shift) * 1000)
		}
		return &result.Run{Series: []result.Series{s}}
	}
	for name, row := range map[string]struct {
		runs       []*result.Run
		percentile int32
		low, high  int64
		sample     v1alpha1.IntervalSample
	}{
		// Ranks 40 and 61 of a hundred (internal/statistics).
		"over the requests of one repeat":       {[]*result.Run{run(100, 0)}, 50, 40_000, 61_000, v1alpha1.SampleRequests},
		"of two repeats still":                  {[]*result.Run{run(50, 0), run(50, 50)}, 50, 40_000, 61_000, v1alpha1.SampleRequests},
		"up to the slowest where there are few": {[]*result.Run{run(60, 0)}, 95, 52_000, 60_000, v1alpha1.SampleRequests},
		"none where there are too few":          {[]*result.Run{run(58, 0)}, 95, 0, 0, ""},
		"over repeats that never differ":        {[]*result.Run{run(99, 0), run(99, 0), run(99, 0)}, 50, 50_000, 50_000, v1alpha1.SampleRepeats},
		"over repeats, which may be far apart":  {[]*result.Run{run(99, 0), run(99, 50), run(99, 100)}, 50, 23_000, 362_000, v1alpha1.SampleRepeats},
		"a repeat without a result is left out": {[]*result.Run{run(100, 0), nil, nil}, 50, 40_000, 61_000, v1alpha1.SampleRequests},
	} {
		t.Run(name, func(t *testing.T) {
			merged := result.Merge(row.runs...).Find("Login", "login")
			o := v1alpha1.ObjectiveResult{Objective: v1alpha1.Objective{Scenario: "Login", Endpoint: "login", Percentile: row.percentile}}
			interval(&o, row.runs, merged)
			// Buckets are 0.1 % wide; the last row's are by hand: e to the 4.509 ± 4.303 × 0.556 / √3.
			near := func(got, want int64) bool { return got >= want*99/100 && got <= want*101/100 }
			if o.CISample != row.sample || !near(o.CILowMicros, row.low) || !near(o.CIHighMicros, row.high) {
				t.Errorf("%d to %d over %q, not %d to %d over %q", o.CILowMicros, o.CIHighMicros, o.CISample, row.low, row.high, row.sample)
			}
		})
	}
}

func TestABaselineAsksForRepeats(t *testing.T) {
	test := &v1alpha1.LatencyTest{Spec: v1alpha1.LatencyTestSpec{Baseline: &v1alpha1.BaselineSpec{TestName: "before"}}}
	plan, err := Resolve(test, authentik())
	if err != nil || plan.Repeats != BaselineRepeats {
		t.Errorf("%+v, %v", plan, err)
	}
	test.Spec.Repeats = ptr(int32(4))
	if plan, err = Resolve(test, authentik()); err != nil || plan.Repeats != 4 {
		t.Errorf("%+v, %v", plan, err)
	}
	test.Spec.Objectives = []v1alpha1.Objective{objective("Login", "", 75, time.Second)}
	if _, err = Resolve(test, authentik()); err == nil || !strings.Contains(err.Error(), "which keeps p50, p90, p95 and p99") {
		t.Errorf("a p75 against a baseline: %v", err)
	}
	test.Spec.Baseline = nil
	if _, err = Resolve(test, authentik()); err != nil {
		t.Errorf("a p75 without a baseline: %v", err)
	}
}

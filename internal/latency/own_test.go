package latency

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// trend is a Trend of times of a user's own script, of n values of so many microseconds.
func trend(name string, n, micros int64) result.Series {
	s := result.Series{Scenario: "Script", Endpoint: name, Own: true, Requests: n, WarmUpRequests: 6, LastMicros: 60_000_000, Total: result.NewHistogram()}
	for range n {
		s.Total.Record(micros)
	}
	return s
}

// An objective on a Trend of times is judged as one on an endpoint; a Trend that no objective names is shown,
// and nothing else depends on it.
func TestJudgeTheTimesOfAScript(t *testing.T) {
	each := func(series ...result.Series) func([]*result.Run) {
		return func(runs []*result.Run) {
			for _, run := range runs {
				run.Series = append(run.Series, series...)
			}
		}
	}
	for name, test := range map[string]struct {
		change   func(runs []*result.Run)
		endpoint string
		want     v1alpha1.Verdict
		says     string
		violated string
	}{
		"an objective that its Trend meets":  {each(trend("renderTime", 60, 200_000)), "renderTime", "Passed", "Script/renderTime p95 is 200ms, below 300ms", ""},
		"an objective that its Trend misses": {each(trend("renderTime", 60, 400_000)), "renderTime", "Failed", "Script/renderTime p95 is 400ms, the objective is below 300ms", ""},
		"a Trend of a few values that an objective names": {each(trend("seldom", 2, 1000)), "seldom", "Inconclusive",
			"Script/seldom p95 has 4 of at least 59; iterations: 885 in spec.scenarios would do", GuardSamples},
		"a name that nothing has": {each(), "renderTime", "Inconclusive",
			"Script/renderTime p95 has 0 of at least 59; no request of the script that answered has the tag endpoint renderTime, and no Trend of times, new Trend('renderTime', true)", GuardSamples},
		"a Trend of one slow value that no objective names": {each(trend("seldom", 1, 9_000_000)), "", "Passed", "Script p95 is 612ms", ""},
		"an endpoint and a Trend of one name, which only some repeats have both": {func(runs []*result.Run) {
			runs[0].Series = append(runs[0].Series, trend("config"+result.TrendMark, 60, 900_000))
			runs[1].Series = append(runs[1].Series[:1:1], trend("config", 60, 900_000))
		}, "config", "Failed", "Script/config p95 is 612ms", ""},
		"a script that only tells times and asks nothing": {func(runs []*result.Run) {
			for _, run := range runs {
				run.Series = append(run.Series[:1:1], trend("renderTime", 60, 200_000))
			}
		}, "renderTime", "Error", "made no request", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := scripted(t, "10.0.0.1")
			in.Test.Spec.Repeats = ptr(int32(2))
			if test.endpoint != "" {
				in.Test.Spec.Objectives = []v1alpha1.Objective{objective("Script", test.endpoint, 95, 300e6)}
			}
			plan, err := Resolve(in.Test, authentik())
			if err != nil {
				t.Fatal(err)
			}
			runs, ev := []*result.Run{scriptRun(), scriptRun()}, goodEvidence()
			runs[1].PlanID = "demo-1-2"
			ev.Jobs = append(ev.Jobs, JobOutcome{Name: "demo-1-2", ExitCode: ptr(int32(0))})
			ev.ScriptDigest = runs[0].ScriptDigest
			test.change(runs)
			out := Judge(plan, runs, ev)
			if out.Verdict != test.want || !strings.Contains(out.Message, test.says) {
				t.Errorf("%s: %s, want %s: %s", out.Verdict, out.Message, test.want, test.says)
			}
			for _, g := range out.Guards {
				if !g.OK != (g.Name == test.violated) {
					t.Errorf("guard %+v", g)
				}
			}
			if failures := guardNamed(out.Guards, GuardFailures); test.want == "Passed" && failures.Detail != "none of 120 requests failed" {
				t.Errorf("the values of a Trend are no requests: %s", failures.Detail)
			}
		})
	}
}

func TestFiguresOfAScriptsOwnMetrics(t *testing.T) {
	run := scriptRun()
	run.Series = append(run.Series, trend("a", 60, 200_000))
	s := &run.Scenarios[0]
	s.MetricValuesLeftOut = 7
	for i := range 100 {
		s.Metric("items", result.MetricTrend).Record(float64(i))
		s.Metric("found", result.MetricCounter).Record(0.5)
		s.Metric("fresh", result.MetricRate).Record(float64(i % 4))
		s.Metric("depth", result.MetricGauge).Record(float64(i - 50))
	}
	s.Metric("items", result.MetricTrend).Record(-1)
	got := Figures(scripted(t, "10.0.0.1").Plan, result.Merge(run))[0]
	var names []string
	for _, e := range got.Endpoints {
		names = append(names, fmt.Sprintf("%s %v", e.Name, e.Phases != nil))
	}
	// The whole first, and what the script told last.
	if diff := cmp.Diff([]string{"script false", "config true", "a false"}, names); diff != "" {
		t.Error(diff)
	}
	want := []v1alpha1.ScriptMetric{
		{Name: "depth", Type: "Gauge", Count: 100, MinMilli: -50_000, MaxMilli: 49_000},
		{Name: "found", Type: "Counter", Count: 100, SumMilli: 50_000},
		{Name: "fresh", Type: "Rate", Count: 100, TrueCount: 75},
		// Percentiles are upper edges of buckets, at most 0.1 % above.
		{Name: "items", Type: "Trend", Count: 101, LeftOut: 1, P50Milli: 49_023, P90Milli: 89_023, P95Milli: 94_015, P99Milli: 98_047, P999Milli: 99_000,
			MaxMilli: 99_000, Unsupported: []string{"p99", "p99.9"}},
	}
	if diff := cmp.Diff(want, got.Metrics); diff != "" || got.MetricValuesLeftOut != 7 {
		t.Errorf("%d left out, %s", got.MetricValuesLeftOut, diff)
	}
	if login := Figures(scripted(t, "10.0.0.1").Plan, goodRun())[0]; login.Metrics != nil {
		t.Errorf("a run without them has %v", login.Metrics)
	}
}

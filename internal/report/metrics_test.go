package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/result"
)

// scripted is a finished test of a user's own script with metrics of every kind, as its run gives them.
func scripted(t *testing.T) Input {
	in := sample(540, true)
	run := in.Run
	run.ScriptDigest = result.Digest([]byte("script"))
	run.Series = run.Series[len(run.Series)-3:]
	for i, name := range []string{"script", "search", "renderTime"} {
		s := &run.Series[i]
		s.Scenario, s.Endpoint, s.Whole, s.Own = "Script", name, name == "script", name == "renderTime"
		if !s.OfRequests() {
			s.Wait, s.Receive = nil, nil
		}
	}
	script := result.Scenario{Name: "Script", Iterations: 60, WarmUpIterations: 6, MetricValuesLeftOut: 120}
	for i := range 80 {
		script.Metric("items", result.MetricTrend).Record(float64(i) / 4)
		script.Metric("found", result.MetricCounter).Record(5.15)
		script.Metric("fresh", result.MetricRate).Record(float64(i % 8))
		script.Metric("depth", result.MetricGauge).Record(float64(i - 3))
	}
	script.Metric("items", result.MetricTrend).Record(-1)
	run.Scenarios = []result.Scenario{script}
	run.Sort()

	test := in.Test
	test.Spec.Scenarios = []v1alpha1.Scenario{{Name: v1alpha1.ScenarioScript, Iterations: new(int32(60)), Script: &v1alpha1.ScriptSource{ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "mine", Key: "script.js"}}}}
	test.Spec.Objectives = []v1alpha1.Objective{{Scenario: v1alpha1.ScenarioScript, Endpoint: "renderTime", Percentile: 95, Below: metav1.Duration{Duration: 2 * time.Second}}}
	plan, err := latency.Resolve(test, in.Stack)
	if err != nil {
		t.Fatal(err)
	}
	pods, zero := []latency.PodState{{Name: "demo-server-0", UID: "a", Image: "i", Ready: true}}, int32(0)
	outcome := latency.Judge(plan, []*result.Run{run}, latency.Evidence{Jobs: []latency.JobOutcome{{Name: "demo-1-1", ExitCode: &zero, Observed: true}},
		PodsBefore: pods, PodsAfter: pods, GenerationBefore: 2, GenerationAfter: 2, ScriptDigest: run.ScriptDigest})
	test.Status.Verdict, test.Status.Causes, test.Status.Scenarios = outcome.Verdict, nil, outcome.Scenarios
	test.Status.Objectives, test.Status.Guards = outcome.Objectives, outcome.Guards
	test.Status.Conditions[0].Message = outcome.Message
	return in
}

func TestTheScriptsOwnMetricsInWords(t *testing.T) {
	for name, test := range map[string]struct {
		metric v1alpha1.ScriptMetric
		want   string
	}{
		"a Counter below zero":                  {v1alpha1.ScriptMetric{Type: "Counter", Count: 2, SumMilli: -250}, "-0.25 in 2 values"},
		"a Rate":                                {v1alpha1.ScriptMetric{Type: "Rate", Count: 3, TrueCount: 2}, "2 of 3 values true, 66.7 %"},
		"a Gauge":                               {v1alpha1.ScriptMetric{Type: "Gauge", Count: 3, MinMilli: -1500, MaxMilli: 12_345}, "3 values from -1.5 to 12.345"},
		"a Gauge of values that it cannot hold": {v1alpha1.ScriptMetric{Type: "Gauge", Count: 3, LeftOut: 3}, "no figure; 3 left out, further than 10^12 from 0"},
		"a Trend, whose histogram knows three digits": {v1alpha1.ScriptMetric{Type: "Trend", Count: 999, P50Milli: 9751, P90Milli: 17_759, P95Milli: 999_500, P99Milli: 1_234_567,
			P999Milli: 3_599_999_999, MinMilli: 999, MaxMilli: 3_600_000_000}, "999 values from 0.999 to 3600000, p50 9.75, p90 17.8, p95 1000, p99 1230, p99.9 3600000"},
		"a Trend of a few values": {v1alpha1.ScriptMetric{Type: "Trend", Count: 11, LeftOut: 1, P50Milli: 1, P90Milli: 20, P95Milli: 300, P99Milli: 4000, P999Milli: 4000, MaxMilli: 4000,
			Unsupported: []string{"p99", "p99.9"}}, "10 values from 0 to 4, p50 0.001, p90 0.02, p95 0.3, p99 4*, p99.9 4*; 1 left out, negative or above 3600000"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ownMetricWords(test.metric); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestATrendOfTimesIsAnEndpointOfTheReport(t *testing.T) {
	r := New(scripted(t))
	if r.Verdict != v1alpha1.VerdictPassed || len(r.Objectives) != 1 || !r.Objectives[0].Met {
		t.Errorf("%s: %s", r.Verdict, r.Message)
	}
	var rows, drawn []string
	for _, row := range r.Scenarios {
		rows = append(rows, row.Endpoint)
	}
	for _, p := range r.Plots {
		drawn = append(drawn, p.Endpoint)
	}
	if diff := cmp.Diff([][]string{{"script", "search", "renderTime"}, {"script", "renderTime"}}, [][]string{rows, drawn}); diff != "" {
		t.Error(diff)
	}
}

func TestOnlySoManyOfAScriptsTimesAreDrawn(t *testing.T) {
	in := scripted(t)
	own := in.Run.Find("Script", "renderTime")
	for i := range 40 {
		further := *own
		further.Endpoint = fmt.Sprintf("page%d", i)
		in.Run.Series = append(in.Run.Series, further)
		in.Test.Status.Scenarios[0].Endpoints = append(in.Test.Status.Scenarios[0].Endpoints, v1alpha1.EndpointResult{Name: further.Endpoint, Requests: 60})
	}
	drawn := 0
	for _, p := range New(in).Plots {
		if p.Endpoint != "script" {
			drawn++
		}
	}
	if drawn != maxOwnPlots {
		t.Errorf("%d of 41 are drawn", drawn)
	}
}

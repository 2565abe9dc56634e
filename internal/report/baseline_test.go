package report

import (
	"bytes"
	"strings"
	"testing"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/baseline"
)

var sizes = []baseline.Size{
	{Scenario: "Login", Iterations: 100, WarmUpIterations: 12, VirtualUsers: 1, Connections: v1alpha1.ConnectionsReuse, Pods: 1},
	{Scenario: "Dashboard", Iterations: 61, WarmUpIterations: 4, VirtualUsers: 1, Connections: v1alpha1.ConnectionsReuse, Pods: 1},
}

// repeatsAt have these p95 of the login and of the dashboard, in milliseconds.
func repeatsAt(figures ...[2]int64) []baseline.Repeat {
	var repeats []baseline.Repeat
	for _, f := range figures {
		repeats = append(repeats, baseline.Repeat{Figures: []baseline.Figures{
			{Scenario: "Login", Endpoint: "login", Count: 100, P50Micros: f[0] * 800, P90Micros: f[0] * 900, P95Micros: f[0] * 1000, P99Micros: f[0] * 1100},
			{Scenario: "Dashboard", Endpoint: "dashboard-parallel", Count: 61, P50Micros: f[1] * 800, P90Micros: f[1] * 900, P95Micros: f[1] * 1000, P99Micros: f[1] * 1100},
		}})
	}
	return repeats
}

// gated is a test whose login became slower than earlier, and whose dashboard may have.
func gated() Input {
	in := sample(700, false)
	in.Sizes, in.Repeats = sizes, repeatsAt([2]int64{790, 1000}, [2]int64{780, 1300}, [2]int64{800, 1150})
	in.Test.Status.Verdict = v1alpha1.VerdictPassed
	for i := range in.Test.Status.Objectives {
		o := &in.Test.Status.Objectives[i]
		o.CILowMicros, o.CIHighMicros, o.CISample = o.MeasuredMicros*9/10, o.MeasuredMicros*11/10, v1alpha1.SampleRepeats
	}
	return in
}

// earlier makes a report the baseline of gated.
func (r *Report) earlier() *Report {
	r.Name, r.Sizes, r.Repeats = "before", sizes, repeatsAt([2]int64{600, 1000}, [2]int64{610, 1100}, [2]int64{590, 1050})
	return r
}

func TestABaselineIsReadFromAFileAgain(t *testing.T) {
	var file bytes.Buffer
	if err := WriteJSON(&file, New(sample(540, false)).earlier().Kept()); err != nil {
		t.Fatal(err)
	}
	size := file.Len()
	earlier, err := ReadJSON(&file)
	if err != nil {
		t.Fatal(err)
	}
	got := New(gated()).Against(earlier, 10)
	if got.Verdict != v1alpha1.VerdictFailed || len(got.Baseline) != 2 || !strings.Contains(got.Message, "Login/login p95 is 1.32") {
		t.Errorf("%s, %+v: %s", got.Verdict, got.Baseline, got.Message)
	}
	if size > 32<<10 {
		t.Errorf("a baseline of three repeats has %d bytes", size)
	}
	double := *earlier
	double.Subject.Double = true
	if got := New(gated()).Against(&double, 10); got.Verdict != v1alpha1.VerdictInconclusive || !strings.Contains(got.Message, "a double of authentik") {
		t.Errorf("a product against a double: %s, %s", got.Verdict, got.Message)
	}
}

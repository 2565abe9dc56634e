package latency

import (
	"testing"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

func TestARunIsVoidedByChanceOnly(t *testing.T) {
	for name, c := range map[string]struct {
		change func(run *result.Run, ev *Evidence)
		want   bool
	}{
		"a good run is not": {change: func(*result.Run, *Evidence) {}},
		"a Pod restarted":   {want: true, change: func(_ *result.Run, ev *Evidence) { ev.PodsAfter[0].RestartCount = 1 }},
		"the clock was set": {want: true, change: func(run *result.Run, _ *Evidence) { run.EndedAt = run.EndedAt.Add(time.Hour) }},
		"iterations that the time cut off are cut off again": {change: func(run *result.Run, _ *Evidence) { run.Scenarios[0].Iterations = 59 }},
		"and no restart makes them worth another run": {change: func(run *result.Run, ev *Evidence) {
			run.Scenarios[0].Iterations = 59
			ev.PodsAfter[0].RestartCount = 1
		}},
		"a failure is not": {change: func(run *result.Run, _ *Evidence) { fail(run, 30, "status 502") }},
		"an error is not":  {change: func(_ *result.Run, ev *Evidence) { ev.Jobs[0].PodReason = "Evicted" }},
	} {
		t.Run(name, func(t *testing.T) {
			plan, _ := Resolve(&v1alpha1.LatencyTest{}, authentik())
			run, ev := goodRun(), goodEvidence()
			c.change(run, &ev)
			if out := Judge(plan, []*result.Run{run}, ev); out.Voided != c.want {
				t.Errorf("voided is %v: %s: %s", out.Voided, out.Verdict, out.Message)
			}
		})
	}
}

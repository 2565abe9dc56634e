package latency

import (
	"fmt"
	"strings"
	"testing"

	"authstack.dev/authstack/internal/result"
)

// observed are repeats of a login with these medians in milliseconds.
func observed(t *testing.T, medians ...float64) (*Plan, []*result.Run, Evidence) {
	t.Helper()
	in := input(t)
	in.Plan.Repeats = int32(len(medians))
	var runs []*result.Run
	ev := goodEvidence()
	ev.Jobs = nil
	for i, ms := range medians {
		run := goodRun()
		run.PlanID = fmt.Sprintf("demo-1-%d", i+1)
		for j := range run.Series {
			run.Series[j].Total = result.NewHistogram()
			for range run.Series[j].Requests {
				run.Series[j].Total.Record(int64(ms * 1000))
			}
		}
		runs = append(runs, run)
		ev.Jobs = append(ev.Jobs, JobOutcome{Name: run.PlanID, ExitCode: ptr(int32(0)), Observed: Observed(int32(i + 1))})
	}
	return in.Plan, runs, ev
}

func TestTheOrderOfObservedRepeatsIsBalanced(t *testing.T) {
	var order strings.Builder
	sum := map[bool]int{}
	for n := range int32(12) {
		order.WriteString(map[bool]string{true: "A", false: "B"}[Observed(n+1)])
		sum[Observed(n+1)] += int(n)
	}
	if order.String() != "ABBAABBAABBA" || sum[true] != sum[false] {
		t.Errorf("the order is %s", order.String())
	}
}

func TestObserverEffect(t *testing.T) {
	for name, test := range map[string]struct {
		medians []float64
		blind   bool
		ok      bool
		says    string
	}{
		"one repeat says nothing":                   {medians: []float64{600}, ok: true, says: "not known from one repeat: "},
		"three repeats have one that was not asked": {medians: []float64{600, 600, 600}, ok: true, says: "not known from 3 repeats"},
		"four that are the same":                    {medians: []float64{600, 600, 600, 600}, ok: true, says: "is 1.000 times as long in the 2 repeats that began right after the operator asked the database as in the 2 others (95 %: 1.000 to 1.000, limit 1.05)"},
		"eight that differ by chance":               {medians: []float64{600, 606, 598, 604, 601, 600, 605, 597}, ok: true, says: "limit 1.05)"},
		"four that differ too much to tell":         {medians: []float64{600, 700, 650, 720}, ok: true, says: "; not settled"},
		"a database that was asked and is slower":   {medians: []float64{660, 600, 603, 664, 659, 601, 598, 661}, ok: false, says: "is 1.10"},
		"what grows steadily is no effect":          {medians: []float64{600, 610, 620, 630, 640, 650, 660, 670}, ok: true, says: "is 1.000 times"},
		"a database that was not asked":             {medians: []float64{600, 606, 598, 604}, blind: true, ok: true, says: "none: the operator did not ask"},
		"a repeat without an answer is left out":    {medians: []float64{600, 0, 600, 600}, ok: true, says: "not known from 3 repeats"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, runs, ev := observed(t, test.medians...)
			for i := range ev.Jobs {
				ev.Jobs[i].Observed = ev.Jobs[i].Observed && !test.blind
			}
			g := observerGuard(plan, runs, ev)
			if g.OK != test.ok || !strings.Contains(g.Detail, test.says) {
				t.Errorf("%t: %s", g.OK, g.Detail)
			}
		})
	}
}

func TestAnObserverEffectVoidsTheRun(t *testing.T) {
	plan, runs, ev := observed(t, 660, 600, 603, 664, 659, 601, 598, 661)
	out := Judge(plan, runs, ev)
	if g := guardNamed(out.Guards, GuardObserver); g.OK || out.Verdict != "Inconclusive" || !strings.Contains(out.Message, GuardObserver+": the median of Login is 1.10") || out.Voided {
		t.Errorf("%s: %s, voided %t", out.Verdict, out.Message, out.Voided)
	}
	ev.Outside = true
	if g := guardNamed(Judge(plan, runs, ev).Guards, GuardObserver); g.Name != "" {
		t.Errorf("outside of a cluster nobody observes: %+v", g)
	}
}

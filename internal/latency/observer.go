package latency

import (
	"fmt"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/internal/statistics"
)

// observerMargin is how much slower the repeats may be that began right after the operator had asked the
// database for its counters: half of the 10 % that the documented gate finds (docs/ci.md).
const observerMargin = 0.05

// Observed is whether the operator asks the database for its counters right before repeat n, from 1. That
// is every other one in the order A B B A, so that what changes steadily over a run cancels out.
func Observed(n int32) bool { return n%4 <= 1 }

// observerGuard compares the repeats that began right after the operator had asked the database with the
// others: the run with and without its own sampling. It is violated where an effect is shown. An effect
// that could not be told from chance is said to be so, and voids nothing: the counters are never asked
// for during a repeat. What the operator asks the database for at each look at the stack, whether a test runs
// or not, belongs to the stack and is in all repeats alike.
func observerGuard(plan *Plan, runs []*result.Run, ev Evidence) v1alpha1.Guard {
	g := v1alpha1.Guard{Name: GuardObserver, OK: true}
	var with, without []float64
	scenario := plan.Scenarios[0].Name
	for i, run := range runs {
		s := run.Find(string(scenario), wholeOf(plan, scenario))
		if s == nil || s.Total.PerMille(500) <= 0 {
			continue
		}
		if median := float64(s.Total.PerMille(500)); ev.Jobs[i].Observed {
			with = append(with, median)
		} else {
			without = append(without, median)
		}
	}
	if len(with) == 0 {
		g.Detail = "none: the operator did not ask the database for its counters"
		return g
	}
	ratio, err := statistics.UnpairedRatio(with, without)
	if err != nil {
		g.Detail = fmt.Sprintf("not known from %s: the operator asks the database for its counters before a repeat and never during one; with repeats: 4 or more "+
			"those that begin right after it asked are compared with the others", repeatsInWords(len(with)+len(without)))
		return g
	}
	g.Detail = fmt.Sprintf("the median of %s is %.3f times as long in the %d repeats that began right after the operator asked the database as in the %d others (95 %%: %.3f to %.3f, limit %.2f)",
		scenario, ratio.Value, len(with), len(without), ratio.Low, ratio.High, 1+observerMargin)
	switch ratio.NotWorse(observerMargin) {
	case statistics.Larger:
		g.OK = false
	case statistics.Undecided:
		g.Detail += "; not settled"
		if n := ratio.RepeatsToSettle(observerMargin); n > 0 && ratio.Value < 1+observerMargin {
			g.Detail += fmt.Sprintf(", about %d repeats would settle it", 2*n)
		}
	}
	return g
}

func repeatsInWords(n int) string {
	if n == 1 {
		return "one repeat"
	}
	return fmt.Sprintf("%d repeats", n)
}

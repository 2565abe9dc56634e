package latency

import (
	"fmt"
	"slices"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// The guards. All are always reported, with their figure, in this order.
const (
	// GuardFailures: at most one request in a hundred of any endpoint failed. The only guard whose
	// violation is a Failed, since it speaks of the stack and not of the measurement.
	GuardFailures = "failures"
	// GuardSamples: each objective has enough samples for its percentile (result.SamplesFor), each
	// scenario at least ten.
	GuardSamples = "samples"
	// GuardWarmUp: the whole warm-up ran before the measurement.
	GuardWarmUp = "warm-up"
	// GuardDropped: every planned iteration was run to its end.
	GuardDropped = "dropped-iterations"
	// GuardThrottled: the kernel held the generator back for less than a hundredth of the run.
	GuardThrottled = "generator-throttled"
	// GuardCPU: the generator used less than 80 % of the cores that it may use. Above, it measures itself.
	GuardCPU = "generator-cpu"
	// GuardClock: wall clock and monotonic clock agree on the length of the run within a second; they
	// do not when the clock was set or the machine was paused.
	GuardClock = "clock"
	// GuardPodsTogether: the Pods of a parallel run of the generator began within a tenth of the run. Only of several Pods.
	GuardPodsTogether = "generator-pods-together"
	// GuardPodsUnchanged: the same Pods, containers and images before and after.
	GuardPodsUnchanged = "pods-unchanged"
	// GuardPodsReady: they were ready before and after, and all the time in between.
	GuardPodsReady = "pods-ready"
	// GuardStackUnchanged: the spec of the stack did not change.
	GuardStackUnchanged = "stack-unchanged"
	// GuardNodePressure: no node of the stack or of the generator was short of memory, disk or process ids before the run or
	// after a repeat.
	GuardNodePressure = "node-pressure"
	// GuardObserver: the repeats that began right after the operator had asked the database for its counters
	// are not shown to be more than 5 % slower than the others.
	GuardObserver = "observer-effect"
	// GuardScriptUnchanged: every repeat ran the same script of the user's own, and its ConfigMap still
	// holds it. Only of a test with the scenario Script.
	GuardScriptUnchanged = "script-unchanged"
)

const (
	maxFailedPercent    = 1
	maxThrottledPercent = 1
	maxCPUPercent       = 80
	minSamples          = 10
	maxClockDrift       = time.Second
	// Pods begin as soon as each one's node has started it. Up to a tenth of the run, or five seconds, one
	// may wait for another, by their nodes' clocks.
	maxApartPercent = 10
	minPodsApart    = 5 * time.Second
)

func guards(plan *Plan, runs []*result.Run, merged *result.Run, ev Evidence) []v1alpha1.Guard {
	list := []v1alpha1.Guard{
		failuresGuard(plan, merged), samplesGuard(plan, merged), warmUpGuard(plan, merged), droppedGuard(plan, merged),
		throttledGuard(plan, runs), cpuGuard(runs), clockGuard(runs),
	}
	if !ev.Outside {
		list = append(list, podsUnchangedGuard(ev), podsReadyGuard(ev), stackUnchangedGuard(ev), nodePressureGuard(ev), observerGuard(plan, runs, ev))
	}
	if plan.Script() != nil && !ev.Outside {
		list = append(list, scriptGuard(runs, ev))
	}
	if plan.Pods > 1 {
		list = append(list, togetherGuard(plan, runs))
	}
	if drift := driftGuard(plan, runs); drift.Name != "" {
		list = append(list, drift)
	}
	for i := range list {
		list[i].Detail = clip(list[i].Detail, 1024)
	}
	return list
}

// chance are the guards that a run may violate by chance, so that another run is worth its time. What
// the others find, the same spec finds again.
var chance = []string{GuardThrottled, GuardCPU, GuardClock, GuardPodsTogether, GuardPodsUnchanged, GuardPodsReady, GuardStackUnchanged, GuardNodePressure, GuardScriptUnchanged}

// MostVoided is how many runs of a test may be voided and repeated; the next one counts, whatever it is.
const MostVoided = 2

func guardNamed(list []v1alpha1.Guard, name string) v1alpha1.Guard {
	for _, g := range list {
		if g.Name == name {
			return g
		}
	}
	return v1alpha1.Guard{}
}

// failuresGuard looks at the endpoint with the greatest share of failures, and at the checks of the
// scripts likewise: of a user's own script they may be the only ones that know a wrong answer.
func failuresGuard(plan *Plan, run *result.Run) v1alpha1.Guard {
	var worst *result.Series
	var total, failed int64
	for i := range run.Series {
		s := &run.Series[i]
		if s.OfRequests() {
			total, failed = total+s.Requests, failed+s.Failed()
		}
		if s.Failed() > 0 && !beyondFirstStep(plan, s) && (worst == nil || s.Failed()*worst.Requests > worst.Failed()*s.Requests) {
			worst = s
		}
	}
	g := v1alpha1.Guard{Name: GuardFailures, OK: true, Detail: fmt.Sprintf("none of %d requests failed", total)}
	if worst != nil {
		g.OK = worst.Failed()*100 <= worst.Requests*maxFailedPercent
		g.Detail = fmt.Sprintf("%d of %d %s/%s failed", worst.Failed(), worst.Requests, worst.Scenario, worst.Endpoint)
		for i, f := range worst.Failures {
			if i == 3 {
				break
			}
			g.Detail += fmt.Sprintf(", %s ×%d", f.Kind, f.Count)
		}
		g.Detail = fmt.Sprintf("%s (limit %d %%)", g.Detail, maxFailedPercent)
	}
	for _, s := range run.Scenarios {
		if slices.ContainsFunc(plan.Scenarios, func(of v1alpha1.Scenario) bool { return string(of.Name) == s.Name && len(of.RateStepsPerMinute) > 0 }) {
			// A check is counted over all steps, of which the last ones are to break.
			if len(s.Checks) > 0 {
				g.Detail = join(g.Detail, fmt.Sprintf("the checks of %s are not judged, since its rate rises until it breaks", s.Name))
			}
			continue
		}
		for _, c := range s.Checks {
			if c.Failed*100 > (c.Passed+c.Failed)*maxFailedPercent {
				g.OK = false
				g.Detail = join(g.Detail, fmt.Sprintf("the check %q of %s failed %d of %d times (limit %d %%)", c.Name, s.Name, c.Failed, c.Passed+c.Failed, maxFailedPercent))
			}
		}
	}
	return g
}

// beyondFirstStep is whether a series holds what came in later steps of a rising rate: those go on until something breaks,
// which is their result (sustained) and no fault of the run.
func beyondFirstStep(plan *Plan, s *result.Series) bool {
	for _, scenario := range plan.Scenarios {
		if steps := scenario.RateStepsPerMinute; string(scenario.Name) == s.Scenario && len(steps) > 0 {
			return s.Endpoint != stepEndpoint(wholeOf(plan, scenario.Name), steps[0])
		}
	}
	return false
}

// samplesGuard looks at the numbers that were measured well, and says how many iterations would do. A Trend
// of a user's own script that no objective names may have as few values as it likes.
func samplesGuard(plan *Plan, run *result.Run) v1alpha1.Guard {
	g := v1alpha1.Guard{Name: GuardSamples, OK: true}
	note := func(title string, have, need int64, remedy string) {
		part := fmt.Sprintf("%s has %d of at least %d", title, have, need)
		if have < need {
			g.OK = false
			part += "; " + remedy
		}
		g.Detail = join(g.Detail, part)
	}
	for _, s := range plan.Scenarios {
		note(string(s.Name), count(run, s.Name, wholeOf(plan, s.Name)), minSamples, wouldDo(plan, s.Name, ceilDiv(minSamples, int64(plan.Repeats))))
	}
	for _, o := range plan.Objectives {
		note(fmt.Sprintf("%s p%d", titleOf(plan, o), o.Percentile), count(run, o.Scenario, o.Endpoint), sampleFloor(o.Percentile), samplesRemedy(plan, run, o))
	}
	return g
}

func wouldDo(plan *Plan, scenario v1alpha1.ScenarioName, iterations int64) string {
	for _, s := range plan.Scenarios {
		if s.Name == scenario && (s.Iterations == nil || slices.Contains(plan.Soaks, s.Name)) {
			return fmt.Sprintf("a longer duration in spec.scenarios, for %d iterations that do not fail, would do", iterations)
		}
	}
	return fmt.Sprintf("iterations: %d in spec.scenarios would do if none fails", iterations)
}

// samplesRemedy says what gives an objective its samples. How often a user's own script asks for an endpoint,
// or adds to a Trend, only the run tells.
func samplesRemedy(plan *Plan, run *result.Run, o v1alpha1.Objective) string {
	if o.Scenario != v1alpha1.ScenarioScript || o.Endpoint == wholeOf(plan, o.Scenario) {
		return wouldDo(plan, o.Scenario, iterationsFor(plan.Provider, o, plan.Repeats, sampleFloor(o.Percentile)))
	}
	have, ran := count(run, o.Scenario, o.Endpoint), iterations(run, o.Scenario).Iterations
	if have == 0 {
		return fmt.Sprintf("no request of the script that answered has the tag endpoint %s, and no Trend of times, new Trend('%s', true), had a value", o.Endpoint, o.Endpoint)
	}
	return wouldDo(plan, o.Scenario, ceilDiv(ceilDiv(sampleFloor(o.Percentile)*ran, have), int64(plan.Repeats)))
}

func count(run *result.Run, scenario v1alpha1.ScenarioName, endpoint string) int64 {
	s := run.Find(string(scenario), endpoint)
	if s == nil {
		return 0
	}
	return s.Total.Count()
}

func warmUpGuard(plan *Plan, run *result.Run) v1alpha1.Guard {
	g := v1alpha1.Guard{Name: GuardWarmUp, OK: true}
	for _, s := range plan.Scenarios {
		need := int64(*s.WarmUpIterations) * int64(plan.Repeats)
		have := iterations(run, s.Name).WarmUpIterations
		if have < need {
			g.OK = false
		}
		g.Detail = join(g.Detail, fmt.Sprintf("%s ran %d of %d", s.Name, have, need))
	}
	return g
}

func droppedGuard(plan *Plan, run *result.Run) v1alpha1.Guard {
	g := v1alpha1.Guard{Name: GuardDropped, OK: true}
	for _, s := range plan.Scenarios {
		have := iterations(run, s.Name)
		if len(s.RateStepsPerMinute) > 0 {
			// Steps go on until something breaks; what is dropped is their result, not their fault.
			g.Detail = join(g.Detail, fmt.Sprintf("%s in steps dropped %d of %d", s.Name, have.DroppedIterations, have.DroppedIterations+have.Iterations))
			continue
		}
		if s.Iterations == nil {
			g.OK = g.OK && have.DroppedIterations == 0
			g.Detail = join(g.Detail, fmt.Sprintf("%s ran %d in %s", s.Name, have.Iterations, s.Duration.Duration))
			continue
		}
		need := int64(*s.Iterations) * int64(plan.Repeats)
		// An iteration that the end of the time cut off is neither counted as run nor as dropped.
		if lost := need - have.Iterations; lost > 0 || have.DroppedIterations > 0 {
			g.OK = false
			g.Detail = join(g.Detail, fmt.Sprintf("%s ran %d of %d iterations; raise spec.timeoutSeconds or lower the iterations", s.Name, have.Iterations, need))
		} else {
			g.Detail = join(g.Detail, fmt.Sprintf("%s ran all %d", s.Name, need))
		}
	}
	return g
}

func iterations(run *result.Run, name v1alpha1.ScenarioName) result.Scenario {
	for _, s := range run.Scenarios {
		if s.Name == string(name) {
			return s
		}
	}
	return result.Scenario{}
}

// throttledGuard looks at each run: one that was held back is not outweighed by others. Where the
// figures cannot be read that is only good enough without a CPU limit, when nothing throttles.
func throttledGuard(plan *Plan, runs []*result.Run) v1alpha1.Guard {
	g := v1alpha1.Guard{Name: GuardThrottled, OK: true}
	for _, run := range runs {
		t, wall := run.Generator.Throttle, run.Generator.WallMicros
		switch {
		case t == nil && plan.CPULimited:
			g.OK = false
			g.Detail = join(g.Detail, "not known: cpu.stat cannot be read and spec.generator.resources has a CPU limit; remove the limit")
		case t == nil:
			g.Detail = join(g.Detail, "cpu.stat cannot be read; without a CPU limit nothing throttles")
		default:
			if t.ThrottledMicros*100 > wall*maxThrottledPercent {
				g.OK = false
			}
			g.Detail = join(g.Detail, fmt.Sprintf("held back for %s of %s in %d of %d periods",
				result.FormatMicros(t.ThrottledMicros), result.FormatMicros(wall), t.Throttled, t.Periods))
		}
	}
	return g
}

func cpuGuard(runs []*result.Run) v1alpha1.Guard {
	g := v1alpha1.Guard{Name: GuardCPU, OK: true}
	for _, run := range runs {
		gen := run.Generator
		available := gen.WallMicros * int64(gen.GOMAXPROCS)
		if available <= 0 || gen.CPUMicros <= 0 {
			g.OK = false
			g.Detail = join(g.Detail, "not known")
			continue
		}
		percent := gen.CPUMicros * 100 / available
		if percent >= maxCPUPercent {
			g.OK = false
		}
		g.Detail = join(g.Detail, fmt.Sprintf("%d %% of %d cores used, in the busiest second %d %% (limit %d %% over the run)",
			percent, gen.GOMAXPROCS, gen.BusiestCPUMicros/(10_000*int64(gen.GOMAXPROCS)), maxCPUPercent))
	}
	return g
}

func clockGuard(runs []*result.Run) v1alpha1.Guard {
	g := v1alpha1.Guard{Name: GuardClock, OK: true}
	for _, run := range runs {
		drift := run.ClockDrift()
		if drift > maxClockDrift {
			g.OK = false
		}
		g.Detail = join(g.Detail, fmt.Sprintf("wall clock and monotonic clock differ by %s", result.FormatMicros(drift.Microseconds())))
	}
	return g
}

// togetherGuard is that the Pods of a parallel run began together: what one of them did alone is not the load that was asked for.
func togetherGuard(plan *Plan, runs []*result.Run) v1alpha1.Guard {
	g := v1alpha1.Guard{Name: GuardPodsTogether, OK: true}
	for _, run := range runs {
		apart, length := run.PodsApart(), run.EndedAt.Sub(run.StartedAt)
		if apart > max(minPodsApart, length*maxApartPercent/100) {
			g.OK = false
		}
		g.Detail = join(g.Detail, fmt.Sprintf("%d Pods began within %s of %s (limit %d %%, or %s)",
			plan.Pods, result.FormatMicros(apart.Microseconds()), result.FormatMicros(length.Microseconds()), maxApartPercent, minPodsApart))
	}
	return g
}

// join adds a part to a detail.
func join(detail, part string) string {
	if detail == "" {
		return part
	}
	return detail + "; " + part
}

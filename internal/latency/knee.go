package latency

import (
	"fmt"
	"slices"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// What a step of a rising rate must do to count as kept up.
const (
	// minStartedPercent of the iterations that the rate wants must have begun; k6 drops those that
	// find no virtual user, since all wait for answers.
	minStartedPercent = 95
	// maxKneeFactor is how many times the p95 of the first step a step's p95 may be: beyond the knee of
	// a queue the waiting grows without bound, so the factor hardly matters.
	maxKneeFactor = 3
)

// stepEndpoint is the whole of a scenario in the step of one rate; lib/record.js names it so.
func stepEndpoint(whole string, rate int32) string { return fmt.Sprintf("%s-at-%d", whole, rate) }

// stepOfObjective is the step of a scenario in rising steps that an objective's endpoint is about, by its name and its rate; false
// where it is about none. One of a whole is about the first: the steps beyond are to find where the stack breaks, and there it is slow.
func stepOfObjective(provider string, s v1alpha1.Scenario, endpoint string) (step string, rate int32, ok bool) {
	for _, whole := range Wholes(provider, s.Name) {
		for i, rate := range s.RateStepsPerMinute {
			if step := stepEndpoint(whole, rate); endpoint == step || i == 0 && endpoint == whole {
				return step, rate, true
			}
		}
	}
	return "", 0, false
}

// mixesSteps is whether an objective of a scenario in rising steps is about something that was measured over all of them.
func mixesSteps(provider string, s v1alpha1.Scenario, name string) bool {
	if len(s.RateStepsPerMinute) == 0 {
		return false
	}
	_, _, step := stepOfObjective(provider, s, name)
	return !step && (s.Name == v1alpha1.ScenarioScript || slices.ContainsFunc(endpoints(provider, s.Name), func(known endpoint) bool { return known.name == name }))
}

// enoughInSteps refuses steps that are too short for the percentile of an objective to be read from.
func (p *Plan) enoughInSteps(s v1alpha1.Scenario) error {
	for _, o := range p.Objectives {
		_, rate, ok := stepOfObjective(p.Provider, s, o.Endpoint)
		if o.Scenario != s.Name || !ok {
			continue
		}
		warmUp := int64(0)
		if rate == s.RateStepsPerMinute[0] {
			warmUp = int64(*s.WarmUpIterations)
		}
		needed := ceilDiv(sampleFloor(o.Percentile), int64(p.Repeats))
		// The one that is due at the very end begins in the next step.
		have := int64(float64(rate)*s.Duration.Minutes()) - warmUp - 1
		if have < needed {
			return fmt.Errorf("p%d of %s/%s needs at least %d measured iterations in each repeat, and a step of %s has %d; write duration: %ds or a lower percentile",
				o.Percentile, o.Scenario, o.Endpoint, needed, s.Duration.Duration, max(have, 0), ceilDiv((needed+warmUp+2)*60, int64(rate)))
		}
	}
	return nil
}

// sustained is the highest rate, in iterations a minute, up to which every step was kept up, and in
// words what broke at the next; 0 where not even the first was, or there are no steps.
func sustained(plan *Plan, s v1alpha1.Scenario, run *result.Run) (rate int32, limit string) {
	var first int64
	for _, step := range s.RateStepsPerMinute {
		series := run.Find(string(s.Name), stepEndpoint(wholeOf(plan, s.Name), step))
		if series == nil {
			return rate, fmt.Sprintf("nothing was measured at %d a minute", step)
		}
		wanted := int64(float64(step) * s.Duration.Minutes() * float64(plan.Repeats))
		began, p95 := series.Requests+series.WarmUpRequests, series.Total.PerMille(950)
		switch {
		// What is due at the very end of a step, k6 begins in the next.
		case (began+int64(plan.Repeats))*100 < wanted*minStartedPercent:
			return rate, fmt.Sprintf("at %d a minute only %d of %d began in time", step, began, wanted)
		case series.Failed()*100 > series.Requests*maxFailedPercent:
			return rate, fmt.Sprintf("at %d a minute %d of %d failed", step, series.Failed(), series.Requests)
		case first == 0:
			first = p95
		case p95 > first*maxKneeFactor:
			return rate, fmt.Sprintf("at %d a minute p95 is %s, at %d it was %s", step, result.FormatMicros(p95), s.RateStepsPerMinute[0], result.FormatMicros(first))
		}
		rate = step
	}
	return rate, ""
}

// GuardDrift holds where the median of the last third of a soak is at most a quarter above that of the
// first, in each repeat. Like GuardFailures it speaks of the stack: its violation is a Failed.
const GuardDrift = "drift"

const (
	maxDriftPercent = 25
	// minDriftSamples in each third, and the shortest run that can drift: below, the median itself moves.
	minDriftSamples = 60
	minDriftTime    = 3 * time.Minute
)

// driftGuard looks at scenarios that were given a duration, and tells of the repeat in which one became slower most; it is without
// a name where none is long enough.
func driftGuard(plan *Plan, runs []*result.Run) v1alpha1.Guard {
	g := v1alpha1.Guard{OK: true}
	for _, name := range plan.Soaks {
		worst := 0.0
		for i, run := range runs {
			series := run.Find(string(name), wholeOf(plan, name))
			if series == nil || series.Timeline == nil {
				continue
			}
			before, after, ok := thirds(series.Timeline)
			if !ok || float64(after)/float64(max(before, 1)) <= worst {
				continue
			}
			worst = float64(after) / float64(max(before, 1))
			g.Name = GuardDrift
			g.OK = after*100 <= before*(100+maxDriftPercent)
			g.Detail = fmt.Sprintf("%s: median %s in the first third, %s in the last (limit %d %% more)",
				name, result.FormatMicros(before), result.FormatMicros(after), maxDriftPercent)
			if len(runs) > 1 {
				g.Detail += fmt.Sprintf(", in repeat %d of %d, the worst", i+1, len(runs))
			}
		}
	}
	return g
}

// thirds are the medians of the first and the last third of a run, by time.
func thirds(t *result.Timeline) (first, last int64, ok bool) {
	n := len(t.Intervals)
	if n == 0 {
		return 0, 0, false
	}
	begin, end := t.Intervals[0].At, t.Intervals[n-1].At+1
	if time.Duration((end-begin)*t.IntervalSeconds)*time.Second < minDriftTime {
		return 0, 0, false
	}
	third := (end - begin) / 3
	var a, b int
	var early, late int64
	for i := range t.Intervals {
		switch in := &t.Intervals[i]; {
		case in.At < begin+third:
			a, early = i+1, early+in.Count()
		case in.At >= end-third:
			if late == 0 {
				b = i
			}
			late += in.Count()
		}
	}
	if early < minDriftSamples || late < minDriftSamples {
		return 0, 0, false
	}
	return t.PerMille(0, a, 500), t.PerMille(b, n, 500), true
}

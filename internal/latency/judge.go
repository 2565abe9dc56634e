package latency

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// Judge says what the runs of a plan are worth. In this order, the first that holds decides:
//
//	Error         there is no result to judge: a Job without a whole result or with a failed k6, a
//	              scenario of which no request was answered at all, a script that broke.
//	Inconclusive  a guard says that the figures prove nothing (see guards.go).
//	Failed        more than one request in a hundred got a wrong answer or none, whatever the
//	              percentiles say: a stack that answers 500 in a millisecond is not fast. Or an
//	              objective is missed. Or a soak became slower and slower.
//	Passed        every objective is met, or there is none.
//
// runs[i] and ev.Jobs[i] belong to repeat i+1; a missing or nil run is one without a result.
func Judge(plan *Plan, runs []*result.Run, ev Evidence) Outcome {
	// So that an objective means the same in each repeat.
	runs = result.Apart(runs)
	out := Outcome{Merged: result.Merge(runs...)}
	if out.Merged != nil {
		out.Scenarios = figures(plan, out.Merged)
		out.Objectives = objectives(plan, runs, out.Merged)
		out.LoginP95 = loginP95(out.Merged)
	}
	if message := findError(plan, runs, ev, out.Merged); message != "" {
		return out.decide(v1alpha1.VerdictError, message)
	}
	out.Guards = guards(plan, runs, out.Merged, ev)

	failures := guardNamed(out.Guards, GuardFailures)
	var doubts []string
	out.Voided = true
	for _, g := range out.Guards {
		switch {
		case g.OK, g.Name == GuardFailures, g.Name == GuardDrift:
		case g.Name == GuardSamples && !failures.OK:
			// There are too few samples because the product did not answer well; that is its fault.
		default:
			doubts = append(doubts, g.Name+": "+g.Detail)
			out.Voided = out.Voided && slices.Contains(chance, g.Name)
		}
	}
	out.Voided = out.Voided && len(doubts) > 0
	if len(doubts) > 0 {
		return out.decide(v1alpha1.VerdictInconclusive, "The figures prove nothing. "+strings.Join(doubts, "; ")+".")
	}
	if !failures.OK {
		return out.decide(v1alpha1.VerdictFailed, "The stack answered wrongly. "+failures.Detail+".")
	}
	var missed, met []string
	if drift := guardNamed(out.Guards, GuardDrift); drift.Name != "" && !drift.OK {
		missed = append(missed, "the stack became slower during the run: "+drift.Detail)
	}
	for _, o := range out.Objectives {
		figure := fmt.Sprintf("%s p%d is %s", titleOf(plan, o.Objective), o.Percentile, result.FormatMicros(o.MeasuredMicros))
		if o.Met {
			met = append(met, figure+", below "+o.Below.Duration.String())
		} else {
			missed = append(missed, figure+", the objective is below "+o.Below.Duration.String())
		}
	}
	switch {
	case len(missed) > 0:
		return out.decide(v1alpha1.VerdictFailed, strings.Join(missed, "; ")+".")
	case len(met) > 0:
		return out.decide(v1alpha1.VerdictPassed, strings.Join(met, "; ")+".")
	}
	return out.decide(v1alpha1.VerdictPassed, "Every guard held; there is no objective to judge. "+summary(plan, out.Merged)+".")
}

// maxMessage is what a condition's message may have; the API's limit is 32768.
const maxMessage = 1024

func (o Outcome) decide(verdict v1alpha1.Verdict, message string) Outcome {
	o.Verdict, o.Reason, o.Message = verdict, string(verdict), clip(message, maxMessage)
	return o
}

// titleOf names what an objective is about; the scenario's whole needs no endpoint.
func titleOf(plan *Plan, o v1alpha1.Objective) string {
	if known := endpoints(plan.Provider, o.Scenario); len(known) > 0 && known[0].name == o.Endpoint {
		return string(o.Scenario)
	}
	return string(o.Scenario) + "/" + o.Endpoint
}

// objectives beside what was measured. Without a sample an objective is not met.
func objectives(plan *Plan, runs []*result.Run, run *result.Run) []v1alpha1.ObjectiveResult {
	var results []v1alpha1.ObjectiveResult
	for _, o := range plan.Objectives {
		r := v1alpha1.ObjectiveResult{Objective: o}
		if s := run.Find(string(o.Scenario), o.Endpoint); s != nil && s.Total.Count() > 0 {
			r.MeasuredMicros = s.Total.PerMille(int(o.Percentile) * 10)
			r.Met = time.Duration(r.MeasuredMicros)*time.Microsecond < o.Below.Duration
			interval(&r, runs, s)
		}
		results = append(results, r)
	}
	return results
}

// summary is the p95 of each scenario's whole.
func summary(plan *Plan, run *result.Run) string {
	var parts []string
	for _, s := range plan.Scenarios {
		if series := run.Find(string(s.Name), wholeOf(plan, s.Name)); series != nil {
			part := fmt.Sprintf("%s p95 is %s over %d", s.Name, result.FormatMicros(series.Total.PerMille(950)), series.Total.Count())
			if need := result.SamplesFor(950); series.Total.Count() < need {
				part += fmt.Sprintf(", too few for a p95, which needs %d", need)
			}
			parts = append(parts, part)
		}
		if len(s.RateStepsPerMinute) > 0 {
			rate, limit := sustained(plan, s, run)
			parts = append(parts, join(fmt.Sprintf("%d a minute were kept up", rate), limit))
		}
	}
	return strings.Join(parts, "; ")
}

func loginP95(run *result.Run) string {
	s := run.Find(string(v1alpha1.ScenarioLogin), "login")
	if s == nil || s.Total.Count() == 0 {
		return ""
	}
	p95 := result.FormatMicros(s.Total.PerMille(950))
	if n := s.Total.Count(); n < result.SamplesFor(950) {
		p95 += fmt.Sprintf(" (of %d)", n)
	}
	return p95
}

func wholeOf(plan *Plan, name v1alpha1.ScenarioName) string {
	if known := endpoints(plan.Provider, name); len(known) > 0 {
		return known[0].name
	}
	return ""
}

func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}

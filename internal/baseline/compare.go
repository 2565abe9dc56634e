package baseline

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/statistics"
)

// DefaultPercent is how much slower is still good enough where nobody says.
const DefaultPercent = 10

// maxResults is how many figures a status takes.
const maxResults = 64

// What is a figure that is compared.
type What struct {
	Scenario   v1alpha1.ScenarioName
	Endpoint   string
	Percentile int32
}

// Outcome is what a comparison shows.
type Outcome struct {
	// Verdict is Failed where a figure has regressed, Passed where none has, else Inconclusive.
	Verdict v1alpha1.Verdict
	// Message is why, in sentences.
	Message string
	Results []v1alpha1.BaselineResult
}

// Compared are the figures that a measurement gates: its objectives', or else the median of each
// scenario's whole. An objective at a percentile that is not kept is left out.
func Compared(provider string, sizes []Size, objectives []v1alpha1.Objective) []What {
	var list []What
	add := func(w What) {
		if !slices.Contains(list, w) && len(list) < maxResults {
			list = append(list, w)
		}
	}
	for _, o := range objectives {
		if slices.Contains(percentiles, o.Percentile) {
			add(What{o.Scenario, o.Endpoint, o.Percentile})
		}
	}
	if len(list) > 0 {
		return list
	}
	for _, s := range sizes {
		name := v1alpha1.ScenarioName(s.Scenario)
		for _, endpoint := range latency.Wholes(provider, name) {
			add(What{name, endpoint, 50})
		}
	}
	return list
}

// Compare says whether what was measured now is slower than earlier by more than percent. Like is
// compared only with like; what is not gives Inconclusive with a sentence. A run without a verdict on its
// figures is compared with nothing.
func Compare(now, earlier Measurement, what []What, percent int32) Outcome {
	if !judged(now.Verdict) {
		return Outcome{Verdict: v1alpha1.VerdictInconclusive}
	}
	if problem := unlike(now, earlier, what); problem != "" {
		return Outcome{Verdict: v1alpha1.VerdictInconclusive, Message: "The baseline cannot be compared: " + problem + "."}
	}
	out := Outcome{}
	margin := float64(percent) / 100
	var regressed, undecided, fine []string
	for _, w := range what {
		ratio, err := statistics.UnpairedRatio(now.figures(w), earlier.figures(w))
		if err != nil {
			// Unreachable: unlike has seen that each has two, and figures takes positive ones only.
			panic(err)
		}
		r := v1alpha1.BaselineResult{
			Scenario: w.Scenario, Endpoint: w.Endpoint, Percentile: w.Percentile,
			RatioPermille: permille(ratio.Value), CILowPermille: permille(ratio.Low), CIHighPermille: permille(ratio.High),
			SmallestEffectPermille: permille(ratio.SmallestEffect),
			Repeats:                int32(len(now.figures(w))), BaselineRepeats: int32(len(earlier.figures(w))),
			Verdict: v1alpha1.BaselineInconclusive,
		}
		figure := fmt.Sprintf("%s/%s p%d is %s of %s's", w.Scenario, w.Endpoint, w.Percentile, Words(r), earlier.Name)
		switch ratio.NotWorse(margin) {
		case statistics.Larger:
			r.Verdict = v1alpha1.BaselineRegressed
			regressed = append(regressed, figure)
		case statistics.Same:
			r.Verdict = v1alpha1.BaselineNotWorse
			fine = append(fine, figure)
		default:
			r.RepeatsToSettle = int32(ratio.RepeatsToSettle(margin))
			undecided = append(undecided, figure+"; "+SettleWords(r))
		}
		out.Results = append(out.Results, r)
	}
	switch {
	case len(regressed) > 0:
		out.Verdict = v1alpha1.VerdictFailed
		out.Message = fmt.Sprintf("Regressed by more than %d %%: %s.", percent, strings.Join(regressed, "; "))
	case len(undecided) > 0:
		out.Verdict = v1alpha1.VerdictInconclusive
		out.Message = fmt.Sprintf("Whether it is slower by more than %d %% is not settled: %s.", percent, strings.Join(undecided, "; "))
	default:
		out.Verdict = v1alpha1.VerdictPassed
		out.Message = fmt.Sprintf("Not slower by more than %d %%, with 95 %% confidence: %s.", percent, strings.Join(fine, "; "))
	}
	return out
}

// Join is the verdict and the message of a measurement together with those of its comparison: the worse
// verdict holds. A run that proves nothing, or has no result, is compared with nothing.
func (o Outcome) Join(verdict v1alpha1.Verdict, message string) (v1alpha1.Verdict, string) {
	switch {
	case !judged(verdict):
		return verdict, message
	case verdict == v1alpha1.VerdictPassed:
		verdict = o.Verdict
	}
	return verdict, strings.TrimSpace(o.Message + " " + message)
}

// judged is whether a verdict says that the figures can be trusted.
func judged(v v1alpha1.Verdict) bool {
	return v == v1alpha1.VerdictPassed || v == v1alpha1.VerdictFailed
}

// unlike says why two measurements cannot be compared, or nothing.
func unlike(now, earlier Measurement, what []What) string {
	switch {
	case len(what) == 0:
		return "nothing was measured that could be compared"
	case !judged(earlier.Verdict):
		return fmt.Sprintf("%s has the verdict %s, so its figures prove nothing; take a baseline that Passed", earlier.Name, orNone(earlier.Verdict))
	case now.IdentityProvider != earlier.IdentityProvider:
		return fmt.Sprintf("%s measured %s and this test %s", earlier.Name, orNone(earlier.IdentityProvider), orNone(now.IdentityProvider))
	case now.Double != earlier.Double:
		return fmt.Sprintf("%s measured %s and this test %s", earlier.Name, product(earlier), product(now))
	case len(earlier.Repeats) == 0:
		return earlier.Name + " keeps no figures of single repeats; measure it again with this version, with several repeats"
	case now.K6Version != earlier.K6Version:
		return fmt.Sprintf("%s was measured by k6 %s and this test by k6 %s; measure the baseline again", earlier.Name, orNone(earlier.K6Version), orNone(now.K6Version))
	}
	for _, w := range what {
		one, _ := now.size(string(w.Scenario))
		other, found := earlier.size(string(w.Scenario))
		name := fmt.Sprintf("%s/%s", w.Scenario, w.Endpoint)
		switch a, b := len(now.figures(w)), len(earlier.figures(w)); {
		case !found:
			return fmt.Sprintf("%s did not run the scenario %s", earlier.Name, w.Scenario)
		case !one.equal(other):
			return fmt.Sprintf("%s of %s had %s, and of this test %s; give both the same size", w.Scenario, earlier.Name, other.words(), one.words())
		case a < 2:
			return fmt.Sprintf("this test measured %s in %s, and an interval needs at least two repeats; write repeats: %d", name, repeats(a), latency.BaselineRepeats)
		case b < 2:
			return fmt.Sprintf("%s measured %s in %s, and an interval needs at least two repeats; measure it again with repeats: %d", earlier.Name, name, repeats(b), latency.BaselineRepeats)
		}
	}
	return ""
}

func repeats(n int) string {
	if n == 1 {
		return "one repeat"
	}
	return "no repeat"
}

func product(m Measurement) string {
	if m.Double {
		return "a double of " + m.IdentityProvider
	}
	return m.IdentityProvider + " itself"
}

func orNone[T ~string](text T) string {
	if text == "" {
		return "none"
	}
	return string(text)
}

// Words is a ratio with its interval, for example 1.08 (1.02–1.15).
func Words(r v1alpha1.BaselineResult) string {
	return fmt.Sprintf("%.2f (%.2f–%.2f)", float64(r.RatioPermille)/1000, float64(r.CILowPermille)/1000, float64(r.CIHighPermille)/1000)
}

// SettleWords say what would settle an inconclusive result.
func SettleWords(r v1alpha1.BaselineResult) string {
	if r.RepeatsToSettle == 0 {
		return "it is so near to the limit that a thousand repeats would not settle it"
	}
	return fmt.Sprintf("%d repeats of each of the two would settle it", r.RepeatsToSettle)
}

// permille is a ratio in thousandths. Two repeats can give an interval that no number holds.
func permille(ratio float64) int64 {
	return int64(math.Round(math.Min(ratio*1000, 1e12)))
}

package comparison

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/internal/statistics"
)

// percentiles that are compared, in thousandths.
var percentiles = []int{500, 950}

// figure names what is compared.
type figure struct {
	scenario v1alpha1.ScenarioName
	endpoint string
	perMille int
}

// Measured is what was measured of a variant.
type Measured struct {
	variant Variant
	// rounds are the figures in microseconds, by round.
	rounds map[int32]map[figure]float64
	// Run is all rounds merged; nil before the first.
	Run *result.Run
}

// NewMeasured is a variant of which nothing was measured yet.
func NewMeasured(variant Variant) *Measured {
	return &Measured{variant: variant, rounds: map[int32]map[figure]float64{}}
}

// Add what was measured in a round.
func (m *Measured) Add(round int32, run *result.Run) {
	figures := map[figure]float64{}
	for _, what := range m.compared() {
		if s := run.Find(string(what.scenario), what.endpoint); s != nil && s.Total.Count() > 0 {
			figures[what] = float64(s.Total.PerMille(what.perMille))
		}
	}
	m.rounds[round] = figures
	m.Run = result.Merge(m.Run, run)
}

// Rounds that were measured.
func (m *Measured) Rounds() int32 { return int32(len(m.rounds)) }

// Scenarios are the figures over all rounds.
func (m *Measured) Scenarios() []v1alpha1.ScenarioResult {
	if m.Run == nil {
		return nil
	}
	return latency.Figures(m.variant.Measurement, m.Run)
}

// Drop the histograms, which are large, once nobody needs them any more.
func (m *Measured) Drop() { m.Run = nil }

// compared are the figures that are compared, in order.
func (m *Measured) compared() []figure {
	var list []figure
	plan := m.variant.Measurement
	for _, s := range plan.Scenarios {
		for _, endpoint := range latency.Wholes(plan.Provider, s.Name) {
			for _, perMille := range percentiles {
				list = append(list, figure{s.Name, endpoint, perMille})
			}
		}
	}
	return list
}

// Outcome is what the measurements show.
type Outcome struct {
	Verdict v1alpha1.Verdict
	// Message says why, for people.
	Message string
	Pairs   []v1alpha1.PairResult
}

// Judge compares each variant with every one before it. A pair has the rounds in which both were
// measured; fewer than two say nothing.
func (p *Plan) Judge(measured []*Measured) Outcome {
	out := Outcome{Verdict: v1alpha1.VerdictPassed}
	var thin []string
	for _, m := range measured {
		if m.Rounds() < max(2, p.Rounds/2) {
			thin = append(thin, fmt.Sprintf("%s was measured in %d of %d rounds", m.variant.Name, m.Rounds(), p.Rounds))
		}
	}
	for j := 1; j < len(measured); j++ {
		for i := range j {
			for _, what := range measured[j].compared() {
				out.Pairs = append(out.Pairs, p.pair(measured[j], measured[i], what))
			}
		}
	}
	if len(thin) > 0 {
		out.Verdict = v1alpha1.VerdictInconclusive
		out.Message = "Guards voided too many measurements: " + strings.Join(thin, "; ") + "."
		return out
	}
	out.Message = summary(out.Pairs, p.Variants[0].Name)
	return out
}

func (p *Plan) pair(variant, against *Measured, what figure) v1alpha1.PairResult {
	pair := v1alpha1.PairResult{
		Variant: variant.variant.Name, Against: against.variant.Name, Scenario: what.scenario, Endpoint: what.endpoint,
		Percentile: int32(what.perMille / 10), Verdict: v1alpha1.PairInconclusive,
	}
	var one, other []float64
	for round := int32(1); round <= p.Rounds; round++ {
		a, measuredA := variant.rounds[round][what]
		b, measuredB := against.rounds[round][what]
		if measuredA && measuredB && a > 0 && b > 0 {
			one, other = append(one, a), append(other, b)
		}
	}
	pair.Rounds = int32(len(one))
	ratio, err := statistics.PairedRatio(one, other)
	if err != nil {
		if !errors.Is(err, statistics.ErrTooFew) {
			// Unreachable: both have as many figures, and all are positive.
			panic(err)
		}
		return pair
	}
	pair.RatioPermille, pair.SmallestEffectPermille = permille(ratio.Value), permille(ratio.SmallestEffect)
	pair.CILowPermille, pair.CIHighPermille = permille(ratio.Low), permille(ratio.High)
	switch ratio.Judge(p.Margin) {
	case statistics.Same:
		pair.Verdict = v1alpha1.PairNoDifference
	case statistics.Smaller:
		pair.Verdict = v1alpha1.PairFaster
	case statistics.Larger:
		pair.Verdict = v1alpha1.PairSlower
	}
	return pair
}

// permille is a ratio in thousandths. Two rounds can give an interval that no number holds.
func permille(ratio float64) int64 {
	return int64(math.Round(math.Min(ratio*1000, 1e12)))
}

// summary is the median of each whole of each variant against the first.
func summary(pairs []v1alpha1.PairResult, first string) string {
	var parts []string
	for _, pair := range pairs {
		if pair.Percentile == 50 && pair.Against == first {
			parts = append(parts, fmt.Sprintf("%s %s p50 is %s of %s (%s)", pair.Variant, pair.Endpoint, Words(pair), pair.Against, pair.Verdict))
		}
	}
	return strings.Join(slices.Compact(parts), "; ") + "."
}

// Words is a ratio with its interval, for example 0.71 (0.66–0.77).
func Words(pair v1alpha1.PairResult) string {
	if pair.RatioPermille == 0 {
		return "not known"
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", float64(pair.RatioPermille)/1000, float64(pair.CILowPermille)/1000, float64(pair.CIHighPermille)/1000)
}

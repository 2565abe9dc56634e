package latency

import (
	"math"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/internal/statistics"
)

// enoughRepeats for an interval over them: over two it is twelve deviations wide and says nothing.
const enoughRepeats = 3

// interval puts the 95 % confidence interval of an objective's percentile beside it. Over the repeats where
// there are enough: what differs from one to the next is then in it too. Else over the requests, by order
// statistics; where these are too few for any, the guard samples voids the run.
func interval(o *v1alpha1.ObjectiveResult, runs []*result.Run, merged *result.Series) {
	perMille := int(o.Percentile) * 10
	var figures []float64
	for _, run := range runs {
		if run == nil {
			continue
		}
		if s := run.Find(string(o.Scenario), o.Endpoint); s != nil && s.Total.PerMille(perMille) > 0 {
			figures = append(figures, float64(s.Total.PerMille(perMille)))
		}
	}
	if len(figures) >= enoughRepeats {
		if low, high, err := statistics.MeanInterval(figures); err == nil {
			o.CILowMicros, o.CIHighMicros = int64(math.Round(low)), int64(math.Round(math.Min(high, float64(result.MaxMicros))))
			o.CISample = v1alpha1.SampleRepeats
		}
		return
	}
	if low, high, ok := statistics.RankInterval(merged.Total.Count(), perMille); ok {
		o.CILowMicros, o.CIHighMicros = merged.Total.Rank(low), merged.Total.Rank(high)
		o.CISample = v1alpha1.SampleRequests
	}
}

package report

import (
	"math"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// Plot is the distribution of one endpoint.
type Plot struct {
	Scenario string `json:"scenario"`
	Endpoint string `json:"endpoint"`
	Count    int64  `json:"count"`
	// Bins share the range from the shortest to the longest duration in equal ratios; empty ones too.
	Bins []Bin `json:"bins"`
	// Spectrum is the duration at each percentile, as far as there are samples for it.
	Spectrum []Point `json:"spectrum"`
}

// Bin counts the durations from FromMicros up to ToMicros.
type Bin struct {
	FromMicros int64 `json:"fromMicros"`
	ToMicros   int64 `json:"toMicros"`
	Count      int64 `json:"count"`
}

// Point is a percentile in thousandths and its duration.
type Point struct {
	PerMille int   `json:"perMille"`
	Micros   int64 `json:"micros"`
}

// plots of the wholes, and of the first endpoint of a scenario that has none.
func plots(scenarios []v1alpha1.ScenarioResult, run *result.Run) []Plot {
	var list []Plot
	for _, scenario := range scenarios {
		for i, e := range scenario.Endpoints {
			s := run.Find(string(scenario.Name), e.Name)
			if s == nil || s.Total.Count() == 0 || (!s.Whole && i > 0) {
				continue
			}
			list = append(list, Plot{
				Scenario: string(scenario.Name), Endpoint: e.Name, Count: s.Total.Count(),
				Bins: bins(s.Total), Spectrum: spectrum(s.Total),
			})
		}
	}
	return list
}

// maxBins of a distribution; few samples get fewer, so that its shape can be seen.
const maxBins = 48

func bins(h *result.Histogram) []Bin {
	// A little room at both ends keeps rounding from putting the extremes outside.
	low, high := float64(max(h.Min(), 1))*0.998, float64(max(h.Max(), 1))*1.002
	n := int(min(maxBins, max(12, math.Sqrt(float64(h.Count()))*2)))
	step := math.Log(high/low) / float64(n)
	edge := func(i int) int64 { return int64(math.Round(low * math.Exp(step*float64(i)))) }
	list := make([]Bin, n)
	for i := range list {
		list[i] = Bin{FromMicros: edge(i), ToMicros: edge(i + 1)}
	}
	for _, bar := range h.Bars() {
		middle := math.Max(1, float64(bar.From+bar.To)/2)
		i := int(math.Log(middle/low) / step)
		list[min(max(i, 0), n-1)].Count += bar.Count
	}
	return list
}

// spectrum stops at the percentile above which there is a single sample, and ends with the maximum.
func spectrum(h *result.Histogram) []Point {
	var list []Point
	for perMille := 0; perMille < 1000; {
		if int64(1000-perMille)*h.Count() < 1000 {
			break
		}
		list = append(list, Point{PerMille: perMille, Micros: h.PerMille(perMille)})
		switch {
		case perMille < 900:
			perMille += 25
		case perMille < 990:
			perMille += 5
		default:
			perMille++
		}
	}
	return append(list, Point{PerMille: 1000, Micros: h.Max()})
}

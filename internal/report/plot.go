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
	// Timeline is how it went over the run, from its start, warm-up included; absent where a generator of
	// an earlier release kept none.
	Timeline []Moment `json:"timeline,omitempty"`
}

// Moment is one interval of a timeline. Its percentiles are at most 3.2 % above the true ones.
type Moment struct {
	FromSeconds int64 `json:"fromSeconds"`
	Seconds     int64 `json:"seconds"`
	// Count of the answers as expected, Failed of the others.
	Count     int64 `json:"count"`
	Failed    int64 `json:"failed"`
	P50Micros int64 `json:"p50Micros"`
	P95Micros int64 `json:"p95Micros"`
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

// maxOwnPlots is how many of a script's own times are drawn: each takes its part of a ConfigMap, and Pods and repeats of one
// script may have met more of them together than one of them keeps.
const maxOwnPlots = 16

// plots of the wholes, of a script's own times, and of the first endpoint of a scenario that has no whole.
func plots(scenarios []v1alpha1.ScenarioResult, run *result.Run) []Plot {
	var list []Plot
	own := 0
	for _, scenario := range scenarios {
		for i, e := range scenario.Endpoints {
			s := run.Find(string(scenario.Name), e.Name)
			if s == nil || s.Total.Count() == 0 || (s.OfRequests() && i > 0) {
				continue
			}
			if s.Own {
				if own++; own > maxOwnPlots {
					continue
				}
			}
			list = append(list, Plot{
				Scenario: string(scenario.Name), Endpoint: e.Name, Count: s.Total.Count(),
				Bins: bins(s.Total), Spectrum: spectrum(s.Total), Timeline: moments(s.Timeline),
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

// maxMoments of a timeline; a longer one has several intervals in each.
const maxMoments = 60

func moments(t *result.Timeline) []Moment {
	if t == nil || len(t.Intervals) == 0 {
		return nil
	}
	// The intervals that hold something stand in order and may have gaps between them.
	span := t.Intervals[len(t.Intervals)-1].At + 1
	per := (span + maxMoments - 1) / maxMoments
	var list []Moment
	for from := 0; from < len(t.Intervals); {
		slot := t.Intervals[from].At / per
		to, m := from, Moment{FromSeconds: slot * per * t.IntervalSeconds, Seconds: per * t.IntervalSeconds}
		for ; to < len(t.Intervals) && t.Intervals[to].At/per == slot; to++ {
			m.Count, m.Failed = m.Count+t.Intervals[to].Count(), m.Failed+t.Intervals[to].Failed
		}
		m.P50Micros, m.P95Micros = t.PerMille(from, to, 500), t.PerMille(from, to, 950)
		list, from = append(list, m), to
	}
	return list
}

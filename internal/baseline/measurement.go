// Package baseline compares a measurement with an earlier one: whether it is slower by more than a
// margin. It is pure.
package baseline

import (
	"fmt"
	"slices"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/result"
)

// maxFigures bounds what is kept of one repeat; with 20 repeats a report stays below 300 KiB.
const maxFigures = 64

// percentiles that are kept of each repeat.
var percentiles = latency.BaselinePercentiles

// Measurement is what one measurement has to tell another.
type Measurement struct {
	// Name of the LatencyTest, for sentences.
	Name string
	// Verdict that it has got by its guards and objectives.
	Verdict v1alpha1.Verdict
	// K6Version, IdentityProvider and Double have to be the same in both.
	K6Version, IdentityProvider string
	Double                      bool
	Sizes                       []Size
	Repeats                     []Repeat
}

// Size is what a scenario was asked to do; two figures are comparable only with equal sizes. Its JSON form
// is part of the report's.
type Size struct {
	Scenario         string `json:"name"`
	Iterations       int32  `json:"iterations,omitempty"`
	WarmUpIterations int32  `json:"warmUpIterations"`
	VirtualUsers     int32  `json:"virtualUsers"`
	// Duration in Go's notation, in place of iterations.
	Duration      string `json:"duration,omitempty"`
	RatePerMinute int32  `json:"ratePerMinute,omitempty"`
	// RateStepsPerMinute of a rate that rises.
	RateStepsPerMinute []int32                 `json:"rateStepsPerMinute,omitempty"`
	Connections        v1alpha1.ConnectionMode `json:"connections"`
	// Script is the digest of the user's own script; of the scenario Script only.
	Script string `json:"script,omitempty"`
	// Pods of the generator that share it.
	Pods int32 `json:"pods"`
}

// Repeat are the figures of one repeat. Its JSON form is part of the report's.
type Repeat struct {
	// Figures of each endpoint, the whole of a scenario first.
	Figures []Figures `json:"scenarios"`
}

// Figures of one endpoint in one repeat; percentiles in microseconds over the requests that answered as
// expected, of which there are Count.
type Figures struct {
	Scenario  string `json:"name"`
	Endpoint  string `json:"endpoint"`
	Count     int64  `json:"count"`
	P50Micros int64  `json:"p50Micros"`
	P90Micros int64  `json:"p90Micros"`
	P95Micros int64  `json:"p95Micros"`
	P99Micros int64  `json:"p99Micros"`
}

// at is a percentile of them, 0 for one that is not kept.
func (f Figures) at(percentile int32) int64 {
	switch percentile {
	case 50:
		return f.P50Micros
	case 90:
		return f.P90Micros
	case 95:
		return f.P95Micros
	case 99:
		return f.P99Micros
	}
	return 0
}

// RepeatsOf are the figures of each run, one a repeat; nil ones are left out.
func RepeatsOf(plan *latency.Plan, runs []*result.Run) []Repeat {
	var repeats []Repeat
	for _, run := range result.Apart(runs) {
		if run == nil {
			continue
		}
		repeat := Repeat{Figures: []Figures{}}
		for _, scenario := range latency.Figures(plan, run) {
			for _, e := range scenario.Endpoints {
				if len(repeat.Figures) == maxFigures || e.Requests == e.Failed {
					continue
				}
				repeat.Figures = append(repeat.Figures, Figures{
					Scenario: string(scenario.Name), Endpoint: e.Name, Count: e.Requests - e.Failed,
					P50Micros: e.P50Micros, P90Micros: e.P90Micros, P95Micros: e.P95Micros, P99Micros: e.P99Micros,
				})
			}
		}
		repeats = append(repeats, repeat)
	}
	return repeats
}

// SizesOf are the sizes of a plan's scenarios.
func SizesOf(plan *latency.Plan) []Size {
	sizes := make([]Size, 0, len(plan.Scenarios))
	for _, s := range plan.Scenarios {
		size := Size{Scenario: string(s.Name), Iterations: value(s.Iterations), WarmUpIterations: value(s.WarmUpIterations),
			VirtualUsers: value(s.VirtualUsers), RatePerMinute: value(s.RatePerMinute), RateStepsPerMinute: s.RateStepsPerMinute,
			Connections: s.Connections, Pods: plan.Pods}
		if s.Duration != nil {
			size.Duration = s.Duration.Duration.String()
		}
		if s.Name == v1alpha1.ScenarioScript {
			size.Script = plan.ScriptDigest
		}
		sizes = append(sizes, size)
	}
	return sizes
}

func value(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

// words of a size, for a sentence.
func (s Size) words() string {
	var parts []string
	if s.Iterations > 0 {
		parts = append(parts, fmt.Sprintf("%d iterations", s.Iterations))
	}
	if s.Duration != "" {
		parts = append(parts, s.Duration)
	}
	parts = append(parts, fmt.Sprintf("%d of warm-up", s.WarmUpIterations), fmt.Sprintf("%d virtual users", s.VirtualUsers))
	if s.RatePerMinute > 0 {
		parts = append(parts, fmt.Sprintf("%d a minute", s.RatePerMinute))
	}
	if len(s.RateStepsPerMinute) > 0 {
		parts = append(parts, fmt.Sprintf("steps of %s a minute", strings.Trim(fmt.Sprint(s.RateStepsPerMinute), "[]")))
	}
	parts = append(parts, fmt.Sprintf("connections %s", s.Connections))
	if s.Script != "" {
		parts = append(parts, "script "+s.Script)
	}
	if s.Pods > 1 {
		parts = append(parts, fmt.Sprintf("%d Pods", s.Pods))
	}
	return strings.Join(parts, ", ")
}

func (s Size) equal(other Size) bool {
	return slices.Equal(s.RateStepsPerMinute, other.RateStepsPerMinute) && s.words() == other.words()
}

func (m Measurement) size(scenario string) (Size, bool) {
	for _, s := range m.Sizes {
		if s.Scenario == scenario {
			return s, true
		}
	}
	return Size{}, false
}

// figures of a percentile, one for each repeat that has it.
func (m Measurement) figures(what What) []float64 {
	var list []float64
	for _, repeat := range m.Repeats {
		for _, f := range repeat.Figures {
			if v := f.at(what.Percentile); f.Scenario == string(what.Scenario) && f.Endpoint == what.Endpoint && v > 0 {
				list = append(list, float64(v))
			}
		}
	}
	return list
}

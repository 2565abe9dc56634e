package result

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// MaxMetrics is how many metrics of the user's own a scenario keeps; values of further ones are only counted.
const MaxMetrics = 32

// MaxMetricName is about the longest name that k6 takes for a metric, in bytes.
const MaxMetricName = 128

// MetricType is the type of a metric in k6.
type MetricType string

// The types of metrics.
const (
	MetricTrend   MetricType = "Trend"
	MetricCounter MetricType = "Counter"
	MetricRate    MetricType = "Rate"
	MetricGauge   MetricType = "Gauge"
)

const (
	// maxMilli bounds a value of a Counter or a Gauge in thousandths: a float64 still holds each of them.
	maxMilli int64 = 1_000_000_000_000_000
	// maxSumMilli bounds the sum of a Counter, far from where an int64 ends.
	maxSumMilli int64 = 1_000_000_000_000_000_000
)

// Metric is one that a user's own script made with k6/metrics, over the measured part. A Trend of times is
// a Series instead. Values are in thousandths, each rounded to the nearest.
type Metric struct {
	Name string     `json:"name"`
	Type MetricType `json:"type"`
	// Count is the number of values.
	Count int64 `json:"count"`
	// LeftOut is how many of them are in no other figure: those of a Trend that are negative or above
	// 3,600,000, which its histogram does not hold; those of a Counter or a Gauge that are further than 10^12 from 0.
	LeftOut int64 `json:"leftOut,omitempty"`
	// Values of a Trend. What a Histogram calls microseconds are thousandths here.
	Values *Histogram `json:"values,omitempty"`
	// SumMilli is the sum of a Counter.
	SumMilli int64 `json:"sumMilli,omitempty"`
	// True is how many values of a Rate were not 0.
	True int64 `json:"true,omitempty"`
	// MinMilli and MaxMilli are the extremes of a Gauge; its last value would be that of whoever came last.
	MinMilli int64 `json:"minMilli,omitempty"`
	MaxMilli int64 `json:"maxMilli,omitempty"`
}

// Record adds a value.
func (m *Metric) Record(value float64) {
	if m.Type == MetricRate {
		m.Count++
		if value != 0 {
			m.True++
		}
		return
	}
	low, high := -maxMilli, maxMilli
	if m.Type == MetricTrend {
		low, high = 0, MaxMicros
	}
	scaled := math.Round(value * 1000)
	// So written that what is not a number is left out too.
	if !(scaled >= float64(low) && scaled <= float64(high)) {
		m.Count, m.LeftOut = m.Count+1, m.LeftOut+1
		return
	}
	one := Metric{Count: 1}
	switch milli := int64(scaled); m.Type {
	case MetricTrend:
		if m.Values == nil {
			m.Values = NewHistogram()
		}
		m.Values.Record(milli)
	case MetricCounter:
		one.SumMilli = milli
	default:
		one.MinMilli, one.MaxMilli = milli, milli
	}
	m.Merge(&one)
}

// Merge adds all that other, a metric of the same name and type, counted.
func (m *Metric) Merge(other *Metric) {
	if other.held() > 0 {
		if m.held() == 0 {
			m.MinMilli, m.MaxMilli = other.MinMilli, other.MaxMilli
		}
		m.MinMilli, m.MaxMilli = min(m.MinMilli, other.MinMilli), max(m.MaxMilli, other.MaxMilli)
	}
	m.Count, m.LeftOut, m.True = m.Count+other.Count, m.LeftOut+other.LeftOut, m.True+other.True
	// Two sums within their bound do not overflow.
	m.SumMilli = min(max(m.SumMilli+other.SumMilli, -maxSumMilli), maxSumMilli)
	if other.Values.Count() > 0 {
		if m.Values == nil {
			m.Values = NewHistogram()
		}
		m.Values.Merge(other.Values)
	}
}

// held is the number of values that the figures hold.
func (m *Metric) held() int64 { return m.Count - m.LeftOut }

func (m *Metric) validate() error {
	broken := func(what string) error { return fmt.Errorf("%w: the metric %.64s %s", ErrCorrupt, m.Name, what) }
	switch {
	case !slices.Contains([]MetricType{MetricTrend, MetricCounter, MetricRate, MetricGauge}, m.Type):
		return broken(fmt.Sprintf("is a %.32q", m.Type))
	case len(m.Name) > MaxMetricName:
		return broken("has a name that k6 does not take")
	case m.Count < 0 || m.LeftOut < 0 || m.LeftOut > m.Count:
		return broken(fmt.Sprintf("has %d values and leaves out %d", m.Count, m.LeftOut))
	case m.Type == MetricTrend && m.Values.Count() != m.held(), m.Type != MetricTrend && m.Values != nil:
		return broken(fmt.Sprintf("has %d values of a %s and %d in its histogram", m.held(), m.Type, m.Values.Count()))
	case m.True < 0 || m.True > m.held() || m.Type != MetricRate && m.True != 0:
		return broken(fmt.Sprintf("has %d values of which %d are true", m.held(), m.True))
	case m.SumMilli < -maxSumMilli || m.SumMilli > maxSumMilli:
		return broken(fmt.Sprintf("has the sum %d", m.SumMilli))
	case m.MinMilli < -maxMilli || m.MinMilli > m.MaxMilli || m.MaxMilli > maxMilli:
		return broken(fmt.Sprintf("has extremes %d and %d", m.MinMilli, m.MaxMilli))
	}
	return nil
}

// Metric finds or adds one of the scenario's; nil where there are MaxMetrics others.
func (s *Scenario) Metric(name string, of MetricType) *Metric {
	i := slices.IndexFunc(s.Metrics, func(m Metric) bool { return m.Name == name && m.Type == of })
	switch {
	case i >= 0:
		return &s.Metrics[i]
	case len(s.Metrics) >= MaxMetrics:
		return nil
	}
	s.Metrics = append(s.Metrics, Metric{Name: name, Type: of})
	return &s.Metrics[len(s.Metrics)-1]
}

// addMetrics adds those of another run of the scenario.
func (s *Scenario) addMetrics(other *Scenario) {
	s.MetricValuesLeftOut += other.MetricValuesLeftOut
	for i := range other.Metrics {
		from := &other.Metrics[i]
		if to := s.Metric(from.Name, from.Type); to != nil {
			to.Merge(from)
		} else {
			s.MetricValuesLeftOut += from.Count
		}
	}
}

// TrendMark ends the name of a Trend of times that has the name of an endpoint. No metric of k6 can be named so.
const TrendMark = " (Trend)"

// Apart returns the runs with each Trend of times named as it must be beside the endpoints of all of them:
// with TrendMark where any of the runs has an endpoint of its name, without it elsewhere. The runs
// themselves are left as they were.
func Apart(runs []*Run) []*Run {
	endpoints, own := map[[2]string]bool{}, false
	for _, run := range runs {
		for i := range seriesOf(run) {
			if s := &run.Series[i]; s.Own {
				own = true
			} else {
				endpoints[[2]string{s.Scenario, s.Endpoint}] = true
			}
		}
	}
	if !own {
		return runs
	}
	runs = slices.Clone(runs)
	for n, run := range runs {
		if run == nil {
			continue
		}
		named := *run
		named.Series = slices.Clone(run.Series)
		for i := range named.Series {
			s := &named.Series[i]
			if !s.Own {
				continue
			}
			s.Endpoint = strings.TrimSuffix(s.Endpoint, TrendMark)
			if endpoints[[2]string{s.Scenario, s.Endpoint}] {
				s.Endpoint += TrendMark
			}
		}
		runs[n] = &named
	}
	return runs
}

func seriesOf(run *Run) []Series {
	if run == nil {
		return nil
	}
	return run.Series
}

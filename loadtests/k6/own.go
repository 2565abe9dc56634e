// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"math"
	"strings"
	"time"

	"go.k6.io/k6/v2/metrics"

	"authstack.dev/authstack/internal/result"
)

// maxTrends is how many Trends of times become endpoints; they count among maxSeries, and the rest is
// always there for requests.
const maxTrends = 16

// maxTrendName is the longest name of such an endpoint, so that result.TrendMark fits behind it.
const maxTrendName = 63 - len(result.TrendMark)

// builtin are the names of k6's own metrics.
var builtin = func() map[string]bool {
	names, registry := map[string]bool{}, metrics.NewRegistry()
	metrics.RegisterBuiltinMetrics(registry)
	for _, metric := range registry.All() {
		names[metric.Name] = true
	}
	return names
}()

var metricTypes = map[metrics.MetricType]result.MetricType{
	metrics.Trend: result.MetricTrend, metrics.Counter: result.MetricCounter, metrics.Rate: result.MetricRate, metrics.Gauge: result.MetricGauge,
}

// addOwn counts a value of a metric that a user's own script made; k6's own are passed over. The tags of
// the value are not kept.
func (a *aggregate) addOwn(sample metrics.Sample) {
	name := sample.Metric.Name
	if builtin[name] || strings.HasPrefix(name, "authstack_") {
		return
	}
	name = a.secrets.hide(name)
	if sample.Metric.Type == metrics.Trend && sample.Metric.Contains == metrics.Time {
		a.addTime(sample, clip(name, maxTrendName))
		return
	}
	if isWarmUp(sample) {
		return
	}
	s := a.scenario(sample)
	if m := s.Metric(clip(name, result.MaxMetricName), metricTypes[sample.Metric.Type]); m != nil {
		m.Record(sample.Value)
	} else {
		s.MetricValuesLeftOut++
	}
}

// addTime counts a value of a Trend of times as the answer of an endpoint.
func (a *aggregate) addTime(sample metrics.Sample, name string) {
	key := seriesKey{scenario: a.scenarioName(tag(sample, "scenario")), endpoint: name, own: true}
	s := a.series[key]
	if s == nil {
		if a.trends == maxTrends || len(a.series) >= maxSeries {
			if !isWarmUp(sample) {
				a.scenario(sample).MetricValuesLeftOut++
			}
			return
		}
		s = &result.Series{Scenario: key.scenario, Endpoint: name, Own: true}
		a.series[key] = s
		a.trends++
	}
	// A histogram holds nothing else; a conversion of more to an integer would be anything.
	milliseconds := math.Min(math.Max(sample.Value, 0), float64(time.Hour/time.Millisecond))
	a.count(s, isWarmUp(sample), sample.Time, micros(milliseconds), "ok", "")
}

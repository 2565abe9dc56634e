// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.k6.io/k6/v2/metrics"

	"authstack.dev/authstack/internal/result"
)

// Bounds of what a script can make the process hold. A histogram takes about 200 kB, a series up to six.
const (
	maxSeries    = 32
	maxScenarios = 16
	maxChecks    = 64
)

// maxTimelines is how many intervals the timelines of a result have together, however many endpoints
// a script has: they would be most of the result's length.
const maxTimelines = 2400

// overflow is the endpoint that samples beyond maxSeries are counted under.
const overflow = "other"

// aggregate is the samples of a run so far, in memory that does not grow with their number.
type aggregate struct {
	start     time.Time
	series    map[seriesKey]*result.Series
	scenarios map[string]*result.Scenario
	// secrets never stand in a result, whatever a script tags its samples with.
	secrets secrets
	// trends is how many of the series are Trends of a user's own script.
	trends int
}

type seriesKey struct {
	scenario, endpoint string
	// own is a Trend of times: a request may have its name.
	own bool
}

func newAggregate(start time.Time, known secrets) *aggregate {
	return &aggregate{start: start, series: map[seriesKey]*result.Series{}, scenarios: map[string]*result.Scenario{}, secrets: known}
}

// add sorts in one sample: of the metrics of loadtests/scenarios/lib/record.js, of k6's dropped_iterations
// and checks, or of a metric of the user's own.
func (a *aggregate) add(sample metrics.Sample) {
	if tag(sample, "scenario") == "" {
		// setup() and teardown() of a user's script belong to no scenario.
		return
	}
	switch name := sample.Metric.Name; name {
	case "authstack_request", "authstack_whole":
		a.addRequest(sample, name == "authstack_whole")
	case "authstack_dns", "authstack_connect", "authstack_tls", "authstack_send", "authstack_wait", "authstack_receive":
		a.addPart(sample)
	case "authstack_intended":
		if !isWarmUp(sample) {
			record(&a.seriesOf(sample).Intended, micros(sample.Value))
		}
	case "authstack_bytes":
		if !isWarmUp(sample) {
			a.seriesOf(sample).Bytes += int64(sample.Value)
		}
	case "authstack_iterations":
		if s := a.scenario(sample); isWarmUp(sample) {
			s.WarmUpIterations += int64(sample.Value)
		} else {
			s.Iterations += int64(sample.Value)
		}
	case metrics.DroppedIterationsName:
		a.scenario(sample).DroppedIterations += int64(sample.Value)
	case metrics.ChecksName:
		a.addCheck(sample)
	default:
		a.addOwn(sample)
	}
}

func (a *aggregate) addRequest(sample metrics.Sample, whole bool) {
	s := a.seriesOf(sample)
	outcome := tag(sample, "outcome")
	// An authorization of authentik is one request or several, by its version; one that failed may have got no further than the
	// login, and does not say which.
	if first := s.Requests+s.WarmUpRequests == 0; first || outcome == "ok" || !whole {
		s.Whole = whole
	}
	a.count(s, isWarmUp(sample), sample.Time, micros(sample.Value), outcome, tag(sample, "failure"))
	countStatus(s, isWarmUp(sample), tag(sample, "status"))
}

// count a request that ended at a time with an outcome: ok, wrong or none.
func (a *aggregate) count(s *result.Series, warmUp bool, ended time.Time, duration int64, outcome, failure string) {
	if outcome != "ok" {
		s.AddFailure(clip(a.secrets.hide(failure), 80), 1)
	}
	if warmUp {
		s.WarmUpRequests++
		if outcome != "ok" {
			s.WarmUpFailed++
		}
		return
	}
	s.Requests++
	end := ended.Sub(a.start).Microseconds()
	if s.Requests == 1 || end-duration < s.FirstMicros {
		s.FirstMicros = max(0, end-duration)
	}
	s.LastMicros = max(s.LastMicros, end)
	if s.Timeline == nil {
		s.Timeline = result.NewTimeline()
	}
	s.Timeline.Record(end, duration, outcome != "ok")
	switch outcome {
	case "ok":
		record(&s.Total, duration)
	case "none":
		s.Unanswered++
	default:
		s.Wrong++
	}
}

// countStatus of an answer; a request without one has "0" or nothing.
func countStatus(s *result.Series, warmUp bool, status string) {
	if code, err := strconv.Atoi(status); err == nil && code > 0 && !warmUp {
		s.AddStatus(code, 1)
	}
}

func (a *aggregate) addPart(sample metrics.Sample) {
	if isWarmUp(sample) || tag(sample, "outcome") != "ok" {
		return
	}
	s, value := a.seriesOf(sample), micros(sample.Value)
	switch sample.Metric.Name {
	case "authstack_dns":
		record(&s.DNS, value)
	case "authstack_connect":
		record(&s.Connect, value)
	case "authstack_tls":
		record(&s.TLS, value)
	case "authstack_send":
		record(&s.Send, value)
	case "authstack_wait":
		record(&s.Wait, value)
	case "authstack_receive":
		record(&s.Receive, value)
	}
}

func (a *aggregate) addCheck(sample metrics.Sample) {
	s, name := a.scenario(sample), clip(a.secrets.hide(tag(sample, "check")), 80)
	i := slices.IndexFunc(s.Checks, func(c result.Check) bool { return c.Name == name })
	if i < 0 {
		if len(s.Checks) == maxChecks {
			return
		}
		s.Checks = append(s.Checks, result.Check{Name: name})
		i = len(s.Checks) - 1
	}
	if sample.Value != 0 {
		s.Checks[i].Passed++
	} else {
		s.Checks[i].Failed++
	}
}

func (a *aggregate) seriesOf(sample metrics.Sample) *result.Series {
	return a.seriesNamed(tag(sample, "scenario"), tag(sample, "endpoint"))
}

func (a *aggregate) seriesNamed(scenario, endpoint string) *result.Series {
	// The mark is that of a Trend beside an endpoint of its name.
	key := seriesKey{scenario: a.scenarioName(scenario), endpoint: clip(strings.TrimSuffix(a.secrets.hide(endpoint), result.TrendMark), 63)}
	if s := a.series[key]; s != nil {
		return s
	}
	if len(a.series) >= maxSeries {
		key = seriesKey{scenario: overflow, endpoint: overflow}
		if s := a.series[key]; s != nil {
			return s
		}
	}
	a.series[key] = &result.Series{Scenario: key.scenario, Endpoint: key.endpoint}
	return a.series[key]
}

// scenarioName is that of a sample's tag, which a script can set to anything.
func (a *aggregate) scenarioName(tagged string) string { return clip(a.secrets.hide(tagged), 63) }

func (a *aggregate) scenario(sample metrics.Sample) *result.Scenario {
	name := a.scenarioName(tag(sample, "scenario"))
	if _, known := a.scenarios[name]; !known && len(a.scenarios) >= maxScenarios {
		name = overflow
	}
	if a.scenarios[name] == nil {
		a.scenarios[name] = &result.Scenario{Name: name}
	}
	return a.scenarios[name]
}

// run is what was aggregated.
func (a *aggregate) run() *result.Run {
	run := &result.Run{}
	for _, s := range a.scenarios {
		run.Scenarios = append(run.Scenarios, *s)
	}
	for _, s := range a.series {
		s.Timeline.Limit(maxTimelines / len(a.series))
		run.Series = append(run.Series, *s)
	}
	return result.Apart([]*result.Run{run})[0]
}

func isWarmUp(sample metrics.Sample) bool { return tag(sample, "phase") == "warmup" }

func tag(sample metrics.Sample, name string) string {
	value, _ := sample.Tags.Get(name)
	return value
}

// micros turns k6's milliseconds into whole microseconds.
func micros(milliseconds float64) int64 { return int64(math.Round(milliseconds * 1000)) }

func record(to **result.Histogram, value int64) {
	if *to == nil {
		*to = result.NewHistogram()
	}
	(*to).Record(value)
}

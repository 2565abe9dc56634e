// Package metrics shows every AuthStack and its last measurement to Prometheus: percentiles as gauges,
// and the full distribution as native histograms. docs/metrics.md lists them.
package metrics

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

const (
	// scrapeTime bounds what a scrape may wait for the API server.
	scrapeTime = 5 * time.Second
	// loadsPerScrape bounds how many results are read from the API server for one scrape; an operator
	// that starts with a thousand stacks has them all after a few.
	loadsPerScrape = 50
)

// Collector reads the stacks anew for each scrape, so that what it tells is what the API server has.
type Collector struct {
	// List gives all stacks, from a cache.
	List func(ctx context.Context) ([]v1alpha1.AuthStack, error)
	// Load gives the full result of a LatencyTest, or nil where none was kept. It is asked once for
	// each measurement.
	Load func(ctx context.Context, namespace, test string) (*result.Run, error)

	mu     sync.Mutex
	loaded map[stackKey]measurement
}

type stackKey struct{ namespace, name string }

// measurement is the last one of a stack and its result.
type measurement struct {
	test string
	at   metav1.Time
	run  *result.Run
}

var (
	stackLabels    = []string{"namespace", "stack"}
	endpointLabels = append(stackLabels[:2:2], "scenario", "endpoint")

	info = prometheus.NewDesc("authstack_info", "Always 1; what the stack is made of.",
		append(stackLabels[:2:2], "provider", "version", "double", "database", "medium", "durability", "cache"), nil)
	condition = prometheus.NewDesc("authstack_condition", "1 where the condition is True, 0 where it is not.",
		append(stackLabels[:2:2], "condition", "reason"), nil)
	verdict = prometheus.NewDesc("authstack_latency_verdict", "1 for the verdict of the last LatencyTest, 0 for the others.",
		append(stackLabels[:2:2], "verdict"), nil)
	measuredAt = prometheus.NewDesc("authstack_latency_measured_timestamp_seconds", "When the last LatencyTest ended.", stackLabels, nil)
	percentile = prometheus.NewDesc("authstack_latency_percentile_seconds", "Percentile of the last LatencyTest, exact to 0.1 %.",
		append(endpointLabels[:4:4], "percentile"), nil)
	requests = prometheus.NewDesc("authstack_latency_requests", "Requests that the last LatencyTest measured.", endpointLabels, nil)
	failed   = prometheus.NewDesc("authstack_latency_failed_requests", "Of these, with an unexpected answer or none.", endpointLabels, nil)
	latency  = prometheus.NewDesc("authstack_latency_seconds", "Distribution of the last LatencyTest, as a native histogram.", endpointLabels, nil)
	below    = prometheus.NewDesc("authstack_latency_objective_seconds", "What the percentile must stay below.",
		append(endpointLabels[:4:4], "percentile"), nil)
	scrapeError = prometheus.NewDesc("authstack_scrape_errors", "Stacks or results that could not be read for this scrape.", nil, nil)
)

// Describe is of prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{info, condition, verdict, measuredAt, percentile, requests, failed, latency, below, scrapeError} {
		to <- d
	}
}

// Collect is of prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	errors := 0.0
	stacks, err := c.List(ctx)
	if err != nil {
		errors++
	}
	for i := range stacks {
		stackMetrics(to, &stacks[i])
	}
	runs, failures := c.results(ctx, stacks)
	for key, run := range runs {
		histograms(to, key, run)
	}
	to <- prometheus.MustNewConstMetric(scrapeError, prometheus.GaugeValue, errors+float64(failures))
}

// results are the full results of the last measurements; those that are not held yet are read.
func (c *Collector) results(ctx context.Context, stacks []v1alpha1.AuthStack) (runs map[stackKey]*result.Run, failures int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, loads := map[stackKey]measurement{}, 0
	runs = map[stackKey]*result.Run{}
	for i := range stacks {
		key, last := stackKey{stacks[i].Namespace, stacks[i].Name}, stacks[i].Status.Latency
		if last == nil || last.TestName == "" || last.CompletedAt == nil {
			continue
		}
		m, known := c.loaded[key]
		if !known || m.test != last.TestName || !m.at.Equal(last.CompletedAt) {
			if loads++; loads > loadsPerScrape {
				continue
			}
			run, err := c.Load(ctx, key.namespace, last.TestName)
			if err != nil {
				failures++
				continue
			}
			m = measurement{last.TestName, *last.CompletedAt, run}
		}
		held[key] = m
		if m.run != nil {
			runs[key] = m.run
		}
	}
	c.loaded = held
	return runs, failures
}

func stackMetrics(to chan<- prometheus.Metric, st *v1alpha1.AuthStack) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{st.Namespace, st.Name}, labels...)...)
	}
	gauge(info, 1, infoLabels(&st.Status)...)
	for _, c := range st.Status.Conditions {
		gauge(condition, boolean(c.Status == metav1.ConditionTrue), c.Type, c.Reason)
	}
	if st.Spec.Latency != nil {
		seen := map[[3]string]bool{}
		for _, o := range st.Spec.Latency.Objectives {
			// Of two objectives for the same figure Prometheus can only take one; both are judged.
			key := [3]string{string(o.Scenario), o.Endpoint, strconv.Itoa(int(o.Percentile))}
			if !seen[key] {
				gauge(below, o.Below.Seconds(), key[0], key[1], key[2])
			}
			seen[key] = true
		}
	}
	last := st.Status.Latency
	if last == nil || last.CompletedAt == nil {
		return
	}
	gauge(measuredAt, float64(last.CompletedAt.Unix()))
	for _, v := range []v1alpha1.Verdict{v1alpha1.VerdictPassed, v1alpha1.VerdictFailed, v1alpha1.VerdictInconclusive, v1alpha1.VerdictError} {
		gauge(verdict, boolean(last.Verdict == v), string(v))
	}
	for _, s := range last.Scenarios {
		for _, e := range s.Endpoints {
			name := []string{string(s.Name), e.Name}
			gauge(requests, float64(e.Requests), name...)
			gauge(failed, float64(e.Failed), name...)
			for _, p := range []struct {
				name   string
				micros int64
			}{{"50", e.P50Micros}, {"90", e.P90Micros}, {"95", e.P95Micros}, {"99", e.P99Micros}, {"99.9", e.P999Micros}, {"100", e.MaxMicros}} {
				gauge(percentile, float64(p.micros)/1e6, append(name[:2:2], p.name)...)
			}
		}
	}
}

// infoLabels are provider, version, double, database, medium, durability and cache.
func infoLabels(s *v1alpha1.AuthStackStatus) []string {
	labels := make([]string, 7)
	if p := s.IdentityProvider; p != nil {
		labels[0], labels[1], labels[2] = p.Name, p.Version, strconv.FormatBool(p.Double)
	}
	if d := s.Database; d != nil {
		labels[3], labels[5] = d.Provider, string(d.Durability)
	}
	if st := s.Storage; st != nil {
		labels[4] = string(st.Medium)
	}
	if c := s.Cache; c != nil {
		labels[6] = c.Kind
	}
	return labels
}

func histograms(to chan<- prometheus.Metric, key stackKey, run *result.Run) {
	for i := range run.Series {
		s := &run.Series[i]
		if s.Total.Count() == 0 {
			continue
		}
		buckets, zero := nativeBuckets(s.Total)
		to <- prometheus.MustNewConstNativeHistogram(latency, uint64(s.Total.Count()), float64(s.Total.Sum())/1e6,
			buckets, nil, zero, schema, zeroThreshold, run.StartedAt, key.namespace, key.name, s.Scenario, s.Endpoint)
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

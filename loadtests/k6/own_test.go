// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.k6.io/k6/v2/metrics"

	"authstack.dev/authstack/internal/confinement"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/loadtests/scenarios"
)

// TestOwnScriptsMetricsAreCounted: every kind, a Trend with the name of an endpoint, and a password that is
// a metric's name and tag. Setup and warm-up add much greater values, which no figure may hold.
func TestOwnScriptsMetricsAreCounted(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	p := scriptPlan(server.URL)
	address := netip.MustParseAddrPort(strings.TrimPrefix(p.BaseURL, "http://")).Addr()
	// A name that k6 takes for a metric.
	const password = "canary_password_of_a_script"
	out := runEntry(t, scenarios.Own, confinement.Flags(address), p, password, map[string]string{scenarios.User: `
import http from 'k6/http';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
import exec from 'k6/execution';
import { baseURL, headers, user } from './lib/stack.js';
import { users } from './lib/plan.js';
const rendered = new Trend('rendered', true), search = new Trend('search', true), seldom = new Trend('seldom', true);
const items = new Trend('items'), found = new Counter('found'), fresh = new Rate('fresh'), depth = new Gauge('depth');
const secret = new Counter(users[0].password), theirs = new Trend('http_req_duration', true), unused = new Counter('unused');
export function setup() {
  found.add(1e6); items.add(1e6); rendered.add(1e6);
}
export default function () {
  const n = exec.scenario.iterationInTest, warm = n < 2 ? 1000 : 1;
  http.get(baseURL + '/search', { headers, responseCallback: null, tags: { endpoint: 'search' } });
  rendered.add(n * warm);
  rendered.add(0.5 * warm, { leaks: user().password });
  search.add(5);
  if (n === 7) seldom.add(3);
  items.add(n * warm); items.add(-1);
  found.add(2.5 * warm, { leaks: user().password });
  fresh.add(n % 2 === 0);
  depth.add(n * warm);
  secret.add(1);
  theirs.add(1e6);
}`})
	run := out.must(t, 0)
	wantCounts(t, run, "Script", map[string][3]int64{"script": {8, 0, 2}, "search": {8, 0, 2}, "search (Trend)": {8, 0, 2}, "rendered": {16, 0, 4}, "seldom": {1, 0, 0}})
	rendered, search := run.Find("Script", "rendered"), run.Find("Script", "search (Trend)")
	if !rendered.Own || rendered.Whole || rendered.Wait != nil || rendered.Total.Min() != 500 || rendered.Total.Max() != 9000 || len(rendered.Timeline.Intervals) == 0 {
		t.Errorf("rendered takes %d to %d µs: %+v", rendered.Total.Min(), rendered.Total.Max(), rendered)
	}
	if search.Total.Min() != 5000 || search.Total.Max() != 5000 || run.Find("Script", "search").Own || run.Find("Script", "search").Wait.Count() != 8 {
		t.Errorf("the request search and the Trend search are mixed up: %+v", search)
	}
	if len(run.Scenarios) != 1 {
		t.Fatalf("scenarios: %+v", run.Scenarios)
	}
	items := run.Scenarios[0].Metrics[4]
	if items.Count != 16 || items.LeftOut != 8 || items.Values.Count() != 8 || items.Values.Min() != 2000 || items.Values.Max() != 9000 {
		t.Errorf("items: %+v, from %d to %d", items, items.Values.Min(), items.Values.Max())
	}
	text, err := json.Marshal(run.Scenarios[0].Metrics[:4])
	if want := `[{"name":"[redacted]","type":"Counter","count":8,"sumMilli":8000},` +
		`{"name":"depth","type":"Gauge","count":8,"minMilli":2000,"maxMilli":9000},` +
		`{"name":"found","type":"Counter","count":8,"sumMilli":20000},` +
		`{"name":"fresh","type":"Rate","count":8,"true":4}]`; err != nil || string(text) != want {
		t.Errorf("%v, the metrics are\n%s, want\n%s", err, text, want)
	}
	if n := len(run.Scenarios[0].Metrics); n != 5 {
		t.Errorf("%d metrics: those of k6 are not the script's, and one without a value is none", n)
	}
}

// The names come from k6 itself, so that a release with another metric does not show it as the script's.
func TestMetricsOfK6AreNotTheScripts(t *testing.T) {
	registry := metrics.NewRegistry()
	metrics.RegisterBuiltinMetrics(registry)
	root := registry.RootTagSet().With("scenario", "Script").With("phase", "measure")
	a := newAggregate(time.Now(), nil)
	for _, metric := range append(registry.All(), registry.MustNewMetric("authstack_other", metrics.Counter)) {
		if metric.Name != metrics.DroppedIterationsName && metric.Name != metrics.ChecksName {
			a.add(metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: metric, Tags: root}, Value: 1})
		}
	}
	if run := a.run(); len(builtin) < 20 || len(run.Series) != 0 || len(run.Scenarios) != 0 {
		t.Errorf("%d names, %+v", len(builtin), run)
	}
}

// A script may make metrics in a loop, add to them without end, and call them anything.
func TestOwnMetricsAreBounded(t *testing.T) {
	registry, r, start := metrics.NewRegistry(), rand.New(rand.NewPCG(1, 2)), time.Now()
	root := registry.RootTagSet().With("scenario", "Script").With("phase", "measure")
	sample := func(m *metrics.Metric, value float64) metrics.Sample {
		return metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: m, Tags: root}, Time: start.Add(time.Duration(r.Int64N(int64(24 * time.Hour)))), Value: value}
	}
	a := newAggregate(start, nil)
	for i := range 40 {
		name := fmt.Sprintf("m%d_%s", i, strings.Repeat("x", 120))
		trend, plain := registry.MustNewMetric("t"+name, metrics.Trend, metrics.Time), registry.MustNewMetric("v"+name, metrics.Trend)
		for range 12_000 {
			// Alike in every doubling: the worst that a histogram can get.
			value := math.Exp(r.Float64()*22 - 7)
			a.add(sample(trend, value))
			a.add(sample(plain, value))
		}
		a.add(sample(trend, math.Inf(1)))
		a.add(sample(trend, -math.MaxFloat64))
		a.add(sample(plain, math.NaN()))
	}
	// There is still room for requests.
	request := registry.MustNewMetric("authstack_request", metrics.Trend, metrics.Time)
	for i := range 40 {
		a.add(metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: request, Tags: root.With("endpoint", fmt.Sprintf("e%d", i)).With("outcome", "ok")}, Time: start, Value: 1})
	}
	run := a.run()
	var text bytes.Buffer
	if err := result.Write(&text, run); err != nil {
		t.Fatal(err)
	}
	if text.Len() > 1<<20 {
		t.Errorf("the result has %d bytes, without %q", text.Len(), run.Trimmed)
	}
	read, err := result.Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, s := range read.Series {
		if s.Own {
			own++
			if len(s.Endpoint) > maxTrendName || s.Total.Count() != 12_002 || s.Total.Min() != 0 || s.Total.Max() != result.MaxMicros {
				t.Errorf("%s has %d values from %d to %d", s.Endpoint, s.Total.Count(), s.Total.Min(), s.Total.Max())
			}
		}
	}
	s := read.Scenarios[0]
	if want := int64(40-maxTrends)*12_002 + int64(40-result.MaxMetrics)*12_001; own != maxTrends || len(s.Metrics) != result.MaxMetrics || s.MetricValuesLeftOut != want {
		t.Errorf("%d Trends of times, %d other metrics, %d values left out, not %d", own, len(s.Metrics), s.MetricValuesLeftOut, want)
	}
	if len(read.Series) != maxSeries+1 {
		t.Errorf("%d endpoints", len(read.Series))
	}
	if m := s.Metrics[0]; len(m.Name) > result.MaxMetricName || m.Count != 12_001 || m.LeftOut < 1 || m.Values.Count() != m.Count-m.LeftOut {
		t.Errorf("%d values, %d left out", m.Count, m.LeftOut)
	}
}

// A request that a script records itself can have any name, and must not be added to a Trend's values.
func TestNoEndpointIsNamedAsATrendIs(t *testing.T) {
	a := newAggregate(time.Now(), secrets{})
	if s := a.seriesNamed("Script", "search"+result.TrendMark); s.Endpoint != "search" || s.Own {
		t.Errorf("it is counted as %q", s.Endpoint)
	}
}

// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.k6.io/k6/v2/metrics"

	"authstack.dev/authstack/internal/result"
)

func TestMemoryDoesNotFollowTheScript(t *testing.T) {
	registry := metrics.NewRegistry()
	request, err := registry.NewMetric("authstack_request", metrics.Trend, metrics.Time)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	a := newAggregate(start, nil)
	for i := range 5000 {
		tags := registry.RootTagSet().With("scenario", "Login").With("endpoint", fmt.Sprintf("endpoint-%d", i)).With("phase", "measure").With("outcome", "ok")
		a.add(metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: request, Tags: tags}, Time: start.Add(time.Second), Value: 1.5})
	}
	run := a.run()
	var requests int64
	for _, s := range run.Series {
		requests += s.Requests
	}
	if len(run.Series) > maxSeries+1 || requests != 5000 {
		t.Errorf("%d series count %d requests", len(run.Series), requests)
	}
}

func TestCPUStat(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want *result.Throttle
	}{
		"cgroup v2":                           {"usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 4500\n", &result.Throttle{Periods: 10, Throttled: 3, ThrottledMicros: 4500}},
		"cgroup v1":                           {"nr_periods 10\nnr_throttled 3\nthrottled_time 4500000\n", &result.Throttle{Periods: 10, Throttled: 3, ThrottledMicros: 4500}},
		"the root of v2 counts no throttling": {"usage_usec 5\nuser_usec 3\n", nil},
		"nothing":                             {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := parseCPUStat(test.text)
			if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestCPUStatPaths(t *testing.T) {
	for membership, want := range map[string]string{
		"0::/\n":                 "/sys/fs/cgroup/cpu.stat",
		"0::/kubepods/pod1/c1\n": "/sys/fs/cgroup/kubepods/pod1/c1/cpu.stat",
		"5:cpuset:/a\n4:cpu,cpuacct:/kubepods/c1\n": "/sys/fs/cgroup/cpu,cpuacct/kubepods/c1/cpu.stat",
	} {
		if got := cpuStatPaths(membership); len(got) == 0 || got[0] != want || !slices.Contains(got, "/sys/fs/cgroup/cpu.stat") && membership[0] == '0' {
			t.Errorf("%q gives %q, want %s first", membership, got, want)
		}
	}
}

func TestTheResultOfAnyRunIsBelowOneMiB(t *testing.T) {
	registry, r, start := metrics.NewRegistry(), rand.New(rand.NewPCG(1, 2)), time.Now()
	var kinds []*metrics.Metric
	for _, name := range []string{"request", "intended", "dns", "connect", "tls", "send", "wait", "receive"} {
		kinds = append(kinds, registry.MustNewMetric("authstack_"+name, metrics.Trend, metrics.Time))
	}
	a := newAggregate(start, nil)
	for endpoint := range 40 {
		tags := registry.RootTagSet().With("scenario", "Login").With("endpoint", fmt.Sprintf("endpoint-%d", endpoint)).With("phase", "measure").With("outcome", "ok")
		for range 12_000 {
			at := start.Add(time.Duration(r.Int64N(int64(24 * time.Hour))))
			for _, metric := range kinds {
				// From microseconds to minutes, alike in every doubling: the worst that a histogram can get.
				a.add(metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: metric, Tags: tags}, Time: at, Value: math.Exp(r.Float64()*18 - 7)})
			}
		}
	}
	var text bytes.Buffer
	if err := result.Write(&text, a.run()); err != nil {
		t.Fatal(err)
	}
	if text.Len() > 1<<20 {
		t.Errorf("the result has %d bytes", text.Len())
	}
}

// One failed login must not make a sum of what was one request each time.
func TestAFailureDoesNotMakeARequestAWhole(t *testing.T) {
	registry, start := metrics.NewRegistry(), time.Now()
	of := map[string]*metrics.Metric{}
	for _, name := range []string{"authstack_request", "authstack_whole"} {
		of[name] = registry.MustNewMetric(name, metrics.Trend, metrics.Time)
	}
	for name, c := range map[string]struct {
		samples [][2]string
		want    bool
	}{
		"requests, one of which was not reached": {[][2]string{{"request", "ok"}, {"whole", "wrong"}, {"request", "ok"}}, false},
		"the first of them was not":              {[][2]string{{"whole", "wrong"}, {"request", "ok"}}, false},
		"the last of them was not":               {[][2]string{{"request", "ok"}, {"whole", "none"}}, false},
		"sums, one of which failed":              {[][2]string{{"whole", "ok"}, {"whole", "wrong"}}, true},
		"sums of which all failed":               {[][2]string{{"whole", "wrong"}, {"whole", "none"}}, true},
	} {
		a := newAggregate(start, nil)
		for _, s := range c.samples {
			tags := registry.RootTagSet().With("scenario", "OIDC").With("endpoint", "authorization").With("phase", "measure").With("outcome", s[1])
			a.add(metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: of["authstack_"+s[0]], Tags: tags}, Time: start, Value: 5})
		}
		if got := a.run().Series[0]; got.Whole != c.want || got.Requests != int64(len(c.samples)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

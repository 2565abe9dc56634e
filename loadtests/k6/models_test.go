// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"authstack.dev/authstack/internal/result"
)

// page is a server of one page that can stand still for a while.
type page struct {
	mu       sync.Mutex
	requests int
	// stallAt is the number of the request that stops the server for stall.
	stallAt int
	stall   time.Duration
}

func (p *page) start(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		p.requests++
		if p.requests == p.stallAt {
			time.Sleep(p.stall)
		}
		p.mu.Unlock()
		fmt.Fprint(w, "0123456789")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func throughputPlan(url string, s scenario) plan {
	s.Name = "Throughput"
	p := authentikPlan(url, s)
	p.Provider = "authelia"
	return p
}

// slow is how many of the durations of a histogram are longer than limit microseconds.
func slow(h *result.Histogram, limit int64) (n int64) {
	for _, bar := range h.Bars() {
		if bar.From > limit {
			n += bar.Count
		}
	}
	return n
}

// onAMachineThatGoesOn measures again, twice at most, what a machine that stood still itself for a moment would spoil: k6 begins
// nothing of an open model that is due when its time is over, and whoever waits for the machine waits longer. What is wrong with
// the scripts or with the extension is wrong each time.
func onAMachineThatGoesOn(t *testing.T, measure func() error) {
	t.Helper()
	for try := 1; ; try++ {
		err := measure()
		if err == nil {
			return
		}
		if try == 3 {
			t.Fatal(err)
		}
		t.Logf("once more: %v", err)
	}
}

func TestAStallWeighsOnAllWhoComeDuringIt(t *testing.T) {
	const stall, limit = 2 * time.Second, 100_000
	onAMachineThatGoesOn(t, func() error {
		server := &page{stallAt: 20, stall: stall}
		run := runK6(t, throughputPlan(server.start(t), scenario{Iterations: 60, WarmUpIterations: 5, VirtualUsers: 2, model: model{RatePerMinute: 600}}), canaryPassword, nil).must(t, 0)
		s := run.Find("Throughput", "throughput")
		if s.Requests != 60 || s.WarmUpRequests != 5 || s.Intended.Count() != 60 || run.Scenarios[0].DroppedIterations != 0 {
			return fmt.Errorf("%d requests, %d of warm-up, %d from their intended start, dropped %d", s.Requests, s.WarmUpRequests, s.Intended.Count(), run.Scenarios[0].DroppedIterations)
		}
		// Ten a second come during two seconds; those at its very end wait less than the limit.
		if n := slow(s.Intended, limit); n < 15 || n > 30 {
			return fmt.Errorf("%d of 60 waited, want about 19: those that came during the stall", n)
		}
		return nil
	})
	onAMachineThatGoesOn(t, func() error {
		server := &page{stallAt: 20, stall: stall}
		run := runK6(t, throughputPlan(server.start(t), scenario{Iterations: 60, WarmUpIterations: 5, VirtualUsers: 1}), canaryPassword, nil).must(t, 0)
		s := run.Find("Throughput", "throughput")
		if n := slow(s.Total, int64(stall/time.Microsecond)/2); n != 1 || s.Intended != nil {
			return fmt.Errorf("%d of 60 waited in the closed model, want 1: nobody came while its one user waited (intended: %v)", n, s.Intended)
		}
		return nil
	})
}

// What a body is long is told in bytes, not in the 16-bit characters of a script, and every answer counts by its status.
func TestBytesAndStatusesOfAnswers(t *testing.T) {
	const body = "Anmeldung für 統合 👍"
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch requests.Add(1) % 4 {
		case 0:
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		case 1:
			// Sent before its length is known.
			_ = http.NewResponseController(w).Flush()
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	run := runK6(t, throughputPlan(server.URL, scenario{Iterations: 40, WarmUpIterations: 4, VirtualUsers: 1}), canaryPassword, nil).must(t, 0)
	s := run.Find("Throughput", "page")
	if s.Bytes != int64(30*len(body)) {
		t.Errorf("%d bytes in 30 answers of %d", s.Bytes, len(body))
	}
	want := []result.Status{{Status: 200, Count: 20}, {Status: 503, Count: 10}}
	if !slices.Equal(s.Statuses, want) || s.Unanswered != 10 || s.Wrong != 10 || s.Send.Count() != 20 {
		t.Errorf("answers by status %v, %d none, %d wrong, %d sent", s.Statuses, s.Unanswered, s.Wrong, s.Send.Count())
	}
}

func TestAScenarioByTheClock(t *testing.T) {
	server := &page{}
	run := runK6(t, throughputPlan(server.start(t), scenario{WarmUpIterations: 10, VirtualUsers: 3, model: model{DurationSeconds: 3}}), canaryPassword, nil).must(t, 0)
	s := run.Find("Throughput", "page")
	if s.Requests < 10 || s.WarmUpRequests != 10 || s.Bytes != 10*s.Requests {
		t.Errorf("%d requests with %d bytes, %d of warm-up", s.Requests, s.Bytes, s.WarmUpRequests)
	}
	var counted int64
	for i := range s.Timeline.Intervals {
		counted += s.Timeline.Intervals[i].Count()
	}
	// A request that takes seconds on a machine that stands still ends that much later.
	if n, most := len(s.Timeline.Intervals), 5+int(s.Total.Max()/1_000_000); n < 3 || n > most || counted != s.Requests {
		t.Errorf("the timeline has %d seconds with %d of %d requests", n, counted, s.Requests)
	}
}

func TestStepsAreToldApart(t *testing.T) {
	onAMachineThatGoesOn(t, func() error {
		server := &page{}
		run := runK6(t, throughputPlan(server.start(t), scenario{VirtualUsers: 1, model: model{DurationSeconds: 3, RateStepsPerMinute: []int{300, 1200}}}), canaryPassword, nil).must(t, 0)
		low, high, all := run.Find("Throughput", "throughput-at-300"), run.Find("Throughput", "throughput-at-1200"), run.Find("Throughput", "throughput")
		if low == nil || high == nil || low.Requests+high.Requests != all.Requests {
			t.Fatalf("steps: %+v", run.Series)
		}
		// 5 a second for 3 s and 20 a second for 3 s; the turn of the step may move one or two.
		if low.Requests < 13 || low.Requests > 18 || high.Requests < 56 || high.Requests > 62 {
			return fmt.Errorf("%d and %d requests, want about 15 and 60", low.Requests, high.Requests)
		}
		return nil
	})
}

func TestForwardAuthInStepsIsToldApart(t *testing.T) {
	onAMachineThatGoesOn(t, func() error {
		p := authentikPlan((&fakeAuthelia{t: t}).start().URL, scenario{"ForwardAuth", 0, 0, 2, model{DurationSeconds: 3, RateStepsPerMinute: []int{120, 600}}})
		p.Provider, p.ForwardAuthHost = "authelia", "app.example.test"
		run := runK6(t, p, canaryPassword, nil).must(t, 0)
		low, high, all := run.Find("ForwardAuth", "authorised-at-120"), run.Find("ForwardAuth", "authorised-at-600"), run.Find("ForwardAuth", "authorised")
		if low == nil || high == nil || all == nil || low.Requests+high.Requests != all.Requests || all.Whole || all.Wait == nil {
			return fmt.Errorf("steps: %+v %+v of %+v", low, high, all)
		}
		return nil
	})
}

func TestNewConnectionsAreOpenedForEachRequest(t *testing.T) {
	server := &page{}
	run := runK6(t, throughputPlan(server.start(t), scenario{Iterations: 20, WarmUpIterations: 2, VirtualUsers: 2, model: model{Connections: "New"}}), canaryPassword, nil).must(t, 0)
	if s := run.Find("Throughput", "page"); s.Connect.Count() != 20 {
		t.Errorf("%d of 20 requests opened a connection", s.Connect.Count())
	}
}

// Each scenario in each model with each kind of connection.
func TestScenariosWithColdAndWarmConnectionsClosedAndOpen(t *testing.T) {
	for name, test := range map[string]struct {
		provider, whole, request string
		// requests of the endpoint in an iteration.
		requests int64
	}{
		"Login":       {"authentik", "login", "password-post", 1},
		"Dashboard":   {"authentik", "dashboard-sequential", "applications-sequential", 8},
		"ForwardAuth": {"authelia", "authorised", "authorised", 1},
	} {
		for _, connections := range []string{"New", "Reuse"} {
			for kind, rate := range map[string]int{"closed": 0, "open": 600} {
				t.Run(strings.Join([]string{name, connections, kind}, ", "), func(t *testing.T) {
					t.Parallel()
					const iterations, warmUp = 18, 2 // At ten a second; k6 runs an open model for a second at least.
					size := scenario{name, iterations, warmUp, 4, model{RatePerMinute: rate, Connections: connections}}
					var run *result.Run
					var s *result.Series
					onAMachineThatGoesOn(t, func() error {
						var p plan
						if test.provider == "authelia" {
							p = authentikPlan((&fakeAuthelia{t: t}).start().URL, size)
							p.Provider, p.ForwardAuthHost = "authelia", "app.example.test"
						} else {
							p = authentikPlan((&fakeAuthentik{t: t}).start().URL, size)
						}
						run = runK6(t, p, canaryPassword, nil).must(t, 0)
						s = run.Find(name, test.request)
						if s.Requests != iterations*test.requests || s.Failed() != 0 || s.WarmUpRequests != warmUp*test.requests {
							return fmt.Errorf("%s: %d requests, %d failed, %d of warm-up", test.request, s.Requests, s.Failed(), s.WarmUpRequests)
						}
						return nil
					})
					if cold := connections == "New"; cold && s.Connect.Count() != s.Requests || !cold && s.Connect != nil && s.Connect.Count() >= s.Requests {
						t.Errorf("%s: %d of %d requests opened a connection", test.request, s.Connect.Count(), s.Requests)
					}
					if whole := run.Find(name, test.whole); (whole.Intended != nil) != (rate > 0) || rate > 0 && whole.Intended.Count() != iterations {
						t.Errorf("%s: from the intended start: %+v", test.whole, whole.Intended)
					}
				})
			}
		}
	}
}

// ForwardAuth at 64 connections: each virtual user has its own, and all of them ask at once. The server answers nobody before it
// has heard of all.
func TestForwardAuthAtSixtyFourConnections(t *testing.T) {
	const connections = 64
	fake := &fakeAuthelia{t: t, sessions: map[string]bool{}}
	var lock sync.Mutex
	seen, all := map[string]bool{}, make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		if !seen[r.RemoteAddr] {
			if seen[r.RemoteAddr] = true; len(seen) == connections {
				close(all)
			}
		}
		lock.Unlock()
		select {
		case <-all:
		case <-time.After(20 * time.Second):
			// Too few: k6 is not kept waiting for ever.
		}
		fake.ServeHTTP(w, r)
	}))
	defer server.Close()
	p := authentikPlan(server.URL, scenario{"ForwardAuth", 640, connections, connections, closed})
	p.Provider, p.ForwardAuthHost = "authelia", "app.example.test"
	run := runK6(t, p, canaryPassword, nil).must(t, 0)
	if s := run.Find("ForwardAuth", "authorised"); s.Requests != 640 || s.Failed() != 0 {
		t.Errorf("authorised: %d requests, %d failed", s.Requests, s.Failed())
	}
	if len(seen) < connections {
		t.Errorf("%d connections for %d virtual users", len(seen), connections)
	}
}

func TestPodsShareARunAndTheirHistogramsMerge(t *testing.T) {
	server := &page{}
	p := throughputPlan(server.start(t), scenario{Iterations: 40, WarmUpIterations: 8, VirtualUsers: 4})
	p.Pods = 4
	var runs []*result.Run
	for index := range p.Pods {
		run := runK6(t, p, canaryPassword, nil, "AUTHSTACK_PODS=4", fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index)).must(t, 0)
		if s := run.Find("Throughput", "page"); s.Requests+s.WarmUpRequests != 12 {
			t.Errorf("Pod %d made %d requests and %d of warm-up, want its quarter of 48", index, s.Requests, s.WarmUpRequests)
		}
		runs = append(runs, run)
	}
	merged := result.MergePods(runs...)
	if s := merged.Find("Throughput", "page"); s.Requests != 40 || s.WarmUpRequests != 8 || s.Total.Count() != 40 || server.requests != 48 {
		t.Errorf("merged: %d requests, %d of warm-up, the server saw %d", s.Requests, s.WarmUpRequests, server.requests)
	}
}

func TestSegments(t *testing.T) {
	for name, test := range map[string]struct{ index, pods, segment, sequence, refusal string }{
		"the first of one":         {"0", "1", "0:1", "0,1", ""},
		"the first of three":       {"0", "3", "0:1/3", "0,1/3,2/3,1", ""},
		"the last of three":        {"2", "3", "2/3:1", "0,1/3,2/3,1", ""},
		"an index beyond the Pods": {"3", "3", "", "", "JOB_COMPLETION_INDEX must be 0 to 2"},
		"no index":                 {"", "3", "", "", "JOB_COMPLETION_INDEX must be 0 to 2"},
		"no number of Pods":        {"0", "x", "", "", "AUTHSTACK_PODS must be a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			segment, sequence, err := segmentOf(test.index, test.pods)
			if segment != test.segment || sequence != test.sequence || (err == nil) != (test.refusal == "") {
				t.Errorf("%s of %s, %v", segment, sequence, err)
			}
		})
	}
}

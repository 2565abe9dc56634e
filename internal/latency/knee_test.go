package latency

import (
	"strings"
	"testing"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// step is a series of n logins of the same length.
func step(name string, n, failed int64, each time.Duration) result.Series {
	s := result.Series{Scenario: "Login", Endpoint: name, Whole: true, Requests: n, Wrong: failed, Total: result.NewHistogram()}
	for range n - failed {
		s.Total.Record(each.Microseconds())
	}
	return s
}

func TestTheHighestRateThatWasKeptUp(t *testing.T) {
	scenario := v1alpha1.Scenario{Name: "Login", RateStepsPerMinute: []int32{60, 120, 240}, Duration: duration("1m")}
	plan := &Plan{Provider: Authentik, Repeats: 1, Scenarios: []v1alpha1.Scenario{scenario}}
	good := step("login-at-60", 60, 0, 600*time.Millisecond)
	for name, test := range map[string]struct {
		series []result.Series
		rate   int32
		limit  string
	}{
		"every step was kept up": {[]result.Series{good, step("login-at-120", 119, 0, time.Second), step("login-at-240", 240, 0, time.Second)}, 240, ""},
		"latency runs away at the last": {[]result.Series{good, step("login-at-120", 120, 0, time.Second), step("login-at-240", 240, 0, 4*time.Second)}, 120,
			"at 240 a minute p95 is 4.00s, at 60 it was 600ms"},
		"iterations were dropped": {[]result.Series{good, step("login-at-120", 100, 0, time.Second)}, 60, "at 120 a minute only 100 of 120 began in time"},
		"answers were wrong":      {[]result.Series{good, step("login-at-120", 120, 5, time.Second)}, 60, "at 120 a minute 5 of 120 failed"},
		"not even the first":      {[]result.Series{step("login-at-60", 20, 0, time.Second)}, 0, "at 60 a minute only 20 of 60 began in time"},
		"the run ended before":    {[]result.Series{good}, 60, "nothing was measured at 120 a minute"},
	} {
		t.Run(name, func(t *testing.T) {
			rate, limit := sustained(plan, scenario, &result.Run{Series: test.series})
			if rate != test.rate || limit != test.limit {
				t.Errorf("%d, %q, want %d, %q", rate, limit, test.rate, test.limit)
			}
		})
	}
}

func TestWhatFailsInALaterStepIsNoFault(t *testing.T) {
	plan := &Plan{Provider: Authentik, Repeats: 1, Scenarios: []v1alpha1.Scenario{{Name: "Login", RateStepsPerMinute: []int32{60, 120}, Duration: duration("1m")}}}
	good, bad := step("login-at-60", 60, 0, time.Second), step("login-at-60", 60, 5, time.Second)
	for name, test := range map[string]struct {
		first, all result.Series
		ok         bool
	}{
		"the second step breaks":     {good, step("login", 180, 30, time.Second), true},
		"the first step fails as it": {bad, step("login", 180, 35, time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			run := &result.Run{Series: []result.Series{test.all, test.first, step("login-at-120", 120, 30, time.Second)}}
			if g := failuresGuard(plan, run); g.OK != test.ok {
				t.Errorf("the guard is %+v", g)
			}
		})
	}
}

func TestDrift(t *testing.T) {
	plan := &Plan{Provider: Authentik, Repeats: 1, Soaks: []v1alpha1.ScenarioName{"Login"}}
	for name, test := range map[string]struct {
		seconds int64
		// at is the length of a login that ends at this second, in milliseconds.
		at    func(second int64) int64
		named bool
		ok    bool
	}{
		"the same all the time":                 {600, func(int64) int64 { return 600 }, true, true},
		"an SSD that is hot after five minutes": {600, func(s int64) int64 { return 600 + min(s, 300)*3 }, true, false},
		"slow only at the start":                {600, func(s int64) int64 { return 900 - min(s, 120)*3 }, true, true},
		"too short to tell":                     {60, func(s int64) int64 { return 600 + s*100 }, false, true},
		"longer than there are intervals":       {3000, func(s int64) int64 { return 600 + s }, true, false},
		"one slow moment in a steady middle":    {600, func(s int64) int64 { return 600 + 9000*boolInt(s == 300) }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			tl := result.NewTimeline()
			for second := range test.seconds {
				tl.Record(second*1_000_000, test.at(second)*1000, false)
			}
			run := &result.Run{Series: []result.Series{{Scenario: "Login", Endpoint: "login", Timeline: tl}}}
			if g := driftGuard(&Plan{Provider: Authentik, Repeats: 1}, []*result.Run{run}); g.Name != "" {
				t.Errorf("what was given no duration is no soak: %+v", g)
			}
			steady := result.NewTimeline()
			for second := range test.seconds {
				steady.Record(second*1_000_000, 600_000, false)
			}
			calm := &result.Run{Series: []result.Series{{Scenario: "Login", Endpoint: "login", Timeline: steady}}}
			if g := driftGuard(plan, []*result.Run{calm, run, calm}); g.OK != test.ok || !g.OK && !strings.HasSuffix(g.Detail, "in repeat 2 of 3, the worst") {
				t.Errorf("as the second of three repeats: %+v", g)
			}
			g := driftGuard(plan, []*result.Run{run})
			if (g.Name != "") != test.named || g.OK != test.ok {
				t.Errorf("%+v", g)
			}
		})
	}
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

package baseline

import (
	"strings"
	"testing"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
)

// measured has a login of so many microseconds at the median in each repeat, and a p95 of twice that.
func measured(name string, medians ...int64) Measurement {
	m := Measurement{Name: name, Verdict: v1alpha1.VerdictPassed, K6Version: "1.4.0", IdentityProvider: latency.Authentik,
		Sizes: []Size{{Scenario: "Login", Iterations: 100, WarmUpIterations: 12, VirtualUsers: 1, Connections: v1alpha1.ConnectionsReuse, Pods: 1}}}
	for _, p50 := range medians {
		m.Repeats = append(m.Repeats, Repeat{Figures: []Figures{{Scenario: "Login", Endpoint: "login", Count: 100,
			P50Micros: p50, P90Micros: p50 * 3 / 2, P95Micros: p50 * 2, P99Micros: p50 * 3}}})
	}
	return m
}

func TestCompare(t *testing.T) {
	before := func() Measurement { return measured("LatencyTest before", 600_000, 606_000, 594_000, 600_000) }
	for name, row := range map[string]struct {
		now    Measurement
		change func(now, earlier *Measurement)
		want   v1alpha1.Verdict
		says   string
	}{
		"the same": {now: measured("now", 601_000, 599_000, 605_000, 595_000), want: "Passed",
			says: "Not slower by more than 10 %, with 95 % confidence: Login/login p50 is 1.00 (0.99–1.01) of LatencyTest before's."},
		"much faster": {now: measured("now", 301_000, 299_000, 305_000, 295_000), want: "Passed", says: "p50 is 0.50 ("},
		"a third slower": {now: measured("now", 801_000, 799_000, 805_000, 795_000), want: "Failed",
			says: "Regressed by more than 10 %: Login/login p50 is 1.33 (1.32–1.35) of LatencyTest before's."},
		"slower, and too scattered to say": {now: measured("now", 600_000, 900_000, 700_000, 800_000), want: "Inconclusive",
			says: "repeats of each of the two would settle it"},
		"on the edge": {now: measured("now", 660_000, 666_600, 653_400, 660_000), want: "Inconclusive",
			says: "so near to the limit that a thousand repeats would not settle it"},
		"another k6": {now: measured("now", 600_000, 600_000), want: "Inconclusive",
			change: func(now, _ *Measurement) { now.K6Version = "1.5.0" }, says: "measured by k6 1.4.0 and this test by k6 1.5.0"},
		"another size": {now: measured("now", 600_000, 600_000), want: "Inconclusive",
			change: func(now, _ *Measurement) { now.Sizes[0].VirtualUsers = 4 }, says: "100 iterations, 12 of warm-up, 4 virtual users, connections Reuse; give both the same size"},
		"other steps": {now: measured("now", 600_000, 600_000), want: "Inconclusive",
			change: func(now, _ *Measurement) { now.Sizes[0].RateStepsPerMinute = []int32{60, 120} }, says: "steps of 60 120 a minute, connections Reuse; give both the same size"},
		"a scenario that the baseline did not run": {now: measured("now", 600_000, 600_000), want: "Inconclusive",
			change: func(_, earlier *Measurement) { earlier.Sizes[0].Scenario = "Dashboard" }, says: "LatencyTest before did not run the scenario Login"},
		"a double against the product": {now: measured("now", 600_000, 600_000), want: "Inconclusive",
			change: func(now, _ *Measurement) { now.Double = true }, says: "LatencyTest before measured authentik itself and this test a double of authentik"},
		"another product": {now: measured("now", 600_000, 600_000), want: "Inconclusive",
			change: func(now, _ *Measurement) { now.IdentityProvider = "authelia" }, says: "measured authentik and this test authelia"},
		"one repeat": {now: measured("now", 600_000), want: "Inconclusive", says: "this test measured Login/login in one repeat, and an interval needs at least two repeats; write repeats: 12"},
		"a baseline of one repeat": {now: measured("now", 600_000, 600_000), want: "Inconclusive",
			change: func(_, earlier *Measurement) { earlier.Repeats = earlier.Repeats[:1] }, says: "measure it again with repeats: 12"},
		"a report from before repeats were kept": {now: measured("now", 600_000, 600_000), want: "Inconclusive",
			change: func(_, earlier *Measurement) { earlier.Repeats = nil }, says: "keeps no figures of single repeats"},
		"a baseline that proves nothing": {now: measured("now", 600_000, 600_000), want: "Inconclusive",
			change: func(_, earlier *Measurement) { earlier.Verdict = v1alpha1.VerdictInconclusive }, says: "has the verdict Inconclusive, so its figures prove nothing"},
		"a baseline that missed its objective is still one": {now: measured("now", 600_000, 600_000), want: "Passed",
			change: func(_, earlier *Measurement) { earlier.Verdict = v1alpha1.VerdictFailed }},
		"a run that proves nothing is compared with nothing": {now: measured("now", 900_000, 900_000), want: "Inconclusive",
			change: func(now, _ *Measurement) { now.Verdict = v1alpha1.VerdictInconclusive }},
	} {
		t.Run(name, func(t *testing.T) {
			earlier := before()
			if row.change != nil {
				row.change(&row.now, &earlier)
			}
			got := Compare(row.now, earlier, Compared(latency.Authentik, row.now.Sizes, nil), DefaultPercent)
			if got.Verdict != row.want || !strings.Contains(got.Message, row.says) {
				t.Errorf("%s: %s", got.Verdict, got.Message)
			}
			if strings.Contains(got.Message, "cannot be compared") != (got.Verdict == v1alpha1.VerdictInconclusive && len(got.Results) == 0 && got.Message != "") {
				t.Errorf("%d results, and the message is: %s", len(got.Results), got.Message)
			}
		})
	}
}

func TestComparedAreTheObjectives(t *testing.T) {
	sizes := []Size{{Scenario: "Login"}, {Scenario: "Dashboard"}}
	objective := func(endpoint string, percentile int32) v1alpha1.Objective {
		return v1alpha1.Objective{Scenario: "Login", Endpoint: endpoint, Percentile: percentile}
	}
	for name, row := range map[string]struct {
		objectives []v1alpha1.Objective
		want       []What
	}{
		"each once":        {[]v1alpha1.Objective{objective("login", 95), objective("login", 95), objective("password-post", 50)}, []What{{"Login", "login", 95}, {"Login", "password-post", 50}}},
		"or the wholes":    {nil, []What{{"Login", "login", 50}, {"Dashboard", "dashboard-parallel", 50}, {"Dashboard", "dashboard-sequential", 50}}},
		"p75 is not kept":  {[]v1alpha1.Objective{objective("login", 75), objective("login", 99)}, []What{{"Login", "login", 99}}},
		"not even one was": {[]v1alpha1.Objective{objective("login", 75)}, []What{{"Login", "login", 50}, {"Dashboard", "dashboard-parallel", 50}, {"Dashboard", "dashboard-sequential", 50}}},
	} {
		got := Compared(latency.Authentik, sizes, row.objectives)
		if len(got) != len(row.want) {
			t.Errorf("%s: %v, not %v", name, got, row.want)
			continue
		}
		for i := range got {
			if got[i] != row.want[i] {
				t.Errorf("%s: %v, not %v", name, got, row.want)
			}
		}
	}
}

func TestTheWorseVerdictHolds(t *testing.T) {
	for _, row := range []struct{ run, comparison, want v1alpha1.Verdict }{
		{"Passed", "Passed", "Passed"}, {"Passed", "Failed", "Failed"}, {"Passed", "Inconclusive", "Inconclusive"},
		{"Failed", "Passed", "Failed"}, {"Failed", "Inconclusive", "Failed"},
		{"Inconclusive", "Passed", "Inconclusive"}, {"Error", "Passed", "Error"}, {"", "Passed", ""},
	} {
		if got, _ := (Outcome{Verdict: row.comparison}).Join(row.run, "x"); got != row.want {
			t.Errorf("a run %s with a comparison %s is %s, not %s", row.run, row.comparison, got, row.want)
		}
	}
}

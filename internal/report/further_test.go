package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// rising is a test of an open model whose rate rose in steps.
func rising() Input {
	in := sample(540, true)
	login := &in.Test.Status.Scenarios[0]
	login.SustainedPerMinute, login.SustainedLimit = 120, "at 180 a minute only 71 of 90 began in time"
	login.Endpoints[0].IntendedP95Micros, login.Endpoints[0].IntendedP99Micros = 812_000, 1_204_000
	login.Endpoints[1].BytesPerSecond = 700
	throughput := v1alpha1.ScenarioResult{Name: v1alpha1.ScenarioThroughput}
	throughput.Endpoints = append(throughput.Endpoints, login.Endpoints[:2]...)
	throughput.Endpoints[0].Name, throughput.Endpoints[0].IntendedP95Micros, throughput.Endpoints[0].IntendedP99Micros = "throughput", 0, 0
	throughput.Endpoints[1].Name, throughput.Endpoints[1].BytesPerSecond = "page", 1_204_000
	in.Test.Status.Scenarios = append(in.Test.Status.Scenarios, throughput)
	return in
}

func TestFurtherFiguresStandOnlyWhereTheyWereMeasured(t *testing.T) {
	for name, test := range map[string]struct {
		report *Report
		want   []furtherLine
	}{
		"a closed model without Throughput has none": {New(sample(540, true)), nil},
		"a rate in steps, the intended start, and the bodies of Throughput, not those of a login": {New(rising()), []furtherLine{
			{"Login, rate that was kept up", "120 a minute; at 180 a minute only 71 of 90 began in time"},
			{"Login/login, from the intended start", "p95 812ms, p99 1.20s*"},
			{"Throughput/page, bodies of the answers", "1.20 MB/s"},
		}},
		"a comparison says of which variant": {&Report{
			Sustained: []Sustained{{Scenario: "Login", Variant: "nvme", PerMinute: 240}, {Scenario: "Login", Variant: "ceph", Limit: "at 60 a minute 3 of 30 failed"}},
			Scenarios: []Row{{Scenario: "Login", Endpoint: "login", Variant: "nvme", Requests: 9, IntendedP95Micros: 5000, IntendedP99Micros: 6000}},
		}, []furtherLine{
			{"nvme: Login, rate that was kept up", "240 a minute, and no step broke"},
			{"ceph: Login, rate that was kept up", "not even the first; at 60 a minute 3 of 30 failed"},
			{"nvme: Login/login, from the intended start", "p95 5.00ms, p99 6.00ms"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, figureLines(test.report)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBytesHaveThreeDigits(t *testing.T) {
	for bytes, want := range map[int64]string{1: "1 B", 999: "999 B", 1000: "1.00 kB", 12_345: "12.3 kB", 999_499: "999 kB", 999_500: "1.00 MB", 5_000_000_000: "5.00 GB"} {
		if got := bytesWords(bytes); got != want {
			t.Errorf("%d is %s, want %s", bytes, got, want)
		}
	}
}

// What hey prints of the same requests, and their parts.
func TestThroughputHasItsDetails(t *testing.T) {
	in := rising()
	page := result.Series{Scenario: "Throughput", Endpoint: "page", Requests: 6, Wrong: 1, Unanswered: 1, Bytes: 12_000, FirstMicros: 1_000_000, LastMicros: 3_000_000,
		Failures: []result.Failure{{Kind: "status 503", Count: 1}, {Kind: "no answer (timed out)", Count: 1}},
		Statuses: []result.Status{{Status: 200, Count: 4}, {Status: 503, Count: 1}}, Total: result.NewHistogram(), Send: result.NewHistogram()}
	for _, micros := range []int64{10_000, 20_000, 30_000, 100_000} {
		page.Total.Record(micros)
		page.Send.Record(micros / 1000)
	}
	whole := page
	whole.Endpoint, whole.Whole = "throughput", true
	in.Run = &result.Run{Series: []result.Series{whole, page}}
	want := []furtherLine{
		{"Throughput/page, in all", "6 requests in 2.00s"},
		{"Throughput/page, fastest, average", "10.0ms, 40.0ms"},
		{"Throughput/page, p10, p25, p75", "10.0ms, 10.0ms, 30.0ms"},
		{"Throughput/page, bodies of the answers", "6.00 kB/s, 12.0 kB in all, 2.40 kB each"},
		{"Throughput/page, answers by status", "200: 4, 503: 1, no answer: 1"},
		{"Throughput/page, failures, warm-up included", "status 503: 1, no answer (timed out): 1"},
		{"Throughput/page, send", "average 40µs, fastest 10µs, slowest 100µs"},
	}
	if diff := cmp.Diff(want, detailLines(New(in))); diff != "" {
		t.Error(diff)
	}
}

// The variants of a comparison keep theirs, also where two comparisons are joined.
func TestAComparisonKeepsWhatWasKeptUp(t *testing.T) {
	scenarios := []v1alpha1.ScenarioResult{{Name: v1alpha1.ScenarioLogin, SustainedPerMinute: 60, SustainedLimit: "at 90 a minute 2 of 20 failed"}}
	one := func(name string) *Report {
		in := ComparisonInput{Comparison: &v1alpha1.LatencyComparison{}, Now: noon}
		in.Variants = []Variant{NewVariant(v1alpha1.VariantStatus{Name: name}, nil, scenarios, nil, nil)}
		return NewComparison(in)
	}
	joined := JoinComparisons(one("a"), one("b"))
	var table bytes.Buffer
	if err := WriteTable(&table, joined); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"a: Login, rate that was kept up", "b: Login, rate that was kept up", "60 a minute; at 90 a minute 2 of 20 failed"} {
		if !strings.Contains(table.String(), line) {
			t.Errorf("the table does not say %q:\n%s", line, table.String())
		}
	}
	text, err := json.Marshal(joined)
	if err != nil || strings.Count(string(text), `"sustained":[`) != 3 {
		t.Errorf("the file does not hold it for the report and for both variants: %v\n%s", err, text)
	}
}

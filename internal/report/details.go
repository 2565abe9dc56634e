package report

import (
	"fmt"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// Details of a request that Throughput repeats, beside those of its Row: what else hey prints
// (https://github.com/rakyll/hey, print.go). Durations are of the answers as expected.
type Details struct {
	Scenario string `json:"scenario"`
	Endpoint string `json:"endpoint"`
	// Variant that it was measured of, in a comparison.
	Variant string `json:"variant,omitempty"`
	// Requests that were measured, and from the first one's begin to the last one's end.
	Requests      int64 `json:"requests"`
	SpanMicros    int64 `json:"spanMicros"`
	FastestMicros int64 `json:"fastestMicros"`
	AverageMicros int64 `json:"averageMicros"`
	P10Micros     int64 `json:"p10Micros"`
	P25Micros     int64 `json:"p25Micros"`
	P75Micros     int64 `json:"p75Micros"`
	// Bytes of the bodies of all answers.
	Bytes          int64 `json:"bytes"`
	BytesPerSecond int64 `json:"bytesPerSecond"`
	BytesPerAnswer int64 `json:"bytesPerAnswer"`
	// Statuses counts all answers; Unanswered are the requests without one.
	Statuses   []result.Status `json:"statuses"`
	Unanswered int64           `json:"unanswered"`
	// Failures says how requests failed, warm-up included.
	Failures []result.Failure `json:"failures,omitempty"`
	// Parts of a request: dns, connect, tls, send, wait, receive; those that none had are absent.
	Parts []PartDetails `json:"parts"`
}

// PartDetails of one part of a request, of the requests that had it.
type PartDetails struct {
	Name          string `json:"name"`
	Count         int64  `json:"count"`
	FastestMicros int64  `json:"fastestMicros"`
	AverageMicros int64  `json:"averageMicros"`
	SlowestMicros int64  `json:"slowestMicros"`
}

// detailsOf the requests of Throughput.
func detailsOf(run *result.Run) []Details {
	var list []Details
	for i := range run.Series {
		s := &run.Series[i]
		if s.Scenario != string(v1alpha1.ScenarioThroughput) || !s.OfRequests() || s.Requests == 0 {
			continue
		}
		d := Details{
			Scenario: s.Scenario, Endpoint: s.Endpoint, Requests: s.Requests, SpanMicros: s.LastMicros - s.FirstMicros, FastestMicros: s.Total.Min(), AverageMicros: s.Total.Mean(),
			P10Micros: s.Total.PerMille(100), P25Micros: s.Total.PerMille(250), P75Micros: s.Total.PerMille(750),
			Bytes: s.Bytes, BytesPerSecond: s.BytesPerSecond(), BytesPerAnswer: s.Bytes / max(1, s.Requests-s.Unanswered),
			Statuses: append([]result.Status{}, s.Statuses...), Unanswered: s.Unanswered, Failures: s.Failures, Parts: []PartDetails{},
		}
		for _, part := range []struct {
			name string
			of   *result.Histogram
		}{{"dns", s.DNS}, {"connect", s.Connect}, {"tls", s.TLS}, {"send", s.Send}, {"wait", s.Wait}, {"receive", s.Receive}} {
			if h := part.of; h.Count() > 0 {
				d.Parts = append(d.Parts, PartDetails{part.name, h.Count(), h.Min(), h.Mean(), h.Max()})
			}
		}
		list = append(list, d)
	}
	return list
}

// detailLines are the details in words.
func detailLines(r *Report) []furtherLine {
	var lines []furtherLine
	for _, d := range r.Details {
		line := func(what, format string, args ...any) {
			lines = append(lines, furtherLine{of(d.Variant, d.Scenario+"/"+d.Endpoint) + ", " + what, fmt.Sprintf(format, args...)})
		}
		line("in all", "%d requests in %s", d.Requests, duration(d.SpanMicros))
		if d.FastestMicros+d.AverageMicros > 0 {
			line("fastest, average", "%s, %s", duration(d.FastestMicros), duration(d.AverageMicros))
			line("p10, p25, p75", "%s, %s, %s", duration(d.P10Micros), duration(d.P25Micros), duration(d.P75Micros))
		}
		if d.Bytes > 0 {
			line("bodies of the answers", "%s/s, %s in all, %s each", bytesWords(d.BytesPerSecond), bytesWords(d.Bytes), bytesWords(d.BytesPerAnswer))
		}
		line("answers by status", "%s", statusWords(d))
		if len(d.Failures) > 0 {
			line("failures, warm-up included", "%s", failureWords(d.Failures))
		}
		for _, p := range d.Parts {
			line(p.Name, "average %s, fastest %s, slowest %s", duration(p.AverageMicros), duration(p.FastestMicros), duration(p.SlowestMicros))
		}
	}
	return lines
}

func failureWords(failures []result.Failure) string {
	var words []string
	for _, f := range failures {
		words = append(words, fmt.Sprintf("%s: %d", f.Kind, f.Count))
	}
	return strings.Join(words, ", ")
}

func statusWords(d Details) string {
	var words []string
	for _, s := range d.Statuses {
		name := fmt.Sprint(s.Status)
		if s.Status == 0 {
			name = "others"
		}
		words = append(words, fmt.Sprintf("%s: %d", name, s.Count))
	}
	if d.Unanswered > 0 {
		words = append(words, fmt.Sprintf("no answer: %d", d.Unanswered))
	}
	if words == nil {
		return "not counted"
	}
	return strings.Join(words, ", ")
}

package report

import (
	"fmt"
	"slices"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// doubleWarning is said before any figure of a double.
func doubleWarning(s Subject) string {
	return fmt.Sprintf("DOUBLE: a stand-in ran, not %s. These figures are not the product's.", productName(s.IdentityProvider))
}

// productName is a product as its makers write it.
func productName(provider string) string {
	if provider == "authelia" {
		return "Authelia"
	}
	return provider
}

// describe is the subject in a line.
func describe(s Subject) string {
	product := strings.TrimSpace(productName(s.IdentityProvider) + " " + s.Version)
	if s.Double {
		product = "DOUBLE of " + product
	}
	parts := []string{product}
	if s.Database != "" {
		parts = append(parts, strings.TrimSpace("PostgreSQL "+s.DatabaseVersion)+" ("+s.Database+")")
	}
	if s.Medium != "" {
		on := s.Medium
		if s.StorageClass != "" {
			on += " (class " + s.StorageClass + ")"
		}
		parts = append(parts, "on "+on)
	}
	if s.Durability != "" {
		parts = append(parts, "durability "+s.Durability)
	}
	if s.Cache != "" {
		parts = append(parts, "cache "+s.Cache)
	}
	return strings.Join(parts, ", ")
}

// verdictWord is the verdict, or that there is none yet.
func verdictWord(v v1alpha1.Verdict) string {
	if v == "" {
		return "no verdict yet"
	}
	return string(v)
}

func objectiveWords(o Objective) string {
	return fmt.Sprintf("%s/%s p%d", o.Scenario, o.Endpoint, o.Percentile)
}

func duration(micros int64) string { return result.FormatMicros(micros) }

// figure is a duration, or a dash where nothing was measured.
func figure(row Row, micros int64) string {
	if row.Requests == row.Failed {
		return "–"
	}
	return duration(micros)
}

// rate is thousandths a second as a number with up to two digits behind the point.
func rate(milli int64) string {
	switch {
	case milli == 0:
		return "–"
	case milli >= 100_000:
		return fmt.Sprintf("%d", (milli+500)/1000)
	}
	return fmt.Sprintf("%.2f", float64(milli)/1000)
}

func mark(ok bool) string {
	if ok {
		return "✓"
	}
	return "✗"
}

var columns = []string{"SCENARIO", "ENDPOINT", "REQUESTS", "FAILED", "P50", "P90", "P95", "P99", "P99.9", "MAX", "PER SECOND"}

func cells(row Row) []string {
	return []string{
		row.Scenario, row.Endpoint, fmt.Sprint(row.Requests), fmt.Sprint(row.Failed),
		percentile(row, "p50", row.P50Micros), percentile(row, "p90", row.P90Micros), percentile(row, "p95", row.P95Micros),
		percentile(row, "p99", row.P99Micros), percentile(row, "p99.9", row.P999Micros),
		figure(row, row.MaxMicros), rate(row.RequestsPerSecondMilli),
	}
}

// percentile is a figure, with a star where there are too few answers for it.
func percentile(row Row, name string, micros int64) string {
	if slices.Contains(row.Unsupported, name) {
		return figure(row, micros) + "*"
	}
	return figure(row, micros)
}

// starNote explains the star, or is empty where there is none.
func starNote(r *Report) string {
	marked := slices.ContainsFunc(r.Scenarios, func(row Row) bool { return len(row.Unsupported) > 0 })
	for _, own := range r.OwnMetrics {
		marked = marked || slices.ContainsFunc(own.Metrics, func(m v1alpha1.ScriptMetric) bool { return len(m.Unsupported) > 0 })
	}
	if marked {
		return fmt.Sprintf("* Too few answers for this percentile (p95 needs %d, p99 %d, p99.9 %d): the true one may lie above the slowest that was seen.",
			result.SamplesFor(950), result.SamplesFor(990), result.SamplesFor(999))
	}
	return ""
}

// causeWords are a cause in a line: how much of what it takes.
func causeWords(c v1alpha1.Cause) string {
	how := ""
	if c.Basis == v1alpha1.BasisEstimated {
		how = ", estimated"
	}
	if c.Micros == 0 {
		return fmt.Sprintf("%s/%s", c.Scenario, c.Endpoint)
	}
	return fmt.Sprintf("%s of %s/%s, %d.%d %% of the median%s", duration(c.Micros), c.Scenario, c.Endpoint, c.ShareMilli/10, c.ShareMilli%10, how)
}

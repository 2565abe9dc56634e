package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// OwnMetrics are those that a user's own script made in a scenario; a Trend of times is among the rows.
type OwnMetrics struct {
	Scenario string                  `json:"scenario"`
	Metrics  []v1alpha1.ScriptMetric `json:"metrics"`
	// ValuesLeftOut is how many values of further metrics are in no figure.
	ValuesLeftOut int64 `json:"valuesLeftOut,omitempty"`
}

func ownMetricsOf(scenarios []v1alpha1.ScenarioResult) []OwnMetrics {
	var list []OwnMetrics
	for _, s := range scenarios {
		if len(s.Metrics) > 0 || s.MetricValuesLeftOut > 0 {
			list = append(list, OwnMetrics{Scenario: string(s.Name), Metrics: append([]v1alpha1.ScriptMetric{}, s.Metrics...), ValuesLeftOut: s.MetricValuesLeftOut})
		}
	}
	return list
}

func ownMetricLines(r *Report) []furtherLine {
	var lines []furtherLine
	for _, own := range r.OwnMetrics {
		for _, m := range own.Metrics {
			lines = append(lines, furtherLine{own.Scenario + "/" + m.Name + ", " + string(m.Type), ownMetricWords(m)})
		}
		if own.ValuesLeftOut > 0 {
			lines = append(lines, furtherLine{own.Scenario + ", further metrics",
				fmt.Sprintf("%d values in no figure: a script may have %d metrics, and 16 Trends of times", own.ValuesLeftOut, result.MaxMetrics)})
		}
	}
	return lines
}

// ownMetricWords are the figures of a metric in a line.
func ownMetricWords(m v1alpha1.ScriptMetric) string {
	held := m.Count - m.LeftOut
	words, bound := "no figure", "further than 10^12 from 0"
	switch {
	case m.Type == v1alpha1.MetricTrend && held > 0:
		parts := []string{fmt.Sprintf("%d values from %s to %s", held, milli(threeDigits(m.MinMilli)), milli(threeDigits(m.MaxMilli)))}
		for _, p := range []struct {
			name  string
			milli int64
		}{{"p50", m.P50Milli}, {"p90", m.P90Milli}, {"p95", m.P95Milli}, {"p99", m.P99Milli}, {"p99.9", m.P999Milli}} {
			star := ""
			if slices.Contains(m.Unsupported, p.name) {
				star = "*"
			}
			parts = append(parts, p.name+" "+milli(threeDigits(p.milli))+star)
		}
		words = strings.Join(parts, ", ")
	case m.Type == v1alpha1.MetricCounter && held > 0:
		words = fmt.Sprintf("%s in %d values", milli(m.SumMilli), held)
	case m.Type == v1alpha1.MetricRate && held > 0:
		words = fmt.Sprintf("%d of %d values true, %.1f %%", m.TrueCount, held, 100*float64(m.TrueCount)/float64(held))
	case m.Type == v1alpha1.MetricGauge && held > 0:
		words = fmt.Sprintf("%d values from %s to %s", held, milli(m.MinMilli), milli(m.MaxMilli))
	}
	if m.Type == v1alpha1.MetricTrend {
		bound = "negative or above 3600000"
	}
	if m.LeftOut > 0 {
		words += fmt.Sprintf("; %d left out, %s", m.LeftOut, bound)
	}
	return words
}

// threeDigits rounds what stems from a histogram to about what it tells.
func threeDigits(n int64) int64 {
	scale := int64(1)
	for n/scale >= 1000 {
		scale *= 10
	}
	return (n + scale/2) / scale * scale
}

// milli is a number of thousandths, with as many digits behind the point as it has.
func milli(n int64) string {
	text := strconv.FormatInt(n/1000, 10)
	if n < 0 && n > -1000 {
		text = "-0"
	}
	if rest := max(n%1000, -(n % 1000)); rest != 0 {
		text += strings.TrimRight(fmt.Sprintf(".%03d", rest), "0")
	}
	return text
}

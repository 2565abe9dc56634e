package report

import (
	"bytes"
	"fmt"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
)

// Sustained is how far a rate that rises in steps was kept up.
type Sustained struct {
	Scenario string `json:"scenario"`
	// Variant that it was measured of, in a comparison.
	Variant string `json:"variant,omitempty"`
	// PerMinute is the highest rate, in iterations a minute, up to which every step was kept up; 0 where not
	// even the first was.
	PerMinute int32 `json:"perMinute"`
	// Limit says what broke at the next step; absent where every step was kept up.
	Limit string `json:"limit,omitempty"`
}

func sustainedOf(scenarios []v1alpha1.ScenarioResult) []Sustained {
	var list []Sustained
	for _, s := range scenarios {
		if s.SustainedPerMinute > 0 || s.SustainedLimit != "" {
			list = append(list, Sustained{Scenario: string(s.Name), PerMinute: s.SustainedPerMinute, Limit: s.SustainedLimit})
		}
	}
	return list
}

// further are figures that only some measurements have. They stand in lines below the table, since a
// column for each would be empty for everybody else.
type further struct {
	Title string
	Lines []furtherLine
}

type furtherLine struct{ What, Value string }

// furtherOf are those of a report, each list with its title; every form shows these and no others.
func furtherOf(r *Report) []further {
	var list []further
	for _, f := range []further{{"Further figures", append(figureLines(r), detailLines(r)...)}, {"The script's own metrics", ownMetricLines(r)}} {
		if len(f.Lines) > 0 {
			list = append(list, f)
		}
	}
	return list
}

// figureLines are the rates that were kept up, the durations from the intended start, and the bytes of Throughput, which
// nobody asks of a login and which Details have where there are any.
func figureLines(r *Report) []furtherLine {
	var lines []furtherLine
	for _, s := range r.Sustained {
		lines = append(lines, furtherLine{of(s.Variant, s.Scenario) + ", rate that was kept up", sustainedWords(s)})
	}
	for _, row := range r.Scenarios {
		if row.IntendedP95Micros > 0 || row.IntendedP99Micros > 0 {
			lines = append(lines, furtherLine{of(row.Variant, row.Scenario+"/"+row.Endpoint) + ", from the intended start",
				"p95 " + percentile(row, "p95", row.IntendedP95Micros) + ", p99 " + percentile(row, "p99", row.IntendedP99Micros)})
		}
	}
	for _, row := range r.Scenarios {
		if len(r.Details) == 0 && row.Scenario == string(v1alpha1.ScenarioThroughput) && row.BytesPerSecond > 0 {
			lines = append(lines, furtherLine{of(row.Variant, row.Scenario+"/"+row.Endpoint) + ", bodies of the answers", bytesWords(row.BytesPerSecond) + "/s"})
		}
	}
	return lines
}

// of names what a line is about, with its variant in a comparison.
func of(variant, what string) string {
	if variant == "" {
		return what
	}
	return variant + ": " + what
}

func sustainedWords(s Sustained) string {
	words := fmt.Sprintf("%d a minute", s.PerMinute)
	switch {
	case s.Limit == "":
		return words + ", and no step broke"
	case s.PerMinute == 0:
		words = "not even the first"
	}
	return words + "; " + s.Limit
}

// bytesWords is a number of bytes with three digits.
func bytesWords(bytes int64) string {
	value, unit := float64(bytes), "B"
	for _, next := range []string{"kB", "MB", "GB"} {
		if value < 999.5 {
			break
		}
		value, unit = value/1000, next
	}
	switch {
	case unit == "B" || value >= 99.95:
		return fmt.Sprintf("%.0f %s", value, unit)
	case value >= 9.995:
		return fmt.Sprintf("%.1f %s", value, unit)
	}
	return fmt.Sprintf("%.2f %s", value, unit)
}

func furtherTable(b *strings.Builder, r *Report) {
	for _, f := range furtherOf(r) {
		fmt.Fprintf(b, "\n%s\n", f.Title)
		rows := [][]string{}
		for _, line := range f.Lines {
			rows = append(rows, []string{" " + line.What, line.Value})
		}
		align(b, rows)
	}
}

func furtherMarkdown(b *bytes.Buffer, r *Report) {
	for _, f := range furtherOf(r) {
		fmt.Fprintf(b, "\n| %s | |\n|---|---|\n", f.Title)
		for _, line := range f.Lines {
			fmt.Fprintf(b, "| %s | %s |\n", cell(line.What), strings.ReplaceAll(cell(line.Value), "*", `\*`))
		}
	}
}

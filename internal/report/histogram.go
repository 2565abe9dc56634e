package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// histogramRows and histogramWidth fit a terminal of 80 columns and 24 lines.
	histogramRows  = 16
	histogramWidth = 48
)

// WriteHistograms draws the distributions of a report for a terminal.
func WriteHistograms(w io.Writer, r *Report) error {
	var b strings.Builder
	for i, one := range r.All() {
		if i > 0 {
			b.WriteString("\n")
		}
		if one.Subject.Double {
			fmt.Fprintf(&b, "%s\n", doubleWarning(one.Subject))
		}
		if len(one.Plots) == 0 {
			fmt.Fprintf(&b, "%s/%s has no distributions: it ended without a result, or its histograms were not kept.\n", one.Namespace, one.Name)
		}
		for j, p := range one.Plots {
			if j > 0 {
				b.WriteString("\n")
			}
			histogram(&b, p)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// histogram has a row for a few bins together, each with its count; in the margin stand the
// percentiles that fall into it.
func histogram(b *strings.Builder, p Plot) {
	fmt.Fprintf(b, "%s %s, %d measured\n", p.Scenario, p.Endpoint, p.Count)
	per := max(1, (len(p.Bins)+histogramRows-1)/histogramRows)
	var rows []Bin
	var most int64 = 1
	for i := 0; i < len(p.Bins); i += per {
		end := min(i+per, len(p.Bins))
		row := Bin{FromMicros: p.Bins[i].FromMicros, ToMicros: p.Bins[end-1].ToMicros}
		for _, bin := range p.Bins[i:end] {
			row.Count += bin.Count
		}
		rows = append(rows, row)
		most = max(most, row.Count)
	}
	for _, row := range rows {
		var marks []string
		for _, perMille := range []int{500, 900, 950, 990, 999} {
			// A percentile that the run has no samples for would repeat the slowest request.
			if micros := at(p, perMille); micros >= row.FromMicros && micros < row.ToMicros && int64(1000-perMille)*p.Count >= 1000 {
				marks = append(marks, fmt.Sprintf("p%g", float64(perMille)/10))
			}
		}
		bar := strings.Repeat("█", int(row.Count*histogramWidth/most))
		if bar == "" && row.Count > 0 {
			bar = "▏"
		}
		line := fmt.Sprintf("%8s │%s%s %d", duration(row.FromMicros), bar, strings.Repeat(" ", histogramWidth-utf8.RuneCountInString(bar)), row.Count)
		b.WriteString(strings.TrimRight(line+"  "+strings.Join(marks, " "), " ") + "\n")
	}
}

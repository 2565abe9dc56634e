package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
)

// wholeNames are the wholes as people call them.
var wholeNames = map[string]string{
	"login": "Login", "dashboard-sequential": "Dashboard ×8 in sequence", "dashboard-parallel": "Dashboard ×8 parallel", "authorised": "ForwardAuth",
	"code-flow": "OIDC code flow",
}

func wholeName(endpoint string) string {
	if name := wholeNames[endpoint]; name != "" {
		return name
	}
	return endpoint
}

// compareColumns heads the table of the variants: what they are, then p50 and p95 of each whole.
func compareColumns(r *Report) []string {
	columns := []string{"VARIANT", "MEDIUM", "DURABILITY", "ROUNDS"}
	for _, endpoint := range wholesOf(r) {
		name := strings.ToUpper(wholeName(endpoint))
		columns = append(columns, name+" P50", "P95")
	}
	return columns
}

// wholesOf are the endpoints of the wholes of any variant, in order.
func wholesOf(r *Report) []string {
	var names []string
	seen := map[string]bool{}
	for _, row := range r.Scenarios {
		if !seen[row.Endpoint] {
			seen[row.Endpoint] = true
			names = append(names, row.Endpoint)
		}
	}
	return names
}

// compareRows are the variants with their figures.
func compareRows(r *Report) [][]string {
	var rows [][]string
	for _, v := range r.Variants {
		line := []string{v.Name, orDash(v.Subject.Medium), orDash(v.Subject.Durability), fmt.Sprint(v.Rounds)}
		for _, endpoint := range wholesOf(r) {
			p50, p95 := "–", "–"
			for _, row := range v.Scenarios {
				if row.Endpoint == endpoint {
					p50, p95 = figure(row, row.P50Micros), figure(row, row.P95Micros)
				}
			}
			line = append(line, p50, p95)
		}
		rows = append(rows, line)
	}
	return rows
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

var pairColumns = []string{"VARIANT", "WHAT", "AGAINST", "RATIO", "95 % INTERVAL", "VERDICT", "WOULD HAVE SEEN"}

func pairCells(p Pair) []string {
	return []string{p.Variant, fmt.Sprintf("%s p%d", wholeName(p.Endpoint), p.Percentile), p.Against, ratioWords(p), intervalWords(p), verdictOnPair(p.Verdict), effectWords(p)}
}

func ratioWords(p Pair) string {
	if p.Ratio == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", p.Ratio)
}

func intervalWords(p Pair) string {
	if p.Ratio == 0 {
		return "too few rounds"
	}
	return fmt.Sprintf("%.2f–%.2f", p.CILow, p.CIHigh)
}

// effectWords is the smallest slow-down that would have been found.
func effectWords(p Pair) string {
	if p.Ratio == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*p.SmallestEffect)
}

func verdictOnPair(v v1alpha1.PairVerdict) string {
	if v == v1alpha1.PairNoDifference {
		return "no difference"
	}
	return strings.ToLower(string(v))
}

// compareTable writes a comparison for a terminal.
func compareTable(b *strings.Builder, r *Report) {
	b.WriteString("\n")
	align(b, append([][]string{compareColumns(r)}, compareRows(r)...))
	if pairs := r.againstFirst(); len(pairs) > 0 {
		b.WriteString("\nRatios (below 1 is faster)\n")
		rows := [][]string{pairColumns}
		for i, p := range pairs {
			line := pairCells(p)
			if i > 0 && pairs[i-1].Variant == p.Variant {
				line[0] = ""
			}
			rows = append(rows, line)
		}
		align(b, rows)
	}
	furtherTable(b, r)
	if list := r.probedStorages(); len(list) > 0 {
		b.WriteString("\n8 kB writes, each with fdatasync, before the first round\n")
		align(b, append([][]string{probedColumns}, probedRows(list)...))
		for _, words := range probedWords(list) {
			b.WriteString(" " + words + "\n")
		}
	}
	if len(r.WaitingCommits) > 0 {
		fmt.Fprintf(b, "\nCommits that wait (%s)\n", commitWords(r.WaitingCommits))
		align(b, append([][]string{commitColumns(r.WaitingCommits)}, commitRows(r.WaitingCommits)...))
	}
	b.WriteString("\nWhat a crash can take\n")
	for _, v := range r.Variants {
		fmt.Fprintf(b, " %s: %s\n", v.Name, orDash(v.DurabilityNote))
	}
}

// compareMarkdown writes a comparison for an issue or a merge request.
func compareMarkdown(b *bytes.Buffer, r *Report) {
	columns := compareColumns(r)
	fmt.Fprintf(b, "\n| %s |\n|---|---|---|%s\n", strings.Join(columns, " | "), strings.Repeat("--:|", len(columns)-3))
	for _, row := range compareRows(r) {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
	if pairs := r.againstFirst(); len(pairs) > 0 {
		fmt.Fprintf(b, "\nRatios (below 1 is faster):\n\n| %s |\n|---|---|---|--:|--:|---|--:|\n", strings.Join(pairColumns, " | "))
		for _, p := range pairs {
			fmt.Fprintf(b, "| %s |\n", strings.Join(pairCells(p), " | "))
		}
	}
	furtherMarkdown(b, r)
	if list := r.probedStorages(); len(list) > 0 {
		fmt.Fprintf(b, "\n8 kB writes, each with fdatasync, before the first round:\n\n| %s |\n|---|---|---|--:|--:|--:|--:|--:|--:|\n", strings.Join(probedColumns, " | "))
		for _, row := range probedRows(list) {
			fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
		}
		b.WriteString("\n")
		for _, words := range probedWords(list) {
			fmt.Fprintf(b, "- %s\n", cell(words))
		}
	}
	if len(r.WaitingCommits) > 0 {
		columns := commitColumns(r.WaitingCommits)
		fmt.Fprintf(b, "\nCommits that wait (%s):\n\n| %s |\n|---|%s---|\n", commitWords(r.WaitingCommits), strings.Join(columns, " | "), strings.Repeat("--:|", len(columns)-2))
		for _, row := range commitRows(r.WaitingCommits) {
			fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
		}
	}
	b.WriteString("\n| Variant | What a crash can take |\n|---|---|\n")
	for _, v := range r.Variants {
		fmt.Fprintf(b, "| %s | %s |\n", v.Name, cell(orDash(v.DurabilityNote)))
	}
}

// forestRow is a pair with its interval drawn on a logarithmic axis, in per cent of its width.
type forestRow struct {
	Pair
	Low, Width, At float64
}

// forest draws the pairs on one axis around 1, which is in the middle.
func forest(pairs []Pair) []forestRow {
	reach := math.Log(1.25)
	for _, p := range pairs {
		if p.Ratio > 0 {
			reach = max(reach, math.Abs(math.Log(p.Ratio))*1.3)
		}
	}
	at := func(ratio float64) float64 {
		return min(100, max(0, 50+50*math.Log(max(ratio, 1e-9))/reach))
	}
	rows := make([]forestRow, 0, len(pairs))
	for _, p := range pairs {
		row := forestRow{Pair: p}
		if p.Ratio > 0 {
			row.Low, row.At = at(p.CILow), at(p.Ratio)
			row.Width = max(at(p.CIHigh)-row.Low, 0.5)
		}
		rows = append(rows, row)
	}
	return rows
}

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteTable writes the report for a terminal.
func WriteTable(w io.Writer, r *Report) error {
	var b strings.Builder
	for i, one := range r.All() {
		if i > 0 {
			b.WriteString("\n")
		}
		table(&b, one)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func table(b *strings.Builder, r *Report) {
	if r.Subject.Double {
		warning := doubleWarning(r.Subject)
		line := strings.Repeat("!", utf8.RuneCountInString(warning))
		fmt.Fprintf(b, "%s\n%s\n%s\n", line, warning, line)
	}
	fmt.Fprintf(b, "%s of stack %s/%s: %s\n", r.Name, r.Namespace, r.Subject.Stack, strings.ToUpper(verdictWord(r.Verdict)))
	if r.Message != "" {
		fmt.Fprintf(b, "%s\n", r.Message)
	}
	if about := describe(r.Subject); about != "" {
		fmt.Fprintf(b, "%s\n", about)
	}
	if len(r.Variants) > 0 {
		compareTable(b, r)
		return
	}
	if len(r.Scenarios) > 0 {
		rows := [][]string{columns}
		for i, row := range r.Scenarios {
			line := cells(row)
			if i > 0 && r.Scenarios[i-1].Scenario == row.Scenario {
				line[0] = ""
			}
			rows = append(rows, line)
		}
		b.WriteString("\n")
		align(b, rows)
		if note := starNote(r); note != "" {
			fmt.Fprintf(b, "%s\n", note)
		}
	}
	furtherTable(b, r)
	if len(r.Objectives) > 0 {
		b.WriteString("\nObjectives\n")
		rows := [][]string{}
		for _, o := range r.Objectives {
			rows = append(rows, []string{" " + mark(o.Met), objectiveWords(o), measured(o), "below " + duration(o.BelowMicros)})
		}
		align(b, rows)
	}
	baselineTable(b, r)
	if len(r.Causes) > 0 {
		b.WriteString("\nCauses, which overlap\n")
		for _, c := range r.Causes {
			fmt.Fprintf(b, " %d. %s: %s\n    %s\n    → %s\n", c.Rank, c.Name, causeWords(c), c.Detail, c.Remedy)
		}
	}
	if len(r.Guards) > 0 {
		b.WriteString("\nGuards\n")
		rows := [][]string{}
		for _, g := range r.Guards {
			rows = append(rows, []string{" " + mark(g.OK) + " " + g.Name, g.Detail})
		}
		align(b, rows)
	}
	if r.Storage != nil {
		storageTable(b, r.Storage)
	}
	if r.DurabilityNote != "" {
		fmt.Fprintf(b, "Durability: %s\n", r.DurabilityNote)
	}
}

func measured(o Objective) string {
	if o.MeasuredMicros == 0 {
		return "not measured"
	}
	if o.CISample == "" && o.Percentile < 100 {
		return duration(o.MeasuredMicros) + " (no interval)"
	}
	if o.CISample == "" {
		return duration(o.MeasuredMicros)
	}
	return fmt.Sprintf("%s (%s–%s)", duration(o.MeasuredMicros), duration(o.CILowMicros), duration(o.CIHighMicros))
}

// align writes rows in columns, the first two to the left and the others to the right.
func align(b *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < 2 {
				line.WriteString(cell + pad + "  ")
			} else {
				line.WriteString(pad + cell + "  ")
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// WriteJSON writes the report for programs.
func WriteJSON(w io.Writer, r *Report) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// ReadJSON reads what WriteJSON wrote. Its error says so where the file is something else.
func ReadJSON(reader io.Reader) (*Report, error) {
	r := &Report{}
	if err := json.NewDecoder(reader).Decode(r); err != nil {
		return nil, fmt.Errorf("not a report: %w", err)
	}
	if r.APIVersion != APIVersion {
		return nil, fmt.Errorf("not a report of %s: apiVersion is %.64q", APIVersion, r.APIVersion)
	}
	return r, nil
}

// WriteMarkdown writes the report for an issue or a merge request.
func WriteMarkdown(w io.Writer, r *Report) error {
	var b bytes.Buffer
	for i, one := range r.All() {
		if i > 0 {
			b.WriteString("\n")
		}
		markdown(&b, one)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func markdown(b *bytes.Buffer, r *Report) {
	fmt.Fprintf(b, "## %s: %s\n\n", cell(r.Namespace+"/"+r.Name), verdictWord(r.Verdict))
	if r.Subject.Double {
		fmt.Fprintf(b, "> **%s**\n\n", cell(doubleWarning(r.Subject)))
	}
	fmt.Fprintf(b, "%s\n\nStack `%s`: %s.\n", cell(r.Message), r.Subject.Stack, cell(describe(r.Subject)))
	if len(r.Variants) > 0 {
		compareMarkdown(b, r)
		return
	}
	if len(r.Scenarios) > 0 {
		fmt.Fprintf(b, "\n| %s |\n|---|---|%s\n", strings.Join(columns, " | "), strings.Repeat("--:|", len(columns)-2))
		for _, row := range r.Scenarios {
			fmt.Fprintf(b, "| %s |\n", strings.ReplaceAll(strings.Join(cells(row), " | "), "*", `\*`))
		}
		if note := starNote(r); note != "" {
			fmt.Fprintf(b, "\n\\%s\n", note)
		}
	}
	furtherMarkdown(b, r)
	if len(r.Objectives) > 0 {
		b.WriteString("\n| | Objective | Measured | Below |\n|---|---|--:|--:|\n")
		for _, o := range r.Objectives {
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", mark(o.Met), objectiveWords(o), measured(o), duration(o.BelowMicros))
		}
	}
	baselineMarkdown(b, r)
	if len(r.Causes) > 0 {
		b.WriteString("\n| | Cause | Takes | Number behind it | What to change |\n|--:|---|---|---|---|\n")
		for _, c := range r.Causes {
			fmt.Fprintf(b, "| %d | %s | %s | %s | %s |\n", c.Rank, c.Name, causeWords(c), cell(c.Detail), cell(c.Remedy))
		}
	}
	if len(r.Guards) > 0 {
		b.WriteString("\n| | Guard | Figure |\n|---|---|---|\n")
		for _, g := range r.Guards {
			fmt.Fprintf(b, "| %s | %s | %s |\n", mark(g.OK), g.Name, cell(g.Detail))
		}
	}
	if r.Storage != nil {
		storageMarkdown(b, r.Storage)
	}
	if r.DurabilityNote != "" {
		fmt.Fprintf(b, "\nDurability: %s\n", cell(r.DurabilityNote))
	}
}

// cell keeps text in its place in Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(text)
}

package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/baseline"
)

// Measurement is what a report tells of itself to be compared.
func (r *Report) Measurement() baseline.Measurement {
	m := baseline.Measurement{
		Name: r.Name, Verdict: r.Verdict, IdentityProvider: r.Subject.IdentityProvider, Double: r.Subject.Double,
		Sizes: r.Sizes, Repeats: r.Repeats,
	}
	if r.Generator != nil {
		m.K6Version = r.Generator.K6Version
	}
	return m
}

// Against is the report with how it compares to an earlier one, which it must not be slower than by more
// than percent: verdict and message are then those of both together.
func (r *Report) Against(earlier *Report, percent int32) *Report {
	compared := *r
	outcome := baseline.Compare(r.Measurement(), earlier.Measurement(), r.compared(), percent)
	compared.Verdict, compared.Message = outcome.Join(r.Verdict, r.Message)
	compared.Baseline = outcome.Results
	return &compared
}

func (r *Report) compared() []baseline.What {
	var objectives []v1alpha1.Objective
	for _, o := range r.Objectives {
		objectives = append(objectives, v1alpha1.Objective{Scenario: v1alpha1.ScenarioName(o.Scenario), Endpoint: o.Endpoint, Percentile: o.Percentile})
	}
	return baseline.Compared(r.Subject.IdentityProvider, r.Sizes, objectives)
}

// Kept is what of a report is worth keeping as a baseline: without the plots, which are its greater part,
// and what of its run only its own readers want.
func (r *Report) Kept() *Report {
	kept := *r
	kept.Plots, kept.Settings, kept.Storage, kept.Causes, kept.Voided, kept.Others, kept.Baseline = nil, nil, nil, nil, nil, nil, nil
	return &kept
}

func baselineWords(r v1alpha1.BaselineResult) string {
	return fmt.Sprintf("%s/%s p%d", r.Scenario, r.Endpoint, r.Percentile)
}

var baselineColumns = []string{"FIGURE", "VERDICT", "RATIO (95 %)", "WOULD HAVE SEEN", "REPEATS", "TO SETTLE"}

func baselineCells(r v1alpha1.BaselineResult) []string {
	settle := "–"
	if r.Verdict == v1alpha1.BaselineInconclusive {
		settle = "more than 1000"
		if r.RepeatsToSettle > 0 {
			settle = fmt.Sprintf("%d each", r.RepeatsToSettle)
		}
	}
	return []string{
		baselineWords(r), string(r.Verdict), baseline.Words(r), seenWords(r.SmallestEffectPermille),
		fmt.Sprintf("%d against %d", r.Repeats, r.BaselineRepeats), settle,
	}
}

// seenWords is an increase in thousandths as per cent.
func seenWords(permille int64) string {
	if permille >= 10_000 {
		return "more than +1000 %"
	}
	return fmt.Sprintf("+%d.%d %%", permille/10, permille%10)
}

func baselineTable(b *strings.Builder, r *Report) {
	if len(r.Baseline) == 0 {
		return
	}
	b.WriteString("\nAgainst the baseline; below 1 is faster\n")
	rows := [][]string{baselineColumns}
	for _, row := range r.Baseline {
		rows = append(rows, baselineCells(row))
	}
	align(b, rows)
}

func baselineMarkdown(b *bytes.Buffer, r *Report) {
	if len(r.Baseline) == 0 {
		return
	}
	titles := []string{"Against the baseline", "Verdict", "Ratio (95 %)", "Would have seen", "Repeats", "To settle"}
	fmt.Fprintf(b, "\n| %s |\n|---|---|--:|--:|--:|--:|\n", strings.Join(titles, " | "))
	for _, row := range r.Baseline {
		fmt.Fprintf(b, "| %s |\n", strings.Join(baselineCells(row), " | "))
	}
}

// WriteComparison writes of a report only how it compares to its baseline.
func WriteComparison(w io.Writer, r *Report) error {
	var b strings.Builder
	if r.Subject.Double {
		fmt.Fprintf(&b, "%s\n", doubleWarning(r.Subject))
	}
	fmt.Fprintf(&b, "%s/%s: %s\n%s\n", r.Namespace, r.Name, strings.ToUpper(verdictWord(r.Verdict)), r.Message)
	baselineTable(&b, r)
	_, err := io.WriteString(w, b.String())
	return err
}

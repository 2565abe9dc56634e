package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/baseline"
)

// The form that CI systems read (the de-facto schema of Ant's JUnit task). A missed objective is a
// failure; what proves nothing or has no result is an error; an objective of such a run was skipped.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr,omitempty"`
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		ClassName string        `xml:"classname,attr"`
		Name      string        `xml:"name,attr"`
		Failure   *junitProblem `xml:"failure"`
		Error     *junitProblem `xml:"error"`
		Skipped   *junitProblem `xml:"skipped"`
		Output    string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
	}
)

// WriteJUnit writes the report as JUnit XML: a suite for each test, in it the verdict, each objective
// and each guard as a case.
func WriteJUnit(w io.Writer, r *Report) error {
	suites := junitSuites{}
	for _, one := range r.All() {
		suites.Suites = append(suites.Suites, junitOf(one))
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(suites); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func junitOf(r *Report) junitSuite {
	suite := junitSuite{Name: r.Namespace + "/" + r.Name, Properties: []junitProperty{
		{"stack", r.Subject.Stack}, {"subject", describe(r.Subject)}, {"verdict", verdictWord(r.Verdict)},
	}}
	if r.Subject.Double {
		suite.Properties = append(suite.Properties, junitProperty{"double", doubleWarning(r.Subject)})
	}
	for _, f := range furtherOf(r) {
		for _, line := range f.Lines {
			suite.Properties = append(suite.Properties, junitProperty{line.What, line.Value})
		}
	}
	if r.StartedAt != nil {
		suite.Timestamp = r.StartedAt.UTC().Format("2006-01-02T15:04:05")
		if r.CompletedAt != nil {
			suite.Time = fmt.Sprintf("%.3f", r.CompletedAt.Sub(*r.StartedAt).Truncate(time.Millisecond).Seconds())
		}
	}
	verdict := junitCase{ClassName: "verdict", Name: "the run is valid and fast enough"}
	switch r.Verdict {
	case v1alpha1.VerdictPassed:
	case v1alpha1.VerdictFailed:
		verdict.Failure = &junitProblem{r.Message, string(r.Verdict)}
	default:
		verdict.Error = &junitProblem{r.Message, verdictWord(r.Verdict)}
	}
	suite.add(verdict)
	judged := r.Verdict == v1alpha1.VerdictPassed || r.Verdict == v1alpha1.VerdictFailed
	for _, o := range r.Objectives {
		c := junitCase{ClassName: "objective", Name: fmt.Sprintf("%s below %s", objectiveWords(o), duration(o.BelowMicros))}
		switch {
		case !judged:
			c.Skipped = &junitProblem{Message: "the run proves nothing; measured was " + measured(o)}
		case !o.Met:
			c.Failure = &junitProblem{fmt.Sprintf("%s is %s, the objective is below %s", objectiveWords(o), measured(o), duration(o.BelowMicros)), "Missed"}
		}
		suite.add(c)
	}
	for _, row := range r.Baseline {
		c := junitCase{ClassName: "baseline", Name: baselineWords(row)}
		switch row.Verdict {
		case v1alpha1.BaselineRegressed:
			c.Failure = &junitProblem{baselineWords(row) + " is " + baseline.Words(row) + " of the baseline's", string(row.Verdict)}
		case v1alpha1.BaselineInconclusive:
			c.Error = &junitProblem{baselineWords(row) + " is " + baseline.Words(row) + " of the baseline's; " + baseline.SettleWords(row), string(row.Verdict)}
		}
		suite.add(c)
	}
	for _, g := range r.Guards {
		c := junitCase{ClassName: "guard", Name: g.Name, Output: g.Detail}
		switch {
		case g.OK:
		case r.Verdict == v1alpha1.VerdictFailed:
			c.Failure = &junitProblem{g.Detail, "Violated"}
		default:
			c.Error = &junitProblem{g.Detail, "Violated"}
		}
		suite.add(c)
	}
	return suite
}

func (s *junitSuite) add(c junitCase) {
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/report"
	"authstack.dev/authstack/internal/result"
)

var writers = map[string]func(io.Writer, *report.Report) error{
	"table": report.WriteTable, "json": report.WriteJSON, "markdown": report.WriteMarkdown, "html": report.WriteHTML,
}

func newReportCommand(c *cluster) *cobra.Command {
	var (
		files    []string
		compared []string
		format   string
		exitCode bool
	)
	cmd := &cobra.Command{
		Use:   "report {LATENCYTEST... | --comparison LATENCYCOMPARISON... | -f report.json...}",
		Short: "Show what a LatencyTest or a LatencyComparison measured",
		Long: `Show what LatencyTests measured: the figures of each endpoint, the objectives beside
them, the guards that say whether the figures can be trusted, and what a crash can take.`,
		Example: `  # The figures of a test in the terminal
  kubectl authstack report demo-latency

  # One HTML file with the distributions, to keep or to send
  kubectl authstack report demo-latency -o html > report.html

  # Two tests side by side in one file
  kubectl authstack report before after -o html > report.html

  # The variants of a comparison, their ratios with intervals, and what each can lose in a crash
  kubectl authstack report --comparison media

  # A report that was saved, for a merge request
  kubectl authstack report -f report.json -o markdown

  # In CI: 0 for Passed, 1 for Failed, 2 for Inconclusive or no verdict yet, 3 for Error
  kubectl authstack report demo-latency --exit-code`,
		RunE: func(cmd *cobra.Command, names []string) error {
			write, ok := writers[format]
			if !ok {
				return fmt.Errorf("-o %s is not known; write table, json, markdown or html", format)
			}
			if len(names)+len(compared)+len(files) == 0 {
				return errors.New("name a LatencyTest, a LatencyComparison with --comparison, or a file with -f")
			}
			merged, err := collect(cmd.Context(), c, names, compared, files)
			if err != nil {
				return err
			}
			if err := write(cmd.OutOrStdout(), merged); err != nil {
				return err
			}
			if code := exitCodeOf(merged); exitCode && code != 0 {
				return exitError(code)
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "report.json in place of a LatencyTest; may be given several times")
	cmd.Flags().StringArrayVar(&compared, "comparison", nil, "name of a LatencyComparison; may be given several times")
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table, json, markdown or html")
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "exit with the worst verdict: 0 Passed, 1 Failed, 2 Inconclusive, 3 Error (4: this command failed)")
	return cmd
}

func collect(ctx context.Context, c *cluster, names, compared, files []string) (*report.Report, error) {
	var reports []*report.Report
	if len(names)+len(compared) > 0 {
		k8s, namespace, err := c.client()
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			r, err := ofTest(ctx, k8s, client.ObjectKey{Namespace: namespace, Name: name})
			if err != nil {
				return nil, err
			}
			reports = append(reports, r)
		}
		for _, name := range compared {
			r, err := ofComparison(ctx, k8s, client.ObjectKey{Namespace: namespace, Name: name})
			if err != nil {
				return nil, err
			}
			reports = append(reports, r)
		}
	}
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		r, err := report.ReadJSON(file)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		reports = append(reports, r)
	}
	return report.Merge(reports...), nil
}

// ofTest is the report that the operator kept, or else one of what the status still says.
func ofTest(ctx context.Context, k8s client.Client, key client.ObjectKey) (*report.Report, error) {
	test := &v1alpha1.LatencyTest{}
	if err := k8s.Get(ctx, key, test); err != nil {
		return nil, err
	}
	in := report.Input{Test: test, Now: time.Now()}
	if name := test.Status.ResultName; name != "" {
		kept := &corev1.ConfigMap{}
		err := k8s.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, kept)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if r, err := report.ReadJSON(strings.NewReader(kept.Data["report.json"])); err == nil {
			return r, nil
		}
		if run, err := result.Read(strings.NewReader(kept.Data["result.txt"])); err == nil {
			in.Run = run
		}
	}
	stack := &v1alpha1.AuthStack{}
	err := k8s.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: test.Spec.StackRef.Name}, stack)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err == nil {
		in.Stack = stack
	}
	return report.New(in), nil
}

// ofComparison is the report that the operator kept, or else one of what the status still says.
func ofComparison(ctx context.Context, k8s client.Client, key client.ObjectKey) (*report.Report, error) {
	found := &v1alpha1.LatencyComparison{}
	if err := k8s.Get(ctx, key, found); err != nil {
		return nil, err
	}
	if verdict, name := found.Status.Verdict, found.Status.ResultName; name != "" && verdict != "" && verdict != v1alpha1.VerdictError {
		kept := &corev1.ConfigMap{}
		err := k8s.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, kept)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if r, err := report.ReadJSON(strings.NewReader(kept.Data["report.json"])); err == nil {
			return r, nil
		}
	}
	in := report.ComparisonInput{Comparison: found, Now: time.Now()}
	for i, variant := range found.Status.Variants {
		// The spec may be another one by now.
		if i < len(found.Spec.Variants) && found.Spec.Variants[i].Name == variant.Name {
			in.Variants = append(in.Variants, report.NewVariant(variant, found.Spec.Variants[i].Patch, variant.Scenarios, nil))
		}
	}
	return report.NewComparison(in), nil
}

// exitCodeOf is the worst verdict of all reports.
func exitCodeOf(r *report.Report) int {
	worst := 0
	for _, one := range r.All() {
		code := 2
		switch one.Verdict {
		case v1alpha1.VerdictPassed:
			code = 0
		case v1alpha1.VerdictFailed:
			code = 1
		case v1alpha1.VerdictError:
			code = 3
		}
		worst = max(worst, code)
	}
	return worst
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/report"
	"authstack.dev/authstack/internal/result"
)

var writers = map[string]func(io.Writer, *report.Report) error{
	"table": report.WriteTable, "json": report.WriteJSON, "junit": report.WriteJUnit, "markdown": report.WriteMarkdown, "html": report.WriteHTML,
	"histogram": report.WriteHistograms,
}

func (a *App) newReportCommand() *cobra.Command {
	var (
		files    []string
		compared []string
		format   string
		plots    string
		commits  string
	)
	cmd := &cobra.Command{
		Use:   "report {LATENCYTEST... | --comparison LATENCYCOMPARISON... | -f report.json...}",
		Short: "Show what a LatencyTest or a LatencyComparison measured",
		Long: `Show what LatencyTests measured: the figures of each endpoint, the objectives beside
them, the guards that say whether the figures can be trusted, and what a crash can take.`,
		Example: `  # The figures of a test in the terminal, and their distribution
  DISPLAY report demo-latency
  DISPLAY report demo-latency -o histogram

  # One HTML file with the distributions, to keep or to send
  DISPLAY report demo-latency -o html > report.html

  # Two tests in one file, before and after drawn over each other
  DISPLAY report before after -o html > report.html

  # The variants of a comparison, their ratios with intervals, and what each can lose in a crash
  DISPLAY report --comparison media

  # A report that was saved, for a merge request
  DISPLAY report -f report.json -o markdown

  # The plots as files: plots/demo-latency-login-distribution.svg and .png, and so on
  DISPLAY report demo-latency --plots plots`,
		RunE: func(cmd *cobra.Command, names []string) error {
			write, err := writerOf(format)
			if err != nil {
				return err
			}
			if len(names)+len(compared)+len(files) == 0 {
				return errors.New("name a LatencyTest, a LatencyComparison with --comparison, or a file with -f")
			}
			merged, err := a.collect(cmd.Context(), names, compared, files)
			if err != nil {
				return err
			}
			if commits != "" {
				if len(merged.Variants) == 0 {
					return errors.New("--waiting-commits stands beside the durabilities of a comparison: name one with --comparison")
				}
				if merged.WaitingCommits, err = readWaitingCommits(commits); err != nil {
					return err
				}
			}
			if plots != "" {
				if err := writePlots(plots, merged); err != nil {
					return err
				}
			}
			return write(a.Out, merged)
		},
		ValidArgsFunction: a.completeTests,
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "report.json in place of a LatencyTest; may be given several times")
	cmd.Flags().StringArrayVar(&compared, "comparison", nil, "name of a LatencyComparison; several become one table")
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table, histogram, json, junit, markdown or html")
	cmd.Flags().StringVar(&commits, "waiting-commits", "", "file that make bench-durability wrote, to stand beside a comparison")
	cmd.Flags().StringVar(&plots, "plots", "", "folder to write each plot into, as SVG and PNG")
	return cmd
}

func writerOf(format string) (func(io.Writer, *report.Report) error, error) {
	if write, ok := writers[format]; ok {
		return write, nil
	}
	return nil, fmt.Errorf("-o %s is not known; write one of %s", format, strings.Join(slices.Sorted(maps.Keys(writers)), ", "))
}

func (a *App) collect(ctx context.Context, names, compared, files []string) (*report.Report, error) {
	var reports []*report.Report
	if len(names)+len(compared) > 0 {
		k8s, namespace, err := a.cluster.client()
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			r, err := a.ofTest(ctx, k8s, client.ObjectKey{Namespace: namespace, Name: name})
			if err != nil {
				return nil, err
			}
			reports = append(reports, r)
		}
		var comparisons []*report.Report
		for _, name := range compared {
			r, err := a.ofComparison(ctx, k8s, client.ObjectKey{Namespace: namespace, Name: name})
			if err != nil {
				return nil, err
			}
			comparisons = append(comparisons, r)
		}
		if joined := report.JoinComparisons(comparisons...); joined != nil {
			reports = append(reports, joined)
		}
	}
	for _, path := range files {
		r, err := readReport(path)
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return report.Merge(reports...), nil
}

func readWaitingCommits(path string) ([]report.WaitingCommits, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	counted, err := report.ReadWaitingCommits(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return counted, nil
}

func readReport(path string) (*report.Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := report.ReadJSON(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// ofTest is the report that the operator kept, or else one of what the status still says.
func (a *App) ofTest(ctx context.Context, k8s client.Client, key client.ObjectKey) (*report.Report, error) {
	test := &v1alpha1.LatencyTest{}
	if err := k8s.Get(ctx, key, test); err != nil {
		return nil, explain(err, "latencytest", key)
	}
	in := report.Input{Test: test, Now: a.Now()}
	kept, run, err := keptOf(ctx, k8s, test)
	if err != nil {
		return nil, err
	}
	if kept != nil {
		return kept, nil
	}
	in.Run = run
	stack := &v1alpha1.AuthStack{}
	err = k8s.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: test.Spec.StackRef.Name}, stack)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err == nil {
		in.Stack = stack
	}
	return report.New(in), nil
}

// keptOf reads what the operator kept of a test: its report and its histograms, each nil where it is
// not there or of another version.
func keptOf(ctx context.Context, k8s client.Client, test *v1alpha1.LatencyTest) (*report.Report, *result.Run, error) {
	if test.Status.ResultName == "" || test.Status.Verdict == "" {
		return nil, nil, nil
	}
	config := &corev1.ConfigMap{}
	err := k8s.Get(ctx, client.ObjectKey{Namespace: test.Namespace, Name: test.Status.ResultName}, config)
	if err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	kept, err := report.ReadJSON(strings.NewReader(config.Data["report.json"]))
	if err != nil {
		kept = nil
	}
	run, err := result.Read(strings.NewReader(config.Data["result.txt"]))
	if err != nil {
		run = nil
	}
	return kept, run, nil
}

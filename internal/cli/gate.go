package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/report"
)

// gateOptions are what gate judges and where it writes.
type gateOptions struct {
	measurement
	test, file, format            string
	last                          bool
	baseline                      string
	margin                        margin
	json, junit, markdown, htmlTo string
}

func (a *App) newGateCommand() *cobra.Command {
	g := &gateOptions{}
	cmd := &cobra.Command{
		Use:   "gate {STACK | --test LATENCYTEST | -f report.json}",
		Short: "Turn a measurement into an exit code for a pipeline",
		Long: `Turn a measurement into an exit code for a pipeline.

With a stack: wait until it is Ready for its newest spec, measure it, and judge that. With --last: take
the measurement that the operator itself makes after a change. With --test or -f: judge what is there.

With --baseline it is also compared with an earlier measurement, and regressed where a figure is slower by
more than --not-worse-than with 95 % confidence; a new measurement then has 12 repeats unless --repeats
says otherwise.

Exit codes: 0 Passed, 1 Failed or regressed, 2 Inconclusive (the figures prove nothing: look at the
guards and measure again), 3 Error (no result; or this command failed or was used wrongly).
Nothing that was not measured passes.`,
		Example: `  # After kubectl apply: wait, measure, and fail the job where an objective is missed
  DISPLAY gate sso -n identity

  # Reports for the pipeline's own pages
  DISPLAY gate sso --junit gate.xml --markdown "$GITHUB_STEP_SUMMARY" --html gate.html

  # The measurement that the operator makes by itself after each change
  DISPLAY gate sso --last

  # An objective of this pipeline, with enough logins for it
  DISPLAY gate sso --scenario Login=300 --objective 'Login:p99<2s'

  # Not slower than the release before, which a file in git describes
  DISPLAY gate sso --baseline baseline.json --not-worse-than 5 --scenario Login=100

  # A report from another job
  DISPLAY gate -f report.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := writerOf(g.format)
			if err != nil {
				return err
			}
			earlier, err := a.baseline(cmd.Context(), g)
			if err != nil {
				return err
			}
			r, err := a.gated(cmd.Context(), g, args)
			if err != nil || r == nil {
				return err
			}
			a.lines.end(a)
			if earlier != nil {
				r = r.Against(earlier, g.margin.percent)
			}
			if err := write(a.Out, r); err != nil {
				return err
			}
			if err := g.files(r); err != nil {
				return err
			}
			return exitOf(r)
		},
		ValidArgsFunction: a.completeStacks,
	}
	g.flags(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&g.test, "test", "", "LatencyTest to wait for and judge, in place of a new one")
	flags.StringVarP(&g.file, "filename", "f", "", "report.json to judge, in place of a measurement")
	flags.BoolVar(&g.last, "last", false, "judge the operator's own measurement of the stack's newest spec, in place of a new one")
	flags.StringVar(&g.baseline, "baseline", "", "earlier measurement to compare with: a report.json, test/LATENCYTEST or configmap/NAME (baseline save writes the first and the last)")
	g.margin.flag(flags)
	flags.StringVarP(&g.format, "output", "o", "table", "table, histogram, json, junit, markdown or html")
	flags.StringVar(&g.json, "json", "", "file to write the report to as JSON")
	flags.StringVar(&g.junit, "junit", "", "file to write the report to as JUnit XML")
	flags.StringVar(&g.markdown, "markdown", "", "file to append the report to as Markdown, for example $GITHUB_STEP_SUMMARY")
	flags.StringVar(&g.htmlTo, "html", "", "file to write the report to as one HTML page")
	return cmd
}

// baseline is what the flag names, nil for none. It is read before anything is measured: a name that is
// wrong must not cost a measurement.
func (a *App) baseline(ctx context.Context, g *gateOptions) (*report.Report, error) {
	if err := g.margin.check(); err != nil || g.baseline == "" {
		return nil, err
	}
	earlier, err := a.source(ctx, g.baseline)
	if err != nil {
		return nil, fmt.Errorf("--baseline: %w", err)
	}
	if g.test == "" && g.file == "" && !g.last && g.repeats == 0 {
		g.repeats = latency.BaselineRepeats
	}
	return earlier, nil
}

// forAnother is whether flags of a new measurement are given where an earlier one is judged.
func (g *gateOptions) forAnother(ofStack bool) bool {
	what := len(g.scenarios) > 0 || len(g.objectives) > 0 || g.hasModel()
	return !ofStack && (what || g.repeats > 0 || g.users > 0) || g.last && what
}

// gated is the report to judge. Nil without an error: a dry run.
func (a *App) gated(ctx context.Context, g *gateOptions, args []string) (*report.Report, error) {
	given := len(args)
	for _, text := range []string{g.test, g.file} {
		if text != "" {
			given++
		}
	}
	if given != 1 {
		return nil, errors.New("name one thing to judge: a stack, --test LATENCYTEST, or -f report.json")
	}
	if g.forAnother(len(args) > 0) {
		return nil, errors.New("--scenario, --objective, --repeats, --virtual-users and the flags of the load model are for a new measurement: name a stack, and leave --last away")
	}
	if g.file != "" {
		return readReport(g.file)
	}
	if g.dryRun && !g.last && g.test == "" {
		return a.testStack(ctx, &g.measurement, args[0])
	}
	k8s, namespace, err := a.cluster.client()
	if err != nil {
		return nil, err
	}
	if g.test != "" {
		test, err := a.await(ctx, k8s, client.ObjectKey{Namespace: namespace, Name: g.test}, g.timeout)
		if err != nil {
			return nil, err
		}
		return a.ofTest(ctx, k8s, client.ObjectKeyFromObject(test))
	}
	key := client.ObjectKey{Namespace: namespace, Name: args[0]}
	if _, err := a.awaitReady(ctx, k8s, key, g.timeout); err != nil {
		return nil, err
	}
	if g.last {
		return a.lastMeasurement(ctx, k8s, key, g)
	}
	return a.testStack(ctx, &g.measurement, args[0])
}

// lastMeasurement waits for the operator's own test of the stack's newest spec.
func (a *App) lastMeasurement(ctx context.Context, k8s client.Client, key client.ObjectKey, g *gateOptions) (*report.Report, error) {
	stack := &v1alpha1.AuthStack{}
	if err := k8s.Get(ctx, key, stack); err != nil {
		return nil, explain(err, "authstack", key)
	}
	if l := stack.Spec.Latency; l != nil && l.Mode == v1alpha1.LatencyManual {
		return nil, fmt.Errorf("--last: the operator does not measure stack %s by itself, its spec.latency.mode is Manual; leave --last away", key.Name)
	}
	err := a.until(ctx, g.timeout, func(ctx context.Context) (bool, string, error) {
		if err := k8s.Get(ctx, key, stack); err != nil {
			return false, "", explain(err, "authstack", key)
		}
		l := stack.Status.Latency
		switch {
		case l == nil:
			return false, "waiting for the operator to measure", nil
		case l.Running != "":
			return false, "the operator measures in LatencyTest " + l.Running, nil
		case l.Verdict == "" || l.TestedGeneration != stack.Generation:
			return false, "waiting for the operator to measure the newest spec", nil
		}
		return true, "measured in LatencyTest " + l.TestName, nil
	})
	if errors.Is(err, errTimeout) {
		err = fmt.Errorf("the operator has not measured the newest spec of stack %s within %s", key.Name, g.timeout)
	}
	if err != nil {
		return nil, err
	}
	return a.ofTest(ctx, k8s, client.ObjectKey{Namespace: key.Namespace, Name: stack.Status.Latency.TestName})
}

// files writes the report where the flags say.
func (g *gateOptions) files(r *report.Report) error {
	for _, to := range []struct {
		path  string
		write func(io.Writer, *report.Report) error
		mode  int
	}{
		{g.json, report.WriteJSON, os.O_TRUNC}, {g.junit, report.WriteJUnit, os.O_TRUNC},
		{g.htmlTo, report.WriteHTML, os.O_TRUNC}, {g.markdown, report.WriteMarkdown, os.O_APPEND},
	} {
		if to.path == "" {
			continue
		}
		if err := writeFile(to.path, to.mode, func(w io.Writer) error { return to.write(w, r) }); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, mode int, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|mode, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/baseline"
	"authstack.dev/authstack/internal/report"
)

// baselineLabel is on a ConfigMap that baseline save wrote, which it may write again.
const baselineLabel = "authstack.dev/baseline"

// margin is how much slower is still good enough.
type margin struct{ percent int32 }

func (m *margin) flag(flags *pflag.FlagSet) {
	flags.Int32Var(&m.percent, "not-worse-than", baseline.DefaultPercent, "per cent that a figure may be slower than the baseline's: regressed when it is more with 95 % confidence")
}

func (m *margin) check() error {
	if m.percent < 1 || m.percent > 1000 {
		return fmt.Errorf("--not-worse-than %d: write 1 to 1000 per cent, for example 10", m.percent)
	}
	return nil
}

// source is a measurement that a user names: test/NAME, configmap/NAME, a file, or the bare name of a
// LatencyTest where there is no such file.
func (a *App) source(ctx context.Context, text string) (*report.Report, error) {
	kind, name, found := strings.Cut(text, "/")
	if !found || kind != "test" && kind != "configmap" {
		r, err := readReport(text)
		switch {
		case !errors.Is(err, os.ErrNotExist):
			return r, err
		case found || strings.HasSuffix(text, ".json"):
			return nil, fmt.Errorf("there is no file %s; write test/NAME for a LatencyTest, configmap/NAME for a saved baseline, or the path of a report.json", text)
		}
		kind, name = "test", text
	}
	k8s, namespace, err := a.cluster.client()
	if err != nil {
		return nil, err
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if kind == "test" {
		return a.ofTest(ctx, k8s, key)
	}
	config := &corev1.ConfigMap{}
	if err := k8s.Get(ctx, key, config); err != nil {
		return nil, explain(err, "configmap", key)
	}
	r, err := report.ReadJSON(strings.NewReader(config.Data["report.json"]))
	if err != nil {
		return nil, fmt.Errorf("the key report.json of ConfigMap %s: %w", name, err)
	}
	return r, nil
}

func (a *App) newCompareCommand() *cobra.Command {
	var (
		format string
		limit  margin
	)
	cmd := &cobra.Command{
		Use:   "compare BEFORE AFTER",
		Short: "Say whether one measurement is slower than another",
		Long: `Say whether AFTER is slower than BEFORE: for each objective of AFTER (without objectives, the median of
each scenario) the ratio with its 95 % confidence interval, the smallest change that would have been
seen, and how many repeats would settle what is not settled.

Each is a LatencyTest (NAME or test/NAME), a saved baseline (configmap/NAME) or the path of a
report.json. Both need at least two repeats, the same product, k6 and sizes.

Exit codes: 0 not slower by more than --not-worse-than, 1 slower, 2 not settled or not comparable, 3 an
error. AFTER's own verdict counts too.`,
		Example: `  # Two LatencyTests
  DISPLAY compare before after -n identity

  # Against a report that is kept in git
  DISPLAY compare baseline.json report.json --not-worse-than 5`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := comparisonWriterOf(format)
			if err == nil {
				err = limit.check()
			}
			if err != nil {
				return err
			}
			before, err := a.source(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			after, err := a.source(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			compared := after.Against(before, limit.percent)
			if err := write(a.Out, compared); err != nil {
				return err
			}
			return exitOf(compared)
		},
		ValidArgsFunction: a.completeTests,
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table (of the comparison alone), or the whole report of AFTER as json, junit, markdown or html")
	limit.flag(cmd.Flags())
	return cmd
}

func comparisonWriterOf(format string) (func(io.Writer, *report.Report) error, error) {
	if format == "table" {
		return report.WriteComparison, nil
	}
	return writerOf(format)
}

func (a *App) newBaselineCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "Keep a measurement for later ones to be compared with",
	}
	var file, config string
	save := &cobra.Command{
		Use:   "save LATENCYTEST {-o FILE | --configmap NAME}",
		Short: "Keep the figures of a LatencyTest as a baseline",
		Long: `Keep the figures of a LatencyTest as a baseline: in a file, for git and gate --baseline, or in a
ConfigMap, for spec.baseline.configMapName of a LatencyTest. What cannot serve is refused: a test that is
not finished, whose guards did not hold, or with fewer than two repeats.`,
		Example: `  # For git
  DISPLAY baseline save release-7 -n identity -o baseline.json

  # For LatencyTests in the cluster
  DISPLAY baseline save release-7 -n identity --configmap sso-baseline`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (file == "") == (config == "") {
				return errors.New("write one of -o FILE and --configmap NAME")
			}
			return a.saveBaseline(cmd.Context(), args[0], file, config)
		},
		ValidArgsFunction: a.completeTests,
	}
	save.Flags().StringVarP(&file, "output", "o", "", "file to write the baseline to")
	save.Flags().StringVar(&config, "configmap", "", "ConfigMap to write the baseline to; one that this command wrote is written again")
	cmd.AddCommand(save)
	return cmd
}

func (a *App) saveBaseline(ctx context.Context, name, file, config string) error {
	k8s, namespace, err := a.cluster.client()
	if err != nil {
		return err
	}
	r, err := a.ofTest(ctx, k8s, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		return err
	}
	switch {
	case r.Verdict != v1alpha1.VerdictPassed && r.Verdict != v1alpha1.VerdictFailed:
		return fmt.Errorf("LatencyTest %s proves nothing that could be a baseline: its verdict is %q; measure again", name, r.Verdict)
	case len(r.Repeats) < 2:
		return fmt.Errorf("LatencyTest %s has the figures of %d repeats, and a comparison needs at least two; measure with --repeats 12", name, len(r.Repeats))
	}
	if file != "" {
		if err := writeFile(file, os.O_TRUNC, func(w io.Writer) error { return report.WriteJSON(w, r.Kept()) }); err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.Out, "wrote %s: %d repeats of LatencyTest %s\n", file, len(r.Repeats), name)
		return err
	}
	var text bytes.Buffer
	if err := report.WriteJSON(&text, r.Kept()); err != nil {
		return err
	}
	if err := putBaseline(ctx, k8s, client.ObjectKey{Namespace: namespace, Name: config}, text.String()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "wrote ConfigMap %s: %d repeats of LatencyTest %s\n", config, len(r.Repeats), name)
	return err
}

func putBaseline(ctx context.Context, k8s client.Client, key client.ObjectKey, text string) error {
	wanted := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{baselineLabel: "true"}},
		Data:       map[string]string{"report.json": text},
	}
	err := k8s.Create(ctx, wanted, client.FieldOwner("kubectl-authstack"))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found := &corev1.ConfigMap{}
	if err := k8s.Get(ctx, key, found); err != nil {
		return err
	}
	if found.Labels[baselineLabel] != "true" {
		return fmt.Errorf("ConfigMap %s exists and is no baseline (it has no label %s=true); write another name", key.Name, baselineLabel)
	}
	found.Data = wanted.Data
	return k8s.Update(ctx, found, client.FieldOwner("kubectl-authstack"))
}

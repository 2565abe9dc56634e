package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/report"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/internal/stack/part"
)

// sizingIterations is how many logins a sizing makes by default: enough that what the stack does in the
// background weighs little.
const sizingIterations = 200

func (a *App) newSizingCommand() *cobra.Command {
	m := &measurement{}
	var iterations int32
	var format string
	cmd := &cobra.Command{
		Use:   "sizing STACK",
		Short: "Measure what a login costs: logins per second per core, write IOPS per 100 logins",
		Long: `Measure what a login costs, in the units of Keycloak's sizing guide: logins a second for each vCPU, and
write operations a second for 100 logins a second.

The CPU time and the writes of the stack's Pods are read from the nodes' own counters before and after a
LatencyTest of logins. That needs the right to get nodes/proxy. What a node does not count is not guessed.`,
		Example: `  # 200 logins by one person after the other
  DISPLAY sizing sso -n identity

  # More logins, four people at once, as JSON
  DISPLAY sizing sso --iterations 1000 --virtual-users 4 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "table" && format != "json" {
				return fmt.Errorf("-o %s is not known; write table or json", format)
			}
			if iterations < 10 {
				return fmt.Errorf("--iterations %d: write at least 10", iterations)
			}
			m.scenarios = []string{fmt.Sprintf("Login=%d", iterations)}
			sizing, err := a.size(cmd.Context(), m, args[0])
			if err != nil || sizing == nil {
				return err
			}
			a.lines.end(a)
			if format == "json" {
				encoder := json.NewEncoder(a.Out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(sizing)
			}
			return report.WriteSizing(a.Out, sizing)
		},
		ValidArgsFunction: a.completeStacks,
	}
	flags := cmd.Flags()
	flags.Int32Var(&iterations, "iterations", sizingIterations, "logins that are measured")
	flags.Int32Var(&m.users, "virtual-users", 0, "virtual users at once. Default: 1")
	flags.DurationVar(&m.timeout, "timeout", defaultTimeout, "how long to wait for the verdict")
	flags.BoolVar(&m.remove, "rm", false, "remove the LatencyTest afterwards")
	flags.BoolVar(&m.dryRun, "dry-run", false, "print the LatencyTest, and make nothing")
	flags.StringVarP(&format, "output", "o", "table", "table or json")
	return cmd
}

// size reads the counters, measures, and reads them again. Nil without an error: a dry run.
func (a *App) size(ctx context.Context, m *measurement, stack string) (*report.Sizing, error) {
	k8s, namespace, err := a.cluster.client()
	if err != nil {
		return nil, err
	}
	config, _, err := a.cluster.config()
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	test, err := m.object(namespace, stack)
	if err != nil {
		return nil, err
	}
	if m.dryRun {
		return nil, a.printManifest(test)
	}
	key := client.ObjectKey{Namespace: namespace, Name: stack}
	if _, err := a.awaitReady(ctx, k8s, key, m.timeout); err != nil {
		return nil, err
	}
	counters := nodeCounters{clientset: clientset}
	before, err := counters.read(ctx, k8s, key)
	if err != nil {
		return nil, err
	}
	done, err := a.measure(ctx, k8s, m, test)
	if err != nil {
		return nil, err
	}
	if m.remove {
		defer a.removeTest(k8s, done)
	}
	if v := done.Status.Verdict; v == v1alpha1.VerdictError || v == v1alpha1.VerdictInconclusive {
		return nil, fmt.Errorf("LatencyTest %s is %s, so nothing can be said: %s", done.Name, v, progressOf(done))
	}
	r, run, err := a.resultOf(ctx, k8s, done)
	if err != nil {
		return nil, err
	}
	after, err := a.readAfter(ctx, k8s, counters, key, done.Status.CompletedAt.Time)
	if err != nil {
		return nil, err
	}
	used, between, err := usedBetween(before, after)
	if err != nil {
		return nil, err
	}
	return report.NewSizing(r, loginsOf(run), between, used)
}

func (a *App) resultOf(ctx context.Context, k8s client.Client, test *v1alpha1.LatencyTest) (*report.Report, *result.Run, error) {
	r, run, err := keptOf(ctx, k8s, test)
	if err == nil && (r == nil || run == nil) {
		err = errors.New("the operator kept no histograms of this run; without them the logins of the warm-up are not known")
	}
	return r, run, err
}

// readAfter waits until every counter is younger than the end of the run; nodes refresh them each ten
// to fifteen seconds.
func (a *App) readAfter(ctx context.Context, k8s client.Client, counters nodeCounters, key client.ObjectKey, end time.Time) (usages, error) {
	var read usages
	err := a.until(ctx, 2*time.Minute, func(ctx context.Context) (bool, string, error) {
		var err error
		if read, err = counters.read(ctx, k8s, key); err != nil {
			return false, "", err
		}
		return read.oldest().After(end), "waiting for the nodes' counters to be newer than the run", nil
	})
	if errors.Is(err, errTimeout) {
		err = errors.New("the nodes' counters are still older than the end of the run after two minutes, so nothing can be said")
	}
	return read, err
}

// loginsOf are all logins that the stack served in the run, those of the warm-up included.
func loginsOf(run *result.Run) int64 {
	if s := run.Find(string(v1alpha1.ScenarioLogin), "login"); s != nil {
		return s.Requests + s.WarmUpRequests
	}
	return 0
}

// partOf says which part of the stack a Pod is, by the labels that the operator and Zalando's give it. Empty for what
// serves nobody: the load generator, the storage probe.
func partOf(pod *corev1.Pod) string {
	if pod.Labels["application"] == "spilo" {
		return "database"
	}
	switch pod.Labels[part.LabelComponent] {
	case part.ComponentServer, part.ComponentWorker:
		return "identity provider"
	case part.ComponentDatabase:
		return "database"
	case part.ComponentCache:
		return "cache"
	}
	return ""
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/report"
)

// defaultTimeout of waiting for a verdict.
const defaultTimeout = 30 * time.Minute

// maxRateSteps and maxRate of a scenario (api/v1alpha1, Scenario.rateStepsPerMinute).
const (
	maxRateSteps = 16
	maxRate      = 600_000
)

// measurement is what test and gate let a user say about a LatencyTest.
type measurement struct {
	scenarios, objectives []string
	users, repeats        int32
	name, client          string
	rate                  int32
	rateSteps             []int32
	connections           string
	timeout               time.Duration
	remove, dryRun        bool
}

func (m *measurement) flags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&m.scenarios, "scenario", nil, "scenario to run, with its iterations or its length if not the default: Login, Dashboard, ForwardAuth, OIDC, Throughput, "+
		"Login=200, Login=5m; may be given several times. Default: those of the objectives, and Login")
	flags.StringArrayVar(&m.objectives, "objective", nil, "what is fast enough, as SCENARIO[/ENDPOINT]:pN<DURATION, for example 'Login:p95<800ms'; may be given several times. Default: those of the stack")
	flags.Int32Var(&m.users, "virtual-users", 0, "virtual users at once, for the scenarios that --scenario names. Default: 1, 50 for Throughput")
	flags.Int32Var(&m.rate, "rate", 0, "iterations a minute that begin whether or not the earlier ones have ended (the open model), for the scenarios that --scenario names")
	flags.Int32SliceVar(&m.rateSteps, "rate-steps", nil, "rates a minute that rise, for example 60,120,240, to find where the stack breaks; each lasts as long as the scenario says, or 30s")
	flags.StringVar(&m.connections, "connections", "", "Reuse, or New to open one for each request, for the scenarios that --scenario names. Default: Reuse")
	flags.Int32Var(&m.repeats, "repeats", 0, "times that the scenarios are run. Default: 1")
	flags.StringVar(&m.name, "name", "", "name of the LatencyTest. Default: the stack's and a few random letters")
	flags.StringVar(&m.client, "oidc-client-secret", "", "for OIDC on Authelia: the Secret with client_id, client_secret and redirect_uri of a client in Authelia's configuration")
	flags.DurationVar(&m.timeout, "timeout", defaultTimeout, "how long to wait for the verdict")
	flags.BoolVar(&m.remove, "rm", false, "remove the LatencyTest, and with it the kept result, once it was shown")
	flags.BoolVar(&m.dryRun, "dry-run", false, "print what would be made, and make nothing")
}

// model puts the load model into a scenario.
func (m *measurement) model(s *v1alpha1.Scenario) {
	if m.rate > 0 {
		s.RatePerMinute = &m.rate
	}
	s.RateStepsPerMinute, s.Connections = m.rateSteps, v1alpha1.ConnectionMode(m.connections)
}

// hasModel is whether a flag asks for another load model than the closed one on connections that are kept.
func (m *measurement) hasModel() bool {
	return m.rate != 0 || len(m.rateSteps) > 0 || m.connections != ""
}

// validateModel says of the load model what the API server would refuse, since without a cluster nobody else does.
func (m *measurement) validateModel() error {
	outside := func(rate int32) bool { return rate < 1 || rate > maxRate }
	switch {
	case m.rate != 0 && outside(m.rate) || slices.ContainsFunc(m.rateSteps, outside):
		return fmt.Errorf("--rate and --rate-steps: write rates of 1 to %d a minute", maxRate)
	case m.rate > 0 && len(m.rateSteps) > 0:
		return errors.New("--rate is one rate and --rate-steps one that rises: write one of them")
	case !rising(m.rateSteps) || len(m.rateSteps) == 1 || len(m.rateSteps) > maxRateSteps:
		return fmt.Errorf("--rate-steps: write 2 to %d rates, each higher than the one before, for example 60,120,240", maxRateSteps)
	case m.connections != "" && m.connections != string(v1alpha1.ConnectionsReuse) && m.connections != string(v1alpha1.ConnectionsNew):
		return fmt.Errorf("--connections %s: write Reuse or New", m.connections)
	}
	return nil
}

// rising is whether each rate is higher than the one before.
func rising(rates []int32) bool {
	for i := 1; i < len(rates); i++ {
		if rates[i] <= rates[i-1] {
			return false
		}
	}
	return true
}

// makeTime gives a scenario that was given a length the time for it: of its Job, and of the waiting for it where nobody set that.
func (m *measurement) makeTime(test *v1alpha1.LatencyTest) {
	lasts := time.Duration(0)
	for _, s := range test.Spec.Scenarios {
		if s.Duration != nil {
			lasts = max(lasts, s.Duration.Duration*time.Duration(max(1, len(s.RateStepsPerMinute))))
		} else if s.RatePerMinute != nil {
			iterations := int64(60)
			if s.Iterations != nil {
				iterations = int64(*s.Iterations)
			}
			// With a warm-up of any scenario.
			lasts = max(lasts, time.Duration(iterations+60)*time.Minute/time.Duration(*s.RatePerMinute))
		}
	}
	// Two minutes for k6 to begin, and to end by itself; a Job has fifteen if nobody says otherwise.
	job := lasts + 2*time.Minute
	if job > 15*time.Minute {
		test.Spec.TimeoutSeconds = new(int32(min(job.Seconds(), 86_400)))
	}
	if all := job * time.Duration(max(1, m.repeats)); all > 15*time.Minute && m.timeout == defaultTimeout {
		m.timeout += all
	}
}

// object is the LatencyTest.
func (m *measurement) object(namespace, stack string) (*v1alpha1.LatencyTest, error) {
	test := &v1alpha1.LatencyTest{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "LatencyTest"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: m.name},
	}
	if m.name == "" {
		// A LatencyTest's name has at most 52 characters; five are the API server's.
		test.GenerateName = strings.TrimRight(stack[:min(len(stack), 42)], "-.") + "-cli-"
	}
	test.Spec.StackRef.Name = stack
	for _, text := range m.scenarios {
		s, err := parseScenario(text, m.users)
		if err != nil {
			return nil, err
		}
		if len(m.rateSteps) > 0 && s.Iterations != nil {
			return nil, fmt.Errorf("--scenario %s: each of --rate-steps lasts for a time; write how long in place of a number, for example %s=30s", text, s.Name)
		}
		m.model(&s)
		if s.Name == v1alpha1.ScenarioOIDC && m.client != "" {
			s.OIDC = &v1alpha1.OIDCClient{ClientSecretRef: v1alpha1.LocalReference{Name: m.client}}
		}
		test.Spec.Scenarios = append(test.Spec.Scenarios, s)
	}
	if m.client != "" && !slices.ContainsFunc(test.Spec.Scenarios, func(s v1alpha1.Scenario) bool { return s.OIDC != nil }) {
		return nil, errors.New("--oidc-client-secret belongs to the scenario OIDC: add --scenario OIDC")
	}
	if (m.users > 0 || m.hasModel()) && len(m.scenarios) == 0 {
		return nil, errors.New("--virtual-users, --rate, --rate-steps and --connections belong to scenarios: name them with --scenario, for example --scenario Login")
	}
	if err := m.validateModel(); err != nil {
		return nil, err
	}
	if m.repeats > 20 {
		return nil, fmt.Errorf("--repeats %d: write at most 20", m.repeats)
	}
	m.makeTime(test)
	for _, text := range m.objectives {
		o, err := parseObjective(text)
		if err != nil {
			return nil, err
		}
		test.Spec.Objectives = append(test.Spec.Objectives, o)
	}
	if m.repeats > 0 {
		test.Spec.Repeats = &m.repeats
	}
	return test, nil
}

func (a *App) newTestCommand() *cobra.Command {
	m, target := &measurement{}, &localTarget{}
	var format string
	cmd := &cobra.Command{
		Use:   "test {STACK | --url URL --provider PRODUCT}",
		Short: "Measure a stack now, and show what came out",
		Long: `Measure a stack now: make a LatencyTest, show how far it is, and then its figures and their
distribution. Ctrl-C stops it and removes what it made. The exit code is that of the verdict.

With --url no cluster is needed: k6 runs on this machine against the address that you name. Only measure
what is yours. The user comes from the environment (AUTHSTACK_USERNAME, AUTHSTACK_PASSWORD) or from
--credentials, never from an argument, which every user of a machine can read.`,
		Example: `  # The stack's own scenarios and objectives
  DISPLAY test sso -n identity

  # 200 logins by four people at once, judged by an objective of one's own
  DISPLAY test sso --scenario Login=200 --virtual-users 4 --objective 'Login:p95<800ms'

  # The LatencyTest as YAML, to keep in git
  DISPLAY test sso --scenario Login --dry-run

  # Without a cluster; k6 is the one of this repository (make k6)
  export AUTHSTACK_USERNAME=probe AUTHSTACK_PASSWORD=...
  DISPLAY test --url https://sso.example.com --provider authentik --scenario Login

  # A Service or Pod directly, under the name that people use
  DISPLAY test --url http://10.0.0.7:9000 --host sso.example.com --provider authentik`,
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := writerOf(format)
			if err != nil {
				return err
			}
			var r *report.Report
			switch {
			case target.url != "" && len(args) > 0:
				return errors.New("name a stack or an address with --url, not both")
			case target.url != "":
				r, err = a.testLocally(cmd.Context(), m, target)
			case len(args) != 1:
				return errors.New("name one stack, or an address with --url")
			default:
				r, err = a.testStack(cmd.Context(), m, args[0])
			}
			if err != nil || r == nil {
				return err
			}
			a.lines.end(a)
			if err := write(a.Out, r); err != nil {
				return err
			}
			if format == "table" && len(r.Plots) > 0 {
				fmt.Fprintln(a.Out)
				if err := report.WriteHistograms(a.Out, withoutWarning(r)); err != nil {
					return err
				}
			}
			return exitOf(r)
		},
		ValidArgsFunction: a.completeStacks,
	}
	m.flags(cmd.Flags())
	target.flags(cmd.Flags())
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table (with histograms), histogram, json, junit, markdown or html")
	return cmd
}

// withoutWarning is the report for a place where the table above has already said that a double ran.
func withoutWarning(r *report.Report) *report.Report {
	quiet := *r
	quiet.Subject.Double = false
	return &quiet
}

// testStack makes a LatencyTest and waits for it. Nil without an error: a dry run.
func (a *App) testStack(ctx context.Context, m *measurement, stack string) (*report.Report, error) {
	k8s, namespace, err := a.cluster.client()
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
	test, err = a.measure(ctx, k8s, m, test)
	if err != nil {
		return nil, err
	}
	// A test that is removed takes its result along, so the report comes first.
	r, err := a.ofTest(ctx, k8s, client.ObjectKeyFromObject(test))
	if m.remove {
		a.removeTest(k8s, test)
	}
	return r, err
}

func (a *App) printManifest(test *v1alpha1.LatencyTest) error {
	content, err := yaml.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        map[string]string        `json:"metadata"`
		Spec            v1alpha1.LatencyTestSpec `json:"spec"`
	}{test.TypeMeta, metadataOf(test), test.Spec})
	if err != nil {
		return err
	}
	_, err = a.Out.Write(content)
	return err
}

func metadataOf(test *v1alpha1.LatencyTest) map[string]string {
	m := map[string]string{"namespace": test.Namespace}
	if test.Name != "" {
		m["name"] = test.Name
	} else {
		m["generateName"] = test.GenerateName
	}
	return m
}

// measure makes the test, waits for its verdict and returns it. Whatever stops the waiting but the end
// of the patience removes the test.
func (a *App) measure(ctx context.Context, k8s client.Client, m *measurement, test *v1alpha1.LatencyTest) (*v1alpha1.LatencyTest, error) {
	stack := &v1alpha1.AuthStack{}
	key := client.ObjectKey{Namespace: test.Namespace, Name: test.Spec.StackRef.Name}
	if err := k8s.Get(ctx, key, stack); err != nil {
		return nil, explain(err, "authstack", key)
	}
	// Not interrupted in the middle: whether the test was made would not be known, and so not removed.
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := k8s.Create(creating, test, client.FieldOwner("kubectl-authstack")); err != nil {
		return nil, fmt.Errorf("make the LatencyTest: %w", err)
	}
	a.progress(fmt.Sprintf("made LatencyTest %s/%s", test.Namespace, test.Name))
	done, err := a.await(ctx, k8s, client.ObjectKeyFromObject(test), m.timeout)
	if ctx.Err() != nil {
		a.removeTest(k8s, test)
		return nil, errors.New("interrupted; the LatencyTest was removed and proves nothing")
	}
	return done, err
}

// removeTest removes a test, also where the command was interrupted.
func (a *App) removeTest(k8s client.Client, test *v1alpha1.LatencyTest) {
	a.lines.end(a)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if err := k8s.Delete(ctx, test); client.IgnoreNotFound(err) != nil {
		fmt.Fprintf(a.Err, "LatencyTest %s/%s could not be removed: %v\n", test.Namespace, test.Name, err)
		return
	}
	fmt.Fprintf(a.Err, "removed LatencyTest %s/%s\n", test.Namespace, test.Name)
}

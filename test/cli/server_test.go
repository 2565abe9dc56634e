// Package cli tests the command kubectl authstack as a pipeline uses it: its arguments against a real
// API server, what it prints against golden files (-update writes them), and its exit codes. There is no
// operator; the tests write the status that it would write.
package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/cli"
	"authstack.dev/authstack/internal/report"
	"authstack.dev/authstack/internal/result"
)

const root = "../.."

var (
	update     = flag.Bool("update", false, "write the golden files")
	server     client.Client
	kubeconfig string
	// serverConfig is how the API server is reached without a kubeconfig.
	serverConfig *rest.Config
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "These tests need a real API server: run make test-api, or set KUBEBUILDER_ASSETS to the directory that devcluster envtest-assets prints.")
		return 1
	}
	environment := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join(root, "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
		CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: 2 * time.Minute}}
	config, err := environment.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "the API server did not start:", err)
		return 1
	}
	serverConfig = config
	defer func() { _ = environment.Stop() }()
	folder, err := os.MkdirTemp("", "authstack-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	kubeconfig = filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(environment); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if server, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func writeKubeconfig(environment *envtest.Environment) error {
	user, err := environment.AddUser(envtest.User{Name: "person", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	credentials, err := user.KubeConfig()
	if err != nil {
		return err
	}
	return os.WriteFile(kubeconfig, credentials, 0o600)
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is a namespace of a test.
type world struct {
	t         *testing.T
	namespace string
	// problems is what every call wrote on its standard error.
	problems *locked
	// seen is what a call must have said before the operator's stand-in goes on to the verdict.
	seen string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cli-"}}
	must(t, server.Create(t.Context(), object))
	return &world{t: t, namespace: object.Name, problems: &locked{}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// said is what a call of the command left.
type said struct {
	code     int
	out, err string
}

// locked lets a test read what a command that still runs has written.
type locked struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.buffer.Write(p)
}

func (l *locked) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.buffer.String()
}

// call runs the command in the namespace.
func (w *world) call(ctx context.Context, args ...string) said {
	return w.callOn(ctx, kubeconfig, args...)
}

// callOn is call with another way to the API server.
func (w *world) callOn(ctx context.Context, kubeconfig string, args ...string) said {
	out, before := &locked{}, len(w.problems.String())
	app := &cli.App{Name: "kubectl-authstack", Out: out, Err: w.problems, Poll: 20 * time.Millisecond, Now: time.Now}
	code := app.Run(ctx, append([]string{"--kubeconfig", kubeconfig, "-n", w.namespace}, args...))
	// A golden file must not change with the namespace and the API server's letters.
	quiet := strings.NewReplacer(w.namespace, "identity")
	return said{code, quiet.Replace(out.String()), quiet.Replace(w.problems.String()[before:])}
}

// inFrontOfTheServer is the kubeconfig of a proxy of the API server that shows each answer before it hands it on.
func inFrontOfTheServer(t *testing.T, answered func(*http.Response)) string {
	t.Helper()
	target, err := url.Parse(serverConfig.Host)
	must(t, err)
	transport, err := rest.TransportFor(serverConfig)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	proxy.ModifyResponse = func(response *http.Response) error {
		answered(response)
		return nil
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["front"] = &clientcmdapi.Cluster{Server: front.URL}
	config.Contexts["front"] = &clientcmdapi.Context{Cluster: "front"}
	config.CurrentContext = "front"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, path))
	return path
}

// stack makes an AuthStack that is Ready.
func (w *world) stack(change ...func(*v1alpha1.AuthStack)) *v1alpha1.AuthStack {
	w.t.Helper()
	stack := &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sso"},
		Spec: v1alpha1.AuthStackSpec{Host: "sso.example.com", Authentik: &v1alpha1.AuthentikSpec{Version: "2026.8.3"}}}
	must(w.t, server.Create(w.t.Context(), stack))
	stack.Status = v1alpha1.AuthStackStatus{ObservedGeneration: stack.Generation,
		IdentityProvider: &v1alpha1.IdentityProviderStatus{Name: "authentik", Version: "2026.8.3", Double: true},
		Database: &v1alpha1.DatabaseStatus{Provider: "zalando", Version: "17.5", Durability: "Strict", DurabilityNote: "a crash takes no acknowledged commit",
			Settings: []v1alpha1.SettingStatus{
				{Name: "jit", Scope: "Role", Desired: "off", InForce: "off", Reason: "queries of authentik plan for longer than they run"},
				{Name: "shared_buffers", Scope: "Server", Desired: "256MB", InForce: "128MB", PendingRestart: true, Reason: "a quarter of the memory limit"},
			}},
		Conditions: []metav1.Condition{condition("Ready", "True", "Ready", "every phase is ready")},
	}
	for _, f := range change {
		f(stack)
	}
	must(w.t, server.Status().Update(w.t.Context(), stack))
	return stack
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(noon)}
}

// finish gives a LatencyTest its verdict, as the operator does: the kept result, then the status.
func (w *world) finish(ctx context.Context, test *v1alpha1.LatencyTest, verdict v1alpha1.Verdict, median int64) error {
	histogram := result.NewHistogram()
	for i := range int64(60) {
		histogram.Record(median * (900 + i*5) / 1000)
	}
	run := &result.Run{StartedAt: noon, EndedAt: noon.Add(time.Minute), Series: []result.Series{{
		Scenario: "Login", Endpoint: "login", Whole: true, Requests: 60, WarmUpRequests: 12, FirstMicros: 1, LastMicros: 60_000_000, Total: histogram}}}
	test.Status = v1alpha1.LatencyTestStatus{ObservedGeneration: test.Generation, Verdict: verdict, Run: 1, ResultName: test.Name + "-result",
		LastHandledReconcileAt: test.Annotations[v1alpha1.RequestedAtAnnotation],
		StartedAt:              &metav1.Time{Time: noon}, CompletedAt: &metav1.Time{Time: noon.Add(time.Minute)},
		Conditions: []metav1.Condition{condition("Ready", "False", string(verdict), "Login p95 is as it is.")},
		Subject: &v1alpha1.Subject{Stack: "sso", StackGeneration: 1, IdentityProvider: "authentik", Version: "2026.8.3", Double: true,
			Database: "zalando", DatabaseVersion: "17.5", Durability: "Strict", Cache: "postgres"},
		Scenarios: []v1alpha1.ScenarioResult{{Name: "Login", Endpoints: []v1alpha1.EndpointResult{{Name: "login", Requests: 60,
			P50Micros: histogram.PerMille(500), P90Micros: histogram.PerMille(900), P95Micros: histogram.PerMille(950),
			P99Micros: histogram.PerMille(990), P999Micros: histogram.PerMille(999), MaxMicros: histogram.Max()}}}},
		Objectives: []v1alpha1.ObjectiveResult{{Objective: v1alpha1.Objective{Scenario: "Login", Endpoint: "login", Percentile: 95, Below: metav1.Duration{Duration: 800 * time.Millisecond}},
			MeasuredMicros: histogram.PerMille(950), Met: verdict == v1alpha1.VerdictPassed}},
		Guards: []v1alpha1.Guard{{Name: "samples", OK: verdict != v1alpha1.VerdictInconclusive, Detail: "Login has 60 of at least 20"}},
	}
	var kept, full bytes.Buffer
	if err := report.WriteJSON(&kept, report.New(report.Input{Test: test, Run: run, Now: noon})); err != nil {
		return err
	}
	if err := result.Write(&full, run); err != nil {
		return err
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: test.Namespace, Name: test.Status.ResultName},
		Data: map[string]string{"report.json": kept.String(), "result.txt": full.String()}}
	if err := server.Create(ctx, config); err != nil {
		return err
	}
	return server.Status().Update(ctx, test)
}

// operate stands in for the operator until the test ends: it gives every LatencyTest of the namespace
// first progress and then the verdict.
func (w *world) operate(verdict v1alpha1.Verdict, median int64) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
			list := &v1alpha1.LatencyTestList{}
			if server.List(ctx, list, client.InNamespace(w.namespace)) != nil {
				continue
			}
			for i := range list.Items {
				test := &list.Items[i]
				switch {
				case test.Status.Verdict != "":
				case len(test.Status.Conditions) == 0:
					test.Status.Conditions = []metav1.Condition{condition("Ready", "False", "Running", "k6 runs in Job x, 1 of 1"), condition("Reconciling", "True", "Running", "k6 runs")}
					_ = server.Status().Update(ctx, test)
				case !strings.Contains(w.problems.String(), w.seen):
				default:
					if err := w.finish(ctx, test, verdict, median); err != nil && ctx.Err() == nil {
						w.t.Error(err)
					}
				}
			}
		}
	}()
}

// observe stands in for the operator that looks at each new spec of the stack, until the test ends.
func (w *world) observe() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
			stack := &v1alpha1.AuthStack{}
			err := server.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "sso"}, stack)
			if err == nil && stack.Status.ObservedGeneration != stack.Generation {
				stack.Status.ObservedGeneration = stack.Generation
				_ = server.Status().Update(ctx, stack)
			}
		}
	}()
}

func (w *world) tests() []v1alpha1.LatencyTest {
	w.t.Helper()
	list := &v1alpha1.LatencyTestList{}
	must(w.t, server.List(w.t.Context(), list, client.InNamespace(w.namespace)))
	return list.Items
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if string(want) != got {
		t.Errorf("%s differs (go test ./test/cli -update):\n%s", path, got)
	}
}

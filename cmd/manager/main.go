// Command manager is the operator: it makes AuthStacks exist and measures them.
package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs of every provider
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"authstack.dev/authstack/controllers"
	"authstack.dev/authstack/internal/sqlclient"
	"authstack.dev/authstack/internal/stack"
)

type options struct {
	images            stack.Images
	k6PullPolicy      string
	leaderElect       bool
	metricsAddress    string
	probeAddress      string
	concurrency       int
	namespaces        string
	operatorNamespace string
}

func main() {
	var o options
	flag.StringVar(&o.images.Authentik, "authentik-image", stack.DefaultImages.Authentik, "repository of authentik; the version of a stack is the tag")
	flag.StringVar(&o.images.Authelia, "authelia-image", stack.DefaultImages.Authelia, "repository of Authelia; the version of a stack is the tag")
	flag.StringVar(&o.images.Postgres, "postgres-image", stack.DefaultImages.Postgres, "repository of PostgreSQL; the major version is the tag")
	flag.StringVar(&o.images.Redis, "redis-image", stack.DefaultImages.Redis, "image of Redis")
	flag.StringVar(&o.images.K6, "k6-image", stack.DefaultImages.K6, "image of k6 with the output extension of this project")
	flag.StringVar(&o.images.Probe, "probe-image", "", "image of the storage probe of this project, with fio; without it no storage is probed")
	flag.StringVar(&o.k6PullPolicy, "k6-image-pull-policy", "", "of k6 and of the storage probe: Always, IfNotPresent or Never; Kubernetes' default where empty")
	flag.BoolVar(&o.leaderElect, "leader-elect", false, "let one of several replicas work at a time")
	flag.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address of the metrics; 0 for none")
	flag.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flag.IntVar(&o.concurrency, "max-concurrent-reconciles", 4, "stacks, and tests, that are worked on at once")
	flag.StringVar(&o.namespaces, "watch-namespaces", "", "namespaces to work in, separated by commas; all where empty")
	flag.StringVar(&o.operatorNamespace, "operator-namespace", ownNamespace(),
		"namespace that databases let the operator in from; where empty, Pods labelled app.kubernetes.io/name=authstack of any namespace")
	logs := zap.Options{}
	logs.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logs)))
	if err := run(o); err != nil {
		ctrl.Log.Error(err, "the operator stops")
		os.Exit(1)
	}
}

func run(o options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no way to a cluster: %w", err)
	}
	// A thousand stacks that all change need some twenty thousand requests; the API server's own
	// fairness, not a low limit here, is what protects it.
	config.QPS, config.Burst = 100, 200
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        controllers.NewScheme(),
		Cache:                         controllers.CacheOptions(splitNamespaces(o.namespaces)),
		Metrics:                       server.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.probeAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "authstack.dev",
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(10 * time.Second),
	})
	if err != nil {
		return err
	}
	if err := setUp(mgr, config, o); err != nil {
		return err
	}
	err = errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func setUp(mgr ctrl.Manager, config *rest.Config, o options) error {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	err = (&controllers.AuthStackReconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("authstack"),
		Database: &sqlclient.Client{}, Logs: controllers.PodLogs{Clientset: clientset}, Images: o.images, ImagePullPolicy: corev1.PullPolicy(o.k6PullPolicy), OperatorNamespace: o.operatorNamespace,
		Now: time.Now, Random: rand.Reader, Concurrency: o.concurrency,
		Namespaces: splitNamespaces(o.namespaces),
	}).SetupWithManager(mgr)
	if err != nil {
		return err
	}
	err = (&controllers.LatencyComparisonReconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("authstack"),
		Now: time.Now, Namespaces: splitNamespaces(o.namespaces), Concurrency: o.concurrency, Images: o.images,
	}).SetupWithManager(mgr)
	if err != nil {
		return err
	}
	if err := ctrlmetrics.Registry.Register(controllers.Metrics(mgr.GetClient(), mgr.GetAPIReader(), splitNamespaces(o.namespaces))); err != nil {
		return err
	}
	return (&controllers.LatencyTestReconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("authstack"),
		Logs: controllers.PodLogs{Clientset: clientset}, Users: controllers.AdminAPI{}, Database: &sqlclient.Client{},
		Images: o.images, ImagePullPolicy: corev1.PullPolicy(o.k6PullPolicy),
		Now: time.Now, Random: rand.Reader, Concurrency: o.concurrency,
		Namespaces: splitNamespaces(o.namespaces),
	}).SetupWithManager(mgr)
}

func splitNamespaces(list string) []string {
	var namespaces []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			namespaces = append(namespaces, name)
		}
	}
	return namespaces
}

// ownNamespace is where the operator runs; empty outside of a cluster.
func ownNamespace() string {
	name, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

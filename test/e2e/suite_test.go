//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
)

// Where the demo puts its things; hack/demo/run.sh has the same names.
const (
	operatorNamespace  = "authstack-system"
	authentikNamespace = "demo"
	authentikStack     = "sso"
	autheliaNamespace  = "demo-authelia"
	autheliaStack      = "gate"
)

var (
	kube      client.Client
	clientset *kubernetes.Clientset
	restCfg   *rest.Config
)

func TestMain(m *testing.M) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		fmt.Fprintln(os.Stderr, "KUBECONFIG is not set; `make test-e2e` starts a cluster and sets it")
		os.Exit(1)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	exitOn(err)
	cfg.QPS, cfg.Burst = 50, 100
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	restCfg = cfg
	kube, err = client.New(cfg, client.Options{Scheme: scheme})
	exitOn(err)
	clientset, err = kubernetes.NewForConfig(cfg)
	exitOn(err)
	os.Exit(m.Run())
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// kubectl runs kubectl and returns what it printed.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := tryKubectl(args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func tryKubectl(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.Command("kubectl", args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// apply applies a manifest and removes its objects when the test ends.
func apply(t *testing.T, manifest string) {
	t.Helper()
	cmd := exec.Command("kubectl", "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
}

// makeNamespace makes a namespace that enforces the restricted Pod Security Standard and removes it
// when the test ends.
func makeNamespace(t *testing.T, name string) {
	t.Helper()
	apply(t, fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n  labels: {pod-security.kubernetes.io/enforce: restricted}\n", name))
	t.Cleanup(func() {
		_, _ = tryKubectl("delete", "authstacks,latencytests", "--all", "-n", name, "--wait", "--timeout=120s")
		_, _ = tryKubectl("delete", "namespace", name, "--wait=false")
	})
}

// eventually repeats check until it returns nil; the deadline only bounds a broken run.
func eventually(t *testing.T, what string, limit time.Duration, check func(context.Context) error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	var err error
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		err = check(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		time.Sleep(2 * time.Second)
	}
}

func getStack(ctx context.Context, namespace, name string) (*v1alpha1.AuthStack, error) {
	stack := &v1alpha1.AuthStack{}
	return stack, kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, stack)
}

// stackReady is nil when the stack is Ready for its newest spec and every Pod of it is.
func stackReady(ctx context.Context, namespace, name string) error {
	stack, err := getStack(ctx, namespace, name)
	if err != nil {
		return err
	}
	ready := meta.FindStatusCondition(stack.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return fmt.Errorf("no Ready condition yet")
	}
	if ready.Status != "True" || stack.Status.ObservedGeneration != stack.Generation {
		return fmt.Errorf("Ready=%s (%s: %s), generation %d observed %d",
			ready.Status, ready.Reason, ready.Message, stack.Generation, stack.Status.ObservedGeneration)
	}
	pods := &corev1.PodList{}
	if err := kube.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.StackLabel: name}); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodSucceeded || pod.DeletionTimestamp != nil {
			continue
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
				return fmt.Errorf("Pod %s is not Ready", pod.Name)
			}
		}
	}
	return nil
}

func waitReady(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, "AuthStack "+namespace+"/"+name+" Ready", 5*time.Minute, func(ctx context.Context) error {
		return stackReady(ctx, namespace, name)
	})
}

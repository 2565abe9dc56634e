// Package cluster is what the tests on a whole cluster share: clients, kubectl, waiting.
package cluster

import (
	"bytes"
	"context"
	"errors"
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

// Connection to the cluster of KUBECONFIG.
type Connection struct {
	client.Client
	Clientset *kubernetes.Clientset
	Config    *rest.Config
}

// Connect to the cluster of KUBECONFIG.
func Connect() (*Connection, error) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		return nil, errors.New("KUBECONFIG is not set; `make test-e2e` and `make test-ceph` start a cluster and set it")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 50, 100
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	c := &Connection{Config: config}
	if c.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	c.Clientset, err = kubernetes.NewForConfig(config)
	return c, err
}

// Kubectl runs kubectl and returns what it printed.
func Kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := TryKubectl(args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TryKubectl is Kubectl for what may fail.
func TryKubectl(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.Command("kubectl", args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// Apply a manifest.
func Apply(t *testing.T, manifest string) {
	t.Helper()
	cmd := exec.Command("kubectl", "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
}

// MakeNamespace makes a namespace that enforces the restricted Pod Security Standard and removes it
// when the test ends.
func MakeNamespace(t *testing.T, name string) {
	t.Helper()
	Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n  labels: {pod-security.kubernetes.io/enforce: restricted}\n", name))
	t.Cleanup(func() {
		_, _ = TryKubectl("delete", "latencycomparisons,authstacks,latencytests", "--all", "-n", name, "--wait", "--timeout=120s")
		_, _ = TryKubectl("delete", "namespace", name, "--wait=false")
	})
}

// Eventually repeats check until it returns nil; the deadline only bounds a broken run.
func Eventually(t *testing.T, what string, limit time.Duration, check func(context.Context) error) {
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

// Stack reads an AuthStack.
func (c *Connection) Stack(ctx context.Context, namespace, name string) (*v1alpha1.AuthStack, error) {
	stack := &v1alpha1.AuthStack{}
	return stack, c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, stack)
}

// StackReady is nil when the stack is Ready for its newest spec and every Pod of it is.
func (c *Connection) StackReady(ctx context.Context, namespace, name string) error {
	stack, err := c.Stack(ctx, namespace, name)
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
	if err := c.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.StackLabel: name}); err != nil {
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

// WaitReady until a stack is.
func (c *Connection) WaitReady(t *testing.T, namespace, name string) {
	t.Helper()
	Eventually(t, "AuthStack "+namespace+"/"+name+" Ready", 5*time.Minute, func(ctx context.Context) error {
		return c.StackReady(ctx, namespace, name)
	})
}

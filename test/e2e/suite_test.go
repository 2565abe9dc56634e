//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/test/cluster"
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
	kube      *cluster.Connection
	clientset *kubernetes.Clientset
	restCfg   *rest.Config

	kubectl, tryKubectl  = cluster.Kubectl, cluster.TryKubectl
	apply, makeNamespace = cluster.Apply, cluster.MakeNamespace
	eventually           = cluster.Eventually
)

func TestMain(m *testing.M) {
	var err error
	if kube, err = cluster.Connect(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	clientset, restCfg = kube.Clientset, kube.Config
	os.Exit(m.Run())
}

func getStack(ctx context.Context, namespace, name string) (*v1alpha1.AuthStack, error) {
	return kube.Stack(ctx, namespace, name)
}

func waitReady(t *testing.T, namespace, name string) {
	t.Helper()
	kube.WaitReady(t, namespace, name)
}

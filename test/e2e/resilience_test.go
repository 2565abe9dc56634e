//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// shape is the spec of every object that a stack is made of, so that two moments can be compared.
func shape(t *testing.T, namespace, stack string) map[string]string {
	t.Helper()
	ctx := context.Background()
	shapes := map[string]string{}
	add := func(kind, name string, spec any) {
		data, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		shapes[kind+"/"+name] = string(data)
	}
	opts := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{"authstack.dev/stack": stack}}
	deployments, sets, secrets, maps, services := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{}
	for _, list := range []client.ObjectList{deployments, sets, secrets, maps, services} {
		if err := kube.List(ctx, list, opts...); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range deployments.Items {
		add("Deployment", o.Name, o.Spec)
	}
	for _, o := range sets.Items {
		add("StatefulSet", o.Name, o.Spec)
	}
	for _, o := range secrets.Items {
		add("Secret", o.Name, o.Data)
	}
	for _, o := range services.Items {
		add("Service", o.Name, o.Spec)
	}
	for _, o := range maps.Items {
		if !strings.HasSuffix(o.Name, "-result") {
			add("ConfigMap", o.Name, o.Data)
		}
	}
	return shapes
}

func sameShape(t *testing.T, before, after map[string]string) {
	t.Helper()
	var names []string
	for name := range before {
		names = append(names, name)
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		if before[name] != after[name] {
			t.Errorf("%s is another than before", name)
		}
	}
}

func TestAStackComesBackToTheSameStateAfterEachOfItsPodsIsDeleted(t *testing.T) {
	for namespace, name := range map[string]string{authentikNamespace: authentikStack, autheliaNamespace: autheliaStack} {
		before := shape(t, namespace, name)
		if len(before) == 0 {
			t.Fatalf("no objects of %s/%s", namespace, name)
		}
		kubectl(t, "delete", "pods", "--all", "-n", namespace, "--wait=false")
		time.Sleep(3 * time.Second) // let the deletion be seen before Ready is asked for
		waitReady(t, namespace, name)
		sameShape(t, before, shape(t, namespace, name))
	}
}

func TestTheOperatorKilledAgainAndAgainWhileAStackIsMadeStillMakesIt(t *testing.T) {
	const namespace, name = "e2e-kill", "sso"
	makeNamespace(t, namespace)
	apply(t, fmt.Sprintf(smallAuthentik, name, namespace))
	for i := range 6 {
		time.Sleep(time.Duration(700+600*i) * time.Millisecond)
		// -9: no chance to finish anything. The kubelet starts it again.
		_ = exec.Command("pkill", "-9", "-x", "manager").Run()
	}
	waitReady(t, namespace, name)
	eventually(t, "measured exactly once", 6*time.Minute, func(ctx context.Context) error {
		stack, err := getStack(ctx, namespace, name)
		if err != nil {
			return err
		}
		if stack.Status.Latency == nil || stack.Status.Latency.Verdict == "" {
			return errorf("no verdict yet")
		}
		return nil
	})
	out := kubectl(t, "get", "latencytests", "-n", namespace, "-o", "name")
	if n := len(strings.Fields(out)); n != 1 {
		t.Errorf("%d LatencyTests after kills, want 1:\n%s", n, out)
	}
}

func TestARestartOfTheAPIServerChangesNothing(t *testing.T) {
	before := shape(t, authentikNamespace, authentikStack)
	// The test cluster's, and no other that this machine runs.
	noted := filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "run", "kube-apiserver.pid")
	if err := exec.Command("pkill", "-9", "-F", noted).Run(); err != nil {
		t.Fatalf("killing the API server: %v", err)
	}
	eventually(t, "the API server is back", 2*time.Minute, func(context.Context) error {
		_, err := tryKubectl("get", "--raw", "/readyz")
		return err
	})
	waitReady(t, authentikNamespace, authentikStack)
	sameShape(t, before, shape(t, authentikNamespace, authentikStack))
}

const smallAuthentik = `
apiVersion: authstack.dev/v1alpha1
kind: AuthStack
metadata: {name: %s, namespace: %s}
spec:
  host: sso.example.com
  authentik:
    version: "2026.8.3"
    # Small requests: two cores hold the demo's stacks beside this one.
    server: {replicas: 1, resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 512Mi}}}
    worker: {resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 512Mi}}}
  postgres: {resources: {requests: {cpu: 20m, memory: 256Mi}, limits: {memory: 512Mi}}}
  latency: {scenarios: [{name: Login, iterations: 20, warmUpIterations: 2}]}
`

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"authstack.dev/authstack/api/v1alpha1"
)

func TestAuthentikBefore202510RunsWithItsRedis(t *testing.T) {
	const namespace, name = "e2e-redis", "old"
	makeNamespace(t, namespace)
	apply(t, fmt.Sprintf(`
apiVersion: authstack.dev/v1alpha1
kind: AuthStack
metadata: {name: %s, namespace: %s}
spec:
  host: sso.example.com
  authentik:
    version: "2025.8.4"
    server: {replicas: 1, resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 512Mi}}}
    worker: {resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 512Mi}}}
  postgres: {resources: {requests: {cpu: 20m, memory: 256Mi}, limits: {memory: 512Mi}}}
  deletionPolicy: Delete
  latency: {mode: Manual}
`, name, namespace))
	waitReady(t, namespace, name)
	stack, err := getStack(context.Background(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	if stack.Status.Cache == nil || stack.Status.Cache.Kind != "redis" {
		t.Errorf("cache is %+v, want redis", stack.Status.Cache)
	}
	kubectl(t, "delete", "authstack", name, "-n", namespace, "--timeout=120s")
	eventually(t, "deletionPolicy Delete takes the volumes", 2*time.Minute, func(context.Context) error {
		out, err := tryKubectl("get", "pvc", "-n", namespace, "-o", "name")
		if err != nil || strings.TrimSpace(out) == "" || strings.Contains(out, "No resources") {
			return err
		}
		return errorf("still there: %s", out)
	})
}

func TestACephStackOnAClusterWithoutCephSaysWhichClassesExist(t *testing.T) {
	const namespace, name = "e2e-ceph", "sso"
	makeNamespace(t, namespace)
	apply(t, fmt.Sprintf(`
apiVersion: authstack.dev/v1alpha1
kind: AuthStack
metadata: {name: %s, namespace: %s}
spec:
  host: sso.example.com
  authentik: {version: "2026.8.3"}
  postgres: {storage: {cephRBD: {}}}
`, name, namespace))
	eventually(t, "StorageReady is False with the list", time.Minute, func(ctx context.Context) error {
		stack, err := getStack(ctx, namespace, name)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(stack.Status.Conditions, v1alpha1.ConditionStorageReady)
		if c == nil || c.Reason != v1alpha1.ReasonStorageClassMissing || !strings.Contains(c.Message, "local-path") {
			return errorf("StorageReady is %+v", c)
		}
		return nil
	})
}

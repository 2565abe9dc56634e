//go:build ceph

package ceph

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/test/cluster"
	"authstack.dev/authstack/test/durability/load"
)

// The way of docs/moving-storage.md, as it is written there: from Ceph to the node's own disk, with everything that was
// acknowledged, until the old stack and its image are gone.
func TestADatabaseOfZalandosOperatorMovesFromCephToALocalDisk(t *testing.T) {
	if out, err := exec.Command("devcluster", "addon", "postgres-operator").CombinedOutput(); err != nil {
		t.Fatalf("devcluster addon postgres-operator: %v\n%s", err, out)
	}
	before := imagesNow(t)
	cluster.MakeNamespace(t, namespace)
	// Spilo's Pods are not restricted.
	cluster.Kubectl(t, "label", "namespace", namespace, "--overwrite", "pod-security.kubernetes.io/enforce=privileged")
	written := func(name, storage string) string {
		return manifest(name, fmt.Sprintf(`{zalando: {version: "17", instances: 1}, storage: {size: 1Gi, %s: {}, probe: {mode: Manual}},
    resources: {requests: {cpu: 20m, memory: 256Mi}, limits: {memory: 768Mi}}}`, storage))
	}
	cluster.Apply(t, written("old", "cephRBD"))
	old := &stack{t: t, name: "old", durability: v1alpha1.DurabilityIdentity, zalando: true}
	old.begin(t)
	old.logsIn()
	old.start(1)
	time.Sleep(5 * time.Second)
	old.crowd.Stop()
	if err := old.crowd.Wait(); err != nil {
		t.Fatal(err)
	}
	acknowledged, all := old.ledger.Acknowledged()
	if !all {
		t.Fatalf("the load did not do everything that it can in %d commits", acknowledged)
	}

	path := filepath.Join(t.TempDir(), "new.yaml")
	if err := os.WriteFile(path, []byte(written("new", "localNVMe")), 0o600); err != nil {
		t.Fatal(err)
	}
	move := func() ([]byte, error) {
		return exec.Command("../../hack/moving/zalando.sh", namespace, "old", path, "local-path").CombinedOutput()
	}
	out, err := move()
	t.Logf("the words of the move:\n%s", out)
	if err != nil {
		t.Fatal(err)
	}

	moved := &stack{t: t, name: "new", durability: v1alpha1.DurabilityIdentity, zalando: true, ledger: old.ledger}
	kube.WaitReady(t, namespace, "new")
	moved.look()
	if moved.password != old.password {
		t.Error("the new stack has another administrator than the one in its data")
	}
	moved.check()
	if moved.broken != (load.Broken{}) {
		t.Errorf("of %d acknowledged commits there are missing: %+v", acknowledged, moved.broken)
	}
	moved.logsIn()
	found, err := kube.Stack(context.Background(), namespace, "new")
	if err != nil {
		t.Fatal(err)
	}
	if medium := found.Status.Storage.Medium; medium != v1alpha1.MediumNodeLocal {
		t.Errorf("the database is on %s now", medium)
	}
	if out, err := move(); err != nil {
		t.Errorf("run again, it does not see that it is done: %v\n%s", err, out)
	}

	cluster.Kubectl(t, "delete", "authstack", "old", "-n", namespace, "--wait", "--timeout=180s")
	cluster.Eventually(t, "the old image is gone", 3*time.Minute, func(context.Context) error { return sameImages(before) })
	moved.logsIn()
	var claims corev1.PersistentVolumeClaimList
	if err := kube.List(context.Background(), &claims, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(claims.Items) != 1 || claims.Items[0].Name != "pgdata-new-postgres-0" {
		t.Errorf("claims: %v", claims.Items)
	}
}

//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/test/cluster"
)

const comparisonManifest = `
apiVersion: authstack.dev/v1alpha1
kind: AuthStack
metadata: {name: sso, namespace: ceph-compared}
spec:
  host: sso.example.com
  suspend: true
  authentik:
    version: "2026.8.3"
    server: {replicas: 1, resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 512Mi}}}
    worker: {replicas: 1, resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 512Mi}}}
  postgres:
    durability: Strict
    storage: {size: 1Gi, probe: {short: 2s, long: 5s}}
    resources: {requests: {cpu: 20m, memory: 128Mi}, limits: {memory: 512Mi}}
---
apiVersion: authstack.dev/v1alpha1
kind: LatencyComparison
metadata: {name: media, namespace: ceph-compared}
spec:
  stackRef: {name: sso}
  rounds: 2
  warmUpRounds: 0
  settleSeconds: 1
  scenarios: [{name: Login, iterations: 10, warmUpIterations: 2}]
  variants:
    - {name: local, patch: {postgres: {storage: {localNVMe: {}}}}}
    - {name: ceph, patch: {postgres: {storage: {cephRBD: {}}}}}
`

// The operator is killed at random moments while a comparison of both media runs. It comes to its end, both storages are
// probed, and no variant, claim, image or namespace is left over.
func TestAComparisonSurvivesTheOperatorsDeaths(t *testing.T) {
	const in, name = "ceph-compared", "media"
	before := imagesNow(t)
	cluster.MakeNamespace(t, in)
	cluster.Apply(t, comparisonManifest)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	var found v1alpha1.LatencyComparison
	media := map[v1alpha1.Medium]*v1alpha1.StorageProbeStatus{}
	next, kills := time.Now().Add(time.Second), 0
	cluster.Eventually(t, "the comparison is over", 20*time.Minute, func(ctx context.Context) error {
		if time.Now().After(next) {
			if killed, err := killOperator(ctx, t); err != nil {
				return err
			} else if killed {
				kills++
			}
			// The next operator waits up to 15 s for the lease of the last one, so that some die before they have begun.
			next = time.Now().Add(time.Duration(10+random.IntN(40)) * time.Second)
		}
		if err := kube.Get(ctx, client.ObjectKey{Namespace: in, Name: name}, &found); err != nil {
			return err
		}
		var stacks v1alpha1.AuthStackList
		if err := kube.List(ctx, &stacks, client.MatchingLabels{v1alpha1.ComparisonLabel: name}); err != nil {
			return err
		}
		for _, st := range stacks.Items {
			if stored := st.Status.Storage; stored != nil && stored.Probe != nil && len(stored.Probe.Syncs) > 0 {
				media[stored.Medium] = stored.Probe
			}
		}
		if meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ConditionReady) {
			return nil
		}
		return errors.New(found.Status.Progress)
	})
	t.Logf("the operator was killed %d times; verdict %s: %s", kills, found.Status.Verdict, found.Status.Message)
	if kills < 3 {
		t.Errorf("the operator was killed %d times only", kills)
	}
	if found.Status.Verdict != v1alpha1.VerdictPassed && found.Status.Verdict != v1alpha1.VerdictInconclusive {
		t.Errorf("the verdict is %s: %s", found.Status.Verdict, found.Status.Message)
	}
	for _, variant := range found.Status.Variants {
		if variant.Rounds != 2 {
			t.Errorf("variant %s has %d rounds of 2", variant.Name, variant.Rounds)
		}
	}

	ceph, local := media[v1alpha1.MediumCephRBD], media[v1alpha1.MediumNodeLocal]
	if ceph == nil || local == nil {
		t.Fatalf("not both media were probed: %v", media)
	}
	t.Logf("fdatasync p50: Ceph RBD %d µs, the node's disk %d µs", ceph.Syncs[0].P50Micros, local.Syncs[0].P50Micros)
	if ceph.Syncs[0].P50Micros <= local.Syncs[0].P50Micros {
		t.Error("Ceph is not slower than the node's disk: one of them is not what it is called")
	}

	everything := cluster.Kubectl(t, "get", "authstacks,latencytests,jobs,pods,pvc,secrets,configmaps", "-A", "-l", v1alpha1.ComparisonLabel+"="+name,
		"-o", `jsonpath={range .items[*]}{.metadata.namespace}/{.kind} {.metadata.name}{"\n"}{end}`)
	for line := range strings.Lines(everything) {
		// The report stays with the comparison.
		if line != in+"/ConfigMap "+found.Status.ResultName+"\n" {
			t.Errorf("left over: %s", line)
		}
	}
	if out := cluster.Kubectl(t, "get", "namespaces", "-o", "name"); strings.Contains(out, "/"+name+"-") {
		t.Errorf("a namespace of a variant is left:\n%s", out)
	}
	for line := range strings.Lines(cluster.Kubectl(t, "get", "pvc,pv", "-A")) {
		if strings.Contains(line, " "+name+"-") || strings.Contains(line, " "+in+" ") {
			t.Errorf("left over: %s", line)
		}
	}
	if err := sameImages(before); err != nil {
		t.Error(err)
	}
}

// killOperator kills the operator with SIGKILL and deletes its Pod, so that no back-off holds the next one up; false where
// none runs at the moment.
func killOperator(ctx context.Context, t *testing.T) (bool, error) {
	t.Helper()
	pod, err := podOf(ctx, operatorNamespace, client.MatchingLabels{"app.kubernetes.io/name": "authstack"})
	if err != nil {
		return false, err
	}
	if killIn(t, pod, "/manager") == 0 {
		return false, nil
	}
	out, err := cluster.TryKubectl("delete", "pod", pod.Name, "-n", operatorNamespace, "--grace-period=0", "--force", "--wait=false")
	if err != nil {
		return true, fmt.Errorf("%w: %s", err, out)
	}
	return true, nil
}

//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/test/cluster"
)

const (
	namespace         = "ceph"
	operatorNamespace = "authstack-system"
	pool              = "replicapool"
)

var kube *cluster.Connection

func TestMain(m *testing.M) {
	var err error
	if kube, err = cluster.Connect(); err == nil && os.Getuid() != 0 {
		err = errors.New("these tests kill processes of the test cluster and need root")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// manifest of a stack with this spec.postgres. Its requests are small: two cores hold three of them, and three OSDs.
func manifest(name, postgres string) string {
	return fmt.Sprintf(`
apiVersion: authstack.dev/v1alpha1
kind: AuthStack
metadata: {name: %s, namespace: %s}
spec:
  host: sso.example.com
  authentik:
    version: "2026.8.3"
    server: {replicas: 1, resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 512Mi}}}
    worker: {replicas: 1, resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 512Mi}}}
  postgres: %s
  deletionPolicy: Delete
  latency: {mode: Manual}
`, name, namespace, postgres)
}

// makeStacks makes a stack for each durability, named after it. They go with the test, and with them their images.
func makeStacks(t *testing.T, durabilities ...v1alpha1.Durability) []*stack {
	t.Helper()
	before := imagesNow(t)
	t.Cleanup(func() {
		cluster.Eventually(t, "the images of the stacks are gone", 3*time.Minute, func(context.Context) error { return sameImages(before) })
	})
	cluster.MakeNamespace(t, namespace)
	var stacks []*stack
	for _, durability := range durabilities {
		s := &stack{t: t, name: strings.ToLower(string(durability)), durability: durability}
		cluster.Apply(t, manifest(s.name, fmt.Sprintf(`{durability: %s, storage: {size: 1Gi, cephRBD: {}, probe: {mode: Manual, short: 5s, long: 5s}},
    resources: {requests: {cpu: 20m, memory: 128Mi}, limits: {memory: 512Mi}}}`, durability)))
		stacks = append(stacks, s)
	}
	return stacks
}

// order gives an order to the test cluster's Ceph.
func order(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("devcluster", append([]string{"ceph"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("devcluster ceph %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// images are those in Ceph's pool.
func images() ([]string, error) {
	status, err := exec.Command("devcluster", "ceph", "status").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("devcluster ceph status: %w\n%s", err, status)
	}
	var configuration string
	for line := range strings.Lines(string(status)) {
		if path, found := strings.CutPrefix(line, "configuration"); found {
			configuration = strings.TrimSpace(path)
		}
	}
	out, err := exec.Command("timeout", "30", "rbd", "--conf", configuration, "ls", pool).Output()
	if err != nil {
		return nil, fmt.Errorf("rbd ls: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// imagesNow are the images at the beginning of a test.
func imagesNow(t *testing.T) []string {
	t.Helper()
	found, err := images()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// sameImages is an error where there is an image that was not there before.
func sameImages(before []string) error {
	had := map[string]bool{}
	for _, image := range before {
		had[image] = true
	}
	now, err := images()
	if err != nil {
		return err
	}
	for _, image := range now {
		if !had[image] {
			return fmt.Errorf("image %s is left in pool %s", image, pool)
		}
	}
	return nil
}

// processes are those whose command line and cgroup the condition takes.
func processes(t *testing.T, take func(command, cgroup string) bool) []int {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, entry := range entries {
		command, _ := os.ReadFile(filepath.Join(entry, "cmdline"))
		cgroup, _ := os.ReadFile(filepath.Join(entry, "cgroup"))
		if pid, _ := strconv.Atoi(filepath.Base(entry)); len(command) > 0 && take(strings.ReplaceAll(string(command), "\x00", " "), string(cgroup)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill -9 all processes of a Pod's container whose command line has the word, and says how many.
func killIn(t *testing.T, pod *corev1.Pod, word string) int {
	t.Helper()
	pids := processes(t, func(command, cgroup string) bool {
		return strings.Contains(cgroup, string(pod.UID)) && strings.Contains(command, word)
	})
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return len(pids)
}

// podOf is the one Pod with these labels that is not on its way out.
func podOf(ctx context.Context, in string, labels client.MatchingLabels) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := kube.List(ctx, &pods, client.InNamespace(in), labels); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			return &pods.Items[i], nil
		}
	}
	return nil, fmt.Errorf("no Pod with %v in %s", labels, in)
}

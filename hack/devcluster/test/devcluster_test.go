//go:build devcluster

// Package test runs a real cluster from nothing to nothing, in a state folder
// of its own beside whatever else runs on the machine:
//
//	go test -tags devcluster -count 1 -v ./test/
package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"authstack.dev/authstack/hack/devcluster/internal/layout"
)

const state = "/var/lib/authstack/devcluster-test"

const pod = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: client, labels: {app: client}}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 999, runAsGroup: 999, fsGroup: 999}
  containers:
  - name: client
    image: docker.io/library/redis:8
    args: ["redis-server", "--protected-mode", "no", "--dir", "/data", "--appendonly", "yes"]
    readinessProbe: {tcpSocket: {port: 6379}, periodSeconds: 1}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: v1
kind: Service
metadata: {name: redis}
spec: {selector: {app: client}, ports: [{port: 6379}]}
`

func TestClusterFromNothingToNothing(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("a cluster needs root; run as root")
	}
	l, err := layout.New(state)
	if err != nil {
		t.Fatal(err)
	}
	d := tool{t, state}
	d.run("down") // what an earlier run of this test may have left, and proof that down is safe
	before := survey(t)
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := d.try("status")
			t.Log(out)
		}
		_, _ = tool{t, state}.try("down")
	})

	d.run("up")
	t.Run("up again changes nothing", func(t *testing.T) {
		supervisor := pid(t, l, "supervisor")
		record := modified(t, l, "cluster.json", "config/parts.json", "kubeconfig")
		tool{t, state}.run("up") // It logs its time.
		if now := modified(t, l, "cluster.json", "config/parts.json", "kubeconfig"); now != record {
			t.Errorf("it wrote: %s, before %s", now, record)
		}
		if got := pid(t, l, "supervisor"); got != supervisor {
			t.Errorf("there is a new supervisor")
		}
	})
	t.Run("a volume is provisioned, used by a pod that is not root, found by name, removed", func(t *testing.T) { testPod(t, l) })
	t.Run("a part that is killed comes back", func(t *testing.T) { testParts(t, l) })
	t.Run("Ceph is added to what runs: volumes on it are provisioned, used, grown, removed; OSDs fail and come back", func(t *testing.T) { testCeph(t, l) })
	t.Run("up heals a cluster whose supervisor was killed, and pods live on", func(t *testing.T) { testSupervisor(t, l) })
	t.Run("up replaces a cluster whose processes are all gone", func(t *testing.T) { testAllGone(t, l) })
	t.Run("down leaves nothing", func(t *testing.T) {
		d := tool{t, state}
		d.run("down")
		d.run("down")
		if found := processes(t, l); len(found) > 0 {
			t.Errorf("processes: %v", found)
		}
		// The kernel takes a moment to let go of a namespace.
		eventually(t, "the machine as it was", patience, func() error {
			if left := before.left(survey(t), []string{"/devcluster/", "/sys/fs/cgroup/process_api"}); len(left) > 0 {
				return errors.New("left behind:\n" + strings.Join(left, "\n"))
			}
			return nil
		})
		if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the state folder is still there: %v", err)
		}
	})
}

func testPod(t *testing.T, l layout.Layout) {
	d := tool{t, state}
	d.run("load", "redis")
	d.apply(pod)
	d.run("kubectl", "wait", "--for=condition=Ready", "--timeout=90s", "pod/client")
	// Rules for a Service follow its pod's readiness a moment later, as in any cluster.
	eventually(t, "the pod is reached by its Service's name", patience, func() error {
		got, err := d.try("kubectl", "exec", "client", "--", "redis-cli", "-h", "redis.default.svc.cluster.local", "set", "a", "b")
		if err == nil && strings.TrimSpace(got) != "OK" {
			err = fmt.Errorf("%q", got)
		}
		return err
	})
	if _, err := d.try("kubectl", "exec", "client", "--", "getent", "hosts", "example.com"); err == nil {
		t.Error("a name outside of the cluster was found")
	}
	if got := d.run("kubectl", "logs", "client"); !strings.Contains(got, "Ready to accept connections") {
		t.Errorf("logs: %q", got)
	}
	for path, want := range map[string]string{
		"metrics/cadvisor": `container="client"`,
		"stats/summary":    `"name": "client"`,
	} {
		eventually(t, path, patience, func() error {
			out, err := d.try("kubectl", "get", "--raw", "/api/v1/nodes/devcluster/proxy/"+path)
			if err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("no %s in it", want)
			}
			return err
		})
	}
	volumes := func() int {
		entries, _ := os.ReadDir(filepath.Join(l.State, "volumes", "local"))
		return len(entries)
	}
	if got := volumes(); got != 1 {
		t.Errorf("%d folders for one volume", got)
	}
	d.run("kubectl", "delete", "pod/client", "pvc/data", "--timeout=60s")
	eventually(t, "the volume's folder is removed", patience, func() error {
		if got := volumes(); got != 0 {
			return fmt.Errorf("%d are left", got)
		}
		return nil
	})
	d.run("kubectl", "delete", "service", "redis")
}

func testParts(t *testing.T, l layout.Layout) {
	d := tool{t, state}
	d.run("kubectl", "create", "configmap", "kept", "--from-literal=a=b")
	for _, part := range []string{"etcd", "containerd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "storage"} {
		began := time.Now()
		old := pid(t, l, part)
		if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, part+" is started again", patience, func() error {
			if now := pid(t, l, part); now == old {
				return errors.New("not yet")
			}
			_, err := d.try("status")
			return err
		})
		t.Logf("%s: back after %.1fs", part, time.Since(began).Seconds())
	}
	d.run("up")
	if got := d.run("kubectl", "get", "configmap", "kept", "-o", "jsonpath={.data.a}"); got != "b" {
		t.Errorf("the data is gone: %q", got)
	}
}

func testSupervisor(t *testing.T, l layout.Layout) {
	d := tool{t, state}
	uid := d.run("kubectl", "get", "namespace", "default", "-o", "jsonpath={.metadata.uid}")
	dns := d.run("kubectl", "-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-dns", "-o", "jsonpath={.items[*].metadata.name} {.items[*].status.containerStatuses[*].restartCount}")
	if err := syscall.Kill(pid(t, l, "supervisor"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "status tells", 10*time.Second, func() error {
		if _, err := d.try("status"); err == nil {
			return errors.New("it says that all is well")
		}
		return nil
	})
	d.run("up")
	if got := d.run("kubectl", "get", "namespace", "default", "-o", "jsonpath={.metadata.uid}"); got != uid {
		t.Error("it is another cluster")
	}
	goesOn(t) // on its volume of Ceph, whose OSDs ended with the supervisor
	if got := d.run("kubectl", "-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-dns", "-o", "jsonpath={.items[*].metadata.name} {.items[*].status.containerStatuses[*].restartCount}"); got != dns {
		t.Errorf("the DNS pod did not live on: %q, before %q", got, dns)
	}
}

// testAllGone is what a machine looks like that was handed on with its files
// and mounts but without its processes.
func testAllGone(t *testing.T, l layout.Layout) {
	for range 20 {
		for _, p := range processes(t, l) {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	eventually(t, "all processes are gone", patience, func() error {
		if found := processes(t, l); len(found) > 0 {
			return fmt.Errorf("%v", found)
		}
		return nil
	})
	// With the mounts and loop devices of a volume that nobody serves any more.
	d := tool{t, state}
	d.run("up")
	d.run("ceph", "status")
	if got := images(t, l); got != "" {
		t.Errorf("the new Ceph has the old one's images: %s", got)
	}
}

// modified says when files of the state folder were written last.
func modified(t *testing.T, l layout.Layout, names ...string) string {
	t.Helper()
	var all []string
	for _, name := range names {
		info, err := os.Stat(filepath.Join(l.State, name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name+" "+info.ModTime().String())
	}
	return strings.Join(all, ", ")
}

func pid(t *testing.T, l layout.Layout, part string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(l.State, "run", part+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

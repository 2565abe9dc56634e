//go:build devcluster

package test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"authstack.dev/authstack/hack/devcluster/internal/layout"
)

// writer counts: each number is written to a volume on Ceph and synced, and only
// then, as acknowledged, to a local one.
const writer = `
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 999, runAsGroup: 999, fsGroup: 999}
  containers:
  - name: writer
    image: docker.io/library/redis:8
    command:
    - sh
    - -c
    - |
      n=$(sed 's/^0*//' /replicated/n); n=${n:-0}; echo "started from $n"
      while n=$((n + 1)); printf %08d $n | dd of=/replicated/n conv=notrunc,fsync status=none; do
        printf %08d $n | dd of=/local/n conv=notrunc status=none; sleep 0.05
      done
    volumeMounts: [{name: replicated, mountPath: /replicated}, {name: local, mountPath: /local}]
  volumes:
  - {name: replicated, persistentVolumeClaim: {claimName: replicated}}
  - {name: local, persistentVolumeClaim: {claimName: local}}
`

const claims = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: replicated}
spec: {storageClassName: ceph-block, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: local}
spec: {storageClassName: local-path, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
`

func testCeph(t *testing.T, l layout.Layout) {
	d := tool{t, state}
	if out, err := d.try("ceph", "osd", "stop", "0"); err == nil || !strings.Contains(err.Error(), "up --ceph") {
		t.Errorf("an order to a Ceph that is not there: %s, %v", out, err)
	}
	uid := d.run("kubectl", "get", "namespace", "default", "-o", "jsonpath={.metadata.uid}")
	d.run("up", "--ceph")
	if got := d.run("kubectl", "get", "namespace", "default", "-o", "jsonpath={.metadata.uid}"); got != uid {
		t.Error("it is another cluster")
	}
	startWriter(t)

	t.Run("the volume is an image under the name of Rook's driver", func(t *testing.T) {
		volume := d.run("kubectl", "get", "pvc", "replicated", "-o", "jsonpath={.spec.volumeName}")
		if got := images(t, l); got != volume {
			t.Errorf("the pool has %q, want %q", got, volume)
		}
		if got := d.run("kubectl", "get", "pv", volume, "-o", "jsonpath={.spec.csi.driver}"); got != "rook-ceph.rbd.csi.ceph.com" {
			t.Errorf("its driver is %q", got)
		}
	})
	t.Run("both media are timed, for the log", func(t *testing.T) {
		for _, dir := range []string{"replicated", "local"} {
			out := d.run("kubectl", "exec", "writer", "--", "/usr/lib/postgresql/17/bin/pg_test_fsync", "-s", "1", "-f", "/"+dir+"/timed")
			for line := range strings.Lines(out) {
				if strings.Contains(line, "two 8kB writes") {
					break
				}
				if strings.Contains(line, "sync") && strings.Contains(line, "usecs/op") {
					t.Log(dir, strings.Join(strings.Fields(line), " "))
				}
			}
		}
	})
	t.Run("one OSD stopped: writes go on; two: they wait, and go on after a start", func(t *testing.T) {
		d.run("ceph", "osd", "stop", "2")
		goesOn(t)
		d.run("ceph", "osd", "stop", "1")
		// A write that both had acknowledged may still be on its way to the log.
		before := acknowledged(t)
		eventually(t, "no write is acknowledged for three seconds", patience, func() error {
			time.Sleep(3 * time.Second)
			last := before
			if before = acknowledged(t); before != last {
				return fmt.Errorf("it went on from %d to %d", last, before)
			}
			return nil
		})
		time.Sleep(5 * time.Second)
		if now := acknowledged(t); now != before {
			t.Errorf("with one OSD of three %d writes were acknowledged", now-before)
		}
		if out := d.run("ceph", "status"); strings.Count(out, "stopped on order") != 2 {
			t.Errorf("status does not tell of two stopped OSDs:\n%s", out)
		}
		d.run("ceph", "osd", "start", "1")
		goesOn(t)
		d.run("ceph", "start")
	})
	t.Run("a slow OSD is said to be slow, until it is not", func(t *testing.T) {
		d.run("ceph", "osd", "slow", "0", "10")
		if out := d.run("ceph", "status"); strings.Count(out, "up to 10ms") != 1 {
			t.Errorf("status:\n%s", out)
		}
		d.run("ceph", "osd", "slow", "0", "off")
		if out := d.run("ceph", "status"); strings.Contains(out, "up to") {
			t.Errorf("status:\n%s", out)
		}
		goesOn(t)
	})
	t.Run("what was acknowledged survives the end of all OSDs, and a larger claim is filled", func(t *testing.T) {
		d.run("ceph", "kill")
		promised := acknowledged(t)
		d.run("ceph", "start")
		goesOn(t)
		d.run("kubectl", "patch", "pvc", "replicated", "-p", `{"spec": {"resources": {"requests": {"storage": "2Gi"}}}}`)
		eventually(t, "the image is grown", patience, func() error {
			got, err := d.try("kubectl", "get", "pv", "-o", "jsonpath={.items[*].spec.capacity.storage}")
			if err == nil && !strings.Contains(got, "2Gi") {
				err = errors.New(got)
			}
			return err
		})
		// A new pod has it from the image, and not from the page cache.
		d.run("kubectl", "delete", "pod/writer", "--timeout=60s")
		eventually(t, "the image is detached", patience, func() error {
			attached, err := os.ReadDir(l.InState("volumes", "ceph"))
			if err == nil && len(attached) > 0 {
				err = errors.New(attached[0].Name())
			}
			return err
		})
		d.apply(writer)
		d.run("kubectl", "wait", "--for=condition=Ready", "--timeout=90s", "pod/writer")
		goesOn(t)
		first, _, _ := strings.Cut(d.run("kubectl", "logs", "writer"), "\n")
		found, err := strconv.Atoi(strings.TrimPrefix(first, "started from "))
		if err != nil || found < promised {
			t.Errorf("%d was acknowledged, and the log says %q", promised, first)
		}
		eventually(t, "the claim has its new size", patience, func() error {
			got, err := d.try("kubectl", "get", "pvc", "replicated", "-o", "jsonpath={.status.capacity.storage}")
			if err == nil && got != "2Gi" {
				err = errors.New(got)
			}
			return err
		})
	})
	t.Run("deleting the claim deletes the image", func(t *testing.T) {
		d.run("kubectl", "delete", "pod/writer", "pvc/replicated", "pvc/local", "--timeout=60s")
		eventually(t, "the pool is empty", patience, func() error {
			got, err := imagesNow(l)
			if err == nil && got != "" {
				err = errors.New(got)
			}
			return err
		})
	})
	t.Run("Rook's kinds can be had", func(t *testing.T) {
		d.run("addon", "rook-crds")
		d.run("kubectl", "get", "cephclusters,cephblockpools", "-A")
	})
	startWriter(t) // for what comes after
}

func startWriter(t *testing.T) {
	t.Helper()
	d := tool{t, state}
	d.apply(claims + writer)
	d.run("kubectl", "wait", "--for=condition=Ready", "--timeout=90s", "pod/writer")
	goesOn(t)
}

// acknowledged is the number that the writer last had synced.
func acknowledged(t *testing.T) int {
	t.Helper()
	out, err := tool{t, state}.try("kubectl", "exec", "writer", "--", "cat", "/local/n")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// goesOn waits until more writes are acknowledged.
func goesOn(t *testing.T) {
	t.Helper()
	before := -1
	eventually(t, "writes go on", time.Minute, func() error {
		out, err := tool{t, state}.try("kubectl", "exec", "writer", "--", "cat", "/local/n")
		if err != nil {
			return err
		}
		now, err := strconv.Atoi(strings.TrimSpace(out))
		switch {
		case err != nil:
			return err
		case before == -1:
			before = now
		}
		if now <= before {
			return fmt.Errorf("it stands at %d", now)
		}
		return nil
	})
}

// images lists what is in Ceph's pool.
func images(t *testing.T, l layout.Layout) string {
	t.Helper()
	var out string
	eventually(t, "rbd ls", patience, func() (err error) {
		out, err = imagesNow(l)
		return err
	})
	return out
}

func imagesNow(l layout.Layout) (string, error) {
	out, err := exec.Command("timeout", "30", "rbd", "--conf", l.InState("config", "ceph.conf"), "ls", "replicapool").Output()
	return strings.TrimSpace(string(out)), err
}

package ceph

import (
	"errors"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func TestClaimsThatCannotBeAnsweredAreRefused(t *testing.T) {
	block := corev1.PersistentVolumeBlock
	for name, test := range map[string]struct {
		change func(*controller.ProvisionOptions)
		fine   bool
	}{
		"a file system for one": {func(*controller.ProvisionOptions) {}, true},
		"a block device":        {func(o *controller.ProvisionOptions) { o.PVC.Spec.VolumeMode = &block }, false},
		"a choice by label":     {func(o *controller.ProvisionOptions) { o.PVC.Spec.Selector = &metav1.LabelSelector{} }, false},
		"a clone":               {func(o *controller.ProvisionOptions) { o.PVC.Spec.DataSource = &corev1.TypedLocalObjectReference{} }, false},
		"many users": {func(o *controller.ProvisionOptions) {
			o.PVC.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}, false},
		"a class that names no pool": {func(o *controller.ProvisionOptions) { o.StorageClass.Parameters = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := controller.ProvisionOptions{
				StorageClass: &storagev1.StorageClass{Parameters: map[string]string{"pool": "p"}},
				PVC:          &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}}},
			}
			test.change(&o)
			if _, err := refuse(o); (err == nil) != test.fine {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestDeleteTouchesNoImageOfAnotherName(t *testing.T) {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: Name, VolumeHandle: "pvc-2"},
		}},
	}
	var ignored *controller.IgnoredError
	if err := NewProvisioner("").Delete(t.Context(), volume); !errors.As(err, &ignored) {
		t.Errorf("%v, want it ignored", err)
	}
}

func TestVolumeHandlesAreNoPaths(t *testing.T) {
	n := &nodeServer{}
	for _, handle := range []string{"", "..", "a/b", "/etc"} {
		if _, err := n.lock(handle); err == nil {
			t.Errorf("%q was accepted", handle)
		}
	}
	unlock, err := n.lock("pvc-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.lock("pvc-1"); err == nil {
		t.Error("two calls work on one volume at once")
	}
	unlock()
	if _, err := n.lock("pvc-1"); err != nil {
		t.Error(err)
	}
}

func TestSizes(t *testing.T) {
	for bytes, want := range map[int64]int64{0: 1, 1: 1, mebibyte: 1, mebibyte + 1: 2, 1 << 30: 1024} {
		if got := inMebibytes(bytes); got != want {
			t.Errorf("%d bytes: %d MiB, want %d", bytes, got, want)
		}
	}
	got, err := fileSystemSize("dumpe2fs 1.47\nInode count: 65536\nBlock count:              262144\nFree blocks: 1\nBlock size:               4096\n")
	if err != nil || got != 1<<30 {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := fileSystemSize("Couldn't find valid filesystem superblock"); err == nil {
		t.Error("a size was read where none is")
	}
}

// A pid file may outlive its daemon, and its number become somebody else's.
func TestAnotherProcessIsNotTakenForTheDaemon(t *testing.T) {
	d := daemon{dir: t.TempDir(), run: t.TempDir()}
	if err := os.MkdirAll(d.dir+"/pvc-1", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.pidFile("pvc-1"), []byte("1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, running := d.process("pvc-1"); running {
		t.Error("init was taken for a qemu-storage-daemon")
	}
}

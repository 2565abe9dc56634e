package local

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func options(name string) controller.ProvisionOptions {
	return controller.ProvisionOptions{
		PVName:       name,
		StorageClass: &storagev1.StorageClass{Provisioner: Name},
		PVC: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
	}
}

func TestVolumeIsADirectoryThatAnybodyCanWriteAndIsPinnedToTheNode(t *testing.T) {
	p, err := New(t.TempDir(), "the-node")
	if err != nil {
		t.Fatal(err)
	}
	volume, _, err := p.Provision(t.Context(), options("pvc-1"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(volume.Spec.Local.Path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o777 {
		t.Errorf("mode %o, want 777", got)
	}
	if got := volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]; got != "the-node" {
		t.Errorf("pinned to %q", got)
	}
	if got := volume.Spec.PersistentVolumeReclaimPolicy; got != corev1.PersistentVolumeReclaimDelete {
		t.Errorf("reclaim policy %s", got)
	}
	if err := p.Delete(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(volume.Spec.Local.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestBlockVolumeIsRefused(t *testing.T) {
	p, err := New(t.TempDir(), "the-node")
	if err != nil {
		t.Fatal(err)
	}
	block := corev1.PersistentVolumeBlock
	o := options("pvc-1")
	o.PVC.Spec.VolumeMode = &block
	if _, _, err := p.Provision(t.Context(), o); err == nil {
		t.Error("a block volume was promised")
	}
}

func TestDeleteTouchesNothingElse(t *testing.T) {
	outside := t.TempDir()
	p, err := New(t.TempDir(), "the-node")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pvc-1", "..", "."} {
		for _, path := range []string{outside, filepath.Join(p.dir, name), p.dir} {
			if name == "pvc-1" && path == filepath.Join(p.dir, name) {
				continue
			}
			volume := &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}}},
			}
			var ignored *controller.IgnoredError
			if err := p.Delete(t.Context(), volume); !errors.As(err, &ignored) {
				t.Errorf("volume %q at %q: %v, want it ignored", name, path, err)
			}
		}
	}
	for _, dir := range []string{outside, p.dir} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}

package controllers

import (
	"testing"

	. "github.com/onsi/gomega"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/storage"
	"authstack.dev/authstack/test/rook"
)

// Rook itself is not there: the test says what Rook's operator would say of the pool.
func TestBlockPool(t *testing.T) {
	install := envtest.CRDInstallOptions{CRDs: rook.CRDs(t, "cephclusters", "cephblockpools")}
	if _, err := envtest.InstallCRDs(config, install); err != nil {
		t.Fatal(err)
	}
	ceph := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"dataDirHostPath": "/var/lib/rook"}}}
	ceph.SetGroupVersionKind(storage.CephClusterKind)
	ceph.SetNamespace(newNamespace(t))
	ceph.SetName("main")
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: ceph.GetNamespace() + ".rbd.csi.ceph.com"}}
	for _, object := range []client.Object{ceph, driver} {
		if err := server.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = server.Delete(t.Context(), driver)
		_ = envtest.UninstallCRDs(config, install)
	})
	for path, value := range map[string]string{"phase": "Ready", "ceph": "HEALTH_OK"} {
		fields := []string{"status", path}
		if path == "ceph" {
			fields = append(fields, "health")
		}
		if err := unstructured.SetNestedField(ceph.Object, value, fields...); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Status().Update(t.Context(), ceph); err != nil {
		t.Fatal(err)
	}

	pool := func(name string) (*unstructured.Unstructured, error) {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(storage.CephBlockPoolKind)
		return found, server.Get(t.Context(), types.NamespacedName{Namespace: ceph.GetNamespace(), Name: name}, found)
	}
	class := func(name string) error {
		return server.Get(t.Context(), types.NamespacedName{Name: name}, &storagev1.StorageClass{})
	}
	begin := func(w *world, name string, policy v1alpha1.DeletionPolicy) {
		w.create(func(st *v1alpha1.AuthStack) {
			st.Spec.DeletionPolicy = policy
			st.Spec.Postgres = &v1alpha1.PostgresSpec{Storage: &v1alpha1.StorageSpec{CephRBD: &v1alpha1.CephRBDStorage{
				BlockPool: &v1alpha1.CephBlockPoolSpec{Name: name, Replicas: ptr.To(int32(2)), FailureDomain: "rack"}}}}
		})
	}
	state := func(w *world) metav1.Condition {
		found := conditionIn(w.stack().Status.Conditions, v1alpha1.ConditionStorageReady)
		if found == nil {
			return metav1.Condition{}
		}
		return *found
	}
	ready := func(w *world, name string) {
		w.until("the pool is asked for", func() bool { _, err := pool(name); return err == nil })
		found, err := pool(name)
		w.must(err)
		w.must(unstructured.SetNestedField(found.Object, "Ready", "status", "phase"))
		w.must(server.Status().Update(t.Context(), found))
		w.until("Ready", w.ready)
		w.settle()
	}
	end := func(w *world) {
		w.must(server.Delete(t.Context(), w.stack()))
		w.until("gone", func() bool {
			return apierrors.IsNotFound(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "sso"}, &v1alpha1.AuthStack{}))
		})
	}

	t.Run("the pool and its class are made, waited for, and kept with the data", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		begin(w, "kept", v1alpha1.DeletionRetain)
		w.until("it waits for Rook", func() bool { return state(w).Reason == v1alpha1.ReasonCephPoolNotReady })
		g.Expect(state(w).Message).To(ContainSubstring("waiting for Rook to make CephBlockPool"))
		found, err := pool("kept")
		w.must(err)
		g.Expect(found.Object["spec"]).To(And(HaveKeyWithValue("failureDomain", "rack"), HaveKeyWithValue("replicated", HaveKeyWithValue("size", int64(2)))))
		g.Expect(class("kept")).To(Succeed())
		ready(w, "kept")
		g.Expect(w.stack().Status.Storage.StorageClassName).To(Equal("kept"))
		end(w)
		_, err = pool("kept")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(class("kept")).To(Succeed())
	})
	t.Run("with deletionPolicy Delete both go with the stack", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		begin(w, "gone", v1alpha1.DeletionDelete)
		ready(w, "gone")
		end(w)
		_, err := pool("gone")
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the pool: %v", err)
		g.Expect(apierrors.IsNotFound(class("gone"))).To(BeTrue())
	})
	t.Run("a pool that somebody else made is refused and left alone", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		theirs := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicated": map[string]any{"size": int64(3)}}}}
		theirs.SetGroupVersionKind(storage.CephBlockPoolKind)
		theirs.SetNamespace(ceph.GetNamespace())
		theirs.SetName("theirs")
		w.must(server.Create(t.Context(), theirs))
		begin(w, "theirs", v1alpha1.DeletionDelete)
		w.until("a refusal", func() bool { return state(w).Reason == v1alpha1.ReasonInvalidSpec })
		g.Expect(state(w).Message).To(ContainSubstring("give spec.postgres.storage.cephRBD.blockPool another name"))
		end(w)
		found, err := pool("theirs")
		w.must(err)
		g.Expect(found.GetResourceVersion()).To(Equal(theirs.GetResourceVersion()))
	})
	t.Run("a pool in Failure is said, with what to do", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		begin(w, "failing", v1alpha1.DeletionDelete)
		w.until("the pool is asked for", func() bool { _, err := pool("failing"); return err == nil })
		found, err := pool("failing")
		w.must(err)
		w.must(unstructured.SetNestedField(found.Object, "Failure", "status", "phase"))
		w.must(server.Status().Update(t.Context(), found))
		w.until("it is said", func() bool { return state(w).Reason == v1alpha1.ReasonCephPoolNotReady })
		w.settle()
		g.Expect(state(w).Message).To(ContainSubstring("is in phase Failure, kubectl describe it says why"))
	})
}

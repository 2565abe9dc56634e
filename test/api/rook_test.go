package api

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/part"
	"authstack.dev/authstack/internal/stack/storage"
	"authstack.dev/authstack/test/rook"
)

// TestRookTakesThePoolsThatWeMake applies them, strictly, to an API server that has Rook's own CRDs.
func TestRookTakesThePoolsThatWeMake(t *testing.T) {
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: rook.CRDs(t, "cephblockpools")}); err != nil {
		t.Fatal(err)
	}
	if err := server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "rook-ceph"}}); err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]v1alpha1.CephBlockPoolSpec{
		"sso-plain":  {Name: "sso-plain"},
		"sso-racks":  {Name: "sso-racks", Replicas: ptr.To(int32(2)), FailureDomain: "rack"},
		"sso-single": {Name: "sso-single", Replicas: ptr.To(int32(1)), FailureDomain: "osd"},
	} {
		t.Run(name, func(t *testing.T) {
			in := part.Input{
				Stack: &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sso"}},
				Facts: facts.Stack{Ceph: &facts.Ceph{
					Clusters: []facts.CephCluster{{Namespace: "rook-ceph", Name: "rook-ceph", Phase: "Ready", Health: "HEALTH_OK"}},
					Drivers:  []string{"rook-ceph.rbd.csi.ceph.com"},
				}},
			}
			got := storage.Resolve(in, &v1alpha1.StorageSpec{CephRBD: &v1alpha1.CephRBDStorage{BlockPool: &spec}}, nil)
			if len(got.Objects) != 2 {
				t.Fatalf("nothing is made: %+v", got.State)
			}
			for _, object := range got.Objects {
				if err := server.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			pool := &unstructured.Unstructured{}
			pool.SetGroupVersionKind(storage.CephBlockPoolKind)
			if err := server.Get(t.Context(), client.ObjectKey{Namespace: "rook-ceph", Name: name}, pool); err != nil {
				t.Fatal(err)
			}
			size, found, err := unstructured.NestedInt64(pool.Object, "spec", "replicated", "size")
			if err != nil || !found || size != int64(ptr.Deref(spec.Replicas, 3)) {
				t.Errorf("Rook would make %d copies (%v)", size, err)
			}
			class := &storagev1.StorageClass{}
			if err := server.Get(t.Context(), client.ObjectKey{Name: name}, class); err != nil || class.Parameters["pool"] != name {
				t.Errorf("the class is %+v (%v)", class, err)
			}
		})
	}
}

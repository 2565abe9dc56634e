package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/part"
)

// OwnerAnnotation on an object outside of the stack's namespace names the AuthStack, as namespace/name:
// an owner reference cannot cross namespaces.
const OwnerAnnotation = part.OwnerAnnotation

// Owner as it stands in OwnerAnnotation.
func Owner(st *v1alpha1.AuthStack) string { return st.Namespace + "/" + st.Name }

// BlockPool that the stack asks for, or nil.
func BlockPool(st *v1alpha1.AuthStack) *v1alpha1.CephBlockPoolSpec {
	if st.Spec.Postgres == nil || st.Spec.Postgres.Storage == nil || st.Spec.Postgres.Storage.CephRBD == nil {
		return nil
	}
	return st.Spec.Postgres.Storage.CephRBD.BlockPool
}

// ownPool plans a CephBlockPool and a StorageClass for the stack.
func ownPool(in part.Input, spec *v1alpha1.CephBlockPoolSpec) Result {
	cluster, driver, state := poolHome(in.Facts.Ceph, spec)
	if state.Reason != "" {
		return Result{State: state}
	}
	if state := clusterState(cluster); state.Reason != "" {
		return Result{State: state}
	}
	if state := taken(in, cluster, spec.Name); state.Reason != "" {
		return Result{State: state}
	}
	result := Result{
		ClassName: spec.Name,
		Objects:   []client.Object{cephBlockPool(in.Stack, cluster, spec), poolClass(in.Stack, cluster, driver, spec)},
		Status: &v1alpha1.StorageStatus{
			StorageClassName: spec.Name, Provisioner: driver, Medium: v1alpha1.MediumCephRBD,
			Evidence: fmt.Sprintf("the pool %s was made for this stack; no volume is bound yet", spec.Name),
		},
	}
	pool := facts.CephPool{Namespace: cluster.Namespace, Name: spec.Name}
	for _, found := range in.Facts.Ceph.Pools {
		if found.Namespace == pool.Namespace && found.Name == pool.Name {
			pool = found
		}
	}
	if result.State = poolState(pool, false); result.State.Reason == "" {
		result.State = part.Ready(fmt.Sprintf("CephBlockPool %s/%s is Ready", pool.Namespace, pool.Name))
	}
	result.Status.Ceph = result.State.Message
	return result
}

// poolHome is the CephCluster for the pool and the CSI driver of its volumes.
func poolHome(ceph *facts.Ceph, spec *v1alpha1.CephBlockPoolSpec) (facts.CephCluster, string, part.State) {
	if ceph == nil {
		return facts.CephCluster{}, "", part.Stalled(v1alpha1.ReasonRookMissing,
			"spec.postgres.storage.cephRBD.blockPool is made through Rook, whose resources (cephblockpools.ceph.rook.io) are not served here: install Rook, or remove blockPool to take a StorageClass that exists")
	}
	var fitting []facts.CephCluster
	var names []string
	for _, cluster := range ceph.Clusters {
		names = append(names, cluster.Namespace+"/"+cluster.Name)
		if spec.Namespace == "" || spec.Namespace == cluster.Namespace {
			fitting = append(fitting, cluster)
		}
	}
	slices.Sort(names)
	known := cmp.Or(strings.Join(names, ", "), "there are none")
	switch {
	case len(fitting) == 0 && spec.Namespace != "":
		return facts.CephCluster{}, "", part.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf(
			"there is no CephCluster in namespace %s, which spec.postgres.storage.cephRBD.blockPool.namespace names; in the cluster: %s", spec.Namespace, known))
	case len(fitting) == 0:
		return facts.CephCluster{}, "", part.Stalled(v1alpha1.ReasonRookMissing,
			"Rook is installed but there is no CephCluster for the pool: make one, or remove spec.postgres.storage.cephRBD.blockPool to take a StorageClass that exists")
	case len(fitting) > 1:
		return facts.CephCluster{}, "", part.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf(
			"several CephClusters could hold the pool: %s; name the namespace of one in spec.postgres.storage.cephRBD.blockPool.namespace", known))
	}
	driver := ""
	switch usual := fitting[0].Namespace + ".rbd.csi.ceph.com"; {
	case slices.Contains(ceph.Drivers, usual):
		driver = usual
	case len(ceph.Drivers) == 1:
		driver = ceph.Drivers[0]
	default:
		return facts.CephCluster{}, "", part.Waiting(v1alpha1.ReasonRookMissing, fmt.Sprintf(
			"waiting for Rook's CSI driver %s; installed for RBD: %s", usual, cmp.Or(strings.Join(ceph.Drivers, ", "), "none")))
	}
	return fitting[0], driver, part.State{}
}

// taken says whether a pool or class of the name is somebody else's. They are never taken over.
func taken(in part.Input, cluster facts.CephCluster, name string) part.State {
	refuse := func(what, owner string) part.State {
		whose := "was not made by this operator"
		if owner != "" {
			whose = "belongs to AuthStack " + owner
		}
		return part.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf(
			"%s exists and %s: give spec.postgres.storage.cephRBD.blockPool another name, or remove blockPool and name a class of that pool in spec.postgres.storage.storageClassName", what, whose))
	}
	for _, pool := range in.Facts.Ceph.Pools {
		if pool.Namespace == cluster.Namespace && pool.Name == name && pool.Owner != Owner(in.Stack) {
			return refuse(fmt.Sprintf("CephBlockPool %s/%s", pool.Namespace, name), pool.Owner)
		}
	}
	for _, class := range in.Facts.StorageClasses {
		if class.Name == name && class.Owner != Owner(in.Stack) {
			return refuse("StorageClass "+name, class.Owner)
		}
	}
	return part.State{}
}

func outsideMeta(st *v1alpha1.AuthStack, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels: part.Labels(st, "ceph-block-pool", "storage", ""),
		// Neither kind can be owned by an object of a namespace, so the operator itself deletes them.
		Annotations: map[string]string{OwnerAnnotation: Owner(st), part.RetainAnnotation: "true"},
	}
}

// The kinds of Rook that are read or made.
var (
	CephBlockPoolKind = schema.GroupVersionKind{Group: "ceph.rook.io", Version: "v1", Kind: "CephBlockPool"}
	CephClusterKind   = schema.GroupVersionKind{Group: "ceph.rook.io", Version: "v1", Kind: "CephCluster"}
)

func cephBlockPool(st *v1alpha1.AuthStack, cluster facts.CephCluster, spec *v1alpha1.CephBlockPoolSpec) client.Object {
	replicas := ptr.Deref(spec.Replicas, 3)
	pool := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"failureDomain": cmp.Or(spec.FailureDomain, "host"),
		"replicated": map[string]any{
			"size": int64(replicas),
			// Rook refuses a single copy while this is true (facts/postgres-ceph.md D1, D3).
			"requireSafeReplicaSize": replicas > 1,
		},
	}}}
	pool.SetGroupVersionKind(CephBlockPoolKind)
	meta := outsideMeta(st, cluster.Namespace, spec.Name)
	pool.SetNamespace(meta.Namespace)
	pool.SetName(meta.Name)
	pool.SetLabels(meta.Labels)
	pool.SetAnnotations(meta.Annotations)
	return pool
}

// poolClass is the class of the pool, as in Rook's own example (D1).
func poolClass(st *v1alpha1.AuthStack, cluster facts.CephCluster, driver string, spec *v1alpha1.CephBlockPoolSpec) client.Object {
	parameters := map[string]string{
		"clusterID": cluster.Namespace, "pool": spec.Name, "imageFormat": "2", "imageFeatures": "layering",
		"csi.storage.k8s.io/fstype": "ext4",
	}
	for use, secret := range map[string]string{
		"provisioner": "rook-csi-rbd-provisioner", "controller-expand": "rook-csi-rbd-provisioner",
		"controller-publish": "rook-csi-rbd-provisioner", "node-stage": "rook-csi-rbd-node",
	} {
		parameters["csi.storage.k8s.io/"+use+"-secret-name"] = secret
		parameters["csi.storage.k8s.io/"+use+"-secret-namespace"] = cluster.Namespace
	}
	return &storagev1.StorageClass{
		TypeMeta:             metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
		ObjectMeta:           outsideMeta(st, "", spec.Name),
		Provisioner:          driver,
		Parameters:           parameters,
		AllowVolumeExpansion: ptr.To(true),
		ReclaimPolicy:        ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode:    ptr.To(storagev1.VolumeBindingImmediate),
	}
}

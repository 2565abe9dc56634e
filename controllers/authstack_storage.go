package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/storage"
)

// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=create;patch;delete
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers,verbs=list
// +kubebuilder:rbac:groups=ceph.rook.io,resources=cephblockpools,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups=ceph.rook.io,resources=cephclusters,verbs=list

// askCeph reads Rook's resources, where the stack's storage has to do with Ceph and they are served.
func (r *AuthStackReconciler) askCeph(ctx context.Context, s *scope) error {
	if !concernsCeph(s.stack, s.facts) {
		return nil
	}
	clusters, served, err := r.listServed(ctx, storage.CephClusterKind)
	if err != nil || !served {
		return err
	}
	pools, served, err := r.listServed(ctx, storage.CephBlockPoolKind)
	if err != nil || !served {
		return err
	}
	ceph := &facts.Ceph{}
	for i := range clusters {
		ceph.Clusters = append(ceph.Clusters, cephClusterFact(&clusters[i]))
	}
	for i := range pools {
		ceph.Pools = append(ceph.Pools, cephPoolFact(&pools[i]))
	}
	var drivers storagev1.CSIDriverList
	if err := r.Reader.List(ctx, &drivers); err != nil {
		return fmt.Errorf("listing CSIDrivers: %w", err)
	}
	for _, driver := range drivers.Items {
		if storage.Medium(driver.Name) == v1alpha1.MediumCephRBD {
			ceph.Drivers = append(ceph.Drivers, driver.Name)
		}
	}
	slices.Sort(ceph.Drivers)
	s.facts.Ceph = ceph
	return nil
}

// concernsCeph is whether the database is on Ceph, or may come there.
func concernsCeph(st *v1alpha1.AuthStack, known facts.Stack) bool {
	if postgres := st.Spec.Postgres; postgres != nil {
		if postgres.External != nil {
			return false
		}
		if postgres.Storage != nil && postgres.Storage.CephRBD != nil {
			return true
		}
		if postgres.Storage != nil && postgres.Storage.LocalNVMe != nil {
			return false
		}
	}
	return slices.ContainsFunc(known.StorageClasses, func(c facts.StorageClass) bool {
		return storage.Medium(c.Provisioner) == v1alpha1.MediumCephRBD
	}) || slices.ContainsFunc(known.Volumes, func(v facts.Volume) bool { return storage.Medium(v.Driver) == v1alpha1.MediumCephRBD })
}

// listServed lists the objects of a kind of another operator, of all namespaces; served is false where
// its CRD is not there.
func (r *AuthStackReconciler) listServed(ctx context.Context, kind schema.GroupVersionKind) (items []unstructured.Unstructured, served bool, err error) {
	if _, err := r.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("asking whether %s is served: %w", kind.GroupKind(), err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	err = r.Reader.List(ctx, list)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return nil, false, nil // It was served once and is no more.
	case err != nil:
		return nil, false, fmt.Errorf("listing %s: %w", kind.GroupKind(), err)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return list.Items, true, nil
}

func cephClusterFact(cluster *unstructured.Unstructured) facts.CephCluster {
	fact := facts.CephCluster{Namespace: cluster.GetNamespace(), Name: cluster.GetName()}
	fact.Phase, _, _ = unstructured.NestedString(cluster.Object, "status", "phase")
	fact.Health, _, _ = unstructured.NestedString(cluster.Object, "status", "ceph", "health")
	details, _, _ := unstructured.NestedMap(cluster.Object, "status", "ceph", "details")
	for code := range details {
		words, _, _ := unstructured.NestedString(details, code, "message")
		if fact.Problems == nil {
			fact.Problems = map[string]string{}
		}
		fact.Problems[code] = words
	}
	return fact
}

func cephPoolFact(pool *unstructured.Unstructured) facts.CephPool {
	fact := facts.CephPool{Namespace: pool.GetNamespace(), Name: pool.GetName(), Owner: pool.GetAnnotations()[storage.OwnerAnnotation]}
	// Ceph's own name may differ where Kubernetes does not allow it (facts/postgres-ceph.md D2).
	if name, _, _ := unstructured.NestedString(pool.Object, "spec", "name"); name != "" {
		fact.Name = name
	}
	fact.Phase, _, _ = unstructured.NestedString(pool.Object, "status", "phase")
	return fact
}

// ownedPool are the pool and the class that the operator made for a stack.
func (r *AuthStackReconciler) ownedPool(ctx context.Context, st *v1alpha1.AuthStack) ([]client.Object, error) {
	spec := storage.BlockPool(st)
	if spec == nil {
		return nil, nil
	}
	var owned []client.Object
	class := &storagev1.StorageClass{}
	err := r.Reader.Get(ctx, client.ObjectKey{Name: spec.Name}, class)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading StorageClass %s: %w", spec.Name, err)
	case err == nil && class.Annotations[storage.OwnerAnnotation] == storage.Owner(st):
		class.GetObjectKind().SetGroupVersionKind(storagev1.SchemeGroupVersion.WithKind("StorageClass"))
		owned = append(owned, class)
	}
	pools, _, err := r.listServed(ctx, storage.CephBlockPoolKind)
	if err != nil {
		return nil, err
	}
	for i := range pools {
		if pools[i].GetName() == spec.Name && pools[i].GetAnnotations()[storage.OwnerAnnotation] == storage.Owner(st) {
			owned = append(owned, &pools[i])
		}
	}
	return owned, nil
}

// keepStorage carries what was measured over into the status that a plan gives, which knows nothing
// of it; a storage that is not known at the moment was measured all the same.
func keepStorage(old, planned *v1alpha1.StorageStatus) *v1alpha1.StorageStatus {
	if planned == nil {
		if old != nil && old.Probe != nil {
			return old
		}
		return nil
	}
	if old != nil {
		planned.Probe = old.Probe
	}
	return planned
}

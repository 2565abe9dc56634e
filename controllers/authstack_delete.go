package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/stack"
)

// remove lets a stack go. The garbage collector takes what it controls. Its data, and the Secrets that
// open it, are kept or deleted after the policy as it stands now, which may not be the one that the
// objects were applied with: the spec of a suspended stack can have changed since.
func (r *AuthStackReconciler) remove(ctx context.Context, s *scope) kube.Outcome {
	if !controllerutil.ContainsFinalizer(s.stack, v1alpha1.Finalizer) {
		return kube.Outcome{State: kube.Suspended}
	}
	if !r.leaveDatabase(ctx, s) {
		return kube.Outcome{State: kube.Progressing, Before: 5 * time.Second}
	}
	data, err := r.dataOf(ctx, s.stack)
	if err != nil {
		return kube.Outcome{Err: err}
	}
	if s.stack.Spec.DeletionPolicy == v1alpha1.DeletionDelete {
		err = r.discard(ctx, data)
	} else {
		var settled bool
		if settled, err = r.retain(ctx, s.stack, data); err == nil && !settled {
			return kube.Outcome{State: kube.Progressing, Before: time.Second}
		}
	}
	if err != nil {
		return kube.Outcome{Err: err}
	}
	if s.stack.Spec.DeletionPolicy != v1alpha1.DeletionDelete && len(data) > 0 {
		r.Recorder.Eventf(s.stack, nil, corev1.EventTypeNormal, v1alpha1.ReasonDeleting, "Retain", "%s",
			kube.Truncate("deletionPolicy is Retain, so these were kept: "+names(data)))
	}
	controllerutil.RemoveFinalizer(s.after, v1alpha1.Finalizer)
	err = r.Client.Patch(ctx, s.after, client.MergeFromWithOptions(s.stack, client.MergeFromWithOptimisticLock{}), kube.FieldManager)
	if client.IgnoreNotFound(err) != nil {
		return kube.Outcome{Err: err}
	}
	r.forget(s.stack.UID)
	return kube.Outcome{State: kube.Suspended}
}

// managedByLabel tells what the operator made.
const managedByLabel = "app.kubernetes.io/managed-by"

// dataOf is what holds a stack's data or opens it: its volumes, its Secrets and the cluster of Zalando's
// operator, whose volumes and Secrets that operator deletes with the cluster.
func (r *AuthStackReconciler) dataOf(ctx context.Context, st *v1alpha1.AuthStack) ([]client.Object, error) {
	var data []client.Object
	var secrets corev1.SecretList
	if err := r.Reader.List(ctx, &secrets, labelled(st)...); err != nil {
		return nil, fmt.Errorf("listing Secrets: %w", err)
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if secret.Labels[managedByLabel] != "authstack" {
			continue // A user's, labelled so that the stack looks at it.
		}
		if controller := metav1.GetControllerOf(secret); controller == nil || controller.UID == st.UID {
			data = append(data, withKind(secret, "Secret"))
		}
	}
	// Rook keeps a pool until its last image is gone, so that the order of the deletions does not matter.
	pool, err := r.ownedPool(ctx, st)
	if err != nil {
		return nil, err
	}
	data = append(data, pool...)
	if name := stack.ZalandoClusterName(st); name != "" {
		cluster := &unstructured.Unstructured{}
		cluster.SetGroupVersionKind(postgresqlKind)
		err := r.Reader.Get(ctx, types.NamespacedName{Namespace: st.Namespace, Name: name}, cluster)
		switch {
		case err == nil && cluster.GetLabels()[v1alpha1.StackLabel] == st.Name:
			data = append(data, cluster)
		case err != nil && !meta.IsNoMatchError(err) && client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("reading postgresql %s: %w", name, err)
		}
		return data, nil // The volumes are its operator's.
	}
	for _, name := range stack.Claims(st) {
		claim := &corev1.PersistentVolumeClaim{}
		err := r.Reader.Get(ctx, types.NamespacedName{Namespace: st.Namespace, Name: name}, claim)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading PersistentVolumeClaim %s: %w", name, err)
		}
		if err == nil && claim.Labels[v1alpha1.StackLabel] == st.Name {
			data = append(data, withKind(claim, "PersistentVolumeClaim"))
		}
	}
	return data, nil
}

func withKind(obj client.Object, kind string) client.Object {
	obj.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return obj
}

// discard deletes the data.
func (r *AuthStackReconciler) discard(ctx context.Context, data []client.Object) error {
	for _, obj := range data {
		uid := obj.GetUID()
		if err := r.Client.Delete(ctx, obj, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w", obj.GetName(), err)
		}
	}
	return nil
}

// retain sees to it that nothing takes the data with the stack. It says whether that holds already: the
// owner reference of a claim is taken back by the controller of StatefulSets.
func (r *AuthStackReconciler) retain(ctx context.Context, st *v1alpha1.AuthStack, data []client.Object) (settled bool, err error) {
	settled = true
	for _, obj := range data {
		if _, claim := obj.(*corev1.PersistentVolumeClaim); claim {
			settled = settled && !slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.Kind == "StatefulSet" })
			continue
		}
		before := obj.DeepCopyObject().(client.Object)
		if !kube.Disown(obj) {
			continue
		}
		err := r.Client.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), kube.FieldManager)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("keeping %s: %w", obj.GetName(), err)
		}
	}
	var sets appsv1.StatefulSetList
	if err := r.Reader.List(ctx, &sets, labelled(st)...); err != nil {
		return false, fmt.Errorf("listing StatefulSets: %w", err)
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		policy := set.Spec.PersistentVolumeClaimRetentionPolicy
		if policy == nil || policy.WhenDeleted != appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
			continue
		}
		settled = false
		before := set.DeepCopy()
		policy.WhenDeleted = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
		if err := r.Client.Patch(ctx, set, client.MergeFrom(before), kube.FieldManager); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("keeping the claims of %s: %w", set.Name, err)
		}
	}
	return settled, nil
}

func names(objects []client.Object) string {
	var out []string
	for _, obj := range objects {
		out = append(out, obj.GetObjectKind().GroupVersionKind().Kind+" "+obj.GetName())
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

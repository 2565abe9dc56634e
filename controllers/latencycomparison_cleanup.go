package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
)

// provisionedBy on a PersistentVolume says that it was made for a claim, and by whom; nobody's own
// volume has it.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// cleanUp takes away what was made for a comparison, and lets it go once nothing is left: no namespace,
// and no volume, whatever its class says about keeping volumes.
func (r *LatencyComparisonReconciler) cleanUp(ctx context.Context, c *compared) kube.Outcome {
	left, err := r.takeAway(ctx, client.ObjectKeyFromObject(c.comparison), c.comparison.UID, c.namespaces())
	if err != nil {
		return kube.Outcome{Err: err}
	}
	if len(left) > 0 {
		c.after.Status.Progress = "cleaning up"
		message := "taking away " + strings.Join(left, ", ")
		if c.comparison.Status.Message != "" {
			message += ". " + c.comparison.Status.Message
		}
		c.progress(v1alpha1.ReasonCleaningUp, message)
		return r.reported(ctx, c, kube.Outcome{State: kube.Progressing, Since: kube.Since(c.after.Status.Conditions)})
	}
	controllerutil.RemoveFinalizer(c.after, v1alpha1.Finalizer)
	if err := r.patchMeta(ctx, c); client.IgnoreNotFound(err) != nil {
		return kube.Outcome{Err: err}
	}
	r.applier.Forget(c.comparison.UID)
	if !c.comparison.DeletionTimestamp.IsZero() {
		return kube.Outcome{State: kube.Suspended}
	}
	return kube.Outcome{State: kube.Progressing, Before: time.Second}
}

// namespaces that the status says were made.
func (c *compared) namespaces() []string {
	var names []string
	for _, variant := range c.comparison.Status.Variants {
		names = append(names, variant.Namespace)
	}
	return names
}

// sweep takes away what a comparison left that is gone: somebody took its finalizer off.
func (r *LatencyComparisonReconciler) sweep(ctx context.Context, key types.NamespacedName) kube.Outcome {
	left, err := r.takeAway(ctx, key, "", nil)
	if err != nil {
		return kube.Outcome{Err: err}
	}
	if len(left) > 0 {
		return kube.Outcome{State: kube.Progressing}
	}
	return kube.Outcome{State: kube.Suspended}
}

// takeAway deletes step by step, and says what is still there. The order matters: a LatencyTest removes
// its users through the stack, and the stack its data; a namespace that is deleted as a whole would take
// the stack before the test has done so. The namespaces known from the status are those whose volumes
// are waited for even when the namespaces themselves are gone. An empty uid is any.
func (r *LatencyComparisonReconciler) takeAway(ctx context.Context, key types.NamespacedName, uid types.UID, known []string) (left []string, err error) {
	var namespaces corev1.NamespaceList
	if err := r.Reader.List(ctx, &namespaces, madeFor(key, uid)); err != nil {
		return nil, fmt.Errorf("listing the namespaces of the comparison: %w", err)
	}
	for i := range namespaces.Items {
		namespace := &namespaces.Items[i]
		known = append(known, namespace.Name)
		left = append(left, "namespace "+namespace.Name)
		if !namespace.DeletionTimestamp.IsZero() {
			continue
		}
		emptied, err := r.empty(ctx, namespace.Name)
		if err != nil {
			return nil, err
		}
		if !emptied {
			continue
		}
		id := namespace.UID
		if err := r.Client.Delete(ctx, namespace, client.Preconditions{UID: &id}); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("deleting namespace %s: %w", namespace.Name, err)
		}
	}
	volumes, err := r.volumes(ctx, known)
	if err != nil {
		return nil, err
	}
	for _, volume := range volumes {
		left = append(left, "PersistentVolume "+volume.Name)
	}
	return left, nil
}

// madeFor selects what was made for a comparison.
func madeFor(key types.NamespacedName, uid types.UID) client.ListOption {
	selector := labels.NewSelector()
	for label, value := range map[string]string{
		v1alpha1.ComparisonLabel: key.Name, v1alpha1.ComparisonNamespaceLabel: key.Namespace, v1alpha1.ComparisonUIDLabel: string(uid),
	} {
		if value != "" {
			requirement, err := labels.NewRequirement(label, selection.Equals, []string{value})
			if err != nil {
				continue // Names and uids are values of labels.
			}
			selector = selector.Add(*requirement)
		}
	}
	return client.MatchingLabelsSelector{Selector: selector}
}

// empty deletes the tests of a variant, then its stack, and says whether both are gone; from then on its
// volumes are only waiting to be deleted, and so are told to go with their claims.
func (r *LatencyComparisonReconciler) empty(ctx context.Context, namespace string) (bool, error) {
	var tests v1alpha1.LatencyTestList
	var stacks v1alpha1.AuthStackList
	for _, list := range []client.ObjectList{&tests, &stacks} {
		if err := r.Reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return false, fmt.Errorf("listing what is in namespace %s: %w", namespace, err)
		}
	}
	var objects []client.Object
	for i := range tests.Items {
		objects = append(objects, &tests.Items[i])
	}
	if len(objects) == 0 {
		// Before the claims go: a volume that is already released keeps the policy that it had.
		if err := r.release(ctx, namespace); err != nil {
			return false, err
		}
		for i := range stacks.Items {
			objects = append(objects, &stacks.Items[i])
		}
	}
	for _, obj := range objects {
		if !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		uid := obj.GetUID()
		if err := r.Client.Delete(ctx, obj, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("deleting %s/%s: %w", namespace, obj.GetName(), err)
		}
	}
	return len(objects) == 0, nil
}

// release has the volumes of a namespace deleted with their claims, even where their class keeps volumes:
// their data was made for the comparison and is nobody's.
func (r *LatencyComparisonReconciler) release(ctx context.Context, namespace string) error {
	volumes, err := r.volumes(ctx, []string{namespace})
	if err != nil {
		return err
	}
	for _, volume := range volumes {
		if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			continue
		}
		before := volume.DeepCopy()
		volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		if err := r.Client.Patch(ctx, volume, client.MergeFrom(before), kube.FieldManager); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("letting PersistentVolume %s go: %w", volume.Name, err)
		}
	}
	return nil
}

// volumes that were made for claims of the namespaces.
func (r *LatencyComparisonReconciler) volumes(ctx context.Context, namespaces []string) ([]*corev1.PersistentVolume, error) {
	if len(namespaces) == 0 {
		return nil, nil
	}
	var volumes corev1.PersistentVolumeList
	if err := r.Reader.List(ctx, &volumes); err != nil {
		return nil, fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	var found []*corev1.PersistentVolume
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		if claim := volume.Spec.ClaimRef; claim != nil && slices.Contains(namespaces, claim.Namespace) && volume.Annotations[provisionedBy] != "" {
			found = append(found, volume)
		}
	}
	return found, nil
}

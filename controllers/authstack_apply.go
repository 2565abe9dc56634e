package controllers

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/stack"
	"authstack.dev/authstack/internal/stack/storage"
)

// apply brings the objects of the phases about, in the order of their dependencies, and takes away
// what is planned no longer once everything else is there. A phase that the API server refuses is
// marked as such and the others go on; the first error is returned.
func (r *AuthStackReconciler) apply(ctx context.Context, s *scope) error {
	var first error
	for _, phase := range s.plan.Phases() {
		if s.plan.Blocked(phase.Condition) != nil {
			continue
		}
		complete := true
		for _, desired := range phase.Objects {
			changed, err := r.applyOne(ctx, s, desired)
			if err != nil {
				first = errors.Join(first, err)
				if retry(err) || ctx.Err() != nil {
					return err
				}
				phase.State = refused(err, s.redactor)
				complete = false
				break
			}
			s.changed[phase.Condition] = s.changed[phase.Condition] || changed
		}
		s.applied[phase.Condition] = complete && len(phase.Objects) > 0
	}
	if first != nil || !s.allReady() {
		return first
	}
	if err := r.removeReplacements(ctx, s); err != nil {
		return err
	}
	return r.prune(ctx, s)
}

// removeReplacements takes the copies of Secrets away that have been made anew.
func (r *AuthStackReconciler) removeReplacements(ctx context.Context, s *scope) error {
	var copies corev1.SecretList
	if err := r.Client.List(ctx, &copies, append(labelled(s.stack), client.HasLabels{kube.ReplacesLabel})...); err != nil {
		return fmt.Errorf("looking for copies of Secrets: %w", err)
	}
	for i := range copies.Items {
		copied, made := &copies.Items[i], &corev1.Secret{}
		// From the API server: the cache may hold the Secret that was deleted.
		err := r.Reader.Get(ctx, types.NamespacedName{Namespace: copied.Namespace, Name: copied.Labels[kube.ReplacesLabel]}, made)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading the Secret that %s stands for: %w", copied.Name, err)
		}
		if err != nil || made.DeletionTimestamp != nil || !holds(made.Data, copied.Data) {
			continue
		}
		if err := r.Client.Delete(ctx, copied, kube.AsRead(copied)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing %s: %w", copied.Name, err)
		}
	}
	return nil
}

// holds is whether every key of the copy is in the Secret.
func holds(made, copied map[string][]byte) bool {
	for key := range copied {
		if len(made[key]) == 0 {
			return false
		}
	}
	return true
}

// allReady is whether every phase is there and none was changed just now.
func (s *scope) allReady() bool {
	for _, phase := range s.plan.Phases() {
		if !phase.State.Ready || s.changed[phase.Condition] {
			return false
		}
	}
	return true
}

// refused is the state of a phase of which the API server refused an object. What is invalid stays
// invalid until somebody changes something.
func refused(err error, redactor *kube.Redactor) stack.State {
	var foreign *foreignError
	return stack.State{
		Stalled: apierrors.IsInvalid(err) || errors.As(err, &foreign),
		Reason:  v1alpha1.ReasonApplyFailed,
		Message: redactor.Text(err.Error()),
	}
}

func (r *AuthStackReconciler) applyOne(ctx context.Context, s *scope, desired client.Object) (changed bool, err error) {
	key := client.ObjectKeyFromObject(desired)
	live, err := kube.Empty(r.Client, desired)
	if err != nil {
		return false, err
	}
	found, err := r.readLive(ctx, key, live)
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", key.Name, err)
	}
	owner := client.Object(s.stack)
	if desired.GetAnnotations()[stack.RetainAnnotation] != "" {
		owner = nil
	}
	if found {
		if err := r.ours(s.stack, live); err != nil {
			return false, err
		}
	}
	if secret, ok := desired.(*corev1.Secret); ok {
		if !found {
			return r.applier.ApplySecret(ctx, owner, secret, nil)
		}
		return r.applier.ApplySecret(ctx, owner, secret, live.(*corev1.Secret))
	}
	if !found {
		return r.applier.Apply(ctx, owner, desired, nil)
	}
	return r.applier.Apply(ctx, owner, desired, live)
}

// readLive reads an object from the cache where that has its kind, or else from the API server.
func (r *AuthStackReconciler) readLive(ctx context.Context, key types.NamespacedName, live client.Object) (bool, error) {
	switch live.(type) {
	case *unstructured.Unstructured, *corev1.PersistentVolumeClaim:
		err := r.Reader.Get(ctx, key, live)
		return err == nil, client.IgnoreNotFound(err)
	}
	return r.get(ctx, key, live)
}

// ours refuses to take over an object of the same name that somebody else made.
func (r *AuthStackReconciler) ours(st *v1alpha1.AuthStack, live client.Object) error {
	if metav1.IsControlledBy(live, st) {
		return nil
	}
	controller := metav1.GetControllerOf(live)
	if live.GetNamespace() != st.Namespace {
		// Outside of the stack's namespace a label of its name may be that of a namesake.
		if live.GetAnnotations()[storage.OwnerAnnotation] == storage.Owner(st) && controller == nil {
			return nil
		}
		return r.foreign(live)
	}
	if controller != nil && controller.Kind == "AuthStack" && controller.Name == st.Name {
		// Of a stack of this name that was deleted; the garbage collector is on its way.
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("authstacks").GroupResource(), st.Name,
			fmt.Errorf("%s of the deleted stack of this name is still there", live.GetName()))
	}
	if controller == nil || controller.APIVersion == appsv1.SchemeGroupVersion.String() {
		if live.GetLabels()[v1alpha1.StackLabel] == st.Name {
			return nil // Kept from a stack of this name, or a claim of its StatefulSet.
		}
	}
	return r.foreign(live)
}

func (r *AuthStackReconciler) foreign(live client.Object) error {
	kind := "object"
	if gvk, err := apiutil.GVKForObject(live, r.Client.Scheme()); err == nil {
		kind = gvk.Kind
	}
	return &foreignError{kind, live.GetName()}
}

// foreignError says that the name of an object is taken.
type foreignError struct{ kind, name string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("%s %s exists and is not this stack's: remove it, or give the AuthStack another name", e.kind, e.name)
}

// prunable are the kinds that a stack makes and that hold no data. Secrets and volumes are never
// taken away while the stack exists.
func prunable() []client.ObjectList {
	return []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{},
		&policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{},
	}
}

// prune deletes what the stack made once and plans no longer.
func (r *AuthStackReconciler) prune(ctx context.Context, s *scope) error {
	planned := map[string]bool{}
	name := func(obj client.Object) (string, error) {
		gvk, err := apiutil.GVKForObject(obj, r.Client.Scheme())
		return gvk.Kind + "/" + obj.GetName(), err
	}
	for _, phase := range s.plan.Phases() {
		for _, obj := range phase.Objects {
			key, err := name(obj)
			if err != nil {
				return err
			}
			planned[key] = true
		}
	}
	for _, list := range prunable() {
		if err := r.Client.List(ctx, list, labelled(s.stack)...); err != nil {
			return fmt.Errorf("looking for objects that are planned no longer: %w", err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			key, err := name(obj)
			if err != nil || planned[key] || !metav1.IsControlledBy(obj, s.stack) || obj.GetDeletionTimestamp() != nil {
				return err
			}
			uid := obj.GetUID()
			err = r.Client.Delete(ctx, obj, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
			return client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"authstack.dev/authstack/api/v1alpha1"
)

// ApplySecret makes a Secret exist. Unlike other objects it is never forced: a Secret holds what was
// generated once, so an absent one is created and not applied (two creations conflict, two applies
// would replace a password that a database already knows), and a present one is only updated from the
// version that was read. What is immutable holds generated values: keys that are missing are added, and
// none that is there is ever replaced.
func (a *Applier) ApplySecret(ctx context.Context, owner client.Object, desired, live *corev1.Secret) (changed bool, err error) {
	data := secretData(desired)
	if live == nil {
		created := desired.DeepCopy()
		created.Data, created.StringData = data, nil
		if err := a.own(owner, created); err != nil {
			return false, err
		}
		if err := a.client.Create(ctx, created, FieldManager); err != nil {
			return false, fmt.Errorf("Secret %s: %w", desired.Name, err)
		}
		return true, nil
	}
	if generated(desired) {
		if data, err = complete(live.Data, data, desired.Name); err != nil {
			return false, err
		}
		if generated(live) && !SameData(live.Data, data) {
			wanted := desired.DeepCopy()
			wanted.Data, wanted.StringData = data, nil
			if err := a.replace(ctx, owner, live, wanted); err != nil {
				return false, fmt.Errorf("adding to Secret %s: %w", desired.Name, err)
			}
			return true, nil
		}
	}
	updated := live.DeepCopy()
	if err := a.own(owner, updated); err != nil {
		return false, fmt.Errorf("Secret %s: %w", desired.Name, err)
	}
	updated.Labels = replace(updated.Labels, desired.Labels)
	updated.Annotations = replace(updated.Annotations, desired.Annotations)
	if !SameData(live.Data, data) {
		updated.Data = data
	}
	if SameData(live.Data, updated.Data) && SameData(live.Labels, updated.Labels) && SameData(live.Annotations, updated.Annotations) &&
		equality.Semantic.DeepEqual(live.OwnerReferences, updated.OwnerReferences) {
		return false, nil
	}
	if err := a.client.Update(ctx, updated, FieldManager); err != nil {
		return false, fmt.Errorf("Secret %s: %w", desired.Name, err)
	}
	return true, nil
}

// own makes the owner the controller of the object, or, without an owner, takes the operator's kinds
// from its owners: what is kept beyond its stack must not be collected with it.
func (a *Applier) own(owner client.Object, obj client.Object) error {
	if owner != nil {
		return controllerutil.SetControllerReference(owner, obj, a.client.Scheme())
	}
	Disown(obj)
	return nil
}

// Disown removes the operator's own kinds from the owners of the object and says whether it did.
func Disown(obj client.Object) bool {
	before := obj.GetOwnerReferences()
	after := slices.DeleteFunc(slices.Clone(before), func(ref metav1.OwnerReference) bool {
		return strings.HasPrefix(ref.APIVersion, v1alpha1.GroupVersion.Group+"/")
	})
	if len(after) == 0 {
		after = nil
	}
	obj.SetOwnerReferences(after)
	return len(after) != len(before)
}

func secretData(s *corev1.Secret) map[string][]byte {
	data := make(map[string][]byte, len(s.Data)+len(s.StringData))
	for name, value := range s.Data {
		data[name] = value
	}
	for name, value := range s.StringData {
		data[name] = []byte(value)
	}
	return data
}

// replace takes the operator's own names out of a map and puts the wanted ones in; others' stay.
func replace(held, want map[string]string) map[string]string {
	out := make(map[string]string, len(held)+len(want))
	for name, value := range held {
		if !strings.HasPrefix(name, v1alpha1.GroupVersion.Group+"/") {
			out[name] = value
		}
	}
	for name, value := range want {
		out[name] = value
	}
	return out
}

// Empty is a new object of the same kind as obj to read into.
func Empty(c client.Client, obj client.Object) (client.Object, error) {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return nil, err
	}
	if c.Scheme().Recognizes(gvk) {
		made, err := c.Scheme().New(gvk)
		if err != nil {
			return nil, err
		}
		return made.(client.Object), nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

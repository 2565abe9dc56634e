package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// ApplySecret makes a Secret exist. Unlike other objects it is never forced: a Secret holds what was
// generated once, so an absent one is created and not applied (two creations conflict, two applies
// would replace a password that a database already knows), and a present one is only updated from the
// version that was read.
func (a *Applier) ApplySecret(ctx context.Context, owner client.Object, desired, live *corev1.Secret) (changed bool, err error) {
	data := secretData(desired)
	if live == nil {
		created := desired.DeepCopy()
		created.Data, created.StringData = data, nil
		if err := controllerutil.SetControllerReference(owner, created, a.client.Scheme()); err != nil {
			return false, err
		}
		if err := a.client.Create(ctx, created, FieldManager); err != nil {
			return false, fmt.Errorf("Secret %s: %w", desired.Name, err)
		}
		return true, nil
	}
	updated := live.DeepCopy()
	if err := controllerutil.SetControllerReference(owner, updated, a.client.Scheme()); err != nil {
		return false, fmt.Errorf("Secret %s: %w", desired.Name, err)
	}
	updated.Labels = merge(updated.Labels, desired.Labels)
	updated.Annotations = merge(updated.Annotations, desired.Annotations)
	if !SameData(live.Data, data) {
		updated.Data = data
	}
	if SameData(live.Data, updated.Data) && SameData(live.Labels, updated.Labels) && SameData(live.Annotations, updated.Annotations) &&
		metav1.IsControlledBy(live, owner) {
		return false, nil
	}
	if err := a.client.Update(ctx, updated, FieldManager); err != nil {
		return false, fmt.Errorf("Secret %s: %w", desired.Name, err)
	}
	return true, nil
}

// AsSecret is the object as a Secret if it is one.
func AsSecret(obj client.Object) (*corev1.Secret, bool) {
	secret, ok := obj.(*corev1.Secret)
	return secret, ok
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

func merge(into, from map[string]string) map[string]string {
	if len(from) == 0 {
		return into
	}
	out := make(map[string]string, len(into)+len(from))
	for name, value := range into {
		out[name] = value
	}
	for name, value := range from {
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

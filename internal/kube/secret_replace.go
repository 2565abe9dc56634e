package kube

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
)

// replacement is the end of the name of the copy that holds an immutable Secret's values while the
// Secret is deleted and made anew with a further key. It is there before the one goes and stays until the
// other has come, so that an operator that dies in between loses none.
const replacement = "-replacement"

// ReplacesLabel on such a copy is the name of the Secret that it stands for.
const ReplacesLabel = "authstack.dev/replaces"

// ReplacementName of a Secret's copy.
func ReplacementName(secret string) string { return secret + replacement }

// IsReplacement is whether a Secret is the copy of the one with this name, of this stack.
func IsReplacement(copied *corev1.Secret, secret, stack string) bool {
	return copied.Labels[ReplacesLabel] == secret && copied.Labels[v1alpha1.StackLabel] == stack
}

// generated is whether the values of a Secret were generated, so that none may ever be replaced.
func generated(secret *corev1.Secret) bool { return secret.Immutable != nil && *secret.Immutable }

// complete is what a generated Secret holds with the keys that a newer operator plans in addition. A
// planned value that differs from the one that is held comes from an old read: a conflict.
func complete(held, planned map[string][]byte, name string) (map[string][]byte, error) {
	out := maps.Clone(held)
	if out == nil {
		out = map[string][]byte{}
	}
	for key, value := range planned {
		if old, has := held[key]; has && len(old) > 0 {
			if !bytes.Equal(old, value) {
				return nil, conflict(name, "its "+key+" is another by now")
			}
			continue
		}
		out[key] = value
	}
	return out, nil
}

func conflict(name, why string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, name, fmt.Errorf("%s", why))
}

// replace an immutable Secret by one that holds more. What it holds is in the copy first; a copy that is
// there already is of an operator that died half-way, and what it generated counts.
func (a *Applier) replace(ctx context.Context, owner client.Object, live, wanted *corev1.Secret) error {
	copied := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: ReplacementName(live.Name), Labels: maps.Clone(wanted.Labels)},
		Type:       wanted.Type, Data: wanted.Data,
	}
	copied.Labels[ReplacesLabel] = live.Name
	err := a.client.Create(ctx, copied, FieldManager)
	if apierrors.IsAlreadyExists(err) {
		found := &corev1.Secret{}
		if err := a.client.Get(ctx, client.ObjectKeyFromObject(copied), found); err != nil {
			return err
		}
		if !IsReplacement(found, live.Name, wanted.Labels[v1alpha1.StackLabel]) {
			return fmt.Errorf("its place is taken by the Secret %s, which is not this stack's; remove that", found.Name)
		}
		if wanted.Data, err = complete(live.Data, found.Data, live.Name); err != nil {
			// Left over from an earlier time.
			return firstOf(a.client.Delete(ctx, found, AsRead(found)), err)
		}
	} else if err != nil {
		return err
	}
	if err := a.client.Delete(ctx, live, AsRead(live)); client.IgnoreNotFound(err) != nil {
		return err
	}
	created := wanted.DeepCopy()
	created.ResourceVersion, created.UID = "", ""
	if err := a.own(owner, created); err != nil {
		return err
	}
	return a.client.Create(ctx, created, FieldManager)
}

// AsRead holds a deletion to the object as it was read.
func AsRead(obj client.Object) client.Preconditions {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// FieldManager owns the fields that the operator applies.
const FieldManager = client.FieldOwner("authstack")

// Applier applies objects server-side. It remembers what it applied and how the object looked
// afterwards, and sends nothing while neither has changed.
type Applier struct {
	client client.Client
	mu     sync.Mutex
	// applied is what was last sent and what came back, by object.
	applied map[objectKey]applied
}

type objectKey struct {
	kind string
	name types.NamespacedName
}

type applied struct {
	request, live uint64
	uid           types.UID
	owner         types.UID
}

// NewApplier makes an Applier that writes with the client.
func NewApplier(c client.Client) *Applier {
	return &Applier{client: c, applied: map[objectKey]applied{}}
}

// Apply makes the object exist as desired, with the owner as its controller. The live object is what
// is known of it, or nil; it may be old, then a request is sent that changes nothing. Changed is
// whether the API server now holds something else than live.
func (a *Applier) Apply(ctx context.Context, owner, desired, live client.Object) (changed bool, err error) {
	request, err := a.request(owner, desired)
	if err != nil {
		return false, err
	}
	key := objectKey{request.GetKind(), client.ObjectKeyFromObject(desired)}
	sum, err := fingerprint(request)
	if err != nil {
		return false, err
	}
	if live != nil {
		liveSum, err := fingerprint(live)
		if err != nil {
			return false, err
		}
		a.mu.Lock()
		last, known := a.applied[key]
		a.mu.Unlock()
		if known && last.request == sum && last.live == liveSum && last.uid == live.GetUID() {
			return false, nil
		}
	}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(request), FieldManager, client.ForceOwnership); err != nil {
		return false, fmt.Errorf("%s %s: %w", request.GetKind(), request.GetName(), err)
	}
	if err := a.remember(key, owner, desired, request, sum); err != nil {
		return false, err
	}
	return live == nil || live.GetUID() != request.GetUID() || live.GetResourceVersion() != request.GetResourceVersion(), nil
}

// request is the object as it is sent: what is desired and nothing else.
func (a *Applier) request(owner, desired client.Object) (*unstructured.Unstructured, error) {
	obj := desired.DeepCopyObject().(client.Object)
	if owner != nil {
		if err := controllerutil.SetControllerReference(owner, obj, a.client.Scheme()); err != nil {
			return nil, err
		}
	}
	gvk, err := apiutil.GVKForObject(obj, a.client.Scheme())
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	strip(u.Object)
	return u, nil
}

// strip removes what is not desired but an artefact of Go's zero values: status, and null creation
// times of the object and of the templates in it.
func strip(object map[string]any) {
	delete(object, "status")
	stripCreation(object)
	if metadata, ok := object["metadata"].(map[string]any); ok {
		for _, name := range []string{"uid", "resourceVersion", "generation", "managedFields", "selfLink"} {
			delete(metadata, name)
		}
	}
}

func stripCreation(value any) {
	switch v := value.(type) {
	case map[string]any:
		if stamp, ok := v["creationTimestamp"]; ok && stamp == nil {
			delete(v, "creationTimestamp")
		}
		for name, child := range v {
			// A claim in a template carries a status that Go cannot leave out.
			if name == "status" {
				if m, ok := child.(map[string]any); ok && len(m) == 0 {
					delete(v, name)
					continue
				}
			}
			stripCreation(child)
		}
	case []any:
		for _, child := range v {
			stripCreation(child)
		}
	}
}

// remember keeps the fingerprint of the answer, read through the same type as a live object is.
func (a *Applier) remember(key objectKey, owner, desired client.Object, answer *unstructured.Unstructured, sum uint64) error {
	var as client.Object = answer
	if _, ok := desired.(*unstructured.Unstructured); !ok {
		made, err := a.client.Scheme().New(answer.GroupVersionKind())
		if err != nil {
			return err
		}
		typed := made.(client.Object)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, typed); err != nil {
			return err
		}
		as = typed
	}
	live, err := fingerprint(as)
	if err != nil {
		return err
	}
	entry := applied{request: sum, live: live, uid: answer.GetUID()}
	if owner != nil {
		entry.owner = owner.GetUID()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applied[key] = entry
	return nil
}

// Forget drops what is remembered of an owner's objects.
func (a *Applier) Forget(owner types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, entry := range a.applied {
		if entry.owner == owner {
			delete(a.applied, key)
		}
	}
}

// fingerprint is a hash of everything in an object that a person or a controller could have meant:
// not the status, nor the bookkeeping of the API server.
func fingerprint(obj client.Object) (uint64, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return 0, err
	}
	if _, ok := obj.(*unstructured.Unstructured); ok {
		content = shallow(content)
	}
	delete(content, "status")
	delete(content, "apiVersion")
	delete(content, "kind")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		metadata = shallow(metadata)
		for _, name := range []string{"resourceVersion", "generation", "managedFields", "selfLink"} {
			delete(metadata, name)
		}
		content["metadata"] = metadata
	}
	if set, ok := obj.(*appsv1.StatefulSet); ok && len(set.Spec.VolumeClaimTemplates) > 0 {
		// JSON names the kind of a claim template, protobuf does not.
		templates, _, _ := unstructured.NestedSlice(content, "spec", "volumeClaimTemplates")
		for _, template := range templates {
			delete(template.(map[string]any), "apiVersion")
			delete(template.(map[string]any), "kind")
		}
		if err := unstructured.SetNestedSlice(content, templates, "spec", "volumeClaimTemplates"); err != nil {
			return 0, err
		}
	}
	data, err := json.Marshal(content)
	if err != nil {
		return 0, err
	}
	h := fnv.New64a()
	_, _ = h.Write(data)
	return h.Sum64(), nil
}

func shallow(in map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for name, value := range in {
		out[name] = value
	}
	return out
}

// SameData is whether two maps hold the same, nil and empty being one.
func SameData[V any](a, b map[string]V) bool {
	return len(a) == 0 && len(b) == 0 || equality.Semantic.DeepEqual(a, b)
}

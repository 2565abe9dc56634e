package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack"
)

// referenceIndex finds the stacks that read a Secret or ConfigMap.
const referenceIndex = "references"

// indexReferences makes the index over what stacks read.
func indexReferences(mgr ctrl.Manager) error {
	return mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.AuthStack{}, referenceIndex, func(obj client.Object) []string {
		st := obj.(*v1alpha1.AuthStack)
		var keys []string
		for _, name := range stack.SecretNames(st) {
			keys = append(keys, "Secret/"+name)
		}
		for _, name := range stack.ConfigMapNames(st) {
			keys = append(keys, "ConfigMap/"+name)
		}
		return keys
	})
}

// watchReferences has stacks looked at when a Secret or ConfigMap changes that they read and that
// somebody else made. Of those only the names are kept in memory.
func (r *AuthStackReconciler) watchReferences(mgr ctrl.Manager, watching controller.Controller) error {
	options := cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), DefaultTransform: nameOnly}
	for _, namespace := range r.Namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	names, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return err
	}
	if err := mgr.Add(names); err != nil {
		return err
	}
	for _, kind := range []string{"Secret", "ConfigMap"} {
		watched := &metav1.PartialObjectMetadata{}
		watched.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		err := watching.Watch(source.Kind(names, watched, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, obj *metav1.PartialObjectMetadata) []reconcile.Request {
				return r.readers(ctx, kind, obj)
			})))
		if err != nil {
			return fmt.Errorf("watching the names of %ss: %w", kind, err)
		}
	}
	return nil
}

func (r *AuthStackReconciler) readers(ctx context.Context, kind string, obj client.Object) []reconcile.Request {
	var stacks v1alpha1.AuthStackList
	err := r.Client.List(ctx, &stacks, client.InNamespace(obj.GetNamespace()), client.MatchingFields{referenceIndex: kind + "/" + obj.GetName()})
	if err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(stacks.Items))
	for i := range stacks.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&stacks.Items[i])})
	}
	return requests
}

// nameOnly drops everything of an object's metadata but what tells it from others and from before.
func nameOnly(obj any) (any, error) {
	if full, ok := obj.(*metav1.PartialObjectMetadata); ok {
		full.ObjectMeta = metav1.ObjectMeta{Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion}
	}
	return obj, nil
}

package controllers

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack"
)

var postgresqlKind = schema.GroupVersionKind{Group: "acid.zalan.do", Version: "v1", Kind: "postgresql"}

// askZalando says whether Zalando's operator is there and what it says of the stack's cluster. The
// resource may be installed at any time, so nothing is asked of it where a stack does not want it.
func (r *AuthStackReconciler) askZalando(ctx context.Context, s *scope) error {
	name := stack.ZalandoClusterName(s.stack)
	if name == "" {
		return nil
	}
	if _, err := r.Client.RESTMapper().RESTMapping(postgresqlKind.GroupKind(), postgresqlKind.Version); err != nil {
		if meta.IsNoMatchError(err) {
			return nil
		}
		return fmt.Errorf("asking whether postgresqls.acid.zalan.do is served: %w", err)
	}
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(postgresqlKind)
	err := r.Reader.Get(ctx, types.NamespacedName{Namespace: s.stack.Namespace, Name: name}, cluster)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err) && noSuchResource(err):
		return nil // It was served once and is no more.
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("reading postgresql %s: %w", name, err)
	}
	s.facts.ZalandoInstalled = true
	if err == nil {
		s.facts.Zalando, _, _ = unstructured.NestedString(cluster.Object, "status", "PostgresClusterStatus")
	}
	return r.zalando.start(ctx)
}

// noSuchResource tells "no such kind" from "no such object": only the latter names it.
func noSuchResource(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && (status.Status().Details == nil || status.Status().Details.Name == "")
}

// zalandoWatch begins to watch postgresql resources once they are served.
type zalandoWatch struct {
	cache      cache.Cache
	controller controller.Controller
	mu         sync.Mutex
	started    bool
}

func (z *zalandoWatch) start(context.Context) error {
	if z == nil || z.controller == nil {
		return nil
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.started {
		return nil
	}
	watched := &unstructured.Unstructured{}
	watched.SetGroupVersionKind(postgresqlKind)
	err := z.controller.Watch(source.Kind(z.cache, watched, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, obj *unstructured.Unstructured) []reconcile.Request {
			if name := obj.GetLabels()[v1alpha1.StackLabel]; name != "" {
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
			}
			return nil
		})))
	if err != nil {
		return fmt.Errorf("watching postgresqls.acid.zalan.do: %w", err)
	}
	z.started = true
	return nil
}

package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
)

// SetupWithManager has the manager run the reconciler. An operator that lists its namespaces may not
// watch those of the cluster; its comparisons are refused.
func (r *LatencyComparisonReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.applier = kube.NewApplier(r.Client)
	b := ctrl.NewControllerManagedBy(mgr).Named("latencycomparison").
		For(&v1alpha1.LatencyComparison{}, builder.WithPredicates(meant())).
		WithOptions(controller.Options{MaxConcurrentReconciles: max(r.Concurrency, 1)})
	if len(r.Namespaces) == 0 {
		byLabel := handler.EnqueueRequestsFromMapFunc(comparisonOf)
		b = b.Watches(&v1alpha1.AuthStack{}, byLabel).Watches(&v1alpha1.LatencyTest{}, byLabel).Watches(&corev1.Namespace{}, byLabel)
	}
	return b.Complete(r)
}

// comparisonOf is the comparison that an object was made for.
func comparisonOf(_ context.Context, obj client.Object) []reconcile.Request {
	labels := obj.GetLabels()
	name, namespace := labels[v1alpha1.ComparisonLabel], labels[v1alpha1.ComparisonNamespaceLabel]
	if name == "" || namespace == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

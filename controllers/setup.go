package controllers

import (
	"context"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/stack/storage"
)

// NewScheme holds every kind that the operator reads or writes by its type.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// CacheOptions keep in memory what the reconcilers watch and nothing else: the operator's own kinds,
// StorageClasses, the objects of stacks, and the Jobs of tests and probes, but not their scripts and results.
func CacheOptions(namespaces []string) cache.Options {
	options := cache.Options{
		DefaultLabelSelector: must(labels.Parse(v1alpha1.StackLabel + ",!" + latency.TestLabel)),
		DefaultTransform:     cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.AuthStack{}:         {Label: labels.Everything()},
			&v1alpha1.LatencyTest{}:       {Label: labels.Everything()},
			&v1alpha1.LatencyComparison{}: {Label: labels.Everything()},
			&corev1.Namespace{}:           {Label: must(existing(v1alpha1.ComparisonLabel))},
			&storagev1.StorageClass{}:     {Label: labels.Everything()},
			&batchv1.Job{}:                {Label: must(existing(v1alpha1.StackLabel))},
		},
	}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

func existing(label string) (labels.Selector, error) {
	requirement, err := labels.NewRequirement(label, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	return labels.NewSelector().Add(*requirement), nil
}

func must[T any](value T, err error) T {
	utilruntime.Must(err)
	return value
}

// SetupWithManager has the manager run the reconciler.
func (r *AuthStackReconciler) SetupWithManager(mgr ctrl.Manager) error {
	ctx, cancel := context.WithCancel(context.Background())
	r.applier, r.analyses, r.commits = kube.NewApplier(r.Client), newAnalyses(ctx), newCommits(ctx)
	err := mgr.Add(manager.RunnableFunc(func(stop context.Context) error {
		<-stop.Done()
		cancel()
		return nil
	}))
	if err != nil {
		cancel()
		return err
	}
	err = mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.LatencyTest{}, stackIndex, func(obj client.Object) []string {
		return []string{obj.(*v1alpha1.LatencyTest).Spec.StackRef.Name}
	})
	if err != nil {
		return err
	}
	if err := indexReferences(mgr); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("authstack").
		For(&v1alpha1.AuthStack{}, builder.WithPredicates(meant())).
		WithOptions(controller.Options{MaxConcurrentReconciles: max(r.Concurrency, 1)})
	byLabel := handler.EnqueueRequestsFromMapFunc(stackOfLabel)
	for _, obj := range []client.Object{
		&appsv1.Deployment{}, &appsv1.StatefulSet{}, &corev1.Service{}, &corev1.ConfigMap{}, &corev1.Secret{},
		&policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{},
	} {
		b = b.Watches(obj, byLabel)
	}
	again := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, st *v1alpha1.AuthStack) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(st)}}
	})
	built, err := b.
		Watches(&v1alpha1.LatencyTest{}, handler.EnqueueRequestsFromMapFunc(stackOfTest)).
		Watches(&batchv1.Job{}, byLabel, builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return obj.GetLabels()[storage.ProbeLabel] != ""
		}))).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.stacksWithoutStorage)).
		WatchesRawSource(source.Channel(r.analyses.finished, again)).
		WatchesRawSource(source.Channel(r.commits.finished, again)).
		Build(r)
	if err != nil {
		return err
	}
	r.zalando = &zalandoWatch{cache: mgr.GetCache(), controller: built}
	return r.watchReferences(mgr, built)
}

func stackOfLabel(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[v1alpha1.StackLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
}

func stackOfTest(_ context.Context, obj client.Object) []reconcile.Request {
	test := obj.(*v1alpha1.LatencyTest)
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: test.Namespace, Name: test.Spec.StackRef.Name}}}
}

// stacksWithoutStorage are those that a change of a StorageClass may help.
func (r *AuthStackReconciler) stacksWithoutStorage(ctx context.Context, _ client.Object) []reconcile.Request {
	var stacks v1alpha1.AuthStackList
	if err := r.Client.List(ctx, &stacks); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range stacks.Items {
		if !meta.IsStatusConditionTrue(stacks.Items[i].Status.Conditions, v1alpha1.ConditionStorageReady) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&stacks.Items[i])})
		}
	}
	return requests
}

// meant passes what somebody meant: a new generation, other annotations, a deletion; not a status,
// which is written by the reconciler itself.
func meant() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) ||
			!e.ObjectOld.GetDeletionTimestamp().Equal(e.ObjectNew.GetDeletionTimestamp()) ||
			// A list after a lost watch.
			e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
	}}
}

package controllers

import (
	"context"
	"io"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/schedule"
)

// SetupWithManager has the manager run the reconciler. The reconciler of AuthStacks is set up first:
// it makes the index over the tests of a stack.
func (r *LatencyTestReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.applier = kube.NewApplier(r.Client)
	return ctrl.NewControllerManagedBy(mgr).Named("latencytest").
		For(&v1alpha1.LatencyTest{}, builder.WithPredicates(meant())).
		Owns(&batchv1.Job{}).
		Watches(&v1alpha1.AuthStack{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
			return r.unfinished(ctx, obj.GetNamespace(), obj.GetName())
		})).
		// A test that has finished or is deleted lets the next one begin, of whichever stack.
		Watches(&v1alpha1.LatencyTest{}, handler.EnqueueRequestsFromMapFunc(r.waiting), builder.WithPredicates(finishes())).
		WithOptions(controller.Options{MaxConcurrentReconciles: max(r.Concurrency, 1)}).
		Complete(r)
}

// finishes passes the moments after which another test may begin.
func finishes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !schedule.Finished(e.ObjectOld.(*v1alpha1.LatencyTest)) && schedule.Finished(e.ObjectNew.(*v1alpha1.LatencyTest))
		},
	}
}

// unfinished are the tests of a stack that have no verdict yet.
func (r *LatencyTestReconciler) unfinished(ctx context.Context, namespace, stackName string) []reconcile.Request {
	tests, err := testsOf(ctx, r.Client, namespace, stackName)
	if err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range tests {
		if !schedule.Finished(&tests[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&tests[i])})
		}
	}
	return requests
}

// waiting are the tests that wait for another one.
func (r *LatencyTestReconciler) waiting(ctx context.Context, _ client.Object) []reconcile.Request {
	var tests v1alpha1.LatencyTestList
	if err := r.Client.List(ctx, &tests); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range tests.Items {
		condition := conditionOf(&tests.Items[i], v1alpha1.ConditionReady)
		if condition != nil && condition.Reason == v1alpha1.ReasonWaitingForTest {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&tests.Items[i])})
		}
	}
	return requests
}

// PodLogs reads logs through the API server.
type PodLogs struct {
	Clientset kubernetes.Interface
}

// logLines are read of a log, from its end. A result has about a thousand, and stands last; what k6 warned of before can
// be as long as the kubelet lets a log be. So many lines of 16 KiB, where runtimes split them, are logLimit.
const logLines = int64(4_000)

// Stream of the end of a container's log.
func (l PodLogs) Stream(ctx context.Context, namespace, pod, container string) (io.ReadCloser, error) {
	lines := logLines
	return l.Clientset.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, TailLines: &lines}).Stream(ctx)
}

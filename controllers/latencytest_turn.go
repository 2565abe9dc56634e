package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/schedule"
)

// overdue is how long after the end of its grace period a k6 Pod that is still there is taken to be
// gone: its node does not answer any more, and waiting for it could last for ever.
const overdue = time.Minute

// waitsFor is what stands in the way of the run: a reason and a sentence, or empty. Where nothing does,
// the turn has been taken, by the finalizer.
func (r *LatencyTestReconciler) waitsFor(ctx context.Context, t *run) (reason, message string, err error) {
	if message := unready(t.stack); message != "" {
		return v1alpha1.ReasonWaitingForStack, message, nil
	}
	// The cache first: it answers at no cost for the many tests that wait.
	if message, err = r.turnOf(ctx, r.Client, t); err != nil || message != "" {
		return v1alpha1.ReasonWaitingForTest, message, err
	}
	// The cache may not know yet of a test that has just taken its turn, so that two would run.
	r.turn.Lock()
	defer r.turn.Unlock()
	if message, err = r.turnOf(ctx, r.Reader, t); err != nil || message != "" {
		return v1alpha1.ReasonWaitingForTest, message, err
	}
	if message, err = r.probing(ctx); err != nil || message != "" {
		return v1alpha1.ReasonWaitingForTest, message, err
	}
	if message, err = r.goingPod(ctx, t); err != nil || message != "" {
		return v1alpha1.ReasonWaitingForTest, message, err
	}
	if controllerutil.AddFinalizer(t.after, v1alpha1.Finalizer) {
		return "", "", r.patchMeta(ctx, t)
	}
	return "", "", nil
}

// unready is why a stack cannot be measured now, in a sentence, or empty.
func unready(st *v1alpha1.AuthStack) string {
	ready := meta.FindStatusCondition(st.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case st.Spec.Suspend:
		return fmt.Sprintf("waiting for AuthStack %s to go on: its spec.suspend is true, so that nobody knows whether it is as its spec says", st.Name)
	case ready == nil || st.Status.ObservedGeneration != st.Generation:
		return fmt.Sprintf("waiting for AuthStack %s to be Ready", st.Name)
	case ready.Status != metav1.ConditionTrue:
		return fmt.Sprintf("waiting for AuthStack %s to be Ready: %s", st.Name, ready.Message)
	}
	return ""
}

// turnOf is whose turn it is if not this test's, in a sentence, or empty.
func (r *LatencyTestReconciler) turnOf(ctx context.Context, reader client.Reader, t *run) (string, error) {
	var tests []v1alpha1.LatencyTest
	err := r.everywhere(func(in ...client.ListOption) error {
		var list v1alpha1.LatencyTestList
		err := reader.List(ctx, &list, in...)
		tests = append(tests, list.Items...)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("listing the LatencyTests of the cluster: %w", err)
	}
	var failed error
	other := schedule.Before(t.test, tests, func(other *v1alpha1.LatencyTest) bool {
		able, err := r.able(ctx, other)
		if err != nil {
			failed = err
		}
		return able
	})
	if other == nil || failed != nil {
		return "", failed
	}
	name := other.Name
	if other.Namespace != t.test.Namespace {
		name += " of namespace " + other.Namespace
	}
	if other.Status.StartedAt == nil {
		name += ", which comes first"
	} else {
		name += ", which runs"
	}
	return fmt.Sprintf("waiting for LatencyTest %s: one at a time runs on a cluster, since two would measure each other", name), nil
}

// able is whether another test runs or could begin now. One that has begun ends by itself, whatever
// becomes of its stack: its Job has a deadline.
func (r *LatencyTestReconciler) able(ctx context.Context, test *v1alpha1.LatencyTest) (bool, error) {
	st := &v1alpha1.AuthStack{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: test.Namespace, Name: test.Spec.StackRef.Name}, st)
	if err != nil || !st.DeletionTimestamp.IsZero() {
		return false, client.IgnoreNotFound(err)
	}
	return test.Status.StartedAt != nil || unready(st) == "", nil
}

// probing is that a storage is being probed, in a sentence, or empty. A probe ends by itself.
func (r *LatencyTestReconciler) probing(ctx context.Context) (message string, err error) {
	err = r.everywhere(func(in ...client.ListOption) error {
		probed, err := probeRuns(ctx, r.Reader, in...)
		if probed != "" {
			message = fmt.Sprintf("waiting for the storage probe of AuthStack %s: its writes would be measured", probed)
		}
		return err
	})
	return message, err
}

// goingPod is a k6 Pod of a test that was taken away, which still makes load until its grace period is
// over, in a sentence, or empty.
func (r *LatencyTestReconciler) goingPod(ctx context.Context, t *run) (string, error) {
	var message string
	err := r.everywhere(func(in ...client.ListOption) error {
		var pods corev1.PodList
		err := r.Reader.List(ctx, &pods, append(in, client.HasLabels{latency.TestLabel})...)
		for i := range pods.Items {
			pod := &pods.Items[i]
			if gone := pod.DeletionTimestamp; gone != nil && pod.Status.Phase == corev1.PodRunning && t.now.Sub(gone.Time) < overdue {
				message = fmt.Sprintf("waiting for Pod %s of namespace %s to end: it makes the load of a LatencyTest that was taken away", pod.Name, pod.Namespace)
			}
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("listing the Pods of k6: %w", err)
	}
	return message, nil
}

// everywhere lists in each namespace that the operator works in.
func (r *LatencyTestReconciler) everywhere(list func(in ...client.ListOption) error) error {
	if len(r.Namespaces) == 0 {
		return list()
	}
	for _, namespace := range r.Namespaces {
		if err := list(client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	return nil
}

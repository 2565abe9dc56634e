package controllers

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/latency"
)

// stackGrace is how long a stack may come after its test before that counts as a mistake.
const stackGrace = 30 * time.Second

// withoutStack is what becomes of a test whose stack is not there.
func (r *LatencyTestReconciler) withoutStack(ctx context.Context, t *run) kube.Outcome {
	message := fmt.Sprintf("there is no AuthStack %s in namespace %s; a LatencyTest measures a stack of its own namespace",
		t.test.Spec.StackRef.Name, t.test.Namespace)
	if t.test.Status.StartedAt != nil || controllerutil.ContainsFinalizer(t.test, v1alpha1.Finalizer) {
		return r.finish(ctx, t, latency.Outcome{Verdict: v1alpha1.VerdictError, Message: "the stack was deleted during the run"})
	}
	if t.now.Sub(t.test.CreationTimestamp.Time) < stackGrace {
		return r.wait(ctx, t, v1alpha1.ReasonStackNotFound, message)
	}
	t.stall(v1alpha1.ReasonStackNotFound, message)
	if err := r.report(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	return kube.Outcome{State: kube.Stalled}
}

// refuse ends a test that cannot be run as it is written.
func (r *LatencyTestReconciler) refuse(ctx context.Context, t *run, message string) kube.Outcome {
	return r.finish(ctx, t, latency.Outcome{Verdict: v1alpha1.VerdictError, Message: message})
}

// begun is whether the first Job of the run exists, or what is kept of it.
func (r *LatencyTestReconciler) begun(ctx context.Context, t *run) (bool, error) {
	job, err := r.job(ctx, t, 1)
	if err != nil || job != nil {
		return job != nil, err
	}
	one, err := r.kept(ctx, t, 1)
	return one != nil, err
}

// job of repeat n, or nil.
func (r *LatencyTestReconciler) job(ctx context.Context, t *run, n int32) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	name := latency.JobName(t.test.Name, t.number, n)
	found, err := getThrough(ctx, r.Client, r.Reader, types.NamespacedName{Namespace: t.test.Namespace, Name: name}, job)
	if err != nil {
		return nil, fmt.Errorf("reading Job %s: %w", name, err)
	}
	if !found {
		return nil, nil
	}
	return job, nil
}

// wait says what the test waits for.
func (r *LatencyTestReconciler) wait(ctx context.Context, t *run, reason, message string) kube.Outcome {
	t.progress(reason, message)
	if err := r.report(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	return kube.Outcome{State: kube.Progressing, Since: kube.Since(t.after.Status.Conditions)}
}

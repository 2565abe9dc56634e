package controllers

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/latency"
)

// cleanUpPatience is how long a test that has finished or is deleted waits for the admin API to let go
// of its users and its application.
const cleanUpPatience = 5 * time.Minute

// cleanUp takes away what a run left behind: Jobs with their Pods, scripts, credentials, users and
// the application of forward auth.
func (r *LatencyTestReconciler) cleanUp(ctx context.Context, t *run) kube.Outcome {
	if !controllerutil.ContainsFinalizer(t.test, v1alpha1.Finalizer) {
		return kube.Outcome{State: kube.Suspended}
	}
	// Credentials and Jobs first: they go even where the product's API does not answer.
	if err := r.removeObjects(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	deleted := !t.test.DeletionTimestamp.IsZero()
	left := ""
	if err := r.removeUsers(ctx, t); err != nil {
		if t.now.Sub(t.over()) <= cleanUpPatience {
			return kube.Outcome{Err: fmt.Errorf("removing the test users and application: %w", err)}
		}
		left = t.redactor.Text(fmt.Sprintf("the users %s* and what else has that name are left in the identity provider of AuthStack %s, since its API did not let them be removed within %s; "+
			"remove them by hand, or run the test again: %v", applicationName(t.test), t.test.Spec.StackRef.Name, cleanUpPatience, err))
	}
	if err := r.tellLeft(ctx, t, left, deleted); err != nil {
		return kube.Outcome{Err: err}
	}
	controllerutil.RemoveFinalizer(t.after, v1alpha1.Finalizer)
	if err := r.patchMeta(ctx, t); client.IgnoreNotFound(err) != nil {
		return kube.Outcome{Err: err}
	}
	r.applier.Forget(t.test.UID)
	if !deleted && !t.settled() {
		return kube.Outcome{State: kube.Progressing, Before: time.Second}
	}
	return kube.Outcome{State: kube.Suspended}
}

// over is when the run was over.
func (t *run) over() time.Time {
	switch deleted, completed := t.test.DeletionTimestamp, t.test.Status.CompletedAt; {
	case !deleted.IsZero():
		return deleted.Time
	case completed != nil:
		return completed.Time
	}
	return t.now
}

// tellLeft says what could not be removed: in a condition, in an event, since a deleted test keeps no
// condition, and in the log.
func (r *LatencyTestReconciler) tellLeft(ctx context.Context, t *run, left string, deleted bool) error {
	if !deleted {
		kube.SetAbnormal(&t.after.Status.Conditions, t.test.Generation, metav1.NewTime(t.now), v1alpha1.ConditionLeftBehind,
			left != "", v1alpha1.ReasonCleanUpFailed, left)
		if err := r.report(ctx, t); err != nil {
			return err
		}
		t.test = t.after.DeepCopy()
	}
	if left != "" {
		log.FromContext(ctx).Info(left)
		r.Recorder.Eventf(t.test, nil, corev1.EventTypeWarning, v1alpha1.ReasonCleanUpFailed, "CleanUp", "%s", kube.Truncate(left))
	}
	return nil
}

func (r *LatencyTestReconciler) removeObjects(ctx context.Context, t *run) error {
	mine := []client.ListOption{client.InNamespace(t.test.Namespace), client.MatchingLabels{latency.TestLabel: t.test.Name}}
	var jobs batchv1.JobList
	var secrets corev1.SecretList
	var configs corev1.ConfigMapList
	var policies networkingv1.NetworkPolicyList
	for _, list := range []client.ObjectList{&jobs, &secrets, &configs, &policies} {
		if err := r.Reader.List(ctx, list, mine...); err != nil {
			return fmt.Errorf("listing what the run left behind: %w", err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			if !metav1.IsControlledBy(obj, t.test) || obj.GetName() == resultName(t.test.Name) || obj.GetDeletionTimestamp() != nil {
				return nil
			}
			return client.IgnoreNotFound(r.Client.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

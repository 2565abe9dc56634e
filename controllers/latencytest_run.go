package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/latency"
)

// look is how often a run is looked at beside the watch of its Job: a Pod that does not start changes
// no Job.
const look = 10 * time.Second

// advance makes the next Job of the run, waits for the present one, or judges after the last.
func (r *LatencyTestReconciler) advance(ctx context.Context, t *run) kube.Outcome {
	if controllerutil.AddFinalizer(t.after, v1alpha1.Finalizer) {
		if err := r.patchMeta(ctx, t); err != nil {
			return kube.Outcome{Err: err}
		}
	}
	repeats := make([]*repeat, 0, t.plan.Repeats)
	for n := int32(1); n <= t.plan.Repeats; n++ {
		job, err := r.job(ctx, t, n)
		if err != nil {
			return kube.Outcome{Err: err}
		}
		if job != nil && n == 1 {
			t.remember(job.Annotations[evidenceAnnotation])
		}
		one, detail, err := r.ended(ctx, t, n, job)
		switch {
		case err != nil:
			return kube.Outcome{Err: err}
		case one != nil:
			if n == 1 {
				t.remember(one.note)
			}
			repeats = append(repeats, one)
		case job != nil:
			return r.running(ctx, t, n, detail)
		default:
			return r.begin(ctx, t, n)
		}
	}
	return r.judge(ctx, t, repeats)
}

func (r *LatencyTestReconciler) patchMeta(ctx context.Context, t *run) error {
	if err := r.Client.Patch(ctx, t.after, client.MergeFromWithOptions(t.test, client.MergeFromWithOptimisticLock{}), kube.FieldManager); err != nil {
		return err
	}
	t.test = t.after.DeepCopy()
	return nil
}

// begin makes the users and the objects of repeat n; the Job comes last, so that its existence means
// that all the rest was done.
func (r *LatencyTestReconciler) begin(ctx context.Context, t *run, n int32) kube.Outcome {
	for done := int32(1); done < n; done++ {
		if err := r.deleteSecret(ctx, t, latency.JobName(t.test.Name, t.number, done)); err != nil {
			return kube.Outcome{Err: err}
		}
	}
	objects, err := r.objects(ctx, t, n)
	if err != nil {
		return r.cannotBegin(ctx, t, err)
	}
	for _, obj := range objects {
		if err := r.create(ctx, t, obj); err != nil {
			return kube.Outcome{Err: err}
		}
	}
	if n == 1 {
		t.remember(objects[len(objects)-1].GetAnnotations()[evidenceAnnotation])
	}
	return r.running(ctx, t, n, "")
}

// create makes an object of a repeat. What exists was made by an operator that died: it stays, but
// a Secret has been read before and is complete.
func (r *LatencyTestReconciler) create(ctx context.Context, t *run, obj client.Object) error {
	if err := controllerutil.SetControllerReference(t.test, obj, r.Client.Scheme()); err != nil {
		return err
	}
	err := r.Client.Create(ctx, obj, kube.FieldManager)
	if apierrors.IsAlreadyExists(err) {
		if _, job := obj.(*batchv1.Job); !job {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("creating %s %s: %w", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName(), err)
	}
	return nil
}

// objects of a repeat, with the users in place that they log in as and the applications that they ask for.
func (r *LatencyTestReconciler) objects(ctx context.Context, t *run, repeat int32) ([]client.Object, error) {
	secret, err := r.credentials(ctx, t, repeat)
	if err != nil {
		return nil, err
	}
	if err := r.protect(ctx, t); err != nil {
		return nil, err
	}
	script, err := r.confinement(ctx, t)
	if err != nil {
		return nil, err
	}
	objects := latency.Objects(latency.JobInput{
		Test: t.test, Plan: t.plan, Script: script, Credentials: secret, Image: r.Images.OrDefault().K6, ImagePullPolicy: r.ImagePullPolicy,
		Run: t.number, Repeat: repeat,
		Target: latency.Target{
			Provider: t.target.Provider, Version: t.target.Version, BaseURL: t.target.BaseURL,
			Host: t.target.Host, ForwardAuthHost: t.target.ProtectedHost,
		},
	})
	return objects, r.observe(ctx, t, objects[len(objects)-1].(*batchv1.Job), repeat)
}

// observe notes on the Job of a repeat what is seen just before it: before the first one all of it, before
// some of the others only that the database was asked, for the guard on the operator's own effect.
func (r *LatencyTestReconciler) observe(ctx context.Context, t *run, job *batchv1.Job, repeat int32) error {
	if !latency.Observed(repeat) {
		return nil
	}
	known, err := r.known(ctx, t)
	if err != nil {
		return err
	}
	counted := r.sample(ctx, t, known)
	if counted != nil {
		metav1.SetMetaDataAnnotation(&job.ObjectMeta, observedAnnotation, "true")
	}
	if repeat > 1 {
		return nil
	}
	seen := before{Generation: t.stack.Generation, StartedAt: t.now.UTC(), Subject: subject(t.stack), Database: counted}
	if seen.Pods, err = r.stackPods(ctx, t); err != nil {
		return err
	}
	seen.Nodes = r.nodes(ctx, nodesOf(seen.Pods))
	note, err := json.Marshal(seen)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, evidenceAnnotation, string(note))
	return nil
}

// beginTimeout is how long a stack that is Ready may refuse to let test users be made: authentik's
// worker makes the token of its API only some time after the server answers.
const beginTimeout = 10 * time.Minute

func (r *LatencyTestReconciler) cannotBegin(ctx context.Context, t *run, err error) kube.Outcome {
	message := t.redactor.Text(err.Error())
	since := kube.Since(t.test.Status.Conditions)
	reason := v1alpha1.ReasonRunning
	if old := conditionOf(t.test, v1alpha1.ConditionReconciling); old == nil || old.Reason != reason {
		since = nil
	}
	if since != nil && t.now.Sub(since.Time) > beginTimeout {
		return r.finish(ctx, t, latency.Outcome{Verdict: v1alpha1.VerdictError, Message: "the run could not begin: " + message})
	}
	t.progress(reason, "the run cannot begin yet: "+message)
	if err := r.report(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	return kube.Outcome{State: kube.Progressing, Since: kube.Since(t.after.Status.Conditions)}
}

// running says how far the run is.
func (r *LatencyTestReconciler) running(ctx context.Context, t *run, n int32, detail string) kube.Outcome {
	t.after.Status.CompletedRepeats = n - 1
	message := fmt.Sprintf("k6 runs in Job %s, %d of %d", latency.JobName(t.test.Name, t.number, n), n, t.plan.Repeats)
	t.progress(v1alpha1.ReasonRunning, message+detail)
	if err := r.report(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	return kube.Outcome{State: kube.Progressing, Since: kube.Since(t.after.Status.Conditions), Before: look}
}

// handled is the request that this run answers: that of the beginning, for a first run what stood
// there when it began.
func (t *run) handled() string {
	if t.test.Status.StartedAt != nil || t.test.Status.Run > 1 {
		return t.test.Status.LastHandledReconcileAt
	}
	return t.test.Annotations[v1alpha1.RequestedAtAnnotation]
}

func (r *LatencyTestReconciler) deleteSecret(ctx context.Context, t *run, name string) error {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: t.test.Namespace, Name: name}
	if err := r.Reader.Get(ctx, key, secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(secret, t.test) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Delete(ctx, secret))
}

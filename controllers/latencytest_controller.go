package controllers

import (
	"context"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/baseline"
	"authstack.dev/authstack/internal/idp"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/schedule"
	"authstack.dev/authstack/internal/stack"
)

// +kubebuilder:rbac:groups=authstack.dev,resources=latencytests,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=authstack.dev,resources=latencytests/status,verbs=patch
// +kubebuilder:rbac:groups=authstack.dev,resources=latencytests/finalizers,verbs=update
// +kubebuilder:rbac:groups=authstack.dev,resources=authstacks,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=list;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get

// Logs reads what a container printed.
type Logs interface {
	Stream(ctx context.Context, namespace, pod, container string) (io.ReadCloser, error)
}

// Users is the edge to the admin API of an identity provider.
type Users interface {
	EnsureUser(ctx context.Context, baseURL, token, username, password string) error
	RemoveUsers(ctx context.Context, baseURL, token, prefix string) error
	EnsureForwardAuth(ctx context.Context, baseURL, token string, app idp.ForwardAuth) error
	RemoveForwardAuth(ctx context.Context, baseURL, token, name string) error
	EnsureOIDC(ctx context.Context, baseURL, token string, app idp.OIDC) error
	RemoveOIDC(ctx context.Context, baseURL, token, name string) error
}

// LatencyTestReconciler measures stacks.
type LatencyTestReconciler struct {
	// Client reads from the cache and writes; Reader reads from the API server what the cache does not
	// hold: Pods, Secrets, results.
	Client   client.Client
	Reader   client.Reader
	Recorder events.EventRecorder
	Logs     Logs
	Users    Users
	// Database is asked for its counters around a run; nil for never.
	Database Sampler
	Images   stack.Images
	// ImagePullPolicy of the k6 image.
	ImagePullPolicy corev1.PullPolicy
	Now             func() time.Time
	Random          io.Reader
	Concurrency     int
	// Namespaces that the operator works in; all where empty.
	Namespaces []string

	applier *kube.Applier
	// turn is held while a test takes its turn.
	turn sync.Mutex
}

// run is what one reconcile of a test works on.
type run struct {
	// test is the object as read; status is written into after.
	test, after *v1alpha1.LatencyTest
	stack       *v1alpha1.AuthStack
	plan        *latency.Plan
	target      stack.Target
	redactor    *kube.Redactor
	// seen is what was seen before the run, once it has begun.
	seen   before
	number int64
	now    time.Time
	// repeats are the figures of each repeat, once the run is judged.
	repeats []baseline.Repeat
}

// Reconcile one test.
func (r *LatencyTestReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	found := &v1alpha1.LatencyTest{}
	if err := r.Client.Get(ctx, request.NamespacedName, found); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	t := &run{test: found, after: found.DeepCopy(), redactor: &kube.Redactor{}, now: r.Now(), number: max(found.Status.Run, 1)}
	outcome := r.reconcile(ctx, t)
	outcome.Err = t.redactor.Error(outcome.Err)
	if retry(outcome.Err) {
		log.FromContext(ctx).V(1).Info("conflict, trying again", "error", outcome.Err.Error())
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return outcome.Result(t.now, request.String())
}

func (r *LatencyTestReconciler) reconcile(ctx context.Context, t *run) kube.Outcome {
	deleted := !t.test.DeletionTimestamp.IsZero()
	if deleted && !controllerutil.ContainsFinalizer(t.test, v1alpha1.Finalizer) {
		return kube.Outcome{State: kube.Suspended}
	}
	if err := r.findStack(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	if deleted || t.settled() {
		// The finalizer stands for what a run leaves behind until it is cleaned up.
		return r.cleanUp(ctx, t)
	}
	if t.after.Status.Verdict != "" {
		return r.again(ctx, t)
	}
	if t.stack == nil {
		return r.withoutStack(ctx, t)
	}
	if err := t.resolve(); err != nil {
		return r.refuse(ctx, t, err.Error())
	}
	begun, err := r.begun(ctx, t)
	if err != nil {
		return kube.Outcome{Err: err}
	}
	if !begun {
		if _, problem, err := r.baseline(ctx, t); err != nil || problem != "" {
			if err != nil {
				return kube.Outcome{Err: err}
			}
			return r.refuse(ctx, t, problem)
		}
		if _, problem, err := r.ownScript(ctx, t); err != nil || problem != "" {
			if err != nil {
				return kube.Outcome{Err: err}
			}
			return r.withoutScript(ctx, t, problem)
		}
		reason, message, err := r.waitsFor(ctx, t)
		if err != nil {
			return kube.Outcome{Err: err}
		}
		if message != "" {
			return r.wait(ctx, t, reason, message)
		}
	}
	return r.advance(ctx, t)
}

// settled is whether there is a verdict and nobody has asked for another.
func (t *run) settled() bool {
	if !schedule.Finished(t.test) {
		return false
	}
	// A test that was refused is looked at again when its spec has changed.
	return t.test.Status.StartedAt != nil || t.test.Status.ObservedGeneration == t.test.Generation
}

// resolve fills in what the run is made of.
func (t *run) resolve() (err error) {
	if t.plan, err = latency.Resolve(t.test, t.stack); err != nil {
		return err
	}
	if _, err = t.plan.Client(); err != nil {
		return err
	}
	t.target, err = stack.LatencyTarget(t.stack)
	return err
}

// findStack reads the stack; one that is missing or being deleted is none.
func (r *LatencyTestReconciler) findStack(ctx context.Context, t *run) error {
	found := &v1alpha1.AuthStack{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: t.test.Namespace, Name: t.test.Spec.StackRef.Name}, found)
	if err == nil && found.DeletionTimestamp.IsZero() {
		t.stack = found
	}
	return client.IgnoreNotFound(err)
}

// again clears what was found, for the next run of the test; what the last one left behind goes first.
func (r *LatencyTestReconciler) again(ctx context.Context, t *run) kube.Outcome {
	if controllerutil.ContainsFinalizer(t.test, v1alpha1.Finalizer) {
		return r.cleanUp(ctx, t)
	}
	status := &t.after.Status
	*status = v1alpha1.LatencyTestStatus{
		ObservedGeneration: t.test.Generation, Conditions: status.Conditions,
		Run: t.number + 1, ResultName: status.ResultName,
		LastHandledReconcileAt: t.test.Annotations[v1alpha1.RequestedAtAnnotation],
	}
	t.progress(v1alpha1.ReasonProgressing, "the test was asked for again")
	if err := r.report(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	return kube.Outcome{State: kube.Progressing, Before: time.Second}
}

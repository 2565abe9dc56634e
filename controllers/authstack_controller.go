package controllers

import (
	"context"
	"errors"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/durability"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/stack"
)

// +kubebuilder:rbac:groups=authstack.dev,resources=authstacks,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=authstack.dev,resources=authstacks/status,verbs=patch
// +kubebuilder:rbac:groups=authstack.dev,resources=authstacks/finalizers,verbs=update
// +kubebuilder:rbac:groups=authstack.dev,resources=latencytests,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=acid.zalan.do,resources=postgresqls,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Databases is the edge to PostgreSQL.
type Databases interface {
	Observe(ctx context.Context, target stack.DatabaseTarget) (*facts.Database, error)
	SetRole(ctx context.Context, target stack.DatabaseTarget, has, want map[string]string, reset []string) (changed bool, err error)
	Analyze(ctx context.Context, target stack.DatabaseTarget) error
	SetDurability(ctx context.Context, target stack.DatabaseTarget, change durability.Change) error
	Commit(ctx context.Context, target stack.DatabaseTarget) error
}

// AuthStackReconciler makes stacks exist.
type AuthStackReconciler struct {
	// Client reads from the cache and writes; Reader reads from the API server what the cache does not
	// hold: Secrets and ConfigMaps that users name, volumes, Pods.
	Client   client.Client
	Reader   client.Reader
	Recorder events.EventRecorder
	Database Databases
	// Logs of the storage probe.
	Logs   Logs
	Images stack.Images
	// ImagePullPolicy of the storage probe; Kubernetes' default where empty.
	ImagePullPolicy corev1.PullPolicy
	// OperatorNamespace is where the operator runs, or empty where it runs outside.
	OperatorNamespace string
	// Now and Random are the clock and the source of generated secrets.
	Now    func() time.Time
	Random io.Reader
	// Namespaces to work in; all where empty.
	Namespaces []string
	// Concurrency is the number of stacks that are reconciled at once.
	Concurrency int

	applier  *kube.Applier
	analyses *analyses
	commits  *commits
	silences silences
	zalando  *zalandoWatch
}

// scope is what one reconcile works on.
type scope struct {
	// stack is the object as read; status is written into after.
	stack, after *v1alpha1.AuthStack
	facts        facts.Stack
	plan         *stack.Plan
	redactor     *kube.Redactor
	// changed are the conditions of the phases that this reconcile has changed objects of, or of
	// which it could not tell: what the facts say of them is of the time before.
	changed map[string]bool
	// applied are the conditions of the phases whose objects were asked for in full.
	applied map[string]bool
	// settingsKept is whether the settings of the role could not be brought about, so that the list of
	// those that were set before must not be lost.
	settingsKept bool
	analyzed     bool
	before       time.Duration
	now          time.Time
}

// Reconcile one stack.
func (r *AuthStackReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	found := &v1alpha1.AuthStack{}
	if err := r.Client.Get(ctx, request.NamespacedName, found); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{stack: found, after: found.DeepCopy(), redactor: &kube.Redactor{}, now: r.Now(),
		changed: map[string]bool{}, applied: map[string]bool{}}
	outcome := r.reconcile(ctx, s)
	outcome.Err = s.redactor.Error(outcome.Err)
	if retry(outcome.Err) {
		// Somebody was faster, or the cache is behind: look again without a fuss.
		log.FromContext(ctx).V(1).Info("conflict, trying again", "error", outcome.Err.Error())
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return outcome.Result(s.now, request.String())
}

// retry is whether an error means that the reconcile was made from an old read.
func retry(err error) bool {
	return err != nil && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err))
}

func (r *AuthStackReconciler) reconcile(ctx context.Context, s *scope) kube.Outcome {
	if !s.stack.DeletionTimestamp.IsZero() {
		return r.remove(ctx, s)
	}
	if controllerutil.AddFinalizer(s.after, v1alpha1.Finalizer) {
		if err := r.Client.Patch(ctx, s.after, client.MergeFromWithOptions(s.stack, client.MergeFromWithOptimisticLock{}), kube.FieldManager); err != nil {
			return kube.Outcome{Err: err}
		}
		s.stack = s.after.DeepCopy()
	}
	if s.stack.Spec.Suspend {
		return r.suspend(ctx, s)
	}
	if err := r.gather(ctx, s); err != nil {
		return kube.Outcome{Err: err}
	}
	failed := r.apply(ctx, s)
	if retry(failed) {
		return kube.Outcome{Err: failed}
	}
	r.tune(ctx, s)
	r.summarize(s, failed)
	if err := r.measure(ctx, s); err != nil {
		return kube.Outcome{Err: err}
	}
	if err := r.probe(ctx, s); err != nil {
		// Figures are worth less than the status of the stack, which is written first.
		failed = errors.Join(failed, err)
	}
	if err := r.report(ctx, s); err != nil {
		return kube.Outcome{Err: err}
	}
	return r.outcome(s, failed)
}

// forget what is remembered of a stack that is gone.
func (r *AuthStackReconciler) forget(uid types.UID) {
	r.applier.Forget(uid)
	r.analyses.forget(uid)
}

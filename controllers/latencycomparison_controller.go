package controllers

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/comparison"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/stack"
)

// +kubebuilder:rbac:groups=authstack.dev,resources=latencycomparisons,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=authstack.dev,resources=latencycomparisons/status,verbs=patch
// +kubebuilder:rbac:groups=authstack.dev,resources=latencycomparisons/finalizers,verbs=update
// +kubebuilder:rbac:groups=authstack.dev,resources=authstacks;latencytests,verbs=create;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=list;patch

// LatencyComparisonReconciler makes variants of a stack, has them measured by LatencyTests, compares
// what came out, and takes everything away again.
//
// What it knows of a run is what the cluster holds: the namespaces with their label, the stacks and the
// LatencyTests in them. An operator that starts in the middle goes on where the last one was.
type LatencyComparisonReconciler struct {
	// Client reads from the cache and writes; Reader reads from the API server what the cache does not
	// hold: volumes, results, ConfigMaps of the base.
	Client   client.Client
	Reader   client.Reader
	Recorder events.EventRecorder
	Now      func() time.Time
	// Namespaces that the operator works in; all where empty. A comparison makes namespaces of its own,
	// so it is refused where they are listed.
	Namespaces  []string
	Concurrency int
	// Images tell whether the operator can probe storage.
	Images stack.Images

	applier *kube.Applier
}

// compared is what one reconcile of a comparison works on.
type compared struct {
	// comparison is the object as read; status is written into after.
	comparison, after *v1alpha1.LatencyComparison
	base              *v1alpha1.AuthStack
	plan              *comparison.Plan
	now               time.Time
}

// Reconcile one comparison.
func (r *LatencyComparisonReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	c := &compared{comparison: &v1alpha1.LatencyComparison{}, now: r.Now()}
	err := r.Client.Get(ctx, request.NamespacedName, c.comparison)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	var outcome kube.Outcome
	if err != nil {
		outcome = r.sweep(ctx, request.NamespacedName)
	} else {
		c.after = c.comparison.DeepCopy()
		outcome = r.reconcile(ctx, c)
	}
	if retry(outcome.Err) {
		log.FromContext(ctx).V(1).Info("conflict, trying again", "error", outcome.Err.Error())
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return outcome.Result(c.now, request.String())
}

func (r *LatencyComparisonReconciler) reconcile(ctx context.Context, c *compared) kube.Outcome {
	status, hash := &c.after.Status, comparison.Hash(c.comparison)
	finalized := controllerutil.ContainsFinalizer(c.comparison, v1alpha1.Finalizer)
	switch {
	case !c.comparison.DeletionTimestamp.IsZero():
		if !finalized {
			return kube.Outcome{State: kube.Suspended}
		}
		return r.cleanUp(ctx, c)
	case status.Verdict != "" && status.Compared == hash:
		return r.finished(ctx, c, finalized)
	case status.Compared != "" && status.Compared != hash && finalized:
		// Another comparison is asked for: what was made for the last one goes first.
		return r.cleanUp(ctx, c)
	}
	if problem, err := r.resolve(ctx, c, status.Compared == hash); err != nil {
		return kube.Outcome{Err: err}
	} else if problem != nil {
		return r.refuse(ctx, c, problem)
	}
	if status.Compared != hash {
		return r.begin(ctx, c, hash)
	}
	if !finalized {
		return r.protect(ctx, c)
	}
	return r.advance(ctx, c)
}

// problem is why a comparison cannot go on as it is written.
type problem struct {
	reason, message string
}

// resolve reads the base and makes the plan. The base of a comparison that has begun has to stay as it
// was: a plan from another one would be of other stacks than those that run.
func (r *LatencyComparisonReconciler) resolve(ctx context.Context, c *compared, begun bool) (*problem, error) {
	if len(r.Namespaces) > 0 {
		return &problem{v1alpha1.ReasonInvalidSpec, "a comparison makes a namespace for each variant, and this operator only works in the namespaces that --watch-namespaces lists; run it without that flag (Helm: watchNamespaces: [])"}, nil
	}
	base := &v1alpha1.AuthStack{}
	name := c.comparison.Spec.StackRef.Name
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: c.comparison.Namespace, Name: name}, base)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || !base.DeletionTimestamp.IsZero() {
		return &problem{v1alpha1.ReasonStackNotFound, fmt.Sprintf("there is no AuthStack %s in namespace %s; a comparison takes a stack of its own namespace for its base", name, c.comparison.Namespace)}, nil
	}
	if begun && base.Generation != c.comparison.Status.BaseGeneration {
		return &problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("AuthStack %s changed while it was compared; set the annotation %s to a new value to compare it as it is now", name, v1alpha1.RequestedAtAnnotation)}, nil
	}
	plan, err := comparison.Resolve(c.comparison, base)
	if err != nil {
		return &problem{v1alpha1.ReasonInvalidSpec, err.Error()}, nil
	}
	plan.Probes = r.Images.Probe != ""
	c.base, c.plan = base, plan
	return nil, nil
}

// refuse says what is wrong. Before the beginning it is looked at again now and then, since the base may
// come or change; after, it is the end of the comparison.
func (r *LatencyComparisonReconciler) refuse(ctx context.Context, c *compared, why *problem) kube.Outcome {
	if c.after.Status.Compared == comparison.Hash(c.comparison) {
		return r.fail(ctx, c, why.message)
	}
	// What an earlier comparison found is not the answer to this one.
	c.after.Status = v1alpha1.LatencyComparisonStatus{Conditions: c.after.Status.Conditions, ResultName: c.after.Status.ResultName}
	if why.reason == v1alpha1.ReasonStackNotFound && c.now.Sub(c.comparison.CreationTimestamp.Time) < stackGrace {
		c.progress(v1alpha1.ReasonWaitingForStack, why.message)
		return r.reported(ctx, c, kube.Outcome{State: kube.Progressing, Since: kube.Since(c.after.Status.Conditions)})
	}
	c.stall(why.reason, why.message)
	return r.reported(ctx, c, kube.Outcome{State: kube.Stalled})
}

// begin asks the API server whether it would take every variant, before anything is made, and notes what
// is compared.
func (r *LatencyComparisonReconciler) begin(ctx context.Context, c *compared, hash string) kube.Outcome {
	for _, variant := range c.plan.Variants {
		refused, err := r.tryOut(ctx, c, variant)
		if err != nil {
			return kube.Outcome{Err: err}
		}
		if refused != "" {
			return r.refuse(ctx, c, &problem{v1alpha1.ReasonInvalidSpec, refused})
		}
	}
	now := metav1.NewTime(c.now)
	status := &c.after.Status
	*status = v1alpha1.LatencyComparisonStatus{
		ObservedGeneration: c.comparison.Generation, Conditions: status.Conditions, ResultName: status.ResultName,
		Compared: hash, BaseGeneration: c.base.Generation, StartedAt: &now, Progress: "making the variants",
		LastHandledReconcileAt: c.comparison.Annotations[v1alpha1.RequestedAtAnnotation],
	}
	for _, variant := range c.plan.Variants {
		status.Variants = append(status.Variants, v1alpha1.VariantStatus{Name: variant.Name, Namespace: variant.Namespace})
	}
	c.progress(v1alpha1.ReasonRunning, "the variants are made")
	return r.reported(ctx, c, kube.Outcome{State: kube.Progressing, Before: time.Second})
}

// protect sets the finalizer, before anything is made that it stands for.
func (r *LatencyComparisonReconciler) protect(ctx context.Context, c *compared) kube.Outcome {
	controllerutil.AddFinalizer(c.after, v1alpha1.Finalizer)
	if err := r.patchMeta(ctx, c); err != nil {
		return kube.Outcome{Err: err}
	}
	return kube.Outcome{State: kube.Progressing, Before: time.Second}
}

// advance does what comes next.
func (r *LatencyComparisonReconciler) advance(ctx context.Context, c *compared) kube.Outcome {
	observed, err := r.observe(ctx, c)
	if err != nil {
		return kube.Outcome{Err: err}
	}
	step := c.plan.Next(observed, c.now)
	switch step.Action {
	case comparison.Finish:
		return r.judge(ctx, c, observed)
	case comparison.Fail:
		return r.fail(ctx, c, step.Message)
	case comparison.Make:
		var refused string
		if refused, err = r.make(ctx, c); err == nil && refused != "" {
			return r.fail(ctx, c, refused)
		}
	case comparison.Measure:
		err = r.measure(ctx, c, step.Slot)
	case comparison.Again:
		err = r.again(ctx, c, step.Slot)
	case comparison.Wait:
	}
	if err != nil {
		return kube.Outcome{Err: err}
	}
	c.after.Status.Progress = step.Progress
	message := step.Progress
	if step.Message != "" {
		message += ": " + step.Message
	}
	c.progress(v1alpha1.ReasonRunning, message)
	// The watches of stacks and tests tell the rest.
	return r.reported(ctx, c, kube.Outcome{State: kube.Progressing, Since: kube.Since(c.after.Status.Conditions), Before: step.After})
}

// finished is a comparison with a verdict on what is asked for.
func (r *LatencyComparisonReconciler) finished(ctx context.Context, c *compared, finalized bool) kube.Outcome {
	if finalized && !c.comparison.Spec.Keep {
		return r.cleanUp(ctx, c)
	}
	c.settle(finalized)
	return r.reported(ctx, c, kube.Outcome{State: kube.Suspended})
}

func (r *LatencyComparisonReconciler) patchMeta(ctx context.Context, c *compared) error {
	patch := client.MergeFromWithOptions(c.comparison, client.MergeFromWithOptimisticLock{})
	return r.Client.Patch(ctx, c.after, patch, kube.FieldManager)
}

// fail ends the comparison without a result.
func (r *LatencyComparisonReconciler) fail(ctx context.Context, c *compared, message string) kube.Outcome {
	return r.conclude(ctx, c, v1alpha1.VerdictError, message)
}

// conclude writes the verdict; what was made is taken away at the next look.
func (r *LatencyComparisonReconciler) conclude(ctx context.Context, c *compared, verdict v1alpha1.Verdict, message string) kube.Outcome {
	now := metav1.NewTime(c.now)
	c.after.Status.Verdict, c.after.Status.CompletedAt, c.after.Status.Message = verdict, &now, kube.Truncate(message)
	c.after.Status.Progress = "cleaning up"
	c.progress(v1alpha1.ReasonCleaningUp, message)
	return r.reported(ctx, c, kube.Outcome{State: kube.Progressing, Before: time.Second})
}

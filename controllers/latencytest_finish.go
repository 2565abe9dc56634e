package controllers

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/report"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/internal/stack"
)

// resultLimit is how much a ConfigMap may hold, with room for the rest of the object.
const resultLimit = 1000 << 10

// cleanUpPatience is how long a deleted test waits for the admin API to let go of its users.
const cleanUpPatience = 5 * time.Minute

// judge reads what the Jobs left and says what it is worth.
func (r *LatencyTestReconciler) judge(ctx context.Context, t *run, jobs []*batchv1.Job) kube.Outcome {
	seen := t.started(jobs)
	evidence := latency.Evidence{PodsBefore: seen.Pods, GenerationBefore: seen.Generation, GenerationAfter: t.stack.Generation}
	runs := make([]*result.Run, 0, len(jobs))
	for _, job := range jobs {
		outcome, found, again, err := r.jobOutcome(ctx, t, job)
		if err != nil {
			return kube.Outcome{Err: err}
		}
		if again {
			return r.running(ctx, t, int32(len(jobs)), jobs, "; its log cannot be read yet")
		}
		evidence.Jobs, runs = append(evidence.Jobs, outcome), append(runs, found)
	}
	var err error
	if evidence.PodsAfter, err = r.stackPods(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	t.after.Status.CompletedRepeats = int32(len(jobs))
	return r.finish(ctx, t, latency.Judge(t.plan, runs, evidence))
}

// finish writes the result and then the verdict.
func (r *LatencyTestReconciler) finish(ctx context.Context, t *run, outcome latency.Outcome) kube.Outcome {
	status := &t.after.Status
	status.Run, status.LastHandledReconcileAt = t.number, t.handled()
	now := metav1.NewTime(t.now)
	status.Verdict, status.CompletedAt = outcome.Verdict, &now
	status.LoginP95, status.Scenarios, status.Objectives, status.Guards = outcome.LoginP95, outcome.Scenarios, outcome.Objectives, outcome.Guards
	message := t.redactor.Text(outcome.Message)
	if outcome.Verdict == v1alpha1.VerdictPassed {
		conditions := &status.Conditions
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
		kube.SetCondition(conditions, t.test.Generation, now, v1alpha1.ConditionReady, metav1.ConditionTrue, string(outcome.Verdict), message)
		status.ObservedGeneration = t.test.Generation
	} else {
		t.stall(string(outcome.Verdict), message)
	}
	if status.StartedAt != nil {
		status.ResultName = t.test.Name + "-result"
		if err := r.store(ctx, t, outcome.Merged); err != nil {
			return kube.Outcome{Err: err}
		}
	}
	if err := r.report(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	return kube.Outcome{State: kube.Progressing, Before: time.Second}
}

// store keeps the report and the full histograms in a ConfigMap of the test.
func (r *LatencyTestReconciler) store(ctx context.Context, t *run, merged *result.Run) error {
	var text, page bytes.Buffer
	made := report.New(report.Input{Test: t.after, Stack: t.stack, Run: merged, Now: t.now})
	if err := report.WriteJSON(&page, made); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	data := map[string]string{"report.json": page.String()}
	if merged != nil {
		if err := result.Write(&text, merged); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
		if page.Len()+text.Len() <= resultLimit {
			data["result.txt"] = text.String()
		}
	}
	if page.Len() > resultLimit {
		return fmt.Errorf("the report has %d bytes, more than a ConfigMap can hold", page.Len())
	}
	config := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: t.test.Namespace, Name: t.after.Status.ResultName, Labels: map[string]string{
			v1alpha1.StackLabel: t.test.Spec.StackRef.Name, latency.TestLabel: t.test.Name, "app.kubernetes.io/managed-by": "authstack",
		}},
		Data: data,
	}
	_, err := r.applier.Apply(ctx, t.test, config, nil)
	return err
}

// cleanUp takes away what a run left behind: Jobs with their Pods, scripts, credentials, users.
func (r *LatencyTestReconciler) cleanUp(ctx context.Context, t *run) kube.Outcome {
	if !controllerutil.ContainsFinalizer(t.test, v1alpha1.Finalizer) {
		return kube.Outcome{State: kube.Suspended}
	}
	// Credentials and Jobs first: they go even where the product's API does not answer.
	if err := r.removeObjects(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	err := r.removeUsers(ctx, t)
	deleted := t.test.DeletionTimestamp
	if err != nil && !deleted.IsZero() && t.now.Sub(deleted.Time) > cleanUpPatience {
		log.FromContext(ctx).Info("the test users could not be removed and stay behind", "prefix", userPrefix(t.test), "error", t.redactor.Text(err.Error()))
		r.Recorder.Eventf(t.test, nil, corev1.EventTypeWarning, v1alpha1.ReasonDeleting, "CleanUp", "%s",
			kube.Truncate(fmt.Sprintf("the users %s* could not be removed, remove them by hand: %s", userPrefix(t.test), t.redactor.Text(err.Error()))))
		err = nil
	}
	if err != nil {
		return kube.Outcome{Err: fmt.Errorf("removing the test users: %w", err)}
	}
	controllerutil.RemoveFinalizer(t.after, v1alpha1.Finalizer)
	if err := r.patchMeta(ctx, t); client.IgnoreNotFound(err) != nil {
		return kube.Outcome{Err: err}
	}
	r.applier.Forget(t.test.UID)
	if deleted.IsZero() && !t.settled() {
		return kube.Outcome{State: kube.Progressing, Before: time.Second}
	}
	return kube.Outcome{State: kube.Suspended}
}

func (r *LatencyTestReconciler) removeObjects(ctx context.Context, t *run) error {
	mine := []client.ListOption{client.InNamespace(t.test.Namespace), client.MatchingLabels{latency.TestLabel: t.test.Name}}
	var jobs batchv1.JobList
	var secrets corev1.SecretList
	var configs corev1.ConfigMapList
	for _, list := range []client.ObjectList{&jobs, &secrets, &configs} {
		if err := r.Reader.List(ctx, list, mine...); err != nil {
			return fmt.Errorf("listing what the run left behind: %w", err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			if !metav1.IsControlledBy(obj, t.test) || obj.GetName() == t.test.Name+"-result" || obj.GetDeletionTimestamp() != nil {
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

// resolveTarget finds out where the stack answers.
func (t *run) resolveTarget() (err error) {
	t.target, err = stack.LatencyTarget(t.stack)
	return err
}

// progress says that the test is under way.
func (t *run) progress(reason, message string) {
	conditions, now := &t.after.Status.Conditions, metav1.NewTime(t.now)
	message = t.redactor.Text(message)
	kube.SetCondition(conditions, t.test.Generation, now, v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	kube.SetAbnormal(conditions, t.test.Generation, now, v1alpha1.ConditionReconciling, true, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
	t.after.Status.ObservedGeneration = t.test.Generation
}

// stall says that only a person can help.
func (t *run) stall(reason, message string) {
	conditions, now := &t.after.Status.Conditions, metav1.NewTime(t.now)
	kube.SetCondition(conditions, t.test.Generation, now, v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	kube.SetAbnormal(conditions, t.test.Generation, now, v1alpha1.ConditionStalled, true, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
	t.after.Status.ObservedGeneration = t.test.Generation
}

func conditionOf(test *v1alpha1.LatencyTest, kind string) *metav1.Condition {
	return meta.FindStatusCondition(test.Status.Conditions, kind)
}

// report writes the status, if it differs, and tells the transitions.
func (r *LatencyTestReconciler) report(ctx context.Context, t *run) error {
	was := slices.Clone(t.test.Status.Conditions)
	if changed, err := kube.PatchStatus(ctx, r.Client, t.test, t.after); err != nil || !changed {
		return err
	}
	kube.EmitTransitions(r.Recorder, t.test, was, t.after.Status.Conditions, []string{v1alpha1.ConditionReady}, func(c metav1.Condition) bool {
		return c.Status == metav1.ConditionTrue || conditionOf(t.after, v1alpha1.ConditionReconciling) != nil
	})
	return nil
}

// subject is the stack as it is measured.
func subject(st *v1alpha1.AuthStack) v1alpha1.Subject {
	s := v1alpha1.Subject{Stack: st.Name, StackGeneration: st.Generation}
	if idp := st.Status.IdentityProvider; idp != nil {
		s.IdentityProvider, s.Version, s.Double = idp.Name, idp.Version, idp.Double
	}
	if db := st.Status.Database; db != nil {
		s.Database, s.DatabaseVersion, s.Durability = db.Provider, db.Version, db.Durability
	}
	if storage := st.Status.Storage; storage != nil {
		s.StorageClass, s.Medium = storage.StorageClassName, storage.Medium
	}
	if cache := st.Status.Cache; cache != nil {
		s.Cache = cache.Kind
	}
	return s
}

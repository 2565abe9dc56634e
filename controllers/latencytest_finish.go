package controllers

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/baseline"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/report"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/internal/stack"
)

// resultLimit is how much a ConfigMap may hold, with room for the rest of the object.
const resultLimit = 1000 << 10

// resultName is the ConfigMap with the report and the full result of a test.
func resultName(test string) string { return test + "-result" }

// judge says what the repeats are worth.
func (r *LatencyTestReconciler) judge(ctx context.Context, t *run, repeats []*repeat) kube.Outcome {
	evidence := latency.Evidence{PodsBefore: t.seen.Pods, NodesBefore: t.seen.Nodes, GenerationBefore: t.seen.Generation, GenerationAfter: t.stack.Generation}
	runs := make([]*result.Run, 0, len(repeats))
	for _, one := range repeats {
		evidence.Jobs, runs = append(evidence.Jobs, one.outcome), append(runs, one.found)
	}
	var err error
	if evidence.PodsAfter, err = r.stackPods(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	if _, _, err := r.ownScript(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	evidence.ScriptDigest = t.plan.ScriptDigest
	t.after.Status.CompletedRepeats = int32(len(repeats))
	outcome := latency.Judge(t.plan, runs, evidence)
	voided := len(t.after.Status.Voided)
	if outcome.Voided && voided < latency.MostVoided {
		return r.repeatVoided(ctx, t, outcome)
	}
	t.repeats = baseline.RepeatsOf(t.plan, runs)
	if err := r.compare(ctx, t, runs, &outcome); err != nil {
		return kube.Outcome{Err: err}
	}
	if voided > 0 {
		outcome.Message += fmt.Sprintf(" This is run %d of the test; what voided the earlier ones is in status.voided.", voided+1)
	}
	if outcome.Verdict != v1alpha1.VerdictError {
		if t.after.Status.Causes, err = r.diagnose(ctx, t, outcome.Merged); err != nil {
			return kube.Outcome{Err: err}
		}
	}
	return r.finish(ctx, t, outcome)
}

// repeatVoided begins again after a run that proved nothing by chance. The next run has its own number, and
// so its own Jobs, and waits like any other for its stack to be Ready and for its turn.
func (r *LatencyTestReconciler) repeatVoided(ctx context.Context, t *run, outcome latency.Outcome) kube.Outcome {
	// An operator that dies before the status is written runs the same number once more.
	if err := r.removeObjects(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	status := &t.after.Status
	message := kube.Truncate(t.redactor.Text(outcome.Message))
	status.Voided = append(status.Voided, message)
	status.Run, status.LastHandledReconcileAt = t.number+1, t.handled()
	status.StartedAt, status.Subject, status.CompletedRepeats = nil, nil, 0
	t.progress(v1alpha1.ReasonVoided, fmt.Sprintf("run %d of at most %d proved nothing and is repeated: %s",
		len(status.Voided), latency.MostVoided+1, message))
	if err := r.report(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	return kube.Outcome{State: kube.Progressing, Before: time.Second}
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
		status.ResultName = resultName(t.test.Name)
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
	in := report.Input{Test: t.after, Stack: t.stack, Run: merged, Repeats: t.repeats, Now: t.now}
	if t.plan != nil {
		in.Sizes = baseline.SizesOf(t.plan)
	}
	made := report.New(in)
	if err := report.WriteJSON(&page, made); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if page.Len() > resultLimit {
		// Better without its drawings than not at all.
		made.Plots = nil
		page.Reset()
		if err := report.WriteJSON(&page, made); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
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
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: t.test.Namespace, Name: t.after.Status.ResultName, Labels: t.labels()},
		Data:       data,
	}
	_, err := r.applier.Apply(ctx, t.test, config, nil)
	return err
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

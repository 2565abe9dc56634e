package controllers

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/comparison"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/report"
	"authstack.dev/authstack/internal/result"
)

// judge reads what was measured and compares it. The verdict is written before anything is taken away.
func (r *LatencyComparisonReconciler) judge(ctx context.Context, c *compared, observed []comparison.Observed) kube.Outcome {
	status := &c.after.Status
	valid := c.plan.Valid(observed)
	input := report.ComparisonInput{Now: c.now}
	measured := make([]*comparison.Measured, len(c.plan.Variants))
	for i, variant := range c.plan.Variants {
		m := comparison.NewMeasured(variant)
		var subject *v1alpha1.Subject
		for _, slot := range valid {
			if slot.Variant != i {
				continue
			}
			test := observed[i].Test(slot)
			run, lost, err := r.result(ctx, test)
			if err != nil {
				return kube.Outcome{Err: err}
			}
			if lost != nil {
				return r.fail(ctx, c, fmt.Sprintf("the result of %s of variant %s is lost: %s", test.Name, variant.Name, lost))
			}
			m.Add(slot.Round, run)
			subject = test.Status.Subject
		}
		found := v1alpha1.VariantStatus{Name: variant.Name, Namespace: variant.Namespace, Subject: subject, Rounds: m.Rounds()}
		if database := observed[i].Stack.Status.Database; database != nil {
			found.DurabilityNote = database.DurabilityNote
		}
		scenarios := m.Scenarios()
		found.Scenarios = wholes(scenarios)
		status.Variants[i] = found
		input.Variants = append(input.Variants, report.NewVariant(found, c.comparison.Spec.Variants[i].Patch, scenarios, m.Run, observed[i].Stack))
		// A histogram has 200 kB, a run has fifty.
		m.Drop()
		measured[i] = m
	}
	outcome := c.plan.Judge(measured)
	status.Pairs = outcome.Pairs[:min(len(outcome.Pairs), maxPairs)]
	status.ResultName = c.comparison.Name + "-comparison"
	status.Verdict, status.Message = outcome.Verdict, kube.Truncate(outcome.Message)
	now := metav1.NewTime(c.now)
	status.CompletedAt = &now
	input.Comparison = c.after
	if err := r.store(ctx, c, report.NewComparison(input)); err != nil {
		return kube.Outcome{Err: err}
	}
	return r.conclude(ctx, c, outcome.Verdict, outcome.Message)
}

// maxPairs is how many pairs the status takes.
const maxPairs = 512

// wholes are the endpoints that stand for a scenario, without those of single requests.
func wholes(scenarios []v1alpha1.ScenarioResult) []v1alpha1.ScenarioResult {
	var out []v1alpha1.ScenarioResult
	for _, s := range scenarios {
		kept := v1alpha1.ScenarioResult{Name: s.Name}
		for i, endpoint := range s.Endpoints {
			// A whole has no phases; ForwardAuth's is one request, and stands first.
			if i == 0 || endpoint.Phases == nil {
				kept.Endpoints = append(kept.Endpoints, endpoint)
			}
		}
		out = append(out, kept)
	}
	return out
}

// result of a LatencyTest, with its histograms; lost is why there is none and will be none.
func (r *LatencyComparisonReconciler) result(ctx context.Context, test *v1alpha1.LatencyTest) (run *result.Run, lost, err error) {
	config := &corev1.ConfigMap{}
	err = r.Reader.Get(ctx, client.ObjectKey{Namespace: test.Namespace, Name: test.Status.ResultName}, config)
	if apierrors.IsNotFound(err) {
		return nil, err, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the result of %s: %w", test.Name, err)
	}
	run, lost = result.Read(strings.NewReader(config.Data[keptResultKey]))
	return run, lost, nil
}

// store keeps the report in a ConfigMap of the comparison, without its plots where they do not fit.
func (r *LatencyComparisonReconciler) store(ctx context.Context, c *compared, made *report.Report) error {
	var page bytes.Buffer
	if err := report.WriteJSON(&page, made); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if page.Len() > resultLimit {
		page.Reset()
		made.DropPlots()
		if err := report.WriteJSON(&page, made); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	config := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: c.comparison.Namespace, Name: c.after.Status.ResultName, Labels: map[string]string{
			v1alpha1.ComparisonLabel: c.comparison.Name, managedByLabel: "authstack",
		}},
		Data: map[string]string{"report.json": page.String()},
	}
	_, err := r.applier.Apply(ctx, c.comparison, config, nil)
	return err
}

// progress says that the comparison is under way.
func (c *compared) progress(reason, message string) {
	conditions, now := &c.after.Status.Conditions, metav1.NewTime(c.now)
	kube.SetCondition(conditions, c.comparison.Generation, now, v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	kube.SetAbnormal(conditions, c.comparison.Generation, now, v1alpha1.ConditionReconciling, true, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
	c.after.Status.ObservedGeneration = c.comparison.Generation
}

// stall says that only a person can help.
func (c *compared) stall(reason, message string) {
	conditions, now := &c.after.Status.Conditions, metav1.NewTime(c.now)
	kube.SetCondition(conditions, c.comparison.Generation, now, v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	kube.SetAbnormal(conditions, c.comparison.Generation, now, v1alpha1.ConditionStalled, true, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
	c.after.Status.ObservedGeneration = c.comparison.Generation
}

// settle is the end: the verdict stands and nothing is left over, or what is left was asked for.
func (c *compared) settle(kept bool) {
	status := &c.after.Status
	status.Progress = "done"
	if kept {
		status.Progress = "done, the variants are kept"
	}
	if status.Verdict != v1alpha1.VerdictPassed {
		c.stall(string(status.Verdict), status.Message)
		return
	}
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionReconciling)
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionStalled)
	kube.SetCondition(&status.Conditions, c.comparison.Generation, metav1.NewTime(c.now), v1alpha1.ConditionReady, metav1.ConditionTrue,
		string(status.Verdict), status.Message)
	status.ObservedGeneration = c.comparison.Generation
}

// reported writes the status, if it differs, and tells the transitions.
func (r *LatencyComparisonReconciler) reported(ctx context.Context, c *compared, outcome kube.Outcome) kube.Outcome {
	was := slices.Clone(c.comparison.Status.Conditions)
	changed, err := kube.PatchStatus(ctx, r.Client, c.comparison, c.after)
	if err != nil {
		return kube.Outcome{Err: err}
	}
	if changed {
		kube.EmitTransitions(r.Recorder, c.comparison, was, c.after.Status.Conditions, []string{v1alpha1.ConditionReady}, func(now metav1.Condition) bool {
			return now.Status == metav1.ConditionTrue || meta.FindStatusCondition(c.after.Status.Conditions, v1alpha1.ConditionReconciling) != nil
		})
	}
	return outcome
}

package controllers

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/baseline"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/report"
	"authstack.dev/authstack/internal/result"
)

// baseline of the test: nil where its spec names none. The problem is a sentence for the status, where
// there is no such measurement.
func (r *LatencyTestReconciler) baseline(ctx context.Context, t *run) (earlier *baseline.Measurement, problem string, err error) {
	spec := t.test.Spec.Baseline
	if spec == nil {
		return nil, "", nil
	}
	config, name := spec.ConfigMapName, "ConfigMap "+spec.ConfigMapName
	if spec.TestName != "" {
		name = "LatencyTest " + spec.TestName
		test := &v1alpha1.LatencyTest{}
		err := r.Reader.Get(ctx, types.NamespacedName{Namespace: t.test.Namespace, Name: spec.TestName}, test)
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Sprintf("there is no baseline: LatencyTest %s does not exist in namespace %s", spec.TestName, t.test.Namespace), nil
		case err != nil:
			return nil, "", fmt.Errorf("reading the baseline: %w", err)
		case test.Status.Verdict == "" || test.Status.ResultName == "":
			return nil, fmt.Sprintf("there is no baseline yet: LatencyTest %s has no result; wait for it, then make this test again", spec.TestName), nil
		}
		config = test.Status.ResultName
	}
	kept := &corev1.ConfigMap{}
	err = r.Reader.Get(ctx, types.NamespacedName{Namespace: t.test.Namespace, Name: config}, kept)
	switch {
	case apierrors.IsNotFound(err) && spec.TestName != "":
		return nil, fmt.Sprintf("there is no baseline: ConfigMap %s with the result of LatencyTest %s does not exist", config, spec.TestName), nil
	case apierrors.IsNotFound(err):
		return nil, fmt.Sprintf("there is no baseline: ConfigMap %s does not exist in namespace %s; kubectl authstack baseline save TEST --configmap %s writes one", config, t.test.Namespace, config), nil
	case err != nil:
		return nil, "", fmt.Errorf("reading the baseline: %w", err)
	}
	found, err := report.ReadJSON(strings.NewReader(kept.Data["report.json"]))
	if err != nil {
		return nil, fmt.Sprintf("there is no baseline: the key report.json of ConfigMap %s is %s", config, err), nil
	}
	measured := found.Measurement()
	measured.Name = name
	return &measured, "", nil
}

// compare brings the baseline into the outcome.
func (r *LatencyTestReconciler) compare(ctx context.Context, t *run, runs []*result.Run, outcome *latency.Outcome) error {
	earlier, problem, err := r.baseline(ctx, t)
	switch {
	case err != nil:
		return err
	case problem != "":
		outcome.Verdict, outcome.Message = v1alpha1.VerdictError, problem+"."
		return nil
	case earlier == nil || outcome.Merged == nil:
		return nil
	}
	now := baseline.Measurement{
		Name: t.test.Name, Verdict: outcome.Verdict, K6Version: outcome.Merged.Generator.K6Version,
		Sizes: baseline.SizesOf(t.plan), Repeats: baseline.RepeatsOf(t.plan, runs),
	}
	if s := t.after.Status.Subject; s != nil {
		now.IdentityProvider, now.Double = s.IdentityProvider, s.Double
	}
	percent := int32(baseline.DefaultPercent)
	if given := t.test.Spec.Baseline.NotWorseThanPercent; given != nil {
		percent = *given
	}
	compared := baseline.Compare(now, *earlier, baseline.Compared(t.plan.Provider, now.Sizes, t.plan.Objectives), percent)
	outcome.Verdict, outcome.Message = compared.Join(outcome.Verdict, outcome.Message)
	t.after.Status.Baseline = compared.Results
	return nil
}

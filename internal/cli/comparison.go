package cli

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/report"
)

// ofComparison is the report of a LatencyComparison that the operator kept, or else one of what the status
// still says.
func (a *App) ofComparison(ctx context.Context, k8s client.Client, key client.ObjectKey) (*report.Report, error) {
	found := &v1alpha1.LatencyComparison{}
	if err := k8s.Get(ctx, key, found); err != nil {
		return nil, explain(err, "latencycomparison", key)
	}
	status := &found.Status
	if status.ResultName != "" && status.Verdict != "" && status.Verdict != v1alpha1.VerdictError {
		kept := &corev1.ConfigMap{}
		err := k8s.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: status.ResultName}, kept)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if r, err := report.ReadJSON(strings.NewReader(kept.Data["report.json"])); err == nil {
			return r, nil
		}
	}
	in := report.ComparisonInput{Comparison: found, Now: a.Now()}
	for i, variant := range status.Variants {
		// The spec may be another one by now.
		if i < len(found.Spec.Variants) && found.Spec.Variants[i].Name == variant.Name {
			in.Variants = append(in.Variants, report.NewVariant(variant, found.Spec.Variants[i].Patch, variant.Scenarios, nil, nil))
		}
	}
	return report.NewComparison(in), nil
}

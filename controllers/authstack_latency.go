package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/schedule"
)

// stackIndex finds the LatencyTests of a stack.
const stackIndex = "spec.stackRef.name"

// measure makes the LatencyTest that is due, takes the old ones away and copies the last result into
// the status. Whether a stack is fast is no part of whether it is Ready.
func (r *AuthStackReconciler) measure(ctx context.Context, s *scope) error {
	tests, err := testsOf(ctx, r.Client, s.stack.Namespace, s.stack.Name)
	if err != nil {
		return err
	}
	decision := schedule.Decide(schedule.Input{Stack: s.after, Ready: s.ready() && !s.plan.AnalyzeNeeded, Tests: tests, Now: s.now})
	if test := decision.Create; test != nil {
		if err := controllerutil.SetControllerReference(s.stack, test, r.Client.Scheme()); err != nil {
			return err
		}
		if err := r.Client.Create(ctx, test, kube.FieldManager); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating LatencyTest %s: %w", test.Name, err)
		}
	}
	for i := range decision.Delete {
		uid := decision.Delete[i].UID
		if err := r.Client.Delete(ctx, &decision.Delete[i], client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting LatencyTest %s: %w", decision.Delete[i].Name, err)
		}
	}
	s.after.Status.Latency = decision.Latency
	if decision.Handled {
		s.after.Status.LastHandledReconcileAt = s.stack.Annotations[v1alpha1.RequestedAtAnnotation]
	}
	if decision.Next > 0 && (s.before == 0 || decision.Next < s.before) {
		s.before = decision.Next
	}
	s.latencyMet(decision)
	return nil
}

func testsOf(ctx context.Context, reader client.Reader, namespace, stackName string) ([]v1alpha1.LatencyTest, error) {
	var tests v1alpha1.LatencyTestList
	if err := reader.List(ctx, &tests, client.InNamespace(namespace), client.MatchingFields{stackIndex: stackName}); err != nil {
		return nil, fmt.Errorf("listing LatencyTests: %w", err)
	}
	return tests.Items, nil
}

// latencyMet is the condition of the last test's verdict.
func (s *scope) latencyMet(decision schedule.Decision) {
	conditions, now := &s.after.Status.Conditions, metav1.NewTime(s.now)
	set := func(met bool, reason, message string) {
		kube.SetCondition(conditions, s.stack.Generation, now, v1alpha1.ConditionLatencyMet, kube.Bool(met), reason, message)
	}
	switch test := decision.Finished; {
	case decision.Problem != "":
		set(false, v1alpha1.ReasonInvalidSpec, decision.Problem)
	case test != nil:
		message := ""
		if ready := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			message = ready.Message
		}
		set(test.Status.Verdict == v1alpha1.VerdictPassed, string(test.Status.Verdict), message)
	case decision.Latency == nil || decision.Latency.Verdict == "":
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionLatencyMet)
	}
}

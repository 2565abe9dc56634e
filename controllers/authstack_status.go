package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
)

// stackConditions are those that an event tells the transitions of.
var stackConditions = []string{
	v1alpha1.ConditionStorageReady, v1alpha1.ConditionDatabaseReady, v1alpha1.ConditionCacheReady, v1alpha1.ConditionTuningApplied,
	v1alpha1.ConditionIdentityProviderReady, v1alpha1.ConditionLatencyMet, v1alpha1.ConditionStorageProbed, v1alpha1.ConditionReady,
}

// summarize turns what the plan says into the status; nothing is sent.
func (r *AuthStackReconciler) summarize(s *scope, failed error) {
	old, status := s.stack.Status, &s.after.Status
	status.Storage, status.Database, status.Cache = keepStorage(old.Storage, s.plan.Status.Storage), s.plan.Status.Database, s.plan.Status.Cache
	status.IdentityProvider = s.identityProvider()
	if s.settingsKept && status.Database != nil && old.Database != nil && len(status.Database.Settings) > 0 {
		// Settings of the role that could not be taken back yet must not be forgotten.
		status.Database.Settings = append(status.Database.Settings, missingRoleSettings(old.Database.Settings, status.Database.Settings)...)
	}
	status.ObservedGeneration = s.stack.Generation
	s.conditions(failed)
}

// identityProvider is the status of the identity provider: of the old version while the new one has
// not been asked for.
func (s *scope) identityProvider() *v1alpha1.IdentityProviderStatus {
	old, planned := s.stack.Status.IdentityProvider, s.plan.Status.IdentityProvider
	switch {
	case planned == nil:
		return old
	case old != nil && !s.applied[v1alpha1.ConditionIdentityProviderReady]:
		return old
	case s.analyzed:
		planned.MigratedVersion = planned.Version
	}
	return planned
}

func missingRoleSettings(old, now []v1alpha1.SettingStatus) []v1alpha1.SettingStatus {
	var missing []v1alpha1.SettingStatus
	held := map[string]bool{}
	for _, setting := range now {
		held[setting.Name] = true
	}
	for _, setting := range old {
		if setting.Scope == "Role" && !held[setting.Name] {
			missing = append(missing, setting)
		}
	}
	return missing
}

// conditions of the phases and of the whole.
func (s *scope) conditions(failed error) {
	now := metav1.NewTime(s.now)
	conditions, generation := &s.after.Status.Conditions, s.stack.Generation
	ready, stalled := true, false
	reason, message := v1alpha1.ReasonReady, ""
	for _, phase := range s.plan.Phases() {
		state := phase.State
		if state.Ready && s.changed[phase.Condition] {
			state.Ready, state.Reason, state.Message = false, v1alpha1.ReasonProgressing, "what was planned has just been applied"
		}
		kube.SetCondition(conditions, generation, now, phase.Condition, kube.Bool(state.Ready), state.Reason, s.redactor.Text(state.Message))
		// The first phase that is not ready speaks for the stack; one that is stalled before any other.
		if !state.Ready && (ready || state.Stalled && !stalled) {
			reason, message = state.Reason, fmt.Sprintf("%s: %s", phase.Condition, state.Message)
		}
		ready, stalled = ready && state.Ready, stalled || state.Stalled
	}
	if ready && failed != nil {
		ready, reason, message = false, v1alpha1.ReasonApplyFailed, failed.Error()
	}
	if ready {
		message = "every part of the stack is ready"
	}
	message = s.redactor.Text(message)
	kube.SetCondition(conditions, generation, now, v1alpha1.ConditionReady, kube.Bool(ready), reason, message)
	kube.SetAbnormal(conditions, generation, now, v1alpha1.ConditionReconciling, !ready && !stalled, v1alpha1.ReasonProgressing, message)
	kube.SetAbnormal(conditions, generation, now, v1alpha1.ConditionStalled, stalled, reason, message)
}

func (s *scope) ready() bool {
	return meta.IsStatusConditionTrue(s.after.Status.Conditions, v1alpha1.ConditionReady)
}

// report writes the status, if it differs, and tells the transitions.
func (r *AuthStackReconciler) report(ctx context.Context, s *scope) error {
	before := s.stack.Status.DeepCopy()
	if changed, err := kube.PatchStatus(ctx, r.Client, s.stack, s.after); err != nil || !changed {
		return err
	}
	kube.EmitTransitions(r.Recorder, s.stack, before.Conditions, s.after.Status.Conditions, stackConditions, func(c metav1.Condition) bool {
		return c.Status == metav1.ConditionTrue || c.Reason == v1alpha1.ReasonProgressing || c.Reason == v1alpha1.ReasonDependencyNotReady ||
			c.Reason == v1alpha1.ReasonSuspended
	})
	return nil
}

func (r *AuthStackReconciler) outcome(s *scope, failed error) kube.Outcome {
	conditions := s.after.Status.Conditions
	switch {
	case meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled):
		return kube.Outcome{State: kube.Stalled}
	case failed != nil:
		return kube.Outcome{Err: failed}
	case s.ready():
		return kube.Outcome{State: kube.Settled, Before: s.before}
	}
	return kube.Outcome{State: kube.Progressing, Since: kube.Since(conditions), Before: s.before}
}

// suspend says that the stack is left alone.
func (r *AuthStackReconciler) suspend(ctx context.Context, s *scope) kube.Outcome {
	now, conditions := metav1.NewTime(s.now), &s.after.Status.Conditions
	status := metav1.ConditionUnknown
	if old := meta.FindStatusCondition(*conditions, v1alpha1.ConditionReady); old != nil {
		status = old.Status
	}
	kube.SetCondition(conditions, s.stack.Generation, now, v1alpha1.ConditionReady, status, v1alpha1.ReasonSuspended,
		"spec.suspend is true: the operator changes and looks at nothing of this stack; remove it to go on")
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
	s.after.Status.ObservedGeneration = s.stack.Generation
	if err := r.report(ctx, s); err != nil {
		return kube.Outcome{Err: err}
	}
	return kube.Outcome{State: kube.Suspended}
}

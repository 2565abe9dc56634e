package controllers

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/stack"
)

// askDatabase asks the database about itself, where the plan says how to reach it and it can be there.
// It says whether it asked.
func (r *AuthStackReconciler) askDatabase(ctx context.Context, s *scope) bool {
	if since := r.commits.since(s.stack.UID); !since.IsZero() && s.now.Sub(since) >= commitHangsAfter {
		s.facts.CommitHangsSince = since
		return true
	}
	target := s.plan.DatabaseTarget
	if target == nil {
		return false
	}
	if !s.databaseMayAnswer() {
		s.facts.DatabaseStandsStill = r.databaseStandsStill(ctx, s, *target)
		return s.facts.DatabaseStandsStill
	}
	database, err := r.Database.Observe(ctx, *target)
	if err != nil {
		var answer *facts.ServerError
		s.facts.DatabaseError = s.redactor.Text(err.Error())
		s.facts.DatabaseStandsStill, s.facts.DatabaseRefuses = errors.Is(err, facts.ErrStandsStill), errors.As(err, &answer)
		return true
	}
	s.facts.Database = database
	r.commits.ask(s.stack, s.now, func(ctx context.Context) error { return r.Database.Commit(ctx, *target) })
	if !r.commits.since(s.stack.UID).IsZero() {
		s.lookWithin(commitHangsAfter)
	}
	return true
}

// databaseMayAnswer is whether it is worth a connection: the password that the plan holds is that of
// the cluster, and a Pod is ready to answer.
func (s *scope) databaseMayAnswer() bool {
	status := s.plan.Status.Database
	if status == nil || s.facts.Secrets[status.SecretName] == nil {
		return false
	}
	if s.stack.Spec.Postgres != nil && s.stack.Spec.Postgres.External != nil {
		return true
	}
	workload, _, _ := strings.Cut(s.plan.DatabaseTarget.Host, ".")
	return s.facts.Workloads[workload].Ready > 0
}

// databaseStandsStill is whether a database that has served, and whose Pod is not ready any more, takes connections and
// answers none. Where its disk hangs and what it reads for each connection is not in memory, that is all that is to be seen
// of it. The Service has no address then, so the Pod is asked.
func (r *AuthStackReconciler) databaseStandsStill(ctx context.Context, s *scope, target stack.DatabaseTarget) bool {
	if s.facts.MigratedVersion == "" || s.facts.Secrets[s.plan.Status.Database.SecretName] == nil {
		return false
	}
	return r.silences.ask(s.stack.UID, s.now, func() bool {
		pod, err := r.databasePod(ctx, s.stack)
		if err != nil || pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" {
			return false
		}
		target.Host = pod.Status.PodIP
		ctx, cancel := context.WithTimeout(ctx, silencePatience)
		defer cancel()
		_, err = r.Database.Observe(ctx, target)
		return errors.Is(err, facts.ErrStandsStill)
	})
}

// tune brings the settings of the product's role about and has statistics gathered.
func (r *AuthStackReconciler) tune(ctx context.Context, s *scope) {
	if s.facts.Database == nil {
		s.settingsKept = true
		return
	}
	changed, err := r.Database.SetRole(ctx, *s.plan.DatabaseTarget, s.facts.Database.RoleSettings, s.plan.RoleSettings, s.settingsToReset(s.plan.RoleSettings))
	switch {
	case err != nil:
		s.settingsKept = true
		s.plan.Tuning.State = stack.State{Reason: v1alpha1.ReasonNotInForce,
			Message: "the settings of the product's role cannot be set: " + s.redactor.Text(err.Error())}
	case changed:
		// What the facts say of the settings is of a session before this one.
		s.changed[v1alpha1.ConditionTuningApplied] = true
		s.before = time.Second
	}
	r.setDurability(ctx, s)
	r.analyze(ctx, s)
}

// setDurability puts the triggers on or takes them off, as the plan says.
func (r *AuthStackReconciler) setDurability(ctx context.Context, s *scope) {
	if s.plan.Durability.Empty() {
		return
	}
	err := r.Database.SetDurability(ctx, *s.plan.DatabaseTarget, s.plan.Durability)
	if err == nil {
		s.changed[v1alpha1.ConditionTuningApplied] = true
		s.before = time.Second
		return
	}
	sentence := "the triggers of durability IdentityDurable cannot be changed: " + s.redactor.Text(err.Error())
	if len(s.plan.Durability.Install) > 0 && !s.plan.DurabilityGiven {
		// Nobody asked for it, and without it every commit waits: that harms nothing but the latency.
		s.plan.Status.Database.DurabilityNote = kube.Truncate(s.plan.Status.Database.DurabilityNote + "; " + sentence)
		return
	}
	s.plan.Tuning.State = stack.State{Reason: v1alpha1.ReasonNotInForce, Message: sentence}
}

// settingsToReset are those that the role was given before and shall have no longer.
func (s *scope) settingsToReset(wanted map[string]string) []string {
	var names []string
	if s.stack.Status.Database == nil {
		return nil
	}
	for _, setting := range s.stack.Status.Database.Settings {
		if _, stays := wanted[setting.Name]; setting.Scope == "Role" && !stays {
			names = append(names, setting.Name)
		}
	}
	return names
}

// analyze has ANALYZE run aside where the plan asks for it; the stack is reconciled when it is done.
func (r *AuthStackReconciler) analyze(ctx context.Context, s *scope) {
	if !s.plan.AnalyzeNeeded || s.plan.Status.IdentityProvider == nil {
		return
	}
	version, target := s.plan.Status.IdentityProvider.Version, *s.plan.DatabaseTarget
	done, err := r.analyses.ask(s.stack, version, func(ctx context.Context) error { return r.Database.Analyze(ctx, target) })
	switch {
	case err != nil:
		log.FromContext(ctx).Info("ANALYZE failed and is tried again", "error", s.redactor.Text(err.Error()))
		s.plan.IdentityProvider.State.Message += "; it failed and is tried again: " + s.redactor.Text(err.Error())
	case done:
		s.analyzed, s.before = true, time.Second
	}
}

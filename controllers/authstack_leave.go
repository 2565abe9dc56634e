package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/durability"
	"authstack.dev/authstack/internal/kube"
)

// leavePatience is how long the deletion of a stack waits for a database that does not answer.
const leavePatience = time.Minute

// leaveDatabase takes away what the operator put into a database that it did not make and that outlives the stack: the
// triggers of durability, and the settings of the product's role. It says whether the stack can go; a database that
// does not answer holds it up for a minute, and an event says what is left.
func (r *AuthStackReconciler) leaveDatabase(ctx context.Context, s *scope) (settled bool) {
	if s.stack.Spec.Postgres == nil || s.stack.Spec.Postgres.External == nil {
		return true
	}
	err := r.clearDatabase(ctx, s)
	if err == nil {
		return true
	}
	if s.now.Sub(s.stack.DeletionTimestamp.Time) < leavePatience {
		return false
	}
	r.Recorder.Eventf(s.stack, nil, corev1.EventTypeWarning, v1alpha1.ReasonDeleting, "Leave", "%s", kube.Truncate(fmt.Sprintf(
		"the external database keeps what the operator set in it (%s); to take it away there: DROP FUNCTION IF EXISTS %s.%s(), %s.%s() CASCADE, and ALTER ROLE … IN DATABASE … RESET ALL for the product's role",
		s.redactor.Text(err.Error()), durability.Schema, durability.DecideName, durability.Schema, durability.WaitName)))
	return true
}

func (r *AuthStackReconciler) clearDatabase(ctx context.Context, s *scope) error {
	if err := r.gather(ctx, s); err != nil {
		return err
	}
	switch {
	case s.facts.DatabaseError != "":
		return fmt.Errorf("it does not answer: %s", s.facts.DatabaseError)
	case !s.facts.CommitHangsSince.IsZero():
		return errors.New("its storage hangs")
	case s.facts.Database == nil:
		return errors.New("the Secret that opens it is not there")
	}
	if change := durability.Judge(nil, s.facts.Database.Durability).Change; !change.Empty() {
		if err := r.Database.SetDurability(ctx, *s.plan.DatabaseTarget, change); err != nil {
			return fmt.Errorf("its triggers cannot be taken off: %w", err)
		}
	}
	if _, err := r.Database.SetRole(ctx, *s.plan.DatabaseTarget, s.facts.Database.RoleSettings, nil, s.settingsToReset(nil)); err != nil {
		return fmt.Errorf("the settings of the product's role cannot be reset: %w", err)
	}
	return nil
}

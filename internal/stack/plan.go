// Package stack turns an AuthStack and what is known of its surroundings into the objects that
// should exist, and what was observed of them into conditions. It is pure: no client, no clock, no
// randomness but what it is given.
package stack

import (
	"slices"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/durability"
	"authstack.dev/authstack/internal/stack/part"
)

// The shared shapes of a plan; they live in part, below the parts of a stack.
type (
	// Images are the repositories and images that the operator was started with.
	Images = part.Images
	// Input is what a plan is made from.
	Input = part.Input
	// Phase is one part of a stack.
	Phase = part.Phase
	// State is where a phase stands.
	State = part.State
	// DatabaseTarget is how to reach a database.
	DatabaseTarget = part.DatabaseTarget
)

// DefaultImages are the products' published images.
var DefaultImages = part.DefaultImages

// RetainAnnotation marks objects that get no owner reference, since they outlive their AuthStack
// with deletionPolicy Retain.
const RetainAnnotation = part.RetainAnnotation

// Plan is what should exist of a stack, in phases in the order of their dependencies. A phase's
// objects are applied only when Blocked says that nothing before it stands in the way.
type Plan struct {
	Storage, Database, Cache, Tuning, IdentityProvider Phase
	// DatabaseTarget is how to reach the database as the product's role; nil while unknown.
	DatabaseTarget *DatabaseTarget
	// RoleSettings that the product's role should have in its database (ALTER ROLE … IN DATABASE … SET).
	RoleSettings map[string]string
	// AnalyzeNeeded is whether ANALYZE should run now, since migrations of a version are done that
	// it has not followed yet.
	AnalyzeNeeded bool
	// Durability is the change of the triggers that decide which commits wait for the WAL; empty where there is none.
	Durability durability.Change
	// DurabilityGiven is whether the spec asks for a level, so that failing to bring it about is told as a failure.
	DurabilityGiven bool
	// Status is the part of the status that follows from the plan and the facts; conditions,
	// observedGeneration and latency are the controller's.
	Status v1alpha1.AuthStackStatus
}

// Phases in the order of their dependencies.
func (p *Plan) Phases() []*Phase {
	return []*Phase{&p.Storage, &p.Database, &p.Cache, &p.Tuning, &p.IdentityProvider}
}

// dependencies of each phase: those that must be ready before its objects are applied. Tuning is
// none: settings that are not in force make a stack slow, not broken.
var dependencies = map[string][]string{
	v1alpha1.ConditionDatabaseReady:         {v1alpha1.ConditionStorageReady},
	v1alpha1.ConditionTuningApplied:         {v1alpha1.ConditionDatabaseReady},
	v1alpha1.ConditionIdentityProviderReady: {v1alpha1.ConditionDatabaseReady, v1alpha1.ConditionCacheReady},
}

// Blocked is the phase that stands in the way of the objects of the phase with this condition, or
// nil. Once applied, objects stay when an earlier phase fails for a while: nothing is deleted for it.
func (p *Plan) Blocked(condition string) *Phase {
	for _, phase := range p.Phases() {
		if slices.Contains(dependencies[condition], phase.Condition) && !phase.State.Ready {
			return phase
		}
	}
	return nil
}

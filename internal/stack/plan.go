// Package stack turns an AuthStack and what is known of its surroundings into the objects that
// should exist, and what was observed of them into conditions. It is pure: no client, no clock, no
// randomness but what it is given.
package stack

import (
	"io"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Images are the repositories and images that the operator was started with.
type Images struct {
	// Authentik and Authelia are repositories without a tag; the version is the tag.
	Authentik, Authelia string
	// Postgres is a repository without a tag; the major version is the tag.
	Postgres string
	// Redis and K6 are whole images.
	Redis, K6 string
}

// DefaultImages are the products' published images.
var DefaultImages = Images{
	Authentik: "ghcr.io/goauthentik/server",
	Authelia:  "ghcr.io/authelia/authelia",
	Postgres:  "docker.io/library/postgres",
	Redis:     "docker.io/library/redis:8",
	K6:        "authstack.dev/k6:dev",
}

// Input is what a plan is made from.
type Input struct {
	Stack  *v1alpha1.AuthStack
	Facts  facts.Stack
	Images Images
	// Random is where generated secrets come from (crypto/rand; a fixed stream in tests).
	Random io.Reader
}

// Phase is one part of a stack: storage, database, cache, tuning or identity provider. All have the
// same shape, so that another product or database provider is another folder.
type Phase struct {
	// Condition is the type of the condition that stands for this phase.
	Condition string
	// Objects that should exist, in the order of their application. TypeMeta is set on each.
	Objects []client.Object
	// State is where the phase stands according to the facts.
	State State
}

// State is where a phase stands.
type State struct {
	// Ready is whether the phase is there.
	Ready bool
	// Stalled is whether only a change by a person helps.
	Stalled bool
	// Reason is one of the constants of api/v1alpha1, Message a sentence that says what is the
	// matter and what to do.
	Reason, Message string
}

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
	// Status is the part of the status that follows from the plan and the facts; conditions,
	// observedGeneration and latency are the controller's.
	Status v1alpha1.AuthStackStatus
}

// DatabaseTarget is how to reach a database. The password never leaves memory.
type DatabaseTarget struct {
	Host     string
	Port     int32
	Database string
	User     string
	Password string
	SSLMode  string
}

// Phases in the order of their dependencies.
func (p *Plan) Phases() []*Phase {
	return []*Phase{&p.Storage, &p.Database, &p.Cache, &p.Tuning, &p.IdentityProvider}
}

// Package part holds what every part of a stack shares: the input of a plan, the shape of a phase
// and its state, names and labels, generated Secrets, and the restricted Pod that all Pods are made
// from. The parts themselves (storage, postgres, cache, authentik, authelia) are the folders beside it.
package part

import (
	"io"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
)

// Images are the repositories and images that the operator was started with.
type Images struct {
	// Authentik and Authelia are repositories without a tag; the version is the tag.
	Authentik, Authelia string
	// Postgres is a repository without a tag; the major version is the tag.
	Postgres string
	// Redis, K6 and Probe are whole images.
	Redis, K6, Probe string
}

// DefaultImages are the products' published images.
var DefaultImages = Images{
	Authentik: "ghcr.io/goauthentik/server",
	Authelia:  "ghcr.io/authelia/authelia",
	Postgres:  "docker.io/library/postgres",
	Redis:     "docker.io/library/redis:8",
	K6:        "authstack.dev/k6:dev",
}

// OrDefault fills what is empty from DefaultImages.
func (i Images) OrDefault() Images {
	for _, pair := range []struct {
		given    *string
		fallback string
	}{
		{&i.Authentik, DefaultImages.Authentik}, {&i.Authelia, DefaultImages.Authelia},
		{&i.Postgres, DefaultImages.Postgres}, {&i.Redis, DefaultImages.Redis}, {&i.K6, DefaultImages.K6},
	} {
		if *pair.given == "" {
			*pair.given = pair.fallback
		}
	}
	return i
}

// Input is what a plan is made from.
type Input struct {
	Stack  *v1alpha1.AuthStack
	Facts  facts.Stack
	Images Images
	// OperatorNamespace is where the operator runs, for the NetworkPolicy of the database; empty
	// means that Pods labelled app.kubernetes.io/name=authstack of any namespace are let in.
	OperatorNamespace string
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

// Ready is the state of a phase that is there.
func Ready(message string) State {
	return State{Ready: true, Reason: v1alpha1.ReasonReady, Message: message}
}

// Progressing is the state of a phase that is not there yet though nothing is wrong.
func Progressing(message string) State {
	return State{Reason: v1alpha1.ReasonProgressing, Message: message}
}

// Waiting is the state of a phase that something stands in the way of, which may go away by itself
// or by another object's appearance.
func Waiting(reason, message string) State { return State{Reason: reason, Message: message} }

// Stalled is the state of a phase that only a change by a person helps.
func Stalled(reason, message string) State {
	return State{Stalled: true, Reason: reason, Message: message}
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

// Database is what an identity provider needs to know of its database.
type Database struct {
	// Target is how the operator reaches it; the product uses ProductHost, which inside the stack's
	// namespace resolves with one look-up.
	Target      DatabaseTarget
	ProductHost string
	// SecretName, with the keys UsernameKey and PasswordKey, opens it.
	SecretName               string
	UsernameKey, PasswordKey string
}

// Redis is what an identity provider needs to know of its Redis; nil where there is none.
type Redis struct {
	// Host is the name of the Service; IP its ClusterIP, empty until it has one.
	Host, IP string
	Port     int32
	// SecretName with the key PasswordKey opens it.
	SecretName, PasswordKey string
}

// Product is what the other parts need to know of the identity provider.
type Product struct {
	// Name is authentik or authelia; it is also the default name of database and role.
	Name    string
	Version string
	// Connections is how many PostgreSQL connections all Pods of the product may hold at once.
	Connections int
	// DeepJoins is whether the product's queries join dozens of tables, so that planning costs more
	// than execution.
	DeepJoins bool
	// NeedsUTF8 is whether the product insists on a database with encoding UTF8.
	NeedsUTF8 bool
	// Cache is redis, postgres or memory; CacheReason says in a sentence why.
	Cache, CacheReason string
	// CacheMustSurvive is whether losing the cache loses sessions or queued tasks.
	CacheMustSurvive bool
}

// The kinds of cache.
const (
	CacheRedis    = "redis"
	CachePostgres = "postgres"
	CacheMemory   = "memory"
)

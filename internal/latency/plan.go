// Package latency says what a measurement of a stack must do (Resolve, Objects) and what its result
// is worth (Judge). It is pure: no client, no clock, no randomness.
package latency

import (
	"time"

	"authstack.dev/authstack/api/v1alpha1"
)

// Plan is what a LatencyTest comes to once every default is filled in.
type Plan struct {
	// Provider is authentik or authelia.
	Provider string
	// Scenarios in the order in which they run, with every field set.
	Scenarios []v1alpha1.Scenario
	// Objectives that are judged, with their endpoint set.
	Objectives []v1alpha1.Objective
	// Soaks are the scenarios that were given a duration: the guard drift looks at them.
	Soaks []v1alpha1.ScenarioName
	// Repeats is the number of Jobs.
	Repeats int32
	// Pods that share each Job.
	Pods int32
	// Timeout of one Job.
	Timeout time.Duration
	// CPULimited is whether the generator has a CPU limit, and so can be throttled.
	CPULimited bool
	// ScriptDigest is that of the user's own script, once it was read; empty without one.
	ScriptDigest string
}

// Target is where the load goes. The caller takes it from what the operator itself made (the
// stack's own Service in its own namespace), never from a field that a user wrote.
type Target struct {
	// Provider is authentik or authelia, Version its release, for example 2025.12.4.
	Provider, Version string
	// BaseURL of the Service, for example http://demo-authentik.sso.svc:80, without a slash at its end.
	BaseURL string
	// Host is the AuthStack's spec.host; it is sent as Host and X-Forwarded-Host with
	// X-Forwarded-Proto https, as the reverse proxy in front of the stack does.
	Host string
	// ForwardAuthHost is the application that a forward-auth check asks for; for authentik see
	// ForwardAuthHost.
	ForwardAuthHost string
}

package latency

import (
	"time"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// Evidence is what the controller saw around the runs.
type Evidence struct {
	// Outside is a run against an address that the caller named, on his own machine: there is no stack
	// and are no Pods to look at, and the guards that would are left out.
	Outside bool
	// Jobs are how the Jobs ended, one a repeat and in their order; runs[i] of Judge is the result
	// of Jobs[i], or nil.
	Jobs []JobOutcome
	// PodsBefore are the identity provider's Pods just before the first Job, PodsAfter just after
	// the last one ended.
	PodsBefore, PodsAfter []PodState
	// NodesBefore are the nodes of those Pods just before the first Job.
	NodesBefore []NodeState
	// GenerationBefore and GenerationAfter are metadata.generation of the AuthStack.
	GenerationBefore, GenerationAfter int64
	// ScriptDigest is that of the user's own script in its ConfigMap at the end, empty where it is gone or
	// the plan has none.
	ScriptDigest string
}

// PodDeleted is the reason of a Pod that somebody deleted while it ran; Kubernetes has no word for it.
const PodDeleted = "Deleted"

// JobOutcome is how one Job ended.
type JobOutcome struct {
	// Name of the Job.
	Name string
	// ExitCode of the k6 container; nil where it never ran or its Pod is gone.
	ExitCode *int32
	// PodReason is PodDeleted, or why the container or Pod ended or never started, in Kubernetes' words: OOMKilled,
	// Evicted, Preempting, ImagePullBackOff, ErrImagePull, CreateContainerConfigError, Unschedulable …
	// or empty.
	PodReason string
	// PodMessage is Kubernetes' sentence on PodReason (of an eviction: which resource was short), or empty.
	PodMessage string
	// Said is k6's own word on its error, from its log, or empty.
	Said string
	// Observed is whether the operator asked the database for its counters right before the Job.
	Observed bool
	// Nodes are those of the stack's Pods and of k6's, just after the Job had ended.
	Nodes []NodeState
	// DeadlineExceeded is whether the Job ran into its activeDeadlineSeconds.
	DeadlineExceeded bool
	// LogError is the error of reading the log or the result in it (result.ErrNoResult and so on), or nil.
	LogError error
}

// PodState is a Pod of the stack at one moment.
type PodState struct {
	Name, UID string
	// Node that it runs on.
	Node string
	// Image as the status reports it (imageID where there is one) of its containers, joined by commas.
	Image string
	// Role of a database Pod as Patroni labels it (master, replica): a switchover restarts nothing and
	// yet changes who answers. Empty for other Pods.
	Role string
	// RestartCount of all its containers.
	RestartCount int32
	Ready        bool
	// ReadySince is when it last became ready or ceased to be; zero where it is not known.
	ReadySince time.Time
}

// NodeState is a node that takes part in a measurement, at one moment.
type NodeState struct {
	Name string `json:"name"`
	// Pressure are those of its conditions MemoryPressure, DiskPressure and PIDPressure that are true: the kubelet reclaims
	// what it can there, and evicts Pods.
	Pressure []string `json:"pressure,omitempty"`
	// Unknown is whether it could not be read.
	Unknown bool `json:"unknown,omitempty"`
}

// Outcome is what the runs are worth.
type Outcome struct {
	Verdict v1alpha1.Verdict
	// Reason of the Ready condition: the verdict's name.
	Reason string
	// Message is a sentence with the figure that decided.
	Message string
	// Scenarios, Objectives and Guards are for the status.
	Scenarios  []v1alpha1.ScenarioResult
	Objectives []v1alpha1.ObjectiveResult
	Guards     []v1alpha1.Guard
	// LoginP95 is status.loginP95, for example 612ms; empty where Login was not measured.
	LoginP95 string
	// Voided is whether the verdict is Inconclusive by nothing but what another run may not meet again: a
	// Pod that changed, a clock that was set, a generator that was short of CPU.
	Voided bool
	// Merged is all repeats as one; nil where there is no result.
	Merged *result.Run
}

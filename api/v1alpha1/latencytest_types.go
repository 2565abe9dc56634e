package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LatencyTest is one measurement of one stack. It can only reach the Services of an AuthStack of
// its own namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=lt,categories=all
// +kubebuilder:printcolumn:name="Stack",type=string,JSONPath=`.spec.stackRef.name`
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.verdict`
// +kubebuilder:printcolumn:name="Login p95",type=string,JSONPath=`.status.loginP95`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="the name of a LatencyTest may have at most 52 characters, because the name of its Job is made from it"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.baseline) || !has(self.spec.baseline.testName) || self.spec.baseline.testName != self.metadata.name",message="a LatencyTest cannot be its own baseline; name an earlier LatencyTest"
type LatencyTest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is measured.
	// +required
	Spec LatencyTestSpec `json:"spec"`

	// Status is what was found.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status LatencyTestStatus `json:"status,omitempty"`
}

// LatencyTestList is a list of LatencyTests.
//
// +kubebuilder:object:root=true
type LatencyTestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LatencyTest `json:"items"`
}

// LatencyTestSpec is what is measured. A run is one thing: to measure again, make another
// LatencyTest or set the annotation authstack.dev/requestedAt to a new value.
//
// +kubebuilder:validation:XValidation:rule="self.stackRef == oldSelf.stackRef",message="a LatencyTest measures one stack; make another LatencyTest for another stack"
type LatencyTestSpec struct {
	// StackRef names the AuthStack.
	// +required
	StackRef StackReference `json:"stackRef"`

	// Scenarios that are run, one after the other. Default: those that the objectives name, and Login.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.size() <= 1 || self.all(s, !has(s.duration) && !has(s.ratePerMinute) && !has(s.rateStepsPerMinute))",message="a scenario with duration, ratePerMinute or rateStepsPerMinute runs by the clock and needs a LatencyTest of its own; write it as the only scenario"
	// +kubebuilder:validation:XValidation:rule="self.size() <= 1 || self.all(s, s.name != 'Script')",message="scenario Script runs in a k6 of its own, which can reach nothing but the stack; write it as the only scenario of a LatencyTest"
	Scenarios []Scenario `json:"scenarios,omitempty"`

	// Objectives that are judged. Default: those of the stack.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Objectives []Objective `json:"objectives,omitempty"`

	// Repeats is the number of times that the scenarios are run, each in its own Job; the results
	// are merged. Default: 1, with a baseline 12.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	Repeats *int32 `json:"repeats,omitempty"`

	// Baseline is an earlier measurement that this one must not be slower than. Default: none.
	// +optional
	Baseline *BaselineSpec `json:"baseline,omitempty"`

	// TimeoutSeconds bounds one Job. Default: 900.
	// +optional
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// Generator is the Pod that makes the load.
	// +optional
	Generator GeneratorSpec `json:"generator,omitempty"`
}

// StackReference names an AuthStack of the same namespace.
//
// +kubebuilder:validation:XValidation:rule="!has(self.namespace)",message="a LatencyTest measures a stack of its own namespace: remove stackRef.namespace and create the LatencyTest in the namespace of the stack"
type StackReference struct {
	// Name of the AuthStack.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Namespace is always refused: it is here so that the refusal says what to write instead.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// LatencyTestStatus is what was found.
type LatencyTestStatus struct {
	// ObservedGeneration is the generation that this status is of; -1 until first reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready (True with a verdict Passed), Reconciling while it runs, Stalled with any
	// other verdict.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastHandledReconcileAt is the value of the annotation authstack.dev/requestedAt that was last acted on.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// Verdict of the run.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`

	// Run counts the runs of this test; it is in the name of the Job.
	// +optional
	Run int64 `json:"run,omitempty"`

	// CompletedRepeats of the current run.
	// +optional
	CompletedRepeats int32 `json:"completedRepeats,omitempty"`

	// StartedAt is when the first Job of the run was made.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// CompletedAt is when the verdict was reached.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// Subject is what was measured, as it was then.
	// +optional
	Subject *Subject `json:"subject,omitempty"`

	// LoginP95 is the 95th percentile of the whole login, for people, for example 612ms, or 612ms (of
	// 20) where so few logins are too few for it.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	LoginP95 string `json:"loginP95,omitempty"`

	// Scenarios with their figures.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Scenarios []ScenarioResult `json:"scenarios,omitempty"`

	// Objectives beside what was measured.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Objectives []ObjectiveResult `json:"objectives,omitempty"`

	// Baseline is how much slower each gated figure is than that of spec.baseline. Empty where the two
	// cannot be compared; the condition then says why.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Baseline []BaselineResult `json:"baseline,omitempty"`

	// Guards that were checked.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Guards []Guard `json:"guards,omitempty"`

	// Voided are why earlier runs proved nothing: a run during which a Pod changed, the clock was set or
	// the load generator was short of CPU is repeated by itself, up to two times.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=1024
	Voided []string `json:"voided,omitempty"`

	// Causes are where the time went, the greatest share first, each with the number behind it. Shares
	// overlap and need not add up.
	// +optional
	// +listType=map
	// +listMapKey=rank
	// +kubebuilder:validation:MaxItems=16
	Causes []Cause `json:"causes,omitempty"`

	// ResultName names the ConfigMap with the report (key report.json) and the full histograms
	// (key result.txt).
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ResultName string `json:"resultName,omitempty"`
}

// Subject is the stack that was measured, as it was then.
type Subject struct {
	// Stack is the name of the AuthStack.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Stack string `json:"stack"`
	// StackGeneration is the generation of its spec.
	// +required
	StackGeneration int64 `json:"stackGeneration"`
	// IdentityProvider is authentik or authelia.
	// +required
	// +kubebuilder:validation:MaxLength=63
	IdentityProvider string `json:"identityProvider"`
	// Version of the identity provider.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`
	// Double is true where a double ran instead of the product.
	// +required
	Double bool `json:"double"`
	// Database is zalando, standalone or external.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Database string `json:"database"`
	// DatabaseVersion as the server reports it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	DatabaseVersion string `json:"databaseVersion,omitempty"`
	// StorageClass of the database's volume.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClass string `json:"storageClass,omitempty"`
	// Medium of the database's volume.
	// +optional
	Medium Medium `json:"medium,omitempty"`
	// Durability in force.
	// +optional
	Durability Durability `json:"durability,omitempty"`
	// Cache is redis, postgres or memory.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Cache string `json:"cache,omitempty"`
}

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// LatencyComparison measures variants of one stack against each other. Each variant is a stack of its
// own in a namespace of its own, which the operator makes and takes away with all its data; the base
// stack is only read. A changed spec, or a new value of the annotation authstack.dev/requestedAt,
// compares anew.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=lc,categories=all
// +kubebuilder:printcolumn:name="Stack",type=string,JSONPath=`.spec.stackRef.name`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.verdict`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 30",message="the name of a LatencyComparison may have at most 30 characters, because the names of its namespaces are made from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a LatencyComparison may hold only a-z, 0-9 and -, because namespaces are named after it"
type LatencyComparison struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is compared.
	// +required
	Spec LatencyComparisonSpec `json:"spec"`

	// Status is what was found.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status LatencyComparisonStatus `json:"status,omitempty"`
}

// LatencyComparisonList is a list of LatencyComparisons.
//
// +kubebuilder:object:root=true
type LatencyComparisonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LatencyComparison `json:"items"`
}

// LatencyComparisonSpec is what is compared.
//
// +kubebuilder:validation:XValidation:rule="size(self.variants) >= 2",message="a comparison needs at least two variants; to measure one stack make a LatencyTest"
// +kubebuilder:validation:XValidation:rule="self.variants.filter(v, !has(v.patch)).size() <= 1",message="two variants without a patch are the same stack; write for example patch: {postgres: {durability: Relaxed}} into one of them"
type LatencyComparisonSpec struct {
	// StackRef names the base, an AuthStack of this namespace. It is read and never changed or measured.
	// +required
	StackRef LocalReference `json:"stackRef"`

	// Variants of the base. Each is compared with every one that stands before it.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Variants []ComparisonVariant `json:"variants"`

	// Scenarios that are measured in each round. Default: Login.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.size() <= 1 || self.all(s, !has(s.duration) && !has(s.ratePerMinute) && !has(s.rateStepsPerMinute))",message="a scenario with duration, ratePerMinute or rateStepsPerMinute runs by the clock and needs a LatencyComparison of its own; write it as the only scenario"
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.name != 'Script')",message="a comparison measures in namespaces that it makes, where the ConfigMap of a script is not; measure a script by LatencyTests, with spec.baseline to compare them"
	Scenarios []Scenario `json:"scenarios,omitempty"`

	// Rounds is how many times each variant is measured. A round measures every variant once; every
	// second round goes through them backwards (A B B A), so that what changes steadily over time
	// cancels out. Default: 4.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 2 && self <= 12 && self % 2 == 0",message="rounds must be 2, 4, 6, 8, 10 or 12: with an odd number the order A B B A does not balance"
	Rounds *int32 `json:"rounds,omitempty"`

	// WarmUpRounds are run first and left out: caches, statistics and interpreters of a new stack are
	// cold. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3
	WarmUpRounds *int32 `json:"warmUpRounds,omitempty"`

	// SettleSeconds is the pause between two measurements, in which the tasks that the last one left
	// (four per login of authentik) come to their end. Default: 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600
	SettleSeconds *int32 `json:"settleSeconds,omitempty"`

	// EquivalencePercent is how much two variants may differ and still count as equal. Default: 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	EquivalencePercent *int32 `json:"equivalencePercent,omitempty"`

	// TimeoutSeconds bounds one measurement. Default: 900.
	// +optional
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// Generator is the Pod that makes the load.
	// +optional
	Generator GeneratorSpec `json:"generator,omitempty"`

	// Keep leaves the variants standing when all is measured, to look at them. They go when keep is
	// taken back or the comparison is deleted. Default: false.
	// +optional
	Keep bool `json:"keep,omitempty"`
}

// ComparisonVariant is the base with a difference.
type ComparisonVariant struct {
	// Name of the variant.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a variant may hold only a-z, 0-9 and -, because a namespace is named after it, for example ceph-strict"
	Name string `json:"name"`

	// Patch is a JSON merge patch (RFC 7386) of the spec of the base; null removes a field. Nothing
	// given: the base as it is. The result has to be a spec that the API server takes.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Patch *runtime.RawExtension `json:"patch,omitempty"`
}

// LatencyComparisonStatus is what was found.
type LatencyComparisonStatus struct {
	// ObservedGeneration is the generation that this status is of; -1 until first reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready (True when every pair was compared and nothing is left over), Reconciling while
	// it goes on, Stalled where only a person can help.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastHandledReconcileAt is the value of the annotation authstack.dev/requestedAt that was last acted on.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// Compared is the hash of what was or is being compared: the spec without keep, and the request.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Compared string `json:"compared,omitempty"`

	// BaseGeneration is the generation of the base's spec that the variants are made from.
	// +optional
	BaseGeneration int64 `json:"baseGeneration,omitempty"`

	// Progress in words, for example round 2 of 4, local-strict.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Progress string `json:"progress,omitempty"`

	// Verdict on the comparison as a whole: Passed where every variant was measured in enough rounds,
	// Inconclusive where guards voided too many, Error where a variant could not be made or measured.
	// Which variant is faster is said by the pairs.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`

	// Message says why the verdict is so, in sentences.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// StartedAt is when the variants began to be made.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// CompletedAt is when the verdict was reached.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// Variants as they were measured.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Variants []VariantStatus `json:"variants,omitempty"`

	// Pairs are the ratios between variants, with what can be said of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Pairs []PairResult `json:"pairs,omitempty"`

	// ResultName names the ConfigMap with the report (key report.json).
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ResultName string `json:"resultName,omitempty"`
}

// VariantStatus is a variant as it was measured.
type VariantStatus struct {
	// Name of the variant.
	// +required
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name"`
	// Namespace that was made for it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Subject is the stack as it was measured.
	// +optional
	Subject *Subject `json:"subject,omitempty"`
	// DurabilityNote says what a crash can take from it, in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	DurabilityNote string `json:"durabilityNote,omitempty"`
	// Rounds in which it was measured and every guard held.
	// +optional
	Rounds int32 `json:"rounds,omitempty"`
	// Scenarios with the figures of the wholes over all rounds; every endpoint is in the report.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.name != 'Script')",message="a comparison measures in namespaces that it makes, where the ConfigMap of a script is not; measure a script by LatencyTests, with spec.baseline to compare them"
	Scenarios []ScenarioResult `json:"scenarios,omitempty"`
}

// PairVerdict says what can be said of two variants.
// +kubebuilder:validation:Enum=Faster;Slower;NoDifference;Inconclusive
type PairVerdict string

// The verdicts on a pair, in the order in which they are asked.
const (
	// PairNoDifference: the whole interval lies within the equivalence margin.
	PairNoDifference PairVerdict = "NoDifference"
	// PairFaster: the whole interval lies below 1.
	PairFaster PairVerdict = "Faster"
	// PairSlower: the whole interval lies above 1.
	PairSlower PairVerdict = "Slower"
	// PairInconclusive: none of these, or too few rounds to say.
	PairInconclusive PairVerdict = "Inconclusive"
)

// PairResult is the ratio of a percentile between two variants: that of variant divided by that of
// against, in thousandths.
type PairResult struct {
	// Variant that is judged.
	// +required
	// +kubebuilder:validation:MaxLength=20
	Variant string `json:"variant"`
	// Against is the variant that it is compared with.
	// +required
	// +kubebuilder:validation:MaxLength=20
	Against string `json:"against"`
	// Scenario that was measured.
	// +required
	Scenario ScenarioName `json:"scenario"`
	// Endpoint of the scenario; its whole.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Endpoint string `json:"endpoint"`
	// Percentile that is compared: 50 or 95.
	// +required
	Percentile int32 `json:"percentile"`
	// Rounds in which both variants were measured.
	// +required
	Rounds int32 `json:"rounds"`
	// RatioPermille is the geometric mean of the rounds' ratios, in thousandths; 0 where there is none.
	// +required
	RatioPermille int64 `json:"ratioPermille"`
	// CILowPermille is the lower end of the 95 % confidence interval of the ratio, in thousandths.
	// +required
	CILowPermille int64 `json:"ciLowPermille"`
	// CIHighPermille is the upper end of the 95 % confidence interval of the ratio, in thousandths.
	// +required
	CIHighPermille int64 `json:"ciHighPermille"`
	// SmallestEffectPermille is the smallest slow-down, in thousandths, that these rounds would have
	// shown with a probability of 80 %: 50 means that a variant slower by 5 % would have been found.
	// +required
	SmallestEffectPermille int64 `json:"smallestEffectPermille"`
	// Verdict on the pair.
	// +required
	Verdict PairVerdict `json:"verdict"`
}

package v1alpha1

// BaselineSpec names an earlier measurement and says how much slower than it is too slow. What is compared
// are the objectives' percentiles, which then have to be 50, 90, 95 or 99; without objectives the median
// of each scenario's whole. Only the like is compared: the same product (or the double of it in both), k6
// version and sizes of the scenarios.
//
// +kubebuilder:validation:XValidation:rule="has(self.testName) != has(self.configMapName)",message="set exactly one of testName (an earlier LatencyTest) and configMapName (a report that was saved)"
type BaselineSpec struct {
	// TestName names a finished LatencyTest of this namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=52
	TestName string `json:"testName,omitempty"`

	// ConfigMapName names a ConfigMap of this namespace with a report in the key report.json, as
	// kubectl authstack baseline save --configmap writes it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigMapName string `json:"configMapName,omitempty"`

	// NotWorseThanPercent is how much slower is still good enough: the test has Failed when a figure is
	// slower by more with 95 % confidence, and Passed when none is with 95 % confidence. Default: 10.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000",message="notWorseThanPercent must be 1 to 1000, for example 10"
	NotWorseThanPercent *int32 `json:"notWorseThanPercent,omitempty"`
}

// BaselineVerdict is what a comparison with a baseline shows.
// +kubebuilder:validation:Enum=NotWorse;Regressed;Inconclusive
type BaselineVerdict string

// The verdicts of a comparison with a baseline.
const (
	// BaselineNotWorse: with 95 % confidence not slower by more than notWorseThanPercent.
	BaselineNotWorse BaselineVerdict = "NotWorse"
	// BaselineRegressed: with 95 % confidence slower by more than notWorseThanPercent.
	BaselineRegressed BaselineVerdict = "Regressed"
	// BaselineInconclusive: the interval holds both.
	BaselineInconclusive BaselineVerdict = "Inconclusive"
)

// BaselineResult is a figure beside that of the baseline.
type BaselineResult struct {
	// Scenario that was compared.
	// +required
	Scenario ScenarioName `json:"scenario"`
	// Endpoint of the scenario that was compared.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Endpoint string `json:"endpoint"`
	// Percentile that was compared.
	// +required
	Percentile int32 `json:"percentile"`
	// RatioPermille is this figure in thousandths of the baseline's: the geometric means over the
	// repeats. More than 1000 is slower.
	// +required
	RatioPermille int64 `json:"ratioPermille"`
	// CILowPermille and CIHighPermille are the ends of its 95 % confidence interval.
	// +required
	CILowPermille int64 `json:"ciLowPermille"`
	// CIHighPermille: see ciLowPermille.
	// +required
	CIHighPermille int64 `json:"ciHighPermille"`
	// SmallestEffectPermille is the smallest increase, in thousandths, that such repeats show with a
	// probability of 80 %: 90 means that 9 % would have been found.
	// +required
	SmallestEffectPermille int64 `json:"smallestEffectPermille"`
	// Repeats and BaselineRepeats that it is made from.
	// +required
	Repeats int32 `json:"repeats"`
	// BaselineRepeats: see repeats.
	// +required
	BaselineRepeats int32 `json:"baselineRepeats"`
	// RepeatsToSettle is how many repeats of each of the two would settle an Inconclusive with a
	// probability of 80 %; absent where it is settled, and where even a thousand would not do.
	// +optional
	RepeatsToSettle int32 `json:"repeatsToSettle,omitempty"`
	// Verdict of this figure.
	// +required
	Verdict BaselineVerdict `json:"verdict"`
}

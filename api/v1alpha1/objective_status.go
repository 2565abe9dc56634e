package v1alpha1

// ObjectiveResult is an objective beside what was measured.
type ObjectiveResult struct {
	Objective `json:",inline"`
	// MeasuredMicros is the percentile that was measured, in microseconds.
	// +required
	MeasuredMicros int64 `json:"measuredMicros"`
	// Met is whether it lies below the objective.
	// +required
	Met bool `json:"met"`
	// CILowMicros and CIHighMicros are the ends of the percentile's 95 % confidence interval; absent where
	// there are too few answers for one.
	// +optional
	CILowMicros int64 `json:"ciLowMicros,omitempty"`
	// CIHighMicros: see ciLowMicros.
	// +optional
	CIHighMicros int64 `json:"ciHighMicros,omitempty"`
	// CISample is what the interval takes as independent: Repeats from three on, which also holds what
	// differs from repeat to repeat, else Requests.
	// +optional
	CISample IntervalSample `json:"ciSample,omitempty"`
}

// IntervalSample is what a confidence interval takes as independent.
// +kubebuilder:validation:Enum=Requests;Repeats
type IntervalSample string

// The samples of an interval.
const (
	// SampleRequests: the requests of the run. What differs from run to run is not in the interval.
	SampleRequests IntervalSample = "Requests"
	// SampleRepeats: the percentile of each repeat.
	SampleRepeats IntervalSample = "Repeats"
)

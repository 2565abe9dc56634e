package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LatencySpec says what is measured of a stack, when, and what is fast enough.
type LatencySpec struct {
	// Objectives are what is fast enough. They apply to every LatencyTest of this stack that names
	// none of its own. Nothing given: the run is judged by its guards alone.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Objectives []Objective `json:"objectives,omitempty"`

	// Scenarios that automatic tests run. Default: those that the objectives name, and Login.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.size() <= 1 || self.all(s, !has(s.duration) && !has(s.ratePerMinute) && !has(s.rateStepsPerMinute))",message="a scenario with duration, ratePerMinute or rateStepsPerMinute runs by the clock and needs a LatencyTest of its own; write it as the only scenario"
	// +kubebuilder:validation:XValidation:rule="self.size() <= 1 || self.all(s, s.name != 'Script')",message="scenario Script runs in a k6 of its own, which can reach nothing but the stack; write it as the only scenario of a LatencyTest"
	Scenarios []Scenario `json:"scenarios,omitempty"`

	// Schedule, in cron's notation and UTC, at which the stack is measured again.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('(?i)^(?:@(?:hourly|daily|weekly|monthly)|(?:[*?]|[0-5]?[0-9](?:-[0-5]?[0-9])?)(?:/[1-9][0-9]?)?(?:,(?:[*?]|[0-5]?[0-9](?:-[0-5]?[0-9])?)(?:/[1-9][0-9]?)?)* +(?:[*?]|(?:[01]?[0-9]|2[0-3])(?:-(?:[01]?[0-9]|2[0-3]))?)(?:/[1-9][0-9]?)?(?:,(?:[*?]|(?:[01]?[0-9]|2[0-3])(?:-(?:[01]?[0-9]|2[0-3]))?)(?:/[1-9][0-9]?)?)* +(?:[*?]|(?:0?[1-9]|[12][0-9]|3[01])(?:-(?:0?[1-9]|[12][0-9]|3[01]))?)(?:/[1-9][0-9]?)?(?:,(?:[*?]|(?:0?[1-9]|[12][0-9]|3[01])(?:-(?:0?[1-9]|[12][0-9]|3[01]))?)(?:/[1-9][0-9]?)?)* +(?:[*?]|(?:0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?:-(?:0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?)(?:/[1-9][0-9]?)?(?:,(?:[*?]|(?:0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?:-(?:0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?)(?:/[1-9][0-9]?)?)* +(?:[*?]|(?:[0-6]|sun|mon|tue|wed|thu|fri|sat)(?:-(?:[0-6]|sun|mon|tue|wed|thu|fri|sat))?)(?:/[1-9][0-9]?)?(?:,(?:[*?]|(?:[0-6]|sun|mon|tue|wed|thu|fri|sat)(?:-(?:[0-6]|sun|mon|tue|wed|thu|fri|sat))?)(?:/[1-9][0-9]?)?)*)$')",message="schedule must have the five fields of cron (minute hour day month weekday), for example 0 5 * * *, or be @hourly, @daily, @weekly or @monthly"
	Schedule string `json:"schedule,omitempty"`

	// Mode says whether the operator measures by itself: Automatic after the stack has become Ready,
	// after each change of its spec and on the schedule; Manual only on the request annotation and
	// by a LatencyTest that somebody makes. Default: Automatic.
	// +optional
	// +kubebuilder:validation:Enum=Automatic;Manual
	Mode LatencyMode `json:"mode,omitempty"`

	// HistoryLimit is the number of finished automatic LatencyTests that are kept. Default: 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	HistoryLimit *int32 `json:"historyLimit,omitempty"`

	// UserSecretName names a Secret of this namespace with the keys username and password of a user
	// to measure with. Only needed where the operator cannot make one: Authelia with LDAP.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	UserSecretName string `json:"userSecretName,omitempty"`
}

// LatencyMode says whether the operator measures by itself.
type LatencyMode string

// The latency modes.
const (
	// LatencyAutomatic measures after Ready, after a change and on the schedule.
	LatencyAutomatic LatencyMode = "Automatic"
	// LatencyManual measures only when somebody asks.
	LatencyManual LatencyMode = "Manual"
)

// Objective is what is fast enough: the percentile of the scenario lies below a duration.
type Objective struct {
	// Scenario that is judged.
	// +required
	Scenario ScenarioName `json:"scenario"`

	// Endpoint of the scenario that is judged, as it stands in the result; of the scenario Script also the
	// name of a Trend of times, new Trend(name, true). Default: the scenario's whole, for example the
	// whole login of six requests.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_]([-a-zA-Z0-9_]*[a-zA-Z0-9_])?$`
	Endpoint string `json:"endpoint,omitempty"`

	// Percentile, 1 to 100; 100 is the slowest request.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100",message="percentile must be 1 to 100, for example 95; 100 is the slowest request"
	Percentile int32 `json:"percentile"`

	// Below is the duration that the percentile must stay under, for example 800ms.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s') && duration(self) <= duration('10m')",message="below must be more than 0 and at most 10m, for example 800ms"
	Below metav1.Duration `json:"below"`
}

// Verdict is the outcome of a measurement.
// +kubebuilder:validation:Enum=Passed;Failed;Inconclusive;Error
type Verdict string

// The verdicts. No data never passes.
const (
	// VerdictPassed: the run is valid and meets every objective.
	VerdictPassed Verdict = "Passed"
	// VerdictFailed: the run is valid and misses an objective.
	VerdictFailed Verdict = "Failed"
	// VerdictInconclusive: a guard was violated, so the figures prove nothing.
	VerdictInconclusive Verdict = "Inconclusive"
	// VerdictError: there is no result to judge.
	VerdictError Verdict = "Error"
)

// ScenarioResult is what was measured of one scenario.
type ScenarioResult struct {
	// Name of the scenario.
	// +required
	Name ScenarioName `json:"name"`

	// Endpoints of the scenario, each with its figures; the scenario's whole comes first.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Endpoints []EndpointResult `json:"endpoints,omitempty"`

	// ScriptDigest is that of the user's own script that was run, as sha256:HEX; of the scenario Script only.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	ScriptDigest string `json:"scriptDigest,omitempty"`

	// Metrics of the user's own script: its Counters, Rates and Gauges, and its Trends of other values than
	// times. A Trend of times is among the endpoints.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Metrics []ScriptMetric `json:"metrics,omitempty"`
	// MetricValuesLeftOut is how many values of the script's metrics are in no figure, because it has more
	// than 32 metrics, or more than 16 Trends of times.
	// +optional
	MetricValuesLeftOut int64 `json:"metricValuesLeftOut,omitempty"`

	// SustainedPerMinute is the highest of rateStepsPerMinute that was kept up.
	// +optional
	SustainedPerMinute int32 `json:"sustainedPerMinute,omitempty"`
	// SustainedLimit says what broke at the next step; empty where every step was kept up.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	SustainedLimit string `json:"sustainedLimit,omitempty"`
}

// EndpointResult is what was measured of one endpoint. Percentiles are over requests that answered
// as expected; failed ones are counted apart.
type EndpointResult struct {
	// Name of the endpoint, for example password-post, or of the scenario's whole, for example login.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Requests that were measured (iterations, for a whole; values, for a Trend of times of a user's own
	// script), failed ones included.
	// +required
	Requests int64 `json:"requests"`

	// Failed is the number of requests with an unexpected answer or none.
	// +required
	Failed int64 `json:"failed"`

	// P50Micros is the median in microseconds.
	// +required
	P50Micros int64 `json:"p50Micros"`
	// P90Micros is the 90th percentile in microseconds.
	// +required
	P90Micros int64 `json:"p90Micros"`
	// P95Micros is the 95th percentile in microseconds.
	// +required
	P95Micros int64 `json:"p95Micros"`
	// P99Micros is the 99th percentile in microseconds.
	// +required
	P99Micros int64 `json:"p99Micros"`
	// P999Micros is the 99.9th percentile in microseconds.
	// +required
	P999Micros int64 `json:"p999Micros"`
	// MaxMicros is the slowest in microseconds.
	// +required
	MaxMicros int64 `json:"maxMicros"`

	// IntendedP95Micros and IntendedP99Micros count from the moment at which the schedule of an open
	// model wanted the iteration to begin, in microseconds; absent in a closed model.
	// +optional
	IntendedP95Micros int64 `json:"intendedP95Micros,omitempty"`
	// IntendedP99Micros: see intendedP95Micros.
	// +optional
	IntendedP99Micros int64 `json:"intendedP99Micros,omitempty"`

	// BytesPerSecond of answers' bodies.
	// +optional
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`

	// Unsupported are the percentiles that so few answers are too few for: p99 needs 299, p95 59, p90
	// 29 (with fewer not even the slowest lies above the true one with 95 % confidence). They are near
	// the maximum by luck and no basis for a decision. Empty where all are supported.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=8
	Unsupported []string `json:"unsupported,omitempty"`

	// RequestsPerSecondMilli is the throughput in thousandths of a request a second.
	// +optional
	RequestsPerSecondMilli int64 `json:"requestsPerSecondMilli,omitempty"`

	// Phases are the medians of the parts of a request; absent for a whole and for a Trend.
	// +optional
	Phases *Phases `json:"phases,omitempty"`
}

// Phases are the medians of the parts of a request, in microseconds. Phases that a reused
// connection does not have are over the requests that opened one.
type Phases struct {
	// DNSMicros is the name lookup.
	// +required
	DNSMicros int64 `json:"dnsMicros"`
	// ConnectMicros is the TCP handshake.
	// +required
	ConnectMicros int64 `json:"connectMicros"`
	// TLSMicros is the TLS handshake.
	// +required
	TLSMicros int64 `json:"tlsMicros"`
	// WaitMicros is the time to the first byte of the answer.
	// +required
	WaitMicros int64 `json:"waitMicros"`
	// ReceiveMicros is the time from the first to the last byte.
	// +required
	ReceiveMicros int64 `json:"receiveMicros"`
}

// Guard is one check that a run can be trusted.
type Guard struct {
	// Name of the guard.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// OK is whether the run held to it.
	// +required
	OK bool `json:"ok"`
	// Detail is the figure behind it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Detail string `json:"detail,omitempty"`
}

// Cause is where a part of the time went, with the number behind it.
type Cause struct {
	// Rank from 1, the greatest share first.
	// +required
	Rank int32 `json:"rank"`
	// Name of the cause, for example commit-wait.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Scenario that it slows.
	// +required
	Scenario ScenarioName `json:"scenario"`
	// Endpoint of the scenario that it slows.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Endpoint string `json:"endpoint"`
	// Micros of the endpoint's median that it takes, in microseconds.
	// +required
	Micros int64 `json:"micros"`
	// ShareMilli is the same in thousandths of the median.
	// +required
	ShareMilli int32 `json:"shareMilli"`
	// Basis says how sure that is.
	// +required
	Basis CauseBasis `json:"basis"`
	// Detail is the number behind it, in a sentence.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Detail string `json:"detail"`
	// Remedy names the field to change, or says that there is none.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Remedy string `json:"remedy"`
}

// CauseBasis says how sure a share is.
// +kubebuilder:validation:Enum=Measured;Estimated
type CauseBasis string

// The bases.
const (
	// BasisMeasured: from counts and times of this run.
	BasisMeasured CauseBasis = "Measured"
	// BasisEstimated: from a figure of this run and a ratio that was measured elsewhere.
	BasisEstimated CauseBasis = "Estimated"
)

// GeneratorSpec is the Pod that makes the load.
type GeneratorSpec struct {
	// Pods that share the load, each with its part of every scenario (k6 execution segments in an
	// Indexed Job); their histograms are merged without loss. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Pods *int32 `json:"pods,omitempty"`

	// Resources of the k6 container. Default: 500m CPU and 256Mi requested, 512Mi memory limit, no
	// CPU limit, since a throttled generator measures itself. k6 with one virtual user holds about
	// 50Mi (a test of loadtests/k6 says how much): a memory limit is at least 64Mi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !('memory' in self.limits) || quantity(string(self.limits['memory'])).compareTo(quantity('64Mi')) >= 0",message="k6 needs more memory than that: write at least memory: 64Mi in limits, or remove it for 512Mi"
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

package v1alpha1

// ScriptMetric is a metric that a user's own script made with k6/metrics, over the measured part. A Trend of
// times is an endpoint instead. Numbers are in thousandths of what the script added.
type ScriptMetric struct {
	// Name that the script gave it; a password in it is taken out.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// Type of the metric in k6.
	// +required
	Type ScriptMetricType `json:"type"`
	// Count is the number of values that were added.
	// +required
	Count int64 `json:"count"`
	// LeftOut is how many of them are in no other figure: of a Trend those that are negative or above
	// 3600000, of a Counter or a Gauge those that are further than 10^12 from 0.
	// +optional
	LeftOut int64 `json:"leftOut,omitempty"`

	// P50Milli is the median of a Trend, in thousandths.
	// +optional
	P50Milli int64 `json:"p50Milli,omitempty"`
	// P90Milli is the 90th percentile of a Trend, in thousandths.
	// +optional
	P90Milli int64 `json:"p90Milli,omitempty"`
	// P95Milli is the 95th percentile of a Trend, in thousandths.
	// +optional
	P95Milli int64 `json:"p95Milli,omitempty"`
	// P99Milli is the 99th percentile of a Trend, in thousandths.
	// +optional
	P99Milli int64 `json:"p99Milli,omitempty"`
	// P999Milli is the 99.9th percentile of a Trend, in thousandths.
	// +optional
	P999Milli int64 `json:"p999Milli,omitempty"`
	// MinMilli is the least value of a Trend or a Gauge, in thousandths.
	// +optional
	MinMilli int64 `json:"minMilli,omitempty"`
	// MaxMilli is the greatest value of a Trend or a Gauge, in thousandths.
	// +optional
	MaxMilli int64 `json:"maxMilli,omitempty"`
	// Unsupported are the percentiles of a Trend that there are too few values for; see endpoints.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=8
	Unsupported []string `json:"unsupported,omitempty"`

	// SumMilli is the sum of a Counter, in thousandths.
	// +optional
	SumMilli int64 `json:"sumMilli,omitempty"`

	// TrueCount is how many values of a Rate were not 0.
	// +optional
	TrueCount int64 `json:"trueCount,omitempty"`
}

// ScriptMetricType is the type of a metric in k6.
// +kubebuilder:validation:Enum=Trend;Counter;Rate;Gauge
type ScriptMetricType string

// The types of metrics.
const (
	// MetricTrend has percentiles.
	MetricTrend ScriptMetricType = "Trend"
	// MetricCounter has a sum.
	MetricCounter ScriptMetricType = "Counter"
	// MetricRate has a share of values that were not 0.
	MetricRate ScriptMetricType = "Rate"
	// MetricGauge has a least and a greatest value.
	MetricGauge ScriptMetricType = "Gauge"
)

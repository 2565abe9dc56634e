// Package report shows the result of a LatencyTest or a LatencyComparison: as a table, JSON, Markdown or one HTML file.
package report

import (
	"time"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/baseline"
	"authstack.dev/authstack/internal/result"
)

// APIVersion names the JSON form of a report and its version.
const APIVersion = "authstack.dev/report/v1"

// Report is one LatencyTest, or one LatencyComparison, for people and programs. Its JSON form is stable; fields are only added.
type Report struct {
	APIVersion  string    `json:"apiVersion"`
	GeneratedAt time.Time `json:"generatedAt"`
	// Namespace and Name of the LatencyTest or LatencyComparison.
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Subject   Subject `json:"subject"`
	// Verdict is Passed, Failed, Inconclusive or Error; empty while the test runs. Message is why.
	Verdict     v1alpha1.Verdict `json:"verdict"`
	Message     string           `json:"message,omitempty"`
	StartedAt   *time.Time       `json:"startedAt,omitempty"`
	CompletedAt *time.Time       `json:"completedAt,omitempty"`
	// Scenarios is one row for each endpoint of each scenario, the whole of a scenario first.
	Scenarios []Row `json:"scenarios"`
	// Sustained are the scenarios whose rate rose in steps.
	Sustained []Sustained `json:"sustained,omitempty"`
	// OwnMetrics are those of a user's own script.
	OwnMetrics []OwnMetrics     `json:"ownMetrics,omitempty"`
	Objectives []Objective      `json:"objectives"`
	Guards     []v1alpha1.Guard `json:"guards"`
	// Baseline is how much slower each gated figure is than that of an earlier measurement; absent where
	// there was none to compare with.
	Baseline []v1alpha1.BaselineResult `json:"baseline,omitempty"`
	// Sizes of the scenarios and Repeats, the figures of each, are what a later measurement is compared by.
	Sizes   []baseline.Size   `json:"sizes,omitempty"`
	Repeats []baseline.Repeat `json:"repeats,omitempty"`
	// Voided are why earlier runs of the test proved nothing and were repeated.
	Voided []string `json:"voided,omitempty"`
	// Causes are where the time went, the greatest share first; they overlap. Absent where nothing was
	// measured that would tell.
	Causes []v1alpha1.Cause `json:"causes,omitempty"`
	// Settings of PostgreSQL as of the stack's status.
	Settings []v1alpha1.SettingStatus `json:"settings,omitempty"`
	// Storage is what the storage below the database was measured to do; absent where it was not probed.
	Storage *v1alpha1.StorageProbeStatus `json:"storage,omitempty"`
	// DurabilityNote says what a crash can take.
	DurabilityNote string            `json:"durabilityNote,omitempty"`
	Generator      *result.Generator `json:"generator,omitempty"`
	// Plots are the distributions of the wholes and of a script's own times; absent without the full histograms.
	Plots []Plot `json:"plots,omitempty"`
	// Details of the requests of Throughput; absent without the full histograms.
	Details []Details `json:"details,omitempty"`
	// Variants and Pairs are those of a LatencyComparison; a LatencyTest has none. Scenarios are then the
	// wholes of all variants.
	Variants []Variant `json:"variants,omitempty"`
	Pairs    []Pair    `json:"pairs,omitempty"`
	// WaitingCommits are counted beside the comparison, the strictest durability first.
	WaitingCommits []WaitingCommits `json:"waitingCommits,omitempty"`
	// Others are further tests in the same file.
	Others []*Report `json:"others,omitempty"`
}

// Subject is the stack that was measured, as it was then.
type Subject struct {
	Stack            string `json:"stack"`
	StackGeneration  int64  `json:"stackGeneration"`
	IdentityProvider string `json:"identityProvider"`
	Version          string `json:"version"`
	// Double is true where a stand-in ran in place of the product: the figures are then not the product's.
	Double          bool   `json:"double"`
	Database        string `json:"database"`
	DatabaseVersion string `json:"databaseVersion"`
	StorageClass    string `json:"storageClass"`
	Medium          string `json:"medium"`
	Durability      string `json:"durability"`
	Cache           string `json:"cache"`
}

// Row is one endpoint. Percentiles are over the requests that answered as expected.
type Row struct {
	// Scenario is called name in the file: scenarios[] are rows of name and endpoint.
	Scenario string `json:"name"`
	Endpoint string `json:"endpoint"`
	// Variant that it was measured of, in a comparison.
	Variant  string `json:"variant,omitempty"`
	Requests int64  `json:"requests"`
	Failed   int64  `json:"failed"`

	P50Micros  int64 `json:"p50Micros"`
	P90Micros  int64 `json:"p90Micros"`
	P95Micros  int64 `json:"p95Micros"`
	P99Micros  int64 `json:"p99Micros"`
	P999Micros int64 `json:"p999Micros"`
	MaxMicros  int64 `json:"maxMicros"`
	// Unsupported are the percentiles that there are too few answers for, for example p99; tables mark
	// them with a star.
	Unsupported []string `json:"unsupported,omitempty"`

	RequestsPerSecondMilli int64 `json:"requestsPerSecondMilli,omitempty"`
	// IntendedP95Micros and IntendedP99Micros count from the moment at which the schedule of an open model
	// wanted the iteration to begin; absent in a closed model.
	IntendedP95Micros int64 `json:"intendedP95Micros,omitempty"`
	IntendedP99Micros int64 `json:"intendedP99Micros,omitempty"`
	// BytesPerSecond of the bodies of answers; absent for a whole.
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	// Phases are medians; absent for a whole and for a Trend of times.
	Phases *v1alpha1.Phases `json:"phases,omitempty"`
}

// Objective beside what was measured.
type Objective struct {
	Scenario       string `json:"scenario"`
	Endpoint       string `json:"endpoint"`
	Percentile     int32  `json:"percentile"`
	BelowMicros    int64  `json:"belowMicros"`
	MeasuredMicros int64  `json:"measuredMicros"`
	Met            bool   `json:"met"`
	// CILowMicros and CIHighMicros are the ends of the 95 % confidence interval, over CISample: Requests or
	// Repeats; absent where there are too few answers for one.
	CILowMicros  int64                   `json:"ciLowMicros,omitempty"`
	CIHighMicros int64                   `json:"ciHighMicros,omitempty"`
	CISample     v1alpha1.IntervalSample `json:"ciSample,omitempty"`
}

// Input is what a report is made from.
type Input struct {
	// Test with its status.
	Test *v1alpha1.LatencyTest
	// Stack that it measured; nil where it is gone.
	Stack *v1alpha1.AuthStack
	// Run is the merged result; nil where only the status is left, and then there are no plots.
	Run *result.Run
	// Sizes and Repeats of the test; nil where they are not known any more.
	Sizes   []baseline.Size
	Repeats []baseline.Repeat
	// Now is when the report is made.
	Now time.Time
}

// New makes the report of a test.
func New(in Input) *Report {
	status := in.Test.Status
	r := &Report{
		APIVersion: APIVersion, GeneratedAt: in.Now.UTC().Truncate(time.Second),
		Namespace: in.Test.Namespace, Name: in.Test.Name,
		Verdict:   status.Verdict,
		Scenarios: []Row{}, Objectives: []Objective{}, Guards: append([]v1alpha1.Guard{}, status.Guards...),
		Causes: status.Causes, Voided: status.Voided,
		Baseline: status.Baseline, Sizes: in.Sizes, Repeats: in.Repeats,
		Subject: Subject{Stack: in.Test.Spec.StackRef.Name},
	}
	for _, c := range status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			r.Message = c.Message
		}
	}
	if s := status.Subject; s != nil {
		r.Subject = subjectOf(s)
	}
	if status.StartedAt != nil {
		r.StartedAt = &status.StartedAt.Time
	}
	if status.CompletedAt != nil {
		r.CompletedAt = &status.CompletedAt.Time
	}
	r.Scenarios, r.Sustained, r.OwnMetrics = rowsOf(status.Scenarios), sustainedOf(status.Scenarios), ownMetricsOf(status.Scenarios)
	for _, o := range status.Objectives {
		r.Objectives = append(r.Objectives, Objective{
			Scenario: string(o.Scenario), Endpoint: o.Endpoint, Percentile: o.Percentile,
			BelowMicros: o.Below.Microseconds(), MeasuredMicros: o.MeasuredMicros, Met: o.Met,
			CILowMicros: o.CILowMicros, CIHighMicros: o.CIHighMicros, CISample: o.CISample,
		})
	}
	r.Storage = probed(in.Stack)
	if in.Stack != nil && in.Stack.Status.Database != nil {
		r.Settings = in.Stack.Status.Database.Settings
		r.DurabilityNote = in.Stack.Status.Database.DurabilityNote
	}
	if in.Run != nil {
		generator := in.Run.Generator
		r.Generator = &generator
		r.Plots, r.Details = plots(status.Scenarios, in.Run), detailsOf(in.Run)
	}
	return r
}

func subjectOf(s *v1alpha1.Subject) Subject {
	return Subject{
		Stack: s.Stack, StackGeneration: s.StackGeneration, IdentityProvider: s.IdentityProvider, Version: s.Version,
		Double: s.Double, Database: s.Database, DatabaseVersion: s.DatabaseVersion, StorageClass: s.StorageClass,
		Medium: string(s.Medium), Durability: string(s.Durability), Cache: s.Cache,
	}
}

func rowsOf(scenarios []v1alpha1.ScenarioResult) []Row {
	rows := []Row{}
	for _, s := range scenarios {
		for _, e := range s.Endpoints {
			rows = append(rows, Row{
				Scenario: string(s.Name), Endpoint: e.Name, Requests: e.Requests, Failed: e.Failed,
				P50Micros: e.P50Micros, P90Micros: e.P90Micros, P95Micros: e.P95Micros, P99Micros: e.P99Micros,
				P999Micros: e.P999Micros, MaxMicros: e.MaxMicros, Unsupported: e.Unsupported,
				RequestsPerSecondMilli: e.RequestsPerSecondMilli, Phases: e.Phases,
				IntendedP95Micros: e.IntendedP95Micros, IntendedP99Micros: e.IntendedP99Micros, BytesPerSecond: e.BytesPerSecond,
			})
		}
	}
	return rows
}

// Merge puts several reports into one file: the first is the report, the rest are its others. Nil for none.
func Merge(reports ...*Report) *Report {
	if len(reports) == 0 {
		return nil
	}
	merged := *reports[0]
	merged.Others = append(append([]*Report{}, merged.Others...), reports[1:]...)
	return &merged
}

// All is the report and its others.
func (r *Report) All() []*Report { return append([]*Report{r}, r.Others...) }

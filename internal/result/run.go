// Package result is the result of one k6 run as a format: what is in it, how it is written into a
// log and how it is found there again. The k6 output extension is its only writer and this package
// its only reader. docs/reference/result-format.md is the format in words.
package result

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// Format names this format and its version; a reader refuses any other.
const Format = "authstack.dev/result/v1"

// Run is what one k6 process measured. Durations are in microseconds.
type Run struct {
	// Format is the constant of that name.
	Format string `json:"format"`
	// PlanID is the id that plan.json had; it ties a result to the plan that it was measured for.
	PlanID string `json:"planID,omitempty"`
	// ScriptDigest is the Digest of the user's own script that was run; empty for the scenarios of this project.
	ScriptDigest string `json:"scriptDigest,omitempty"`
	// StartedAt and EndedAt are wall-clock times of the generator's machine.
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
	// ClockDriftMicros and PodsApartMicros are of a merged run: the largest ClockDrift of those in it, and how much later than the
	// first Pod the last one began.
	ClockDriftMicros *int64 `json:"clockDriftMicros,omitempty"`
	PodsApartMicros  int64  `json:"podsApartMicros,omitempty"`
	// StopError is why k6 ended early, in k6's words, or empty.
	StopError string `json:"stopError,omitempty"`
	// Trimmed says what was left out of a result that was too long, or nothing.
	Trimmed []string `json:"trimmed,omitempty"`
	// Scenarios that ran, in the order of their names.
	Scenarios []Scenario `json:"scenarios"`
	// Series are the figures of each endpoint of each scenario, in the order of scenario and endpoint.
	Series []Series `json:"series"`
	// Generator is the evidence that the load generator measured the stack and not itself.
	Generator Generator `json:"generator"`
}

// Scenario counts the iterations of one k6 scenario, warm-up included.
type Scenario struct {
	Name string `json:"name"`
	// Iterations that came to their end, of the measured part and of the warm-up. The script counts them.
	Iterations       int64 `json:"iterations"`
	WarmUpIterations int64 `json:"warmUpIterations"`
	// DroppedIterations were planned and never started (k6's dropped_iterations).
	DroppedIterations int64 `json:"droppedIterations"`
	// Checks of the scenario's answers, in the order of their names; at most 64.
	Checks []Check `json:"checks,omitempty"`
	// Metrics that a user's own script made and that are no times, in the order of their names; at most MaxMetrics.
	Metrics []Metric `json:"metrics,omitempty"`
	// MetricValuesLeftOut is how many measured values of the user's own metrics are in no figure at all,
	// because there are more metrics than a result keeps.
	MetricValuesLeftOut int64 `json:"metricValuesLeftOut,omitempty"`
}

// Check is an assertion about answers.
type Check struct {
	Name   string `json:"name"`
	Passed int64  `json:"passed"`
	Failed int64  `json:"failed"`
}

// Series is what was measured of one endpoint, or of a scenario's whole, in the measured part.
type Series struct {
	Scenario string `json:"scenario"`
	Endpoint string `json:"endpoint"`
	// Whole is true for a composite of several requests (login, dashboard-parallel).
	Whole bool `json:"whole,omitempty"`
	// Own is true for a Trend of times of a user's own script; what it counts are the values of the Trend.
	Own bool `json:"own,omitempty"`
	// Requests that were measured (iterations, for a whole), failed ones included.
	Requests int64 `json:"requests"`
	// Wrong is the number that got an unexpected answer, Unanswered that got none. Both are failures.
	Wrong      int64 `json:"wrong"`
	Unanswered int64 `json:"unanswered"`
	// WarmUpRequests and WarmUpFailed count the warm-up, which is in no other figure.
	WarmUpRequests int64 `json:"warmUpRequests"`
	WarmUpFailed   int64 `json:"warmUpFailed"`
	// Failures says how they failed, warm-up included, most frequent first; at most 16 kinds.
	Failures []Failure `json:"failures,omitempty"`
	// FirstMicros and LastMicros are when the first measured request began and the last one ended,
	// since the start of the run. Their difference is what throughput is counted over.
	FirstMicros int64 `json:"firstMicros"`
	LastMicros  int64 `json:"lastMicros"`
	// Total is the duration as the client sees it, of the requests that answered as expected:
	// waiting for a connection and opening it, sending, waiting, receiving.
	Total *Histogram `json:"total,omitempty"`
	// Intended is Total counted from the moment at which the schedule of an open model wanted the
	// iteration to begin, so that a stall weighs on every person who would have come during it
	// (coordinated omission). Of a whole, or of the only request of a scenario (ForwardAuth), in an open model.
	Intended *Histogram `json:"intended,omitempty"`
	// Bytes received in bodies of answers, of the measured part.
	Bytes int64 `json:"bytes,omitempty"`
	// Statuses counts the answers of the measured part by their HTTP status, in its order; at most maxStatuses.
	Statuses []Status `json:"statuses,omitempty"`
	// Timeline is Total over time.
	Timeline *Timeline `json:"timeline,omitempty"`
	// The parts of Total. DNS, Connect and TLS hold only requests that opened a connection.
	DNS     *Histogram `json:"dns,omitempty"`
	Connect *Histogram `json:"connect,omitempty"`
	TLS     *Histogram `json:"tls,omitempty"`
	Send    *Histogram `json:"send,omitempty"`
	Wait    *Histogram `json:"wait,omitempty"`
	Receive *Histogram `json:"receive,omitempty"`
}

// Failure is one way in which requests of an endpoint failed.
type Failure struct {
	// Kind in words, for example "status 500" or "no answer (connection refused)". Never part of an answer's body.
	Kind  string `json:"kind"`
	Count int64  `json:"count"`
}

// Status is how many answers had an HTTP status; 0 stands for those beyond maxStatuses.
type Status struct {
	Status int   `json:"status"`
	Count  int64 `json:"count"`
}

// OfRequests is whether the series counts single requests: neither a composite nor the script's own times.
func (s *Series) OfRequests() bool { return !s.Whole && !s.Own }

// BytesPerSecond of the bodies of answers, from the first request's begin to the last one's end; 0 where nothing was measured.
func (s *Series) BytesPerSecond() int64 {
	if span := s.LastMicros - s.FirstMicros; span > 0 {
		return s.Bytes * 1_000_000 / span
	}
	return 0
}

// Failed is the number of measured requests with an unexpected answer or none.
func (s *Series) Failed() int64 { return s.Wrong + s.Unanswered }

// Generator is the load generator's own conduct over the run.
type Generator struct {
	K6Version string `json:"k6Version"`
	GoVersion string `json:"goVersion"`
	// GOMAXPROCS is how many processors k6 could use: at most those of the node.
	GOMAXPROCS int `json:"gomaxprocs"`
	// WallMicros is the length of the run by the monotonic clock.
	WallMicros int64 `json:"wallMicros"`
	// CPUMicros is the CPU time that the process used, BusiestCPUMicros the most in any one second.
	CPUMicros        int64 `json:"cpuMicros"`
	BusiestCPUMicros int64 `json:"busiestCPUMicros"`
	// MaxRSSBytes is the process's peak memory.
	MaxRSSBytes int64 `json:"maxRSSBytes"`
	// Throttle is what the cgroup says; nil where it could not be read.
	Throttle *Throttle `json:"throttle,omitempty"`
}

// Throttle is how often the kernel held the process back over the run (cgroup cpu.stat).
type Throttle struct {
	Periods         int64 `json:"periods"`
	Throttled       int64 `json:"throttled"`
	ThrottledMicros int64 `json:"throttledMicros"`
}

// Digest of a script, in the form sha256:HEX.
func Digest(script []byte) string {
	sum := sha256.Sum256(script)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// The kinds of failure that speak of a user's own script and not of what it measured.
const (
	// FailureElsewhere is that of a request for another address than the stack's, or for any name.
	FailureElsewhere = "another address than the stack's"
	// FailureScript begins that of an iteration in which the script threw; k6's words may follow after ": ".
	FailureScript = "script error"
)

// answers is how many answers the statuses count; less than 0 where one of them does.
func (s *Series) answers() int64 {
	sum := int64(0)
	for _, status := range s.Statuses {
		if status.Count < 0 || status.Count > maxCount {
			return -1
		}
		sum += status.Count
	}
	return sum
}

// ClockDrift is by how much the wall clock and the monotonic clock of a generator differ over its run: more than nothing where
// somebody set the clock. Of a merged run it is the largest.
func (r *Run) ClockDrift() time.Duration {
	if r.ClockDriftMicros != nil {
		return time.Duration(*r.ClockDriftMicros) * time.Microsecond
	}
	return (r.EndedAt.Sub(r.StartedAt) - time.Duration(r.Generator.WallMicros)*time.Microsecond).Abs()
}

// PodsApart is how much later than the first Pod of a parallel run the last one began.
func (r *Run) PodsApart() time.Duration { return time.Duration(r.PodsApartMicros) * time.Microsecond }

// Find returns the series of an endpoint, or nil.
func (r *Run) Find(scenario, endpoint string) *Series {
	for i := range r.Series {
		if r.Series[i].Scenario == scenario && r.Series[i].Endpoint == endpoint {
			return &r.Series[i]
		}
	}
	return nil
}

// Sort brings scenarios, series, checks, metrics, statuses and failures into their documented order.
func (r *Run) Sort() {
	slices.SortFunc(r.Scenarios, func(a, b Scenario) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Series, func(a, b Series) int {
		return cmp.Or(cmp.Compare(a.Scenario, b.Scenario), cmp.Compare(a.Endpoint, b.Endpoint))
	})
	for i := range r.Scenarios {
		slices.SortFunc(r.Scenarios[i].Checks, func(a, b Check) int { return cmp.Compare(a.Name, b.Name) })
		slices.SortFunc(r.Scenarios[i].Metrics, func(a, b Metric) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type)) })
	}
	for i := range r.Series {
		slices.SortFunc(r.Series[i].Failures, func(a, b Failure) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind))
		})
		slices.SortFunc(r.Series[i].Statuses, func(a, b Status) int { return cmp.Compare(a.Status, b.Status) })
	}
}

// validate refuses what no writer of this format writes.
func (r *Run) validate() error {
	if r.Format != Format {
		return fmt.Errorf("%w: %.64q, this reader knows %q", ErrUnsupportedVersion, r.Format, Format)
	}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if len(s.Metrics) > MaxMetrics || s.MetricValuesLeftOut < 0 {
			return fmt.Errorf("%w: %.64s has %d metrics and leaves out %d values", ErrCorrupt, s.Name, len(s.Metrics), s.MetricValuesLeftOut)
		}
		for j := range s.Metrics {
			if err := s.Metrics[j].validate(); err != nil {
				return err
			}
		}
	}
	for i := range r.Series {
		s := &r.Series[i]
		switch {
		case len(s.Statuses) > maxStatuses || s.answers() < 0 || s.answers() > s.Requests || s.Bytes < 0:
			return fmt.Errorf("%w: %.64s/%.64s has %d requests and %d answers by %d statuses", ErrCorrupt, s.Scenario, s.Endpoint, s.Requests, s.answers(), len(s.Statuses))
		case s.Requests < 0 || s.Wrong < 0 || s.Unanswered < 0 || s.WarmUpRequests < 0 || s.WarmUpFailed < 0:
			return fmt.Errorf("%w: %.64s/%.64s has a negative count", ErrCorrupt, s.Scenario, s.Endpoint)
		case s.Intended != nil && s.Intended.Count() != s.Total.Count():
			return fmt.Errorf("%w: %.64s/%.64s has %d durations and %d from their intended start",
				ErrCorrupt, s.Scenario, s.Endpoint, s.Total.Count(), s.Intended.Count())
		case s.Total.Count() != s.Requests-s.Failed():
			return fmt.Errorf("%w: %.64s/%.64s has %d requests, %d failed and %d durations",
				ErrCorrupt, s.Scenario, s.Endpoint, s.Requests, s.Failed(), s.Total.Count())
		}
	}
	return nil
}

// maxCount is more of anything than a run can make, and so little that the counts of many runs can be added.
const maxCount = 1 << 40

// plausible refuses counts that no run has: with those of others they might not fit into an int64 any more.
func (r *Run) plausible() error {
	largest := int64(0)
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		largest = max(largest, s.Iterations, s.WarmUpIterations, s.DroppedIterations, s.MetricValuesLeftOut)
		for j := range s.Metrics {
			largest = max(largest, s.Metrics[j].Count)
		}
		for j := range s.Checks {
			largest = max(largest, s.Checks[j].Passed, s.Checks[j].Failed)
		}
	}
	for i := range r.Series {
		s := &r.Series[i]
		largest = max(largest, s.Requests, s.WarmUpRequests, s.Bytes>>10)
		for _, f := range s.Failures {
			largest = max(largest, f.Count)
		}
	}
	if largest > maxCount {
		return fmt.Errorf("%w: it counts %d of something, which no run can have made", ErrCorrupt, largest)
	}
	return nil
}

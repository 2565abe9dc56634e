package latency

import (
	"slices"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// maxEndpoints is how many endpoints of a scenario the status takes.
const maxEndpoints = 64

// Figures are the scenarios of the plan with what a run measured of them, as Judge puts them into its outcome.
func Figures(plan *Plan, run *result.Run) []v1alpha1.ScenarioResult { return figures(plan, run) }

// figures are the scenarios of the plan for the status, in its order; endpoints in the order in which
// they happen, the whole first, then any that only this installation has (a login stage of its own), and
// last the times that a user's own script told.
func figures(plan *Plan, run *result.Run) []v1alpha1.ScenarioResult {
	var results []v1alpha1.ScenarioResult
	for _, s := range plan.Scenarios {
		known := endpoints(plan.Provider, s.Name)
		rank := func(s *result.Series) int {
			switch i := slices.IndexFunc(known, func(e endpoint) bool { return e.name == s.Endpoint }); {
			case s.Own:
				return len(known) + 1
			case i >= 0:
				return i
			}
			return len(known)
		}
		var series []*result.Series
		for i := range run.Series {
			if run.Series[i].Scenario == string(s.Name) {
				series = append(series, &run.Series[i])
			}
		}
		slices.SortStableFunc(series, func(a, b *result.Series) int { return rank(a) - rank(b) })
		r := v1alpha1.ScenarioResult{Name: s.Name}
		for _, one := range series[:min(len(series), maxEndpoints)] {
			r.Endpoints = append(r.Endpoints, endpointResult(one))
		}
		told := iterations(run, s.Name)
		r.Metrics, r.MetricValuesLeftOut = scriptMetrics(told.Metrics), told.MetricValuesLeftOut
		if s.Name == v1alpha1.ScenarioScript {
			r.ScriptDigest = run.ScriptDigest
		}
		if len(s.RateStepsPerMinute) > 0 {
			r.SustainedPerMinute, r.SustainedLimit = sustained(plan, s, run)
		}
		results = append(results, r)
	}
	return results
}

func endpointResult(s *result.Series) v1alpha1.EndpointResult {
	r := v1alpha1.EndpointResult{
		Name: s.Endpoint, Requests: s.Requests, Failed: s.Failed(),
		P50Micros: s.Total.PerMille(500), P90Micros: s.Total.PerMille(900), P95Micros: s.Total.PerMille(950),
		P99Micros: s.Total.PerMille(990), P999Micros: s.Total.PerMille(999), MaxMicros: s.Total.Max(),
		Unsupported: result.Unsupported(s.Total.Count()), BytesPerSecond: s.BytesPerSecond(),
	}
	if span := s.LastMicros - s.FirstMicros; span > 0 {
		r.RequestsPerSecondMilli = s.Requests * 1_000_000_000 / span
	}
	if s.Intended.Count() > 0 {
		r.IntendedP95Micros, r.IntendedP99Micros = s.Intended.PerMille(950), s.Intended.PerMille(990)
	}
	if s.OfRequests() {
		r.Phases = &v1alpha1.Phases{
			DNSMicros: s.DNS.PerMille(500), ConnectMicros: s.Connect.PerMille(500), TLSMicros: s.TLS.PerMille(500),
			WaitMicros: s.Wait.PerMille(500), ReceiveMicros: s.Receive.PerMille(500),
		}
	}
	return r
}

// scriptMetrics are the metrics of a user's own script, for the status.
func scriptMetrics(metrics []result.Metric) []v1alpha1.ScriptMetric {
	var list []v1alpha1.ScriptMetric
	for _, m := range metrics[:min(len(metrics), result.MaxMetrics)] {
		r := v1alpha1.ScriptMetric{Name: m.Name, Type: v1alpha1.ScriptMetricType(m.Type), Count: m.Count, LeftOut: m.LeftOut,
			SumMilli: m.SumMilli, TrueCount: m.True, MinMilli: m.MinMilli, MaxMilli: m.MaxMilli}
		if h := m.Values; h.Count() > 0 {
			r.P50Milli, r.P90Milli, r.P95Milli = h.PerMille(500), h.PerMille(900), h.PerMille(950)
			r.P99Milli, r.P999Milli = h.PerMille(990), h.PerMille(999)
			r.MinMilli, r.MaxMilli, r.Unsupported = h.Min(), h.Max(), result.Unsupported(h.Count())
		}
		list = append(list, r)
	}
	return list
}

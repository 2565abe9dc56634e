package result

import (
	"slices"
	"time"
)

// maxFailureKinds bounds the list of ways in which an endpoint failed.
const maxFailureKinds = 16

// Merge adds up the runs of repeats: counts and histograms as if one run had measured it all. The
// span that throughput is counted over is the sum of the spans. StartedAt is the earliest, EndedAt
// the latest; the generator's figures are those of the run that was busiest for its length, since a
// guard over the merged run must not hide one bad repeat. Merge of nothing is nil. The runs are left
// as they were.
func Merge(runs ...*Run) *Run {
	return merge(runs, func(to, from *Series, _ int64) {
		to.LastMicros += from.LastMicros - from.FirstMicros
	})
}

// MergePods adds up the runs of Pods that worked at the same time on one plan, each on its execution
// segment. It is Merge but for the span: from the first request of any Pod to the last one of any.
func MergePods(runs ...*Run) *Run {
	merged := merge(runs, func(to, from *Series, shift int64) {
		if from.Requests == 0 {
			return
		}
		if first := from.FirstMicros + shift; to.Requests == from.Requests || first < to.FirstMicros {
			to.FirstMicros = first
		}
		to.LastMicros = max(to.LastMicros, from.LastMicros+shift)
	})
	for _, run := range runs {
		if run != nil {
			merged.PodsApartMicros = max(merged.PodsApartMicros, run.StartedAt.Sub(merged.StartedAt).Microseconds())
		}
	}
	return merged
}

// span brings the span of a series, that began shift microseconds after the merged run, into that of
// the merged one; its counts were added before.
type span func(to, from *Series, shift int64)

func merge(runs []*Run, span span) *Run {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r *Run) bool { return r == nil })
	if len(runs) == 0 {
		return nil
	}
	runs = Apart(runs)
	first := runs[0]
	merged := &Run{Format: Format, PlanID: first.PlanID, ScriptDigest: first.ScriptDigest, StartedAt: first.StartedAt, EndedAt: first.EndedAt, Generator: first.Generator}
	for _, run := range runs {
		if run.StartedAt.Before(merged.StartedAt) {
			merged.StartedAt = run.StartedAt
		}
	}
	drift := time.Duration(0)
	for _, run := range runs {
		drift = max(drift, run.ClockDrift())
		merged.PodsApartMicros = max(merged.PodsApartMicros, run.PodsApartMicros)
		merged.add(run, span)
	}
	merged.ClockDriftMicros = new(drift.Microseconds())
	merged.Sort()
	return merged
}

func (r *Run) add(other *Run, span span) {
	if other.EndedAt.After(r.EndedAt) {
		r.EndedAt = other.EndedAt
	}
	for _, what := range other.Trimmed {
		if !slices.Contains(r.Trimmed, what) {
			r.Trimmed = append(r.Trimmed, what)
		}
	}
	if r.StopError == "" {
		r.StopError = other.StopError
	}
	throttle := worse(r.Generator.Throttle, other.Generator.Throttle)
	if other.Generator.load() > r.Generator.load() {
		r.Generator = other.Generator
	}
	r.Generator.Throttle = throttle
	for i := range other.Scenarios {
		r.addScenario(&other.Scenarios[i])
	}
	shift := other.StartedAt.Sub(r.StartedAt).Microseconds()
	for i := range other.Series {
		r.addSeries(&other.Series[i], shift, span)
	}
}

// worse is the one of two that was held back longer; one that could not be read is worse than any.
func worse(a, b *Throttle) *Throttle {
	if a == nil || b == nil {
		return nil
	}
	if b.ThrottledMicros > a.ThrottledMicros {
		return b
	}
	return a
}

// load is the CPU that was used, in thousandths of the run's wall time.
func (g *Generator) load() int64 {
	if g.WallMicros <= 0 {
		return 0
	}
	return g.CPUMicros * 1000 / g.WallMicros
}

func (r *Run) addScenario(other *Scenario) {
	i := slices.IndexFunc(r.Scenarios, func(s Scenario) bool { return s.Name == other.Name })
	if i < 0 {
		r.Scenarios = append(r.Scenarios, Scenario{Name: other.Name})
		i = len(r.Scenarios) - 1
	}
	s := &r.Scenarios[i]
	s.Iterations += other.Iterations
	s.WarmUpIterations += other.WarmUpIterations
	s.DroppedIterations += other.DroppedIterations
	for _, check := range other.Checks {
		j := slices.IndexFunc(s.Checks, func(c Check) bool { return c.Name == check.Name })
		if j < 0 {
			s.Checks = append(s.Checks, check)
			continue
		}
		s.Checks[j].Passed += check.Passed
		s.Checks[j].Failed += check.Failed
	}
	s.addMetrics(other)
}

func (r *Run) addSeries(other *Series, shift int64, span span) {
	s := r.Find(other.Scenario, other.Endpoint)
	if s == nil {
		r.Series = append(r.Series, Series{Scenario: other.Scenario, Endpoint: other.Endpoint, Whole: other.Whole, Own: other.Own})
		s = &r.Series[len(r.Series)-1]
	}
	if s.Total.Count() == 0 && other.Total.Count() > 0 {
		// What failed each time may not have got so far as to tell (loadtests/k6, aggregate.go).
		s.Whole = other.Whole
	}
	s.Requests += other.Requests
	s.Wrong += other.Wrong
	s.Unanswered += other.Unanswered
	s.WarmUpRequests += other.WarmUpRequests
	s.WarmUpFailed += other.WarmUpFailed
	s.Bytes += other.Bytes
	span(s, other, shift)
	if other.Timeline != nil {
		if s.Timeline == nil {
			s.Timeline = NewTimeline()
		}
		s.Timeline.Merge(other.Timeline, shift)
	}
	for _, answers := range other.Statuses {
		s.AddStatus(answers.Status, answers.Count)
	}
	for _, failure := range other.Failures {
		s.AddFailure(failure.Kind, failure.Count)
	}
	for _, pair := range []struct {
		to   **Histogram
		from *Histogram
	}{
		{&s.Total, other.Total}, {&s.Intended, other.Intended}, {&s.DNS, other.DNS}, {&s.Connect, other.Connect},
		{&s.TLS, other.TLS}, {&s.Send, other.Send}, {&s.Wait, other.Wait}, {&s.Receive, other.Receive},
	} {
		if pair.from.Count() == 0 {
			continue
		}
		if *pair.to == nil {
			*pair.to = NewHistogram()
		}
		(*pair.to).Merge(pair.from)
	}
}

// maxStatuses bounds the list of statuses of an endpoint; further ones count as 0.
const maxStatuses = 16

// AddStatus counts answers of an HTTP status.
func (s *Series) AddStatus(status int, count int64) {
	i := slices.IndexFunc(s.Statuses, func(known Status) bool { return known.Status == status })
	switch {
	case i >= 0:
		s.Statuses[i].Count += count
	case len(s.Statuses) < maxStatuses-1 || status == 0:
		s.Statuses = append(s.Statuses, Status{Status: status, Count: count})
	default:
		s.AddStatus(0, count)
	}
}

// AddFailure counts failures of a kind. When there are too many kinds the rest count as "other".
func (s *Series) AddFailure(kind string, count int64) {
	i := slices.IndexFunc(s.Failures, func(f Failure) bool { return f.Kind == kind })
	switch {
	case i >= 0:
		s.Failures[i].Count += count
	case len(s.Failures) < maxFailureKinds-1 || kind == "other":
		s.Failures = append(s.Failures, Failure{Kind: kind, Count: count})
	default:
		s.AddFailure("other", count)
	}
}

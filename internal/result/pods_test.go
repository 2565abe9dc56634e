package result

import (
	"testing"
	"time"
)

// Pods that begin one after another are no clock that was set, and a clock that was set in one of them is seen.
func TestMergeOfPodsKnowsTheirClocksAndDistances(t *testing.T) {
	second := sample()
	second.StartedAt, second.EndedAt = second.StartedAt.Add(4*time.Second), second.EndedAt.Add(4*time.Second)
	set := sample()
	set.EndedAt = set.EndedAt.Add(time.Hour)
	for name, c := range map[string]struct {
		run          *Run
		drift, apart time.Duration
	}{
		"two Pods, one of them late":      {MergePods(second, sample()), 0, 4 * time.Second},
		"two Pods, one of whose was set":  {MergePods(sample(), set), time.Hour, 0},
		"repeats stand apart as they may": {Merge(sample(), second), 0, 0},
		"repeats of two Pods":             {Merge(MergePods(sample(), set), MergePods(sample(), second)), time.Hour, 4 * time.Second},
		"one run":                         {set, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if c.run.ClockDrift() != c.drift || c.run.PodsApart() != c.apart {
				t.Errorf("%s of the clocks, %s between the Pods", c.run.ClockDrift(), c.run.PodsApart())
			}
		})
	}
}

// Repeats in which every authorization failed do not make sums of those that are single requests.
func TestMergeKnowsAWholeByWhatAnswered(t *testing.T) {
	failed := &Run{Series: []Series{{Scenario: "OIDC", Endpoint: "authorization", Whole: true, Requests: 1, Wrong: 1}}}
	single := &Run{Series: []Series{{Scenario: "OIDC", Endpoint: "authorization", Requests: 1, Total: NewHistogram()}}}
	single.Series[0].Total.Record(5)
	for name, runs := range map[string][]*Run{"the failed one first": {failed, single}, "the failed one last": {single, failed}} {
		if s := Merge(runs...).Find("OIDC", "authorization"); s.Whole || s.Requests != 2 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

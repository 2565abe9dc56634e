package cli

import (
	"strings"
	"testing"
	"time"

	"authstack.dev/authstack/internal/latency"
)

func TestTheLoadModelOfFlags(t *testing.T) {
	for name, c := range map[string]struct {
		given measurement
		// rate, steps, job and patience are what it comes to.
		rate     int32
		steps    int
		job      int32
		patience time.Duration
		refusal  string
	}{
		"the closed model":           {given: measurement{scenarios: []string{"Login"}}, patience: defaultTimeout},
		"a rate":                     {given: measurement{scenarios: []string{"Login=20"}, rate: 60, connections: "New"}, rate: 60, patience: defaultTimeout},
		"rates that rise":            {given: measurement{scenarios: []string{"Login=1m"}, rateSteps: []int32{60, 120}}, steps: 2, patience: defaultTimeout},
		"a soak has the time for it": {given: measurement{scenarios: []string{"Login=1h"}, repeats: 2}, job: 3720, patience: defaultTimeout + 2*62*time.Minute},
		"the patience that was asked for is kept":  {given: measurement{scenarios: []string{"Login=1h"}, timeout: 2 * time.Hour}, job: 3720, patience: 2 * time.Hour},
		"a rate of no scenario":                    {given: measurement{rate: 60}, refusal: "belong to scenarios: name them with --scenario"},
		"one rate and rising ones":                 {given: measurement{scenarios: []string{"Login"}, rate: 60, rateSteps: []int32{60, 120}}, refusal: "write one of them"},
		"rates that fall":                          {given: measurement{scenarios: []string{"Login"}, rateSteps: []int32{120, 60}}, refusal: "each higher than the one before"},
		"the same rate twice":                      {given: measurement{scenarios: []string{"Login"}, rateSteps: []int32{60, 60}}, refusal: "each higher than the one before"},
		"steps of iterations":                      {given: measurement{scenarios: []string{"Login=200"}, rateSteps: []int32{60, 120}}, refusal: "write how long in place of a number, for example Login=30s"},
		"a slow rate has the time for it":          {given: measurement{scenarios: []string{"Login"}, rate: 5}, rate: 5, job: 1560, patience: defaultTimeout + 26*time.Minute},
		"many short repeats have it too":           {given: measurement{scenarios: []string{"Login=13m"}, repeats: 3}, patience: defaultTimeout + 45*time.Minute},
		"one step":                                 {given: measurement{scenarios: []string{"Login"}, rateSteps: []int32{120}}, refusal: "write 2 to 16 rates"},
		"a rate below nothing":                     {given: measurement{scenarios: []string{"Login"}, rate: -1}, refusal: "write rates of 1 to 600000 a minute"},
		"connections that there are not":           {given: measurement{scenarios: []string{"Login"}, connections: "Cold"}, refusal: "write Reuse or New"},
		"more repeats than a LatencyTest can have": {given: measurement{scenarios: []string{"Login"}, repeats: 21}, refusal: "write at most 20"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.given.timeout == 0 {
				c.given.timeout = defaultTimeout
			}
			test, err := c.given.object("identity", "sso")
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("it is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			s, job := test.Spec.Scenarios[0], int32(0)
			if test.Spec.TimeoutSeconds != nil {
				job = *test.Spec.TimeoutSeconds
			}
			if (s.RatePerMinute != nil) != (c.rate > 0) || len(s.RateStepsPerMinute) != c.steps || string(s.Connections) != c.given.connections || job != c.job || c.given.timeout != c.patience {
				t.Errorf("%+v, a Job of %d s, patience %s", s, job, c.given.timeout)
			}
			if _, err := latency.Resolve(test, (&localTarget{provider: "authentik"}).stack(latency.Target{Provider: "authentik"})); err != nil {
				t.Error(err)
			}
		})
	}
}

package latency

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// goodRun is a run of the default Login plan whose logins take 500 to 618 ms.
func goodRun() *result.Run {
	start := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	run := &result.Run{PlanID: "demo-1-1", StartedAt: start, EndedAt: start.Add(time.Minute),
		Scenarios: []result.Scenario{{Name: "Login", Iterations: 60, WarmUpIterations: 12}},
		Generator: result.Generator{GOMAXPROCS: 2, WallMicros: 60_000_000, CPUMicros: 3_000_000, Throttle: &result.Throttle{Periods: 600}}}
	for _, endpoint := range []string{"login", "password-post"} {
		s := result.Series{Scenario: "Login", Endpoint: endpoint, Whole: endpoint == "login", Requests: 60, Total: result.NewHistogram(), LastMicros: 60_000_000}
		for i := range int64(60) {
			s.Total.Record(500_000 + i*2000)
		}
		run.Series = append(run.Series, s)
	}
	return run
}

func goodEvidence() Evidence {
	pods := func() []PodState {
		return []PodState{{Name: "server-a", UID: "a", Image: "x@sha256:1", Ready: true}, {Name: "server-b", UID: "b", Image: "x@sha256:1", Ready: true}}
	}
	return Evidence{Jobs: []JobOutcome{{Name: "demo-1-1", ExitCode: ptr(int32(0))}}, PodsBefore: pods(), PodsAfter: pods(), NodesBefore: []NodeState{{Name: "node-1"}}, GenerationBefore: 3, GenerationAfter: 3}
}

// fail turns n of the requests of each series into failures of a kind.
func fail(run *result.Run, n int64, kind string) {
	for i := range run.Series {
		s := &run.Series[i]
		kept := result.NewHistogram()
		for j := range s.Requests - n {
			kept.Record(500_000 + j*2000)
		}
		s.Total = kept
		if strings.HasPrefix(kind, "no answer") {
			s.Unanswered = n
		} else {
			s.Wrong = n
		}
		s.AddFailure(kind, n)
	}
}

func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		// change what is good; run may be set to nil.
		change func(plan *Plan, run **result.Run, ev *Evidence)
		below  time.Duration
		want   v1alpha1.Verdict
		says   string
		// violated is the guard that does not hold.
		violated string
	}{
		"all is well and the objective is met": {
			below: 800 * time.Millisecond, want: "Passed", says: "Login p95 is 612ms, below 800ms.",
		},
		"all is well and there is no objective": {
			want: "Passed", says: "there is no objective to judge. Login p95 is 612ms over 60.",
		},
		"the objective is missed": {
			below: 600 * time.Millisecond, want: "Failed", says: "Login p95 is 612ms, the objective is below 600ms.",
		},
		"one request in sixty failed": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) { fail(*run, 1, "status 502") },
			below:  800 * time.Millisecond, want: "Failed", says: "1 of 60 Login/login failed, status 502 ×1", violated: GuardFailures,
		},
		"every request is answered wrongly and fast": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) { fail(*run, 60, "status 500") },
			below:  800 * time.Millisecond, want: "Failed", says: "60 of 60", violated: GuardFailures,
		},
		"no request is answered": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) { fail(*run, 60, "no answer (connection refused)") },
			below:  800 * time.Millisecond, want: "Error", says: "cannot be reached: 60 of 60 measured iterations of Login got no answer (no answer (connection refused)).",
		},
		"k6 gave up on a target that is not there": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) {
				fail(*run, 10, "no answer (connection refused)")
				ev.Jobs[0].ExitCode = ptr(int32(108))
			},
			want: "Error", says: "cannot be reached",
		},
		"the script threw in an iteration": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) { fail(*run, 1, "script error") },
			want:   "Error", says: "script of Login broke off",
		},
		"one failure in a thousand is tolerated": {
			change: func(plan *Plan, run **result.Run, _ *Evidence) {
				plan.Scenarios[0].Iterations = ptr(int32(1000))
				(*run).Scenarios[0].Iterations = 1000
				for i := range (*run).Series {
					(*run).Series[i].Requests = 1000
				}
				fail(*run, 1, "status 502")
			},
			below: 10 * time.Second, want: "Passed", says: "below 10s",
		},
		"too few samples prove nothing, however fast": {
			change: func(plan *Plan, run **result.Run, _ *Evidence) {
				plan.Scenarios[0].Iterations = ptr(int32(15))
				(*run).Scenarios[0].Iterations = 15
				for i := range (*run).Series {
					s := &(*run).Series[i]
					s.Requests, s.Total = 15, result.NewHistogram()
					for range 15 {
						s.Total.Record(1000)
					}
				}
			},
			below: 800 * time.Millisecond, want: "Inconclusive", says: "Login p95 has 15 of at least 59; iterations: 59 in spec.scenarios would do", violated: GuardSamples,
		},
		"too few samples and no objective pass, and the figure says so": {
			change: func(plan *Plan, run **result.Run, _ *Evidence) {
				plan.Scenarios[0].Iterations = ptr(int32(15))
				(*run).Scenarios[0].Iterations = 15
				for i := range (*run).Series {
					s := &(*run).Series[i]
					s.Requests, s.Total = 15, result.NewHistogram()
					for range 15 {
						s.Total.Record(1000)
					}
				}
			},
			want: "Passed", says: "Login p95 is 1.00ms over 15, too few for a p95, which needs 59.",
		},
		"a result without data does not pass": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) { (*run).Series, (*run).Scenarios = nil, nil },
			below:  800 * time.Millisecond, want: "Inconclusive", says: "Login has 0 of at least 10", violated: GuardSamples,
		},
		"iterations were dropped": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) {
				(*run).Scenarios[0].Iterations, (*run).Scenarios[0].DroppedIterations = 55, 5
			},
			below: 800 * time.Millisecond, want: "Inconclusive", says: "Login ran 55 of 60 iterations", violated: GuardDropped,
		},
		"an iteration was cut off by the end": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) { (*run).Scenarios[0].Iterations = 59 },
			below:  800 * time.Millisecond, want: "Inconclusive", says: "59 of 60", violated: GuardDropped,
		},
		"the warm-up is missing": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) { (*run).Scenarios[0].WarmUpIterations = 2 },
			below:  800 * time.Millisecond, want: "Inconclusive", says: "Login ran 2 of 12", violated: GuardWarmUp,
		},
		"the generator was throttled": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) {
				(*run).Generator.Throttle = &result.Throttle{Periods: 600, Throttled: 100, ThrottledMicros: 700_000}
			},
			below: 800 * time.Millisecond, want: "Inconclusive", says: "held back for 700ms of 1m0s in 100 of 600 periods", violated: GuardThrottled,
		},
		"the generator has a limit and nobody knows whether it was throttled": {
			change: func(plan *Plan, run **result.Run, _ *Evidence) {
				plan.CPULimited, (*run).Generator.Throttle = true, nil
			},
			below: 800 * time.Millisecond, want: "Inconclusive", says: "remove the limit", violated: GuardThrottled,
		},
		"without a limit nothing throttles, even where it cannot be read": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) { (*run).Generator.Throttle = nil },
			below:  800 * time.Millisecond, want: "Passed", says: "below 800ms",
		},
		"the generator was short of CPU": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) { (*run).Generator.CPUMicros = 100_000_000 },
			below:  800 * time.Millisecond, want: "Inconclusive", says: "83 % of 2 cores used", violated: GuardCPU,
		},
		"the generator's CPU is not known": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) { (*run).Generator.CPUMicros = 0 },
			below:  800 * time.Millisecond, want: "Inconclusive", says: "generator-cpu: not known", violated: GuardCPU,
		},
		"the clock was set": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) { (*run).EndedAt = (*run).EndedAt.Add(-time.Hour) },
			below:  800 * time.Millisecond, want: "Inconclusive", says: "differ by 1h0m0s", violated: GuardClock,
		},
		"a Pod restarted": {
			change: func(_ *Plan, _ **result.Run, ev *Evidence) { ev.PodsAfter[1].RestartCount = 2 },
			below:  800 * time.Millisecond, want: "Inconclusive", says: "server-b restarted 2 times", violated: GuardPodsUnchanged,
		},
		"a Pod was replaced": {
			change: func(_ *Plan, _ **result.Run, ev *Evidence) {
				ev.PodsAfter[1].UID, ev.PodsAfter[1].Name = "c", "server-c"
			},
			below: 800 * time.Millisecond, want: "Inconclusive", says: "server-b is gone; server-c is new", violated: GuardPodsUnchanged,
		},
		"a Pod changed its image": {
			change: func(_ *Plan, _ **result.Run, ev *Evidence) { ev.PodsAfter[0].Image = "x@sha256:2" },
			below:  800 * time.Millisecond, want: "Inconclusive", says: "server-a has another image", violated: GuardPodsUnchanged,
		},
		"a Pod was not ready at the end": {
			change: func(_ *Plan, _ **result.Run, ev *Evidence) { ev.PodsAfter[0].Ready = false },
			below:  800 * time.Millisecond, want: "Inconclusive", says: "server-a was not ready after the run", violated: GuardPodsReady,
		},
		"a Pod was away for a while and came back": {
			change: func(_ *Plan, _ **result.Run, ev *Evidence) {
				ev.PodsBefore[0].ReadySince, ev.PodsAfter[0].ReadySince = time.Unix(1000, 0), time.Unix(2000, 0)
			},
			below: 800 * time.Millisecond, want: "Inconclusive", says: "server-a was not ready for a while during the run", violated: GuardPodsReady,
		},
		"nobody looked at the Pods": {
			change: func(_ *Plan, _ **result.Run, ev *Evidence) { ev.PodsBefore, ev.PodsAfter = nil, nil },
			below:  800 * time.Millisecond, want: "Inconclusive", says: "no Pods", violated: GuardPodsReady,
		},
		"the stack was changed": {
			change: func(_ *Plan, _ **result.Run, ev *Evidence) { ev.GenerationAfter = 4 },
			below:  800 * time.Millisecond, want: "Inconclusive", says: "from generation 3 to 4", violated: GuardStackUnchanged,
		},
		"doubt comes before failure: a restart explains the errors": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) {
				fail(*run, 30, "status 502")
				ev.PodsAfter[0].RestartCount = 1
			},
			below: 800 * time.Millisecond, want: "Inconclusive", says: "restarted", violated: GuardFailures,
		},
		"doubt comes before a missed objective": {
			change: func(_ *Plan, _ **result.Run, ev *Evidence) { ev.PodsAfter[0].RestartCount = 1 },
			below:  time.Millisecond, want: "Inconclusive", says: "restarted", violated: GuardPodsUnchanged,
		},
		"the log has no result": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) { *run = nil; ev.Jobs[0].LogError = result.ErrNoResult },
			want:   "Error", says: "no result in the log",
		},
		"nobody says why there is no result": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) { *run = nil },
			want:   "Error", says: "no result in the log",
		},
		"the result is cut": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) {
				*run, ev.Jobs[0].LogError = nil, fmt.Errorf("x: %w", result.ErrTruncated)
			},
			want: "Error", says: "missing in the log",
		},
		"the result is corrupt": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) { *run, ev.Jobs[0].LogError = nil, result.ErrCorrupt },
			want:   "Error", says: "checksum",
		},
		"the result is of another version": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) {
				*run, ev.Jobs[0].LogError = nil, result.ErrUnsupportedVersion
			},
			want: "Error", says: "another version",
		},
		"the log cannot be read": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) {
				*run, ev.Jobs[0].LogError = nil, errors.New("connection refused")
			},
			want: "Error", says: "connection refused",
		},
		"the result belongs to another Job": {
			change: func(_ *Plan, run **result.Run, _ *Evidence) { (*run).PlanID = "demo-9-1" },
			want:   "Error", says: `holds the result of "demo-9-1"`,
		},
		"the image cannot be pulled": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) {
				*run, ev.Jobs[0].ExitCode, ev.Jobs[0].PodReason = nil, nil, "ImagePullBackOff"
			},
			want: "Error", says: "image of k6 could not be had",
		},
		"k6 ran out of memory": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) {
				*run, ev.Jobs[0].ExitCode, ev.Jobs[0].PodReason = nil, ptr(int32(137)), "OOMKilled"
			},
			want: "Error", says: "memory",
		},
		"the Pod of k6 was deleted": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) {
				*run, ev.Jobs[0].ExitCode, ev.Jobs[0].PodReason = nil, ptr(int32(137)), PodDeleted
			},
			want: "Error", says: "deleted while it ran; run the test again",
		},
		"k6 was evicted": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) {
				*run, ev.Jobs[0].ExitCode, ev.Jobs[0].PodReason = nil, nil, "Evicted"
			},
			want: "Error", says: "taken off its node (Evicted); run",
		},
		"k6 was evicted for what it wrote itself": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) {
				*run, ev.Jobs[0].ExitCode, ev.Jobs[0].PodReason = nil, nil, "Evicted"
				ev.Jobs[0].PodMessage = "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. "
			},
			want: "Error", says: "(Evicted: Pod ephemeral local storage usage exceeds the total limit of containers 2Mi); raise ephemeral-storage in spec.generator.resources.",
		},
		"no node takes the Pod": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) {
				*run, ev.Jobs[0].ExitCode, ev.Jobs[0].PodReason = nil, nil, "Unschedulable"
			},
			want: "Error", says: "No node",
		},
		"the Job ran out of time": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) {
				*run, ev.Jobs[0].ExitCode, ev.Jobs[0].DeadlineExceeded = nil, nil, true
			},
			want: "Error", says: "spec.timeoutSeconds",
		},
		"the Pod is gone": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) { *run, ev.Jobs[0].ExitCode = nil, nil },
			want:   "Error", says: "is gone",
		},
		"a script has a syntax error": {
			change: func(_ *Plan, run **result.Run, ev *Evidence) {
				*run, ev.Jobs[0].ExitCode, ev.Jobs[0].PodReason = nil, ptr(int32(107)), "Error"
			},
			want: "Error", says: "script of k6 is broken",
		},
		"k6 was stopped from outside, though it wrote a result": {
			change: func(_ *Plan, _ **result.Run, ev *Evidence) { ev.Jobs[0].ExitCode = ptr(int32(105)) },
			want:   "Error", says: "stopped from outside",
		},
		"k6 ended in a way that nobody knows": {
			change: func(_ *Plan, _ **result.Run, ev *Evidence) { ev.Jobs[0].ExitCode = ptr(int32(42)) },
			want:   "Error", says: "exit code 42",
		},
		"a repeat was not run": {
			change: func(plan *Plan, _ **result.Run, _ *Evidence) { plan.Repeats = 2 },
			want:   "Error", says: "Repeat 2 of 2 was not run.",
		},
		"a node was short of memory after the repeat": {
			change: func(_ *Plan, _ **result.Run, ev *Evidence) {
				ev.Jobs[0].Nodes = []NodeState{{Name: "node-1", Pressure: []string{"MemoryPressure", "DiskPressure"}}, {Name: "node-2", Unknown: true}}
			},
			want: "Inconclusive", says: "node node-1 had MemoryPressure and DiskPressure after repeat 1", violated: GuardNodePressure,
		},
		"a node was short of process ids before the run": {
			change: func(_ *Plan, _ **result.Run, ev *Evidence) { ev.NodesBefore[0].Pressure = []string{"PIDPressure"} },
			want:   "Inconclusive", says: "node node-1 had PIDPressure before the run", violated: GuardNodePressure,
		},
		"nodes that the operator may not read void nothing": {
			below:  800 * time.Millisecond,
			change: func(_ *Plan, _ **result.Run, ev *Evidence) { ev.NodesBefore[0].Unknown = true },
			want:   "Passed", says: "below 800ms",
		},
		"nothing is there at all": {
			change: func(plan *Plan, run **result.Run, ev *Evidence) { plan.Repeats = 0; *run = nil; *ev = Evidence{} },
			want:   "Error", says: "no result",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: v1alpha1.ScenarioLogin, Iterations: ptr(int32(60))}}}
			if test.below > 0 {
				spec.Objectives = []v1alpha1.Objective{objective("Login", "", 95, test.below)}
			}
			plan, err := Resolve(&v1alpha1.LatencyTest{Spec: spec}, authentik())
			if err != nil {
				t.Fatal(err)
			}
			run, ev := goodRun(), goodEvidence()
			if test.change != nil {
				test.change(plan, &run, &ev)
			}
			out := Judge(plan, []*result.Run{run}, ev)
			if out.Verdict != test.want || out.Reason != string(test.want) || !strings.Contains(out.Message, test.says) {
				t.Errorf("%s: %s\nwant %s: …%s…", out.Verdict, out.Message, test.want, test.says)
			}
			if test.violated != "" && guardNamed(out.Guards, test.violated).OK {
				t.Errorf("the guard %s holds: %+v", test.violated, out.Guards)
			}
			if test.want == v1alpha1.VerdictPassed {
				for _, g := range out.Guards {
					if !g.OK || g.Detail == "" {
						t.Errorf("guard: %+v", g)
					}
				}
			}
			if !strings.HasSuffix(out.Message, ".") {
				t.Errorf("%q is no sentence", out.Message)
			}
		})
	}
}

func TestRepeatsAreMergedAndEachIsLookedAt(t *testing.T) {
	plan, err := Resolve(&v1alpha1.LatencyTest{Spec: v1alpha1.LatencyTestSpec{Repeats: ptr(int32(2)), Objectives: []v1alpha1.Objective{objective("Login", "", 95, time.Second)}}}, authentik())
	if err != nil {
		t.Fatal(err)
	}
	first, second, ev := goodRun(), goodRun(), goodEvidence()
	second.PlanID = "demo-1-2"
	ev.Jobs = append(ev.Jobs, JobOutcome{Name: "demo-1-2", ExitCode: ptr(int32(0))})
	out := Judge(plan, []*result.Run{first, second}, ev)
	if out.Verdict != v1alpha1.VerdictPassed || out.Merged.Find("Login", "login").Requests != 120 || out.Scenarios[0].Endpoints[0].Requests != 120 {
		t.Errorf("%s: %s", out.Verdict, out.Message)
	}
	second.Generator.Throttle.ThrottledMicros = 1_000_000
	if out = Judge(plan, []*result.Run{first, second}, ev); out.Verdict != v1alpha1.VerdictInconclusive {
		t.Errorf("a throttled repeat was outweighed: %s", out.Message)
	}
}

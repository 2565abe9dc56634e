package comparison

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/schedule"
)

const (
	// attempts that a slot has: a guard may be violated, a Pod evicted.
	attempts = 2
	// readyPatience is how long a variant may take to become Ready, and stalledPatience how long it may
	// say that only a person can help: another variant's objects, or a class, may come a little later.
	readyPatience   = 30 * time.Minute
	stalledPatience = 2 * time.Minute
	// waitPatience is how much longer than its own timeout a measurement may take: waiting for others
	// on the cluster, making users, pulling the image of k6.
	waitPatience = 30 * time.Minute
	// probePatience is how long the storage of a variant may take to be probed; then it is measured without.
	probePatience = 20 * time.Minute
	// probeLook is how often it is looked whether it has been.
	probeLook = 30 * time.Second
)

// Slot is one measurement: a variant in a round.
type Slot struct {
	// Round from 1; the warm-up rounds count backwards from 0.
	Round int32
	// Variant is its place in the plan.
	Variant int
}

// WarmUp is whether the slot is left out of the figures.
func (s Slot) WarmUp() bool { return s.Round < 1 }

// Name of the LatencyTest.
func (s Slot) Name() string {
	if s.WarmUp() {
		return fmt.Sprintf("warm-up-%d", 1-s.Round)
	}
	return fmt.Sprintf("round-%d", s.Round)
}

// Slots in the order in which they are measured: A B, then B A, then A B again.
func (p *Plan) Slots() []Slot {
	var slots []Slot
	n := len(p.Variants)
	for round := 1 - p.WarmUpRounds; round <= p.Rounds; round++ {
		for i := range n {
			if round%2 == 0 {
				i = n - 1 - i
			}
			slots = append(slots, Slot{Round: round, Variant: i})
		}
	}
	return slots
}

// Observed is what there is of a variant.
type Observed struct {
	// Stack as it is; nil where it was not made yet.
	Stack *v1alpha1.AuthStack
	// Tests in its namespace.
	Tests []v1alpha1.LatencyTest
}

// Test that measured a slot, or nil.
func (o *Observed) Test(slot Slot) *v1alpha1.LatencyTest {
	for i := range o.Tests {
		if o.Tests[i].Name == slot.Name() {
			return &o.Tests[i]
		}
	}
	return nil
}

// Action is what comes next.
type Action int

// The actions.
const (
	// Wait for something that is under way.
	Wait Action = iota
	// Make the stack of each variant that has none.
	Make
	// Measure makes the LatencyTest of the slot.
	Measure
	// Again has the LatencyTest of the slot run once more.
	Again
	// Finish: everything is measured.
	Finish
	// Fail: a variant cannot be made or measured.
	Fail
)

// Step is what comes next, and how far the comparison is.
type Step struct {
	Action Action
	Slot   Slot
	// Message says what is waited for, or why it failed.
	Message string
	// Progress in a few words.
	Progress string
	// After is when to look again, where that is known; nothing else would tell.
	After time.Duration
}

// Next is what comes next. It depends on nothing but what there is, so that an operator that starts in
// the middle goes on where the last one was.
//
// All variants are up at once, since interleaving is what makes them comparable: taking one down and up
// again would begin each of its measurements cold. Only one is measured at a time. The others idle,
// which costs little: an idle authentik with its worker makes 0.07 WAL syncs and 0.6 transactions a
// second (facts: authentik-measured 7). Its worker is busy after logins; the pause after each
// measurement is for that.
func (p *Plan) Next(observed []Observed, now time.Time) Step {
	begun := slices.ContainsFunc(observed, func(o Observed) bool { return len(o.Tests) > 0 })
	for i := range observed {
		switch {
		case observed[i].Stack != nil:
		case begun:
			return Step{Action: Fail, Message: fmt.Sprintf("the stack of variant %s was deleted by somebody during the comparison", p.Variants[i].Name)}
		default:
			return Step{Action: Make, Progress: "making the variants"}
		}
	}
	slots := p.Slots()
	var last time.Time
	for n, slot := range slots {
		step := Step{Slot: slot, Progress: p.progress(slot)}
		test := observed[slot.Variant].Test(slot)
		switch {
		case test == nil:
			if n == 0 {
				step.Progress = "making the variants"
			}
			return p.begin(step, observed, last, now)
		case !test.DeletionTimestamp.IsZero():
			step.Message = fmt.Sprintf("LatencyTest %s is being deleted by somebody", test.Name)
			return step
		case !schedule.Finished(test):
			return p.running(step, test, now)
		}
		if again := p.judge(step, test); again.Action != Wait {
			return again
		}
		if done := test.Status.CompletedAt.Time; done.After(last) {
			last = done
		}
	}
	return Step{Action: Finish, Progress: fmt.Sprintf("%d rounds measured", p.Rounds)}
}

func (p *Plan) progress(slot Slot) string {
	name := p.Variants[slot.Variant].Name
	if slot.WarmUp() {
		return "warm-up, " + name
	}
	return fmt.Sprintf("round %d of %d, %s", slot.Round, p.Rounds, name)
}

// begin a slot, once every variant is Ready and the last measurement has settled.
func (p *Plan) begin(step Step, observed []Observed, last, now time.Time) Step {
	for i := range observed {
		if waiting := p.unready(step, p.Variants[i].Name, observed[i].Stack, now); waiting != nil {
			return *waiting
		}
	}
	if last.IsZero() {
		for i := range observed {
			if left := p.unprobed(observed[i].Stack, now); left > 0 {
				step.Message, step.After = fmt.Sprintf("the storage of variant %s is probed first", p.Variants[i].Name), min(left, probeLook)
				return step
			}
		}
	}
	if rest := p.Settle - now.Sub(last); !last.IsZero() && rest > 0 {
		step.Message, step.After = "the stacks settle after the last measurement", rest
		return step
	}
	step.Action = Measure
	return step
}

// unready is what to do about a variant that is not Ready, or nil where it is.
func (p *Plan) unready(step Step, name string, st *v1alpha1.AuthStack, now time.Time) *Step {
	ready := meta.FindStatusCondition(st.Status.Conditions, v1alpha1.ConditionReady)
	since, why := st.CreationTimestamp.Time, "no status yet"
	if ready != nil {
		if ready.Status == "True" && st.Status.ObservedGeneration == st.Generation {
			return nil
		}
		why = ready.Message
		if ready.LastTransitionTime.After(since) {
			since = ready.LastTransitionTime.Time
		}
	}
	step.Message = fmt.Sprintf("variant %s is not Ready: %s", name, why)
	stalled := meta.FindStatusCondition(st.Status.Conditions, v1alpha1.ConditionStalled)
	if now.Sub(since) > readyPatience || stalled != nil && now.Sub(stalled.LastTransitionTime.Time) > stalledPatience {
		step.Action = Fail
	}
	return &step
}

// unprobed is how much longer to wait for the probe of a variant's storage, whose figures stand beside the
// latency and which would disturb a measurement; nothing where there is none to wait for.
func (p *Plan) unprobed(st *v1alpha1.AuthStack, now time.Time) time.Duration {
	stored := st.Status.Storage
	if !p.Probes || stored == nil || stored.StorageClassName == "" {
		return 0
	}
	if storage := st.Spec.Postgres.Storage; storage != nil && storage.Probe != nil && storage.Probe.Mode != "" && storage.Probe.Mode != v1alpha1.StorageProbeAutomatic {
		return 0
	}
	if probe := stored.Probe; probe != nil && (probe.Running == "" || probe.CompletedRun == probe.Run) && (probe.CompletedAt != nil || probe.Problem != "") {
		return 0
	}
	since := st.CreationTimestamp.Time
	if ready := meta.FindStatusCondition(st.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.LastTransitionTime.After(since) {
		since = ready.LastTransitionTime.Time
	}
	return probePatience - now.Sub(since)
}

func (p *Plan) running(step Step, test *v1alpha1.LatencyTest, now time.Time) Step {
	step.Message = "LatencyTest " + test.Name + " is under way"
	if ready := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		step.Message = ready.Message
	}
	limit := time.Duration(max(test.Status.Run, 1)) * (p.Timeout + waitPatience)
	if now.Sub(test.CreationTimestamp.Time) > limit {
		step.Action = Fail
		step.Message = fmt.Sprintf("variant %s could not be measured, there is no verdict after %s: %s", p.Variants[step.Slot.Variant].Name, limit, step.Message)
	}
	return step
}

// judge says what follows from the verdict of a slot; Wait is that the next slot may come.
func (p *Plan) judge(step Step, test *v1alpha1.LatencyTest) Step {
	verdict := test.Status.Verdict
	if verdict == v1alpha1.VerdictPassed || step.Slot.WarmUp() && verdict == v1alpha1.VerdictInconclusive {
		return Step{}
	}
	if test.Status.Run < attempts {
		step.Action = Again
		return step
	}
	if verdict == v1alpha1.VerdictInconclusive {
		// This round goes without the variant.
		return Step{}
	}
	why := "no message"
	if ready := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		why = ready.Message
	}
	step.Action = Fail
	step.Message = fmt.Sprintf("variant %s could not be measured (%s: %s, twice): %s", p.Variants[step.Slot.Variant].Name, test.Name, verdict, why)
	return step
}

// Attempt is the value of the request annotation that has a test run once more.
func Attempt(test *v1alpha1.LatencyTest) string {
	return fmt.Sprintf("attempt-%d", max(test.Status.Run, 1)+1)
}

// Valid are the slots whose measurement counts.
func (p *Plan) Valid(observed []Observed) []Slot {
	var valid []Slot
	for _, slot := range p.Slots() {
		test := observed[slot.Variant].Test(slot)
		if !slot.WarmUp() && test != nil && test.Status.Verdict == v1alpha1.VerdictPassed {
			valid = append(valid, slot)
		}
	}
	return valid
}

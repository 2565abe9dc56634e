// Package schedule decides when a stack is measured: after it has become Ready, after a change, on its
// cron schedule and on request. It is pure; the same input gives the same test, name included, so that
// an operator that dies between two writes makes no second one.
package schedule

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"authstack.dev/authstack/api/v1alpha1"
)

// Annotations on a LatencyTest that the operator made.
const (
	// TriggerAnnotation says why it was made; only automatic tests have it.
	TriggerAnnotation = "authstack.dev/trigger"
	// GenerationAnnotation and ImageAnnotation are the stack's when it was made.
	GenerationAnnotation = "authstack.dev/stack-generation"
	ImageAnnotation      = "authstack.dev/stack-image"
)

// The triggers.
const (
	TriggerChange   = "change"
	TriggerSchedule = "schedule"
	TriggerRequest  = "request"
)

const (
	defaultHistory = 5
	// nameLimit is the longest name of a LatencyTest.
	nameLimit = 52
)

// Input is what a decision is made from.
type Input struct {
	// Stack with the status that will be written.
	Stack *v1alpha1.AuthStack
	// Ready is whether the stack can be measured now.
	Ready bool
	// Tests of this stack, in any order.
	Tests []v1alpha1.LatencyTest
	Now   time.Time
}

// Decision is what should happen.
type Decision struct {
	// Create is a test to make, or nil.
	Create *v1alpha1.LatencyTest
	// Delete are finished automatic tests beyond the history.
	Delete []v1alpha1.LatencyTest
	// Latency is the status of the stack's latency; nil while there is nothing to say.
	Latency *v1alpha1.LatencyStatus
	// Finished is the test that Latency tells of if it is still there.
	Finished *v1alpha1.LatencyTest
	// Handled is whether the request annotation has been acted on.
	Handled bool
	// Next is how long it is until the schedule; 0 without one.
	Next time.Duration
	// Problem is what is wrong with the schedule, in a sentence.
	Problem string
}

// Finished is whether a test has a verdict on what was last asked of it.
func Finished(test *v1alpha1.LatencyTest) bool {
	return test.Status.Verdict != "" && test.Status.CompletedAt != nil &&
		test.Annotations[v1alpha1.RequestedAtAnnotation] == test.Status.LastHandledReconcileAt
}

// Automatic is whether the operator made it.
func Automatic(test *v1alpha1.LatencyTest) bool { return test.Annotations[TriggerAnnotation] != "" }

// Decide what is measured next.
func Decide(in Input) Decision {
	d := &decider{Input: in, spec: ptr.Deref(in.Stack.Spec.Latency, v1alpha1.LatencySpec{})}
	status := v1alpha1.LatencyStatus{}
	if in.Stack.Status.Latency != nil {
		status = *in.Stack.Status.Latency.DeepCopy()
	}
	d.status = &status
	d.last()
	d.history()
	requested := in.Stack.Annotations[v1alpha1.RequestedAtAnnotation]
	pending := requested != "" && requested != in.Stack.Status.LastHandledReconcileAt
	due := d.due()
	automatic := d.spec.Mode != v1alpha1.LatencyManual
	switch {
	case pending && d.made(TriggerRequest, requested):
		// An operator that died before it could write so has acted on it.
		d.Handled = true
	case !in.Ready || status.Running != "":
	case pending:
		d.create(TriggerRequest, requested)
		d.Handled = true
	case automatic && d.changed():
		d.create(TriggerChange, d.changeKey())
	case automatic && !due.IsZero():
		d.create(TriggerSchedule, timeKey(due))
		d.scheduled(due)
	}
	if d.Create != nil {
		status.Running = d.Create.Name
	}
	if status.NextScheduledAt != nil {
		d.Next = max(status.NextScheduledAt.Sub(in.Now), time.Second)
	}
	if in.Stack.Status.Latency != nil || !equalZero(status) {
		d.Latency = &status
	}
	return d.Decision
}

type decider struct {
	Input
	Decision
	spec   v1alpha1.LatencySpec
	status *v1alpha1.LatencyStatus
}

func equalZero(s v1alpha1.LatencyStatus) bool {
	return s.TestName == "" && s.Running == "" && s.NextScheduledAt == nil && s.Verdict == ""
}

// last copies the last finished test into the status and finds the one under way.
func (d *decider) last() {
	d.status.Running = ""
	var finished, running *v1alpha1.LatencyTest
	for i := range d.Tests {
		test := &d.Tests[i]
		if !test.DeletionTimestamp.IsZero() {
			continue
		}
		if !Finished(test) {
			if running == nil || Earlier(test, running) {
				running = test
			}
			continue
		}
		if finished == nil || finished.Status.CompletedAt.Before(test.Status.CompletedAt) ||
			finished.Status.CompletedAt.Equal(test.Status.CompletedAt) && finished.Name < test.Name {
			finished = test
		}
	}
	if running != nil {
		d.status.Running = running.Name
	}
	if finished == nil || d.status.CompletedAt != nil && finished.Status.CompletedAt.Before(d.status.CompletedAt) {
		return
	}
	d.Decision.Finished = finished
	d.status.TestName = finished.Name
	d.status.TestedGeneration = generation(finished)
	d.status.Verdict = finished.Status.Verdict
	d.status.CompletedAt = finished.Status.CompletedAt.DeepCopy()
	d.status.LoginP95 = finished.Status.LoginP95
	d.status.Scenarios = finished.DeepCopy().Status.Scenarios
}

// generation of the stack that a test measured.
func generation(test *v1alpha1.LatencyTest) int64 {
	if test.Status.Subject != nil {
		return test.Status.Subject.StackGeneration
	}
	n, _ := strconv.ParseInt(test.Annotations[GenerationAnnotation], 10, 64)
	return n
}

func (d *decider) image() string {
	if idp := d.Stack.Status.IdentityProvider; idp != nil {
		return idp.Image
	}
	return ""
}

// changed is whether the stack differs from what was last measured.
func (d *decider) changed() bool {
	if d.status.TestedGeneration != d.Stack.Generation {
		return true
	}
	last := d.Decision.Finished
	return last != nil && last.Annotations[ImageAnnotation] != "" && last.Annotations[ImageAnnotation] != d.image()
}

// changeKey stands for what the stack is now.
func (d *decider) changeKey() string {
	return strconv.FormatInt(d.Stack.Generation, 10) + "/" + d.image()
}

func timeKey(due time.Time) string { return due.UTC().Format(time.RFC3339) }

// due is the time of the schedule that is to be acted on, or zero. Missed times count once.
func (d *decider) due() time.Time {
	if d.spec.Schedule == "" || d.spec.Mode == v1alpha1.LatencyManual {
		d.status.NextScheduledAt = nil
		return time.Time{}
	}
	schedule, err := cron.ParseStandard("CRON_TZ=UTC " + d.spec.Schedule)
	if err != nil {
		d.Problem = fmt.Sprintf("spec.latency.schedule %q is no cron schedule: %v; write for example 0 5 * * *", d.spec.Schedule, err)
		d.status.NextScheduledAt = nil
		return time.Time{}
	}
	next := d.status.NextScheduledAt
	if next == nil || !schedule.Next(next.Add(-time.Second)).Equal(next.Time) {
		d.status.NextScheduledAt = timestamp(schedule.Next(d.Now))
		return time.Time{}
	}
	if d.Now.Before(next.Time) {
		return time.Time{}
	}
	return next.Time
}

// scheduled notes that a time of the schedule was acted on.
func (d *decider) scheduled(due time.Time) {
	schedule, err := cron.ParseStandard("CRON_TZ=UTC " + d.spec.Schedule)
	if err != nil {
		return
	}
	d.status.LastScheduledAt = timestamp(due)
	d.status.NextScheduledAt = timestamp(schedule.Next(d.Now))
}

// timestamp in UTC; the zero time of a schedule that never comes is none.
func timestamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return ptr.To(metav1.NewTime(t.UTC()))
}

// made is whether the test of a trigger exists.
func (d *decider) made(trigger, key string) bool {
	return slices.ContainsFunc(d.Tests, func(t v1alpha1.LatencyTest) bool {
		return t.Annotations[TriggerAnnotation] == trigger && strings.HasSuffix(t.Name, "-"+hash(d.Stack, trigger, key))
	})
}

// create makes the test of one trigger, unless it was made before. Its name follows from the trigger
// and the stack alone.
func (d *decider) create(trigger, key string) {
	if d.made(trigger, key) {
		return
	}
	st := d.Stack
	name := Name(st, trigger, key)
	d.Create = &v1alpha1.LatencyTest{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "LatencyTest"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: st.Namespace, Name: name,
			Labels: map[string]string{v1alpha1.StackLabel: st.Name},
			Annotations: map[string]string{
				TriggerAnnotation: trigger, GenerationAnnotation: strconv.FormatInt(st.Generation, 10), ImageAnnotation: d.image(),
			},
		},
		Spec: v1alpha1.LatencyTestSpec{
			StackRef:  v1alpha1.StackReference{Name: st.Name},
			Scenarios: slices.Clone(d.spec.Scenarios),
		},
	}
}

// Name of an automatic test: the stack's, its generation, and a hash of why it is made.
func Name(st *v1alpha1.AuthStack, trigger, key string) string {
	suffix := fmt.Sprintf("-%d-%s", st.Generation, hash(st, trigger, key))
	return st.Name[:min(len(st.Name), nameLimit-len(suffix))] + suffix
}

func hash(st *v1alpha1.AuthStack, trigger, key string) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%s/%s/%s", st.UID, trigger, key)))
	return hex.EncodeToString(sum[:])[:6]
}

// history finds the finished automatic tests that are too many, the oldest first.
func (d *decider) history() {
	var done []v1alpha1.LatencyTest
	for i := range d.Tests {
		if Automatic(&d.Tests[i]) && Finished(&d.Tests[i]) && d.Tests[i].DeletionTimestamp.IsZero() {
			done = append(done, d.Tests[i])
		}
	}
	slices.SortFunc(done, func(a, b v1alpha1.LatencyTest) int {
		return cmp.Or(b.Status.CompletedAt.Compare(a.Status.CompletedAt.Time), cmp.Compare(b.Name, a.Name))
	})
	limit := int(ptr.Deref(d.spec.HistoryLimit, defaultHistory))
	if len(done) > limit {
		d.Delete = done[limit:]
		slices.Reverse(d.Delete)
	}
}

package schedule

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"authstack.dev/authstack/api/v1alpha1"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func stackOf(change ...func(*v1alpha1.AuthStack)) *v1alpha1.AuthStack {
	st := &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Namespace: "auth", Name: "sso", UID: "1234", Generation: 3},
		Status: v1alpha1.AuthStackStatus{IdentityProvider: &v1alpha1.IdentityProviderStatus{Image: "image:1"}}}
	for _, f := range change {
		f(st)
	}
	return st
}

func finished(name string, at time.Time, generation int64, image string) v1alpha1.LatencyTest {
	return v1alpha1.LatencyTest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{TriggerAnnotation: TriggerChange, ImageAnnotation: image}},
		Status: v1alpha1.LatencyTestStatus{Verdict: v1alpha1.VerdictPassed, CompletedAt: &metav1.Time{Time: at}, LoginP95: "612ms",
			Subject: &v1alpha1.Subject{StackGeneration: generation}},
	}
}

func request(value string) func(*v1alpha1.AuthStack) {
	return func(st *v1alpha1.AuthStack) {
		st.Annotations = map[string]string{v1alpha1.RequestedAtAnnotation: value}
	}
}

func scheduled(spec string, next time.Time) func(*v1alpha1.AuthStack) {
	return func(st *v1alpha1.AuthStack) {
		st.Spec.Latency = &v1alpha1.LatencySpec{Schedule: spec}
		st.Status.Latency = &v1alpha1.LatencyStatus{TestedGeneration: 3, NextScheduledAt: &metav1.Time{Time: next}}
	}
}

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		stack   *v1alpha1.AuthStack
		waiting bool
		tests   []v1alpha1.LatencyTest
		trigger string
		handled bool
	}{
		"a stack that became Ready is measured":                    {stack: stackOf(), trigger: TriggerChange},
		"a stack that is not Ready is not":                         {stack: stackOf(), waiting: true},
		"a stack that was measured as it is, is not again":         {stack: stackOf(), tests: []v1alpha1.LatencyTest{finished("a", now, 3, "image:1")}},
		"a new generation is measured":                             {stack: stackOf(), tests: []v1alpha1.LatencyTest{finished("a", now, 2, "image:1")}, trigger: TriggerChange},
		"another image of the same generation is measured":         {stack: stackOf(), tests: []v1alpha1.LatencyTest{finished("a", now, 3, "image:0")}, trigger: TriggerChange},
		"while a test is under way no other is made":               {stack: stackOf(), tests: []v1alpha1.LatencyTest{{ObjectMeta: metav1.ObjectMeta{Name: "running"}}}},
		"a request is acted on":                                    {stack: stackOf(request("x")), trigger: TriggerRequest, handled: true},
		"a request is acted on in mode Manual too":                 {stack: stackOf(request("x"), func(st *v1alpha1.AuthStack) { st.Spec.Latency = &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual} }), trigger: TriggerRequest, handled: true},
		"a request waits for Ready":                                {stack: stackOf(request("x")), waiting: true},
		"a request that was acted on is not again":                 {stack: stackOf(request("x"), func(st *v1alpha1.AuthStack) { st.Status.LastHandledReconcileAt = "x" }), tests: []v1alpha1.LatencyTest{finished("a", now, 3, "image:1")}},
		"in mode Manual nothing happens by itself":                 {stack: stackOf(func(st *v1alpha1.AuthStack) { st.Spec.Latency = &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual} })},
		"a time of the schedule that has come is acted on":         {stack: stackOf(scheduled("0 5 * * *", now.Add(-7*time.Hour))), trigger: TriggerSchedule},
		"times that were missed count once":                        {stack: stackOf(scheduled("0 5 * * *", now.Add(-7*time.Hour-72*time.Hour))), trigger: TriggerSchedule},
		"a time of the schedule that has not come is waited for":   {stack: stackOf(scheduled("0 5 * * *", now.Add(17*time.Hour)))},
		"a changed schedule begins anew instead of catching up":    {stack: stackOf(scheduled("30 6 * * *", now.Add(-7*time.Hour)))},
		"a schedule that nobody can read is told and not acted on": {stack: stackOf(scheduled("99 99 * * *", now))},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := Decide(Input{Stack: c.stack, Ready: !c.waiting, Tests: c.tests, Now: now})
			if c.trigger == "" {
				g.Expect(d.Create).To(BeNil())
			} else {
				g.Expect(d.Create).NotTo(BeNil())
				g.Expect(d.Create.Annotations[TriggerAnnotation]).To(Equal(c.trigger))
				g.Expect(d.Latency.Running).To(Equal(d.Create.Name))
				// The same moment again, as after a death before the status was written.
				again := Decide(Input{Stack: c.stack, Ready: true, Tests: c.tests, Now: now.Add(time.Minute)})
				g.Expect(again.Create.Name).To(Equal(d.Create.Name))
				again = Decide(Input{Stack: c.stack, Ready: true, Tests: append(c.tests, *d.Create), Now: now.Add(time.Minute)})
				g.Expect(again.Create).To(BeNil())
			}
			g.Expect(d.Handled).To(Equal(c.handled))
			if next := d.Latency; next != nil && next.NextScheduledAt != nil {
				g.Expect(next.NextScheduledAt.After(now)).To(BeTrue())
				g.Expect(d.Next).To(Equal(next.NextScheduledAt.Sub(now)))
			}
			g.Expect(d.Problem != "").To(Equal(strings.Contains(name, "nobody can read")))
		})
	}
}

func TestHistory(t *testing.T) {
	g := NewWithT(t)
	st := stackOf(func(st *v1alpha1.AuthStack) { st.Spec.Latency = &v1alpha1.LatencySpec{HistoryLimit: ptr.To(int32(2))} })
	var tests []v1alpha1.LatencyTest
	for i, name := range []string{"c", "a", "d", "b"} {
		tests = append(tests, finished(name, now.Add(time.Duration(i)*time.Hour), 3, "image:1"))
	}
	mine := finished("mine", now.Add(-100*time.Hour), 3, "image:1")
	mine.Annotations = nil
	d := Decide(Input{Stack: st, Ready: true, Tests: append(tests, mine), Now: now})
	g.Expect(d.Delete).To(HaveLen(2))
	g.Expect(d.Delete[0].Name).To(Equal("c"), "the oldest goes first, and what a person made stays")
	g.Expect(d.Latency.TestName).To(Equal("b"))
	g.Expect(d.Latency.LoginP95).To(Equal("612ms"))
}

func TestName(t *testing.T) {
	g := NewWithT(t)
	long := stackOf(func(st *v1alpha1.AuthStack) {
		st.Name, st.Generation = strings.Repeat("s", 40), 123456
	})
	name := Name(long, TriggerChange, "key")
	g.Expect(len(name)).To(BeNumerically("<=", nameLimit))
	g.Expect(name).NotTo(Equal(Name(long, TriggerChange, "other")))
	g.Expect(name).To(Equal(Name(long, TriggerChange, "key")))
	g.Expect(Name(stackOf(), TriggerRequest, "x")).To(MatchRegexp(`^sso-3-[0-9a-f]{6}$`))
}

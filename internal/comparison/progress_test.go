package comparison

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
)

// stage is a cluster in small: what Next asks for is done, after which it is asked again.
type stage struct {
	t        *testing.T
	plan     *Plan
	observed []Observed
	now      time.Time
}

func newStage(t *testing.T) *stage {
	t.Helper()
	plan, err := Resolve(variants("a", "", "b", relaxed), base())
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t: t, plan: plan, observed: make([]Observed, 2), now: noon}
}

func (s *stage) next() Step { return s.plan.Next(s.observed, s.now) }

func (s *stage) make() {
	for i := range s.observed {
		s.observed[i].Stack = s.plan.Variants[i].Stack.DeepCopy()
		s.observed[i].Stack.CreationTimestamp = metav1.NewTime(s.now)
	}
}

func (s *stage) ready(i int, status metav1.ConditionStatus, message string) {
	s.observed[i].Stack.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Message: message, LastTransitionTime: metav1.NewTime(s.now)}}
}

func (s *stage) begun() *stage {
	s.make()
	s.ready(0, metav1.ConditionTrue, "")
	s.ready(1, metav1.ConditionTrue, "")
	return s
}

// measure does what the step asks for, with that verdict.
func (s *stage) measure(step Step, verdict v1alpha1.Verdict) {
	s.t.Helper()
	o := &s.observed[step.Slot.Variant]
	test := o.Test(step.Slot)
	switch {
	case step.Action == Measure && test == nil:
		made := s.plan.Test(step.Slot)
		made.CreationTimestamp = metav1.NewTime(s.now)
		o.Tests = append(o.Tests, *made)
		test = &o.Tests[len(o.Tests)-1]
	case step.Action == Again && test != nil:
		if test.Annotations == nil {
			test.Annotations = map[string]string{}
		}
		test.Annotations[v1alpha1.RequestedAtAnnotation] = Attempt(test)
	default:
		s.t.Fatalf("asked for %+v", step)
	}
	test.Status.Run++
	s.now = s.now.Add(time.Minute)
	if verdict != "" {
		test.Status.Verdict, test.Status.CompletedAt = verdict, &metav1.Time{Time: s.now}
		test.Status.LastHandledReconcileAt = test.Annotations[v1alpha1.RequestedAtAnnotation]
		test.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Message: "because"}}
	}
}

func TestNextFromBeginningToEnd(t *testing.T) {
	s := newStage(t)
	if step := s.next(); step.Action != Make {
		t.Fatalf("at first it asks for %+v", step)
	}
	s.make()
	if step := s.next(); step.Action != Wait || !strings.Contains(step.Message, "variant a is not Ready: no status yet") {
		t.Fatalf("with stacks that are not Ready it asks for %+v", step)
	}
	s.ready(0, metav1.ConditionTrue, "")
	s.ready(1, metav1.ConditionFalse, "waiting for the database")
	if step := s.next(); step.Action != Wait || !strings.Contains(step.Message, "variant b is not Ready: waiting for the database") {
		t.Fatalf("with one that is not Ready it asks for %+v", step)
	}
	s.begun()
	var order []string
	for range 100 {
		step := s.next()
		if step.Action == Finish {
			break
		}
		if step.Action == Wait {
			if step.After <= 0 || step.After > 10*time.Second {
				t.Fatalf("it waits with %+v", step)
			}
			s.now = s.now.Add(step.After)
			continue
		}
		order = append(order, step.Slot.Name()+s.plan.Variants[step.Slot.Variant].Name)
		s.measure(step, v1alpha1.VerdictPassed)
		if after := s.next(); after.Action != Finish && (after.Action != Wait || after.After != 10*time.Second) {
			t.Fatalf("right after a measurement it asks for %+v", after)
		}
	}
	want := "warm-up-1b warm-up-1a round-1a round-1b round-2b round-2a round-3a round-3b round-4b round-4a"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("it measured %s, not %s", got, want)
	}
	if valid := s.plan.Valid(s.observed); len(valid) != 8 {
		t.Errorf("%d measurements count, not 8", len(valid))
	}
}

func TestNextWhereThingsGoWrong(t *testing.T) {
	t.Run("a measurement that a guard voided is made once more, then the round goes without it", func(t *testing.T) {
		s := newStage(t).begun()
		for range 3 {
			s.measure(s.next(), v1alpha1.VerdictPassed)
			s.now = s.now.Add(time.Minute)
		}
		s.measure(s.next(), v1alpha1.VerdictInconclusive)
		step := s.next()
		if step.Action != Again || step.Slot.Name() != "round-1" {
			t.Fatalf("it asks for %+v", step)
		}
		s.measure(step, v1alpha1.VerdictInconclusive)
		s.now = s.now.Add(time.Minute)
		if step = s.next(); step.Action != Measure || step.Slot.Name() != "round-2" {
			t.Fatalf("it asks for %+v", step)
		}
		if valid := s.plan.Valid(s.observed); len(valid) != 1 {
			t.Errorf("%d measurements count, not 1", len(valid))
		}
	})
	for _, verdict := range []v1alpha1.Verdict{v1alpha1.VerdictError, v1alpha1.VerdictFailed} {
		t.Run("a measurement that ends in "+string(verdict)+" twice ends the comparison", func(t *testing.T) {
			s := newStage(t).begun()
			s.measure(s.next(), verdict)
			s.measure(s.next(), verdict)
			if step := s.next(); step.Action != Fail || !strings.Contains(step.Message, "variant b could not be measured (warm-up-1: "+string(verdict)+", twice): because") {
				t.Fatalf("it asks for %+v", step)
			}
		})
	}
	t.Run("a warm-up does not have to prove anything", func(t *testing.T) {
		s := newStage(t).begun()
		s.measure(s.next(), v1alpha1.VerdictInconclusive)
		s.now = s.now.Add(time.Minute)
		if step := s.next(); step.Action != Measure || step.Slot.Variant != 0 {
			t.Fatalf("it asks for %+v", step)
		}
	})
	t.Run("a measurement under way is waited for, but not for ever", func(t *testing.T) {
		s := newStage(t).begun()
		s.measure(s.next(), "")
		if step := s.next(); step.Action != Wait {
			t.Fatalf("it asks for %+v", step)
		}
		s.now = s.now.Add(s.plan.Timeout + waitPatience)
		if step := s.next(); step.Action != Fail || !strings.Contains(step.Message, "no verdict after") {
			t.Fatalf("it asks for %+v", step)
		}
	})
	t.Run("a variant that only a person can help ends the comparison after a while, with the reason", func(t *testing.T) {
		s := newStage(t).begun()
		s.ready(1, metav1.ConditionFalse, "no StorageClass fits")
		s.observed[1].Stack.Status.Conditions = append(s.observed[1].Stack.Status.Conditions,
			metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.now)})
		if step := s.next(); step.Action != Wait {
			t.Fatalf("at once it asks for %+v", step)
		}
		s.now = s.now.Add(stalledPatience + time.Second)
		if step := s.next(); step.Action != Fail || !strings.Contains(step.Message, "variant b is not Ready: no StorageClass fits") {
			t.Fatalf("it asks for %+v", step)
		}
	})
	t.Run("a variant that never becomes Ready ends the comparison", func(t *testing.T) {
		s := newStage(t)
		s.make()
		s.now = s.now.Add(readyPatience + time.Second)
		if step := s.next(); step.Action != Fail {
			t.Fatalf("it asks for %+v", step)
		}
	})
	t.Run("a stack that somebody deletes ends the comparison, since another one would be cold", func(t *testing.T) {
		s := newStage(t).begun()
		s.measure(s.next(), v1alpha1.VerdictPassed)
		s.observed[0].Stack = nil
		if step := s.next(); step.Action != Fail || !strings.Contains(step.Message, "the stack of variant a was deleted") {
			t.Fatalf("it asks for %+v", step)
		}
	})
}

func TestStorageIsProbedBeforeTheFirstRound(t *testing.T) {
	probed := &v1alpha1.StorageProbeStatus{CompletedAt: &metav1.Time{Time: noon}}
	for name, c := range map[string]struct {
		operator bool
		storage  *v1alpha1.StorageStatus
		mode     v1alpha1.StorageProbeMode
		later    time.Duration
		want     Action
	}{
		"a probe that is under way is waited for":       {true, &v1alpha1.StorageStatus{StorageClassName: "ceph", Probe: &v1alpha1.StorageProbeStatus{Running: "probe-1"}}, "", time.Minute, Wait},
		"one that has not begun too":                    {true, &v1alpha1.StorageStatus{StorageClassName: "ceph"}, "", time.Minute, Wait},
		"one that does not come is given up":            {true, &v1alpha1.StorageStatus{StorageClassName: "ceph"}, "", time.Hour, Measure},
		"one whose Job is only to be removed is not":    {true, &v1alpha1.StorageStatus{StorageClassName: "ceph", Probe: &v1alpha1.StorageProbeStatus{Running: "probe-1", Run: 1, CompletedRun: 1, CompletedAt: probed.CompletedAt}}, "", time.Minute, Measure},
		"one that runs again is waited for":             {true, &v1alpha1.StorageStatus{StorageClassName: "ceph", Probe: &v1alpha1.StorageProbeStatus{Running: "probe-2", Run: 2, CompletedRun: 1, CompletedAt: probed.CompletedAt}}, "", time.Minute, Wait},
		"one that is done is not":                       {true, &v1alpha1.StorageStatus{StorageClassName: "ceph", Probe: probed}, "", time.Minute, Measure},
		"nor one that failed":                           {true, &v1alpha1.StorageStatus{StorageClassName: "ceph", Probe: &v1alpha1.StorageProbeStatus{Problem: "no space"}}, "", time.Minute, Measure},
		"nor where the spec has it off":                 {true, &v1alpha1.StorageStatus{StorageClassName: "ceph"}, v1alpha1.StorageProbeOff, time.Minute, Measure},
		"nor where the operator has no image of it":     {false, &v1alpha1.StorageStatus{StorageClassName: "ceph"}, "", time.Minute, Measure},
		"nor where the database is somebody else's own": {true, nil, "", time.Minute, Measure},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t).begun()
			s.plan.Probes = c.operator
			for i := range s.observed {
				s.observed[i].Stack.Status.Storage = c.storage
				if c.mode != "" {
					s.observed[i].Stack.Spec.Postgres.Storage = &v1alpha1.StorageSpec{Probe: &v1alpha1.StorageProbeSpec{Mode: c.mode}}
				}
			}
			s.now = s.now.Add(c.later)
			if step := s.next(); step.Action != c.want || c.want == Wait && (step.After <= 0 || !strings.Contains(step.Message, "the storage of variant a is probed first")) {
				t.Errorf("it asks for %+v", step)
			}
		})
	}
}

package kube

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOutcome(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	failed := errors.New("no")
	for name, c := range map[string]struct {
		outcome  Outcome
		min, max time.Duration
		err      error
	}{
		"what is settled is looked at now and then":          {Outcome{State: Settled}, 8 * time.Minute, 10 * time.Minute, nil},
		"what is settled waits no longer than was asked":     {Outcome{State: Settled, Before: time.Second}, time.Second, time.Second, nil},
		"what has just begun is looked at soon":              {Outcome{State: Progressing}, 3 * time.Second, 3 * time.Second, nil},
		"what takes long is looked at less often":            {Outcome{State: Progressing, Since: ago(2 * time.Minute)}, 12 * time.Second, 12 * time.Second, nil},
		"what takes very long still is":                      {Outcome{State: Progressing, Since: ago(time.Hour)}, 30 * time.Second, 30 * time.Second, nil},
		"what is stalled is looked at where no watch tells":  {Outcome{State: Stalled}, 24 * time.Second, 30 * time.Second, nil},
		"what is suspended is left alone":                    {Outcome{State: Suspended}, 0, 0, nil},
		"an error is the queue's":                            {Outcome{State: Settled, Err: failed}, 0, 0, failed},
		"a clock that went backwards does not make it hurry": {Outcome{State: Progressing, Since: ago(-time.Hour)}, 3 * time.Second, 3 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for _, object := range []string{"a/b", "c/d", "e/f"} {
				result, err := c.outcome.Result(now, object)
				if c.err != nil {
					g.Expect(err).To(Equal(c.err))
					continue
				}
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(result.RequeueAfter).To(BeNumerically(">=", c.min))
				g.Expect(result.RequeueAfter).To(BeNumerically("<=", c.max))
			}
		})
	}
}

func TestRedactor(t *testing.T) {
	g := NewWithT(t)
	r := &Redactor{}
	g.Expect(r.Text("nothing to hide")).To(Equal("nothing to hide"))
	r.Add(map[string][]byte{
		"password": []byte("canary-password"), "username": []byte("authentik"), "short": []byte("off"),
		"configuration.yml": []byte("host: db.example.com\n  secret-of-the-second-line\n"),
	})
	r.AddString("canary-password-and-more")
	g.Expect(r.Text("user authentik with canary-password-and-more is off")).To(Equal("user authentik with [redacted] is off"))
	g.Expect(r.Text("secret-of-the-second-line")).To(Equal("[redacted]"))
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "canary-password", errors.New("changed"))
	err := r.Error(conflict)
	g.Expect(err.Error()).NotTo(ContainSubstring("canary"))
	g.Expect(errors.Is(err, conflict)).To(BeTrue())
	g.Expect(apierrors.IsConflict(err)).To(BeTrue())
	g.Expect(r.Error(nil)).To(Succeed())
	var none *Redactor
	g.Expect(none.Text("as it is")).To(Equal("as it is"))
}

func TestTruncate(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Truncate("  short ")).To(Equal("short"))
	long := Truncate(strings.Repeat("ü", 2000))
	g.Expect(len(long)).To(BeNumerically("<=", messageLimit))
	g.Expect(long).To(HaveSuffix("ü …"))
}

func TestConditions(t *testing.T) {
	g := NewWithT(t)
	var conditions []metav1.Condition
	first, later := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	SetCondition(&conditions, 1, first, "Ready", metav1.ConditionFalse, "A", "a")
	SetCondition(&conditions, 2, later, "Ready", metav1.ConditionFalse, "B", "b")
	g.Expect(conditions[0].LastTransitionTime).To(Equal(first), "a new reason is no transition")
	g.Expect(conditions[0].ObservedGeneration).To(Equal(int64(2)))
	SetCondition(&conditions, 2, later, "Ready", metav1.ConditionTrue, "B", "b")
	g.Expect(conditions[0].LastTransitionTime).To(Equal(later))
	SetAbnormal(&conditions, 2, later, "Stalled", true, "C", "c")
	g.Expect(conditions).To(HaveLen(2))
	SetAbnormal(&conditions, 2, later, "Stalled", false, "C", "c")
	g.Expect(conditions).To(HaveLen(1))
}

func TestPodProblems(t *testing.T) {
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main",
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}}}}}
	}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		says   string
	}{
		"a Pod that is merely starting has no problem": {waiting("ContainerCreating", ""), ""},
		"an image that cannot be pulled":               {waiting("ErrImagePull", "not found"), "container main of Pod a: ErrImagePull: not found"},
		"a crash loop names how it ended":              {waiting("CrashLoopBackOff", "back-off 40s"), "container main of Pod a: CrashLoopBackOff, it ended with OOMKilled and exit code 137"},
		"a Pod that no node takes": {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes"}}},
			"Pod a cannot be scheduled: 0/1 nodes"},
		"a Pod that was evicted": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "memory"}, "Pod a failed: Evicted memory"},
	} {
		t.Run(name, func(t *testing.T) {
			pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: waiting("ErrImagePull", "later")}, {ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: c.status}}
			if c.says == "" {
				pods = pods[1:]
			}
			NewWithT(t).Expect(PodProblems(pods)).To(Equal(c.says))
		})
	}
}

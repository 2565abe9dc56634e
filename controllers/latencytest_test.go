package controllers

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/report"
	"authstack.dev/authstack/internal/result"
)

// newReadyWorld has a stack that is Ready and measures nothing by itself.
func newReadyWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.create(func(st *v1alpha1.AuthStack) { st.Spec.Latency = &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual} })
	w.until("Ready", w.ready)
	w.settle()
	return w
}

func (w *world) measure(change ...func(*v1alpha1.LatencyTest)) {
	w.t.Helper()
	test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "run"},
		Spec: v1alpha1.LatencyTestSpec{StackRef: v1alpha1.StackReference{Name: "sso"}}}
	for _, f := range change {
		f(test)
	}
	w.must(server.Create(w.t.Context(), test))
}

func (w *world) test() *v1alpha1.LatencyTest {
	w.t.Helper()
	test := &v1alpha1.LatencyTest{}
	w.must(server.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "run"}, test))
	return test
}

func (w *world) verdict() v1alpha1.Verdict { return w.test().Status.Verdict }

func TestLatencyTest(t *testing.T) {
	t.Run("a run is made, judged, kept and cleaned up", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.measure(func(test *v1alpha1.LatencyTest) { test.Spec.Repeats = ptr.To(int32(2)) })
		var most int
		for range 30 {
			g.Expect(w.step()).To(Succeed())
			most = max(most, len(w.users.held))
		}
		test := w.test()
		g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictPassed), w.describe())
		g.Expect(test.Status.CompletedRepeats).To(Equal(int32(2)))
		g.Expect(test.Status.LoginP95).To(Equal("300ms"))
		g.Expect(test.Status.Subject.IdentityProvider).To(Equal("authentik"))
		g.Expect(test.Status.Guards).NotTo(BeEmpty())
		g.Expect(test.Finalizers).To(BeEmpty())
		g.Expect(most).To(Equal(1))
		g.Expect(w.users.held).To(BeEmpty())
		for _, list := range []client.ObjectList{&batchv1.JobList{}, &corev1.SecretList{}} {
			w.must(server.List(t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{latency.TestLabel: "run"}))
			g.Expect(undeleted(list)).To(BeZero(), "%T", list)
		}
		config := &corev1.ConfigMap{}
		w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: test.Status.ResultName}, config))
		kept, err := report.ReadJSON(strings.NewReader(config.Data["report.json"]))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept.Verdict).To(Equal(v1alpha1.VerdictPassed))
		g.Expect(test.Status.Causes).NotTo(BeEmpty())
		g.Expect(test.Status.Causes[0].Name).To(Equal("commit-wait"))
		g.Expect(test.Status.Causes[0].Detail).To(ContainSubstring("each for a WAL sync of 10.0ms"))
		g.Expect(kept.Causes).To(Equal(test.Status.Causes))
		g.Expect(w.database.sampled).To(Equal(int64(2)), "before the first repeat and after the last")
		merged, err := result.Read(strings.NewReader(config.Data["result.txt"]))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(merged.Find("Login", "login").Total.Count()).To(Equal(int64(120)))
		writes := w.writes
		for range 5 {
			g.Expect(w.step()).To(Succeed())
		}
		g.Expect(w.writes).To(Equal(writes), "a finished test writes nothing")
	})
	t.Run("a database that does not tell spoils no run, and nothing is said of it", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.database.sampleErr = errNoLog
		w.measure()
		w.until("a verdict", func() bool { return w.verdict() != "" })
		g.Expect(w.verdict()).To(Equal(v1alpha1.VerdictPassed))
		g.Expect(w.test().Status.Causes).To(BeEmpty())
	})
	t.Run("an objective that is missed turns the test red and leaves the stack Ready", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.measure(func(test *v1alpha1.LatencyTest) {
			test.Spec.Scenarios = []v1alpha1.Scenario{{Name: v1alpha1.ScenarioLogin, Iterations: ptr.To(int32(60))}}
			test.Spec.Objectives = []v1alpha1.Objective{{Scenario: v1alpha1.ScenarioLogin, Percentile: 95, Below: metav1.Duration{Duration: 100 * time.Millisecond}}}
		})
		w.settle()
		test := w.test()
		g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictFailed))
		g.Expect(meta.IsStatusConditionTrue(test.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
		conformant(t, test.Generation, test.Status.ObservedGeneration, test.Status.Conditions)
		g.Expect(w.ready()).To(BeTrue())
		g.Expect(conditionIn(w.stack().Status.Conditions, v1alpha1.ConditionLatencyMet).Reason).To(Equal("Failed"))
	})
	t.Run("the annotation runs it again, with another Job and the same name", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.measure()
		w.settle()
		w.logs.each = 500 * time.Millisecond
		test := w.test()
		before := test.DeepCopy()
		test.Annotations = map[string]string{v1alpha1.RequestedAtAnnotation: "later"}
		w.must(server.Patch(t.Context(), test, client.MergeFrom(before)))
		w.settle()
		test = w.test()
		g.Expect(test.Status.Run).To(Equal(int64(2)))
		g.Expect(test.Status.LoginP95).To(Equal("500ms"))
		g.Expect(test.Status.LastHandledReconcileAt).To(Equal("later"))
		g.Expect(w.users.held).To(BeEmpty())
	})
	t.Run("two tests of one stack run one after the other", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.measure()
		w.measure(func(test *v1alpha1.LatencyTest) { test.Name = "second" })
		w.idle = true
		for range 4 {
			g.Expect(w.step()).To(Succeed())
		}
		var jobs batchv1.JobList
		w.list(&jobs)
		g.Expect(jobs.Items).To(HaveLen(1))
		w.idle = false
		w.settle()
		for _, test := range w.latencyTests() {
			g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictPassed), test.Name)
		}
	})
	t.Run("a test waits for its stack, and says when there is none", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.measure()
		g.Expect(w.step()).To(Succeed())
		test := w.test()
		g.Expect(conditionIn(test.Status.Conditions, v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonStackNotFound))
		g.Expect(conditionIn(test.Status.Conditions, v1alpha1.ConditionReconciling)).NotTo(BeNil())
		w.now = w.now.Add(time.Minute)
		g.Expect(w.step()).To(Succeed())
		test = w.test()
		g.Expect(conditionIn(test.Status.Conditions, v1alpha1.ConditionStalled)).NotTo(BeNil())
		conformant(t, test.Generation, test.Status.ObservedGeneration, test.Status.Conditions)
		w.create(func(st *v1alpha1.AuthStack) { st.Spec.Latency = &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual} })
		g.Expect(w.step()).To(Succeed())
		g.Expect(conditionIn(w.test().Status.Conditions, v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonWaitingForStack))
		w.until("Passed", func() bool { return w.verdict() == v1alpha1.VerdictPassed })
	})
	t.Run("a test that cannot be run as written is refused, and looked at again when it is changed", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.measure(func(test *v1alpha1.LatencyTest) {
			test.Spec.Scenarios = []v1alpha1.Scenario{{Name: v1alpha1.ScenarioLogin, VirtualUsers: ptr.To(int32(61))}}
		})
		w.settle()
		test := w.test()
		g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictError))
		conformant(t, test.Generation, test.Status.ObservedGeneration, test.Status.Conditions)
		before := test.DeepCopy()
		test.Spec.Scenarios = nil
		w.must(server.Patch(t.Context(), test, client.MergeFrom(before)))
		w.until("Passed", func() bool { return w.verdict() == v1alpha1.VerdictPassed })
		w.settle()
		test = w.test()
		conformant(t, test.Generation, test.Status.ObservedGeneration, test.Status.Conditions)
	})
	for name, c := range map[string]struct {
		k6   func(*corev1.Pod)
		log  func(*fakeLogs)
		says string
	}{
		"k6 that was killed for want of memory": {says: "memory", k6: func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodFailed
			pod.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
		}},
		"a Pod that was evicted": {says: "(Evicted: The node was low on resource: ephemeral-storage); run", k6: func(pod *corev1.Pod) {
			pod.Status.Phase, pod.Status.Reason, pod.Status.ContainerStatuses = corev1.PodFailed, "Evicted", nil
			pod.Status.Message = "The node was low on resource: ephemeral-storage. "
		}},
		"an image that cannot be pulled": {says: "image of k6", k6: func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodPending
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
		}},
		"a log without a result": {says: "no result", log: func(l *fakeLogs) { l.text = "nothing" }},
		"a log that was full before the result had ended": {says: "missing in the log", log: func(l *fakeLogs) {
			whole := loginLog("run-1-1", time.Second)
			l.text = whole[:len(whole)*2/3]
		}},
		"a log whose beginning was rotated away": {says: "the kubelet may have rotated it away", log: func(l *fakeLogs) {
			whole := loginLog("run-1-1", time.Second)
			l.text = whole[len(whole)/2:]
		}},
		"a log that cannot be read":  {says: "could not be read", log: func(l *fakeLogs) { l.err = errNoLog }},
		"a result of another format": {says: "version", log: func(l *fakeLogs) { l.text = strings.ReplaceAll(loginLog("run-1-1", time.Second), "v1", "v9") }},
	} {
		t.Run(name+" is an Error that says so", func(t *testing.T) {
			g, w := NewWithT(t), newReadyWorld(t)
			w.k6 = c.k6
			if c.log != nil {
				c.log(w.logs)
			}
			w.measure()
			w.until("a verdict", func() bool { return w.verdict() != "" })
			w.settle()
			test := w.test()
			g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictError))
			g.Expect(conditionIn(test.Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring(c.says))
			g.Expect(w.users.held).To(BeEmpty())
			conformant(t, test.Generation, test.Status.ObservedGeneration, test.Status.Conditions)
		})
	}
	t.Run("a k6 that was killed is not asked for its result for minutes", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.logs.text = "nothing"
		var ended time.Time
		w.k6 = func(pod *corev1.Pod) {
			if ended.IsZero() {
				ended = w.now
			}
			pod.Status.Phase = corev1.PodFailed
			pod.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
		}
		w.measure()
		w.until("a verdict", func() bool { return w.verdict() != "" })
		g.Expect(conditionIn(w.test().Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring("want of memory"))
		g.Expect(w.now.Sub(ended)).To(BeNumerically("<", logPatience/2))
	})
	t.Run("a test that is deleted in the middle leaves no user behind", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.idle = true
		w.measure()
		w.until("a user", func() bool { return len(w.users.held) == 1 })
		w.must(server.Delete(t.Context(), w.test()))
		w.users.err = errors.New("502")
		_ = w.step()
		w.users.err = nil
		w.until("gone", func() bool {
			return apierrors.IsNotFound(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "run"}, &v1alpha1.LatencyTest{}))
		})
		g.Expect(w.users.held).To(BeEmpty())
	})
	t.Run("a deleted test does not wait for ever for an admin API that is gone", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.idle = true
		w.measure()
		w.until("a user", func() bool { return len(w.users.held) == 1 })
		w.must(server.Delete(t.Context(), w.test()))
		w.users.err = errors.New("502")
		_ = w.step()
		w.now = time.Now().Add(2 * cleanUpPatience)
		w.until("gone", func() bool {
			return apierrors.IsNotFound(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "run"}, &v1alpha1.LatencyTest{}))
		})
		g.Expect(strings.Join(w.events.all(), "\n")).To(ContainSubstring("remove them by hand"))
	})
	t.Run("nor does a finished one, and it says what it left and where, until another run removes it", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.now = time.Now()
		w.measure()
		w.until("a user", func() bool { return len(w.users.held) == 1 })
		w.until("a Job", func() bool { return len(w.jobs()) == 1 })
		w.users.err = errors.New("502")
		w.until("a verdict", func() bool { return w.verdict() != "" })
		_ = w.step()
		g.Expect(w.test().Finalizers).NotTo(BeEmpty(), "it is tried for a while")
		w.now = w.now.Add(2 * cleanUpPatience)
		w.until("let go", func() bool { return len(w.test().Finalizers) == 0 })
		test := w.test()
		g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictPassed))
		left := conditionIn(test.Status.Conditions, v1alpha1.ConditionLeftBehind)
		g.Expect(left).NotTo(BeNil())
		g.Expect(left.Message).To(And(HavePrefix("the users authstack-latency-"), ContainSubstring("of AuthStack sso"), ContainSubstring("remove them by hand")))
		g.Expect(strings.Count(strings.Join(w.events.all(), "\n"), v1alpha1.ReasonCleanUpFailed)).To(Equal(1))
		conformant(t, test.Generation, test.Status.ObservedGeneration, test.Status.Conditions)
		w.settle()
		w.users.err = nil
		before := test.DeepCopy()
		test.Annotations = map[string]string{v1alpha1.RequestedAtAnnotation: "again"}
		w.must(server.Patch(t.Context(), test, client.MergeFrom(before)))
		w.settle()
		test = w.test()
		g.Expect(test.Status.Run).To(Equal(int64(2)))
		g.Expect(conditionIn(test.Status.Conditions, v1alpha1.ConditionLeftBehind)).To(BeNil())
		g.Expect(w.users.held).To(BeEmpty())
	})
	t.Run("a repeat counts though its Job and its Pod, with the log, are gone before the last one ends", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.measure(func(test *v1alpha1.LatencyTest) { test.Spec.Repeats = ptr.To(int32(2)) })
		w.until("the second repeat", func() bool { return w.test().Status.CompletedRepeats == 1 })
		w.restart()
		background := client.PropagationPolicy(metav1.DeletePropagationBackground)
		w.must(server.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "run-1-1" + podSuffix}}))
		w.must(server.Delete(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "run-1-1"}}, background))
		w.settle()
		test := w.test()
		g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictPassed), w.describe())
		g.Expect(test.Status.Scenarios[0].Endpoints[0].Requests).To(Equal(int64(120)))
		g.Expect(test.Status.StartedAt).NotTo(BeNil())
		var kept corev1.ConfigMapList
		w.must(server.List(t.Context(), &kept, client.InNamespace(w.namespace), client.MatchingLabels{latency.TestLabel: "run"}))
		g.Expect(kept.Items).To(HaveLen(1), "what was kept goes when it has been merged")
	})
	t.Run("a stack that is deleted during the run ends it", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.idle = true
		w.measure()
		w.until("running", func() bool { return w.test().Status.StartedAt != nil })
		w.must(server.Delete(t.Context(), w.stack()))
		w.until("a verdict", func() bool { return w.verdict() != "" })
		g.Expect(w.verdict()).To(Equal(v1alpha1.VerdictError))
		w.settle()
		g.Expect(w.test().Finalizers).To(BeEmpty())
	})
}

// undeleted is how many objects of a list are not on their way out.
func undeleted(list client.ObjectList) int {
	objects, _ := meta.ExtractList(list)
	n := 0
	for _, obj := range objects {
		if obj.(client.Object).GetDeletionTimestamp() == nil {
			n++
		}
	}
	return n
}

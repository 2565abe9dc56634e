package controllers

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
)

// jobs of k6 that are there.
func (w *world) jobs() []string {
	var jobs batchv1.JobList
	w.list(&jobs)
	var names []string
	for _, job := range jobs.Items {
		names = append(names, job.Name)
	}
	return names
}

// waits is why the test does not run, or empty.
func (w *world) waits(name string) (reason, message string) {
	w.t.Helper()
	test := &v1alpha1.LatencyTest{}
	w.must(server.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: name}, test))
	ready := conditionIn(test.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return "", ""
	}
	return ready.Reason, ready.Message
}

func TestOneLatencyTestAtATime(t *testing.T) {
	steps := func(g Gomega, worlds ...*world) {
		for range 4 {
			for _, w := range worlds {
				g.Expect(w.step()).To(Succeed())
			}
		}
	}
	t.Run("of stacks of two namespaces, though two operators look, and the other says what it waits for", func(t *testing.T) {
		g, first, second := NewWithT(t), newReadyWorld(t), newReadyWorld(t)
		first.measure()
		second.measure()
		first.idle, second.idle = true, true
		steps(g, first, second)
		g.Expect(first.jobs()).To(HaveLen(1))
		g.Expect(second.jobs()).To(BeEmpty())
		reason, message := second.waits("run")
		g.Expect(reason).To(Equal(v1alpha1.ReasonWaitingForTest))
		g.Expect(message).To(HavePrefix("waiting for LatencyTest run of namespace " + first.namespace + ", which runs: one at a time"))
		first.idle = false
		first.until("Passed", func() bool { return first.verdict() == v1alpha1.VerdictPassed })
		second.idle = false
		second.until("Passed", func() bool { return second.verdict() == v1alpha1.VerdictPassed })
	})
	t.Run("a test whose stack never becomes Ready, or is suspended, holds up no other", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.create(func(st *v1alpha1.AuthStack) {
			st.Name, st.Spec.Latency = "never", &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual}
			st.Spec.Postgres = &v1alpha1.PostgresSpec{Storage: &v1alpha1.StorageSpec{StorageClassName: "missing"}}
		})
		w.create(func(st *v1alpha1.AuthStack) {
			st.Name, st.Spec.Latency, st.Spec.Suspend = "paused", &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual}, true
		})
		for _, name := range []string{"never", "paused"} {
			w.measure(func(test *v1alpha1.LatencyTest) { test.Name, test.Spec.StackRef.Name = name, name })
		}
		w.measure()
		w.until("Passed", func() bool { return w.verdict() == v1alpha1.VerdictPassed })
		reason, message := w.waits("never")
		g.Expect(reason).To(Equal(v1alpha1.ReasonWaitingForStack))
		g.Expect(message).To(ContainSubstring("missing"))
		reason, message = w.waits("paused")
		g.Expect(reason).To(Equal(v1alpha1.ReasonWaitingForStack))
		g.Expect(message).To(ContainSubstring("spec.suspend"))
	})
	t.Run("a test that took its turn and cannot begin since its stack is no longer Ready gives it up", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.create(func(st *v1alpha1.AuthStack) {
			st.Name, st.Spec.Latency = "other", &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual}
		})
		w.settle()
		w.users.err = errNoLog
		w.measure()
		steps(g, w)
		g.Expect(w.test().Finalizers).NotTo(BeEmpty())
		w.change(func(st *v1alpha1.AuthStack) { st.Spec.Suspend = true })
		w.users.err = nil
		w.measure(func(test *v1alpha1.LatencyTest) { test.Name, test.Spec.StackRef.Name = "second", "other" })
		w.until("Passed", func() bool {
			reason, _ := w.waits("second")
			return reason == string(v1alpha1.VerdictPassed)
		})
		w.change(func(st *v1alpha1.AuthStack) { st.Spec.Suspend = false })
		w.until("Passed", func() bool { return w.verdict() == v1alpha1.VerdictPassed })
	})
	t.Run("the turn passes on when the test that has it is deleted, once its Pod makes no more load", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.idle = true
		w.measure()
		steps(g, w)
		w.measure(func(test *v1alpha1.LatencyTest) { test.Name = "second" })
		pod := w.pod("run-1-1"+podSuffix, map[string]string{latency.TestLabel: "run"}, w.podSpec(), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning })
		before := pod.DeepCopy()
		pod.Finalizers = []string{"example.com/still-stopping"}
		w.must(server.Patch(t.Context(), pod, client.MergeFrom(before)))
		w.must(server.Delete(t.Context(), w.test()))
		w.must(server.Delete(t.Context(), pod))
		steps(g, w)
		reason, message := w.waits("second")
		g.Expect(reason).To(Equal(v1alpha1.ReasonWaitingForTest))
		g.Expect(message).To(ContainSubstring("run-1-1" + podSuffix))
		g.Expect(w.jobs()).NotTo(ContainElement("second-1-1"))
		w.now = w.now.Add(2 * overdue)
		steps(g, w)
		g.Expect(w.jobs()).To(ContainElement("second-1-1"), "a Pod whose node does not answer is not waited for")
		before = pod.DeepCopy()
		pod.Finalizers = nil
		w.must(server.Patch(t.Context(), pod, client.MergeFrom(before)))
	})
}

// podSpec is one that the API server takes.
func (w *world) podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: latency.K6Container, Image: "example.com/k6"}}}
}

package controllers

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
)

func TestSeveralGeneratorPods(t *testing.T) {
	three := func(test *v1alpha1.LatencyTest) {
		test.Spec.Generator.Pods = ptr.To(int32(3))
		// The fake log has 60 logins and a warm-up of 12, of each Pod.
		test.Spec.Scenarios = []v1alpha1.Scenario{{Name: "Login", Iterations: ptr.To(int32(180)), WarmUpIterations: ptr.To(int32(36)), VirtualUsers: ptr.To(int32(3))}}
	}
	t.Run("their results are one", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.measure(three)
		w.until("judged", func() bool { return w.verdict() != "" })
		status := w.test().Status
		g.Expect(status.Verdict).To(Equal(v1alpha1.VerdictPassed), w.describe())
		g.Expect(status.Scenarios[0].Endpoints[0].Requests).To(Equal(int64(180)))
	})
	t.Run("one that was killed makes the run an Error", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.k6 = func(pod *corev1.Pod) {
			if pod.Labels[batchv1.JobCompletionIndexAnnotation] == "2" {
				pod.Status.Phase = corev1.PodFailed
				pod.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
			}
		}
		w.measure(three)
		w.until("judged", func() bool { return w.verdict() != "" })
		g.Expect(w.verdict()).To(Equal(v1alpha1.VerdictError))
		g.Expect(w.describe()).To(ContainSubstring("killed for want of memory"))
	})
}

func TestNodesAreReadOnceEach(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "short-of-memory"}}
	w.must(server.Create(t.Context(), node))
	t.Cleanup(func() { _ = server.Delete(context.Background(), node) })
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
	}
	w.must(server.Status().Update(t.Context(), node))
	g.Expect(w.tests.nodes(t.Context(), []string{"short-of-memory", "", "gone", "short-of-memory"})).To(Equal([]latency.NodeState{
		{Name: "gone", Unknown: true}, {Name: "short-of-memory", Pressure: []string{"MemoryPressure"}}}))
}

package controllers

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
)

func TestVoidedRuns(t *testing.T) {
	// restarts has the server restart during that many runs.
	restarts := func(w *world, times int32) {
		done := map[string]bool{}
		w.k6 = func(k6 *corev1.Pod) {
			if done[k6.Name] || int32(len(done)) == times {
				return
			}
			done[k6.Name] = true
			pod := &corev1.Pod{}
			w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "sso-authentik-server-0"}, pod))
			pod.Status.ContainerStatuses[0].RestartCount++
			w.must(server.Status().Update(t.Context(), pod))
		}
	}
	t.Run("Pods that change during each run make it Inconclusive, after two repetitions", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		restarts(w, 100)
		w.measure()
		w.settle()
		test := w.test()
		g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictInconclusive), w.describe())
		g.Expect(test.Status.Run).To(Equal(int64(3)))
		g.Expect(test.Status.Voided).To(HaveLen(2))
		g.Expect(test.Status.Voided[0]).To(ContainSubstring("sso-authentik-server-0 restarted 1 times"))
		g.Expect(conditionIn(test.Status.Conditions, v1alpha1.ConditionReady).Message).To(HaveSuffix("This is run 3 of the test; what voided the earlier ones is in status.voided."))
		g.Expect(w.users.held).To(BeEmpty())
		conformant(t, test.Generation, test.Status.ObservedGeneration, test.Status.Conditions)
	})
	t.Run("a run that one restart voids is repeated by itself, and the next one counts", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		restarts(w, 1)
		w.measure(func(test *v1alpha1.LatencyTest) {
			test.Spec.Repeats = ptr.To(int32(2))
			test.Annotations = map[string]string{v1alpha1.RequestedAtAnnotation: "first"}
		})
		w.until("voided", func() bool { return len(w.test().Status.Voided) == 1 })
		g.Expect(w.jobs()).NotTo(ContainElement(HavePrefix("run-1-")), "what the voided run made is gone")
		w.settle()
		test := w.test()
		g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictPassed), w.describe())
		g.Expect(test.Status.Scenarios[0].Endpoints[0].Requests).To(Equal(int64(120)), "nothing of the voided run is in it")
		g.Expect(test.Status.LastHandledReconcileAt).To(Equal("first"))
		g.Expect(test.Status.StartedAt).NotTo(BeNil())
		var jobs batchv1.JobList
		w.list(&jobs)
		g.Expect(undeleted(&jobs)).To(BeZero())
		before := test.DeepCopy()
		test.Annotations[v1alpha1.RequestedAtAnnotation] = "again"
		w.must(server.Patch(t.Context(), test, client.MergeFrom(before)))
		w.until("run again", func() bool { return w.verdict() == v1alpha1.VerdictPassed && w.test().Status.Run == 3 })
		g.Expect(w.test().Status.Voided).To(BeEmpty())
	})
}

package controllers

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"authstack.dev/authstack/api/v1alpha1"
)

func TestObserverEffect(t *testing.T) {
	repeats := func(n int32) func(*v1alpha1.LatencyTest) {
		return func(test *v1alpha1.LatencyTest) { test.Spec.Repeats = ptr.To(n) }
	}
	guard := func(w *world) (found v1alpha1.Guard) {
		for _, g := range w.test().Status.Guards {
			if g.Name == "observer-effect" {
				found = g
			}
		}
		return found
	}
	t.Run("half of the repeats begin right after the database was asked, over a death of the operator", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		var order strings.Builder
		seen := map[string]bool{}
		w.k6 = func(pod *corev1.Pod) {
			job := &batchv1.Job{}
			w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: strings.TrimSuffix(pod.Name, podSuffix)}, job))
			if !seen[job.Name] {
				order.WriteString(map[bool]string{true: "A", false: "B"}[job.Annotations[observedAnnotation] != ""])
			}
			seen[job.Name] = true
		}
		w.measure(repeats(4))
		w.until("the third repeat", func() bool { return w.test().Status.CompletedRepeats == 2 })
		w.restart()
		w.settle()
		g.Expect(order.String()).To(Equal("ABBA"))
		g.Expect(w.verdict()).To(Equal(v1alpha1.VerdictPassed), w.describe())
		g.Expect(guard(w).OK).To(BeTrue())
		g.Expect(guard(w).Detail).To(ContainSubstring("is 1.000 times as long in the 2 repeats that began right after the operator asked the database as in the 2 others"))
	})
	t.Run("a run that the question made slower proves nothing", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.k6 = func(pod *corev1.Pod) {
			job := &batchv1.Job{}
			w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: strings.TrimSuffix(pod.Name, podSuffix)}, job))
			took := 300 * time.Millisecond
			if job.Annotations[observedAnnotation] != "" {
				took = 360 * time.Millisecond
			}
			w.logs.text = loginLog(job.Name, took)
		}
		w.measure(repeats(4))
		w.settle()
		g.Expect(w.verdict()).To(Equal(v1alpha1.VerdictInconclusive), w.describe())
		g.Expect(guard(w).OK).To(BeFalse())
		g.Expect(conditionIn(w.test().Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring("observer-effect: the median of Login is 1.20"))
	})
	t.Run("a database that does not tell is not observed", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.database.sampleErr = errNoLog
		w.measure()
		w.settle()
		g.Expect(guard(w).OK).To(BeTrue())
		g.Expect(guard(w).Detail).To(ContainSubstring("the operator did not ask the database"))
	})
}

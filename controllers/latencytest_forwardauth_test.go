package controllers

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
)

// TestForwardAuthOfAuthentik: the application that is asked for is made before the Job and gone after it.
func TestForwardAuthOfAuthentik(t *testing.T) {
	forwardAuth := func(test *v1alpha1.LatencyTest) {
		test.Spec.Scenarios = []v1alpha1.Scenario{{Name: v1alpha1.ScenarioForwardAuth}}
	}
	plans := func(w *world) string {
		var configs corev1.ConfigMapList
		w.must(server.List(t.Context(), &configs, client.InNamespace(w.namespace), client.MatchingLabels{latency.TestLabel: "run"}))
		var all string
		for _, config := range configs.Items {
			all += config.Data["plan.json"]
		}
		return all
	}
	jobs := func(w *world) int {
		var list batchv1.JobList
		w.list(&list)
		return len(list.Items)
	}
	t.Run("it is made once over two deaths of the operator, and removed", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.idle, w.users.slow = true, 2
		w.measure(forwardAuth)
		w.until("an application", func() bool { return len(w.users.apps) == 1 })
		g.Expect(jobs(w)).To(BeZero(), "no load before the outpost answers")
		g.Expect(conditionIn(w.test().Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring("does not answer for the application yet"))
		w.restart()
		w.until("a Job", func() bool { return jobs(w) == 1 })
		g.Expect(w.users.apps).To(HaveLen(1))
		name := applicationName(w.test())
		host := w.users.apps[name]
		g.Expect(host).To(Equal(latency.ForwardAuthHost(name, w.stack().Spec.Host)))
		g.Expect(plans(w)).To(ContainSubstring(`"forwardAuthHost": "` + host + `"`))
		w.restart()
		w.idle = false
		w.until("a verdict", func() bool { return w.verdict() != "" })
		w.settle()
		g.Expect(w.users.apps).To(BeEmpty())
		g.Expect(w.users.held).To(BeEmpty())
		g.Expect(w.test().Finalizers).To(BeEmpty())
	})
	t.Run("a test that is deleted while nobody runs leaves none behind", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.idle = true
		w.measure(forwardAuth)
		w.until("a Job", func() bool { return jobs(w) == 1 })
		w.must(server.Delete(t.Context(), w.test()))
		w.restart()
		w.users.err = errors.New("502")
		_ = w.step()
		g.Expect(w.users.apps).To(HaveLen(1))
		w.users.err = nil
		w.until("gone", func() bool {
			return apierrors.IsNotFound(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "run"}, &v1alpha1.LatencyTest{}))
		})
		g.Expect(w.users.apps).To(BeEmpty())
	})
	t.Run("a run without the scenario makes none", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.idle = true
		w.measure()
		w.until("a Job", func() bool { return jobs(w) == 1 })
		g.Expect(w.users.apps).To(BeEmpty())
	})
}

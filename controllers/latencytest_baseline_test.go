package controllers

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/report"
)

func TestBaseline(t *testing.T) {
	against := func(baseline v1alpha1.BaselineSpec) func(*v1alpha1.LatencyTest) {
		return func(test *v1alpha1.LatencyTest) {
			test.Spec.Baseline, test.Spec.Repeats = &baseline, ptr.To(int32(2))
		}
	}
	t.Run("a test that is slower than an earlier one has Failed, and one that is not has Passed", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.measure(func(test *v1alpha1.LatencyTest) { test.Name, test.Spec.Repeats = "before", ptr.To(int32(2)) })
		w.settle()
		config := &corev1.ConfigMap{}
		w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "before-result"}, config))
		kept, err := report.ReadJSON(strings.NewReader(config.Data["report.json"]))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept.Repeats).To(HaveLen(2))
		g.Expect(kept.Repeats[1].Figures[0].Count).To(Equal(int64(60)))
		g.Expect(kept.Repeats[1].Figures[0].P50Micros).To(Equal(int64(300_000)))
		g.Expect(kept.Sizes[0].Iterations).To(Equal(int32(60)))

		w.logs.each = 360 * time.Millisecond
		w.measure(against(v1alpha1.BaselineSpec{TestName: "before"}))
		w.settle()
		test := w.test()
		g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictFailed), w.describe())
		g.Expect(test.Status.Baseline).To(HaveLen(1))
		g.Expect(test.Status.Baseline[0].RatioPermille).To(BeNumerically("~", 1200, 2))
		g.Expect(test.Status.Baseline[0].Verdict).To(Equal(v1alpha1.BaselineRegressed))
		g.Expect(conditionIn(test.Status.Conditions, v1alpha1.ConditionReady).Message).To(HavePrefix(
			"Regressed by more than 10 %: Login/login p50 is 1.20 (1.20–1.20) of LatencyTest before's."))
		conformant(t, test.Generation, test.Status.ObservedGeneration, test.Status.Conditions)

		before := test.DeepCopy()
		test.Spec.Baseline.NotWorseThanPercent = ptr.To(int32(25))
		test.Annotations = map[string]string{v1alpha1.RequestedAtAnnotation: "with more patience"}
		w.must(server.Patch(t.Context(), test, client.MergeFrom(before)))
		w.settle()
		g.Expect(w.verdict()).To(Equal(v1alpha1.VerdictPassed), w.describe())
		g.Expect(w.test().Status.Baseline[0].Verdict).To(Equal(v1alpha1.BaselineNotWorse))
	})
	t.Run("a baseline that is not there is an Error, before anything is measured", func(t *testing.T) {
		for says, baseline := range map[string]v1alpha1.BaselineSpec{
			"there is no baseline: LatencyTest before does not exist": {TestName: "before"},
			"baseline save TEST --configmap saved writes one":         {ConfigMapName: "saved"},
			"the key report.json of ConfigMap kube-root is not":       {ConfigMapName: "kube-root"},
		} {
			g, w := NewWithT(t), newReadyWorld(t)
			w.must(server.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "kube-root"}}))
			w.measure(against(baseline))
			w.settle()
			test := w.test()
			g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictError), w.describe())
			g.Expect(conditionIn(test.Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring(says))
			g.Expect(test.Status.StartedAt).To(BeNil())
			g.Expect(w.jobs()).To(BeEmpty())
		}
	})
}

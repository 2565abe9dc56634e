package controllers

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/report"
)

func patchOf(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

func TestComparison(t *testing.T) {
	t.Run("variants are made, measured in turn, compared, and taken away with their data", func(t *testing.T) {
		g, w := NewWithT(t), newTown(t)
		w.compare()
		var namespaces, order []string
		atOnce, volumes := 0, 0
		seen := map[string]bool{}
		w.until("over", func() bool {
			running := 0
			for _, namespace := range w.variants() {
				if !seen[namespace.Name] {
					seen[namespace.Name] = true
					namespaces = append(namespaces, namespace.Name)
				}
				volumes = max(volumes, len(w.volumes(namespace.Name)))
				for _, test := range w.at(namespace.Name).latencyTests() {
					if key := namespace.Labels[v1alpha1.VariantLabel] + " " + test.Name; !seen[key] {
						seen[key] = true
						order = append(order, key)
					}
					if test.Status.Verdict == "" {
						running++
					}
				}
			}
			atOnce = max(atOnce, running)
			return w.over()
		})
		g.Expect(order).To(Equal([]string{"strict round-1", "relaxed round-1", "relaxed round-2", "strict round-2"}))
		g.Expect(atOnce).To(Equal(1), "one variant is measured at a time")
		g.Expect(namespaces).To(HaveLen(2))
		g.Expect(volumes).To(BeNumerically(">", 0))
		w.nothingLeft(namespaces)

		c := w.comparison()
		g.Expect(c.Status.Verdict).To(Equal(v1alpha1.VerdictPassed), w.describe())
		g.Expect(meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
		conformant(t, c.Generation, c.Status.ObservedGeneration, c.Status.Conditions)
		g.Expect(c.Status.Variants[1].Subject.Durability).To(Equal(v1alpha1.DurabilityRelaxed))
		g.Expect(c.Status.Variants[1].DurabilityNote).To(ContainSubstring("0.6 s"))
		g.Expect(c.Status.Variants[0].Rounds).To(Equal(int32(2)))
		g.Expect(c.Status.Variants[0].Scenarios[0].Endpoints).To(HaveLen(1))
		g.Expect(c.Status.Pairs).To(HaveLen(2))
		g.Expect(c.Status.Pairs[0]).To(Equal(v1alpha1.PairResult{Variant: "relaxed", Against: "strict", Scenario: v1alpha1.ScenarioLogin, Endpoint: "login", Percentile: 50,
			Rounds: 2, RatioPermille: 1000, CILowPermille: 1000, CIHighPermille: 1000, Verdict: v1alpha1.PairNoDifference}))
		kept := &corev1.ConfigMap{}
		w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: c.Status.ResultName}, kept))
		made, err := report.ReadJSON(strings.NewReader(kept.Data["report.json"]))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(made.Variants).To(HaveLen(2))
		g.Expect(made.Variants[0].Scenarios[0].Requests).To(Equal(int64(120)), "two rounds of sixty logins")
		g.Expect(made.Pairs[0].Verdict).To(Equal(v1alpha1.PairNoDifference))

		writes := w.writes
		for range 5 {
			g.Expect(w.step()).To(Succeed())
		}
		g.Expect(w.writes).To(Equal(writes), "a finished comparison writes nothing: %v", w.written[max(0, len(w.written)-5):])
		g.Expect(w.stack().Status.ObservedGeneration).To(Equal(int64(-1)), "the base was only read")
	})
	t.Run("the annotation compares again, a kept variant stays until it is let go", func(t *testing.T) {
		g, w := NewWithT(t), newTown(t)
		w.compare(func(c *v1alpha1.LatencyComparison) { c.Spec.Keep = true })
		w.until("kept", func() bool { return w.comparison().Status.Progress == "done, the variants are kept" })
		g.Expect(w.variants()).To(HaveLen(2))
		w.edit(func(c *v1alpha1.LatencyComparison) { c.Spec.Keep = false })
		w.until("over", w.over)
		w.nothingLeft(nil)
		first := w.comparison().Status
		w.edit(func(c *v1alpha1.LatencyComparison) {
			c.Annotations = map[string]string{v1alpha1.RequestedAtAnnotation: "later"}
		})
		w.until("begun again", func() bool { return w.comparison().Status.Compared != first.Compared })
		g.Expect(w.comparison().Status.Pairs).To(BeEmpty())
		w.until("over again", w.over)
		g.Expect(w.comparison().Status.LastHandledReconcileAt).To(Equal("later"))
		g.Expect(w.comparison().Status.Verdict).To(Equal(v1alpha1.VerdictPassed))
		w.nothingLeft(nil)
	})
	t.Run("a comparison that is deleted in the middle leaves nothing", func(t *testing.T) {
		g, w := NewWithT(t), newTown(t)
		w.compare()
		w.until("measuring", func() bool {
			return strings.HasPrefix(w.comparison().Status.Progress, "round 1") && len(w.users.held) > 0
		})
		var namespaces []string
		for _, namespace := range w.variants() {
			namespaces = append(namespaces, namespace.Name)
		}
		w.must(server.Delete(t.Context(), w.comparison()))
		w.until("gone", func() bool {
			err := server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "media"}, &v1alpha1.LatencyComparison{})
			return apierrors.IsNotFound(err)
		})
		g.Expect(namespaces).To(HaveLen(2))
		w.nothingLeft(namespaces)
	})
	t.Run("a changed spec takes the old variants away before the new ones are made", func(t *testing.T) {
		g, w := NewWithT(t), newTown(t)
		w.compare()
		w.until("made", func() bool { return len(w.variants()) == 2 })
		w.edit(func(c *v1alpha1.LatencyComparison) { c.Spec.Variants[1].Name = "loose" })
		w.until("over", w.over)
		g.Expect(w.comparison().Status.Variants[1].Name).To(Equal("loose"))
		w.nothingLeft(nil)
	})
	t.Run("a volume that its provisioner does not delete is named, and waited for", func(t *testing.T) {
		g, w := NewWithT(t), newTown(t)
		w.stuck = true
		w.compare()
		w.until("only volumes are left", func() bool { return w.comparison().Status.Verdict != "" && len(w.variants()) == 0 })
		w.must(w.step())
		ready := conditionIn(w.comparison().Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonCleaningUp))
		g.Expect(ready.Message).To(ContainSubstring("PersistentVolume pv-media-"))
		w.stuck = false
		for _, variant := range w.comparison().Status.Variants {
			w.provision(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: variant.Namespace, DeletionTimestamp: &metav1.Time{Time: w.now}}})
		}
		w.until("over", w.over)
	})
	t.Run("what is left of a comparison without a finalizer is swept up", func(t *testing.T) {
		_, w := NewWithT(t), newTown(t)
		w.compare()
		w.until("measuring", func() bool { return strings.HasPrefix(w.comparison().Status.Progress, "round 1") })
		w.must(server.Delete(t.Context(), w.comparison()))
		w.edit(func(c *v1alpha1.LatencyComparison) { c.Finalizers = nil })
		w.until("gone", func() bool {
			// A watch of the namespaces has the operator look.
			_, err := w.comparisons.Reconcile(t.Context(), requestFor(w.namespace, "media"))
			w.must(err)
			return len(w.variants()) == 0
		})
	})
}

func TestComparisonsThatAreRefused(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*v1alpha1.LatencyComparison)
		says   string
	}{
		"two equal variants": {func(c *v1alpha1.LatencyComparison) {
			c.Spec.Variants[0].Patch = patchOf(`{"postgres":{"durability":"Relaxed"}}`)
		}, "strict and relaxed are the same stack"},
		"a misspelt patch": {func(c *v1alpha1.LatencyComparison) {
			c.Spec.Variants[1].Patch = patchOf(`{"postgres":{"storrage":{}}}`)
		}, `unknown field "storrage"`},
		"a spec that CEL refuses": {func(c *v1alpha1.LatencyComparison) { c.Spec.Variants[1].Patch = patchOf(`{"cache":{"memory":{}}}`) }, "authentik keeps no cache in memory"},
		"a durability that is none": {func(c *v1alpha1.LatencyComparison) {
			c.Spec.Variants[1].Patch = patchOf(`{"postgres":{"durability":"Fast"}}`)
		}, "the API server refuses variant relaxed"},
		"a scenario that cannot be run": {func(c *v1alpha1.LatencyComparison) {
			c.Spec.Scenarios = []v1alpha1.Scenario{{Name: v1alpha1.ScenarioLogin, Iterations: ptr.To(int32(10)), VirtualUsers: ptr.To(int32(20))}}
		}, "variant strict: scenario Login has 20 virtual users"},
		"a base that is not there": {func(c *v1alpha1.LatencyComparison) { c.Spec.StackRef.Name = "nobody" }, "there is no AuthStack nobody"},
		"a database of somebody else's": {func(c *v1alpha1.LatencyComparison) {
			c.Spec.Variants[1].Patch = patchOf(`{"postgres":{"external":{"host":"db","database":"a","secretName":"s"}}}`)
		}, "external database would be shared"},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newTown(t)
			w.compare(row.change)
			w.now = w.now.Add(2 * stackGrace)
			w.must(w.step())
			c := w.comparison()
			stalled := conditionIn(c.Status.Conditions, v1alpha1.ConditionStalled)
			g.Expect(stalled).NotTo(BeNil(), w.describe())
			g.Expect(stalled.Message).To(ContainSubstring(row.says))
			conformant(t, c.Generation, c.Status.ObservedGeneration, c.Status.Conditions)
			g.Expect(w.variants()).To(BeEmpty(), "nothing was made")
			g.Expect(c.Finalizers).To(BeEmpty())
		})
	}
	t.Run("an operator of some namespaces says that it cannot", func(t *testing.T) {
		g, w := NewWithT(t), newTown(t)
		w.comparisons.Namespaces = []string{w.namespace}
		w.compare()
		w.must(w.step())
		g.Expect(conditionIn(w.comparison().Status.Conditions, v1alpha1.ConditionStalled).Message).To(ContainSubstring("--watch-namespaces"))
	})
	t.Run("a base that changes in the middle ends it, and nothing is left", func(t *testing.T) {
		g, w := NewWithT(t), newTown(t)
		w.compare()
		w.until("made", func() bool { return len(w.variants()) == 2 })
		w.change(func(st *v1alpha1.AuthStack) { st.Spec.Host = "other.example.com" })
		w.until("over", w.over)
		c := w.comparison()
		g.Expect(c.Status.Verdict).To(Equal(v1alpha1.VerdictError))
		g.Expect(c.Status.Message).To(ContainSubstring("AuthStack sso changed while it was compared"))
		conformant(t, c.Generation, c.Status.ObservedGeneration, c.Status.Conditions)
		w.nothingLeft(nil)
	})
	t.Run("a variant that cannot be measured ends it, with the reason", func(t *testing.T) {
		g, w := NewWithT(t), newTown(t)
		w.logs.text = "nothing"
		w.compare()
		w.until("over", w.over)
		c := w.comparison()
		g.Expect(c.Status.Verdict).To(Equal(v1alpha1.VerdictError))
		g.Expect(c.Status.Message).To(ContainSubstring("variant strict could not be measured (round-1: Error, twice)"))
		conformant(t, c.Generation, c.Status.ObservedGeneration, c.Status.Conditions)
		w.nothingLeft(nil)
	})
}

// The operator dies before or after a write, at random places all over a comparison; the next one comes
// to the same end.
func TestOperatorThatDiesDuringAComparison(t *testing.T) {
	reference := newTown(t)
	reference.compare()
	reference.until("over", reference.over)
	writes := reference.writes
	t.Logf("a comparison of two variants in two rounds takes %d writes", writes)
	random := rand.New(rand.NewPCG(3, 4))
	for range 4 {
		g, w := NewWithT(t), newTown(t)
		at, after := 1+random.IntN(writes), random.IntN(2) == 0
		again := at + 1 + random.IntN(writes)
		died := errors.New("the operator was killed")
		dead := false
		w.fault = func(write int, _ string, done bool) error {
			if dead || (write == at || write == again) && done == after {
				dead = true
				return died
			}
			return nil
		}
		w.compare()
		var known []string
		w.until("over", func() bool {
			if dead {
				dead = false
				w.restart()
			}
			for _, variant := range w.comparison().Status.Variants {
				known = append(known, variant.Namespace)
			}
			return w.over()
		})
		c := w.comparison()
		g.Expect(c.Status.Verdict).To(Equal(v1alpha1.VerdictPassed), "killed at %d and %d: %s", at, again, c.Status.Message)
		g.Expect(c.Status.Pairs).To(Equal(reference.comparison().Status.Pairs), "killed at %d and %d", at, again)
		w.nothingLeft(known)
	}
}

func (w *town) edit(change func(*v1alpha1.LatencyComparison)) {
	w.t.Helper()
	c := w.comparison()
	before := c.DeepCopy()
	change(c)
	w.must(server.Patch(w.t.Context(), c, client.MergeFrom(before)))
	w.now = w.now.Add(time.Second)
}

package controllers

import (
	"testing"

	"authstack.dev/authstack/api/v1alpha1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
)

func TestAuthStackBecomesReady(t *testing.T) {
	t.Run("the smallest stack becomes Ready and is measured", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create()
		w.until("Ready", w.ready)
		w.settle()
		st := w.stack()
		g.Expect(st.Status.IdentityProvider.MigratedVersion).To(Equal("2025.12.4"))
		g.Expect(st.Status.Latency).NotTo(BeNil(), w.describe())
		g.Expect(st.Status.Latency.Verdict).To(Equal(v1alpha1.VerdictPassed), w.describe())
		g.Expect(st.Status.Latency.LoginP95).To(Equal("300ms"))
		g.Expect(meta.IsStatusConditionTrue(st.Status.Conditions, v1alpha1.ConditionLatencyMet)).To(BeTrue())
		g.Expect(w.latencyTests()).To(HaveLen(1))
		g.Expect(w.users.held).To(BeEmpty())
		g.Expect(w.users.made).To(Equal(1))
		g.Expect(w.database.analyzed).To(HaveLen(1))
	})
}

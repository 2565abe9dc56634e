package controllers

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
)

// conformant holds conditions to what kstatus and Flux read out of them.
func conformant(t *testing.T, generation, observed int64, conditions []metav1.Condition) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(observed).To(Equal(generation))
	ready := conditionIn(conditions, v1alpha1.ConditionReady)
	g.Expect(ready).NotTo(BeNil())
	reconciling, stalled := conditionIn(conditions, v1alpha1.ConditionReconciling), conditionIn(conditions, v1alpha1.ConditionStalled)
	g.Expect(reconciling != nil && stalled != nil).To(BeFalse(), "Reconciling and Stalled exclude each other")
	for _, abnormal := range []*metav1.Condition{reconciling, stalled} {
		if abnormal != nil {
			g.Expect(abnormal.Status).To(Equal(metav1.ConditionTrue), "a condition of negative polarity is only present while True")
		}
	}
	if ready.Status == metav1.ConditionTrue {
		g.Expect(reconciling).To(BeNil())
		g.Expect(stalled).To(BeNil())
	} else if ready.Reason != v1alpha1.ReasonSuspended {
		g.Expect(reconciling != nil || stalled != nil).To(BeTrue(), "what is not Ready is under way or stuck")
	}
	for _, c := range conditions {
		g.Expect(c.Message).NotTo(BeEmpty(), c.Type)
		g.Expect(len(c.Message)).To(BeNumerically("<=", 1024))
		g.Expect(c.LastTransitionTime.IsZero()).To(BeFalse())
	}
}

func conditionIn(conditions []metav1.Condition, kind string) *metav1.Condition {
	return meta.FindStatusCondition(conditions, kind)
}

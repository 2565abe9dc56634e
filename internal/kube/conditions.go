package kube

import (
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
)

// messageLimit bounds the message of a condition and of an event.
const messageLimit = 1024

// SetCondition sets a condition; its transition time moves only with its status.
func SetCondition(conditions *[]metav1.Condition, generation int64, now metav1.Time, kind string, status metav1.ConditionStatus, reason, message string) {
	condition := metav1.Condition{Type: kind, Status: status, Reason: reason, Message: Truncate(message),
		ObservedGeneration: generation, LastTransitionTime: now}
	if old := meta.FindStatusCondition(*conditions, kind); old != nil && old.Status == status {
		condition.LastTransitionTime = old.LastTransitionTime
	}
	meta.SetStatusCondition(conditions, condition)
}

// SetAbnormal sets Reconciling and Stalled, which are present only while True, from what holds now.
func SetAbnormal(conditions *[]metav1.Condition, generation int64, now metav1.Time, kind string, present bool, reason, message string) {
	if !present {
		meta.RemoveStatusCondition(conditions, kind)
		return
	}
	SetCondition(conditions, generation, now, kind, metav1.ConditionTrue, reason, message)
}

// Bool is the status of a condition that stands for a yes or no.
func Bool(yes bool) metav1.ConditionStatus {
	if yes {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// Truncate shortens a message at a rune and says that it did.
func Truncate(message string) string {
	message = strings.TrimSpace(message)
	if len(message) <= messageLimit {
		return message
	}
	const mark = " …"
	cut := messageLimit - len(mark)
	for cut > 0 && !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + mark
}

// Since is when the object began to reconcile, or nil.
func Since(conditions []metav1.Condition) *metav1.Time {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReconciling); c != nil {
		return &c.LastTransitionTime
	}
	return nil
}

package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// EmitTransitions says in events which of the conditions changed their status or reason. An event's
// reason is the condition's. Normal is whether a condition's present state is nothing to worry about.
func EmitTransitions(recorder events.EventRecorder, about runtime.Object, before, after []metav1.Condition, types []string,
	normal func(metav1.Condition) bool,
) {
	for _, kind := range types {
		now := meta.FindStatusCondition(after, kind)
		if now == nil {
			continue
		}
		was := meta.FindStatusCondition(before, kind)
		if was != nil && was.Status == now.Status && was.Reason == now.Reason {
			continue
		}
		level := corev1.EventTypeWarning
		if normal(*now) {
			level = corev1.EventTypeNormal
		}
		recorder.Eventf(about, nil, level, now.Reason, kind, "%s", Truncate(now.Message))
	}
}

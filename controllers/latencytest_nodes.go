package controllers

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"authstack.dev/authstack/internal/latency"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get

// pressures are the conditions of a node under which the kubelet reclaims and evicts.
var pressures = []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure}

func nodesOf(pods []latency.PodState) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Node)
	}
	return names
}

// nodes are those of the names, each once, as they are now. One that cannot be read, for want of the right or because it is
// gone, is unknown: a measurement does not fail for that.
func (r *LatencyTestReconciler) nodes(ctx context.Context, names []string) []latency.NodeState {
	var states []latency.NodeState
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if name == "" {
			continue
		}
		state, node := latency.NodeState{Name: name}, &corev1.Node{}
		state.Unknown = r.Reader.Get(ctx, types.NamespacedName{Name: name}, node) != nil
		for _, condition := range node.Status.Conditions {
			if slices.Contains(pressures, condition.Type) && condition.Status == corev1.ConditionTrue {
				state.Pressure = append(state.Pressure, string(condition.Type))
			}
		}
		states = append(states, state)
	}
	return states
}

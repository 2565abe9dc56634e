package kube

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// patient are the waiting reasons of a container that is merely starting.
var patient = []string{"", "ContainerCreating", "PodInitializing"}

// PodProblem says in words why a Pod does not come up, or is empty. It holds what Kubernetes says and
// nothing of what the container printed.
func PodProblem(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodFailed {
		return strings.TrimSpace(fmt.Sprintf("Pod %s failed: %s %s", pod.Name, pod.Status.Reason, pod.Status.Message))
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("Pod %s cannot be scheduled: %s", pod.Name, condition.Message)
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil || slices.Contains(patient, waiting.Reason) {
			continue
		}
		problem := fmt.Sprintf("container %s of Pod %s: %s", status.Name, pod.Name, waiting.Reason)
		if waiting.Reason == "CrashLoopBackOff" {
			// Its message is a back-off that grows with each try; why the container ended says more.
			if last := status.LastTerminationState.Terminated; last != nil {
				problem += fmt.Sprintf(", it ended with %s and exit code %d", last.Reason, last.ExitCode)
			}
			return problem
		}
		if waiting.Message != "" {
			problem += ": " + waiting.Message
		}
		return problem
	}
	return ""
}

// PodProblems is the first problem of several Pods, or empty; in the order of their names, lest a
// message change back and forth.
func PodProblems(pods []corev1.Pod) string {
	sorted := slices.Clone(pods)
	slices.SortFunc(sorted, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for i := range sorted {
		if sorted[i].DeletionTimestamp != nil {
			continue
		}
		if problem := PodProblem(&sorted[i]); problem != "" {
			return problem
		}
	}
	return ""
}

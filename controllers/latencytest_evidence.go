package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/internal/stack"
)

const (
	// stuckAfter is how long a Pod may fail to start before the run is over: an image that cannot be
	// pulled will not come by the Job's deadline either.
	stuckAfter = 2 * time.Minute
	// overdueAfter is how long after its deadline a Job is given up that nobody ends.
	overdueAfter = 5 * time.Minute
	// logLimit bounds what is read of a log.
	logLimit = 64 << 20
	// logPatience is how long after its end the log of a Job is asked for again when it cannot be read.
	logPatience = 2 * time.Minute
	// emptyLogPatience is the same for a log without a result of a k6 that failed: killed, or its script
	// could not be read. It has written none, and the kubelet keeps what it wrote within a moment.
	emptyLogPatience = 5 * time.Second
	// cutLogPatience is the same for a log that can be read and has no whole result, though k6 had a chance to write one.
	cutLogPatience = 30 * time.Second
)

// stuck are the reasons of a waiting container that do not go away.
var stuck = []string{"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}

// over is whether a Job has come to an end, or to a standstill.
func (r *LatencyTestReconciler) over(ctx context.Context, t *run, job *batchv1.Job) (bool, error) {
	if jobCondition(job, batchv1.JobComplete) != nil || jobCondition(job, batchv1.JobFailed) != nil {
		return true, nil
	}
	age := t.now.Sub(job.CreationTimestamp.Time)
	if job.CreationTimestamp.IsZero() || age < stuckAfter {
		return false, nil
	}
	if age > t.plan.Timeout+overdueAfter {
		return true, nil
	}
	pods, err := r.jobPods(ctx, job)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return waitingReason(pod) != "" }), nil
}

func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// newestPod of a Job that has one at a time, or nil.
func newestPod(ctx context.Context, reader client.Reader, job *batchv1.Job) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		return nil, fmt.Errorf("listing the Pods of Job %s: %w", job.Name, err)
	}
	if len(pods.Items) == 0 {
		return nil, nil
	}
	newest := slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return &newest, nil
}

// jobPods are the Pods of a Job in the order of their completion index, of each index the newest.
func (r *LatencyTestReconciler) jobPods(ctx context.Context, job *batchv1.Job) ([]*corev1.Pod, error) {
	var pods corev1.PodList
	if err := r.Reader.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		return nil, fmt.Errorf("listing the Pods of Job %s: %w", job.Name, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	newest := map[int]*corev1.Pod{}
	for i := range pods.Items {
		// A Pod without the index is of a Job that an older operator made: its only one.
		index, _ := strconv.Atoi(pods.Items[i].Labels[batchv1.JobCompletionIndexAnnotation])
		newest[index] = &pods.Items[i]
	}
	var list []*corev1.Pod
	for _, index := range slices.Sorted(maps.Keys(newest)) {
		list = append(list, newest[index])
	}
	return list, nil
}

// waitingReason is why a Pod does not start, in Kubernetes' word, or empty.
func waitingReason(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			return condition.Reason
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil && slices.Contains(stuck, waiting.Reason) {
			return waiting.Reason
		}
	}
	return ""
}

// outcome of a Job and the result in its log. Again is whether the log should be asked for later.
func (r *LatencyTestReconciler) jobOutcome(ctx context.Context, t *run, job *batchv1.Job) (out latency.JobOutcome, found *result.Run, again bool, err error) {
	out.Name = job.Name
	out.Observed = job.Annotations[observedAnnotation] != ""
	if failed := jobCondition(job, batchv1.JobFailed); failed != nil {
		out.DeadlineExceeded = failed.Reason == batchv1.JobReasonDeadlineExceeded
	}
	ended := job.CreationTimestamp.Time
	for _, condition := range job.Status.Conditions {
		if condition.LastTransitionTime.After(ended) {
			ended = condition.LastTransitionTime.Time
		}
	}
	pods, err := r.jobPods(ctx, job)
	if err != nil {
		return out, nil, false, err
	}
	if len(pods) < int(t.plan.Pods) {
		out.LogError = errors.New("a Pod of the Job is gone")
		return out, nil, false, nil
	}
	taking, err := r.stackPods(ctx, t)
	if err != nil {
		return out, nil, false, err
	}
	names := nodesOf(taking)
	var runs []*result.Run
	for _, pod := range pods {
		names = append(names, pod.Spec.NodeName)
		run, patience := r.podOutcome(ctx, pod, &out)
		if run == nil {
			// One part of the load without a result makes the rest worthless.
			return out, nil, t.now.Sub(ended) < patience, nil
		}
		runs = append(runs, run)
	}
	out.Nodes = r.nodes(ctx, names)
	return out, result.MergePods(runs...), false, nil
}

// podOutcome is how one Pod of a Job ended, noted in out, and the result in its log, or nil. Patience is
// how long after the end of its Job the log should be asked for again.
func (r *LatencyTestReconciler) podOutcome(ctx context.Context, pod *corev1.Pod, out *latency.JobOutcome) (found *result.Run, patience time.Duration) {
	reason := pod.Status.Reason
	if reason == "" {
		reason = waitingReason(pod)
	}
	ran := false
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != latency.K6Container || status.State.Terminated == nil {
			continue
		}
		ran = true
		if code := status.State.Terminated.ExitCode; out.ExitCode == nil || *out.ExitCode == 0 {
			out.ExitCode = &code
		}
		if why := status.State.Terminated.Reason; reason == "" && why != "Completed" && why != "Error" {
			reason = why
		}
	}
	// A Job out of time has its Pods deleted by Kubernetes.
	if reason == "" && !out.DeadlineExceeded && pod.DeletionTimestamp != nil && out.ExitCode != nil && *out.ExitCode != 0 {
		reason = latency.PodDeleted
	}
	if out.PodReason == "" {
		out.PodReason, out.PodMessage = reason, pod.Status.Message
	}
	if !ran && reason != "" {
		out.LogError = result.ErrNoResult
		return nil, 0
	}
	var said string
	found, said, out.LogError = r.readLog(ctx, pod.Namespace, pod.Name)
	out.Said = cmp.Or(out.Said, said)
	return found, patienceWith(out.LogError, out.ExitCode)
}

// patienceWith is how long after the end of its Job a log is asked for again that gave this error.
func patienceWith(err error, exitCode *int32) time.Duration {
	switch {
	case errors.Is(err, result.ErrCorrupt), errors.Is(err, result.ErrUnsupportedVersion):
		return 0
	case errors.Is(err, result.ErrNoResult) && exitCode != nil && *exitCode != 0:
		return emptyLogPatience
	case errors.Is(err, result.ErrNoResult), errors.Is(err, result.ErrTruncated):
		return cutLogPatience
	default:
		return logPatience
	}
}

func (r *LatencyTestReconciler) readLog(ctx context.Context, namespace, pod string) (found *result.Run, said string, err error) {
	stream, err := r.Logs.Stream(ctx, namespace, pod, latency.K6Container)
	if err != nil {
		return nil, "", fmt.Errorf("the log cannot be read: %w", err)
	}
	defer func() { _ = stream.Close() }()
	words := &latency.Said{}
	found, err = result.Read(io.TeeReader(io.LimitReader(stream, logLimit), words))
	return found, words.Error, err
}

// measured are the values of the label app.kubernetes.io/name on the Pods that take part in an answer.
var measured = []string{"authentik", "authelia", "postgres", "redis"}

// stackPods are the Pods of the stack as they are now: those of the identity provider, of the cache
// and of the database, Zalando's too, which carry Zalando's labels and not ours.
func (r *LatencyTestReconciler) stackPods(ctx context.Context, t *run) ([]latency.PodState, error) {
	var pods, zalando corev1.PodList
	err := r.Reader.List(ctx, &pods, client.InNamespace(t.test.Namespace), client.MatchingLabels{v1alpha1.StackLabel: t.stack.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the Pods of the stack: %w", err)
	}
	if cluster := stack.ZalandoClusterName(t.stack); cluster != "" {
		err := r.Reader.List(ctx, &zalando, client.InNamespace(t.test.Namespace), client.MatchingLabels{"application": "spilo", "cluster-name": cluster})
		if err != nil {
			return nil, fmt.Errorf("listing the Pods of the database: %w", err)
		}
	}
	var states []latency.PodState
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !slices.Contains(measured, pod.Labels["app.kubernetes.io/name"]) || pod.Labels[latency.TestLabel] != "" {
			continue
		}
		states = append(states, podState(pod))
	}
	for i := range zalando.Items {
		states = append(states, podState(&zalando.Items[i]))
	}
	slices.SortFunc(states, func(a, b latency.PodState) int { return strings.Compare(a.Name, b.Name) })
	return states, nil
}

func podState(pod *corev1.Pod) latency.PodState {
	state := latency.PodState{Name: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName, Role: pod.Labels["spilo-role"]}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			state.Ready, state.ReadySince = condition.Status == corev1.ConditionTrue, condition.LastTransitionTime.UTC()
		}
	}
	var images []string
	for _, container := range pod.Status.ContainerStatuses {
		images = append(images, cmp.Or(container.ImageID, container.Image))
		state.RestartCount += container.RestartCount
	}
	slices.Sort(images)
	state.Image = strings.Join(images, ",")
	return state
}

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/probe"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/internal/stack/storage"
)

// probeTries is how many probes in a row may lose their Pod before that is the result.
const probeTries = 3

// probeStuckAfter is how long a Pod may fail to start: its volume has to be made first.
const probeStuckAfter = 3 * time.Minute

// followProbe takes the figures when the Job has ended, and removes it once they are in the status.
func (r *AuthStackReconciler) followProbe(ctx context.Context, s *scope, state *v1alpha1.StorageProbeStatus) error {
	job := &batchv1.Job{}
	found, err := r.get(ctx, types.NamespacedName{Namespace: s.stack.Namespace, Name: state.Running}, job)
	if err != nil {
		return err
	}
	switch {
	case !found || !job.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(job, s.stack):
		// Gone by our hand or by somebody's; what is left of it goes too.
		if err := r.removeProbe(ctx, s.stack, state.Running); err != nil {
			return err
		}
		state.Running = ""
		return nil
	case state.CompletedRun == state.Run:
		// The figures were written, so nothing is lost with the Job.
		return r.removeProbe(ctx, s.stack, state.Running)
	}
	ended, err := r.probeEnded(ctx, s, job)
	if err != nil {
		return err
	}
	if !ended && s.facts.Database == nil {
		// Where the database does not answer, or its commits, the disk may be dead: fio that waits for it cannot be ended, and its
		// Pod does not end before, though the result is written.
		ended, err = r.probeWritten(ctx, s, job)
		if err != nil {
			return err
		}
	}
	if ended {
		return r.collectProbe(ctx, s, state, job)
	}
	running, err := testRuns(ctx, r.Client)
	if err != nil {
		return err
	}
	if running {
		// A LatencyTest and a probe that began in the same moment: the probe gives way.
		if err := r.removeProbe(ctx, s.stack, state.Running); err != nil {
			return err
		}
		state.Running = ""
		if about(job).Request != "" {
			state.LastHandledRequestAt = ""
		}
		return nil
	}
	s.lookWithin(look)
	return nil
}

// about is what a Job probes. A note that somebody broke leaves it empty.
func about(job *batchv1.Job) probedVolume {
	var note probedVolume
	_ = json.Unmarshal([]byte(job.Annotations[probedAnnotation]), &note)
	return note
}

// probeEnded is whether the Job has come to its end, or to a standstill.
func (r *AuthStackReconciler) probeEnded(ctx context.Context, s *scope, job *batchv1.Job) (bool, error) {
	age := s.now.Sub(job.CreationTimestamp.Time)
	switch {
	case jobEnded(job):
		return true, nil
	case age < probeStuckAfter:
		return false, nil
	case age > time.Duration(ptr.Deref(job.Spec.ActiveDeadlineSeconds, 0))*time.Second+overdueAfter:
		return true, nil
	}
	pod, err := newestPod(ctx, r.Reader, job)
	if err != nil || pod == nil {
		return false, err
	}
	return pod.Status.Phase == corev1.PodPending, nil
}

// probeWritten is whether the result of a probe is in its log already.
func (r *AuthStackReconciler) probeWritten(ctx context.Context, s *scope, job *batchv1.Job) (bool, error) {
	pod, err := newestPod(ctx, r.Reader, job)
	if err != nil || pod == nil {
		return false, err
	}
	found, _, _ := r.probeLog(ctx, s, job, pod)
	return found != nil, nil
}

// probeHanging answers who asks for a probe while a commit of the database does not come back: none is begun, since its claim
// would not be filled, or its Pod not end.
func (r *AuthStackReconciler) probeHanging(s *scope, state *v1alpha1.StorageProbeStatus, answer storage.ProbeAnswer) error {
	since := s.facts.CommitHangsSince
	if since.IsZero() {
		s.lookWithin(commitHangsAfter) // It may come back yet.
		return nil
	}
	if answer.Asked {
		*state = v1alpha1.StorageProbeStatus{Run: state.Run, CompletedRun: state.CompletedRun, LastHandledRequestAt: s.stack.Annotations[v1alpha1.ProbeRequestedAtAnnotation],
			CompletedAt: ptr.To(metav1.NewTime(s.now)), Findings: []v1alpha1.StorageFinding{{Kind: v1alpha1.FindingHangs, Message: fmt.Sprintf(
				"the storage hangs: a commit of the database has been waiting since %s, and a probe would wait like it; ask for one when the storage writes again",
				since.UTC().Format(time.RFC3339))}}}
	}
	return nil
}

// collectProbe reads what the probe printed.
func (r *AuthStackReconciler) collectProbe(ctx context.Context, s *scope, state *v1alpha1.StorageProbeStatus, job *batchv1.Job) error {
	pod, err := newestPod(ctx, r.Reader, job)
	if err != nil {
		return err
	}
	if pod == nil && state.Run%probeTries != 0 {
		// Somebody took the Pod away, or its node. The next one is begun when nothing is in its way.
		if about(job).Request != "" {
			state.LastHandledRequestAt = ""
		}
		state.Running = ""
		return r.removeProbe(ctx, s.stack, job.Name)
	}
	found, problem, again := r.probeLog(ctx, s, job, pod)
	if again {
		s.lookWithin(look)
		return nil
	}
	note := about(job)
	collected := &v1alpha1.StorageProbeStatus{Problem: problem}
	if found != nil {
		collected = probe.Status(found, storage.ProbeSubject(s.after))
	}
	collected.Problem = s.redactor.Text(collected.Problem)
	collected.Running, collected.Run, collected.CompletedRun, collected.LastHandledRequestAt = state.Running, state.Run, state.Run, state.LastHandledRequestAt
	collected.StorageClassName, collected.VolumeSize, collected.Node = note.Class, note.Size, note.Node
	if pod != nil && pod.Spec.NodeName != "" {
		collected.Node = pod.Spec.NodeName
	}
	collected.CompletedAt = ptr.To(metav1.NewTime(s.now))
	*state = *collected
	// The Job and its volume go at the next look, once the figures are in the status.
	s.lookWithin(time.Second)
	return nil
}

// probeLog is the result in the log, or why there is none; again is whether to look later.
func (r *AuthStackReconciler) probeLog(ctx context.Context, s *scope, job *batchv1.Job, pod *corev1.Pod) (found *probe.Result, problem string, again bool) {
	if pod == nil {
		return nil, "the Pod of the probe is gone and its figures with it; set the annotation " + v1alpha1.ProbeRequestedAtAnnotation + " to probe again", false
	}
	if pod.Status.Phase == corev1.PodPending {
		return nil, "the Pod of the probe did not start: " + orUnknown(kube.PodProblem(pod)), false
	}
	stream, err := r.Logs.Stream(ctx, job.Namespace, pod.Name, probe.Container)
	if err == nil {
		defer func() { _ = stream.Close() }()
		found, err = probe.Read(io.LimitReader(stream, logLimit))
	}
	switch {
	case err == nil && found.PlanID == job.Name:
		return found, "", false
	case err == nil:
		return nil, fmt.Sprintf("the log of Job %s holds the result of %.63q", job.Name, found.PlanID), false
	case errors.Is(err, result.ErrUnsupportedVersion):
		return nil, "the image of the probe writes another version of the result than this operator reads; take the image of the operator's release", false
	case errors.Is(err, result.ErrCorrupt):
		return nil, "the result in the log of the probe does not match its checksum", false
	}
	// The log of a container that has only just ended may not be whole.
	if failed := jobCondition(job, batchv1.JobFailed); failed == nil && s.now.Sub(endOf(job)) < logPatience {
		return nil, "", true
	}
	for _, status := range pod.Status.ContainerStatuses {
		if end := status.State.Terminated; end != nil && end.Reason == "OOMKilled" {
			return nil, "the probe was killed for want of memory", false
		}
	}
	if pod.Status.Reason != "" {
		return nil, fmt.Sprintf("the Pod of the probe was taken off its node (%s)", pod.Status.Reason), false
	}
	if slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Reason == batchv1.JobReasonDeadlineExceeded }) {
		return nil, "the probe did not end in time: the storage hangs, or is very slow", false
	}
	return nil, "the probe left no result: " + err.Error(), false
}

func orUnknown(reason string) string {
	if reason == "" {
		return "Kubernetes does not say why"
	}
	return reason
}

// endOf a Job by its conditions.
func endOf(job *batchv1.Job) time.Time {
	ended := job.CreationTimestamp.Time
	for _, condition := range job.Status.Conditions {
		if condition.LastTransitionTime.After(ended) {
			ended = condition.LastTransitionTime.Time
		}
	}
	return ended
}

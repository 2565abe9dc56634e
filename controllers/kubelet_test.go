package controllers

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/internal/probe"
)

// kubelet makes workloads ready, gives Pods to Deployments and Jobs, and ends Jobs.
func (w *world) kubelet() {
	ctx := w.t.Context()
	var deployments appsv1.DeploymentList
	w.must(server.List(ctx, &deployments, client.InNamespace(w.namespace)))
	for i := range deployments.Items {
		d := &deployments.Items[i]
		want := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas,
			ReadyReplicas: *d.Spec.Replicas, AvailableReplicas: *d.Spec.Replicas}
		if d.Status.ObservedGeneration != want.ObservedGeneration || d.Status.ReadyReplicas != want.ReadyReplicas {
			d.Status = want
			w.must(server.Status().Update(ctx, d))
			w.pod(d.Name+"-0", d.Spec.Template.Labels, d.Spec.Template.Spec, nil)
		}
	}
	var sets appsv1.StatefulSetList
	w.must(server.List(ctx, &sets, client.InNamespace(w.namespace)))
	for i := range sets.Items {
		s := &sets.Items[i]
		if s.Status.ObservedGeneration != s.Generation {
			s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
				CurrentRevision: "a", UpdateRevision: "a"}
			w.must(server.Status().Update(ctx, s))
		}
	}
	var jobs batchv1.JobList
	w.must(server.List(ctx, &jobs, client.InNamespace(w.namespace)))
	for i := range jobs.Items {
		w.endJob(&jobs.Items[i])
	}
}

func (w *world) endJob(job *batchv1.Job) {
	if len(job.Status.Conditions) > 0 {
		return
	}
	labels := map[string]string{batchv1.JobNameLabel: job.Name}
	for name, value := range job.Spec.Template.Labels {
		labels[name] = value
	}
	code := int32(0)
	finish := func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodSucceeded
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: job.Spec.Template.Spec.Containers[0].Name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Completed"}}}}
		if container := pod.Spec.Containers[0].Name; container == probe.Container && w.prober != nil {
			w.prober(pod)
		} else if container != probe.Container && w.k6 != nil {
			w.k6(pod)
		}
	}
	pod := w.pod(job.Name+podSuffix, labels, job.Spec.Template.Spec, finish)
	for index := 1; index < int(*job.Spec.Completions); index++ {
		indexed := maps.Clone(labels)
		indexed[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
		if part := w.pod(fmt.Sprintf("%s%s-%d", job.Name, podSuffix, index), indexed, job.Spec.Template.Spec, finish); part.Status.Phase == corev1.PodFailed {
			pod = part
		}
	}
	now := metav1.NewTime(time.Now())
	if pod.Status.Phase == corev1.PodPending || pod.Status.Phase == corev1.PodRunning {
		return
	}
	job.Status.StartTime = &now
	kinds := []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}
	if pod.Status.Phase == corev1.PodFailed {
		kinds = []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}
		job.Status.Failed = 1
	} else {
		job.Status.CompletionTime, job.Status.Succeeded = &now, *job.Spec.Completions
		all := "0"
		if n := *job.Spec.Completions; n > 1 {
			all = fmt.Sprintf("0-%d", n-1)
		}
		if job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion {
			job.Status.CompletedIndexes = all
		}
	}
	for _, kind := range kinds {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, Reason: "BackoffLimitExceeded"})
	}
	w.must(server.Status().Update(w.t.Context(), job))
}

// databaseUnready takes the readiness of the database away; its Pod runs on, at that address.
func (w *world) databaseUnready(address string) {
	set := &appsv1.StatefulSet{}
	w.must(server.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: w.stack().Name + "-postgres"}, set))
	set.Status.ReadyReplicas, set.Status.AvailableReplicas = 0, 0
	w.must(server.Status().Update(w.t.Context(), set))
	spec := corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "postgres", Image: "postgres"}}}
	w.pod(set.Name+"-0", set.Spec.Template.Labels, spec, func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
	})
}

func (w *world) pod(name string, labels map[string]string, spec corev1.PodSpec, status func(*corev1.Pod)) *corev1.Pod {
	ctx := w.t.Context()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: labels}, Spec: *spec.DeepCopy()}
	pod.Spec.ServiceAccountName = ""
	err := server.Create(ctx, pod)
	if apierrors.IsAlreadyExists(err) {
		w.must(server.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, pod))
	} else {
		w.must(err)
	}
	if status == nil {
		status = func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ImageID: "sha256:1", Ready: true}}
		}
	}
	status(pod)
	// A test may have taken the Pod away.
	w.must(client.IgnoreNotFound(server.Status().Update(ctx, pod)))
	return pod
}

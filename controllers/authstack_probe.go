package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/schedule"
	"authstack.dev/authstack/internal/stack"
	"authstack.dev/authstack/internal/stack/storage"
)

const (
	// probeAgain is how long a probe that somebody waits for waits for its turn, probeLater one that
	// nobody did: a thousand stacks that are made at once all wait for one.
	probeAgain = 30 * time.Second
	probeLater = 5 * time.Minute
	// probedAnnotation on the Job says what it probes, so that an operator that starts in the middle knows.
	probedAnnotation = "authstack.dev/probed"
)

// probedVolume is what a Job probes.
type probedVolume struct {
	Class   string `json:"class"`
	Size    string `json:"size"`
	Node    string `json:"node"`
	Request string `json:"request,omitempty"`
}

// probe measures the storage where that is due. It is no part of whether a stack is Ready, and gives
// way to every LatencyTest.
func (r *AuthStackReconciler) probe(ctx context.Context, s *scope) error {
	stored := s.after.Status.Storage
	if stored == nil {
		meta.RemoveStatusCondition(&s.after.Status.Conditions, v1alpha1.ConditionStorageProbed)
		return nil
	}
	state := v1alpha1.StorageProbeStatus{}
	if stored.Probe != nil {
		stored.Probe.DeepCopyInto(&state)
	}
	var err error
	if state.Running != "" {
		err = r.followProbe(ctx, s, &state)
	} else {
		err = r.considerProbe(ctx, s, &state)
	}
	if err != nil {
		return fmt.Errorf("probing the storage: %w", err)
	}
	stored.Probe = nil
	if state.Run != 0 || state.CompletedAt != nil || state.Problem != "" {
		stored.Probe = &state
	}
	s.storageProbed(stored.Probe)
	return nil
}

// considerProbe begins a probe, or copies the figures of one, where one is due and nothing is in its way.
func (r *AuthStackReconciler) considerProbe(ctx context.Context, s *scope, state *v1alpha1.StorageProbeStatus) error {
	question := storage.ProbeQuestion{Stack: s.after, Ready: s.ready(), Classes: s.facts.StorageClasses, Size: stack.DatabaseSize(s.stack)}
	if r.Images.Probe == "" {
		// Published nowhere, so that there is no default; only who asks for a probe is told.
		if request := s.stack.Annotations[v1alpha1.ProbeRequestedAtAnnotation]; request != "" && request != state.LastHandledRequestAt {
			*state = v1alpha1.StorageProbeStatus{Run: state.Run, LastHandledRequestAt: request,
				Problem: "the operator has no image of the storage probe: build it with make docker-build PROBE_IMG=… and set images.probe in the chart's values"}
		}
		return nil
	}
	// Without the node first: it costs a request, and mostly nothing is due.
	if answer := storage.AskProbe(question); !answer.Due && answer.Problem == "" && !nodeMayDiffer(s, state) {
		return nil
	}
	pod, err := r.databasePod(ctx, s.stack)
	if err != nil {
		return err
	}
	question.Node = pod.Spec.NodeName
	answer := storage.AskProbe(question)
	if answer.Problem != "" && answer.Problem != state.Problem {
		*state = v1alpha1.StorageProbeStatus{Run: state.Run, LastHandledRequestAt: state.LastHandledRequestAt, Problem: answer.Problem}
	}
	if !answer.Due {
		return nil
	}
	if !r.commits.since(s.stack.UID).IsZero() {
		return r.probeHanging(s, state, answer)
	}
	if !answer.Asked {
		var all v1alpha1.AuthStackList
		if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing AuthStacks: %w", err)
		}
		if copied := storage.Copy(all.Items, question); copied != nil {
			*state = *copied
			return nil
		}
	}
	busy, err := r.probeWaits(ctx, s)
	if err != nil {
		return err
	}
	if busy {
		// A comparison waits for the probes of its variants.
		awaited := answer.Asked || s.stack.Labels[v1alpha1.ComparisonLabel] != ""
		s.lookWithin(map[bool]time.Duration{true: probeAgain, false: probeLater}[awaited])
		return nil
	}
	return r.beginProbe(ctx, s, state, question, pod)
}

// nodeMayDiffer is whether the figures are of a node's disk while the database may have moved.
func nodeMayDiffer(s *scope, state *v1alpha1.StorageProbeStatus) bool {
	medium := s.after.Status.Storage.Medium
	return state.Node != "" && stack.ZalandoClusterName(s.stack) != "" && s.ready() &&
		(medium == v1alpha1.MediumNodeLocal || medium == v1alpha1.MediumUnknown)
}

// lookWithin has the stack looked at again after that time at the latest.
func (s *scope) lookWithin(d time.Duration) {
	if s.before == 0 || d < s.before {
		s.before = d
	}
}

// databasePod of the stack's primary; an empty one where it is not there.
func (r *AuthStackReconciler) databasePod(ctx context.Context, st *v1alpha1.AuthStack) (*corev1.Pod, error) {
	labels := client.MatchingLabels{v1alpha1.StackLabel: st.Name, "app.kubernetes.io/component": "database"}
	if cluster := stack.ZalandoClusterName(st); cluster != "" {
		labels = client.MatchingLabels{"application": "spilo", "cluster-name": cluster, "spilo-role": "master"}
	}
	var pods corev1.PodList
	if err := r.Reader.List(ctx, &pods, client.InNamespace(st.Namespace), labels); err != nil {
		return nil, fmt.Errorf("listing the Pods of the database: %w", err)
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil && pods.Items[i].Spec.NodeName != "" {
			return &pods.Items[i], nil
		}
	}
	return &corev1.Pod{}, nil
}

// probeWaits is whether something runs that a probe would disturb, or be disturbed by: a LatencyTest
// of any stack, one that is due here, another probe.
func (r *AuthStackReconciler) probeWaits(ctx context.Context, s *scope) (bool, error) {
	if s.after.Status.Latency != nil && s.after.Status.Latency.Running != "" {
		return true, nil
	}
	running, err := testRuns(ctx, r.Client)
	if err != nil || running {
		return running, err
	}
	other, err := probeRuns(ctx, r.Client)
	return other != "", err
}

// testRuns is whether a LatencyTest of any stack has taken its turn and has no verdict yet, or waits for
// nothing but its turn: a probe takes minutes, and people wait for tests.
func testRuns(ctx context.Context, reader client.Reader) (bool, error) {
	var tests v1alpha1.LatencyTestList
	if err := reader.List(ctx, &tests, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing LatencyTests: %w", err)
	}
	for i := range tests.Items {
		test := &tests.Items[i]
		if schedule.Finished(test) {
			continue
		}
		if controllerutil.ContainsFinalizer(test, v1alpha1.Finalizer) {
			return true, nil
		}
		st := &v1alpha1.AuthStack{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: test.Namespace, Name: test.Spec.StackRef.Name}, st)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if err == nil && st.DeletionTimestamp.IsZero() && unready(st) == "" {
			return true, nil
		}
	}
	return false, nil
}

// probeRuns is the AuthStack, as namespace/name, whose storage is being probed, or empty.
func probeRuns(ctx context.Context, reader client.Reader, in ...client.ListOption) (string, error) {
	var jobs batchv1.JobList
	if err := reader.List(ctx, &jobs, append(in, client.HasLabels{storage.ProbeLabel})...); err != nil {
		return "", fmt.Errorf("listing the Jobs of storage probes: %w", err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if job.DeletionTimestamp == nil && !jobEnded(job) {
			return job.Namespace + "/" + job.Labels[storage.ProbeLabel], nil
		}
	}
	return "", nil
}

func jobEnded(job *batchv1.Job) bool {
	return jobCondition(job, batchv1.JobComplete) != nil || jobCondition(job, batchv1.JobFailed) != nil || jobCondition(job, batchv1.JobFailureTarget) != nil
}

// beginProbe makes the claim and then the Job. What exists of this run was made by an operator that died.
func (r *AuthStackReconciler) beginProbe(ctx context.Context, s *scope, state *v1alpha1.StorageProbeStatus, q storage.ProbeQuestion, pod *corev1.Pod) error {
	job := storage.ProbeJob{
		Stack: s.stack, Run: state.Run + 1, Class: s.after.Status.Storage.StorageClassName, Size: storage.ProbeSize(q.Size), Node: q.Node,
		Tolerations: pod.Spec.Tolerations, Image: r.Images.Probe, ImagePullPolicy: r.ImagePullPolicy,
	}
	request := s.stack.Annotations[v1alpha1.ProbeRequestedAtAnnotation]
	note, err := json.Marshal(probedVolume{Class: job.Class, Size: job.Size.String(), Node: job.Node, Request: request})
	if err != nil {
		return err
	}
	claim, made := job.Objects()
	metav1.SetMetaDataAnnotation(&made.ObjectMeta, probedAnnotation, string(note))
	for _, obj := range []client.Object{claim, made} {
		problem, err := r.createProbeObject(ctx, s.stack, obj)
		if err != nil {
			return err
		}
		if problem != "" {
			// A quota may grow, so that it is tried again; the stack is none the worse for it.
			*state = v1alpha1.StorageProbeStatus{Run: state.Run, CompletedRun: state.CompletedRun, LastHandledRequestAt: state.LastHandledRequestAt, Problem: s.redactor.Text(problem)}
			s.lookWithin(probeLater)
			return r.removeProbe(ctx, s.stack, claim.Name)
		}
	}
	state.Run, state.LastHandledRequestAt, state.Running = job.Run, request, made.Name
	return nil
}

// createProbeObject makes an object; problem is why it cannot be made whenever one tries again.
func (r *AuthStackReconciler) createProbeObject(ctx context.Context, st *v1alpha1.AuthStack, obj client.Object) (problem string, err error) {
	if err := controllerutil.SetControllerReference(st, obj, r.Client.Scheme()); err != nil {
		return "", err
	}
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	err = r.Client.Create(ctx, obj, kube.FieldManager)
	switch {
	case apierrors.IsAlreadyExists(err):
		live, err := kube.Empty(r.Client, obj)
		if err != nil {
			return "", err
		}
		if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
			return "", err
		}
		// The probe writes over its volume, so that it takes no other than its own.
		if !metav1.IsControlledBy(live, st) || live.GetLabels()[storage.ProbeLabel] != st.Name {
			return fmt.Sprintf("%s %s exists and was not made for the probe, which therefore does not touch it; remove it or give it another name", kind, obj.GetName()), nil
		}
		return "", nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return fmt.Sprintf("%s %s cannot be made: %s", kind, obj.GetName(), err), nil
	}
	return "", err
}

// removeProbe deletes the Job and the claim of a probe, if they are its own.
func (r *AuthStackReconciler) removeProbe(ctx context.Context, st *v1alpha1.AuthStack, name string) error {
	for _, obj := range []client.Object{&batchv1.Job{}, &corev1.PersistentVolumeClaim{}} {
		err := r.Reader.Get(ctx, types.NamespacedName{Namespace: st.Namespace, Name: name}, obj)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if !metav1.IsControlledBy(obj, st) || obj.GetLabels()[storage.ProbeLabel] != st.Name || obj.GetDeletionTimestamp() != nil {
			continue
		}
		uid := obj.GetUID()
		err = r.Client.Delete(ctx, obj, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// storageProbed is the condition of the last probe.
func (s *scope) storageProbed(p *v1alpha1.StorageProbeStatus) {
	conditions, now := &s.after.Status.Conditions, metav1.NewTime(s.now)
	set := func(status metav1.ConditionStatus, reason, message string) {
		kube.SetCondition(conditions, s.stack.Generation, now, v1alpha1.ConditionStorageProbed, status, reason, message)
	}
	switch {
	case p == nil || p.Problem == "" && p.CompletedAt == nil:
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStorageProbed)
	case len(p.Findings) > 0 && p.Findings[0].Kind == v1alpha1.FindingHangs:
		set(metav1.ConditionFalse, v1alpha1.ReasonStorageHangs, p.Findings[0].Message)
	case p.Problem != "":
		set(metav1.ConditionFalse, v1alpha1.ReasonProbeFailed, p.Problem)
	case len(p.Findings) > 0:
		set(metav1.ConditionTrue, string(p.Findings[0].Kind), p.Measured+"; "+p.Findings[0].Message)
	default:
		set(metav1.ConditionTrue, v1alpha1.ReasonProbed, p.Measured)
	}
}

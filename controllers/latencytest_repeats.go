package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/result"
)

// evidenceAnnotation on the first Job of a run holds what was seen just before it, so that an operator
// that starts in the middle of a run still knows.
const evidenceAnnotation = "authstack.dev/evidence"

// observedAnnotation on the Job of a repeat says that the database was asked for its counters right before.
const observedAnnotation = "authstack.dev/observed"

// before is what was seen before the run.
type before struct {
	Generation int64               `json:"generation"`
	Pods       []latency.PodState  `json:"pods"`
	Nodes      []latency.NodeState `json:"nodes,omitempty"`
	StartedAt  time.Time           `json:"startedAt"`
	Subject    v1alpha1.Subject    `json:"subject"`
	// Database is what it had counted; nil where it did not tell.
	Database *facts.DatabaseSample `json:"database,omitempty"`
}

// repeat is one repeat of a run, ended.
type repeat struct {
	outcome latency.JobOutcome
	// found is its result, or nil.
	found *result.Run
	// note is the evidence annotation of its Job.
	note string
}

// The keys of the ConfigMap that a repeat is kept in.
const (
	keptOutcomeKey = "outcome.json"
	keptResultKey  = "result.txt"
	keptNoteKey    = "evidence.json"
)

// keptName is the ConfigMap that a repeat is kept in until the run is judged.
func (t *run) keptName(repeat int32) string {
	return latency.JobName(t.test.Name, t.number, repeat) + "-kept"
}

// ended is repeat n once its Job has come to an end; nil while it goes on. It is read as soon as the Job
// has ended and kept in a ConfigMap: a drained node or the garbage collection of Pods takes the log away
// long before the last repeat.
func (r *LatencyTestReconciler) ended(ctx context.Context, t *run, n int32, job *batchv1.Job) (one *repeat, detail string, err error) {
	if job != nil {
		over, err := r.over(ctx, t, job)
		if err != nil || !over {
			return nil, "", err
		}
	}
	if one, err = r.kept(ctx, t, n); err != nil || one != nil || job == nil {
		return one, "", err
	}
	outcome, found, again, err := r.jobOutcome(ctx, t, job)
	if err != nil {
		return nil, "", err
	}
	if again {
		return nil, "; its log cannot be read yet", nil
	}
	if outcome.Said != "" {
		if err := r.learnPasswords(ctx, t, job.Name); err != nil {
			return nil, "", err
		}
		outcome.Said = t.redactor.Text(outcome.Said)
	}
	one = &repeat{outcome: outcome, found: found, note: job.Annotations[evidenceAnnotation]}
	return one, "", r.keep(ctx, t, n, one)
}

// keep a repeat. One whose result is too large for a ConfigMap is read from the log again when the run
// is judged.
func (r *LatencyTestReconciler) keep(ctx context.Context, t *run, n int32, one *repeat) error {
	data := map[string]string{keptOutcomeKey: t.redactor.Text(latency.Keep(one.outcome))}
	if one.note != "" {
		data[keptNoteKey] = one.note
	}
	if one.found != nil {
		var text bytes.Buffer
		if err := result.Write(&text, one.found); err != nil {
			return fmt.Errorf("writing the result of repeat %d: %w", n, err)
		}
		if text.Len() > resultLimit {
			return nil
		}
		data[keptResultKey] = text.String()
	}
	return r.create(ctx, t, &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: t.test.Namespace, Name: t.keptName(n), Labels: t.labels()},
		Immutable:  ptr.To(true),
		Data:       data,
	})
}

// kept is repeat n as it was kept, or nil.
func (r *LatencyTestReconciler) kept(ctx context.Context, t *run, n int32) (*repeat, error) {
	config := &corev1.ConfigMap{}
	name := types.NamespacedName{Namespace: t.test.Namespace, Name: t.keptName(n)}
	found, err := getThrough(ctx, r.Client, r.Reader, name, config)
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", name.Name, err)
	}
	if !found || !metav1.IsControlledBy(config, t.test) {
		return nil, nil
	}
	one := &repeat{note: config.Data[keptNoteKey]}
	if one.outcome, err = latency.Kept(config.Data[keptOutcomeKey]); err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", name.Name, err)
	}
	if text := config.Data[keptResultKey]; text != "" {
		if one.found, err = result.Read(strings.NewReader(text)); err != nil {
			return nil, fmt.Errorf("ConfigMap %s: %w", name.Name, err)
		}
	}
	return one, nil
}

// labels of what a run keeps.
func (t *run) labels() map[string]string {
	return map[string]string{
		v1alpha1.StackLabel: t.test.Spec.StackRef.Name, latency.TestLabel: t.test.Name, "app.kubernetes.io/managed-by": "authstack",
	}
}

// remember notes in the status what was seen before the run.
func (t *run) remember(note string) {
	// A note that somebody broke leaves the run without evidence, which is no pass.
	_ = json.Unmarshal([]byte(note), &t.seen)
	status := &t.after.Status
	status.Run = t.number
	status.LastHandledReconcileAt = t.handled()
	if status.StartedAt == nil && !t.seen.StartedAt.IsZero() {
		started := metav1.NewTime(t.seen.StartedAt.Truncate(time.Second))
		status.StartedAt = &started
	}
	if status.Subject == nil && t.seen.Subject.Stack != "" {
		status.Subject = t.seen.Subject.DeepCopy()
	}
}

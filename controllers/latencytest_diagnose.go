package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/diagnosis"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/internal/stack"
)

// Sampler asks a database for its counters.
type Sampler interface {
	Sample(ctx context.Context, target stack.DatabaseTarget) (*facts.DatabaseSample, error)
}

// sample is what the stack's database counts now, or nil: a database that does not tell leaves causes
// unnamed and spoils no run. It is asked before the first Job, before every other one (latency.Observed)
// and after the last one, and never during a repeat, so that nothing of it is measured; the guard
// observer-effect says whether that is true.
func (r *LatencyTestReconciler) sample(ctx context.Context, t *run, known facts.Stack) *facts.DatabaseSample {
	target := stack.DatabaseTargetOf(t.stack, known)
	if target == nil || r.Database == nil {
		return nil
	}
	t.redactor.AddString(target.Password)
	sample, err := r.Database.Sample(ctx, *target)
	if err != nil {
		log.FromContext(ctx).Info("the database does not tell what it counts; causes that need it are not named", "error", t.redactor.Text(err.Error()))
		return nil
	}
	return sample
}

// known are the Secrets and ConfigMaps of the stack.
func (r *LatencyTestReconciler) known(ctx context.Context, t *run) (facts.Stack, error) {
	known := facts.Stack{Now: t.now, Secrets: map[string]map[string][]byte{}, ConfigMaps: map[string]map[string]string{}}
	for _, name := range stack.SecretNames(t.stack) {
		secret := &corev1.Secret{}
		err := r.Reader.Get(ctx, types.NamespacedName{Namespace: t.test.Namespace, Name: name}, secret)
		if client.IgnoreNotFound(err) != nil {
			return known, fmt.Errorf("reading Secret %s: %w", name, err)
		}
		if err == nil {
			t.redactor.Add(secret.Data)
			known.Secrets[name] = secret.Data
		}
	}
	for _, name := range stack.ConfigMapNames(t.stack) {
		config := &corev1.ConfigMap{}
		err := r.Reader.Get(ctx, types.NamespacedName{Namespace: t.test.Namespace, Name: name}, config)
		if client.IgnoreNotFound(err) != nil {
			return known, fmt.Errorf("reading ConfigMap %s: %w", name, err)
		}
		if err == nil {
			known.ConfigMaps[name] = config.Data
		}
	}
	return known, nil
}

// diagnose says where the time of a run went.
func (r *LatencyTestReconciler) diagnose(ctx context.Context, t *run, merged *result.Run) ([]v1alpha1.Cause, error) {
	if merged == nil {
		return nil, nil
	}
	known, err := r.known(ctx, t)
	if err != nil {
		return nil, err
	}
	measured := t.seen.Subject
	evidence := diagnosis.Evidence{
		Provider: measured.IdentityProvider, Version: measured.Version, Cache: measured.Cache,
		Durability: measured.Durability, Medium: measured.Medium, Run: merged,
		Before: t.seen.Database, After: r.sample(ctx, t, known), LogLevel: stack.LogLevel(t.stack, known),
	}
	if storage := t.stack.Status.Storage; storage != nil {
		evidence.StorageSyncMicros, evidence.Crypto = probed(storage.Probe)
	}
	causes := diagnosis.Diagnose(evidence)
	for i := range causes {
		causes[i].Detail = t.redactor.Text(causes[i].Detail)
	}
	return causes, nil
}

// probed is what the storage probe found: its long phase, in which a disk that gets hot has become as slow
// as it will be, rather than its short one.
func probed(probe *v1alpha1.StorageProbeStatus) (syncMicros int64, crypto *diagnosis.Crypto) {
	if probe == nil {
		return 0, nil
	}
	for _, figures := range probe.Syncs {
		if syncMicros == 0 || figures.Phase == "Long" {
			syncMicros = figures.P50Micros
		}
	}
	if cpu := probe.CPU; cpu != nil {
		crypto = &diagnosis.Crypto{AESInstructions: cpu.AESInstructions, AESGCMBytesPerSecond: cpu.AESGCMBytesPerSecond,
			ChaCha20Poly1305BytesPerSecond: cpu.ChaCha20Poly1305BytesPerSecond}
	}
	return syncMicros, crypto
}

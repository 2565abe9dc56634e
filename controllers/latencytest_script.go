package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/result"
)

// ownScript is the text of the user's own script that the plan runs, empty where it runs none, and a
// sentence where there ought to be one and is not. The plan is told its digest.
func (r *LatencyTestReconciler) ownScript(ctx context.Context, t *run) (text, problem string, err error) {
	source := t.plan.Script()
	if source == nil {
		return "", "", nil
	}
	config := &corev1.ConfigMap{}
	name := types.NamespacedName{Namespace: t.test.Namespace, Name: source.ConfigMapRef.Name}
	switch err := r.Reader.Get(ctx, name, config); {
	case apierrors.IsNotFound(err):
		config = nil
	case err != nil:
		return "", "", fmt.Errorf("reading ConfigMap %s: %w", name.Name, err)
	}
	if text, problem = latency.ReadScript(source, config); problem == "" {
		t.plan.ScriptDigest = result.Digest([]byte(text))
	}
	return text, problem, nil
}

// withoutScript is what becomes of a test whose script is not there. As with its stack, it may be
// applied in the same breath and come a moment later.
func (r *LatencyTestReconciler) withoutScript(ctx context.Context, t *run, problem string) kube.Outcome {
	if t.now.Sub(t.test.CreationTimestamp.Time) < stackGrace {
		return r.wait(ctx, t, v1alpha1.ReasonScriptNotFound, problem)
	}
	t.stall(v1alpha1.ReasonScriptNotFound, problem)
	if err := r.report(ctx, t); err != nil {
		return kube.Outcome{Err: err}
	}
	return kube.Outcome{State: kube.Stalled}
}

// confinement is the script with the addresses that it may reach: those of the stack's own Service.
func (r *LatencyTestReconciler) confinement(ctx context.Context, t *run) (*latency.Script, error) {
	text, problem, err := r.ownScript(ctx, t)
	if err != nil || text == "" {
		if problem != "" {
			err = fmt.Errorf("the script is gone: %s", problem)
		}
		return nil, err
	}
	script := &latency.Script{Text: text}
	service := &corev1.Service{}
	name := types.NamespacedName{Namespace: t.test.Namespace, Name: t.target.ServiceName}
	if err := r.Reader.Get(ctx, name, service); err != nil {
		return nil, fmt.Errorf("reading Service %s: %w", name.Name, err)
	}
	for _, text := range service.Spec.ClusterIPs {
		if address, err := netip.ParseAddr(text); err == nil {
			script.Addresses = append(script.Addresses, address)
		}
	}
	if len(script.Addresses) == 0 || !metav1.IsControlledBy(service, t.stack) {
		return nil, fmt.Errorf("the Service %s has no address of the stack's own that a script could be held to", name.Name)
	}
	return script, nil
}

// learnPasswords has the redactor know the passwords of a repeat before words of its log are kept.
func (r *LatencyTestReconciler) learnPasswords(ctx context.Context, t *run, job string) error {
	secret := &corev1.Secret{}
	if err := r.Reader.Get(ctx, types.NamespacedName{Namespace: t.test.Namespace, Name: job}, secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	var file struct {
		Users []latency.User `json:"users"`
	}
	if json.Unmarshal(secret.Data["credentials.json"], &file) == nil {
		for _, user := range file.Users {
			t.redactor.AddString(user.Password)
		}
	}
	return nil
}

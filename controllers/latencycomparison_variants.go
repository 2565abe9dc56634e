package controllers

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/comparison"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/stack"
)

// podSecurity starts the labels of a namespace that say what Pods may do. A variant may what the base
// may: Zalando's Pods, for one, start as root.
const podSecurity = "pod-security.kubernetes.io/"

// ours is whether an object was made for this comparison.
func (c *compared) ours(obj client.Object) bool {
	return obj.GetLabels()[v1alpha1.ComparisonUIDLabel] == string(c.comparison.UID)
}

// observe reads what there is of each variant.
func (r *LatencyComparisonReconciler) observe(ctx context.Context, c *compared) ([]comparison.Observed, error) {
	observed := make([]comparison.Observed, len(c.plan.Variants))
	for i, variant := range c.plan.Variants {
		st := &v1alpha1.AuthStack{}
		found, err := getThrough(ctx, r.Client, r.Reader, client.ObjectKeyFromObject(variant.Stack), st)
		if err != nil {
			return nil, fmt.Errorf("reading the stack of variant %s: %w", variant.Name, err)
		}
		if found && c.ours(st) && st.DeletionTimestamp.IsZero() {
			observed[i].Stack = st
		}
		var tests v1alpha1.LatencyTestList
		if err := r.Client.List(ctx, &tests, client.InNamespace(variant.Namespace)); err != nil {
			return nil, fmt.Errorf("listing the LatencyTests of variant %s: %w", variant.Name, err)
		}
		for j := range tests.Items {
			if c.ours(&tests.Items[j]) {
				observed[i].Tests = append(observed[i].Tests, tests.Items[j])
			}
		}
	}
	return observed, nil
}

// tryOut asks the API server whether it would take a variant, in the namespace of the base, without
// making it. Refused is its answer, in a sentence, where it would not.
func (r *LatencyComparisonReconciler) tryOut(ctx context.Context, c *compared, variant comparison.Variant) (refused string, err error) {
	trial := variant.Stack.DeepCopy()
	trial.Namespace, trial.Name, trial.GenerateName = c.comparison.Namespace, "", "trial-"
	err = r.Client.Create(ctx, trial, client.DryRunAll, kube.FieldManager)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return fmt.Sprintf("the API server refuses variant %s: %s", variant.Name, strings.TrimPrefix(err.Error(), "AuthStack.authstack.dev ")), nil
	}
	return "", err
}

// make the namespace, the ConfigMaps and the stack of every variant that lacks them. Refused is the API
// server's answer where it does not take one.
func (r *LatencyComparisonReconciler) make(ctx context.Context, c *compared) (refused string, err error) {
	labels, err := r.securityLabels(ctx, c)
	if err != nil {
		return "", err
	}
	for _, variant := range c.plan.Variants {
		if err := r.makeNamespace(ctx, c, variant, labels); err != nil {
			return "", err
		}
		if err := r.copyConfigMaps(ctx, c, variant); err != nil {
			return "", err
		}
		err := r.Client.Create(ctx, variant.Stack.DeepCopy(), kube.FieldManager)
		switch {
		case apierrors.IsInvalid(err):
			return fmt.Sprintf("the API server refuses variant %s: %s", variant.Name, err.Error()), nil
		case client.IgnoreAlreadyExists(err) != nil:
			return "", fmt.Errorf("creating the stack of variant %s: %w", variant.Name, err)
		}
	}
	return "", nil
}

func (r *LatencyComparisonReconciler) securityLabels(ctx context.Context, c *compared) (map[string]string, error) {
	home := &corev1.Namespace{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: c.comparison.Namespace}, home); err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", c.comparison.Namespace, err)
	}
	labels := map[string]string{}
	for name, value := range home.Labels {
		if strings.HasPrefix(name, podSecurity) {
			labels[name] = value
		}
	}
	return labels, nil
}

func (r *LatencyComparisonReconciler) makeNamespace(ctx context.Context, c *compared, variant comparison.Variant, security map[string]string) error {
	labels := comparison.Labels(c.comparison, variant.Name)
	maps.Copy(labels, security)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: variant.Namespace, Labels: labels}}
	err := r.Client.Create(ctx, namespace, kube.FieldManager)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: variant.Namespace}, namespace); err != nil {
		return fmt.Errorf("reading namespace %s: %w", variant.Namespace, err)
	}
	if !c.ours(namespace) {
		return fmt.Errorf("namespace %s exists and is not of this comparison; rename the variant or the comparison", variant.Namespace)
	}
	return nil
}

// copyConfigMaps gives a variant the blueprints and configuration files that its spec names. They hold
// nothing secret by what they are for; Secrets are not copied (comparison.Resolve refuses them).
func (r *LatencyComparisonReconciler) copyConfigMaps(ctx context.Context, c *compared, variant comparison.Variant) error {
	for _, name := range stack.ConfigMapNames(variant.Stack) {
		original := &corev1.ConfigMap{}
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.comparison.Namespace, Name: name}, original)
		if apierrors.IsNotFound(err) {
			continue // The stack itself says so.
		}
		if err != nil {
			return fmt.Errorf("reading ConfigMap %s: %w", name, err)
		}
		duplicate := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: variant.Namespace, Name: name, Labels: comparison.Labels(c.comparison, variant.Name)},
			Data:       original.Data, BinaryData: original.BinaryData,
		}
		if err := r.Client.Create(ctx, duplicate, kube.FieldManager); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("copying ConfigMap %s: %w", name, err)
		}
	}
	return nil
}

// measure makes the LatencyTest of a slot.
func (r *LatencyComparisonReconciler) measure(ctx context.Context, c *compared, slot comparison.Slot) error {
	test := c.plan.Test(slot)
	if err := r.Client.Create(ctx, test, kube.FieldManager); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating LatencyTest %s/%s: %w", test.Namespace, test.Name, err)
	}
	return nil
}

// again has the LatencyTest of a slot run once more.
func (r *LatencyComparisonReconciler) again(ctx context.Context, c *compared, slot comparison.Slot) error {
	test := &v1alpha1.LatencyTest{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(c.plan.Test(slot)), test); err != nil {
		return err
	}
	before := test.DeepCopy()
	metav1.SetMetaDataAnnotation(&test.ObjectMeta, v1alpha1.RequestedAtAnnotation, comparison.Attempt(test))
	return r.Client.Patch(ctx, test, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), kube.FieldManager)
}

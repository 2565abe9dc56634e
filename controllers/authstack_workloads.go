package controllers

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/stack"
)

// specHashAnnotation of a workload says which plan it is of.
const specHashAnnotation = "authstack.dev/spec-hash"

func (r *AuthStackReconciler) askWorkloads(ctx context.Context, s *scope) error {
	s.facts.Workloads = map[string]facts.Workload{}
	zalando := stack.ZalandoClusterName(s.stack)
	for _, name := range stack.WorkloadNames(s.stack) {
		key := types.NamespacedName{Namespace: s.stack.Namespace, Name: name}
		// Zalando's StatefulSet carries labels of its own and is not in the cache.
		reader := client.Reader(r.Client)
		if name == zalando {
			reader = r.Reader
		}
		workload, selector, found, err := readWorkload(ctx, reader, key)
		if err != nil {
			return fmt.Errorf("reading workload %s: %w", name, err)
		}
		if !found {
			continue
		}
		if !workload.Complete() {
			if workload.Problem, err = r.podProblem(ctx, s.stack.Namespace, selector); err != nil {
				return err
			}
		}
		s.facts.Workloads[name] = workload
	}
	return nil
}

func readWorkload(ctx context.Context, reader client.Reader, key types.NamespacedName) (facts.Workload, *metav1.LabelSelector, bool, error) {
	deployment := &appsv1.Deployment{}
	err := reader.Get(ctx, key, deployment)
	if err == nil {
		return deploymentFact(deployment), deployment.Spec.Selector, true, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return facts.Workload{}, nil, false, err
	}
	set := &appsv1.StatefulSet{}
	err = reader.Get(ctx, key, set)
	if err == nil {
		return statefulSetFact(set), set.Spec.Selector, true, nil
	}
	return facts.Workload{}, nil, false, client.IgnoreNotFound(err)
}

func deploymentFact(d *appsv1.Deployment) facts.Workload {
	return facts.Workload{
		Desired: ptr.Deref(d.Spec.Replicas, 1), Updated: d.Status.UpdatedReplicas,
		Ready: d.Status.ReadyReplicas, Available: d.Status.AvailableReplicas,
		// Old Pods that still run are no reason to call a rollout complete.
		Observed: d.Status.ObservedGeneration >= d.Generation && d.Status.Replicas == d.Status.UpdatedReplicas,
		SpecHash: d.Annotations[specHashAnnotation],
	}
}

func statefulSetFact(set *appsv1.StatefulSet) facts.Workload {
	workload := facts.Workload{
		Desired: ptr.Deref(set.Spec.Replicas, 1), Updated: set.Status.UpdatedReplicas,
		Ready: set.Status.ReadyReplicas, Available: set.Status.AvailableReplicas,
		Observed: set.Status.ObservedGeneration >= set.Generation,
		SpecHash: set.Annotations[specHashAnnotation],
	}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType || set.Status.UpdateRevision == set.Status.CurrentRevision {
		// An operator with OnDelete replaces Pods itself and says elsewhere how far it is; and the
		// controller counts updated Pods only while a revision is being rolled out.
		workload.Updated = set.Status.Replicas
	}
	if templates := set.Spec.VolumeClaimTemplates; len(templates) > 0 {
		workload.ClaimClass = ptr.Deref(templates[0].Spec.StorageClassName, "")
		if size, ok := templates[0].Spec.Resources.Requests[corev1.ResourceStorage]; ok {
			workload.ClaimSize = size.String()
		}
	}
	return workload
}

// podProblem says why the selected Pods do not come up.
func (r *AuthStackReconciler) podProblem(ctx context.Context, namespace string, by *metav1.LabelSelector) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		return "", err
	}
	var pods corev1.PodList
	if err := r.Reader.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(100)); err != nil {
		return "", fmt.Errorf("listing Pods: %w", err)
	}
	return kube.PodProblems(pods.Items), nil
}

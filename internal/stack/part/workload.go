package part

import (
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
)

// SpecHashAnnotation on a workload is the hash of the spec that was planned for it. What the cluster
// says of a workload counts only when it is of this plan: before an apply it is of the one before.
const SpecHashAnnotation = "authstack.dev/spec-hash"

func hashed(meta metav1.ObjectMeta, spec any) metav1.ObjectMeta {
	content, err := json.Marshal(spec)
	if err != nil {
		panic(err) // Kubernetes' own types can always be marshalled.
	}
	meta.Annotations = maps.Clone(meta.Annotations)
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[SpecHashAnnotation] = Checksum(content)
	return meta
}

// Deployment of equal Pods. None is taken away before its replacement serves.
func Deployment(meta metav1.ObjectMeta, replicas int32, selector map[string]string, template corev1.PodTemplateSpec) *appsv1.Deployment {
	deployment := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		Spec: appsv1.DeploymentSpec{
			Replicas:             new(replicas),
			RevisionHistoryLimit: new(int32(3)),
			Selector:             &metav1.LabelSelector{MatchLabels: selector},
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1)),
				},
			},
			Template: template,
		},
	}
	deployment.ObjectMeta = hashed(meta, deployment.Spec)
	return deployment
}

// StatefulSet of one Pod with a Service of the same name. Whether its claims go with it
// follows the stack's deletion policy.
func StatefulSet(st *v1alpha1.AuthStack, meta metav1.ObjectMeta, selector map[string]string,
	template corev1.PodTemplateSpec, claims ...corev1.PersistentVolumeClaim,
) *appsv1.StatefulSet {
	whenDeleted := appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	if st.Spec.DeletionPolicy == v1alpha1.DeletionDelete {
		whenDeleted = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	set := &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		Spec: appsv1.StatefulSetSpec{
			Replicas:             new(int32(1)),
			RevisionHistoryLimit: new(int32(3)),
			ServiceName:          meta.Name,
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
			Selector:             &metav1.LabelSelector{MatchLabels: selector},
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: whenDeleted, WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
			},
			Template:             template,
			VolumeClaimTemplates: claims,
		},
	}
	set.ObjectMeta = hashed(meta, set.Spec)
	return set
}

// ServicePort from a port to the container port of the same name.
func ServicePort(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{
		Name: name, Port: number, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString(name),
	}
}

// Service in the cluster.
func Service(meta metav1.ObjectMeta, selector map[string]string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: meta,
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: selector, Ports: ports},
	}
}

// DisruptionBudget lets one Pod at a time be evicted.
func DisruptionBudget(meta metav1.ObjectMeta, selector map[string]string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)),
			Selector:       &metav1.LabelSelector{MatchLabels: selector},
		},
	}
}

// AllowIngress is a NetworkPolicy that lets only the given peers reach a port of the selected Pods.
func AllowIngress(meta metav1.ObjectMeta, selector map[string]string, port string, peers ...networkingv1.NetworkPolicyPeer) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: meta,
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selector},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From:  peers,
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromString(port))}},
			}},
		},
	}
}

// StackPeer are all Pods of the stack, in its namespace.
func StackPeer(st *v1alpha1.AuthStack) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.StackLabel: st.Name}},
	}
}

// OperatorPeer is the operator, wherever it runs.
func OperatorPeer(in Input) networkingv1.NetworkPolicyPeer {
	peer := networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{},
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{LabelName: "authstack"}},
	}
	if in.OperatorNamespace != "" {
		peer.NamespaceSelector.MatchLabels = map[string]string{"kubernetes.io/metadata.name": in.OperatorNamespace}
		peer.PodSelector = nil
	}
	return peer
}

// WorkloadState says where a planned Deployment or StatefulSet stands.
func WorkloadState(workloads map[string]facts.Workload, planned client.Object) State {
	kind, name := planned.GetObjectKind().GroupVersionKind().Kind, planned.GetName()
	workload, found := workloads[name]
	if found && workload.SpecHash != "" && workload.SpecHash != planned.GetAnnotations()[SpecHashAnnotation] {
		return Progressing(fmt.Sprintf("%s %s is being updated", kind, name))
	}
	return ObservedState(workload, found, kind, name)
}

// WorkloadsState says where the Deployments among planned objects stand: the first that is not ready,
// or all of them.
func WorkloadsState(in Input, planned []client.Object) State {
	names := []string{}
	for _, object := range planned {
		if _, is := object.(*appsv1.Deployment); !is {
			continue
		}
		if state := WorkloadState(in.Facts.Workloads, object); !state.Ready {
			return state
		}
		names = append(names, object.GetName())
	}
	return Ready("all Pods of " + list(names) + " are available")
}

// ObservedState is WorkloadState for a workload that another operator plans.
func ObservedState(workload facts.Workload, found bool, kind, name string) State {
	switch {
	case !found:
		return Progressing(fmt.Sprintf("waiting for %s %s to be created", kind, name))
	case workload.Complete():
		return Ready(fmt.Sprintf("%s %s: %d of %d Pods ready", kind, name, workload.Ready, workload.Desired))
	}
	message := fmt.Sprintf("waiting for %s %s: %d of %d Pods ready", kind, name, workload.Ready, workload.Desired)
	if workload.Observed && workload.Updated < workload.Desired {
		message += fmt.Sprintf(", %d of %d of the newest version", workload.Updated, workload.Desired)
	}
	if workload.Problem != "" {
		return Waiting(v1alpha1.ReasonPodsFailing, message+": "+workload.Problem)
	}
	return Progressing(message)
}

// ProductPeer are the Pods of the stack's identity provider.
func ProductPeer(st *v1alpha1.AuthStack, product string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
		v1alpha1.StackLabel: st.Name, LabelName: product,
	}}}
}

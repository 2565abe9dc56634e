package part

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
)

// ClaimVolume is the name of the volume in a StatefulSet's claim template.
const ClaimVolume = "data"

// ClaimName of the first Pod of a StatefulSet.
func ClaimName(statefulSet string) string { return fmt.Sprintf("%s-%s-0", ClaimVolume, statefulSet) }

// HasClaim is whether a StatefulSet exists, and whether it was made with a claim template. Neither a
// template nor its absence can be changed.
func HasClaim(in Input, statefulSet string) (exists, claim bool) {
	workload, exists := in.Facts.Workloads[statefulSet]
	return exists, exists && workload.ClaimSize != ""
}

// Claims of a StatefulSet: its template, and, where the size asked for has grown since, the claim
// itself with the new size. Templates cannot be changed, claims can grow: what exists keeps its size
// and its class, also where it has none, as those have that were made for the default class.
func Claims(in Input, statefulSet string, labels map[string]string, class string, size resource.Quantity) (
	template corev1.PersistentVolumeClaim, grown *corev1.PersistentVolumeClaim,
) {
	original := size
	if _, made := HasClaim(in, statefulSet); made {
		workload := in.Facts.Workloads[statefulSet]
		class = workload.ClaimClass
		if first, err := resource.ParseQuantity(workload.ClaimSize); err == nil {
			original = first
		}
	}
	meta := metav1.ObjectMeta{Name: ClaimVolume, Labels: labels}
	template = corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: original}},
	}}
	if class != "" {
		template.Spec.StorageClassName = &class
	}
	if size.Cmp(original) <= 0 || !bound(in, ClaimName(statefulSet)) {
		return template, nil
	}
	grown = &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: Meta(in.Stack, ClaimName(statefulSet), labels),
		Spec: corev1.PersistentVolumeClaimSpec{
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
	// The StatefulSet's retention policy decides over the claim, never an owner reference of ours.
	grown.Annotations = map[string]string{RetainAnnotation: "true"}
	return template, grown
}

func bound(in Input, claim string) bool {
	for _, volume := range in.Facts.Volumes {
		if volume.Claim == claim {
			return true
		}
	}
	return false
}

// ClaimLabels of a claim template: only what never changes, since templates cannot be changed.
func ClaimLabels(st *v1alpha1.AuthStack, app, component string) map[string]string {
	labels := Selector(st, app, component)
	labels[v1alpha1.StackLabel] = st.Name
	return labels
}

// QuantityOr is a given quantity or its default.
func QuantityOr(given *resource.Quantity, fallback string) resource.Quantity {
	if given != nil && !given.IsZero() {
		return *given
	}
	return resource.MustParse(fallback)
}

package part

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
)

// Components of a stack, as in the label app.kubernetes.io/component.
const (
	ComponentDatabase = "database"
	ComponentCache    = "cache"
	ComponentServer   = "server"
	ComponentWorker   = "worker"
)

// Labels that Kubernetes recommends.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelComponent = "app.kubernetes.io/component"
	LabelVersion   = "app.kubernetes.io/version"
	LabelPartOf    = "app.kubernetes.io/part-of"
	LabelManagedBy = "app.kubernetes.io/managed-by"
)

// RetainAnnotation marks objects that hold data or open it. With deletionPolicy Retain, such an
// object gets no owner reference and outlives its AuthStack.
const RetainAnnotation = "authstack.dev/retain"

// OwnerAnnotation on an object outside of the stack's namespace names the AuthStack, as namespace/name.
const OwnerAnnotation = "authstack.dev/owner"

// Name of an object of the stack: the stack's name and a suffix.
func Name(st *v1alpha1.AuthStack, suffix string) string { return st.Name + "-" + suffix }

// Selector of the Pods of one component. Selectors cannot be changed later, so nothing that changes
// is in them.
func Selector(st *v1alpha1.AuthStack, app, component string) map[string]string {
	return map[string]string{LabelName: app, LabelInstance: st.Name, LabelComponent: component}
}

// Labels of the objects of one component. The version is left out where it is empty.
func Labels(st *v1alpha1.AuthStack, app, component, version string) map[string]string {
	labels := Selector(st, app, component)
	labels[LabelPartOf] = "authstack"
	labels[LabelManagedBy] = "authstack"
	labels[v1alpha1.StackLabel] = st.Name
	if version != "" {
		labels[LabelVersion] = version
	}
	return labels
}

// Meta of an object of the stack.
func Meta(st *v1alpha1.AuthStack, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: st.Namespace, Labels: maps.Clone(labels)}
}

// Retained adds the retain annotation where the stack's data outlives it.
func Retained(st *v1alpha1.AuthStack, meta metav1.ObjectMeta) metav1.ObjectMeta {
	if st.Spec.DeletionPolicy != v1alpha1.DeletionDelete {
		meta.Annotations = maps.Clone(meta.Annotations)
		if meta.Annotations == nil {
			meta.Annotations = map[string]string{}
		}
		meta.Annotations[RetainAnnotation] = "true"
	}
	return meta
}

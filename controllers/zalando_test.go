package controllers

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"authstack.dev/authstack/api/v1alpha1"
)

func TestZalando(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create(func(st *v1alpha1.AuthStack) {
		st.Spec.Postgres = &v1alpha1.PostgresSpec{Zalando: &v1alpha1.ZalandoPostgres{Instances: ptr.To(int32(1))}}
	})
	for range 3 {
		g.Expect(w.step()).To(Succeed())
	}
	st := w.stack()
	g.Expect(conditionIn(st.Status.Conditions, v1alpha1.ConditionDatabaseReady).Reason).To(Equal(v1alpha1.ReasonPostgresOperatorMissing))
	g.Expect(meta.IsStatusConditionTrue(st.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
	conformant(t, st.Generation, st.Status.ObservedGeneration, st.Status.Conditions)

	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "postgresqls.acid.zalan.do"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "acid.zalan.do", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "postgresql", ListKind: "postgresqlList", Plural: "postgresqls", Singular: "postgresql"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}}}},
		},
	}
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		_ = envtest.UninstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	})
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(postgresqlKind)
	w.until("the cluster is asked for", func() bool {
		return server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "sso-postgres"}, cluster) == nil
	})
	g.Expect(meta.IsStatusConditionTrue(w.stack().Status.Conditions, v1alpha1.ConditionStalled)).To(BeFalse(), w.describe())

	// Zalando's operator: a StatefulSet with labels of its own, a Service, a Secret, a status.
	labels := map[string]string{"application": "spilo", "cluster-name": "sso-postgres"}
	w.must(server.Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sso-postgres", Labels: labels},
		Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "postgres", Image: "spilo"}}}}}}))
	w.must(server.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "authentik.sso-postgres.credentials.postgresql.acid.zalan.do"},
		Data: map[string][]byte{"username": []byte("authentik"), "password": []byte("canary-of-zalando-0123456789")}}))
	w.must(unstructured.SetNestedField(cluster.Object, "Running", "status", "PostgresClusterStatus"))
	w.must(server.Status().Update(t.Context(), cluster))
	w.until("Ready", w.ready)
	w.settle()

	w.must(server.Delete(t.Context(), w.stack()))
	w.until("gone", func() bool {
		return apierrors.IsNotFound(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "sso"}, &v1alpha1.AuthStack{}))
	})
	w.must(server.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
	g.Expect(cluster.GetOwnerReferences()).To(BeEmpty())
	g.Expect(cluster.GetDeletionTimestamp()).To(BeNil())
	g.Expect(strings.Join(w.events.all(), "\n")).To(ContainSubstring("postgresql sso-postgres"))
}

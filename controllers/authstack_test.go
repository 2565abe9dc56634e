package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func TestAuthStack(t *testing.T) {
	t.Run("the smallest stack becomes Ready and is measured", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create()
		w.until("Ready", w.ready)
		w.settle()
		st := w.stack()
		g.Expect(st.Status.IdentityProvider.MigratedVersion).To(Equal("2025.12.4"))
		g.Expect(st.Status.Latency).NotTo(BeNil(), w.describe())
		g.Expect(st.Status.Latency.Verdict).To(Equal(v1alpha1.VerdictPassed), w.describe())
		g.Expect(st.Status.Latency.LoginP95).To(Equal("300ms"))
		g.Expect(st.Status.Latency.TestedGeneration).To(Equal(st.Generation))
		g.Expect(meta.IsStatusConditionTrue(st.Status.Conditions, v1alpha1.ConditionLatencyMet)).To(BeTrue())
		g.Expect(w.latencyTests()).To(HaveLen(1))
		g.Expect(w.users.held).To(BeEmpty())
		g.Expect(w.users.made).To(Equal(1))
		g.Expect(w.database.analyzed).To(HaveLen(1))
		conformant(t, st.Generation, st.Status.ObservedGeneration, st.Status.Conditions)
	})
	t.Run("each look on the way leaves conditions that kstatus understands, and an event says each transition once", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create()
		for range 30 {
			g.Expect(w.step()).To(Succeed())
			st := w.stack()
			conformant(t, st.Generation, st.Status.ObservedGeneration, st.Status.Conditions)
			for _, test := range w.latencyTests() {
				if test.Status.ObservedGeneration != -1 {
					conformant(t, test.Generation, test.Status.ObservedGeneration, test.Status.Conditions)
				}
			}
		}
		g.Expect(w.ready()).To(BeTrue(), w.describe())
		ready := 0
		for _, event := range w.events.all() {
			if strings.HasPrefix(event, "Normal Ready Ready ") {
				ready++
			}
		}
		g.Expect(ready).To(Equal(1), strings.Join(w.events.all(), "\n"))
	})
	t.Run("nothing of the identity provider exists before the database answers", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.database.err = errors.New("the database system is starting up (SQLSTATE 57P03)")
		w.create()
		for range 10 {
			g.Expect(w.step()).To(Succeed())
		}
		var deployments appsv1.DeploymentList
		w.list(&deployments)
		g.Expect(deployments.Items).To(BeEmpty())
		st := w.stack()
		g.Expect(conditionIn(st.Status.Conditions, v1alpha1.ConditionDatabaseReady).Reason).To(Equal(v1alpha1.ReasonDatabaseUnreachable))
		g.Expect(conditionIn(st.Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring("starting up"))
		w.database.err = nil
		w.until("Ready", w.ready)
	})
	t.Run("a new spec is not called Ready while the old Pods run", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create()
		w.until("Ready", w.ready)
		w.settle()
		w.idle = true
		w.change(func(st *v1alpha1.AuthStack) { st.Spec.Authentik.Server.Replicas = ptr.To(int32(3)) })
		for range 5 {
			g.Expect(w.step()).To(Succeed())
			g.Expect(w.ready()).To(BeFalse())
		}
		w.idle = false
		w.until("Ready", w.ready)
		w.settle()
		g.Expect(w.latencyTests()).To(HaveLen(2), "the change is measured")
	})
	t.Run("a failing Pod is named in words", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.idle = true
		w.create()
		g.Expect(w.step()).To(Succeed())
		set := &appsv1.StatefulSet{}
		w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "sso-postgres"}, set))
		w.pod("sso-postgres-0", set.Spec.Template.Labels, corev1.PodSpec{Containers: []corev1.Container{{Name: "postgres", Image: "postgres"}}}, func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "postgres", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"}}}}
		})
		g.Expect(w.step()).To(Succeed())
		condition := conditionIn(w.stack().Status.Conditions, v1alpha1.ConditionDatabaseReady)
		g.Expect(condition.Reason).To(Equal(v1alpha1.ReasonPodsFailing))
		g.Expect(condition.Message).To(ContainSubstring("ImagePullBackOff"))
	})
	t.Run("an object of the same name that somebody else made is not taken over", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sso-postgres"},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
		w.must(server.Create(t.Context(), foreign))
		w.create()
		for range 3 {
			_ = w.step()
		}
		st := w.stack()
		g.Expect(meta.IsStatusConditionTrue(st.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue(), w.describe())
		g.Expect(conditionIn(st.Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring("Service sso-postgres exists and is not this stack's"))
		conformant(t, st.Generation, st.Status.ObservedGeneration, st.Status.Conditions)
		w.must(server.Delete(t.Context(), foreign))
		w.until("Ready", w.ready)
	})
	t.Run("a suspended stack is left alone", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create()
		w.until("Ready", w.ready)
		w.settle()
		w.change(func(st *v1alpha1.AuthStack) {
			st.Spec.Suspend = true
			st.Spec.Authentik.Server.Replicas = ptr.To(int32(4))
		})
		w.settle()
		st := w.stack()
		g.Expect(conditionIn(st.Status.Conditions, v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonSuspended))
		server4 := &appsv1.Deployment{}
		w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "sso-authentik-server"}, server4))
		g.Expect(*server4.Spec.Replicas).To(Equal(int32(2)))
		conformant(t, st.Generation, st.Status.ObservedGeneration, st.Status.Conditions)
		w.change(func(st *v1alpha1.AuthStack) { st.Spec.Suspend = false })
		w.until("Ready", w.ready)
		w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "sso-authentik-server"}, server4))
		g.Expect(*server4.Spec.Replicas).To(Equal(int32(4)))
	})
	t.Run("what a stack plans no longer is taken away, but no Secret and no volume", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create(func(st *v1alpha1.AuthStack) { st.Spec.Authentik.Version = "2025.8.4" })
		w.until("Ready", w.ready)
		w.settle()
		redis := &appsv1.StatefulSet{}
		redisKey := types.NamespacedName{Namespace: w.namespace, Name: "sso-redis"}
		if err := server.Get(t.Context(), redisKey, redis); apierrors.IsNotFound(err) {
			t.Fatalf("authentik 2025.8 has no Redis here: %v", w.final())
		}
		w.change(func(st *v1alpha1.AuthStack) { st.Spec.Authentik.Version = "2025.10.4" })
		w.until("Ready", w.ready)
		w.settle()
		g.Expect(apierrors.IsNotFound(server.Get(t.Context(), redisKey, redis))).To(BeTrue())
		g.Expect(server.Get(t.Context(), redisKey, &corev1.Secret{})).To(Succeed())
		g.Expect(w.stack().Status.IdentityProvider.MigratedVersion).To(Equal("2025.10.4"))
		g.Expect(w.database.analyzed).To(HaveKeyWithValue("sso-postgres."+w.namespace+".svc", 2))
	})
	t.Run("a setting of the role that is wanted no longer is taken back", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create(func(st *v1alpha1.AuthStack) {
			st.Spec.Postgres = &v1alpha1.PostgresSpec{Durability: v1alpha1.DurabilityRelaxed}
		})
		w.until("Ready", w.ready)
		held := len(w.database.roles["sso-postgres."+w.namespace+".svc"])
		g.Expect(held).To(BeNumerically(">", 0))
		// As if an older operator had set one more.
		st := w.stack()
		before := st.DeepCopy()
		st.Status.Database.Settings = append(st.Status.Database.Settings, v1alpha1.SettingStatus{Name: "enable_sort", Scope: "Role", Desired: "off"})
		w.must(server.Status().Patch(t.Context(), st, client.MergeFrom(before)))
		w.settle()
		g.Expect(w.database.resets).To(ContainElement("enable_sort"))
		w.database.resets = nil
		w.settle()
		g.Expect(w.database.resets).To(BeEmpty())
	})
	t.Run("a setting that is not in force is named", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.database.override["shared_buffers"] = "1"
		w.create()
		for range 12 {
			g.Expect(w.step()).To(Succeed())
		}
		condition := conditionIn(w.stack().Status.Conditions, v1alpha1.ConditionTuningApplied)
		g.Expect(condition.Reason).To(Equal(v1alpha1.ReasonNotInForce), w.describe())
		g.Expect(condition.Message).To(ContainSubstring("shared_buffers"))
	})
	t.Run("ANALYZE that fails is tried again and holds Ready up", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.database.analyzeErr = errors.New("canceling statement due to lock timeout (SQLSTATE 55P03)")
		w.create()
		w.until("the failure is told", func() bool {
			c := conditionIn(w.stack().Status.Conditions, v1alpha1.ConditionIdentityProviderReady)
			return c != nil && strings.Contains(c.Message, "55P03")
		})
		g.Expect(w.ready()).To(BeFalse())
		w.database.analyzeErr = nil
		w.until("Ready", w.ready)
	})
}

func TestDeletion(t *testing.T) {
	secrets := func(w *world) []corev1.Secret {
		var list corev1.SecretList
		w.must(server.List(w.t.Context(), &list, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.StackLabel: "sso"}))
		return list.Items
	}
	claim := func(w *world) *corev1.PersistentVolumeClaim {
		pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "data-sso-postgres-0", Labels: map[string]string{v1alpha1.StackLabel: "sso"}},
			Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
		w.must(server.Create(w.t.Context(), pvc))
		return pvc
	}
	gone := func(w *world) func() bool {
		return func() bool {
			return apierrors.IsNotFound(server.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "sso"}, &v1alpha1.AuthStack{}))
		}
	}
	t.Run("Retain keeps the Secrets and the volumes and says so", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create()
		w.until("Ready", w.ready)
		w.settle()
		pvc := claim(w)
		w.must(server.Delete(t.Context(), w.stack()))
		w.until("gone", gone(w))
		g.Expect(secrets(w)).NotTo(BeEmpty())
		for _, secret := range secrets(w) {
			g.Expect(secret.OwnerReferences).To(BeEmpty(), secret.Name)
		}
		w.must(server.Get(t.Context(), client.ObjectKeyFromObject(pvc), pvc))
		g.Expect(pvc.DeletionTimestamp).To(BeNil())
		g.Expect(strings.Join(w.events.all(), "\n")).To(ContainSubstring("PersistentVolumeClaim data-sso-postgres-0"))
	})
	t.Run("a stack of the same name finds its password again", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create()
		w.until("Ready", w.ready)
		w.settle()
		before := &corev1.Secret{}
		key := types.NamespacedName{Namespace: w.namespace, Name: "sso-postgres"}
		w.must(server.Get(t.Context(), key, before))
		w.must(server.Delete(t.Context(), w.stack()))
		w.until("gone", gone(w))
		w.collect()
		w.create()
		w.until("Ready", w.ready)
		after := &corev1.Secret{}
		w.must(server.Get(t.Context(), key, after))
		g.Expect(after.Data).To(Equal(before.Data))
	})
	t.Run("Delete takes the Secrets and the volumes too, also those kept by an earlier policy", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create()
		w.until("Ready", w.ready)
		w.settle()
		pvc := claim(w)
		w.change(func(st *v1alpha1.AuthStack) { st.Spec.DeletionPolicy, st.Spec.Suspend = v1alpha1.DeletionDelete, true })
		w.must(server.Delete(t.Context(), w.stack()))
		w.until("gone", gone(w))
		g.Expect(secrets(w)).To(BeEmpty())
		err := server.Get(t.Context(), client.ObjectKeyFromObject(pvc), pvc)
		g.Expect(apierrors.IsNotFound(err) || pvc.DeletionTimestamp != nil).To(BeTrue())
	})
	t.Run("Retain after Delete keeps what an earlier policy would have taken", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create(func(st *v1alpha1.AuthStack) { st.Spec.DeletionPolicy = v1alpha1.DeletionDelete })
		w.until("Ready", w.ready)
		w.settle()
		g.Expect(secrets(w)[0].OwnerReferences).NotTo(BeEmpty())
		w.change(func(st *v1alpha1.AuthStack) { st.Spec.DeletionPolicy, st.Spec.Suspend = v1alpha1.DeletionRetain, true })
		w.must(server.Delete(t.Context(), w.stack()))
		w.until("gone", gone(w))
		for _, secret := range secrets(w) {
			g.Expect(secret.OwnerReferences).To(BeEmpty(), secret.Name)
		}
		set := &appsv1.StatefulSet{}
		w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "sso-postgres"}, set))
		g.Expect(set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted).To(Equal(appsv1.RetainPersistentVolumeClaimRetentionPolicyType))
	})
}

// collect is the garbage collector, which an API server alone does not have.
func (w *world) collect() {
	w.t.Helper()
	for _, list := range append(prunable(), &corev1.SecretList{}, &v1alpha1.LatencyTestList{}) {
		w.list(list)
		objects, err := meta.ExtractList(list)
		w.must(err)
		for _, item := range objects {
			obj := item.(client.Object)
			if len(obj.GetOwnerReferences()) > 0 {
				w.must(client.IgnoreNotFound(server.Delete(w.t.Context(), obj)))
			}
		}
	}
}

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

func TestSecretsStaySecret(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	// A database that tells the password it was given, and an admin API that tells its token.
	w.create()
	w.users.tells = true
	w.until("Ready", w.ready)
	w.until("the token was told", func() bool { return len(w.users.told) > 0 })
	var all corev1.SecretList
	w.list(&all)
	canaries := []string{}
	for _, secret := range all.Items {
		if secret.Labels[latency.TestLabel] != "" {
			continue
		}
		for key, value := range secret.Data {
			if key != "username" && key != "email" {
				canaries = append(canaries, string(value))
			}
		}
	}
	g.Expect(len(canaries)).To(BeNumerically(">=", 4))
	w.database.err = fmt.Errorf("the password %s is wrong", strings.Join(canaries, " "))
	for range 10 {
		_ = w.step()
	}
	g.Expect(conditionIn(w.stack().Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring("[redacted]"), w.describe())
	w.users.tells, w.database.err = false, nil
	w.fault = func(_ int, verb string, done bool) error {
		if strings.HasPrefix(verb, "apply") && !done {
			return fmt.Errorf("the webhook saw %s", strings.Join(canaries, " "))
		}
		return nil
	}
	w.change(func(st *v1alpha1.AuthStack) { st.Spec.Authentik.Server.Replicas = ptr.To(int32(3)) })
	for range 5 {
		if err := w.step(); err != nil {
			g.Expect(err.Error()).To(ContainSubstring("[redacted]"))
		}
	}
	w.fault = nil
	w.until("Ready", w.ready)
	w.settle()
	canaries = append(canaries, w.users.told...)
	g.Expect(w.users.told).NotTo(BeEmpty())
	seen := strings.Join(w.events.all(), "\n") + w.describe() + strings.Join(w.final(), "\n") + logged.String()
	var configs corev1.ConfigMapList
	w.list(&configs)
	for _, config := range configs.Items {
		seen += fmt.Sprint(config.Data)
	}
	for _, canary := range canaries {
		g.Expect(strings.Contains(seen, canary)).To(BeFalse(), "a secret of %d characters was seen", len(canary))
	}
}

func TestSchedule(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create(func(st *v1alpha1.AuthStack) {
		st.Spec.Latency = &v1alpha1.LatencySpec{Schedule: "0 5 * * *", HistoryLimit: ptr.To(int32(2))}
	})
	w.until("Ready", w.ready)
	w.settle()
	g.Expect(w.latencyTests()).To(HaveLen(1))
	next := w.stack().Status.Latency.NextScheduledAt
	g.Expect(next).NotTo(BeNil())
	g.Expect(next.UTC().Hour()).To(Equal(5))

	// Three days pass in which nobody looks.
	w.now = next.Add(72*time.Hour + time.Minute)
	w.settle()
	g.Expect(w.latencyTests()).To(HaveLen(2), "missed times count once")
	g.Expect(w.stack().Status.Latency.NextScheduledAt.After(w.now)).To(BeTrue())

	w.change(func(st *v1alpha1.AuthStack) {
		st.Annotations = map[string]string{v1alpha1.RequestedAtAnnotation: "now"}
	})
	w.logs.each = 2 * time.Second
	w.settle()
	st := w.stack()
	g.Expect(w.latencyTests()).To(HaveLen(2), "the history is bounded")
	g.Expect(st.Status.LastHandledReconcileAt).To(Equal("now"))
	g.Expect(st.Status.Latency.LoginP95).To(HavePrefix("2"))
	g.Expect(w.ready()).To(BeTrue())
}

// conformant holds conditions to what kstatus and Flux read out of them.
func conformant(t *testing.T, generation, observed int64, conditions []metav1.Condition) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(observed).To(Equal(generation))
	ready := conditionIn(conditions, v1alpha1.ConditionReady)
	g.Expect(ready).NotTo(BeNil())
	reconciling, stalled := conditionIn(conditions, v1alpha1.ConditionReconciling), conditionIn(conditions, v1alpha1.ConditionStalled)
	g.Expect(reconciling != nil && stalled != nil).To(BeFalse(), "Reconciling and Stalled exclude each other")
	for _, abnormal := range []*metav1.Condition{reconciling, stalled} {
		if abnormal != nil {
			g.Expect(abnormal.Status).To(Equal(metav1.ConditionTrue), "a condition of negative polarity is only present while True")
		}
	}
	if ready.Status == metav1.ConditionTrue {
		g.Expect(reconciling).To(BeNil())
		g.Expect(stalled).To(BeNil())
	} else if ready.Reason != v1alpha1.ReasonSuspended {
		g.Expect(reconciling != nil || stalled != nil).To(BeTrue(), "what is not Ready is under way or stuck")
	}
	for _, c := range conditions {
		g.Expect(c.Message).NotTo(BeEmpty(), c.Type)
		g.Expect(len(c.Message)).To(BeNumerically("<=", 1024))
		g.Expect(c.LastTransitionTime.IsZero()).To(BeFalse())
	}
}

func conditionIn(conditions []metav1.Condition, kind string) *metav1.Condition {
	return meta.FindStatusCondition(conditions, kind)
}

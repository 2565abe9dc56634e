package controllers

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
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
	t.Run("storage that hangs under commits is said, with one commit waiting, and over when it comes back", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create(manualLatency, probing(v1alpha1.StorageProbeManual))
		w.until("Ready", w.ready)
		w.settle()
		hang := make(chan struct{})
		w.database.set(func(f *fakeDatabases) { f.hang, f.commits = hang, 0 })
		w.until("the hang is seen", func() bool { return !w.ready() })
		g.Expect(w.step()).To(Succeed())
		ready := w.condition(v1alpha1.ConditionReady)
		g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonStorageHangs))
		g.Expect(ready.Message).To(MatchRegexp(`^DatabaseReady: the storage of PostgreSQL \(StorageClass local-path\) hangs: a commit has been waiting since 20..-`))
		w.settle()
		w.database.set(func(f *fakeDatabases) {
			g.Expect(f.commits).To(Equal(1), "no commit is added to one that waits")
			f.hang = nil
		})
		close(hang)
		w.until("Ready again", w.ready)
		w.settle()
	})
	t.Run("a database that takes connections and says nothing is named, its Pod ready or not", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create(manualLatency)
		w.until("Ready", w.ready)
		w.settle()
		standsStill := func() bool { return w.condition(v1alpha1.ConditionReady).Reason == v1alpha1.ReasonDatabaseStandsStill }
		w.database.set(func(f *fakeDatabases) { f.err = facts.ErrStandsStill })
		w.until("it is named", standsStill)
		w.database.set(func(f *fakeDatabases) { f.err = nil })
		w.until("Ready again", w.ready)
		w.settle()
		w.databaseUnready("10.0.0.7")
		w.until("not ready", func() bool { return !w.ready() })
		g.Expect(standsStill()).To(BeFalse(), "its Pod answers")
		w.database.set(func(f *fakeDatabases) { f.silent = "10.0.0.7" })
		w.until("it is named", standsStill)
		g.Expect(w.condition(v1alpha1.ConditionDatabaseReady).Message).To(ContainSubstring("StorageClass local-path"))
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
	t.Run("a new version starts when the triggers are off, and they come back after its migrations", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.create(func(st *v1alpha1.AuthStack) { st.Spec.Authentik.Version = "2025.10.4" })
		w.until("Ready", w.ready)
		w.settle()
		host := "sso-postgres." + w.namespace + ".svc"
		g.Expect(w.stack().Status.Database.Durability).To(Equal(v1alpha1.DurabilityIdentity))
		g.Expect(w.stack().Status.Database.RelaxedTables).To(HaveLen(7))
		running := func() string {
			d := &appsv1.Deployment{}
			w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "sso-authentik-worker"}, d))
			return d.Spec.Template.Spec.Containers[0].Image
		}
		before := running()
		w.database.durabilityErr = errors.New("canceling statement due to lock timeout (SQLSTATE 55P03)")
		w.change(func(st *v1alpha1.AuthStack) { st.Spec.Authentik.Version = "2025.12.4" })
		w.until("the failure is told", func() bool {
			c := conditionIn(w.stack().Status.Conditions, v1alpha1.ConditionTuningApplied)
			return c != nil && strings.Contains(c.Message, "55P03")
		})
		g.Expect(running()).To(Equal(before), "a migration would fail on the triggers")
		w.database.durabilityErr, w.database.durabilityChanges = nil, nil
		w.until("the new version is asked for", func() bool { return running() != before })
		g.Expect(w.database.durabilityChanges).To(HaveLen(1))
		g.Expect(w.database.durabilityChanges[0].Remove).To(HaveLen(7))
		g.Expect(w.database.triggered[host].Triggers).To(BeEmpty())
		w.until("Ready", w.ready)
		w.settle()
		g.Expect(w.database.analyzed).To(HaveKeyWithValue(host, 2))
		g.Expect(w.database.durabilityChanges).To(HaveLen(2))
		g.Expect(w.stack().Status.Database.Durability).To(Equal(v1alpha1.DurabilityIdentity))
		w.change(func(st *v1alpha1.AuthStack) {
			st.Spec.Postgres = &v1alpha1.PostgresSpec{Durability: v1alpha1.DurabilityStrict}
		})
		w.settle()
		g.Expect(w.database.triggered[host].Triggers).To(BeEmpty())
		g.Expect(w.stack().Status.Database.Durability).To(Equal(v1alpha1.DurabilityStrict))
	})
	t.Run("triggers that cannot be had are told, and hold Ready up where they were asked for", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.database.durabilityErr = errors.New("must be owner of relation authentik_core_session (SQLSTATE 42501)")
		w.create()
		w.until("Ready", w.ready)
		w.until("the reason is told", func() bool { return strings.Contains(w.stack().Status.Database.DurabilityNote, "42501") })
		g.Expect(w.stack().Status.Database.Durability).To(Equal(v1alpha1.DurabilityStrict))
		w.change(func(st *v1alpha1.AuthStack) {
			st.Spec.Postgres = &v1alpha1.PostgresSpec{Durability: v1alpha1.DurabilityIdentity}
		})
		w.until("the condition tells", func() bool {
			c := conditionIn(w.stack().Status.Conditions, v1alpha1.ConditionTuningApplied)
			return c.Reason == v1alpha1.ReasonNotInForce && strings.Contains(c.Message, "42501")
		})
		g.Expect(w.ready()).To(BeFalse())
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

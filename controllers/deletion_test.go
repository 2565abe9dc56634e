package controllers

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
)

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
	outside := func(w *world) {
		w.must(server.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "db"},
			StringData: map[string]string{"username": "authentik", "password": "p"}}))
		w.create(func(st *v1alpha1.AuthStack) {
			st.Spec.Postgres = &v1alpha1.PostgresSpec{External: &v1alpha1.ExternalPostgres{Host: "sso-postgres." + w.namespace + ".svc", Database: "authentik", SecretName: "db"}}
		})
		w.until("Ready", w.ready)
		w.settle()
	}
	t.Run("an external database is left as it was found", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		outside(w)
		host := "sso-postgres." + w.namespace + ".svc"
		g.Expect(w.database.triggered[host].Triggers).NotTo(BeEmpty())
		g.Expect(w.database.roles[host]).NotTo(BeEmpty())
		w.must(server.Delete(t.Context(), w.stack()))
		w.until("gone", gone(w))
		g.Expect(w.database.triggered[host].Triggers).To(BeEmpty())
		g.Expect(w.database.roles[host]).To(BeEmpty())
	})
	t.Run("one that does not answer holds the deletion up for a minute, and what is left in it is said", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		outside(w)
		w.database.set(func(f *fakeDatabases) { f.err = errors.New("connection refused") })
		w.must(server.Delete(t.Context(), w.stack()))
		w.now = time.Now()
		_ = w.step()
		g.Expect(gone(w)()).To(BeFalse())
		w.until("gone", gone(w))
		g.Expect(w.now).To(BeTemporally("<", time.Now().Add(2*leavePatience)))
		g.Expect(strings.Join(w.events.all(), "\n")).To(And(ContainSubstring("connection refused"), ContainSubstring("DROP FUNCTION IF EXISTS public.authstack_durability()")))
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

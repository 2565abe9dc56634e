package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
)

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

// A newer operator plans a key that the Secrets of an older one lack. It is added, wherever the operator
// dies on the way, and nothing that is in use changes.
func TestAMissingKeyIsAddedToAGeneratedSecret(t *testing.T) {
	key := func(w *world, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: w.namespace, Name: name}
	}
	// older is a world whose Secret of the administrator has no email.
	older := func(t *testing.T) (*world, map[string][]byte) {
		w := newWorld(t)
		w.create()
		w.until("Ready", w.ready)
		w.settle()
		secret := &corev1.Secret{}
		w.must(server.Get(t.Context(), key(w, "sso-authentik-admin"), secret))
		w.must(server.Delete(t.Context(), secret))
		delete(secret.Data, "email")
		secret.ResourceVersion, secret.UID = "", ""
		w.must(server.Create(t.Context(), secret))
		w.restart()
		return w, secret.Data
	}
	check := func(t *testing.T, w *world, held map[string][]byte) {
		g := NewWithT(t)
		w.until("Ready", w.ready)
		w.settle()
		now := &corev1.Secret{}
		w.must(server.Get(t.Context(), key(w, "sso-authentik-admin"), now))
		g.Expect(string(now.Data["email"])).To(Equal("root@sso.example.com"))
		for name, value := range held {
			g.Expect(string(now.Data[name])).To(Equal(string(value)), "%s was replaced", name)
		}
		g.Expect(*now.Immutable).To(BeTrue())
		var all corev1.SecretList
		w.list(&all)
		for _, secret := range all.Items {
			g.Expect(secret.Name).NotTo(HaveSuffix("-replacement"))
		}
	}
	w, held := older(t)
	check(t, w, held)
	for _, write := range []string{"create sso-authentik-admin-replacement", "delete sso-authentik-admin", "create sso-authentik-admin", "delete sso-authentik-admin-replacement"} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("the operator dies at %s, done %v", write, after), func(t *testing.T) {
				w, held := older(t)
				died := false
				w.fault = func(_ int, verb string, done bool) error {
					if verb == write && done == after && !died {
						died = true
						return errors.New("killed")
					}
					return nil
				}
				w.until("the operator died", func() bool { return died })
				w.restart()
				check(t, w, held)
			})
		}
	}
}

func TestAPlanFromAnOldReadReplacesNoSecret(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create()
	w.until("Ready", w.ready)
	live := &corev1.Secret{}
	w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "sso-authentik-admin"}, live))
	desired := live.DeepCopy()
	desired.Data["password"] = []byte("made from an old read")
	changed, err := w.stacks.applier.ApplySecret(t.Context(), nil, desired, live)
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	g.Expect(changed).To(BeFalse())
	g.Expect(err.Error()).NotTo(ContainSubstring(string(live.Data["password"])))
}

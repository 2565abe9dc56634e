package controllers

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
)

// TestOIDCOfAuthentik: the client is made before the Job, its secret stands in the Job's Secret alone, and
// both are gone afterwards.
func TestOIDCOfAuthentik(t *testing.T) {
	g, w := NewWithT(t), newReadyWorld(t)
	w.idle = true
	w.measure(func(test *v1alpha1.LatencyTest) {
		test.Spec.Scenarios = []v1alpha1.Scenario{{Name: v1alpha1.ScenarioOIDC}}
	})
	var jobs batchv1.JobList
	w.until("a Job", func() bool { w.list(&jobs); return len(jobs.Items) == 1 })
	name := oidcName(w.test())
	made := w.users.clients[name]
	g.Expect(made.RedirectURI).To(Equal(latency.OIDCRedirectURI(name, w.stack().Spec.Host)))
	g.Expect(len(made.ClientSecret)).To(BeNumerically(">=", 32))
	secret := &corev1.Secret{}
	w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: latency.JobName("run", 1, 1)}, secret))
	g.Expect(string(secret.Data["credentials.json"])).To(ContainSubstring(made.ClientSecret))
	config := &corev1.ConfigMap{}
	w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: latency.JobName("run", 1, 1)}, config))
	for _, public := range []any{config, w.test(), jobs.Items[0]} {
		text, err := json.Marshal(public)
		w.must(err)
		g.Expect(string(text)).NotTo(ContainSubstring(made.ClientSecret))
	}
	w.restart()
	w.idle = false
	w.until("a verdict", func() bool { return w.verdict() != "" })
	w.settle()
	g.Expect(w.users.clients).To(BeEmpty())
	g.Expect(w.users.held).To(BeEmpty())
}

// TestOIDCOfAuthelia: the client stands in Authelia's configuration, and the test names a Secret with it.
func TestOIDCOfAuthelia(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create(func(st *v1alpha1.AuthStack) {
		st.Spec.Latency = &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual}
		st.Spec.Authentik, st.Spec.Authelia = nil, &v1alpha1.AutheliaSpec{Version: "4.39.20", Users: &v1alpha1.AutheliaUsers{}}
	})
	w.until("Ready", w.ready)
	w.settle()
	w.idle = true
	message := func() string {
		if c := conditionIn(w.test().Status.Conditions, v1alpha1.ConditionReady); c != nil {
			return c.Message
		}
		return ""
	}
	w.measure(func(test *v1alpha1.LatencyTest) {
		test.Spec.Scenarios = []v1alpha1.Scenario{{Name: v1alpha1.ScenarioOIDC}}
	})
	w.until("a refusal without a client", func() bool {
		return strings.Contains(message(), "declare the client in the AuthStack's spec.authelia.extraConfig")
	})

	test := w.test()
	test.Spec.Scenarios[0].OIDC = &v1alpha1.OIDCClient{ClientSecretRef: v1alpha1.LocalReference{Name: "latency-client"}}
	w.must(server.Update(t.Context(), test))
	w.until("the Secret is named", func() bool { return strings.Contains(message(), "Secret latency-client") })
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "latency-client"}, Data: map[string][]byte{"client_id": []byte("probe")}}
	w.must(server.Create(t.Context(), secret))
	w.until("its keys are named", func() bool {
		return strings.Contains(message(), "needs the keys client_id, client_secret and redirect_uri")
	})
	secret.Data["client_secret"], secret.Data["redirect_uri"] = []byte("canary-client-secret"), []byte("https://probe.example.com/callback")
	w.must(server.Update(t.Context(), secret))
	held := &corev1.Secret{}
	w.until("a Job", func() bool {
		return server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: latency.JobName("run", w.test().Status.Run, 1)}, held) == nil
	})
	g.Expect(string(held.Data["credentials.json"])).To(And(ContainSubstring("canary-client-secret"), ContainSubstring("https://probe.example.com/callback")))
	g.Expect(w.describe() + strings.Join(w.events.all(), "\n")).NotTo(ContainSubstring("canary"))
	g.Expect(w.users.clients).To(BeEmpty())
}

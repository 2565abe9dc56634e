package controllers

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
)

// What people give an authentik beside its fields: Secrets for the environment, a claim for uploads.
func TestAuthentikTakesSecretsAndAClaim(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create(func(st *v1alpha1.AuthStack) {
		st.Spec.Authentik.EnvFromSecrets = []v1alpha1.LocalReference{{Name: "mail"}}
		st.Spec.Authentik.Uploads = &v1alpha1.AuthentikUploads{ClaimName: "uploads"}
	})
	w.until("the missing Secret is named", w.because(v1alpha1.ReasonSecretMissing, "Secret mail of spec.authentik.envFromSecrets[0] does not exist"))

	mail := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mail"}, Data: map[string][]byte{
		"AUTHENTIK_EMAIL__PASSWORD": []byte("canary-of-the-mail-server"), "AUTHENTIK_POSTGRESQL__HOST": []byte("canary-of-another-database"),
	}}
	w.must(server.Create(t.Context(), mail))
	w.until("the operator's own key is refused", w.because(v1alpha1.ReasonInvalidSpec, "has the key AUTHENTIK_POSTGRESQL__HOST"))
	g.Expect(conditionIn(w.stack().Status.Conditions, v1alpha1.ConditionStalled).Status).To(Equal(metav1.ConditionTrue))

	delete(mail.Data, "AUTHENTIK_POSTGRESQL__HOST")
	w.must(server.Update(t.Context(), mail))
	w.until("the missing claim is named", w.because(v1alpha1.ReasonClaimMissing, "PersistentVolumeClaim uploads"))

	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "uploads"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	w.must(server.Create(t.Context(), claim))
	w.until("Ready", w.ready)
	g.Expect(w.stack().Status.IdentityProvider.Uploads).To(ContainSubstring("on PersistentVolumeClaim uploads"))
	g.Expect(w.describe()).NotTo(ContainSubstring("canary"))

	var deployments appsv1.DeploymentList
	w.list(&deployments)
	g.Expect(deployments.Items).To(HaveLen(2))
	checksums := map[string]string{}
	for _, deployment := range deployments.Items {
		pod := deployment.Spec.Template.Spec
		g.Expect(pod.Containers[0].EnvFrom).To(HaveLen(1))
		g.Expect(pod.Containers[0].EnvFrom[0].SecretRef.Name).To(Equal("mail"))
		g.Expect(pod.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution).To(HaveLen(1))
		checksums[deployment.Name] = deployment.Spec.Template.Annotations["authstack.dev/config-checksum"]
	}

	mail.Data["AUTHENTIK_EMAIL__PASSWORD"] = []byte("canary-of-the-new-mail-server")
	w.must(server.Update(t.Context(), mail))
	w.until("both roll", func() bool {
		w.list(&deployments)
		for _, deployment := range deployments.Items {
			if checksums[deployment.Name] == deployment.Spec.Template.Annotations["authstack.dev/config-checksum"] {
				return false
			}
		}
		return true
	})
	w.change(func(st *v1alpha1.AuthStack) { st.Spec.DeletionPolicy = v1alpha1.DeletionDelete })
	w.settle()
	w.must(server.Delete(t.Context(), w.stack()))
	w.until("the stack is gone", func() bool { var all v1alpha1.AuthStackList; w.list(&all); return len(all.Items) == 0 })
	w.must(server.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	w.must(server.Get(t.Context(), client.ObjectKeyFromObject(mail), mail))
	g.Expect(claim.DeletionTimestamp).To(BeNil(), "somebody else's claim is never deleted")
	g.Expect(mail.DeletionTimestamp).To(BeNil(), "somebody else's Secret is never deleted")
}

// because is whether the identity provider is not ready for this reason, with a message that says so.
func (w *world) because(reason, says string) func() bool {
	return func() bool {
		found := conditionIn(w.stack().Status.Conditions, v1alpha1.ConditionIdentityProviderReady)
		return found != nil && found.Status == metav1.ConditionFalse && found.Reason == reason && strings.Contains(found.Message, says)
	}
}

// What people give an Authelia beside its fields: files of configuration, and a mail server.
func TestAutheliaTakesFilesAndAMailServer(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	const rules = "access_control: {rules: [{domain: '*.example.com', policy: one_factor}]}\n"
	files := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "issuer"}, Data: map[string][]byte{
		"configuration.yml": []byte("identity_providers: {oidc: {hmac_secret: canary-of-the-issuer}}\n" + rules),
	}}
	w.create(func(st *v1alpha1.AuthStack) {
		st.Spec.Authentik, st.Spec.Authelia = nil, &v1alpha1.AutheliaSpec{
			Version: "4.39.20", Users: &v1alpha1.AutheliaUsers{},
			ExtraConfig: []v1alpha1.AutheliaExtraConfig{{Kind: v1alpha1.ExtraConfigSecret, Name: "issuer"}},
			SMTP: &v1alpha1.AutheliaSMTP{Address: "submission://mail.example.com:587", Sender: "sso@example.com", Username: "sso",
				PasswordSecretRef: &v1alpha1.SecretKeyReference{Name: "mail", Key: "password"}},
		}
	})
	w.until("the missing file is named", w.because(v1alpha1.ReasonSecretMissing, "Secret issuer of spec.authelia.extraConfig[0] does not exist"))
	w.must(server.Create(t.Context(), files))
	w.until("rules in it are refused", w.because(v1alpha1.ReasonInvalidSpec, "sets access_control: write the rules in spec.authelia.accessControl"))
	files.Data["configuration.yml"] = []byte(strings.TrimSuffix(string(files.Data["configuration.yml"]), rules))
	w.must(server.Update(t.Context(), files))
	w.until("the missing password is named", w.because(v1alpha1.ReasonSecretMissing, "Secret mail of spec.authelia.smtp.passwordSecretRef does not exist"))
	w.must(server.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mail"}, Data: map[string][]byte{"password": []byte("canary-of-the-mail-server")}}))
	w.until("Ready", w.ready)

	var configs corev1.ConfigMapList
	w.list(&configs)
	seen := w.describe() + strings.Join(w.events.all(), "\n")
	for _, config := range configs.Items {
		seen += config.Data["configuration.yml"]
	}
	g.Expect(seen).To(ContainSubstring("submission://mail.example.com:587"))
	g.Expect(seen).NotTo(ContainSubstring("canary"))

	w.change(func(st *v1alpha1.AuthStack) {
		st.Spec.Authelia.AccessControl = &v1alpha1.AutheliaAccessControl{Rules: []v1alpha1.AutheliaAccessRule{{Domain: []string{"a.example.com"}, Policy: "one_factor", Resources: []string{"(?=a)"}}}}
	})
	w.until("an expression of another language is refused", w.because(v1alpha1.ReasonInvalidSpec, "spec.authelia.accessControl.rules[0].resources[0] is no regular expression"))
}

// StatefulSets of an older operator have claim templates without a class, and templates cannot be changed.
func TestStatefulSetsOfAnOlderOperatorAreKept(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create(func(st *v1alpha1.AuthStack) { st.Spec.Authentik.Version = "2025.6.4" })
	w.until("Ready", w.ready)
	w.settle()
	var sets appsv1.StatefulSetList
	w.list(&sets)
	g.Expect(sets.Items).To(HaveLen(2))
	for i := range sets.Items {
		set := &sets.Items[i]
		w.must(server.Delete(t.Context(), set))
		g.Expect(set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName).NotTo(BeNil())
		set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = nil
		set.ResourceVersion, set.UID = "", ""
		w.must(server.Create(t.Context(), set))
	}
	w.restart()
	w.settle()
	g.Expect(w.ready()).To(BeTrue(), w.describe())
	// Losing Redis costs less from 2025.8 on, so a new one would have no volume; this one keeps its.
	w.change(func(st *v1alpha1.AuthStack) { st.Spec.Authentik.Version = "2025.8.6" })
	w.until("the upgrade is Ready", w.ready)
	w.settle()
	w.list(&sets)
	for _, set := range sets.Items {
		g.Expect(set.Spec.VolumeClaimTemplates).To(HaveLen(1), set.Name)
	}
}

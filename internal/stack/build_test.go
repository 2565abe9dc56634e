package stack_test

import (
	"crypto/rand"
	"testing"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSmallestStackHasObjectsInEachPhase(t *testing.T) {
	st := &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Name: "sso", Namespace: "auth"}}
	st.Spec.Host = "sso.example.com"
	st.Spec.Authentik = &v1alpha1.AuthentikSpec{Version: "2026.8.3"}
	plan, err := stack.Build(stack.Input{Stack: st, Random: rand.Reader, Facts: facts.Stack{
		StorageClasses: []facts.StorageClass{{Name: "local-path", Provisioner: "rancher.io/local-path", WaitForFirstConsumer: true, Default: true}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, phase := range plan.Phases() {
		t.Logf("%s %+v", phase.Condition, phase.State)
		for _, object := range phase.Objects {
			t.Logf("  %s %s", object.GetObjectKind().GroupVersionKind().Kind, object.GetName())
		}
	}
	if len(plan.IdentityProvider.Objects) == 0 {
		t.Error("no objects of the identity provider though the database's password is known")
	}
}

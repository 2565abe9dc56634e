package api

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// The life of a release: installed, upgraded over CRDs of an earlier release, uninstalled without taking
// the stacks along, and installed again over what stayed. On an API server of its own, which has no CRDs.
func TestChartFromInstallToInstall(t *testing.T) {
	command := exec.CommandContext(t.Context(), "make", "--no-print-directory", "bin/helm")
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	environment := &envtest.Environment{}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	user, err := environment.AddUser(envtest.User{Name: "installer", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, credentials, 0o600); err != nil {
		t.Fatal(err)
	}
	helm := func(arguments ...string) {
		t.Helper()
		arguments = append(arguments, "--kubeconfig", kubeconfig, "--namespace", "authstack-system")
		command := exec.CommandContext(t.Context(), "bin/helm", arguments...)
		command.Dir = root
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("helm %s: %v\n%s", strings.Join(arguments, " "), err, output)
		}
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	const name = "authstacks.authstack.dev"
	stored := func() *apiextensionsv1.CustomResourceDefinition {
		t.Helper()
		found := &apiextensionsv1.CustomResourceDefinition{}
		if err := cluster.Get(t.Context(), client.ObjectKey{Name: name}, found); err != nil {
			t.Fatal(err)
		}
		return found
	}

	install := []string{"install", "authstack", "charts/authstack", "--create-namespace",
		"--set", "image.repository=registry.example.com/authstack-operator,images.k6=registry.example.com/authstack-k6:v1"}
	helm(install...)
	var rules int
	// The API server writes the status of a new CRD for a while.
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		earlier := stored()
		version := earlier.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
		spec := version["spec"]
		rules = len(spec.XValidations)
		// What an earlier release would have had: fewer rules.
		spec.XValidations = spec.XValidations[:1]
		version["spec"] = spec
		return cluster.Update(t.Context(), earlier)
	})
	if err != nil {
		t.Fatal(err)
	}

	helm("upgrade", "authstack", "charts/authstack", "--reuse-values", "--set", "replicaCount=2")
	if got := len(stored().Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].XValidations); got != rules {
		t.Errorf("after the upgrade the CRD has %d rules, not %d", got, rules)
	}
	helm("uninstall", "authstack")
	if stored().DeletionTimestamp != nil {
		t.Error("uninstalling the chart deletes the CRD, and with it every stack")
	}
	helm(install...)
}

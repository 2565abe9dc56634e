// Package api tests the kinds as users meet them: through a real API server with the generated CRDs.
// What is refused is refused with a sentence that says what to write instead.
package api

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../.."
	namespace = "kinds"
)

// server is the API server of this package's tests; it has the CRDs and the namespace.
var (
	server client.Client
	config *rest.Config
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "These tests need a real API server: run make test-api, or set KUBEBUILDER_ASSETS to the directory that devcluster envtest-assets prints.")
		return 1
	}
	// Install fails where the API server refuses a CRD, for example for the cost of its rules.
	environment := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join(root, "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
		CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: 2 * time.Minute}}
	var err error
	if config, err = environment.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "the API server did not start, or refused a CRD:", err)
		return 1
	}
	defer func() {
		if err := environment.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if server, err = client.New(config, client.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Strict: a field that does not exist is an error, not silence.
	server = client.WithFieldValidation(server, metav1.FieldValidationStrict)
	return m.Run()
}

func ensureNamespace(t *testing.T) {
	t.Helper()
	err := server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
}

// object reads a manifest, applies a merge patch in YAML to it (null removes a field), and puts it into
// the namespace of the tests.
func object(t *testing.T, manifest, change string) *unstructured.Unstructured {
	t.Helper()
	original, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatalf("%v in\n%s", err, manifest)
	}
	merged, err := jsonpatch.MergePatch(original, patch(t, change))
	if err != nil {
		t.Fatal(err)
	}
	found := &unstructured.Unstructured{}
	if err := found.UnmarshalJSON(merged); err != nil {
		t.Fatal(err)
	}
	found.SetNamespace(namespace)
	return found
}

// patch is a merge patch in YAML as JSON; nothing changes nothing.
func patch(t *testing.T, change string) []byte {
	t.Helper()
	if change == "" {
		return []byte("{}")
	}
	converted, err := yaml.YAMLToJSON([]byte(change))
	if err != nil {
		t.Fatalf("%v in\n%s", err, change)
	}
	return converted
}

// created makes an object that is gone after the test.
func created(t *testing.T, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	ensureNamespace(t)
	err := server.Create(t.Context(), wanted)
	if err == nil {
		t.Cleanup(func() {
			// The test's own context is done by now.
			if err := server.Delete(context.Background(), wanted); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
	}
	return wanted, err
}

// changed applies a merge patch in YAML.
func changed(t *testing.T, existing *unstructured.Unstructured, change string) error {
	t.Helper()
	return server.Patch(t.Context(), existing, client.RawPatch(types.MergePatchType, patch(t, change)))
}

package api

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"authstack.dev/authstack/api/v1alpha1"
)

// Every sample is taken as it stands, and no tuning default is frozen into what is stored: the spec
// that comes back is the spec that was written.
func TestStoredIsWhatWasWritten(t *testing.T) {
	for path, content := range manifests(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			wanted := object(t, content, "").Object["spec"]
			made, err := created(t, object(t, content, ""))
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(made), made); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(made.Object["spec"], wanted) {
				t.Errorf("the spec was written as\n%v\nand is stored as\n%v", wanted, made.Object["spec"])
			}
			if want := map[string]any{"observedGeneration": int64(-1)}; !reflect.DeepEqual(made.Object["status"], want) {
				t.Errorf("a new object has the status %v, not %v", made.Object["status"], want)
			}
		})
	}
}

// The Go types say the same as the manifests: nothing unknown, nothing lost.
func TestSamplesAreOfTheTypes(t *testing.T) {
	for path, text := range manifests(t) {
		content := []byte(text)
		var err error
		switch object(t, text, "").GetKind() {
		case "AuthStack":
			err = yaml.UnmarshalStrict(content, &v1alpha1.AuthStack{})
		case "LatencyTest":
			err = yaml.UnmarshalStrict(content, &v1alpha1.LatencyTest{})
		case "LatencyComparison":
			err = yaml.UnmarshalStrict(content, &v1alpha1.LatencyComparison{})
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Together the manifests in testdata/full set every field of both specs, so the test above is about all.
func TestFullManifestsSetEveryField(t *testing.T) {
	for kind, plural := range map[string]string{"AuthStack": "authstacks", "LatencyTest": "latencytests", "LatencyComparison": "latencycomparisons"} {
		set := map[string]bool{}
		for path, content := range manifests(t) {
			if found := object(t, content, ""); strings.Contains(path, "full") && found.GetKind() == kind {
				collect(found.Object["spec"], "spec", set)
			}
		}
		walk(schema(t, plural).Properties["spec"], "spec", func(node node) {
			// What is there to be refused with a sentence cannot be set.
			refused := strings.HasSuffix(node.path, ".stackRef.namespace") || kind == "LatencyComparison" && strings.HasPrefix(node.path, "spec.scenarios[].script")
			if refused || strings.HasSuffix(node.path, "[]") || strings.HasSuffix(node.path, "{}") {
				return
			}
			if !set[node.path] {
				t.Errorf("no manifest in testdata/full sets %s of a %s", node.path, kind)
			}
		})
	}
}

// The golden files of the chart are objects that the API server takes.
func TestChartObjectsAreTaken(t *testing.T) {
	goldens, err := filepath.Glob(filepath.Join(root, "test", "chart", "testdata", "*.golden.yaml"))
	if err != nil || len(goldens) == 0 {
		t.Fatalf("no golden files of the chart: %v", err)
	}
	ensureNamespace(t)
	for _, golden := range goldens {
		for _, document := range strings.Split(file(t, golden), "\n---\n") {
			var content map[string]any
			if err := yaml.Unmarshal([]byte(document), &content); err != nil {
				t.Fatal(err)
			}
			found := &unstructured.Unstructured{Object: content}
			if len(content) == 0 || found.GetKind() == "ServiceMonitor" || found.GetKind() == "PrometheusRule" { // their CRDs are the Prometheus operator's
				continue
			}
			if found.GetNamespace() != "" {
				found.SetNamespace(namespace)
			}
			if err := server.Create(t.Context(), found, client.DryRunAll); err != nil {
				t.Errorf("%s: %s %s: %v", filepath.Base(golden), found.GetKind(), found.GetName(), err)
			}
		}
	}
}

// manifests are our objects among the samples and in testdata/full, by path and, where a file has several, by
// their number in it.
func manifests(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{filepath.Join(root, "config", "samples", "*.yaml"), filepath.Join("testdata", "full", "*.yaml")} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("nothing matches %s: %v", pattern, err)
		}
		for _, path := range paths {
			documents := strings.Split(file(t, path), "\n---\n")
			for n, document := range documents {
				if group := object(t, document, "").GroupVersionKind().Group; group != v1alpha1.GroupVersion.Group {
					continue
				}
				name := path
				if len(documents) > 1 {
					name = fmt.Sprintf("%s#%d", path, n+1)
				}
				found[name] = document
			}
		}
	}
	return found
}

func file(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// collect notes the paths of all fields that are set; lists are [].
func collect(value any, path string, set map[string]bool) {
	set[path] = true
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			collect(field, path+"."+name, set)
		}
	case []any:
		for _, item := range value {
			collect(item, path+"[]", set)
		}
	}
}

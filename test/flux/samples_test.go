// Package flux holds the samples for Flux to Flux's own kinds. It is a module of its own, so that who
// uses AuthStack's does not get Flux's.
package flux

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	kustomize "github.com/fluxcd/kustomize-controller/api/v1"
	source "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	root    = "../.."
	samples = root + "/config/samples/flux"
)

// Every object of the samples is one of Flux's kinds and has no field that the kind does not know;
// what a Kustomization names is there.
func TestSamplesAreFluxObjects(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kustomize.AddToScheme, source.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	files, err := filepath.Glob(samples + "/*.yaml")
	if err != nil || len(files) != 2 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	sources, kustomizations := map[string]bool{}, map[string]*kustomize.Kustomization{}
	for _, file := range files {
		for _, document := range documents(t, file) {
			object, _, err := decoder.Decode(document, nil, nil)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			accessor, err := meta.Accessor(object)
			if err != nil {
				t.Fatal(err)
			}
			switch object := object.(type) {
			case *source.GitRepository:
				sources[accessor.GetName()] = true
				if object.Spec.URL == "" || object.Spec.Interval.Duration <= 0 {
					t.Errorf("%s: GitRepository %s lacks its url or interval", file, object.Name)
				}
			case *kustomize.Kustomization:
				kustomizations[accessor.GetName()] = object
				if object.Spec.Interval.Duration <= 0 {
					t.Errorf("%s: Kustomization %s lacks its interval", file, object.Name)
				}
			default:
				t.Errorf("%s: %T", file, object)
			}
		}
	}
	for name, k := range kustomizations {
		if ref := k.Spec.SourceRef; ref.Kind != source.GitRepositoryKind || !sources[ref.Name] {
			t.Errorf("Kustomization %s takes its files from %s %s, which is not among the samples", name, ref.Kind, ref.Name)
		}
		for _, needed := range k.Spec.DependsOn {
			if kustomizations[needed.Name] == nil {
				t.Errorf("Kustomization %s depends on %s, which is not among the samples", name, needed.Name)
			}
		}
		if !k.Spec.Wait {
			t.Errorf("Kustomization %s does not wait, so nothing that depends on it would", name)
		}
	}
	// The operator's files are this repository's.
	if _, err := os.Stat(filepath.Join(root, kustomizations["authstack-operator"].Spec.Path, "kustomization.yaml")); err != nil {
		t.Error(err)
	}
}

func documents(t *testing.T, file string) [][]byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reader := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(content)))
	var found [][]byte
	for {
		buffer := make([]byte, len(content))
		n, err := reader.Read(buffer)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, buffer[:n])
	}
}

// Package rook gives tests Rook's real CRDs, out of Rook's Go module, so that nothing of Rook is
// copied here.
package rook

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	module = "github.com/rook/rook@v1.18.0"
	// sum of the module's zip. The checksum database does not answer for this module everywhere, so
	// the hash stands here, as it would in a go.sum.
	sum = "h1:vkI3HeSoC1h595WHzC/4NuFjB/x6Westw8iEozfrbVE="
)

// CRDs of Rook with these plural names.
func CRDs(t testing.TB, plurals ...string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(download(t), "deploy", "examples", "crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var found []*apiextensionsv1.CustomResourceDefinition
	for _, document := range strings.Split(string(text), "\n---\n") {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal([]byte(document), crd); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(plurals, crd.Spec.Names.Plural) {
			found = append(found, crd)
		}
	}
	if len(found) != len(plurals) {
		t.Fatalf("%s has %d of the CRDs %v", module, len(found), plurals)
	}
	return found
}

// download the module and check its hash; the folder of its files.
func download(t testing.TB) string {
	t.Helper()
	command := exec.Command("go", "mod", "download", "-json", module)
	command.Dir = t.TempDir() // Apart from this module, whose go.mod does not name Rook.
	command.Env = append(os.Environ(), "GONOSUMDB=github.com/rook/rook", "GOFLAGS=-mod=mod")
	var answer struct{ Dir, Sum, Error string }
	out, err := command.Output()
	if jsonErr := json.Unmarshal(out, &answer); jsonErr != nil || err != nil {
		t.Fatal(fmt.Errorf("downloading %s: %w: %s", module, err, answer.Error))
	}
	if answer.Sum != sum {
		t.Fatalf("%s has the hash %s, not %s", module, answer.Sum, sum)
	}
	return answer.Dir
}

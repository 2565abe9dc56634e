// Package k6binary builds k6 with this project's output for tests that measure without a cluster.
package k6binary

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Build returns the path of k6; root is that of the repository. The test fails where it cannot be built.
func Build(t *testing.T, root string) string {
	t.Helper()
	k6 := filepath.Join(t.TempDir(), "authstack-k6")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", k6, ".")
	build.Dir = filepath.Join(root, "loadtests", "k6")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return k6
}

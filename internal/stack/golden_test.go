package stack_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"authstack.dev/authstack/internal/stack"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden holds the objects of a settled stack to testdata. Read the difference before -update.
func TestGolden(t *testing.T) {
	for name, in := range cases {
		t.Run(name, func(t *testing.T) {
			_, plan := settle(t, in())
			got := render(t, plan)
			path := filepath.Join("testdata", slug(name)+".yaml")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("no golden file: %v (run with -update)", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("the plan differs from %s (-want +got):\n%s", path, diff)
			}
		})
	}
}

func slug(name string) string {
	return strings.Trim(regexp.MustCompile(`[^a-z0-9.]+`).ReplaceAllString(strings.ToLower(name), "-"), "-")
}

func render(t *testing.T, plan *stack.Plan) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, phase := range plan.Phases() {
		fmt.Fprintf(&out, "# %s: %s: %s\n", phase.Condition, phase.State.Reason, phase.State.Message)
		for _, object := range phase.Objects {
			out.WriteString("---\n")
			out.Write(asYAML(t, object))
		}
	}
	out.WriteString("---\n# status\n")
	status, err := yaml.Marshal(plan.Status)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(status)
	return out.Bytes()
}

// asYAML of an object as the applier sends it: without status and what is null.
func asYAML(t *testing.T, object client.Object) []byte {
	t.Helper()
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(content, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "status")
	dropNull(fields)
	if data, ok := fields["data"].(map[string]any); ok && fields["kind"] == "Secret" {
		// Which keys there are matters; what is in them is another test's question.
		for key := range data {
			data[key] = "(secret)"
		}
	}
	out, err := yaml.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func dropNull(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if inner == nil {
				delete(value, key)
				continue
			}
			dropNull(inner)
		}
	case []any:
		for _, inner := range value {
			dropNull(inner)
		}
	}
}

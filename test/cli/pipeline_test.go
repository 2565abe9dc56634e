package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"authstack.dev/authstack/api/v1alpha1"
)

// The gate in a real pipeline shape: the script in hack/ci with the real kubectl and the real command as
// its plugin. A change that makes the login slower fails the build and is taken back; one that does not
// stays.
func TestPipelineFailsTheBuildWhenTheLoginGotSlower(t *testing.T) {
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "kubectl-authstack"), "./cmd/kubectl-authstack")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for name, row := range map[string]struct {
		verdict v1alpha1.Verdict
		median  int64
		code    int
		host    string
	}{
		"a change that is fast enough stays":                     {v1alpha1.VerdictPassed, 600_000, 0, "new.example.com"},
		"a slower one fails the build and is taken back":         {v1alpha1.VerdictFailed, 1_400_000, 1, "sso.example.com"},
		"one of which nothing can be said is taken back as well": {v1alpha1.VerdictInconclusive, 600_000, 2, "sso.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			stack := w.stack()
			w.operate(row.verdict, row.median)
			w.observe()
			folder := t.TempDir()
			manifest := func(file, host string) string {
				path := filepath.Join(folder, file)
				text := fmt.Sprintf("apiVersion: authstack.dev/v1alpha1\nkind: AuthStack\nmetadata: {name: sso}\nspec: {host: %s, authentik: {version: \"2026.8.3\"}}\n", host)
				must(t, os.WriteFile(path, []byte(text), 0o644))
				return path
			}
			good, change := manifest("good.yaml", "sso.example.com"), manifest("change.yaml", "new.example.com")
			command := exec.CommandContext(t.Context(), "hack/ci/pipeline.sh", w.namespace, "sso", good, change, "--timeout", "2m")
			command.Dir = root
			command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "REPORTS="+folder, "PATH="+bin+":"+os.Getenv("KUBEBUILDER_ASSETS")+":"+os.Getenv("PATH"))
			output, err := command.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := command.ProcessState.ExitCode(); got != row.code {
				t.Errorf("the build ends with %d, not %d:\n%s", got, row.code, output)
			}
			must(t, server.Get(t.Context(), client.ObjectKeyFromObject(stack), stack))
			if stack.Spec.Host != row.host {
				t.Errorf("the stack runs with %s:\n%s", stack.Spec.Host, output)
			}
			if junit, err := os.ReadFile(filepath.Join(folder, "junit.xml")); err != nil || !strings.Contains(string(junit), "<testsuites>") {
				t.Errorf("no JUnit: %v", err)
			}
		})
	}
}

// kubectl itself ends with 1 where it knows no command authstack; that is no verdict, and nothing may have been applied.
func TestPipelineWithoutTheCommandAppliesNothing(t *testing.T) {
	w := newWorld(t)
	stack := w.stack()
	before := stack.Spec.Host
	change := filepath.Join(t.TempDir(), "change.yaml")
	must(t, os.WriteFile(change, []byte("apiVersion: authstack.dev/v1alpha1\nkind: AuthStack\nmetadata: {name: sso}\nspec: {host: new.example.com, authentik: {version: \"2026.8.3\"}}\n"), 0o644))
	command := exec.CommandContext(t.Context(), "hack/ci/pipeline.sh", w.namespace, "sso", change, change)
	command.Dir = root
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "REPORTS="+t.TempDir(), "PATH="+os.Getenv("KUBEBUILDER_ASSETS")+":/usr/bin:/bin")
	output, _ := command.CombinedOutput()
	if got := command.ProcessState.ExitCode(); got != 3 || !strings.Contains(string(output), "kubectl authstack is not there") {
		t.Errorf("the build ends with %d:\n%s", got, output)
	}
	must(t, server.Get(t.Context(), client.ObjectKeyFromObject(stack), stack))
	if stack.Spec.Host != before {
		t.Errorf("the stack runs with %s", stack.Spec.Host)
	}
}

// The action is a composite one whose script gets every input through the environment, where no input
// can become part of a command.
func TestActionTakesInputsThroughTheEnvironment(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "action.yml"))
	must(t, err)
	var action struct {
		Inputs, Outputs map[string]struct{ Description string }
		Runs            struct {
			Using string
			Steps []struct {
				Run   string
				Shell string
				Env   map[string]string
			}
		}
	}
	must(t, yaml.Unmarshal(content, &action))
	last := action.Runs.Steps[len(action.Runs.Steps)-1]
	if action.Runs.Using != "composite" || last.Shell != "bash" || strings.Contains(last.Run, "${{") {
		t.Errorf("the step is %+v", last)
	}
	for input, about := range action.Inputs {
		used := false
		for _, value := range last.Env {
			used = used || value == "${{ inputs."+input+" }}"
		}
		if !used || about.Description == "" {
			t.Errorf("input %s is not used or not described", input)
		}
	}

	// And the script itself, as the runner calls it.
	w := newWorld(t)
	w.stack()
	w.operate(v1alpha1.VerdictInconclusive, 600_000)
	folder := t.TempDir()
	summary, outputs := filepath.Join(folder, "summary.md"), filepath.Join(folder, "outputs")
	absolute, err := filepath.Abs(root)
	must(t, err)
	command := exec.CommandContext(t.Context(), "bash", filepath.Join(absolute, "hack/ci/action.sh"))
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "GITHUB_STEP_SUMMARY="+summary, "GITHUB_OUTPUT="+outputs, "ACTION="+absolute, "REPORT="+folder,
		"STACK=sso", "NAMESPACE="+w.namespace, "GIVEN_KUBECONFIG=", "OBJECTIVES=Login:p95<800ms\nLogin:p50<700ms\n", "SCENARIOS=Login=90", "REPEATS=2", "TIMEOUT=2m", "ALLOW_INCONCLUSIVE=true")
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for path, want := range map[string]string{summary: "Inconclusive", outputs: "exit-code=2\nverdict=Inconclusive\n", filepath.Join(folder, "report.html"): "<!DOCTYPE html>"} {
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v does not say %q", filepath.Base(path), err, want)
		}
	}
	if spec := w.tests()[0].Spec; len(spec.Objectives) != 2 || *spec.Scenarios[0].Iterations != 90 || *spec.Repeats != 2 {
		t.Errorf("the LatencyTest asks for %+v", spec)
	}
}

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
	"authstack.dev/authstack/internal/latency"
)

// builtPlugin is a folder with kubectl-authstack.
func builtPlugin(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "kubectl-authstack"), "./cmd/kubectl-authstack")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return bin
}

// The gate in a real pipeline shape: the script in hack/ci with the real kubectl and the real command as
// its plugin. A change that makes the login slower fails the build and is taken back; one that does not
// stays.
func TestPipelineFailsTheBuildWhenTheLoginGotSlower(t *testing.T) {
	bin := builtPlugin(t)
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
	folder, code, output := w.action("OBJECTIVES=Login:p95<800ms\nLogin:p50<700ms\n", "SCENARIOS=Login=90", "REPEATS=2", "ALLOW_INCONCLUSIVE=true")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, output)
	}
	for path, want := range map[string]string{"summary.md": "Inconclusive", "outputs": "exit-code=2\nverdict=Inconclusive\n", "report.html": "<!DOCTYPE html>"} {
		if text, err := os.ReadFile(filepath.Join(folder, path)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v does not say %q", path, err, want)
		}
	}
	if spec := w.tests()[0].Spec; len(spec.Objectives) != 2 || *spec.Scenarios[0].Iterations != 90 || *spec.Repeats != 2 {
		t.Errorf("the LatencyTest asks for %+v", spec)
	}
}

// action runs the script of the action as the runner does, with further inputs; it returns the folder of what it wrote.
func (w *world) action(inputs ...string) (folder string, code int, output string) {
	w.t.Helper()
	folder = w.t.TempDir()
	absolute, err := filepath.Abs(root)
	must(w.t, err)
	command := exec.CommandContext(w.t.Context(), "bash", filepath.Join(absolute, "hack/ci/action.sh"))
	command.Env = append(append(os.Environ(), "KUBECONFIG="+kubeconfig, "GITHUB_STEP_SUMMARY="+filepath.Join(folder, "summary.md"), "GITHUB_OUTPUT="+filepath.Join(folder, "outputs"),
		"ACTION="+absolute, "REPORT="+folder, "STACK=sso", "NAMESPACE="+w.namespace, "GIVEN_KUBECONFIG=", "OBJECTIVES=", "SCENARIOS=", "REPEATS=", "TIMEOUT=2m", "ALLOW_INCONCLUSIVE=false"), inputs...)
	said, _ := command.CombinedOutput()
	return folder, command.ProcessState.ExitCode(), string(said)
}

func TestActionHandsOnTheBaseline(t *testing.T) {
	w := newWorld(t)
	w.stack()
	w.measured("before", v1alpha1.VerdictPassed, 700_000, 705_000, 695_000)
	file := filepath.Join(t.TempDir(), "baseline.json")
	if got := w.call(t.Context(), "baseline", "save", "before", "-o", file); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if _, code, output := w.action("BASELINE="+file, "NOT_WORSE_THAN=0"); code != 3 || !strings.Contains(output, "write 1 to 1000 per cent") {
		t.Errorf("exit code %d\n%s", code, output)
	}
	w.operate(v1alpha1.VerdictPassed, 600_000)
	folder, code, output := w.action("BASELINE="+file, "NOT_WORSE_THAN=7")
	// What stands in for the operator keeps no repeats, without which nothing can be compared.
	summary, err := os.ReadFile(filepath.Join(folder, "summary.md"))
	if code != 2 || err != nil || !strings.Contains(string(summary), "baseline") {
		t.Errorf("exit code %d, %v: %s\n%s", code, err, summary, output)
	}
	for _, test := range w.tests() {
		if test.Name != "before" && (test.Spec.Repeats == nil || *test.Spec.Repeats != latency.BaselineRepeats) {
			t.Errorf("repeats: %v, not those of a baseline", test.Spec.Repeats)
		}
	}
}

// The snippet for GitLab in docs/ci.md, run as its runner would: line by line in one shell that ends with the first that fails.
func TestTheGitLabSnippet(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/ci.md"))
	must(t, err)
	_, snippet, _ := strings.Cut(string(text), "## GitLab CI\n\n```yaml\n")
	snippet, _, _ = strings.Cut(snippet, "```")
	var pipeline map[string]struct {
		Script       []string
		AllowFailure struct {
			ExitCodes []int `json:"exit_codes"`
		} `json:"allow_failure"`
		Artifacts struct {
			Paths   []string
			Reports struct{ JUnit string }
		}
	}
	must(t, yaml.Unmarshal([]byte(snippet), &pipeline))
	job := pipeline["latency"]
	if len(job.Script) != 3 || len(job.AllowFailure.ExitCodes) != 1 || job.AllowFailure.ExitCodes[0] != 2 {
		t.Fatalf("the job is %+v", job)
	}
	for verdict, want := range map[v1alpha1.Verdict]int{v1alpha1.VerdictPassed: 0, v1alpha1.VerdictFailed: 1, v1alpha1.VerdictInconclusive: 2} {
		t.Run(string(verdict), func(t *testing.T) {
			w := newWorld(t)
			w.stack()
			w.operate(verdict, 600_000)
			folder := t.TempDir()
			absolute, err := filepath.Abs(root)
			must(t, err)
			// The clone is this tree, so that what is tested is what is here and not what was committed.
			script := strings.NewReplacer("/tmp/authstack", filepath.Join(folder, "clone"), "/usr/local/bin", folder, "-n identity", "-n "+w.namespace).
				Replace(strings.Join(job.Script, "\n"))
			// Whatever else is asked of git, go build asks, which stamps a program with the commit.
			real, err := exec.LookPath("git")
			must(t, err)
			git := "#!/bin/sh\nif [ \"$1 $5\" = \"clone v1.2.3\" ]; then ln -s \"$6\" \"$7\"; else exec " + real + " \"$@\"; fi\n"
			must(t, os.WriteFile(filepath.Join(folder, "git"), []byte(git), 0o755))
			command := exec.CommandContext(t.Context(), "bash", "-ec", script)
			command.Dir = folder
			command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+folder+":"+os.Getenv("PATH"), "AUTHSTACK_REPOSITORY="+absolute, "AUTHSTACK_VERSION=v1.2.3")
			output, _ := command.CombinedOutput()
			if got := command.ProcessState.ExitCode(); got != want {
				t.Errorf("the job ends with %d, not %d:\n%s", got, want, output)
			}
			for _, name := range append(job.Artifacts.Paths, job.Artifacts.Reports.JUnit) {
				if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
					t.Errorf("no artifact %s: %v", name, err)
				}
			}
		})
	}
}

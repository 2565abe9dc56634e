package cli

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/cli"
)

func TestStatus(t *testing.T) {
	w := newWorld(t)
	w.stack()
	one := w.call(t.Context(), "status", "sso")
	golden(t, "status.txt", one.out)
	all := w.call(t.Context(), "status")
	golden(t, "status-all.txt", all.out)
	if one.code != cli.ExitPassed || all.code != cli.ExitPassed {
		t.Errorf("the exit codes are %d and %d: %s%s", one.code, all.code, one.err, all.err)
	}
	if none := w.call(t.Context(), "status", "ssso"); none.code != cli.ExitError || !strings.Contains(none.err, "there is no authstack ssso in namespace identity") {
		t.Errorf("a stack that there is not: %+v", none)
	}
}

func TestTestMeasuresAndShows(t *testing.T) {
	w := newWorld(t)
	w.stack()
	w.seen = "k6 runs in Job x, 1 of 1"
	w.operate(v1alpha1.VerdictPassed, 600_000)
	got := w.call(t.Context(), "test", "sso", "--name", "evening", "--scenario", "Login=60", "--virtual-users", "2", "--objective", "Login:p95<800ms", "--repeats", "3")
	if got.code != cli.ExitPassed {
		t.Fatalf("exit code %d: %s", got.code, got.err)
	}
	golden(t, "test.txt", got.out)
	for _, want := range []string{"made LatencyTest identity/evening", w.seen} {
		if !strings.Contains(got.err, want) {
			t.Errorf("the progress does not say %q:\n%s", want, got.err)
		}
	}
	tests := w.tests()
	if len(tests) != 1 {
		t.Fatalf("%d LatencyTests are left, not the one that was made", len(tests))
	}
	spec := tests[0].Spec
	if *spec.Repeats != 3 || *spec.Scenarios[0].VirtualUsers != 2 || spec.Objectives[0].Below.Duration != 800*time.Millisecond {
		t.Errorf("the LatencyTest asks for %+v", spec)
	}
}

func TestTestRemovesWhatItMade(t *testing.T) {
	w := newWorld(t)
	w.stack()
	t.Run("after it was shown, with --rm", func(t *testing.T) {
		w := newWorld(t)
		w.stack()
		w.operate(v1alpha1.VerdictFailed, 900_000)
		if got := w.call(t.Context(), "test", "sso", "--rm"); got.code != cli.ExitFailed || !strings.Contains(got.out, "FAILED") {
			t.Errorf("%+v", got)
		}
		if left := w.tests(); len(left) != 0 {
			t.Errorf("%s is left", left[0].Name)
		}
	})
	t.Run("when it is interrupted", func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		done := make(chan said, 1)
		go func() { done <- w.call(ctx, "test", "sso") }()
		for len(w.tests()) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		interrupt()
		if got := <-done; got.code != cli.ExitError || !strings.Contains(got.err, "interrupted") {
			t.Errorf("%+v", got)
		}
		if left := w.tests(); len(left) != 0 {
			t.Errorf("%s is left", left[0].Name)
		}
	})
	t.Run("when it is interrupted before the API server has said that it is made", func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		// Interrupted when the API server has made it, and while its answer is still on the way.
		slow := inFrontOfTheServer(t, func(response *http.Response) {
			if response.Request.Method == http.MethodPost && strings.HasSuffix(response.Request.URL.Path, "/latencytests") {
				interrupt()
				time.Sleep(200 * time.Millisecond)
			}
		})
		if got := w.callOn(ctx, slow, "test", "sso"); got.code != cli.ExitError || !strings.Contains(got.err, "interrupted") {
			t.Errorf("%+v", got)
		}
		if left := w.tests(); len(left) != 0 {
			t.Errorf("%s is left", left[0].Name)
		}
	})
	t.Run("and makes nothing in a dry run", func(t *testing.T) {
		got := w.call(t.Context(), "test", "sso", "--dry-run", "--scenario", "Login=200")
		golden(t, "dry-run.yaml", got.out)
		if left := w.tests(); len(left) != 0 || got.code != cli.ExitPassed {
			t.Errorf("%d LatencyTests, %+v", len(left), got)
		}
		test := &v1alpha1.LatencyTest{}
		must(t, yaml.UnmarshalStrict([]byte(got.out), test))
		test.Namespace = w.namespace
		must(t, server.Create(t.Context(), test, client.DryRunAll))
	})
}

// The four verdicts, and everything that is not one.
func TestGateExitCodes(t *testing.T) {
	for name, row := range map[string]struct {
		verdict v1alpha1.Verdict
		code    int
	}{
		"Passed":       {v1alpha1.VerdictPassed, 0},
		"Failed":       {v1alpha1.VerdictFailed, 1},
		"Inconclusive": {v1alpha1.VerdictInconclusive, 2},
		"Error":        {v1alpha1.VerdictError, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.stack()
			w.operate(row.verdict, 700_000)
			folder := t.TempDir()
			in := func(file string) string { return filepath.Join(folder, file) }
			must(t, os.WriteFile(in("summary.md"), []byte("from the step before\n"), 0o644))
			got := w.call(t.Context(), "gate", "sso", "--junit", in("gate.xml"), "--markdown", in("summary.md"), "--html", in("pages/gate.html"), "--json", in("gate.json"))
			if got.code != row.code {
				t.Errorf("exit code %d, not %d: %s", got.code, row.code, got.err)
			}
			if again := w.call(t.Context(), "gate", "-f", in("gate.json")); again.code != row.code {
				t.Errorf("the written report is judged %d, not %d: %s", again.code, row.code, again.err)
			}
			if again := w.call(t.Context(), "gate", "--test", w.tests()[0].Name); again.code != row.code {
				t.Errorf("the LatencyTest is judged %d, not %d: %s", again.code, row.code, again.err)
			}
			for file, want := range map[string]string{"gate.xml": "<testsuites>", "summary.md": "from the step before\n## ", "pages/gate.html": "<!DOCTYPE html>"} {
				if content, err := os.ReadFile(in(file)); err != nil || !strings.HasPrefix(strings.TrimPrefix(string(content), `<?xml version="1.0" encoding="UTF-8"?>`+"\n"), want) {
					t.Errorf("%s: %v %.60s", file, err, content)
				}
			}
		})
	}
}

func TestWrongUseIsAnErrorAndNoVerdict(t *testing.T) {
	w := newWorld(t)
	w.stack()
	broken := filepath.Join(t.TempDir(), "report.json")
	must(t, os.WriteFile(broken, []byte(`{"apiVersion":"v1"}`), 0o644))
	for name, row := range map[string]struct{ args, says string }{
		"a flag that there is not":       {"gate sso --no-such-flag", "unknown flag"},
		"a command that there is not":    {"gates sso", "unknown command"},
		"nothing to judge":               {"gate", "name one thing to judge"},
		"two things to judge":            {"gate sso --test x", "name one thing to judge"},
		"an objective for an old run":    {"gate --test x --objective Login:p95<1s", "for a new measurement"},
		"an objective that is none":      {"gate sso --objective Login<1s", "SCENARIO[/ENDPOINT]:pN<DURATION"},
		"a file that is no report":       {"gate -f " + broken, "not a report"},
		"a file that there is not":       {"gate -f /nowhere.json", "no such file"},
		"a format that there is not":     {"gate sso -o xml", "histogram, html, json, junit, markdown, table"},
		"a stack that there is not":      {"gate nobody --timeout 1s", "there is no authstack nobody in namespace identity"},
		"a test that there is not":       {"gate --test nobody", "there is no latencytest nobody"},
		"a stack and an address":         {"test sso --url http://x --provider authelia", "not both"},
		"neither stack nor address":      {"test", "name one stack"},
		"an address with a path":         {"test --url https://sso.example.com/outpost --provider authentik", "without a path"},
		"an address with a password":     {"test --url https://me:secret@sso.example.com --provider authentik", "without a path"},
		"a product that is none":         {"test --url https://sso.example.com --provider keycloak", "write authentik or authelia"},
		"virtual users of no scenario":   {"test sso --virtual-users 4", "name them with --scenario"},
		"a scenario the product has not": {"test --url https://sso.example.com --provider authelia --scenario Dashboard", "Authelia does not have"},
		"a name that is too long":        {"test sso --name " + strings.Repeat("x", 60), "at most 52 characters"},
		"a sizing of a handful":          {"sizing sso --iterations 3", "at least 10"},
		"a context that there is not":    {"status sso --context nowhere", "nowhere"},
		"a report of nothing":            {"report", "name a LatencyTest"},
		"plots of a test without any":    {"report --plots out x", "there is no latencytest x"},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.call(t.Context(), strings.Fields(row.args)...)
			if got.code != cli.ExitError {
				t.Errorf("exit code %d", got.code)
			}
			if !strings.Contains(got.err, row.says) {
				t.Errorf("it does not say %q: %s", row.says, got.err)
			}
			if strings.Contains(got.err, "secret") && name != "an address with a password" {
				t.Error("it repeats a password")
			}
		})
	}
	if left := w.tests(); len(left) != 0 {
		t.Errorf("%d LatencyTests were made", len(left))
	}
}

func TestGateWaitsForTheStack(t *testing.T) {
	t.Run("until it is Ready for its newest spec", func(t *testing.T) {
		w := newWorld(t)
		stack := w.stack(func(s *v1alpha1.AuthStack) { s.Status.ObservedGeneration = -1 })
		w.operate(v1alpha1.VerdictPassed, 600_000)
		done := make(chan said, 1)
		go func() { done <- w.call(t.Context(), "gate", "sso") }()
		time.Sleep(200 * time.Millisecond)
		if len(w.tests()) != 0 {
			t.Error("it measured a stack whose spec the operator has not seen")
		}
		must(t, server.Get(t.Context(), client.ObjectKeyFromObject(stack), stack))
		stack.Status.ObservedGeneration = stack.Generation
		must(t, server.Status().Update(t.Context(), stack))
		if got := <-done; got.code != cli.ExitPassed {
			t.Errorf("%+v", got)
		}
	})
	t.Run("and not longer than --timeout", func(t *testing.T) {
		w := newWorld(t)
		w.stack(func(s *v1alpha1.AuthStack) {
			s.Status.Conditions = []metav1.Condition{condition("Ready", "False", "Progressing", "the database starts")}
		})
		if got := w.call(t.Context(), "gate", "sso", "--timeout", "100ms"); got.code != cli.ExitError || !strings.Contains(got.err, "is not Ready after 100ms: the database starts") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("and not at all for one that is Stalled", func(t *testing.T) {
		w := newWorld(t)
		w.stack(func(s *v1alpha1.AuthStack) {
			s.Status.Conditions = []metav1.Condition{condition("Stalled", "True", "InvalidSpec", "there is no such class")}
		})
		if got := w.call(t.Context(), "gate", "sso"); got.code != cli.ExitError || !strings.Contains(got.err, "is Stalled: there is no such class") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("and with --last for the operator's own measurement of the newest spec", func(t *testing.T) {
		w := newWorld(t)
		stack := w.stack(func(s *v1alpha1.AuthStack) {
			s.Status.Latency = &v1alpha1.LatencyStatus{TestName: "old", TestedGeneration: 0, Verdict: v1alpha1.VerdictPassed, Running: "new"}
		})
		test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "new"}}
		test.Spec.StackRef.Name = "sso"
		must(t, server.Create(t.Context(), test))
		done := make(chan said, 1)
		go func() { done <- w.call(t.Context(), "gate", "sso", "--last") }()
		must(t, w.finish(t.Context(), test, v1alpha1.VerdictFailed, 900_000))
		stack.Status.Latency = &v1alpha1.LatencyStatus{TestName: "new", TestedGeneration: stack.Generation, Verdict: v1alpha1.VerdictFailed}
		must(t, server.Status().Update(t.Context(), stack))
		if got := <-done; got.code != cli.ExitFailed || !strings.Contains(got.out, "new of stack identity/sso: FAILED") {
			t.Errorf("%+v", got)
		}
	})
}

func TestReportIsWrittenInEveryForm(t *testing.T) {
	w := newWorld(t)
	w.stack()
	for _, name := range []string{"before", "after"} {
		test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		test.Spec.StackRef.Name = "sso"
		must(t, server.Create(t.Context(), test))
		must(t, w.finish(t.Context(), test, v1alpha1.VerdictPassed, 600_000))
	}
	for format, want := range map[string]string{"table": "PASSED", "json": `"apiVersion": "authstack.dev/report/v1"`, "junit": "<testsuites>",
		"markdown": "## identity/after: Passed", "html": "Before and after", "histogram": "Login login, 60 measured"} {
		if got := w.call(t.Context(), "report", "before", "after", "-o", format); got.code != cli.ExitPassed || !strings.Contains(got.out, want) {
			t.Errorf("-o %s: exit code %d, %s%.300s", format, got.code, got.err, got.out)
		}
	}
	folder := t.TempDir()
	if got := w.call(t.Context(), "report", "before", "after", "--plots", folder); got.code != cli.ExitPassed {
		t.Fatalf("%+v", got)
	}
	for _, name := range []string{"double-before-login-distribution", "double-after-login-percentiles", "compared-login-login"} {
		svg, err := os.ReadFile(filepath.Join(folder, name+".svg"))
		must(t, err)
		png, err := os.ReadFile(filepath.Join(folder, name+".png"))
		must(t, err)
		if !strings.Contains(string(svg), "http://www.w3.org/2000/svg") || !strings.HasPrefix(string(png), "\x89PNG") {
			t.Errorf("%s is no drawing", name)
		}
	}
}

func TestCompletionKnowsTheClusterAndTheShells(t *testing.T) {
	w := newWorld(t)
	w.stack()
	if got := w.call(t.Context(), "__complete", "gate", "s"); !strings.Contains(got.out, "sso") {
		t.Errorf("a stack is not completed: %+v", got)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := w.call(t.Context(), "completion", shell); got.code != cli.ExitPassed || len(got.out) < 1000 {
			t.Errorf("%s: %+v", shell, got)
		}
	}
}

func TestKubectlCanAskForTheWordsOfItsPlugin(t *testing.T) {
	bin := builtPlugin(t)
	ask := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "kubectl_complete-authstack"), "ga")
	ask.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	if out, err := ask.Output(); err != nil || !strings.HasPrefix(string(out), "gate\t") {
		t.Errorf("for ga it says %q, %v", out, err)
	}
}

func TestHelpTeachesByExample(t *testing.T) {
	w := newWorld(t)
	for _, command := range []string{"status", "test", "gate", "report", "sizing"} {
		got := w.call(t.Context(), command, "--help")
		if got.code != cli.ExitPassed || !strings.Contains(got.out, "\n  kubectl authstack "+command) || strings.Contains(got.out, "DISPLAY") {
			t.Errorf("%s --help has no example that can be copied:\n%s", command, got.out)
		}
	}
}

package latency

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

func source() *v1alpha1.ScriptSource {
	return &v1alpha1.ScriptSource{ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "mine", Key: "script.js"}}
}

// scripted is the input of a Job that runs a script of the user's own.
func scripted(t *testing.T, addresses ...string) JobInput {
	t.Helper()
	in := input(t)
	in.Test.Spec.Scenarios = []v1alpha1.Scenario{{Name: v1alpha1.ScenarioScript, Script: source()}}
	var err error
	if in.Plan, err = Resolve(in.Test, authentik()); err != nil {
		t.Fatal(err)
	}
	in.Script = &Script{Text: "export default function () {}"}
	for _, a := range addresses {
		in.Script.Addresses = append(in.Script.Addresses, netip.MustParseAddr(a))
	}
	return in
}

func TestReadScript(t *testing.T) {
	config := func(key, text string) *corev1.ConfigMap { return &corev1.ConfigMap{Data: map[string]string{key: text}} }
	for name, test := range map[string]struct {
		config *corev1.ConfigMap
		says   string
	}{
		"a script":                        {config: config("script.js", "export default () => {}")},
		"no ConfigMap":                    {nil, "kubectl create configmap mine --from-file=script.js"},
		"another key":                     {config("other.js", "x"), "ConfigMap mine has no key script.js in its data"},
		"a script among the binary data":  {&corev1.ConfigMap{BinaryData: map[string][]byte{"script.js": []byte("x")}}, "has no key script.js in its data"},
		"nothing but spaces":              {config("script.js", " \n"), "is empty; put the k6 script there"},
		"a script at the bound":           {config: config("script.js", strings.Repeat("x", MaxScriptBytes))},
		"a script of one byte beyond it ": {config("script.js", strings.Repeat("x", MaxScriptBytes+1)), "has 262145 bytes and may have 262144"},
	} {
		t.Run(name, func(t *testing.T) {
			text, problem := ReadScript(source(), test.config)
			if (problem == "") != (test.says == "") || !strings.Contains(problem, test.says) || (text == "") != (test.says != "") {
				t.Errorf("%d bytes, problem %q, want %q", len(text), problem, test.says)
			}
		})
	}
}

func TestAScriptRunsConfined(t *testing.T) {
	for name, test := range map[string]struct {
		addresses []string
		baseURL   string
		prefixes  int
	}{
		"a Service of one family": {[]string{"10.43.7.9"}, "http://10.43.7.9:9000", 32 + 1},
		"a Service of both":       {[]string{"fd00::7", "10.43.7.9"}, "http://[fd00::7]:9000", 128 + 32},
	} {
		t.Run(name, func(t *testing.T) {
			in := scripted(t, test.addresses...)
			objects := Objects(in)
			if len(objects) != 4 {
				t.Fatalf("%d objects", len(objects))
			}
			config, policy := objects[0].(*corev1.ConfigMap), objects[2].(*networkingv1.NetworkPolicy)
			job := objects[3].(*batchv1.Job)
			var plan planFile
			if err := json.Unmarshal([]byte(config.Data["plan.json"]), &plan); err != nil || plan.BaseURL != test.baseURL || plan.Scenarios[0].Name != "Script" {
				t.Errorf("%v, plan %+v", err, plan)
			}
			if config.Data["user.js"] != in.Script.Text || !*config.Immutable {
				t.Errorf("the script that runs is %q", config.Data["user.js"])
			}
			text, _ := json.Marshal(job)
			pod := job.Spec.Template.Spec
			args := pod.Containers[0].Args
			if args[len(args)-1] != "/scripts/script.js" || !slices.Contains(args, "--block-hostnames=*") || !slices.Contains(args, "--console-output=/dev/null") {
				t.Errorf("arguments: %q", args)
			}
			i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "--blacklist-ip=") })
			if i < 0 || strings.Count(args[i], ",")+1 != test.prefixes {
				t.Errorf("arguments: %q", args)
			}
			for _, want := range []string{`"AUTHSTACK_SCRIPT","value":"/scripts/user.js"`, `"AUTHSTACK_BASE_URL","value":"` + test.baseURL + `"`} {
				if !strings.Contains(string(text), want) {
					t.Errorf("the environment lacks %s", want)
				}
			}
			if strings.Contains(string(text), "canary") {
				t.Error("the Job holds a credential")
			}
			if len(policy.Spec.Ingress) != 0 || len(policy.Spec.Egress) != 1 || len(policy.Spec.Egress[0].To) != 1 ||
				policy.Spec.PolicyTypes[0] != networkingv1.PolicyTypeEgress ||
				policy.Spec.Egress[0].To[0].PodSelector.MatchLabels["app.kubernetes.io/name"] != Authentik {
				t.Errorf("policy: %+v", policy.Spec)
			}
			for label, value := range policy.Spec.PodSelector.MatchLabels {
				if job.Spec.Template.Labels[label] != value {
					t.Errorf("the policy does not select the Pod: %s=%s", label, value)
				}
			}
		})
	}
	t.Run("the scenarios of this project go on by name", func(t *testing.T) {
		in := input(t)
		_, _, job := made(t, in)
		args := job.Spec.Template.Spec.Containers[0].Args
		if args[len(args)-1] != "/scripts/main.js" || len(args) != 6 {
			t.Errorf("arguments: %q", args)
		}
	})
}

func scriptRun() *result.Run {
	run := goodRun()
	run.ScriptDigest = "sha256:aaaaaaaaaaaaaaaaaaaa"
	run.Scenarios = []result.Scenario{{Name: "Script", Iterations: 60, WarmUpIterations: 6, Checks: []result.Check{{Name: "it is well", Passed: 66}}}}
	for i, name := range []string{"script", "config"} {
		run.Series[i].Scenario, run.Series[i].Endpoint = "Script", name
	}
	return run
}

func TestJudgeAScript(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(plan *Plan, runs []*result.Run, ev *Evidence)
		want     v1alpha1.Verdict
		says     string
		violated string
	}{
		"all is well":                  {want: "Passed", says: "Script p95 is 612ms, below 800ms; Script/config p90 is"},
		"another script at the end":    {func(_ *Plan, _ []*result.Run, ev *Evidence) { ev.ScriptDigest = "sha256:b" }, "Inconclusive", "changed during the run, from sha256:aaaaaaaaaaaa… to sha256:b", GuardScriptUnchanged},
		"no script at the end":         {func(_ *Plan, _ []*result.Run, ev *Evidence) { ev.ScriptDigest = "" }, "Inconclusive", "taken out of the ConfigMap", GuardScriptUnchanged},
		"another in the second repeat": {func(_ *Plan, runs []*result.Run, _ *Evidence) { runs[1].ScriptDigest = "sha256:b" }, "Inconclusive", "repeat 2 another", GuardScriptUnchanged},
		"an image that says no script": {func(_ *Plan, runs []*result.Run, _ *Evidence) { runs[1].ScriptDigest = "" }, "Inconclusive", "repeat 2 does not say", GuardScriptUnchanged},
		"a check that failed once in ten": {func(_ *Plan, runs []*result.Run, _ *Evidence) {
			runs[0].Scenarios[0].Checks = []result.Check{{Name: "it is well", Passed: 54, Failed: 12}}
		}, "Failed", `the check "it is well" of Script failed 12 of 132 times`, GuardFailures},
		"a request elsewhere": {func(_ *Plan, runs []*result.Run, _ *Evidence) {
			runs[0].Series[1].AddFailure(result.FailureElsewhere, 3)
		}, "Error", "asked for another address than the stack's: 3 requests of endpoint config.", ""},
		"a script that threw": {func(_ *Plan, runs []*result.Run, _ *Evidence) {
			runs[0].Series[0].AddFailure("script error: x is not defined", 3)
		}, "Error", "The script of Script broke off in the middle: x is not defined.", ""},
		"a script that asks nothing": {func(_ *Plan, runs []*result.Run, _ *Evidence) {
			for _, run := range runs {
				run.Series = run.Series[:1]
			}
		}, "Error", "made no request", ""},
		"a stack that does not answer": {func(_ *Plan, runs []*result.Run, _ *Evidence) {
			for _, run := range runs {
				run.Series[1].Total, run.Series[1].Unanswered = result.NewHistogram(), 60
				run.Series[1].AddFailure("no answer (connection refused)", 60)
			}
		}, "Error", "cannot be reached", ""},
		"a syntax error": {func(_ *Plan, runs []*result.Run, ev *Evidence) {
			runs[0] = nil
			ev.Jobs[0].ExitCode, ev.Jobs[0].Said, ev.Jobs[0].LogError = ptr(int32(107)), "SyntaxError: file:///scripts/user.js: Line 2:9 Unexpected token = ", result.ErrNoResult
		}, "Error", "Repeat 1 of 2: A script of k6 is broken (exit code 107): SyntaxError: file:///scripts/user.js: Line 2:9 Unexpected token = .", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := scripted(t, "10.0.0.1")
			in.Test.Spec.Repeats = ptr(int32(2))
			in.Test.Spec.Objectives = []v1alpha1.Objective{objective("Script", "", 95, 800e6), objective("Script", "config", 90, 800e6)}
			plan, err := Resolve(in.Test, authentik())
			if err != nil {
				t.Fatal(err)
			}
			runs, ev := []*result.Run{scriptRun(), scriptRun()}, goodEvidence()
			runs[1].PlanID = "demo-1-2"
			ev.Jobs = append(ev.Jobs, JobOutcome{Name: "demo-1-2", ExitCode: ptr(int32(0))})
			ev.ScriptDigest = runs[0].ScriptDigest
			if test.change != nil {
				test.change(plan, runs, &ev)
			}
			out := Judge(plan, runs, ev)
			if out.Verdict != test.want || !strings.Contains(out.Message, test.says) {
				t.Errorf("%s: %s, want %s: %s", out.Verdict, out.Message, test.want, test.says)
			}
			for _, g := range out.Guards {
				if !g.OK != (g.Name == test.violated) {
					t.Errorf("guard %+v", g)
				}
			}
			if out.Voided != (test.violated == GuardScriptUnchanged) {
				t.Errorf("voided is %t", out.Voided)
			}
			if test.want == "Passed" && (out.Scenarios[0].ScriptDigest != runs[0].ScriptDigest || len(out.Scenarios[0].Endpoints) != 2) {
				t.Errorf("scenario: %+v", out.Scenarios[0])
			}
		})
	}
}

func TestResolveAScript(t *testing.T) {
	in := scripted(t, "10.0.0.1")
	if got := sizes(in.Plan); got != "Script 60+6×1" || in.Plan.Script() == nil {
		t.Errorf("the plan is %s", got)
	}
	in.Test.Spec.Scenarios, in.Test.Spec.Objectives = nil, []v1alpha1.Objective{objective("Script", "", 95, 800e6)}
	if _, err := Resolve(in.Test, authentik()); err == nil || !strings.Contains(err.Error(), "script: {configMapRef: {name: NAME, key: KEY}}") {
		t.Errorf("an objective alone: %v", err)
	}
}

func TestSaid(t *testing.T) {
	const broken = `time="2026-11-21T10:47:24Z" level=error msg="Error: GoError: no \"x\" here\n\tat load (file:///scripts/script.js:31)\n" hint="script exception"` + "\n"
	for name, test := range map[string]struct{ log, want string }{
		"nothing":               {"", ""},
		"a good end":            {"some line\n" + `time="x" level=info msg="level=done"` + "\n", ""},
		"an error among others": {"a line\n" + broken + `time="x" level=error msg=second` + "\n", `no "x" here`},
		"one word":              {`time="x" level=error msg=stopped` + "\n", "stopped"},
		"a broken quote":        {`time="x" level=error msg="half` + "\n", `"half`},
		"a line without an end": {`time="x" level=error msg=stopped`, ""},
		"a very long line":      {`level=error msg="` + strings.Repeat("x", 50_000) + "\"\n", `"` + strings.Repeat("x", maxSaidError-1-len("…")) + "…"},
	} {
		for _, size := range []int{1, 7, 100_000} {
			t.Run(fmt.Sprintf("%s, in parts of %d", name, size), func(t *testing.T) {
				var said Said
				for part := range slices.Chunk([]byte(test.log), size) {
					if n, err := said.Write(part); n != len(part) || err != nil {
						t.Fatal(n, err)
					}
				}
				if said.Error != test.want {
					t.Errorf("it kept %q, want %q", said.Error, test.want)
				}
			})
		}
	}
}

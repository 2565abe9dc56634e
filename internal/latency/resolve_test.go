package latency

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
)

func objective(name v1alpha1.ScenarioName, endpoint string, percentile int32, below time.Duration) v1alpha1.Objective {
	return v1alpha1.Objective{Scenario: name, Endpoint: endpoint, Percentile: percentile, Below: metav1.Duration{Duration: below}}
}

func duration(text string) *metav1.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return &metav1.Duration{Duration: d}
}

func authentik() *v1alpha1.AuthStack {
	stack := &v1alpha1.AuthStack{}
	stack.Spec.Authentik = &v1alpha1.AuthentikSpec{Version: "2025.12.4"}
	return stack
}

func authelia(replicas int32) *v1alpha1.AuthStack {
	stack := &v1alpha1.AuthStack{}
	stack.Spec.Authelia = &v1alpha1.AutheliaSpec{Version: "4.39.20", Replicas: &replicas}
	return stack
}

// sizes of a plan in a line: Login 60+12×1 is 60 iterations after a warm-up of 12 with one user.
func sizes(plan *Plan) string {
	var parts []string
	for _, s := range plan.Scenarios {
		measured := "for "
		if s.Iterations != nil {
			measured = intString(*s.Iterations)
		} else {
			measured += s.Duration.Duration.String() + " "
		}
		part := string(s.Name) + " " + measured + "+" + intString(*s.WarmUpIterations) + "×" + intString(*s.VirtualUsers)
		if s.RatePerMinute != nil {
			part += " at " + intString(*s.RatePerMinute)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func intString(n int32) string {
	return resource.NewQuantity(int64(n), resource.DecimalSI).AsDec().String()
}

func TestResolve(t *testing.T) {
	for name, test := range map[string]struct {
		stack *v1alpha1.AuthStack
		spec  v1alpha1.LatencyTestSpec
		// latency of the stack's spec.
		latency *v1alpha1.LatencySpec
		want    string
		// objectives as scenario/endpoint.
		objectives string
		refusal    string
	}{
		"nothing said: Login in its default size": {
			stack: authentik(), want: "Login 60+12×1",
		},
		"Authelia's login delay settles in ten logins of each replica": {
			stack: authelia(3), want: "Login 60+36×1",
		},
		"objectives of the stack name the scenarios, and an endpoint where they name none": {
			stack:   authentik(),
			latency: &v1alpha1.LatencySpec{Objectives: []v1alpha1.Objective{objective("Dashboard", "", 95, time.Second), objective("Login", "password-post", 50, time.Second)}},
			want:    "Login 60+12×1, Dashboard 75+4×1", objectives: "Dashboard/dashboard-parallel Login/password-post",
		},
		"objectives of the test replace those of the stack": {
			stack:   authentik(),
			latency: &v1alpha1.LatencySpec{Objectives: []v1alpha1.Objective{objective("Dashboard", "", 95, time.Second)}},
			spec:    v1alpha1.LatencyTestSpec{Objectives: []v1alpha1.Objective{objective("Login", "", 95, time.Second)}},
			want:    "Login 75+12×1", objectives: "Login/login",
		},
		"a test of some scenarios leaves the stack's other objectives alone": {
			stack:   authentik(),
			latency: &v1alpha1.LatencySpec{Objectives: []v1alpha1.Objective{objective("Dashboard", "", 95, time.Second), objective("Login", "", 95, time.Second)}},
			spec:    v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login"}}},
			want:    "Login 75+12×1", objectives: "Login/login",
		},
		"scenarios run in their order, whatever the order in the spec": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Dashboard"}, {Name: "Login"}}},
			want: "Login 60+12×1, Dashboard 30+4×1",
		},
		"a high percentile has the default number grow": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Objectives: []v1alpha1.Objective{objective("Login", "", 99, time.Second)}},
			want: "Login 386+12×1", objectives: "Login/login",
		},
		"a size that was given is kept, though it is too small for an interval": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login", Iterations: ptr(int32(60))}}, Objectives: []v1alpha1.Objective{objective("Login", "", 95, time.Second)}},
			want: "Login 60+12×1", objectives: "Login/login",
		},
		"the slowest of all has no interval to grow for": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Objectives: []v1alpha1.Objective{objective("Login", "", 100, time.Second)}},
			want: "Login 60+12×1", objectives: "Login/login",
		},
		"an interval that there is no time for is left out": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login", RatePerMinute: ptr(int32(6))}}, Objectives: []v1alpha1.Objective{objective("Login", "", 95, time.Second)}},
			want: "Login 60+12×1 at 6", objectives: "Login/login",
		},
		"two repeats share the samples of an interval": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Repeats: ptr(int32(2)), Objectives: []v1alpha1.Objective{objective("Login", "", 99, time.Second)}},
			want: "Login 193+12×1", objectives: "Login/login",
		},
		"repeats share the samples": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Repeats: ptr(int32(5)), Objectives: []v1alpha1.Objective{objective("Login", "", 99, time.Second)}},
			want: "Login 60+12×1", objectives: "Login/login",
		},
		"an endpoint of every tenth iteration needs ten times as many": {
			stack: authelia(1), spec: v1alpha1.LatencyTestSpec{Objectives: []v1alpha1.Objective{objective("ForwardAuth", "first-sight", 99, time.Second)}},
			want: "Login 60+12×1, ForwardAuth 3864+30×1", objectives: "ForwardAuth/first-sight",
		},
		"each virtual user has a warm-up": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Dashboard", VirtualUsers: ptr(int32(8))}}},
			want: "Dashboard 30+8×8",
		},
		"a warm-up of none is taken at its word": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login", WarmUpIterations: ptr(int32(0))}}},
			want: "Login 60+0×1",
		},
		"too few iterations for the percentile are refused": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login", Iterations: ptr(int32(30))}}, Objectives: []v1alpha1.Objective{objective("Login", "", 99, time.Second)}},
			refusal: "write iterations: 299",
		},
		"Dashboard of Authelia is refused": {
			stack: authelia(1), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Dashboard"}}},
			refusal: "write Login or ForwardAuth",
		},
		"an objective about Dashboard of Authelia is refused": {
			stack: authelia(1), spec: v1alpha1.LatencyTestSpec{Objectives: []v1alpha1.Objective{objective("Dashboard", "", 95, time.Second)}},
			refusal: "an objective cannot be judged",
		},
		"ForwardAuth runs on authentik too": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Objectives: []v1alpha1.Objective{objective("ForwardAuth", "", 95, time.Second)}},
			want: "Login 60+12×1, ForwardAuth 600+30×1", objectives: "ForwardAuth/authorised",
		},
		"OIDC is judged by the whole code flow": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Objectives: []v1alpha1.Objective{objective("OIDC", "", 95, time.Second), objective("OIDC", "refresh", 99, time.Second)}},
			want: "Login 60+12×1, OIDC 386+12×1", objectives: "OIDC/code-flow OIDC/refresh",
		},
		"an endpoint that does not exist is refused with those that do": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Objectives: []v1alpha1.Objective{objective("Login", "firstfactor", 95, time.Second)}},
			refusal: "write one of login, identification-get",
		},
		"an objective about a scenario that the test leaves out is refused": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login"}}, Objectives: []v1alpha1.Objective{objective("Dashboard", "", 95, time.Second)}},
			refusal: "add it to spec.scenarios",
		},
		"Throughput runs for half a minute over fifty connections": {
			stack: authelia(1), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Throughput"}}},
			want: "Throughput for 30s +50×50",
		},
		"a soak runs for its time": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{TimeoutSeconds: ptr(int32(4000)), Scenarios: []v1alpha1.Scenario{{Name: "Login", Duration: duration("1h")}}},
			want: "Login for 1h0m0s +12×1",
		},
		"a soak that the timeout would cut off is refused": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login", Duration: duration("1h")}}},
			refusal: "write timeoutSeconds: 3641 or more",
		},
		"an open model for a time has as many iterations as begin in it, the warm-up among them": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login", Duration: duration("2m"), RatePerMinute: ptr(int32(60))}}},
			want: "Login 108+12×1 at 60",
		},
		"an open model whose percentile needs more than begin in its time is refused": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login", Duration: duration("1m"), RatePerMinute: ptr(int32(60))}}, Objectives: []v1alpha1.Objective{objective("Login", "", 99, time.Second)}},
			refusal: "needs at least 299 measured iterations in each repeat, and 1m0s at 60 a minute has 48; write a longer duration or a lower percentile",
		},
		"an open model that is too slow for the timeout is refused": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login", RatePerMinute: ptr(int32(2))}}},
			refusal: "takes 36m0s",
		},
		"steps last half a minute each": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login", RateStepsPerMinute: []int32{30, 60, 120}}}},
			want: "Login for 30s +12×1",
		},
		"an objective is about the first of rising steps, or the one that it names": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{
				Scenarios:  []v1alpha1.Scenario{{Name: "Login", RateStepsPerMinute: []int32{60, 600}, Duration: duration("90s")}},
				Objectives: []v1alpha1.Objective{{Scenario: "Login", Percentile: 95}, {Scenario: "Login", Endpoint: "login-at-600", Percentile: 99}}},
			want: "Login for 1m30s +12×1", objectives: "Login/login-at-60 Login/login-at-600",
		},
		"steps that are too short for it are refused": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{
				Scenarios:  []v1alpha1.Scenario{{Name: "Login", RateStepsPerMinute: []int32{60, 600}}},
				Objectives: []v1alpha1.Objective{{Scenario: "Login", Percentile: 95}}},
			refusal: "p95 of Login/login-at-60 needs at least 59 measured iterations in each repeat, and a step of 30s has 17; write duration: 73s",
		},
		"a step that there is not is refused": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{
				Scenarios:  []v1alpha1.Scenario{{Name: "Login", RateStepsPerMinute: []int32{60, 600}}},
				Objectives: []v1alpha1.Objective{{Scenario: "Login", Endpoint: "login-at-90", Percentile: 95}}},
			refusal: "names the endpoint login-at-90, which Login on authentik does not have",
		},
		"an open model whose time is over before the warm-up is, is refused": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login", Duration: duration("1m"), RatePerMinute: ptr(int32(10))}}},
			refusal: "scenario Login begins 10 iterations in 1m0s at 10 a minute, of which 12 are the warm-up and at least 10 must be measured; write a longer duration",
		},
		"Throughput counts iterations beside others, which would use up its time": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Objectives: []v1alpha1.Objective{objective("Throughput", "", 95, time.Second)}},
			want: "Login 60+12×1, Throughput 600+50×50", objectives: "Throughput/throughput",
		},
		"a time beside others is refused": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login", Duration: duration("5m")}, {Name: "Dashboard"}}},
			refusal: "scenario Login runs by the clock, which would run while the others do; measure it alone, or give it a number of iterations",
		},
		"an objective of a request is not judged over rising steps": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{
				Scenarios:  []v1alpha1.Scenario{{Name: "Login", RateStepsPerMinute: []int32{60, 600}, Duration: duration("90s")}},
				Objectives: []v1alpha1.Objective{objective("Login", "password-post", 95, time.Second)}},
			refusal: "an objective of Login/password-post would be over all steps of the rate, of which the last ones are to break; write endpoint: login-at-60",
		},
		"the stack's are left out of a test that raises the rate until it breaks": {
			stack: authentik(), latency: &v1alpha1.LatencySpec{Objectives: []v1alpha1.Objective{objective("Login", "password-post", 95, time.Second), objective("Login", "", 95, time.Second)}},
			spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login", RateStepsPerMinute: []int32{60, 600}}}},
			want: "Login for 30s +12×1",
		},
		"each whole of Dashboard has its steps": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{
				Scenarios:  []v1alpha1.Scenario{{Name: "Dashboard", RateStepsPerMinute: []int32{60, 600}, Duration: duration("90s")}},
				Objectives: []v1alpha1.Objective{objective("Dashboard", "dashboard-sequential", 95, time.Second), objective("Dashboard", "dashboard-parallel-at-600", 95, time.Second)}},
			want: "Dashboard for 1m30s +4×1", objectives: "Dashboard/dashboard-sequential-at-60 Dashboard/dashboard-parallel-at-600",
		},
		"Pods of the generator get equal parts": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Generator: v1alpha1.GeneratorSpec{Pods: ptr(int32(7))}, Scenarios: []v1alpha1.Scenario{{Name: "Login", VirtualUsers: ptr(int32(14))}}},
			want: "Login 63+14×14",
		},
		"virtual users that the Pods cannot share are refused": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Generator: v1alpha1.GeneratorSpec{Pods: ptr(int32(4))}},
			refusal: "write a multiple of 4",
		},
		"more virtual users than iterations are refused": {
			stack: authentik(), spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{{Name: "Login", VirtualUsers: ptr(int32(61))}}},
			refusal: "at least as many iterations",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.stack.Spec.Latency = test.latency
			plan, err := Resolve(&v1alpha1.LatencyTest{Spec: test.spec}, test.stack)
			if test.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), test.refusal) {
					t.Fatalf("Resolve gives %v, want %q", err, test.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := sizes(plan); got != test.want {
				t.Errorf("the plan is %s, want %s", got, test.want)
			}
			var names []string
			for _, o := range plan.Objectives {
				names = append(names, string(o.Scenario)+"/"+o.Endpoint)
			}
			if got := strings.Join(names, " "); got != test.objectives {
				t.Errorf("objectives are %s, want %s", got, test.objectives)
			}
		})
	}
}

func TestResolveKnowsACPULimit(t *testing.T) {
	test := &v1alpha1.LatencyTest{}
	plan, _ := Resolve(test, authentik())
	if plan.CPULimited || plan.Timeout != 900*time.Second || plan.Repeats != 1 {
		t.Errorf("plan: %+v", plan)
	}
	test.Spec.Generator.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}
	if plan, _ = Resolve(test, authentik()); !plan.CPULimited {
		t.Error("the CPU limit was not seen")
	}
}

func TestForwardAuthHost(t *testing.T) {
	for host, want := range map[string]string{"sso.example.com": "probe.example.com", "sso.a.example.com": "probe.a.example.com", "sso": "probe.sso"} {
		if got := ForwardAuthHost("probe", host); got != want {
			t.Errorf("beside %s it is %s, want %s", host, got, want)
		}
	}
}

func TestClient(t *testing.T) {
	given := &v1alpha1.OIDCClient{ClientSecretRef: v1alpha1.LocalReference{Name: "mine"}}
	for name, row := range map[string]struct {
		stack   *v1alpha1.AuthStack
		spec    v1alpha1.Scenario
		want    *v1alpha1.OIDCClient
		refusal string
	}{
		"none without the scenario":        {stack: authelia(1), spec: v1alpha1.Scenario{Name: "Login"}},
		"authentik's is made":              {stack: authentik(), spec: v1alpha1.Scenario{Name: "OIDC"}},
		"authentik takes none":             {stack: authentik(), spec: v1alpha1.Scenario{Name: "OIDC", OIDC: given}, refusal: "remove oidc"},
		"Authelia's is named":              {stack: authelia(1), spec: v1alpha1.Scenario{Name: "OIDC", OIDC: given}, want: given},
		"Authelia without one is refused":  {stack: authelia(1), spec: v1alpha1.Scenario{Name: "OIDC"}, refusal: "declare the client in the AuthStack's spec.authelia.extraConfig"},
		"the refusal says which keys":      {stack: authelia(1), spec: v1alpha1.Scenario{Name: "OIDC"}, refusal: "client_id, client_secret and redirect_uri"},
		"the refusal shows the whole line": {stack: authelia(1), spec: v1alpha1.Scenario{Name: "OIDC"}, refusal: "[{name: OIDC, oidc: {clientSecretRef: {name: latency-client}}}]"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := Resolve(&v1alpha1.LatencyTest{Spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{row.spec}}}, row.stack)
			if err != nil {
				t.Fatal(err)
			}
			got, err := plan.Client()
			if got != row.want || (err == nil) != (row.refusal == "") || err != nil && !strings.Contains(err.Error(), row.refusal) {
				t.Errorf("client %v, %v", got, err)
			}
		})
	}
}

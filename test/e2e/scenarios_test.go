//go:build e2e

package e2e

import (
	"context"
	"maps"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
)

// everyOtherScenario runs in a Job: OIDC with the client that the operator makes, forward auth with its provider, a person's own
// script (the sample), each in the closed and the open model and with cold connections; steps, two Pods, four repeats for what
// the operator's own questions cost, and a script that asks for what it may not have.
func everyOtherScenario(t *testing.T) {
	sample, err := os.ReadFile("../../config/samples/script.js")
	if err != nil {
		t.Fatal(err)
	}
	makeScripts(t, "own", map[string]string{"script.js": string(sample), "elsewhere.js": `import http from 'k6/http';
export default function () { http.get('https://10.96.0.1/version'); }`})
	const ten, open = "iterations: 10, warmUpIterations: 2", "ratePerMinute: 180, iterations: 10, warmUpIterations: 2"
	oidc := map[string]int64{"code-flow": 10, "authorization": 10, "token": 10, "userinfo": 10, "refresh": 10, "jwks": 10}
	both := map[string]int64{"authorised": 10, "unauthorised": 10, "unauthorised-no-cookie": 1}
	maps.Copy(both, oidc)
	pages := map[string]int64{"throughput": 10, "page": 10}
	own := map[string]int64{"script": 10, "search": 40}
	for name, c := range map[string]struct {
		scenario, how string
		// endpoints are some of them, with the requests that were answered.
		endpoints map[string]int64
		says      string
	}{
		"warm":       {"name: OIDC, " + ten + "}, {name: ForwardAuth, " + ten, generator, both, ""},
		"cold":       {"name: OIDC, connections: New, " + ten + "}, {name: ForwardAuth, connections: New, " + ten, generator, both, ""},
		"oidc-open":  {"name: OIDC, connections: New, " + open, generator, oidc, ""},
		"proxy-open": {"name: ForwardAuth, " + open, generator, map[string]int64{"authorised": 10}, ""},
		"two-pods":   {"name: Throughput, virtualUsers: 2, " + ten, strings.Replace(generator, "{", "{pods: 2, ", 1), pages, ""},
		"page-open":  {"name: Throughput, connections: New, " + open, generator, pages, ""},
		"login-open": {"name: Login, connections: New, " + open, generator, map[string]int64{"login": 10, "password-post": 10}, ""},
		"dashboard":  {"name: Dashboard, connections: New, " + open, generator, map[string]int64{"dashboard-parallel": 10, "dashboard-sequential": 10}, ""},
		"page-clock": {"name: Throughput, virtualUsers: 4, duration: 5s", generator, nil, ""},
		"steps":      {"name: Login, rateStepsPerMinute: [60, 600], warmUpIterations: 4, duration: 15s", "", nil, ""},
		"own":        {script("own", "script.js") + ", " + ten, generator, own, ""},
		"own-open":   {script("own", "script.js") + ", connections: New, " + open, generator, own, ""},
		"observer":   {"name: Login, iterations: 4, warmUpIterations: 1", "repeats: 4\n  " + generator, map[string]int64{"login": 16}, ""},
		"elsewhere":  {script("own", "elsewhere.js") + ", " + ten, generator, nil, "asked for another address than the stack's"},
	} {
		t.Run(name, func(t *testing.T) {
			applyTest(t, name, c.scenario, c.how)
			verdict, message := verdictOf(t, name)
			if c.says != "" {
				if verdict != v1alpha1.VerdictError || !strings.Contains(message, c.says) {
					t.Errorf("the verdict is %s: %s", verdict, message)
				}
				return
			}
			if verdict != v1alpha1.VerdictPassed {
				t.Fatalf("the verdict is %s: %s", verdict, message)
			}
			test := &v1alpha1.LatencyTest{}
			if err := kube.Get(context.Background(), client.ObjectKey{Namespace: measuredNamespace, Name: name}, test); err != nil {
				t.Fatal(err)
			}
			if observer := guardOf(test, latency.GuardObserver); name == "observer" && !strings.Contains(observer.Detail, "times as long in the 2 repeats") {
				t.Errorf("what the operator's questions cost is not measured: %+v", observer)
			}
			measured := map[string]int64{}
			for _, s := range test.Status.Scenarios {
				for _, endpoint := range s.Endpoints {
					measured[endpoint.Name] = endpoint.Requests - endpoint.Failed
					if p := endpoint.Phases; p != nil && strings.Contains(c.scenario, "connections: New") && p.ConnectMicros == 0 {
						t.Errorf("%s opened no connection: %+v", endpoint.Name, p)
					}
				}
				if first := s.Endpoints[0]; strings.Contains(c.scenario, open) && (first.IntendedP95Micros == 0 || first.IntendedP95Micros < first.P95Micros) {
					t.Errorf("from the intended start the p95 is less: %+v", first)
				}
				if name == "steps" && (s.SustainedPerMinute != 60 || !strings.HasPrefix(s.SustainedLimit, "at 600 a minute ")) {
					t.Errorf("a login a second was not kept up, or ten were: %+v", s)
				}
			}
			for endpoint, requests := range c.endpoints {
				if measured[endpoint] != requests {
					t.Errorf("what was measured is %v, want %v among it", measured, c.endpoints)
				}
			}
		})
	}
}

// guardOf a LatencyTest by its name.
func guardOf(test *v1alpha1.LatencyTest, name string) v1alpha1.Guard {
	for _, guard := range test.Status.Guards {
		if guard.Name == name {
			return guard
		}
	}
	return v1alpha1.Guard{}
}

// generatorIsHeldBack by the kernel, since its script does more than its CPU limit allows: that voids the run, which is repeated
// twice and then is what it is.
func generatorIsHeldBack(t *testing.T) {
	const name = "held-back"
	makeScripts(t, name, map[string]string{"script.js": `import http from 'k6/http';
import { baseURL, headers } from './lib/stack.js';
export default function () {
  for (const until = Date.now() + 50; Date.now() < until; );
  http.get(` + "`${baseURL}/-/health/live/`" + `, { headers });
}`})
	applyTest(t, name, script(name, "script.js")+", iterations: 20, warmUpIterations: 2", strings.Replace(generator, "limits: {", "limits: {cpu: 200m, ", 1))
	verdict, message := verdictOf(t, name)
	if verdict != v1alpha1.VerdictInconclusive || !strings.Contains(message, latency.GuardThrottled+": held back for") {
		t.Errorf("the verdict is %s: %s", verdict, message)
	}
	test := &v1alpha1.LatencyTest{}
	if err := kube.Get(context.Background(), client.ObjectKey{Namespace: measuredNamespace, Name: name}, test); err != nil {
		t.Fatal(err)
	}
	if len(test.Status.Voided) != latency.MostVoided || !strings.Contains(test.Status.Voided[0], "held back for") {
		t.Errorf("runs that were voided: %q", test.Status.Voided)
	}
	t.Logf("%s", message)
}

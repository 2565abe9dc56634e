package latency

import (
	"strings"
	"testing"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

func TestFiguresAreInTheOrderOfTheLogin(t *testing.T) {
	plan, _ := Resolve(&v1alpha1.LatencyTest{}, authentik())
	run := goodRun()
	run.Series = append(run.Series, result.Series{Scenario: "Login", Endpoint: "a-stage-of-their-own"}, result.Series{Scenario: "Login", Endpoint: "identification-get"}, result.Series{Scenario: "other", Endpoint: "other"})
	run.Sort()
	out := Judge(plan, []*result.Run{run}, goodEvidence())
	var names []string
	for _, e := range out.Scenarios[0].Endpoints {
		names = append(names, e.Name)
	}
	if got, want := strings.Join(names, " "), "login identification-get password-post a-stage-of-their-own"; got != want {
		t.Errorf("endpoints are %s, want %s", got, want)
	}
	if got := strings.Join(out.Scenarios[0].Endpoints[0].Unsupported, " "); got != "p99 p99.9" {
		t.Errorf("of 60 logins %q are marked", got)
	}
	if e := out.Scenarios[0].Endpoints[0]; e.Phases != nil || e.RequestsPerSecondMilli != 1000 || out.LoginP95 != "612ms" {
		t.Errorf("login: %+v, p95 %s", e, out.LoginP95)
	}
}

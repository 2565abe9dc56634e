package latency

import (
	"slices"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
)

// The identity providers.
const (
	Authentik = "authentik"
	Authelia  = "authelia"
)

// endpoint is a row of the result that a scenario makes.
type endpoint struct {
	name string
	// perTen is how many samples ten iterations make.
	perTen int64
}

// endpoints of each scenario, the whole first: that is the one an objective without an endpoint
// means. A dashboard is judged by the parallel stream, since that is how a browser asks.
// loadtests/scenarios makes exactly these.
func endpoints(provider string, scenario v1alpha1.ScenarioName) []endpoint {
	switch {
	case scenario == v1alpha1.ScenarioScript:
		// And those that its requests are tagged with, which nobody knows before it has run.
		return []endpoint{{"script", 10}}
	case scenario == v1alpha1.ScenarioLogin && provider == Authelia:
		return []endpoint{{"login", 10}, {"firstfactor", 10}}
	case scenario == v1alpha1.ScenarioLogin:
		return []endpoint{{"login", 10}, {"identification-get", 10}, {"identification-post", 10},
			{"password-get", 10}, {"password-post", 10}, {"mfa-get", 10}, {"login-get", 10}}
	case scenario == v1alpha1.ScenarioDashboard:
		return []endpoint{{"dashboard-parallel", 10}, {"dashboard-sequential", 10},
			{"applications-parallel", 80}, {"applications-sequential", 80}}
	case scenario == v1alpha1.ScenarioOIDC:
		return []endpoint{{"code-flow", 10}, {"authorization", 10}, {"token", 10}, {"userinfo", 10}, {"refresh", 10}, {"jwks", 10}}
	case scenario == v1alpha1.ScenarioThroughput:
		return []endpoint{{"throughput", 10}, {"page", 10}}
	case scenario == v1alpha1.ScenarioForwardAuth:
		return []endpoint{{"authorised", 10}, {"unauthorised", 10}, {"unauthorised-no-cookie", 1}, {"first-sight", 1}}
	}
	return nil
}

// Wholes are the endpoints that stand for a scenario as a person meets it: the login, the two streams of
// the dashboard, the question of a reverse proxy, the way into an application. None where the product does not have the scenario.
func Wholes(provider string, scenario v1alpha1.ScenarioName) []string {
	known := endpoints(provider, scenario)
	switch {
	case len(known) == 0:
		return nil
	case scenario == v1alpha1.ScenarioDashboard:
		return []string{known[0].name, known[1].name}
	}
	return []string{known[0].name}
}

// Asks is whether the plan runs a scenario.
func (p *Plan) Asks(name v1alpha1.ScenarioName) bool {
	return slices.ContainsFunc(p.Scenarios, func(s v1alpha1.Scenario) bool { return s.Name == name })
}

// OIDCRedirectURI is where the browser of an OIDC client that the operator makes is sent back to. Nobody
// asks for it: a run ends there.
func OIDCRedirectURI(name, host string) string {
	return "https://" + ForwardAuthHost(name, host) + "/callback"
}

// ForwardAuthHost is the name of the application whose forward-auth check is measured on authentik: a
// sibling of the stack's host, which nobody has to resolve, since only the embedded outpost looks at it.
func ForwardAuthHost(name, host string) string {
	if _, parent, ok := strings.Cut(host, "."); ok {
		return name + "." + parent
	}
	return name + "." + host
}

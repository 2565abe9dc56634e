package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
)

var scenarioNames = []v1alpha1.ScenarioName{v1alpha1.ScenarioLogin, v1alpha1.ScenarioDashboard, v1alpha1.ScenarioForwardAuth,
	v1alpha1.ScenarioOIDC, v1alpha1.ScenarioThroughput, v1alpha1.ScenarioScript}

// parseScenario reads NAME, NAME=ITERATIONS or NAME=DURATION. Names may be written in any case.
func parseScenario(text string, users int32) (v1alpha1.Scenario, error) {
	name, size, given := strings.Cut(text, "=")
	s := v1alpha1.Scenario{}
	known, err := parseScenarioName(name)
	if err != nil {
		return s, fmt.Errorf("--scenario %s: %w", text, err)
	}
	if known == v1alpha1.ScenarioScript {
		return s, fmt.Errorf("--scenario %s: a script of your own is in a ConfigMap, which only a LatencyTest or spec.latency.scenarios of the stack can name; write it there (docs/own-script.md)", text)
	}
	s.Name = known
	if given {
		n, err := strconv.ParseInt(size, 10, 32)
		lasts, durationErr := time.ParseDuration(size)
		switch {
		case err == nil && n > 0:
			s.Iterations = new(int32(n))
		case durationErr == nil && lasts > 0:
			s.Duration = &metav1.Duration{Duration: lasts}
		default:
			return s, fmt.Errorf("--scenario %s: write a number of iterations of 1 or more, or how long it lasts, for example %s=120 or %s=5m", text, known, known)
		}
	}
	if users > 0 {
		s.VirtualUsers = &users
	}
	return s, nil
}

func parseScenarioName(text string) (v1alpha1.ScenarioName, error) {
	var names []string
	for _, name := range scenarioNames {
		if strings.EqualFold(text, string(name)) {
			return name, nil
		}
		names = append(names, string(name))
	}
	return "", fmt.Errorf("there is no scenario %q; write one of %s", text, strings.Join(names, ", "))
}

var objectiveForm = regexp.MustCompile(`^([A-Za-z]+)(?:/([A-Za-z0-9_-]+))?:p([0-9]{1,3})<(.+)$`)

// parseObjective reads SCENARIO[/ENDPOINT]:pN<DURATION, for example Login:p95<800ms.
func parseObjective(text string) (v1alpha1.Objective, error) {
	o := v1alpha1.Objective{}
	parts := objectiveForm.FindStringSubmatch(strings.ReplaceAll(text, " ", ""))
	if parts == nil {
		return o, fmt.Errorf("--objective %s: write SCENARIO[/ENDPOINT]:pN<DURATION, for example 'Login:p95<800ms' in quotes", text)
	}
	name, err := parseScenarioName(parts[1])
	if err != nil {
		return o, fmt.Errorf("--objective %s: %w", text, err)
	}
	percentile, _ := strconv.ParseInt(parts[3], 10, 32)
	if percentile < 1 || percentile > 100 {
		return o, fmt.Errorf("--objective %s: the percentile must be 1 to 100; 100 is the slowest request", text)
	}
	below, err := time.ParseDuration(parts[4])
	if err != nil || below <= 0 {
		return o, fmt.Errorf("--objective %s: %q is no duration; write for example 800ms or 1.5s", text, parts[4])
	}
	return v1alpha1.Objective{Scenario: name, Endpoint: parts[2], Percentile: int32(percentile), Below: metav1.Duration{Duration: below}}, nil
}

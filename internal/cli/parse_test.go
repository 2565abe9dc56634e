package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
)

func TestObjectivesAreRead(t *testing.T) {
	for name, row := range map[string]struct {
		text, refusal string
		want          v1alpha1.Objective
	}{
		"a scenario's whole":              {text: "Login:p95<800ms", want: v1alpha1.Objective{Scenario: "Login", Percentile: 95, Below: metav1.Duration{Duration: 800 * time.Millisecond}}},
		"an endpoint":                     {text: "Login/password-post:p50<0.3s", want: v1alpha1.Objective{Scenario: "Login", Endpoint: "password-post", Percentile: 50, Below: metav1.Duration{Duration: 300 * time.Millisecond}}},
		"an endpoint of a script":         {text: "Script/search:p95<300ms", want: v1alpha1.Objective{Scenario: "Script", Endpoint: "search", Percentile: 95, Below: metav1.Duration{Duration: 300 * time.Millisecond}}},
		"a Trend of a script":             {text: "Script/searchTime_all:p95<300ms", want: v1alpha1.Objective{Scenario: "Script", Endpoint: "searchTime_all", Percentile: 95, Below: metav1.Duration{Duration: 300 * time.Millisecond}}},
		"in small letters and with space": {text: "forwardauth : p100 < 1s", want: v1alpha1.Objective{Scenario: "ForwardAuth", Percentile: 100, Below: metav1.Duration{Duration: time.Second}}},
		"no duration":                     {text: "Login:p95<800", refusal: `"800" is no duration`},
		"a duration of nothing":           {text: "Login:p95<0s", refusal: "is no duration"},
		"a percentile beyond":             {text: "Login:p101<1s", refusal: "1 to 100"},
		"a scenario that there is not":    {text: "Logout:p95<1s", refusal: "write one of Login, Dashboard"},
		"another sign":                    {text: "Login:p95<=1s", refusal: "is no duration"},
		"nothing":                         {text: "", refusal: "for example 'Login:p95<800ms'"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseObjective(row.text)
			check(t, err, row.refusal)
			if diff := cmp.Diff(row.want, got); row.refusal == "" && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestScenariosAreRead(t *testing.T) {
	for name, row := range map[string]struct {
		text, refusal string
		want          v1alpha1.Scenario
	}{
		"by its name":          {text: "login", want: v1alpha1.Scenario{Name: "Login", VirtualUsers: new(int32(4))}},
		"with its iterations":  {text: "Dashboard=12", want: v1alpha1.Scenario{Name: "Dashboard", Iterations: new(int32(12)), VirtualUsers: new(int32(4))}},
		"with its length":      {text: "Throughput=90s", want: v1alpha1.Scenario{Name: "Throughput", Duration: &metav1.Duration{Duration: 90 * time.Second}, VirtualUsers: new(int32(4))}},
		"none at all":          {text: "Login=0", refusal: "Login=120"},
		"more than fits":       {text: "Login=3000000000", refusal: "Login=120"},
		"one that there isn't": {text: "Soak", refusal: "write one of Login"},
		"a script":             {text: "Script=100", refusal: "only a LatencyTest or spec.latency.scenarios"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseScenario(row.text, 4)
			check(t, err, row.refusal)
			if diff := cmp.Diff(row.want, got); row.refusal == "" && diff != "" {
				t.Error(diff)
			}
		})
	}
}

// check holds an error to what it must say; nothing means that there must be none.
func check(t *testing.T, err error, refusal string) {
	t.Helper()
	switch {
	case refusal == "" && err != nil:
		t.Fatal(err)
	case refusal != "" && (err == nil || !strings.Contains(err.Error(), refusal)):
		t.Fatalf("the error does not say %q: %v", refusal, err)
	}
}

package latency

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"authstack.dev/authstack/api/v1alpha1"
)

func TestVirtualUsersAndTheirMemory(t *testing.T) {
	for name, c := range map[string]struct {
		scenario v1alpha1.Scenario
		pods     int32
		// beside is how many scenarios of that size there are.
		beside int
		limit  string
		// ready and most are in plan.json, request and limit those of a Pod for which none are given.
		ready, most      int32
		request, largest string
		refusal          string
	}{
		"a closed model has those that it names":                {scenario: v1alpha1.Scenario{Name: "Login"}, limit: "128Mi", request: "256Mi", largest: "512Mi"},
		"an open one those who come in five seconds":            {scenario: v1alpha1.Scenario{Name: "Login", RatePerMinute: ptr(int32(600))}, ready: 50, most: 300, limit: "110Mi", request: "256Mi", largest: "512Mi"},
		"steps are ready for the highest":                       {scenario: v1alpha1.Scenario{Name: "Login", RateStepsPerMinute: []int32{60, 3000}}, ready: 250, most: 1500, request: "310Mi", largest: "1560Mi"},
		"a limit that these do not fit into is refused":         {scenario: v1alpha1.Scenario{Name: "Login", RateStepsPerMinute: []int32{60, 3000}}, limit: "128Mi", refusal: "is 128Mi, and k6 needs about 310Mi for the 250 virtual users that it has ready in a Pod"},
		"two Pods have half of them each":                       {scenario: v1alpha1.Scenario{Name: "Login", RatePerMinute: ptr(int32(6000)), VirtualUsers: ptr(int32(2))}, pods: 2, limit: "310Mi", ready: 500, most: 2000, request: "310Mi", largest: "1060Mi"},
		"many of a closed model do not fit into little, either": {scenario: v1alpha1.Scenario{Name: "Throughput", VirtualUsers: ptr(int32(256))}, limit: "256Mi", refusal: "about 316Mi for the 256"},
		"those of all scenarios are made at once":               {scenario: v1alpha1.Scenario{Name: "Login", VirtualUsers: ptr(int32(200))}, beside: 3, limit: "600Mi", refusal: "about 660Mi for the 600"},
	} {
		t.Run(name, func(t *testing.T) {
			test := &v1alpha1.LatencyTest{Spec: v1alpha1.LatencyTestSpec{Scenarios: []v1alpha1.Scenario{c.scenario}}}
			for _, other := range []v1alpha1.ScenarioName{"Dashboard", "ForwardAuth"}[:max(0, c.beside-1)] {
				test.Spec.Scenarios = append(test.Spec.Scenarios, v1alpha1.Scenario{Name: other, Iterations: ptr(int32(300)), VirtualUsers: c.scenario.VirtualUsers})
				test.Spec.Scenarios[0].Iterations = ptr(int32(300))
			}
			if c.pods > 0 {
				test.Spec.Generator.Pods = &c.pods
			}
			if c.limit != "" {
				test.Spec.Generator.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(c.limit)}}
			}
			plan, err := Resolve(test, authentik())
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("Resolve gives %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var file planFile
			if err := json.Unmarshal([]byte(planJSON("x", plan, Target{})), &file); err != nil {
				t.Fatal(err)
			}
			if got := file.Scenarios[0]; got.PreAllocatedVirtualUsers != c.ready || got.MaxVirtualUsers != c.most {
				t.Errorf("%d are ready and %d the most", got.PreAllocatedVirtualUsers, got.MaxVirtualUsers)
			}
			resources := generatorResources(plan, nil)
			if request, limit := resources.Requests.Memory().String(), resources.Limits.Memory().String(); request != c.request || limit != c.largest {
				t.Errorf("the Pod asks for %s and may have %s", request, limit)
			}
		})
	}
}

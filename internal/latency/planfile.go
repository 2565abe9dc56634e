package latency

import (
	"encoding/json"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
)

// planFileFormat is the version of plan.json that loadtests/scenarios/lib/plan.js reads.
const planFileFormat = "authstack.dev/plan/v1"

// planFile is plan.json: what the scripts are told. It holds nothing secret.
type planFile struct {
	Format string `json:"format"`
	// ID is echoed in the result.
	ID       string `json:"id"`
	Provider string `json:"provider"`
	Version  string `json:"version,omitempty"`
	BaseURL  string `json:"baseURL"`
	Host     string `json:"host,omitempty"`
	// ForwardAuthHost is the application that a forward-auth check asks for.
	ForwardAuthHost    string `json:"forwardAuthHost,omitempty"`
	MaxDurationSeconds int64  `json:"maxDurationSeconds"`
	// Pods that share the plan.
	Pods      int32          `json:"pods"`
	Scenarios []planScenario `json:"scenarios"`
}

type planScenario struct {
	Name             string `json:"name"`
	Iterations       int32  `json:"iterations"`
	WarmUpIterations int32  `json:"warmUpIterations"`
	VirtualUsers     int32  `json:"virtualUsers"`
	// PreAllocatedVirtualUsers and MaxVirtualUsers are those of an open model, in k6's words.
	PreAllocatedVirtualUsers int32 `json:"preAllocatedVirtualUsers,omitempty"`
	MaxVirtualUsers          int32 `json:"maxVirtualUsers,omitempty"`
	// DurationSeconds, RatePerMinute and RateStepsPerMinute choose the load model; see lib/run.js.
	DurationSeconds    int64                   `json:"durationSeconds,omitempty"`
	RatePerMinute      int32                   `json:"ratePerMinute,omitempty"`
	RateStepsPerMinute []int32                 `json:"rateStepsPerMinute,omitempty"`
	Connections        v1alpha1.ConnectionMode `json:"connections,omitempty"`
}

// stopMargin is how much earlier than the Job's deadline k6 itself stops: a Job past its deadline has
// its Pod removed, and the log with the result goes with it.
const stopMargin = 30 * time.Second

func planJSON(id string, plan *Plan, target Target) string {
	file := planFile{
		Format: planFileFormat, ID: id, Provider: target.Provider, Version: target.Version,
		BaseURL: target.BaseURL, Host: target.Host, ForwardAuthHost: target.ForwardAuthHost,
		MaxDurationSeconds: int64(max(plan.Timeout-stopMargin, plan.Timeout/2).Seconds()),
		Pods:               plan.Pods,
	}
	for _, s := range plan.Scenarios {
		of := planScenario{
			Name: string(s.Name), Iterations: orDefault(s.Iterations, 0),
			WarmUpIterations: *s.WarmUpIterations, VirtualUsers: *s.VirtualUsers,
			RatePerMinute: orDefault(s.RatePerMinute, 0), RateStepsPerMinute: s.RateStepsPerMinute, Connections: s.Connections,
		}
		if s.RatePerMinute != nil || len(s.RateStepsPerMinute) > 0 {
			of.PreAllocatedVirtualUsers, of.MaxVirtualUsers = virtualUsers(s)
		}
		if s.Duration != nil {
			of.DurationSeconds = int64(s.Duration.Seconds())
		}
		file.Scenarios = append(file.Scenarios, of)
	}
	return mustJSON(file)
}

// mustJSON encodes a struct of strings and numbers, which cannot fail.
func mustJSON(v any) string {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(data) + "\n"
}

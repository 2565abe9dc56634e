package latency

import "authstack.dev/authstack/internal/result"

// Judge says what the runs of a plan are worth.
func Judge(plan *Plan, runs []*result.Run, ev Evidence) Outcome {
	return Outcome{}
}

package latency

import (
	"encoding/json"
	"errors"
	"fmt"

	"authstack.dev/authstack/internal/result"
)

// keptOutcome is a JobOutcome as it is kept beside the result of its repeat, so that a Pod, and its
// log, may go as soon as the repeat has ended.
type keptOutcome struct {
	Name             string      `json:"name"`
	ExitCode         *int32      `json:"exitCode,omitempty"`
	PodReason        string      `json:"podReason,omitempty"`
	PodMessage       string      `json:"podMessage,omitempty"`
	DeadlineExceeded bool        `json:"deadlineExceeded,omitempty"`
	Said             string      `json:"said,omitempty"`
	Observed         bool        `json:"observed,omitempty"`
	Nodes            []NodeState `json:"nodes,omitempty"`
	// LogProblem is the kind of LogError, and LogError its text.
	LogProblem string `json:"logProblem,omitempty"`
	LogError   string `json:"logError,omitempty"`
}

// logProblems are the errors that a judgement tells apart, by the word that stands for them.
var logProblems = map[string]error{
	"noResult": result.ErrNoResult, "truncated": result.ErrTruncated, "corrupt": result.ErrCorrupt,
	"unsupportedVersion": result.ErrUnsupportedVersion,
}

// Keep writes how a Job ended. The text of its LogError must hold nothing secret.
func Keep(job JobOutcome) string {
	kept := keptOutcome{Name: job.Name, ExitCode: job.ExitCode, PodReason: job.PodReason, PodMessage: clip(job.PodMessage, maxMessage), DeadlineExceeded: job.DeadlineExceeded, Said: job.Said, Observed: job.Observed, Nodes: job.Nodes}
	if job.LogError != nil {
		kept.LogError = clip(job.LogError.Error(), maxMessage)
		for word, known := range logProblems {
			if errors.Is(job.LogError, known) {
				kept.LogProblem = word
			}
		}
	}
	return mustJSON(kept)
}

// Kept reads what Keep wrote.
func Kept(text string) (JobOutcome, error) {
	var kept keptOutcome
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return JobOutcome{}, fmt.Errorf("how the Job ended cannot be read: %w", err)
	}
	job := JobOutcome{Name: kept.Name, ExitCode: kept.ExitCode, PodReason: kept.PodReason, PodMessage: kept.PodMessage, DeadlineExceeded: kept.DeadlineExceeded, Said: kept.Said, Observed: kept.Observed, Nodes: kept.Nodes}
	switch known := logProblems[kept.LogProblem]; {
	case known != nil:
		job.LogError = known
	case kept.LogError != "":
		job.LogError = errors.New(kept.LogError)
	}
	return job, nil
}

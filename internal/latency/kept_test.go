package latency

import (
	"errors"
	"fmt"
	"testing"

	"authstack.dev/authstack/internal/result"
)

func TestAKeptOutcomeIsJudgedAsTheOneThatWasSeen(t *testing.T) {
	for name, job := range map[string]JobOutcome{
		"a script that is broken":     {Name: "demo-1-1", ExitCode: ptr(int32(107)), Said: "SyntaxError: Line 2", LogError: result.ErrNoResult},
		"a repeat that was observed":  {Name: "demo-1-1", ExitCode: ptr(int32(0)), Observed: true},
		"a good end":                  {Name: "demo-1-1", ExitCode: ptr(int32(0))},
		"an eviction":                 {Name: "demo-1-1", PodReason: "Evicted", PodMessage: "The node was low on resource: memory.", LogError: result.ErrNoResult},
		"a deadline":                  {Name: "demo-1-1", DeadlineExceeded: true, LogError: errors.New("the Pod of the Job is gone")},
		"a cut result":                {Name: "demo-1-1", ExitCode: ptr(int32(0)), LogError: fmt.Errorf("line 7: %w", result.ErrTruncated)},
		"a corrupt result":            {Name: "demo-1-1", ExitCode: ptr(int32(0)), LogError: result.ErrCorrupt},
		"a result of another version": {Name: "demo-1-1", ExitCode: ptr(int32(0)), LogError: result.ErrUnsupportedVersion},
		"no result":                   {Name: "demo-1-1", ExitCode: ptr(int32(0)), LogError: result.ErrNoResult},
		"an unreadable log":           {Name: "demo-1-1", ExitCode: ptr(int32(0)), LogError: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := Kept(Keep(job))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := jobError(kept, nil), jobError(job, nil); got != want {
				t.Errorf("kept it says %q, seen it said %q", got, want)
			}
			if kept.Name != job.Name || kept.DeadlineExceeded != job.DeadlineExceeded || kept.PodReason != job.PodReason || kept.PodMessage != job.PodMessage || kept.Observed != job.Observed {
				t.Errorf("kept as %+v", kept)
			}
		})
	}
	if _, err := Kept("{"); err == nil {
		t.Error("half an outcome was read")
	}
}

package latency

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"authstack.dev/authstack/internal/result"
)

// k6's exit codes (errext/exitcodes/codes.go of k6). 99, a missed threshold, cannot come: ours are
// switched off, because k6 lets a threshold without data pass.
const (
	exitInvalidConfig = 104
	exitStopped       = 105
	exitScript        = 107
	exitAborted       = 108
	exitPanic         = 109
	exitKilled        = 137
	exitTerminated    = 143
)

// findError is a sentence on why there is no result to judge, or empty.
func findError(plan *Plan, runs []*result.Run, ev Evidence, merged *result.Run) string {
	for i := range int(plan.Repeats) {
		if i >= len(ev.Jobs) {
			return fmt.Sprintf("Repeat %d of %d was not run.", i+1, plan.Repeats)
		}
		var run *result.Run
		if i < len(runs) {
			run = runs[i]
		}
		if message := jobError(ev.Jobs[i], run); message != "" {
			if plan.Repeats > 1 {
				message = fmt.Sprintf("Repeat %d of %d: %s", i+1, plan.Repeats, message)
			}
			return message
		}
	}
	if merged == nil {
		return "There is no result."
	}
	for i := range merged.Series {
		s := &merged.Series[i]
		// loadtests/scenarios/lib/run.js counts an iteration in which the script threw.
		for _, f := range s.Failures {
			if said, is := strings.CutPrefix(f.Kind, result.FailureScript); is {
				return fmt.Sprintf("The script of %s broke off in the middle%s.", s.Scenario, clip(said, 200))
			}
		}
	}
	if plan.Script() != nil {
		return scriptProblem(merged)
	}
	for _, scenario := range plan.Scenarios {
		if s := merged.Find(string(scenario.Name), wholeOf(plan, scenario.Name)); unreachable(s) {
			return unreachableMessage(s)
		}
	}
	return ""
}

// jobError is why one Job gave nothing to judge, or empty. What Kubernetes says comes before what k6
// says, since it explains it.
func jobError(job JobOutcome, run *result.Run) string {
	code := int32(-1)
	if job.ExitCode != nil {
		code = *job.ExitCode
	}
	if message := podError(job, code); message != "" {
		return message
	}
	if job.DeadlineExceeded {
		return "The Job did not end in time; raise spec.timeoutSeconds or lower the iterations."
	}
	if message := exitError(code, job.Said, run); message != "" {
		return message
	}
	return logError(job, run)
}

// podError is what Kubernetes says of a Pod that did not run to its end, or empty.
func podError(job JobOutcome, code int32) string {
	switch reason := job.PodReason; reason {
	case "", "Completed", "Error":
	case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable":
		return fmt.Sprintf("The image of k6 could not be had (%s); give the operator one that this cluster can pull.", reason)
	case "OOMKilled":
		return "k6 was killed for want of memory; raise the memory limit in spec.generator.resources or lower virtualUsers or the rate."
	case "Evicted", "Preempting", "Preempted", "NodeShutdown", "Terminated", "DeletionByTaintManager", "NodeLost":
		remedy := "run the test again"
		if why := strings.TrimRight(job.PodMessage, ". "); why != "" {
			reason += ": " + clip(why, 200)
			// The Pod's own limit (pkg/kubelet/eviction/helpers.go of Kubernetes 1.36), which the next Pod would reach as well.
			if strings.Contains(why, "ephemeral") && strings.Contains(why, "exceed") {
				remedy = "raise ephemeral-storage in spec.generator.resources"
			}
		}
		return fmt.Sprintf("The Pod of k6 was taken off its node (%s); %s.", reason, remedy)
	case PodDeleted:
		return "The Pod of k6 was deleted while it ran; run the test again."
	case "Unschedulable":
		return "No node takes the Pod of k6; lower spec.generator.resources or make room."
	default:
		if code != 0 {
			return fmt.Sprintf("The Pod of k6 did not run to its end (%s).", clip(reason, 100))
		}
	}
	return ""
}

// scriptPlace is the function and line of a script at the end of k6's words.
var scriptPlace = regexp.MustCompile(`(?s) at (\S+ )?\(?file:.*$`)

// exitError is what k6's exit code says (k6 errext/exitcodes), or empty for a run to the end.
func exitError(code int32, words string, run *result.Run) string {
	switch code {
	case 0:
	case -1:
		return "The Pod of k6 is gone and its exit code with it; run the test again."
	case exitAborted:
		if run != nil {
			for i := range run.Series {
				if s := &run.Series[i]; s.Whole && s.Unanswered > 0 {
					return unreachableMessage(s)
				}
			}
			if run.StopError != "" {
				// Where in a script it stopped says nothing to a reader of the verdict.
				said := scriptPlace.ReplaceAllString(run.StopError, "")
				return "k6 gave up: " + clip(said, 200) + "."
			}
		}
		return "k6 gave up before the end."
	case exitScript:
		if words != "" {
			return fmt.Sprintf("A script of k6 is broken (exit code 107): %s.", strings.TrimSuffix(words, "."))
		}
		return "A script of k6 is broken (exit code 107); the log of the Job has the line."
	case exitInvalidConfig:
		if words != "" {
			return fmt.Sprintf("k6 refused its configuration (exit code 104): %s.", strings.TrimSuffix(words, "."))
		}
		return "k6 refused its configuration (exit code 104); the log of the Job says why."
	case exitStopped, exitTerminated:
		return fmt.Sprintf("k6 was stopped from outside (exit code %d); run the test again.", code)
	case exitKilled:
		return "k6 was killed (exit code 137), most likely for want of memory; raise the memory limit in spec.generator.resources or lower virtualUsers or the rate."
	case exitPanic:
		return "k6 crashed (exit code 109); the log of the Job says where."
	default:
		return fmt.Sprintf("k6 ended with exit code %d; the log of the Job says why.", code)
	}
	return ""
}

// logError is why the log of a Job that ended well holds no result of it, or empty.
func logError(job JobOutcome, run *result.Run) string {
	switch err := job.LogError; {
	case err == nil && run != nil && run.PlanID != job.Name:
		return fmt.Sprintf("The log of Job %s holds the result of %.63q.", job.Name, run.PlanID)
	case err == nil && run != nil:
		return ""
	case errors.Is(err, result.ErrTruncated):
		return "Part of the result is missing in the log of the Job: the disk of the node was full, or the kubelet may have rotated it away."
	case errors.Is(err, result.ErrCorrupt):
		return "The result in the log of the Job does not match its checksum."
	case errors.Is(err, result.ErrUnsupportedVersion):
		return "The image of k6 writes another version of the result than this operator reads; take the image of the operator's release."
	case err == nil || errors.Is(err, result.ErrNoResult):
		return "There is no result in the log of the Job: the image of k6 must be the one with the output authstack, and the disk of the node must have room for the log."
	default:
		return "The log of the Job could not be read: " + clip(err.Error(), 200) + "."
	}
}

// unreachable is whether nothing answered at all.
func unreachable(s *result.Series) bool {
	return s != nil && s.Requests > 0 && s.Unanswered == s.Requests
}

func unreachableMessage(s *result.Series) string {
	kind := "no answer"
	if len(s.Failures) > 0 {
		kind = s.Failures[0].Kind
	}
	return fmt.Sprintf("The stack cannot be reached: %d of %d measured iterations of %s got no answer (%s).", s.Unanswered, s.Requests, s.Scenario, kind)
}

package probe

import (
	"math"
	"unicode/utf8"

	"authstack.dev/authstack/api/v1alpha1"
)

// maxPoints of the course in a status.
const maxPoints = 120

// Status is the result as it stands in an AuthStack's status, with what it means. What was probed and
// when is the caller's.
func Status(r *Result, subject Subject) *v1alpha1.StorageProbeStatus {
	judgement := Judge(r, subject)
	status := &v1alpha1.StorageProbeStatus{
		Problem: clip(r.Problem, 1024), Claim: clip(judgement.Claim, 512), Measured: clip(judgement.Measured, 512),
		Device: clip(r.Volume.String(), 512), Findings: judgement.Findings,
	}
	for i := range status.Findings {
		status.Findings[i].Message = clip(status.Findings[i].Message, 1024)
	}
	for _, s := range r.Syncs {
		status.Syncs = append(status.Syncs, v1alpha1.SyncFigures{
			Phase: s.Phase, DurationSeconds: s.Seconds, Syncs: s.Count, SyncsPerSecond: s.PerSecond,
			P50Micros: s.P50Micros, P99Micros: s.P99Micros, P999Micros: s.P999Micros, MaxMicros: s.MaxMicros,
		})
		if s.Phase == Long {
			status.SyncsPerSecond, status.SecondsPerPoint = points(s.Course)
		}
	}
	for _, p := range r.Patterns {
		status.Patterns = append(status.Patterns, v1alpha1.PatternFigures{
			Name: p.Name, BlockBytes: p.BlockBytes, Depth: p.Depth, OperationsPerSecond: p.OperationsPerSecond,
			BytesPerSecond: p.BytesPerSecond, P50Micros: p.P50Micros, P99Micros: p.P99Micros,
		})
	}
	if c := r.CPU; c != nil {
		status.CPU = &v1alpha1.CPUFigures{AESInstructions: c.AESInstructions, AESGCMBytesPerSecond: c.AESGCMBytesPerSecond,
			ChaCha20Poly1305BytesPerSecond: c.ChaCha20Poly1305BytesPerSecond}
	}
	return status
}

// points are the means of equal parts of the course, at most maxPoints of them; the last part may be
// shorter.
func points(course []int64) (means []int32, seconds int32) {
	if len(course) == 0 {
		return nil, 0
	}
	each := (len(course) + maxPoints - 1) / maxPoints
	for i := 0; i < len(course); i += each {
		part := course[i:min(i+each, len(course))]
		var sum int64
		for _, count := range part {
			sum += min(count, math.MaxInt32)
		}
		means = append(means, int32(sum/int64(len(part))))
	}
	return means, int32(each)
}

func clip(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

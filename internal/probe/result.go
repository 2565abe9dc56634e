// Package probe is the measurement of a storage: what is run, the result as a format, and what it
// means. The program loadtests/probe runs it with fio and is the only writer of the format; the
// operator reads it. Pure: it starts nothing and reads no file.
package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"authstack.dev/authstack/internal/result"
)

// Format names this format and its version; a reader refuses any other. The frame around it is that
// of docs/reference/result-format.md.
const Format = "authstack.dev/probe/v1"

// Result is what one probe measured. Durations are in microseconds.
type Result struct {
	// Format is the constant of that name.
	Format string `json:"format"`
	// PlanID is the id of the plan: the name of the Job.
	PlanID     string    `json:"planID"`
	StartedAt  time.Time `json:"startedAt"`
	EndedAt    time.Time `json:"endedAt"`
	FioVersion string    `json:"fioVersion"`
	Volume     Volume    `json:"volume"`
	// Syncs are the phases of 8 kB writes at depth 1, each followed by fdatasync, in the order of their run.
	Syncs []Sync `json:"syncs,omitempty"`
	// Patterns are sequential and random reads and writes.
	Patterns []Pattern `json:"patterns,omitempty"`
	CPU      *CPU      `json:"cpu,omitempty"`
	// Hung is set where fio did not come back: its writes never completed.
	Hung *Hang `json:"hung,omitempty"`
	// Problem is why the probe ended early, in a sentence.
	Problem string `json:"problem,omitempty"`
	// Notes are what was left out, and why.
	Notes []string `json:"notes,omitempty"`
}

// Volume is what the kernel says of the volume. What it does not tell is empty.
type Volume struct {
	// FileSystem, for example ext4; Device, for example vda or loop3.
	FileSystem string `json:"fileSystem,omitempty"`
	Device     string `json:"device,omitempty"`
	// WriteCache is the kernel's word: "write back" for a volatile cache that it flushes, "write through"
	// where the device says that it has none (/sys/block/…/queue/write_cache).
	WriteCache string `json:"writeCache,omitempty"`
	// Rotational is "0" or "1" (/sys/block/…/queue/rotational).
	Rotational string `json:"rotational,omitempty"`
	// FileBytes is the size of the file that was written and read.
	FileBytes int64 `json:"fileBytes,omitempty"`
}

// Sync is one phase of 8 kB writes, each followed by fdatasync. The percentiles are of fdatasync alone;
// the write before it goes to the page cache.
type Sync struct {
	// Phase is Short or Long.
	Phase      string `json:"phase"`
	Seconds    int32  `json:"seconds"`
	Count      int64  `json:"count"`
	PerSecond  int64  `json:"perSecond"`
	P50Micros  int64  `json:"p50Micros"`
	P99Micros  int64  `json:"p99Micros"`
	P999Micros int64  `json:"p999Micros"`
	MaxMicros  int64  `json:"maxMicros"`
	// Course is the count of each second, for the long phase.
	Course []int64 `json:"course,omitempty"`
}

// Pattern is one access pattern.
type Pattern struct {
	Name                string `json:"name"`
	BlockBytes          int64  `json:"blockBytes"`
	Depth               int32  `json:"depth"`
	OperationsPerSecond int64  `json:"operationsPerSecond"`
	BytesPerSecond      int64  `json:"bytesPerSecond"`
	P50Micros           int64  `json:"p50Micros"`
	P99Micros           int64  `json:"p99Micros"`
}

// CPU is how fast one core encrypts records of 16 KiB.
type CPU struct {
	AESInstructions                bool  `json:"aesInstructions"`
	AESGCMBytesPerSecond           int64 `json:"aesGCMBytesPerSecond"`
	ChaCha20Poly1305BytesPerSecond int64 `json:"chaCha20Poly1305BytesPerSecond"`
}

// Hang is fio that did not come back.
type Hang struct {
	// During which step, for example Long.
	During string `json:"during"`
	// AfterSeconds it was given up, its planned length included.
	AfterSeconds int32 `json:"afterSeconds"`
}

// limits of what a reader takes.
const (
	maxSyncs    = 4
	maxPatterns = 8
	maxCourse   = 3600
	maxText     = 1024
)

// Write the result in its frame.
func Write(w io.Writer, r *Result) error {
	r.Format = Format
	if err := r.validate(); err != nil {
		return fmt.Errorf("write result of the storage probe: %w", err)
	}
	return result.WriteFrame(w, r)
}

// Read the result in a log; the errors are those of result.Read.
func Read(r io.Reader) (*Result, error) {
	return result.ReadFrame(r, func(content []byte, format string) (*Result, error) {
		if format != Format {
			return nil, fmt.Errorf("%w: %.64q, this reader knows %q", result.ErrUnsupportedVersion, format, Format)
		}
		found := &Result{}
		if err := json.Unmarshal(content, found); err != nil {
			return nil, fmt.Errorf("%w: %w", result.ErrCorrupt, err)
		}
		return found, found.validate()
	})
}

// validate refuses what no writer of this format writes.
func (r *Result) validate() error {
	switch {
	case len(r.Syncs) > maxSyncs || len(r.Patterns) > maxPatterns || len(r.Notes) > maxPatterns:
		return corrupt("it has more phases or patterns than a probe runs")
	case len(r.Problem) > maxText || len(r.PlanID) > maxText || len(r.FioVersion) > maxText:
		return corrupt("a text of it is too long")
	case r.CPU != nil && min(r.CPU.AESGCMBytesPerSecond, r.CPU.ChaCha20Poly1305BytesPerSecond) < 0:
		return corrupt("the CPU has a negative figure")
	}
	names := map[string]bool{}
	for i := range r.Syncs {
		if err := r.Syncs[i].validate(); err != nil {
			return err
		}
		if names[r.Syncs[i].Phase] {
			return corrupt("phase %s is there twice", r.Syncs[i].Phase)
		}
		names[r.Syncs[i].Phase] = true
	}
	for _, p := range r.Patterns {
		if p.Name == "" || len(p.Name) > 63 || names[p.Name] {
			return corrupt("pattern %.64q", p.Name)
		}
		names[p.Name] = true
		if min(p.BlockBytes, int64(p.Depth), p.OperationsPerSecond, p.BytesPerSecond, p.P50Micros, p.P99Micros) < 0 {
			return corrupt("pattern %s has a negative figure", p.Name)
		}
	}
	return nil
}

func (s *Sync) validate() error {
	switch {
	case s.Phase != Short && s.Phase != Long:
		return corrupt("phase %.32q", s.Phase)
	case min(int64(s.Seconds), s.Count, s.PerSecond, s.P50Micros, s.P99Micros, s.P999Micros, s.MaxMicros) < 0:
		return corrupt("phase %s has a negative figure", s.Phase)
	case len(s.Course) > maxCourse || len(s.Course) > 0 && slices.Min(s.Course) < 0:
		return corrupt("the course of phase %s is too long or has a negative figure", s.Phase)
	case s.P50Micros > s.P99Micros || s.P99Micros > s.P999Micros:
		return corrupt("the percentiles of phase %s do not rise", s.Phase)
	}
	return nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{result.ErrCorrupt}, args...)...)
}

// find a phase, or nil.
func (r *Result) find(phase string) *Sync {
	for i := range r.Syncs {
		if r.Syncs[i].Phase == phase {
			return &r.Syncs[i]
		}
	}
	return nil
}

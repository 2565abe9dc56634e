package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"authstack.dev/authstack/internal/probe"
)

// fileName of what is written and read. It is made anew and removed at the end.
const fileName = "authstack-probe.bin"

// reap is how long a killed fio may take to go. One that waits for a disk that hangs never does.
const reap = 5 * time.Second

type runner struct {
	plan probe.Plan
	// scratch is where fio's logs go, apart from the volume.
	scratch string
	// fio is its executable.
	fio string
	// say takes a line for each step.
	say io.Writer
	// limit replaces the limits of the steps, for tests.
	limit time.Duration
}

// run the plan. What goes wrong is in the result, with what was measured before.
func (r *runner) run(ctx context.Context) *probe.Result {
	result := &probe.Result{PlanID: r.plan.ID, StartedAt: time.Now().UTC()}
	defer func() { result.EndedAt = time.Now().UTC() }()
	if err := empty(r.plan.Directory); err != nil {
		result.Problem = err.Error()
		return result
	}
	result.Volume = inspect(r.plan.Directory)
	result.Volume.FileBytes = r.plan.FileBytes
	result.CPU = measureCPU()
	file := filepath.Join(r.plan.Directory, fileName)
	defer func() {
		if result.Hung == nil { // Removing would hang too.
			_ = os.Remove(file)
		}
	}()
	for _, step := range r.plan.Steps() {
		_, _ = fmt.Fprintf(r.say, "%s: %d s\n", step.Name, step.Seconds)
		err := r.step(ctx, step, file, result)
		var hung *hungError
		switch {
		case err == nil:
		case errors.As(err, &hung):
			result.Hung = &probe.Hang{During: step.Name, AfterSeconds: int32(hung.after.Seconds())}
			return result
		case ctx.Err() != nil:
			result.Problem = "the probe was stopped from outside during " + step.Name
			return result
		case step.Optional:
			result.Notes = append(result.Notes, fmt.Sprintf("%s was left out: %s", step.Name, clip(err.Error())))
		default:
			result.Problem = fmt.Sprintf("%s: %s", step.Name, clip(err.Error()))
			return result
		}
	}
	return result
}

// empty refuses a directory that holds anything: what is there was not made for the probe.
func empty(directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return fmt.Errorf("the volume cannot be read: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() != "lost+found" {
			return fmt.Errorf("the volume is not empty, so the probe does not touch it; it holds %.64q", entry.Name())
		}
	}
	return nil
}

// hungError is fio that did not end in time.
type hungError struct{ after time.Duration }

func (e *hungError) Error() string { return fmt.Sprintf("nothing came back for %s", e.after) }

// step runs fio once and adds what it printed.
func (r *runner) step(ctx context.Context, step probe.Step, file string, result *probe.Result) error {
	limit := step.Limit
	if r.limit > 0 {
		limit = r.limit
	}
	log := filepath.Join(r.scratch, "course")
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, complaint bytes.Buffer
	command := exec.CommandContext(ctx, r.fio, r.plan.Command(step, file, log)...)
	command.Dir, command.Stdout, command.Stderr, command.WaitDelay = r.scratch, &out, &complaint, reap
	// Wait itself comes back only when the process does, which one that waits for a dead disk never does.
	if err := command.Start(); err != nil {
		return fmt.Errorf("fio could not be started: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		select {
		case err = <-ended:
		case <-time.After(2 * reap):
			return &hungError{limit}
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &hungError{limit}
	}
	if err != nil {
		return fmt.Errorf("fio: %w: %s", err, lastLine(complaint.String()+out.String()))
	}
	if step.Name != probe.Long {
		return result.Add(step, out.Bytes(), nil)
	}
	course, err := os.Open(log + "_iops.1.log")
	if err != nil {
		return fmt.Errorf("fio left no log of the course: %w", err)
	}
	defer func() { _ = course.Close() }()
	return result.Add(step, out.Bytes(), course)
}

// lastLine is fio's own complaint.
func lastLine(text string) string {
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "fio: ") {
			return line
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// clip what a message may hold.
func clip(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"authstack.dev/authstack/internal/probe"
)

// quick is a plan of a few seconds.
func quick(t *testing.T) probe.Plan {
	return probe.Plan{ID: "sso-storage-probe-1", Directory: t.TempDir(), FileBytes: 16 << 20, ShortSeconds: 1, LongSeconds: 4, PatternSeconds: 1}
}

// TestWithRealFio needs fio: hack/install-packages.sh fio.
func TestWithRealFio(t *testing.T) {
	r := &runner{plan: quick(t), scratch: t.TempDir(), fio: "fio", say: io.Discard}
	var log bytes.Buffer
	if err := probe.Write(&log, r.run(t.Context())); err != nil {
		t.Fatal(err)
	}
	got, err := probe.Read(&log)
	if err != nil {
		t.Fatal(err)
	}
	if got.Problem != "" || got.Hung != nil || got.PlanID != r.plan.ID || !strings.HasPrefix(got.FioVersion, "fio-") {
		t.Fatalf("the result is %+v", got)
	}
	if len(got.Syncs) != 2 || got.Syncs[0].Phase != probe.Short || got.Syncs[1].Phase != probe.Long {
		t.Fatalf("the phases are %+v", got.Syncs)
	}
	for _, s := range got.Syncs {
		if s.Count < 1 || s.P50Micros < 1 || s.MaxMicros < s.P999Micros {
			t.Errorf("the phase is %+v", s)
		}
	}
	// A sync that takes seconds, as on a busy machine, makes the phase longer by as much.
	if course, most := got.Syncs[1].Course, 5+int(got.Syncs[1].MaxMicros/1_000_000); len(course) < 2 || len(course) > most {
		t.Errorf("the course of four seconds is %v, want at most %d", course, most)
	}
	if len(got.Patterns)+len(got.Notes) != 5 {
		t.Errorf("%d patterns and the notes %q", len(got.Patterns), got.Notes)
	}
	if got.CPU == nil || got.CPU.AESGCMBytesPerSecond < 1 || got.CPU.ChaCha20Poly1305BytesPerSecond < 1 {
		t.Errorf("the CPU is %+v", got.CPU)
	}
	if got.Volume.FileSystem == "" || got.Volume.FileBytes != r.plan.FileBytes {
		t.Errorf("the volume is %+v", got.Volume)
	}
	if entries, err := os.ReadDir(r.plan.Directory); err != nil || len(entries) != 0 {
		t.Errorf("it left %v behind (%v)", entries, err)
	}
}

func TestAVolumeThatHoldsSomethingIsNotTouched(t *testing.T) {
	plan := quick(t)
	for _, name := range []string{"pgroot", "lost+found"} {
		if err := os.Mkdir(filepath.Join(plan.Directory, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := (&runner{plan: plan, scratch: t.TempDir(), fio: "/nonexistent", say: io.Discard}).run(t.Context())
	if !strings.Contains(got.Problem, `not empty`) || !strings.Contains(got.Problem, "pgroot") {
		t.Errorf("the problem is %q", got.Problem)
	}
	if entries, _ := os.ReadDir(plan.Directory); len(entries) != 2 {
		t.Errorf("the volume now holds %v", entries)
	}
}

// script stands in for fio.
func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fio")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestWhatCanGoWrong(t *testing.T) {
	for sentence, test := range map[string]struct {
		fio, problem, during string
		limit                time.Duration
	}{
		"no fio":                      {fio: "", problem: "fio could not be started"},
		"fio that fails says why":     {fio: "echo 'fio: pid=1, err=28/file:x, func=write, error=No space left on device' >&2; exit 1", problem: "No space left on device"},
		"fio that prints nothing":     {fio: "exit 0", problem: "no JSON"},
		"fio that does not come back": {fio: "exec sleep 1000", during: "Fill", limit: time.Second},
	} {
		t.Run(sentence, func(t *testing.T) {
			fio := "/nonexistent/fio"
			if test.fio != "" {
				fio = script(t, test.fio)
			}
			got := (&runner{plan: quick(t), scratch: t.TempDir(), fio: fio, say: io.Discard, limit: test.limit}).run(t.Context())
			if test.during != "" && (got.Hung == nil || got.Hung.During != test.during || got.Hung.AfterSeconds != 1) {
				t.Errorf("it is %+v", got)
			}
			if !strings.Contains(got.Problem, test.problem) {
				t.Errorf("the problem is %q", got.Problem)
			}
		})
	}
}

func TestAPatternThatTheFileSystemRefusesIsLeftOut(t *testing.T) {
	fio := script(t, `
for a in "$@"; do [ "$a" != --direct=1 ] || { echo 'fio: looks like your file system does not support direct=1/buffered=0' >&2; exit 1; }; done
case "$*" in *write_iops_log*) echo '1000, 5, 1, 0, 0' >course_iops.1.log ;; esac
echo '{"jobs": [{"write": {"iops": 5}, "sync": {"lat_ns": {"N": 5, "max": 9000, "percentile": {"50.000000": 5000, "99.000000": 6000, "99.900000": 7000}}}}]}'`)
	dir := t.TempDir()
	got := (&runner{plan: quick(t), scratch: dir, fio: fio, say: io.Discard}).run(t.Context())
	if got.Problem != "" || len(got.Syncs) != 2 || len(got.Patterns) != 0 || len(got.Notes) != 5 || !strings.Contains(got.Notes[0], "does not support direct") {
		t.Errorf("it is %+v", got)
	}
}

func TestStoppedFromOutside(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := (&runner{plan: quick(t), scratch: t.TempDir(), fio: script(t, "sleep 10"), say: io.Discard}).run(ctx)
	if !strings.Contains(got.Problem, "stopped from outside") {
		t.Errorf("it is %+v", got)
	}
}

func TestFileSystem(t *testing.T) {
	const mounts = `22 1 0:21 / / rw - overlay overlay rw
31 22 7:3 /vol /volume rw,relatime shared:5 master:1 - ext4 /dev/loop3 rw
40 22 0:44 / /tmp rw - tmpfs tmpfs rw
broken
`
	for sentence, test := range map[string]struct {
		major, minor uint64
		want         string
	}{
		"a block device":           {7, 3, "ext4"},
		"memory":                   {0, 44, "tmpfs"},
		"one that is not mounted":  {8, 1, ""},
		"the beginning of another": {7, 30, ""},
	} {
		if got := fileSystem(strings.NewReader(mounts), test.major, test.minor); got != test.want {
			t.Errorf("%s is %q, want %q", sentence, got, test.want)
		}
	}
	if major, minor := device(0x10000301); major != 3 || minor != 0x10001 {
		t.Errorf("a device of many minors is %d:%d", major, minor)
	}
}

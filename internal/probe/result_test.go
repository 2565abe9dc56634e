package probe

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"authstack.dev/authstack/internal/result"
)

func sample() *Result {
	return &Result{
		PlanID: "sso-storage-probe-1", StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), EndedAt: time.Date(2026, 1, 2, 3, 7, 5, 0, time.UTC),
		FioVersion: "fio-3.33", Volume: Volume{FileSystem: "ext4", Device: "vda", WriteCache: "write back", Rotational: "0", FileBytes: 256 << 20},
		Syncs: veranda(), Patterns: []Pattern{{Name: "random-read", BlockBytes: 4096, Depth: 32, OperationsPerSecond: 50_000, BytesPerSecond: 204_800_000, P50Micros: 600, P99Micros: 900}},
		CPU: &CPU{AESInstructions: true, AESGCMBytesPerSecond: 5e9, ChaCha20Poly1305BytesPerSecond: 1e9}, Notes: []string{"page-read was left out"},
	}
}

func TestFrameRoundTrip(t *testing.T) {
	var log bytes.Buffer
	if err := Write(&log, sample()); err != nil {
		t.Fatal(err)
	}
	want := sample()
	want.Format = Format
	got, err := Read(strings.NewReader("fio: some warning\n" + log.String() + "more\n"))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestAResultOfK6IsRefused(t *testing.T) {
	var log bytes.Buffer
	if err := result.Write(&log, &result.Run{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(&log); !errors.Is(err, result.ErrUnsupportedVersion) {
		t.Errorf("the error is %v", err)
	}
	if err := Write(&log, sample()); err != nil {
		t.Fatal(err)
	}
	if _, err := result.Read(&log); !errors.Is(err, result.ErrUnsupportedVersion) {
		t.Errorf("k6's reader says %v", err)
	}
}

func TestWhatMakesNoSenseIsCorrupt(t *testing.T) {
	for sentence, change := range map[string]func(*Result){
		"a phase twice":              func(r *Result) { r.Syncs[1].Phase = Short },
		"an unknown phase":           func(r *Result) { r.Syncs[0].Phase = "Middle" },
		"a negative count":           func(r *Result) { r.Syncs[0].Count = -1 },
		"a negative second":          func(r *Result) { r.Syncs[1].Course[3] = -1 },
		"percentiles that fall":      func(r *Result) { r.Syncs[0].P99Micros = 1 },
		"a pattern twice":            func(r *Result) { r.Patterns = append(r.Patterns, r.Patterns[0]) },
		"a pattern without a name":   func(r *Result) { r.Patterns[0].Name = "" },
		"a negative rate":            func(r *Result) { r.Patterns[0].BytesPerSecond = -1 },
		"a negative cipher":          func(r *Result) { r.CPU.AESGCMBytesPerSecond = -1 },
		"a course of more than 3600": func(r *Result) { r.Syncs[1].Course = make([]int64, 3601) },
		"a problem without end":      func(r *Result) { r.Problem = strings.Repeat("x", 2000) },
	} {
		t.Run(sentence, func(t *testing.T) {
			broken := sample()
			change(broken)
			broken.Format = Format
			var log bytes.Buffer
			if err := Write(&log, broken); !errors.Is(err, result.ErrCorrupt) {
				t.Errorf("the writer says %v", err)
			}
			if err := result.WriteFrame(&log, broken); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(&log); !errors.Is(err, result.ErrCorrupt) {
				t.Errorf("the reader says %v", err)
			}
		})
	}
}

// FuzzRead: no log makes the reader crash, and what it takes can be judged and shown.
func FuzzRead(f *testing.F) {
	var log bytes.Buffer
	if err := Write(&log, sample()); err != nil {
		f.Fatal(err)
	}
	f.Add(log.Bytes(), `{"format":"authstack.dev/probe/v1"}`)
	f.Add([]byte("-----BEGIN AUTHSTACK RESULT v1 00 5-----\n"), `{"format":"authstack.dev/probe/v1","syncs":[{"phase":"Long","course":[1,2,3,4,5,6]}]}`)
	f.Fuzz(func(t *testing.T, raw []byte, content string) {
		_, _ = Read(bytes.NewReader(raw))
		var framed bytes.Buffer
		if err := result.WriteFrame(&framed, rawJSON(content)); err != nil {
			return
		}
		found, err := Read(&framed)
		if err != nil {
			return
		}
		if status := Status(found, Subject{}); len(status.SyncsPerSecond) > 120 || len(status.Findings) > 8 || len(status.Patterns) > 8 {
			t.Errorf("the status is too large: %+v", status)
		}
	})
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

const printed = `fio: a warning
{"fio version": "fio-3.33", "jobs": [{"error": %d,
 "read": {"iops": 0, "bw_bytes": 0, "runtime": 0, "clat_ns": {"N": 0}},
 "write": {"iops": 988.4, "bw_bytes": 8097000, "runtime": 10000, "clat_ns": {"N": 9884, "max": 20000, "percentile": {"50.000000": 6304, "99.000000": 31616}}},
 "sync": {"lat_ns": {"max": 18064061, "N": 9884, "percentile": {"50.000000": 960400, "99.000000": 1900600, "99.900000": 19000000}}}}]}`

func TestAddReadsWhatFioPrints(t *testing.T) {
	steps := NewPlan("x", 10<<30, 10*time.Second, time.Minute).Steps()
	r := &Result{}
	if err := r.Add(steps[1], fmt.Appendf(nil, printed, 0), nil); err != nil {
		t.Fatal(err)
	}
	course := "1000, 985, 1, 0, 0\n2000, 990, 1, 0, 0\n4000, 3, 1, 0, 0\n"
	if err := r.Add(steps[2], fmt.Appendf(nil, printed, 0), strings.NewReader(course)); err != nil {
		t.Fatal(err)
	}
	want := []Sync{
		{Phase: Short, Seconds: 10, Count: 9884, PerSecond: 988, P50Micros: 960, P99Micros: 1901, P999Micros: 18064, MaxMicros: 18064},
		{Phase: Long, Seconds: 60, Count: 9884, PerSecond: 988, P50Micros: 960, P99Micros: 1901, P999Micros: 18064, MaxMicros: 18064, Course: []int64{985, 990, 0, 3}},
	}
	if !reflect.DeepEqual(r.Syncs, want) {
		t.Errorf("the syncs are %+v", r.Syncs)
	}
	if err := r.validate(); err != nil && !strings.Contains(err.Error(), "version") {
		t.Error(err)
	}
}

func TestAddRefusesWhatIsNoResult(t *testing.T) {
	long := NewPlan("x", 10<<30, 10*time.Second, time.Minute).Steps()[2]
	for sentence, test := range map[string]struct{ printed, course, says string }{
		"nothing":               {"", "", "no JSON"},
		"half a JSON":           {`{"jobs": [`, "", "not understood"},
		"no jobs":               {`{"jobs": []}`, "", "0 jobs"},
		"an error of the job":   {fmt.Sprintf(printed, 28), "", "error 28"},
		"no sync":               {`{"jobs": [{}]}`, "", "no sync completed"},
		"a course of words":     {fmt.Sprintf(printed, 0), "a, b\n", "not understood"},
		"a course that is less": {fmt.Sprintf(printed, 0), "1000, -5\n", "not understood"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if err := (&Result{}).Add(long, []byte(test.printed), strings.NewReader(test.course)); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	plan := NewPlan("x", 600<<20, 0, 0)
	if plan.FileBytes != 150<<20 || plan.ShortSeconds != 1 || plan.LongSeconds != 5 {
		t.Errorf("the plan of a small volume is %+v", plan)
	}
	if again, err := Parse(plan.JSON()); err != nil || again != plan {
		t.Errorf("read again %+v, %v", again, err)
	}
	if big := NewPlan("x", 10<<40, time.Hour, time.Hour); big.FileBytes != 256<<20 {
		t.Errorf("the plan of a large volume is %+v", big)
	}
	for _, text := range []string{"", "{}", `{"directory":"/v","fileBytes":1}`, `{"directory":"/v","fileBytes":1048576}`, `{"fileBytes":1048576,"shortSeconds":1,"longSeconds":1,"patternSeconds":1}`} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	for _, step := range plan.Steps() {
		command := strings.Join(plan.Command(step, "/volume/file", "/tmp/log"), " ")
		if step.Name != "Fill" && !strings.Contains(command, "--allow_file_create=0") {
			t.Errorf("%s may make a file: %s", step.Name, command)
		}
		if (step.Name == Short || step.Name == Long) && !strings.Contains(command, "--fdatasync=1") {
			t.Errorf("%s does not sync: %s", step.Name, command)
		}
	}
}

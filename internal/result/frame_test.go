package result

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sample is a run of some thousand requests, so that its frame has many lines.
func sample() *Run {
	random := rand.New(rand.NewPCG(7, 8))
	run := &Run{PlanID: "demo-1-1", StartedAt: time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC), EndedAt: time.Date(2026, 11, 21, 5, 1, 0, 0, time.UTC),
		Scenarios: []Scenario{{Name: "Login", Iterations: 5000, WarmUpIterations: 12, Checks: []Check{{Name: "a", Passed: 5000}}}},
		Generator: Generator{K6Version: "v2.2.0", GOMAXPROCS: 2, WallMicros: 60_000_000, CPUMicros: 1_000_000, Throttle: &Throttle{Periods: 600}}}
	for _, endpoint := range []string{"login", "password-post"} {
		s := Series{Scenario: "Login", Endpoint: endpoint, Requests: 5002, Wrong: 1, Unanswered: 1, LastMicros: 60_000_000,
			Bytes: 70_000, Statuses: []Status{{200, 5000}, {500, 1}}, Total: NewHistogram(), Failures: []Failure{{Kind: "status 500", Count: 1}, {Kind: "no answer (connection refused)", Count: 1}}}
		for range 5000 {
			s.Total.Record(int64(random.ExpFloat64() * 700_000))
		}
		run.Series = append(run.Series, s)
	}
	return run
}

func frameOf(t testing.TB, run *Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, run); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sameRun compares by what is written: histograms have no exported fields.
func sameRun(t *testing.T, got, want *Run) {
	t.Helper()
	if diff := cmp.Diff(frameOf(t, want), frameOf(t, got)); diff != "" {
		t.Error(diff)
	}
}

func TestReadFindsTheResultInALog(t *testing.T) {
	want := sample()
	frame := frameOf(t, want)
	lines := strings.Split(strings.TrimSuffix(frame, "\n"), "\n")
	if len(lines) < 8 {
		t.Fatalf("the frame has %d lines only", len(lines))
	}
	each := func(f func(i int, line string) string) string {
		var b strings.Builder
		for i, line := range lines {
			b.WriteString(f(i, line))
		}
		return b.String()
	}
	for name, log := range map[string]string{
		"alone":                       frame,
		"without the last line's end": strings.TrimSuffix(frame, "\n"),
		"between other lines":         "time=\"2026\" level=info msg=start\n\n" + frame + "bye\n",
		"with Windows' line ends":     strings.ReplaceAll(frame, "\n", "\r\n"),
		"with the kubelet's times":    each(func(i int, l string) string { return fmt.Sprintf("2026-11-21T05:00:00.%09dZ %s\n", i, l) }),
		"in CRI's form":               each(func(i int, l string) string { return "2026-11-21T05:00:00.1+01:00 stdout F " + l + "\n" }),
		"with warnings in its middle": each(func(_ int, l string) string { return l + "\nWARN[0001] Request Failed error=\"x\"\nabcd\n" }),
		"after a frame that was cut":  lines[0] + "\n" + lines[1] + "\n" + frame,
		"after a very long line":      strings.Repeat("x", 300_000) + "\n" + frame,
		"beside a line of its length": each(func(_ int, l string) string { return l + "\n" + strings.Repeat("-", lineLength) + "\n" }),
		"the later of two":            frameOf(t, &Run{PlanID: "old"}) + frame,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(log))
			if err != nil {
				t.Fatal(err)
			}
			sameRun(t, got, want)
		})
	}
	for i, line := range lines {
		if len(line) > 1000 {
			t.Errorf("line %d has %d characters", i, len(line))
		}
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	frame := frameOf(t, sample())
	lines := strings.Split(strings.TrimSuffix(frame, "\n"), "\n")
	with := func(i int, line string) string {
		changed := append([]string{}, lines...)
		changed[i] = line
		return strings.Join(changed, "\n")
	}
	flipped := []byte(lines[2])
	// Still a character of base64.
	flipped[100] = map[bool]byte{true: 'B', false: 'A'}[flipped[100] == 'A']
	other := sample()
	other.Format = "x"
	for name, test := range map[string]struct {
		log  string
		want error
	}{
		"an empty log":                         {"", ErrNoResult},
		"a log of something else":              {"starting\nfailed\n", ErrNoResult},
		"the end is missing":                   {strings.Join(lines[:len(lines)-1], "\n"), ErrTruncated},
		"the log stops in the middle":          {frame[:len(frame)/2], ErrTruncated},
		"the log stops in the first line":      {frame[:40], ErrTruncated},
		"the beginning was rotated away":       {strings.Join(lines[3:], "\n"), ErrTruncated},
		"a line in the middle is missing":      {strings.Join(append(append([]string{}, lines[:2]...), lines[3:]...), "\n"), ErrTruncated},
		"a character was changed":              {with(2, string(flipped)), ErrCorrupt},
		"two lines were exchanged":             {strings.Join(append([]string{lines[0], lines[2], lines[1]}, lines[3:]...), "\n"), ErrCorrupt},
		"the first line has no length":         {with(0, "-----BEGIN AUTHSTACK RESULT v1 abc-----"), ErrCorrupt},
		"the first line promises too much":     {with(0, "-----BEGIN AUTHSTACK RESULT v1 "+strings.Repeat("0", 64)+" 99999999999-----"), ErrCorrupt},
		"another version of the frame":         {strings.ReplaceAll(frame, "RESULT v1", "RESULT v2"), ErrUnsupportedVersion},
		"a whole frame and then one that ends": {frame + lines[0] + "\n", ErrTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			run, err := Read(strings.NewReader(test.log))
			if !errors.Is(err, test.want) || run != nil {
				t.Errorf("Read gives %v, want %v", err, test.want)
			}
		})
	}
	t.Run("the reader fails", func(t *testing.T) {
		broken := errors.New("connection lost")
		if _, err := Read(errorReader{broken}); !errors.Is(err, broken) {
			t.Errorf("Read gives %v", err)
		}
	})
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

func TestWriteRefusesCountsThatDoNotAddUp(t *testing.T) {
	for name, spoil := range map[string]func(s *Series){
		"a request without an outcome":     func(s *Series) { s.Requests++ },
		"more answers than requests":       func(s *Series) { s.AddStatus(200, 10) },
		"less than no answers of a status": func(s *Series) { s.AddStatus(404, -1) },
		"less than no bytes":               func(s *Series) { s.Bytes = -1 },
	} {
		run := sample()
		spoil(&run.Series[0])
		if err := Write(&bytes.Buffer{}, run); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: Write gives %v", name, err)
		}
	}
}

func TestMergeOfRunsAddsUp(t *testing.T) {
	a, b := sample(), sample()
	b.Generator.CPUMicros, b.StopError = 9_000_000, "stopped"
	b.Series = append(b.Series, Series{Scenario: "Dashboard", Endpoint: "x"})
	before := frameOf(t, a)
	merged := Merge(a, nil, b)
	if s := merged.Find("Login", "login"); s.Requests != 10004 || s.Failed() != 4 || s.Total.Count() != 10000 || s.LastMicros != 120_000_000 || s.Failures[0].Count != 2 ||
		s.Bytes != 140_000 || !slices.Equal(s.Statuses, []Status{{200, 10_000}, {500, 2}}) {
		t.Errorf("login: %+v", s)
	}
	if merged.Scenarios[0].Iterations != 10000 || merged.Scenarios[0].Checks[0].Passed != 10000 || merged.Generator.CPUMicros != 9_000_000 ||
		merged.StopError != "stopped" || merged.Find("Dashboard", "x") == nil {
		t.Errorf("merged: %+v", merged)
	}
	if frameOf(t, a) != before {
		t.Error("Merge changed a run")
	}
	if Merge() != nil || Merge(nil) != nil {
		t.Error("Merge of nothing is something")
	}
}

func TestKindsOfFailureAndStatusesAreBounded(t *testing.T) {
	var s Series
	for i := range 100 {
		s.AddFailure(fmt.Sprint(i), 1)
		s.AddStatus(200+i, 1)
	}
	var failures, statuses int64
	for i := range s.Failures {
		failures, statuses = failures+s.Failures[i].Count, statuses+s.Statuses[i].Count
	}
	if len(s.Failures) != maxFailureKinds || len(s.Statuses) != maxStatuses || failures != 100 || statuses != 100 {
		t.Errorf("%d kinds of %d failures, %d answers by %d statuses", len(s.Failures), failures, statuses, len(s.Statuses))
	}
}

func FuzzRead(f *testing.F) {
	var whole bytes.Buffer
	if err := Write(&whole, &Run{PlanID: "x"}); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	script := Scenario{Name: "Script"}
	for _, of := range []MetricType{MetricTrend, MetricCounter, MetricRate, MetricGauge} {
		script.Metric("mine", of).Record(1.5)
	}
	f.Add([]byte(frameOf(f, &Run{Scenarios: []Scenario{script}, Series: []Series{{Scenario: "Script", Endpoint: "mine", Own: true}}})))
	f.Add([]byte(frameOf(f, &Run{Scenarios: []Scenario{{Name: "Script", Metrics: []Metric{{Name: "mine", Type: MetricCounter, Count: 1 << 62}}}}})))
	f.Add(whole.Bytes()[:whole.Len()/2])
	f.Add([]byte("-----BEGIN AUTHSTACK RESULT v1 00 3-----\nAAAA\n-----END AUTHSTACK RESULT v1-----\n"))
	f.Add([]byte("2026-11-21T05:00:00Z stdout F -----END AUTHSTACK RESULT "))
	f.Fuzz(func(t *testing.T, log []byte) {
		run, err := Read(bytes.NewReader(log))
		known := errors.Is(err, ErrNoResult) || errors.Is(err, ErrTruncated) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrUnsupportedVersion)
		if (run == nil) != known {
			t.Errorf("Read gives %v, %v", run, err)
		}
		if run != nil {
			frameOf(t, Merge(run, run))
			frameOf(t, run)
		}
	})
}

func FuzzHistogramJSON(f *testing.F) {
	h := NewHistogram()
	h.Record(5)
	data, _ := h.MarshalJSON()
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		read := &Histogram{}
		if read.UnmarshalJSON(data) != nil {
			return
		}
		if p := read.PerMille(950); p > read.Max() {
			t.Errorf("p95 is %d, the maximum %d", p, read.Max())
		}
		if _, err := read.MarshalJSON(); err != nil {
			t.Error(err)
		}
	})
}

package report

import (
	"bytes"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/result"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// sampleCauses are as internal/diagnosis words them.
var sampleCauses = []v1alpha1.Cause{
	{Rank: 1, Name: "commit-wait", Scenario: "Login", Endpoint: "login", Micros: 460_700, ShareMilli: 427, Basis: v1alpha1.BasisEstimated,
		Detail: "24 commits of a login wait one after the other, each for a WAL sync of 17.0ms (the mean of 7704 WAL syncs during the run)",
		Remedy: "spec.postgres.durability: a level below Strict | or another medium"},
	{Rank: 2, Name: "password-hashing", Scenario: "Login", Endpoint: "login", Micros: 132_500, ShareMilli: 123, Basis: v1alpha1.BasisMeasured,
		Detail: "the request with the password takes 223ms, 132ms more than its neighbours", Remedy: "none by a field"},
	{Rank: 3, Name: "slow-encryption", Scenario: "Login", Endpoint: "login", Basis: v1alpha1.BasisEstimated,
		Detail: "one core encrypts 27 MB/s <with AES-GCM>", Remedy: "a node with AES instructions"},
}

// sample is a finished test of a stack: median is that of the login in milliseconds.
func sample(median float64, double bool) Input {
	random := rand.New(rand.NewPCG(1, 2))
	run := &result.Run{PlanID: "demo-1-1", StartedAt: noon, EndedAt: noon.Add(90 * time.Second),
		Scenarios: []result.Scenario{{Name: "Login", Iterations: 60, WarmUpIterations: 12}, {Name: "Dashboard", Iterations: 61, WarmUpIterations: 4}},
		Generator: result.Generator{K6Version: "v2.2.0", GoVersion: "go1.26", GOMAXPROCS: 2, WallMicros: 90_000_000, CPUMicros: 4_000_000,
			BusiestCPUMicros: 120_000, MaxRSSBytes: 90 << 20, Throttle: &result.Throttle{}}}
	add := func(scenario, endpoint string, n int, median float64, whole bool) {
		s := result.Series{Scenario: scenario, Endpoint: endpoint, Whole: whole, Requests: int64(n), FirstMicros: 10_000_000, LastMicros: 70_000_000,
			Total: result.NewHistogram(), Timeline: result.NewTimeline(), WarmUpRequests: 12}
		if !whole {
			s.Wait, s.Receive = result.NewHistogram(), result.NewHistogram()
		}
		for i := range n {
			micros := int64(median * 1000 * math.Exp(0.16*math.Abs(random.NormFloat64())))
			s.Total.Record(micros)
			s.Timeline.Record(s.FirstMicros+int64(i)*60_000_000/int64(n), micros, false)
			if !whole {
				s.Wait.Record(micros * 97 / 100)
				s.Receive.Record(micros * 2 / 100)
			}
		}
		run.Series = append(run.Series, s)
	}
	add("Login", "login", 60, median, true)
	for endpoint, share := range map[string]float64{"identification-get": 0.12, "identification-post": 0.07, "password-get": 0.12, "password-post": 0.35, "mfa-get": 0.12, "login-get": 0.22} {
		random = rand.New(rand.NewPCG(3, uint64(share*100)))
		add("Login", endpoint, 60, median*share, false)
	}
	random = rand.New(rand.NewPCG(5, 6))
	add("Dashboard", "dashboard-parallel", 61, 830, true)
	add("Dashboard", "dashboard-sequential", 61, 1600, true)
	add("Dashboard", "applications-parallel", 488, 700, false)
	add("Dashboard", "applications-sequential", 488, 190, false)
	run.Sort()

	test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "sso", Name: "demo"}}
	test.Spec.StackRef.Name = "demo"
	stack := &v1alpha1.AuthStack{}
	stack.Spec.Authentik = &v1alpha1.AuthentikSpec{Version: "2025.12.4"}
	test.Spec.Scenarios = []v1alpha1.Scenario{{Name: v1alpha1.ScenarioLogin, Iterations: new(int32(60))}, {Name: v1alpha1.ScenarioDashboard, Iterations: new(int32(61))}}
	test.Spec.Objectives = []v1alpha1.Objective{
		{Scenario: v1alpha1.ScenarioLogin, Percentile: 95, Below: metav1.Duration{Duration: 800 * time.Millisecond}},
		{Scenario: v1alpha1.ScenarioDashboard, Percentile: 95, Below: metav1.Duration{Duration: 2 * time.Second}},
	}
	plan, err := latency.Resolve(test, stack)
	if err != nil {
		panic(err)
	}
	zero := int32(0)
	pods := []latency.PodState{{Name: "demo-server-0", UID: "a", Image: "i", Ready: true}}
	outcome := latency.Judge(plan, []*result.Run{run}, latency.Evidence{
		Jobs: []latency.JobOutcome{{Name: "demo-1-1", ExitCode: &zero, Observed: true}}, PodsBefore: pods, PodsAfter: pods, GenerationBefore: 2, GenerationAfter: 2})

	test.Status = v1alpha1.LatencyTestStatus{
		Verdict: outcome.Verdict, Causes: sampleCauses, Scenarios: outcome.Scenarios, Objectives: outcome.Objectives, Guards: outcome.Guards,
		StartedAt: &metav1.Time{Time: noon}, CompletedAt: &metav1.Time{Time: noon.Add(95 * time.Second)},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Message: outcome.Message}},
		Subject: &v1alpha1.Subject{Stack: "demo", StackGeneration: 2, IdentityProvider: "authentik", Version: "2025.12.4", Double: double,
			Database: "zalando", DatabaseVersion: "17.5", StorageClass: "ceph-block", Medium: v1alpha1.MediumCephRBD, Durability: "IdentityDurable", Cache: "postgres"},
	}
	stack.Status.Database = &v1alpha1.DatabaseStatus{
		DurabilityNote: "cache entries and new sessions of the last 600 ms; no user, credential or logout.",
		Settings: []v1alpha1.SettingStatus{
			{Name: "jit", Scope: "Server", Desired: "off", InForce: "off", Reason: "compiling a query takes longer than running it: the list of applications took 0.9 s with it."},
			{Name: "join_collapse_limit", Scope: "Role", Desired: "4", InForce: "4", Reason: "two queries with 63 joins are planned in half the time."},
			{Name: "shared_buffers", Scope: "Server", Desired: "512MB", InForce: "128MB", PendingRestart: true, Reason: "a quarter of the memory limit."},
		}}
	if !double {
		stack.Status.Storage = &v1alpha1.StorageStatus{Probe: &v1alpha1.StorageProbeStatus{
			StorageClassName: "ceph-block", VolumeSize: "10Gi", Node: "node-1", CompletedAt: &metav1.Time{Time: noon}, Device: "ext4 on rbd0, write cache write back",
			Claim:    "CephRBD (rook-ceph.rbd.csi.ceph.com): the provisioner is rook-ceph.rbd.csi.ceph.com",
			Measured: "8 kB fdatasync p50 2.50ms, p99 7.40ms, 390 a second: as replicated network storage",
			Syncs: []v1alpha1.SyncFigures{{Phase: "Short", DurationSeconds: 10, Syncs: 3900, SyncsPerSecond: 390, P50Micros: 2500, P99Micros: 7400, P999Micros: 9000, MaxMicros: 21000},
				{Phase: "Long", DurationSeconds: 120, Syncs: 46800, SyncsPerSecond: 390, P50Micros: 2500, P99Micros: 7400, P999Micros: 12000, MaxMicros: 44000}},
			Patterns: []v1alpha1.PatternFigures{{Name: "random-read", BlockBytes: 4096, Depth: 32, OperationsPerSecond: 5763, BytesPerSecond: 23_605_248, P50Micros: 5400, P99Micros: 9900}},
			CPU:      &v1alpha1.CPUFigures{AESGCMBytesPerSecond: 27_000_000, ChaCha20Poly1305BytesPerSecond: 173_000_000},
			Findings: []v1alpha1.StorageFinding{{Kind: v1alpha1.FindingNoAES, Message: "the CPU has no instructions for AES <sic>"}},
		}}
	}
	return Input{Test: test, Stack: stack, Run: result.Merge(run), Now: noon.Add(2 * time.Minute)}
}

func TestGolden(t *testing.T) {
	failed := sample(1250, false)
	inputs := map[string]*Report{
		"passed-double": New(sample(540, true)),
		"failed":        New(failed),
		"two":           Merge(New(sample(540, false)), New(failed)),
		"comparison":    compared(),
		"steps":         New(rising()),
		"script":        New(scripted(t)),
		"baseline":      New(gated()).Against(New(sample(540, false)).earlier(), 10),
	}
	// A test that never got a result has neither figures nor plots.
	none := sample(540, false)
	none.Test.Status = v1alpha1.LatencyTestStatus{Verdict: v1alpha1.VerdictError,
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Message: "The image of k6 could not be had (ErrImagePull) <b>&</b>."}}}
	inputs["error"] = New(Input{Test: none.Test, Now: noon})

	for name, r := range inputs {
		for extension, write := range map[string]func(io.Writer, *Report) error{
			"txt": WriteTable, "json": WriteJSON, "md": WriteMarkdown, "html": WriteHTML, "xml": WriteJUnit, "hist": WriteHistograms,
		} {
			t.Run(name+"."+extension, func(t *testing.T) {
				var got bytes.Buffer
				if err := write(&got, r); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join("testdata", name+"."+extension)
				if *update {
					if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got.String()); diff != "" {
					t.Errorf("%s differs (go test ./internal/report -update):\n%s", path, diff)
				}
			})
		}
	}
}

func TestHTMLNeedsNothingElse(t *testing.T) {
	var b bytes.Buffer
	if err := WriteHTML(&b, New(sample(540, true))); err != nil {
		t.Fatal(err)
	}
	for _, sign := range []string{"http://", "https://", "<script", "src=", "@import", "url(", "ZgotmplZ", "<no value>", "NaN", "%!"} {
		if strings.Contains(b.String(), sign) {
			t.Errorf("the file holds %q", sign)
		}
	}
	if !strings.Contains(b.String(), "DOUBLE: a stand-in ran, not authentik.") {
		t.Error("the file does not say that a double ran")
	}
}

func TestJSONIsReadAgain(t *testing.T) {
	want := New(sample(540, true))
	var b bytes.Buffer
	if err := WriteJSON(&b, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"", "[]", "{}", `{"apiVersion":"authstack.dev/report/v2"}`} {
		if _, err := ReadJSON(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "not a report") {
			t.Errorf("%q was read: %v", text, err)
		}
	}
}

func TestAPlotCountsEverySample(t *testing.T) {
	for name, values := range map[string][]int64{"one sample": {5000}, "all the same": {7, 7, 7, 7}, "from 0 to an hour": {0, 1, 1000, result.MaxMicros}} {
		t.Run(name, func(t *testing.T) {
			h := result.NewHistogram()
			for _, v := range values {
				h.Record(v)
			}
			var sum int64
			for _, bin := range bins(h) {
				sum += bin.Count
			}
			if sum != h.Count() {
				t.Errorf("the bins hold %d of %d", sum, h.Count())
			}
			points := spectrum(h)
			for i := 1; i < len(points); i++ {
				if points[i].Micros < points[i-1].Micros || points[i].PerMille <= points[i-1].PerMille {
					t.Errorf("the spectrum falls at %v", points[i])
				}
			}
			// Drawing must not fail on any of these.
			p := Plot{Scenario: "Login", Endpoint: "login", Count: h.Count(), Bins: bins(h), Spectrum: points}
			for _, c := range []chart{distributionChart(p, nil), spectrumChart(p, nil)} {
				for _, bar := range c.Bars {
					if math.IsNaN(bar.X) || bar.Width <= 0 || bar.X < c.Left-1 || bar.X+bar.Width > c.Right+1 {
						t.Errorf("a bar stands outside: %+v", bar)
					}
				}
			}
		})
	}
}

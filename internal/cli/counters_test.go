package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/internal/report"
)

func TestWritesArePickedFromCadvisor(t *testing.T) {
	const metrics = `# HELP container_fs_writes_total Cumulative count of writes completed
container_fs_writes_total{container="",device="",id="/kubepods/pod1",namespace="sso",pod="db-0"} 50 1795245274424
container_fs_writes_total{container="postgres",device="/dev/rbd0",id="a",namespace="sso",pod="db-0"} 30 1795245274424
container_fs_writes_total{container="postgres",device="/dev/vda",id="a",namespace="sso",pod="db-0"} 1.2e+01 1795245274424
container_fs_writes_total{container="postgres",device="/dev/vda",id="b",namespace="other",pod="db-0"} 7000 1795245274424
container_fs_writes_merged_total{container="postgres",device="/dev/vda",id="a",namespace="sso",pod="db-0"} 999 1795245274424
`
	if diff := cmp.Diff(map[string]int64{"/dev/rbd0": 30, "/dev/vda": 12}, writesOf(metrics, "sso", "db-0")); diff != "" {
		t.Error(diff)
	}
	if got := writesOf(metrics, "sso", "server-0"); got != nil {
		t.Errorf("a Pod that is not counted has the writes %v", got)
	}
}

func TestWhichPartOfAStackAPodIs(t *testing.T) {
	component := func(name string) map[string]string { return map[string]string{"app.kubernetes.io/component": name} }
	for sentence, row := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"authentik's server":                 {component("server"), "identity provider"},
		"its worker":                         {component("worker"), "identity provider"},
		"a PostgreSQL of ours":               {component("database"), "database"},
		"a PostgreSQL of Zalando's operator": {map[string]string{"application": "spilo"}, "database"},
		"Redis":                              {component("cache"), "cache"},
		"the load generator":                 {component("load-generator"), ""},
		"the storage probe":                  {component("storage-probe"), ""},
	} {
		if got := partOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: row.labels}}); got != row.want {
			t.Errorf("%s is %q, not %q", sentence, got, row.want)
		}
	}
}

func TestWhatAPartUsedBetweenTwoReadings(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(part string, seconds int, cpu time.Duration, writes map[string]int64) podUsage {
		return podUsage{part: part, at: start.Add(time.Duration(seconds) * time.Second), cpu: cpu, writes: writes}
	}
	on := func(device string, writes int64) map[string]int64 { return map[string]int64{device: writes} }
	before := usages{"a": at("identity provider", 0, 10*time.Second, nil), "b": at("identity provider", 1, 20*time.Second, nil), "c": at("database", 0, time.Second, on("/dev/vda", 100))}
	for name, row := range map[string]struct {
		after   usages
		refusal string
		want    []report.Usage
	}{
		"Pods of a part are added up": {
			after: usages{"a": at("identity provider", 60, 15*time.Second, nil), "b": at("identity provider", 61, 22*time.Second, nil), "c": at("database", 62, 4*time.Second, on("/dev/vda", 2500))},
			want:  []report.Usage{{Part: "identity provider", Pods: 2, CPU: 7 * time.Second}, {Part: "database", Pods: 1, CPU: 3 * time.Second, Writes: new(int64(2400))}},
		},
		"a write to a device that lies on another is counted once": {
			after: usages{"a": at("identity provider", 60, 15*time.Second, nil), "b": at("identity provider", 61, 22*time.Second, nil),
				"c": at("database", 62, 4*time.Second, map[string]int64{"/dev/vda": 900, "/dev/dm-0": 2400})},
			want: []report.Usage{{Part: "identity provider", Pods: 2, CPU: 7 * time.Second}, {Part: "database", Pods: 1, CPU: 3 * time.Second, Writes: new(int64(2400))}},
		},
		"writes that are no longer counted are not known": {
			after: usages{"a": at("identity provider", 60, 15*time.Second, nil), "b": at("identity provider", 61, 22*time.Second, nil), "c": at("database", 62, 4*time.Second, nil)},
			want:  []report.Usage{{Part: "identity provider", Pods: 2, CPU: 7 * time.Second}, {Part: "database", Pods: 1, CPU: 3 * time.Second}},
		},
		"a Pod that was replaced": {
			after:   usages{"a": at("identity provider", 60, 15*time.Second, nil), "d": at("identity provider", 61, time.Second, nil), "c": at("database", 62, 4*time.Second, nil)},
			refusal: "was replaced during the run",
		},
		"a Pod more": {
			after:   usages{"a": at("identity provider", 60, 15*time.Second, nil)},
			refusal: "3 Pods before and 1 after",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, between, err := usedBetween(before, row.after)
			check(t, err, row.refusal)
			if row.refusal != "" {
				return
			}
			if diff := cmp.Diff(row.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if between != 62*time.Second {
				t.Errorf("the time between the readings is %s", between)
			}
		})
	}
}

func TestTheKubeletsSummaryIsRead(t *testing.T) {
	got, err := cpuOf([]byte(`{"pods":[{"podRef":{"uid":"a"},"cpu":{"time":"2026-11-21T12:00:00Z","usageCoreNanoSeconds":1500000000}},{"podRef":{"uid":"b"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got["a"].cpu != 1500*time.Millisecond || got["a"].at.IsZero() {
		t.Errorf("read was %+v", got)
	}
	if _, err := cpuOf([]byte("<html>")); err == nil {
		t.Error("a page was read as a summary")
	}
}

package probe

import (
	"slices"
	"strings"
	"testing"

	"authstack.dev/authstack/api/v1alpha1"
)

// steady is a long phase that does the same each second.
func steady(perSecond, p50, p99 int64) Sync {
	course := make([]int64, 120)
	for i := range course {
		course[i] = perSecond
	}
	return Sync{Phase: Long, Seconds: 120, Count: perSecond * 120, PerSecond: perSecond, P50Micros: p50, P99Micros: p99, P999Micros: p99 * 2, MaxMicros: p99 * 3, Course: course}
}

// veranda is the story's drive: 988 syncs a second, and 299 after it has become hot.
func veranda() []Sync {
	long := steady(488, 2_100, 4_000)
	for i := range long.Course {
		switch {
		case i < 30:
			long.Course[i] = 985
		default:
			long.Course[i] = 299
		}
	}
	return []Sync{{Phase: Short, Seconds: 10, Count: 9880, PerSecond: 988, P50Micros: 960, P99Micros: 1_900, P999Micros: 3_000, MaxMicros: 5_000}, long}
}

func TestJudge(t *testing.T) {
	node := Subject{Medium: v1alpha1.MediumNodeLocal, Provisioner: "rancher.io/local-path", Evidence: "the name"}
	ceph := Subject{Medium: v1alpha1.MediumCephRBD, Provisioner: "rook-ceph.rbd.csi.ceph.com", Evidence: "the name", Product: "authentik"}
	unknown := Subject{Medium: v1alpha1.MediumUnknown, Provisioner: "csi.proxmox.sinextra.dev"}
	for sentence, test := range map[string]struct {
		result   Result
		subject  Subject
		kinds    []v1alpha1.StorageFindingKind
		says     []string
		measured string
	}{
		"a disk with power-loss protection stands out in nothing": {Result{Syncs: []Sync{steady(17983, 56, 90)}}, node, nil, nil, "survives a power loss"},
		"a virtual machine's own disk stands out in nothing":      {Result{Syncs: []Sync{steady(7000, 120, 400)}}, node, nil, nil, "as a disk of the node"},
		"the drive on the veranda falls, and the two rates are named": {Result{Syncs: veranda()}, node,
			[]v1alpha1.StorageFindingKind{v1alpha1.FindingFalls, v1alpha1.FindingNotAsClaimed},
			[]string{"988 syncs a second fresh", "299 in the last quarter of 120 s (30 %)", "after about 28 s", "heat"}, "consumer SSD"},
		"a single stall is no fall": {Result{Syncs: []Sync{func() Sync {
			s := steady(900, 300, 800)
			s.Course[100], s.Course[101] = 0, 3
			return s
		}()}}, node, nil, nil, ""},
		"a slow start is no fall": {Result{Syncs: []Sync{func() Sync {
			s := steady(900, 300, 800)
			copy(s.Course, []int64{100, 100, 100, 100, 100, 100})
			return s
		}()}}, node, nil, nil, ""},
		"too short a course says nothing about a fall": {Result{Syncs: []Sync{func() Sync {
			s := steady(900, 300, 800)
			s.Course = []int64{900, 900, 900, 900, 900, 1, 1, 1}
			return s
		}()}}, node, nil, nil, ""},
		"a consumer NVMe is no faster than Ceph": {Result{Syncs: []Sync{steady(608, 1_640, 5_600)}}, node,
			[]v1alpha1.StorageFindingKind{v1alpha1.FindingNotAsClaimed}, []string{"1.64ms", "power-loss protection", "may gain nothing"}, "consumer SSD"},
		"Ceph at 2.5 ms is what Ceph is": {Result{Syncs: []Sync{steady(390, 2_500, 7_400)}}, ceph, nil, nil, "replicated network storage"},
		"Ceph at 17 ms is slow, and what a login waits for is said": {Result{Syncs: []Sync{steady(58, 17_000, 53_000)}}, ceph,
			[]v1alpha1.StorageFindingKind{v1alpha1.FindingSlow}, []string{"p50 17.0ms", "27 syncs", "459ms"}, "far away or busy"},
		"Ceph faster than the network is too fast": {Result{Syncs: []Sync{steady(9000, 100, 150)}}, ceph,
			[]v1alpha1.StorageFindingKind{v1alpha1.FindingTooFast}, []string{"100µs", "129 µs", "does not wait for its replicas"}, ""},
		"a cloud's volume faster than the network is too fast": {Result{Syncs: []Sync{steady(20000, 40, 60)}}, Subject{Medium: v1alpha1.MediumCloudBlock},
			[]v1alpha1.StorageFindingKind{v1alpha1.FindingTooFast}, []string{"before the data is safe"}, ""},
		"a node's disk faster than any disk is too fast": {Result{Syncs: []Sync{steady(150000, 5, 9)}}, node,
			[]v1alpha1.StorageFindingKind{v1alpha1.FindingTooFast}, []string{"flushes are ignored"}, "as memory"},
		"tmpfs is memory however slow": {Result{Volume: Volume{FileSystem: "tmpfs"}, Syncs: []Sync{steady(1000, 200, 300)}}, unknown,
			[]v1alpha1.StorageFindingKind{v1alpha1.FindingTooFast}, []string{"which is memory"}, "memory (tmpfs)"},
		"an unknown class is told by its figures": {Result{Syncs: []Sync{steady(390, 2_500, 7_400)}}, unknown, nil, nil, "replicated network storage"},
		"a Raspberry Pi without AES is named": {Result{Syncs: []Sync{steady(2000, 400, 900)}, CPU: &CPU{AESGCMBytesPerSecond: 27_000_000, ChaCha20Poly1305BytesPerSecond: 173_000_000}}, node,
			[]v1alpha1.StorageFindingKind{v1alpha1.FindingNoAES}, []string{"27 MB/s with AES-GCM", "173 MB/s with ChaCha20"}, ""},
		"a CPU with AES is not": {Result{Syncs: []Sync{steady(2000, 400, 900)}, CPU: &CPU{AESInstructions: true, AESGCMBytesPerSecond: 3_000_000_000}}, node, nil, nil, ""},
		"one sync in a thousand far above the median is a long tail": {Result{Syncs: []Sync{{Phase: Long, Count: 1000, PerSecond: 900, P50Micros: 300, P99Micros: 900, P999Micros: 400_000, MaxMicros: 900_000}}}, node,
			[]v1alpha1.StorageFindingKind{v1alpha1.FindingLongTail}, []string{"400ms or more", "1333 times the median", "900ms"}, ""},
		"a write that never came back hangs": {Result{Hung: &Hang{During: Long, AfterSeconds: 180}}, ceph,
			[]v1alpha1.StorageFindingKind{v1alpha1.FindingHangs}, []string{"nothing came back for 180 s"}, ""},
		"a sync of forty seconds hangs": {Result{Syncs: []Sync{{Phase: Long, Count: 10, PerSecond: 400, P50Micros: 2_000, P99Micros: 3_000, P999Micros: 3_000, MaxMicros: 40_000_000}}}, ceph,
			[]v1alpha1.StorageFindingKind{v1alpha1.FindingHangs}, []string{"40.00s"}, ""},
		"a probe that ended before it measured says nothing": {Result{Problem: "the volume is not empty"}, ceph, nil, nil, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := Judge(&test.result, test.subject)
			var kinds []v1alpha1.StorageFindingKind
			var all strings.Builder
			for _, finding := range got.Findings {
				kinds = append(kinds, finding.Kind)
				all.WriteString(finding.Message + "\n")
			}
			if !slices.Equal(kinds, test.kinds) {
				t.Errorf("found %v, want %v\n%s", kinds, test.kinds, &all)
			}
			for _, words := range test.says {
				if !strings.Contains(all.String(), words) {
					t.Errorf("nothing says %q:\n%s", words, &all)
				}
			}
			if !strings.Contains(got.Measured, test.measured) {
				t.Errorf("measured %q, want %q", got.Measured, test.measured)
			}
			if !strings.HasPrefix(got.Claim, string(test.subject.Medium)) {
				t.Errorf("the claim is %q", got.Claim)
			}
		})
	}
}

func TestStatusKeepsTheCourseAndFits(t *testing.T) {
	long := steady(900, 300, 800)
	long.Course = make([]int64, 3600)
	for i := range long.Course {
		long.Course[i] = int64(i / 30)
	}
	got := Status(&Result{Syncs: []Sync{long}, Problem: strings.Repeat("ä", 2000)}, Subject{Evidence: strings.Repeat("ä", 2000)})
	if len(got.SyncsPerSecond) != 120 || got.SecondsPerPoint != 30 || got.SyncsPerSecond[0] != 0 || got.SyncsPerSecond[119] != 119 {
		t.Errorf("the course is %v of %d s", got.SyncsPerSecond, got.SecondsPerPoint)
	}
	if len([]rune(got.Problem)) != 1024 || len([]rune(got.Claim)) != 512 {
		t.Errorf("the texts have %d and %d characters", len([]rune(got.Problem)), len([]rune(got.Claim)))
	}
}

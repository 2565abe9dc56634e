package probe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// Thresholds, in microseconds of fdatasync, with where they are from (facts/postgres-ceph.md C5).
const (
	// memoryBelow: disks with power-loss protection take 29 to 56 µs; below this no disk was asked.
	memoryBelow = 10
	// protectedBelow: disks that acknowledge from a protected cache.
	protectedBelow = 100
	// networkFrom: Ceph on SSDs takes about 1 ms, consumer SSDs without protection 0.7 to 2.6 ms.
	networkFrom = 700
	// slowFrom: spinning disks and network storage under load (12 ms and 42 ms in C5).
	slowFrom = 5_000
	// replicatedBelow: a Ceph write goes from the client to the primary and from there to the replicas,
	// two round trips of 50 µs, and each flushes for at least 29 µs: less is not replicated and durable.
	replicatedBelow = 129
	// remoteBelow: one round trip and a flush.
	remoteBelow = 79
	// p99Guideline is etcd's for the flush of its log.
	p99Guideline = 10_000
)

const (
	// fallTo is the share, in percent, of the fresh rate below which the rate has fallen.
	fallTo = 60
	// shortestCourse is how many seconds a course must have to show a fall.
	shortestCourse = 20
	// window, in seconds, of the moving median that says when it fell: single stalls do not count.
	window = 5
	// standstill is a sync that took so long that a client would have given up.
	standstill = 30_000_000
)

// Subject is what is known of the storage besides its figures.
type Subject struct {
	Medium v1alpha1.Medium
	// Provisioner of the class, and the evidence for the medium.
	Provisioner, Evidence string
	// Product that commits, for example authentik; it decides what a slow sync is said to cost.
	Product string
}

// Judgement is what a result means.
type Judgement struct {
	// Claim and Measured stand beside each other: what the name says, what the figures look like.
	Claim, Measured string
	Findings        []v1alpha1.StorageFinding
}

// Judge a result.
func Judge(r *Result, subject Subject) Judgement {
	j := Judgement{Claim: fmt.Sprintf("%s (%s): %s", subject.Medium, cmp.Or(subject.Provisioner, "no provisioner"), subject.Evidence)}
	steady := r.find(Long)
	if steady == nil {
		steady = r.find(Short)
	}
	j.hangs(r)
	if steady != nil {
		j.Measured = looksLike(r.Volume, steady)
		j.tooFast(r.Volume, steady, subject)
		j.falls(r, subject)
		j.notAsClaimed(steady, subject)
		j.slow(steady, subject)
		j.tail(steady)
	}
	j.crypto(r.CPU)
	return j
}

func (j *Judgement) find(kind v1alpha1.StorageFindingKind, format string, args ...any) {
	if !slices.ContainsFunc(j.Findings, func(f v1alpha1.StorageFinding) bool { return f.Kind == kind }) {
		j.Findings = append(j.Findings, v1alpha1.StorageFinding{Kind: kind, Message: fmt.Sprintf(format, args...)})
	}
}

func (j *Judgement) hangs(r *Result) {
	if h := r.Hung; h != nil {
		j.find(v1alpha1.FindingHangs, "the storage hangs: in step %s nothing came back for %d s; a database on it stands still until it does", h.During, h.AfterSeconds)
	}
	for i := range r.Syncs {
		if s := &r.Syncs[i]; s.MaxMicros >= standstill {
			j.find(v1alpha1.FindingHangs, "one fdatasync took %s: the storage stood still, and a database on it with it", result.FormatMicros(s.MaxMicros))
		}
	}
}

func inMemory(v Volume) bool { return v.FileSystem == "tmpfs" || v.FileSystem == "ramfs" }

// looksLike says in a sentence what takes so long for a sync.
func looksLike(v Volume, s *Sync) string {
	figure := fmt.Sprintf("8 kB fdatasync p50 %s, p99 %s, %d a second", result.FormatMicros(s.P50Micros), result.FormatMicros(s.P99Micros), s.PerSecond)
	switch {
	case inMemory(v):
		return figure + ": memory (" + v.FileSystem + ")"
	case s.P50Micros < memoryBelow:
		return figure + ": as memory, no disk flushes that fast"
	case s.P50Micros < protectedBelow:
		return figure + ": as a disk or controller whose cache survives a power loss, or whose flush is ignored"
	case s.P50Micros < networkFrom:
		return figure + ": as a disk of the node"
	case s.P50Micros < slowFrom:
		return figure + ": as replicated network storage, or a consumer SSD that empties its cache at each flush"
	}
	return figure + ": as a spinning disk, or network storage that is far away or busy"
}

func (j *Judgement) tooFast(v Volume, s *Sync, subject Subject) {
	p50 := result.FormatMicros(s.P50Micros)
	switch {
	case inMemory(v):
		j.find(v1alpha1.FindingTooFast, "the volume is %s, which is memory: everything on it is lost with the Pod or the node", v.FileSystem)
	case s.P50Micros < memoryBelow:
		j.find(v1alpha1.FindingTooFast, "fdatasync returns in %s, and no disk flushes in less than %d µs: somewhere below flushes are ignored "+
			"(a virtual disk with cache=unsafe, a file system without barriers, memory), so a power loss takes acknowledged commits and may corrupt the database", p50, memoryBelow)
	case subject.Medium == v1alpha1.MediumCephRBD && s.P50Micros < replicatedBelow:
		j.find(v1alpha1.FindingTooFast, "fdatasync returns in %s, faster than the %d µs that two network round trips and a flush take at the least: "+
			"this Ceph does not wait for its replicas, or a cache in between answers for them (rbd cache=unsafe, writeback of the hypervisor)", p50, replicatedBelow)
	case slices.Contains([]v1alpha1.Medium{v1alpha1.MediumNetworkBlock, v1alpha1.MediumCloudBlock, v1alpha1.MediumNetworkFile}, subject.Medium) && s.P50Micros < remoteBelow:
		j.find(v1alpha1.FindingTooFast, "fdatasync returns in %s, faster than the %d µs that a network round trip and a flush take at the least: a cache in between answers before the data is safe", p50, remoteBelow)
	}
}

// falls finds a rate that falls over time: heat, a write cache that is full, burst credits that are spent.
func (j *Judgement) falls(r *Result, subject Subject) {
	long := r.find(Long)
	if long == nil || len(long.Course) < shortestCourse {
		return
	}
	course := long.Course
	fresh := median(course[:window])
	if short := r.find(Short); short != nil {
		fresh = max(fresh, short.PerSecond)
	}
	kept := median(course[len(course)*3/4:])
	if fresh == 0 || kept*100 >= fresh*fallTo {
		return
	}
	after := len(course)
	for i := 0; i+window <= len(course); i++ {
		if median(course[i:i+window]) < (fresh+kept)/2 {
			after = i
			break
		}
	}
	j.find(v1alpha1.FindingFalls, "%d syncs a second fresh, %d in the last quarter of %d s (%d %%); it fell after about %d s: %s",
		fresh, kept, len(course), kept*100/fresh, after, whyItFalls(subject.Medium))
}

func whyItFalls(medium v1alpha1.Medium) string {
	switch medium {
	case v1alpha1.MediumNodeLocal:
		return "a drive that throttles for heat or whose write cache is full does this, and so does other load on the node; cool it, and count on the lower figure"
	case v1alpha1.MediumCephRBD:
		return "OSDs that throttle for heat, or recovery and other clients of the pool do this; count on the lower figure"
	case v1alpha1.MediumCloudBlock:
		return "burst credits that are spent do this; count on the lower figure or buy a larger or provisioned volume"
	}
	return "heat, a full write cache, spent burst credits or other load do this; count on the lower figure"
}

func median(values []int64) int64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

func (j *Judgement) notAsClaimed(s *Sync, subject Subject) {
	if subject.Medium == v1alpha1.MediumNodeLocal && s.P50Micros >= networkFrom {
		j.find(v1alpha1.FindingNotAsClaimed, "the class says a disk of the node, and a sync takes %s: no faster than Ceph on SSDs (about 1 ms). "+
			"A consumer SSD without power-loss protection does this, and a virtual disk that is itself on a network; moving here from Ceph may gain nothing",
			result.FormatMicros(s.P50Micros))
	}
}

// loginSyncs is how many syncs a login of authentik waits for under Strict, besides those of its
// worker (facts/authentik-measured.md: 616 ms + 27 × sync).
const loginSyncs = 27

func (j *Judgement) slow(s *Sync, subject Subject) {
	if s.P50Micros < slowFrom && s.P99Micros < p99Guideline {
		return
	}
	cost := ""
	if subject.Product == "authentik" {
		cost = fmt.Sprintf("; a login of authentik waits for about %d syncs, %s of it, unless durability says otherwise", loginSyncs, result.FormatMicros(loginSyncs*s.P50Micros))
	}
	j.find(v1alpha1.FindingSlow, "fdatasync p50 %s, p99 %s: etcd asks for a p99 below %s, and every commit waits for one%s",
		result.FormatMicros(s.P50Micros), result.FormatMicros(s.P99Micros), result.FormatMicros(p99Guideline), cost)
}

func (j *Judgement) tail(s *Sync) {
	if s.P999Micros >= 20_000 && s.P999Micros >= 50*s.P50Micros {
		j.find(v1alpha1.FindingLongTail, "one sync in a thousand takes %s or more, %d times the median, at worst %s: commits queue behind it",
			result.FormatMicros(s.P999Micros), s.P999Micros/max(s.P50Micros, 1), result.FormatMicros(s.MaxMicros))
	}
}

func (j *Judgement) crypto(cpu *CPU) {
	if cpu != nil && !cpu.AESInstructions {
		j.find(v1alpha1.FindingNoAES, "the CPU has no instructions for AES: one core encrypts %s/s with AES-GCM and %s/s with ChaCha20-Poly1305; TLS with AES, encrypted disks and Ceph's secure mode go no faster than that",
			megabytes(cpu.AESGCMBytesPerSecond), megabytes(cpu.ChaCha20Poly1305BytesPerSecond))
	}
}

func megabytes(bytes int64) string { return fmt.Sprintf("%d MB", (bytes+500_000)/1_000_000) }

// String is the volume in words.
func (v Volume) String() string {
	parts := []string{}
	if v.FileSystem != "" {
		parts = append(parts, v.FileSystem)
	}
	if v.Device != "" {
		parts = append(parts, "on "+v.Device)
	}
	text := strings.Join(parts, " ")
	if v.WriteCache != "" {
		text += ", write cache " + v.WriteCache
	}
	if v.Rotational == "1" {
		text += ", rotational"
	}
	return strings.TrimPrefix(text, ", ")
}

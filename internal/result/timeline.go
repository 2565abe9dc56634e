package result

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// maxIntervals is how many intervals a timeline keeps. One interval is a second long until a run is
// longer than that many seconds; then neighbours are merged and each is twice as long, and so on: a
// soak of any length stays within the bound, and a fall over time stays visible.
const maxIntervals = 240

// Timeline is what an endpoint did over the run: for each interval the answers, the failures and a
// coarse histogram (buckets 3 % wide), so that timelines of several Pods merge as histograms do.
type Timeline struct {
	// IntervalSeconds is the length of an interval, a power of two.
	IntervalSeconds int64
	// Intervals that hold anything, in order.
	Intervals []Interval
}

// Interval is one interval of a timeline.
type Interval struct {
	// At is its number: it began At × IntervalSeconds after the start of the run.
	At int64
	// Failed is the number of requests with an unexpected answer or none.
	Failed int64
	counts map[int32]int64
}

// NewTimeline returns an empty timeline.
func NewTimeline() *Timeline { return &Timeline{IntervalSeconds: 1} }

// Record adds a request that ended at endMicros after the start of the run and took micros; failed
// ones are counted without their duration.
func (t *Timeline) Record(endMicros, micros int64, failed bool) {
	i := t.interval(max(endMicros, 0) / 1_000_000)
	if failed {
		i.Failed++
		return
	}
	i.counts[bucketOf(micros)]++
}

// Merge adds all of other, which began shiftMicros (not negative) after this timeline.
func (t *Timeline) Merge(other *Timeline, shiftMicros int64) {
	if other == nil {
		return
	}
	for t.IntervalSeconds < other.IntervalSeconds {
		t.coarsen()
	}
	for _, from := range other.Intervals {
		to := t.interval(from.At*other.IntervalSeconds + max(shiftMicros, 0)/1_000_000)
		to.Failed += from.Failed
		for bucket, count := range from.counts {
			to.counts[bucket] += count
		}
	}
}

// interval finds or makes the one that holds this second.
func (t *Timeline) interval(second int64) *Interval {
	for second/t.IntervalSeconds >= maxIntervals {
		t.coarsen()
	}
	at := second / t.IntervalSeconds
	// Almost always the last one: requests end about in order.
	n := len(t.Intervals)
	if n > 0 && t.Intervals[n-1].At == at {
		return &t.Intervals[n-1]
	}
	i, found := slices.BinarySearchFunc(t.Intervals, at, func(i Interval, at int64) int { return int(i.At - at) })
	if !found {
		t.Intervals = slices.Insert(t.Intervals, i, Interval{At: at, counts: map[int32]int64{}})
	}
	return &t.Intervals[i]
}

// Limit coarsens the timeline until it has at most so many intervals.
func (t *Timeline) Limit(intervals int) {
	for t != nil && len(t.Intervals) > max(intervals, 1) {
		t.coarsen()
	}
}

// coarsen merges neighbours.
func (t *Timeline) coarsen() {
	old := t.Intervals
	t.Intervals, t.IntervalSeconds = nil, t.IntervalSeconds*2
	for _, from := range old {
		at := from.At / 2
		if n := len(t.Intervals); n == 0 || t.Intervals[n-1].At != at {
			t.Intervals = append(t.Intervals, Interval{At: at, Failed: from.Failed, counts: from.counts})
			continue
		}
		to := &t.Intervals[len(t.Intervals)-1]
		to.Failed += from.Failed
		for bucket, count := range from.counts {
			to.counts[bucket] += count
		}
	}
}

// Count is the number of requests that answered as expected.
func (i *Interval) Count() int64 {
	var n int64
	for _, count := range i.counts {
		n += count
	}
	return n
}

// PerMille is the percentile by nearest rank in microseconds, at most 3.2 % above the true one; 0
// when empty.
func (i *Interval) PerMille(perMille int) int64 { return percentileOf(i.counts, perMille) }

// PerMille is the percentile over the intervals from and up to but without to, by their index in
// Intervals; 0 when they are empty. It is how one part of a run is held against another.
func (t *Timeline) PerMille(from, to, perMille int) int64 {
	sum := map[int32]int64{}
	for _, i := range t.Intervals[max(from, 0):min(to, len(t.Intervals))] {
		for bucket, count := range i.counts {
			sum[bucket] += count
		}
	}
	return percentileOf(sum, perMille)
}

func percentileOf(counts map[int32]int64, perMille int) int64 {
	var n int64
	keys := make([]int32, 0, len(counts))
	for bucket, count := range counts {
		keys, n = append(keys, bucket), n+count
	}
	if n == 0 {
		return 0
	}
	slices.Sort(keys)
	rank := max(1, (int64(min(max(perMille, 0), 1000))*n+999)/1000)
	for _, bucket := range keys {
		if rank -= counts[bucket]; rank <= 0 {
			return upperEdge(bucket)
		}
	}
	return upperEdge(keys[len(keys)-1])
}

// The buckets: 32 to a doubling, single microseconds below 64.
const bucketBits = 5

func bucketOf(micros int64) int32 {
	v := uint64(min(max(micros, 0), MaxMicros))
	shift := max(bits.Len64(v)-bucketBits-1, 0)
	return int32(shift<<bucketBits) + int32(v>>shift)
}

func upperEdge(bucket int32) int64 {
	if bucket < 2<<bucketBits {
		return int64(bucket)
	}
	shift := bucket>>bucketBits - 1
	mantissa := int64(bucket&(1<<bucketBits-1)) + 1<<bucketBits
	return (mantissa+1)<<shift - 1
}

type timelineJSON struct {
	IntervalSeconds int64          `json:"intervalSeconds"`
	Intervals       []intervalJSON `json:"intervals"`
}

// intervalJSON: Counts is base64 of unsigned varints, in pairs: the distance from the bucket before
// (from 0 for the first) and the count.
type intervalJSON struct {
	At     int64  `json:"at"`
	Failed int64  `json:"failed,omitempty"`
	Counts string `json:"counts,omitempty"`
}

// MarshalJSON packs the buckets.
func (t *Timeline) MarshalJSON() ([]byte, error) {
	out := timelineJSON{IntervalSeconds: t.IntervalSeconds, Intervals: []intervalJSON{}}
	for _, i := range t.Intervals {
		keys := make([]int32, 0, len(i.counts))
		for bucket := range i.counts {
			keys = append(keys, bucket)
		}
		slices.Sort(keys)
		var packed []byte
		last := int32(0)
		for _, bucket := range keys {
			packed = binary.AppendUvarint(packed, uint64(bucket-last))
			packed = binary.AppendUvarint(packed, uint64(i.counts[bucket]))
			last = bucket
		}
		out.Intervals = append(out.Intervals, intervalJSON{At: i.At, Failed: i.Failed, Counts: base64.StdEncoding.EncodeToString(packed)})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote; it refuses more intervals than a writer makes.
func (t *Timeline) UnmarshalJSON(data []byte) error {
	var in timelineJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if in.IntervalSeconds < 1 || bits.OnesCount64(uint64(in.IntervalSeconds)) != 1 || len(in.Intervals) > maxIntervals {
		return fmt.Errorf("timeline has %d intervals of %d s", len(in.Intervals), in.IntervalSeconds)
	}
	out := Timeline{IntervalSeconds: in.IntervalSeconds}
	for n, from := range in.Intervals {
		if from.At < 0 || from.At >= maxIntervals || from.Failed < 0 || n > 0 && from.At <= in.Intervals[n-1].At {
			return errors.New("timeline has an interval out of order")
		}
		counts, err := unpackCounts(from.Counts)
		if err != nil {
			return err
		}
		out.Intervals = append(out.Intervals, Interval{At: from.At, Failed: from.Failed, counts: counts})
	}
	*t = out
	return nil
}

func unpackCounts(text string) (map[int32]int64, error) {
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("decode timeline: %w", err)
	}
	counts, bucket := map[int32]int64{}, uint64(0)
	for len(packed) > 0 {
		distance, n := binary.Uvarint(packed)
		if n <= 0 {
			return nil, errors.New("decode timeline: broken number")
		}
		count, m := binary.Uvarint(packed[n:])
		if m <= 0 || distance > uint64(bucketOf(MaxMicros)) {
			return nil, errors.New("decode timeline: broken number")
		}
		if bucket += distance; bucket > uint64(bucketOf(MaxMicros)) || count > 1<<48 {
			return nil, errors.New("decode timeline: bucket or count out of range")
		}
		counts[int32(bucket)] += int64(count)
		packed = packed[n+m:]
	}
	return counts, nil
}

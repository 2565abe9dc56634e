package result

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The geometry that every histogram of this format has. One geometry means that any two histograms
// merge without loss.
const (
	// MaxMicros is the longest duration that is told apart, one hour; longer ones count as this.
	MaxMicros int64 = 3_600_000_000
	// significantDigits of a value: a percentile is at most 0.1 % above the true one.
	significantDigits = 3
)

// Histogram counts durations in microseconds in buckets of 0.1 % width. Its memory depends on the
// range of the values and not on their number. The zero value is not usable; see NewHistogram.
type Histogram struct {
	buckets *hdrhistogram.Histogram
	// Kept apart, because the buckets would round them.
	min, max, sum int64
}

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram {
	return &Histogram{buckets: hdrhistogram.New(1, MaxMicros, significantDigits)}
}

// Record adds a duration in microseconds. Less than zero counts as zero, more than MaxMicros as MaxMicros.
func (h *Histogram) Record(micros int64) {
	micros = min(max(micros, 0), MaxMicros)
	if err := h.buckets.RecordValue(micros); err != nil {
		// Unreachable: the value was brought into the range above.
		panic(err)
	}
	if h.Count() == 1 || micros < h.min {
		h.min = micros
	}
	h.max = max(h.max, micros)
	h.sum += micros
}

// Merge adds all that other counted. A nil or empty other adds nothing.
func (h *Histogram) Merge(other *Histogram) {
	if other.Count() == 0 {
		return
	}
	if h.Count() == 0 || other.min < h.min {
		h.min = other.min
	}
	h.max = max(h.max, other.max)
	h.sum += other.sum
	h.buckets.Merge(other.buckets)
}

// Count is the number of recorded durations; 0 for nil.
func (h *Histogram) Count() int64 {
	if h == nil {
		return 0
	}
	return h.buckets.TotalCount()
}

// Min is the exact shortest duration in microseconds, 0 when empty.
func (h *Histogram) Min() int64 {
	if h.Count() == 0 {
		return 0
	}
	return h.min
}

// Max is the exact longest duration in microseconds, 0 when empty.
func (h *Histogram) Max() int64 {
	if h.Count() == 0 {
		return 0
	}
	return h.max
}

// Mean is the arithmetic mean in microseconds, rounded down, 0 when empty.
func (h *Histogram) Mean() int64 {
	if h.Count() == 0 {
		return 0
	}
	return h.sum / h.Count()
}

// Sum is the exact sum in microseconds, 0 when empty.
func (h *Histogram) Sum() int64 {
	if h.Count() == 0 {
		return 0
	}
	return h.sum
}

// PerMille is the percentile by nearest rank, in microseconds: of the n recorded durations in order,
// the one of rank ceil(perMille/1000 × n), so that at least perMille of 1000 lie at or below it. There
// is no interpolation. The answer is the upper edge of that duration's bucket but never more than the
// exact maximum: never below the true value and at most 0.1 % above it. PerMille(950) is p95,
// PerMille(999) is p99.9, PerMille(1000) the maximum. 0 when empty.
func (h *Histogram) PerMille(perMille int) int64 {
	perMille = min(max(perMille, 0), 1000)
	return h.Rank((int64(perMille)*h.Count() + 999) / 1000)
}

// Rank is the duration of a rank in microseconds, the shortest being 1 and the longest Count, as
// PerMille answers it. 0 when empty.
func (h *Histogram) Rank(rank int64) int64 {
	n := h.Count()
	if n == 0 {
		return 0
	}
	rank = min(max(rank, 1), n)
	if rank == n {
		return h.max
	}
	// The library rounds percentile × n to the nearest rank, which can be one below ours; asking for
	// the very share that our rank is leaves it nothing to round.
	return min(h.buckets.ValueAtPercentile(float64(rank)/float64(n)*100), h.max)
}

// Bar is the number of durations from From to To microseconds, both included.
type Bar struct {
	From, To, Count int64
}

// Bars are the buckets that are not empty, in order.
func (h *Histogram) Bars() []Bar {
	if h == nil {
		return nil
	}
	var bars []Bar
	for _, b := range h.buckets.Distribution() {
		if b.Count > 0 {
			bars = append(bars, Bar{From: b.From, To: b.To, Count: b.Count})
		}
	}
	return bars
}

// coarse is the histogram in the buckets of a timeline, 3 % wide; its extremes and its sum stay exact.
func (h *Histogram) coarse() *Histogram {
	if h.Count() == 0 {
		return h
	}
	out := &Histogram{buckets: NewHistogram().buckets, min: h.min, max: h.max, sum: h.sum}
	bars := h.Bars()
	for i, bar := range bars {
		value := min(upperEdge(bucketOf(bar.To)), h.max)
		switch i {
		case 0:
			value = h.min
		case len(bars) - 1:
			value = h.max
		}
		if err := out.buckets.RecordValues(value, bar.Count); err != nil {
			// Unreachable: no value is above the maximum, which was recorded before.
			panic(err)
		}
	}
	return out
}

// histogramJSON is how a histogram is written. HDR is in the V2 compressed encoding of HdrHistogram,
// which libraries of other languages read too.
type histogramJSON struct {
	Count     int64  `json:"count"`
	MinMicros int64  `json:"minMicros"`
	MaxMicros int64  `json:"maxMicros"`
	SumMicros int64  `json:"sumMicros"`
	HDR       string `json:"hdr"`
}

// MarshalJSON writes the exact extremes beside the buckets.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	encoded, err := h.buckets.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode histogram: %w", err)
	}
	return json.Marshal(histogramJSON{
		Count: h.Count(), MinMicros: h.Min(), MaxMicros: h.Max(), SumMicros: h.sum, HDR: string(encoded),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote and refuses any other geometry, since it would not merge,
// and figures that contradict the buckets.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	var in histogramJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if err := checkGeometry(in.HDR); err != nil {
		return err
	}
	buckets, err := hdrhistogram.Decode([]byte(in.HDR))
	if err != nil {
		return fmt.Errorf("decode histogram: %w", err)
	}
	switch {
	case buckets.TotalCount() != in.Count:
		return fmt.Errorf("histogram counts %d durations but its buckets hold %d", in.Count, buckets.TotalCount())
	case in.Count < 0 || in.Count > math.MaxInt64/1000-1:
		return fmt.Errorf("histogram counts %d durations", in.Count)
	case in.MinMicros < 0 || in.MinMicros > in.MaxMicros || in.MaxMicros > MaxMicros || in.SumMicros < 0:
		return fmt.Errorf("histogram has extremes %d and %d", in.MinMicros, in.MaxMicros)
	case in.Count > 0 && !buckets.ValuesAreEquivalent(in.MaxMicros, buckets.Max()):
		return fmt.Errorf("histogram has maximum %d but its buckets end at %d", in.MaxMicros, buckets.Max())
	case in.Count > 0 && !buckets.ValuesAreEquivalent(in.MinMicros, buckets.Min()):
		return fmt.Errorf("histogram has minimum %d but its buckets start at %d", in.MinMicros, buckets.Min())
	}
	*h = Histogram{buckets: buckets, min: in.MinMicros, max: in.MaxMicros, sum: in.SumMicros}
	return nil
}

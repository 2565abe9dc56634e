package metrics

import (
	"math"

	"authstack.dev/authstack/internal/result"
)

// schema of the native histograms: 2^(1/2^4), so buckets 4.4 % wide
// (prometheus.io/docs/specs/native_histograms). Ours are finer; Prometheus merges coarser ones anyway.
const schema = 4

// zeroThreshold is half of the shortest duration that is told apart, a microsecond, in seconds.
const zeroThreshold = 5e-7

// nativeBuckets are the buckets of a native histogram in seconds: by index i the number of durations
// in (base^(i-1), base^i], and those of no length at all.
func nativeBuckets(h *result.Histogram) (buckets map[int]int64, zero uint64) {
	buckets = map[int]int64{}
	for _, bar := range h.Bars() {
		if bar.To <= 0 {
			zero += uint64(bar.Count)
			continue
		}
		seconds := float64(bar.To) / 1e6
		buckets[int(math.Ceil(math.Log2(seconds)*(1<<schema)))] += bar.Count
	}
	return buckets, zero
}

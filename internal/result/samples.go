package result

// confidence that the slowest measurement lies above the percentile, in per cent.
const confidence = 95

// SamplesFor is the least number of measurements that a percentile may be read from: so many that the
// slowest of them lies at or above the true percentile with 95 % confidence, 1 − pⁿ ≥ 0.95. With fewer,
// not even the maximum bounds the percentile, no interval around it has an upper end, and the figure is
// luck. This is S. S. Wilks' one-sided tolerance limit without an assumption about the distribution
// (Determination of sample sizes for setting tolerance limits, Ann. Math. Statist. 12, 1941): 29 for
// p90, 59 for p95, 299 for p99, 2995 for p99.9. It is stricter than n ≥ 1/(1−p), from where on the
// nearest rank is merely no longer the maximum itself: of 20 measurements the slowest lies below the
// true p95 in 36 runs of 100. Never less than ten. The maximum (1000) has no such bound; it asks for as
// many as p95, since the slowest of a handful says nothing.
func SamplesFor(perMille int) int64 {
	if perMille >= 1000 {
		perMille = 950
	}
	below, n := 1.0, int64(0)
	for 1-below < confidence/100.0 {
		below *= float64(max(perMille, 0)) / 1000
		n++
	}
	return max(n, 10)
}

// percentiles that are reported, with the names they have in a status.
var percentiles = []struct {
	perMille int
	name     string
}{{500, "p50"}, {900, "p90"}, {950, "p95"}, {990, "p99"}, {999, "p99.9"}}

// Unsupported are the reported percentiles that n measurements are too few for, the lowest first; nil
// for none, and where nothing was measured.
func Unsupported(n int64) []string {
	var names []string
	for _, p := range percentiles {
		if n > 0 && n < SamplesFor(p.perMille) {
			names = append(names, p.name)
		}
	}
	return names
}

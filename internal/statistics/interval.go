package statistics

import "math"

// MeanInterval is the 95 % confidence interval of a figure that was measured once in each of several
// repeats: Student's on the logarithms, around their geometric mean. Two repeats are the least, and say
// next to nothing.
func MeanInterval(figures []float64) (low, high float64, err error) {
	s, err := logs(figures)
	if err != nil {
		return 0, 0, err
	}
	half := StudentQuantile((1+confidence)/2, float64(s.n-1)) * math.Sqrt(s.variance/float64(s.n))
	return math.Exp(s.mean - half), math.Exp(s.mean + half), nil
}

// RankInterval is the 95 % confidence interval of a percentile over n independent measurements as ranks,
// the smallest measurement being 1: the measurements of these ranks enclose the true percentile, whatever
// the distribution. It is the exact one of order statistics (David and Nagaraja, Order Statistics, 2003,
// 7.1): the number of measurements below the percentile is binomial, and at most 2.5 % lie beyond each
// end. Where n is too small for that, the slowest is the upper end as long as at most 5 % lie beyond it
// (from 59 measurements for p95), and what is left of the 5 % is beyond the lower end. Not ok where n is
// too small for that, too: then not even the smallest or the largest encloses it.
func RankInterval(n int64, perMille int) (low, high int64, ok bool) {
	low, high, ok = equalTails(n, perMille)
	if ok || n < 1 || perMille <= 0 || perMille >= 1000 {
		return low, high, ok
	}
	p := float64(perMille) / 1000
	// The slowest of all lies below the percentile when all do.
	left := 1 - confidence - math.Pow(p, float64(n))
	if left < 0 {
		return 0, 0, false
	}
	low = atLeast(n, p, left)
	return low, n, low >= 1
}

// HasEqualTails is whether n measurements are enough for an interval of a percentile with 2.5 % beyond each end.
func HasEqualTails(n int64, perMille int) bool {
	_, _, ok := equalTails(n, perMille)
	return ok
}

func equalTails(n int64, perMille int) (low, high int64, ok bool) {
	p := float64(perMille) / 1000
	if n < 1 || p <= 0 || p >= 1 {
		return 0, 0, false
	}
	const beyond = (1 - confidence) / 2
	// The true percentile lies below the measurement of rank k exactly when fewer than k lie below it.
	low = atLeast(n, p, beyond)
	high = n + 1 - atLeast(n, 1-p, beyond)
	return low, high, low >= 1 && high <= n
}

// atLeast is the greatest rank k with P(fewer than k of n) at most beyond, when each counts with
// probability p; 0 for none.
func atLeast(n int64, p, beyond float64) int64 {
	// P(fewer than k of n) = I(1-p; n-k+1, k), which grows with k.
	fewer := func(k int64) float64 { return incompleteBeta(float64(n-k+1), float64(k), 1-p) }
	low, high := int64(0), n+1
	for high-low > 1 {
		if middle := (low + high) / 2; fewer(middle) <= beyond {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

package statistics

import (
	"errors"
	"math"
)

const (
	// confidence of every interval.
	confidence = 0.95
	// power is the probability with which the smallest effect would have been seen.
	power = 0.80
)

// ErrTooFew says that an interval needs at least two rounds.
var ErrTooFew = errors.New("a confidence interval needs at least two rounds")

// Ratio is how much larger one figure is than another, over the rounds of an interleaved measurement.
type Ratio struct {
	// Value is the geometric mean of the rounds' ratios.
	Value float64
	// Low and High are the ends of its 95 % confidence interval.
	Low, High float64
	// SmallestEffect is the smallest relative increase that such rounds show with a probability of
	// 80 %: 0.05 means that a figure larger by 5 % would have been found.
	SmallestEffect float64
	// Rounds that it is made from.
	Rounds int
}

// PairedRatio compares two figures that were measured in the same rounds, numerator[i] and
// denominator[i] in round i: for example the p95 of two variants. All have to be positive; the unit
// does not matter.
//
// The rounds are the sample, not the requests in them: the requests of one round share the minute in
// which they were made, and an interval that takes them as independent is far too narrow (a simulation
// in the tests shows it). What a round does to both figures alike divides out. The interval is
// Student's on the logarithms of the rounds' ratios: with as few rounds as one can afford, four to
// eight, it holds its 95 %, where a bootstrap over so few rounds does not (same tests).
func PairedRatio(numerator, denominator []float64) (Ratio, error) {
	n := len(numerator)
	if n != len(denominator) {
		return Ratio{}, errors.New("the two figures have different numbers of rounds")
	}
	if n < 2 {
		return Ratio{}, ErrTooFew
	}
	logs := make([]float64, n)
	mean := 0.0
	for i := range logs {
		if !(numerator[i] > 0) || !(denominator[i] > 0) || math.IsInf(numerator[i], 0) || math.IsInf(denominator[i], 0) {
			return Ratio{}, errors.New("a ratio is of positive figures")
		}
		logs[i] = math.Log(numerator[i] / denominator[i])
		mean += logs[i] / float64(n)
	}
	variance := 0.0
	for _, x := range logs {
		variance += (x - mean) * (x - mean) / float64(n-1)
	}
	df := float64(n - 1)
	deviation := math.Sqrt(variance / float64(n))
	half := StudentQuantile((1+confidence)/2, df) * deviation
	return Ratio{
		Value: math.Exp(mean), Low: math.Exp(mean - half), High: math.Exp(mean + half),
		SmallestEffect: math.Expm1(half + StudentQuantile(power, df)*deviation),
		Rounds:         n,
	}, nil
}

// Verdict is what an interval says of a difference.
type Verdict int

// The verdicts.
const (
	// Undecided: the interval is too wide to say.
	Undecided Verdict = iota
	// Same: the whole interval lies within the margin.
	Same
	// Smaller: the whole interval lies below 1.
	Smaller
	// Larger: the whole interval lies above 1.
	Larger
)

// Judge says what the ratio shows, where two figures that differ by no more than margin (0.05 is 5 %)
// count as the same. The margin is asked first: a difference that is sure and too small to matter is
// none.
func (r Ratio) Judge(margin float64) Verdict {
	switch {
	case r.Low >= 1/(1+margin) && r.High <= 1+margin:
		return Same
	case r.High < 1:
		return Smaller
	case r.Low > 1:
		return Larger
	}
	return Undecided
}

package statistics

import (
	"errors"
	"math"
)

// mostRepeats bounds the search for the number of repeats that would settle a comparison.
const mostRepeats = 1000

// Unpaired is how much larger a figure of one measurement is than the same figure of another that was
// made at another time, each with repeats of its own.
type Unpaired struct {
	// Ratio has in Rounds the smaller of the two numbers of repeats.
	Ratio
	// variance of the logarithm of one repeat, the sum of the two measurements'.
	variance float64
}

// UnpairedRatio compares two figures of two measurements, one value for each repeat: for example the
// p95 of each repeat. All have to be positive; the unit does not matter. Two repeats of each are the
// least.
//
// The repeats are the sample, for the reason that PairedRatio gives. Nothing ties repeat i of the one to
// repeat i of the other, so the interval is Welch's (Biometrika 34, 1947) on the logarithms: Student's
// with the degrees of freedom of two samples of different variance. What differed between the two times
// and was the same in all repeats of one, another neighbour on the node for example, is in the ratio and
// in no interval.
func UnpairedRatio(figures, baseline []float64) (Unpaired, error) {
	one, err := logs(figures)
	if err != nil {
		return Unpaired{}, err
	}
	other, err := logs(baseline)
	if err != nil {
		return Unpaired{}, err
	}
	a, b := one.variance/float64(one.n), other.variance/float64(other.n)
	df := float64(one.n + other.n - 2)
	if a+b > 0 {
		df = (a + b) * (a + b) / (a*a/float64(one.n-1) + b*b/float64(other.n-1))
	}
	mean, deviation := one.mean-other.mean, math.Sqrt(a+b)
	half := StudentQuantile((1+confidence)/2, df) * deviation
	return Unpaired{
		Ratio: Ratio{
			Value: math.Exp(mean), Low: math.Exp(mean - half), High: math.Exp(mean + half),
			SmallestEffect: math.Expm1(half + StudentQuantile(power, df)*deviation),
			Rounds:         min(one.n, other.n),
		},
		variance: one.variance + other.variance,
	}, nil
}

// RepeatsToSettle is the least number of repeats of each measurement with which the interval would lie
// wholly on one side of 1 + margin with a probability of 80 %, if the ratio is what it seems to be and
// the repeats go on to differ as they did. 0 where even a thousand would not do: the ratio is too near
// to the margin.
func (u Unpaired) RepeatsToSettle(margin float64) int {
	distance := math.Abs(math.Log(u.Value) - math.Log1p(margin))
	enough := func(n int) bool {
		df := float64(2*n - 2)
		return distance >= (StudentQuantile((1+confidence)/2, df)+StudentQuantile(power, df))*math.Sqrt(u.variance/float64(n))
	}
	if distance == 0 || !enough(mostRepeats) {
		return 0
	}
	low, high := 1, mostRepeats
	for high-low > 1 {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// NotWorse says whether the figure is larger than the baseline by more than margin (0.05 is 5 %): Larger
// where the whole interval lies above 1 + margin, Same where it lies at or below, else Undecided. Each
// of the first two is wrong in at most 2.5 of 100 comparisons, one end of the interval.
func (r Ratio) NotWorse(margin float64) Verdict {
	switch {
	case r.Low > 1+margin:
		return Larger
	case r.High <= 1+margin:
		return Same
	}
	return Undecided
}

// sample of logarithms.
type sample struct {
	n              int
	mean, variance float64
}

func logs(figures []float64) (sample, error) {
	s := sample{n: len(figures)}
	if s.n < 2 {
		return s, ErrTooFew
	}
	for _, x := range figures {
		if !(x > 0) || math.IsInf(x, 0) {
			return s, errors.New("a ratio is of positive figures")
		}
		s.mean += math.Log(x) / float64(s.n)
	}
	for _, x := range figures {
		s.variance += (math.Log(x) - s.mean) * (math.Log(x) - s.mean) / float64(s.n-1)
	}
	return s, nil
}

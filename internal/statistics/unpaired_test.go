package statistics

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func TestUnpairedRatio(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-4*math.Max(1, math.Abs(b)) }
	// By hand: both have the logarithms m ± d, so a variance of 2d² each; of equal size and variance,
	// Welch's degrees of freedom are n+m-2 = 2 and t is 4.3027; half = 4.3027 × √(2d²/2 + 2d²/2).
	d := math.Log(1.1)
	got, err := UnpairedRatio([]float64{110 * 1.1, 110 / 1.1}, []float64{100 * 1.1, 100 / 1.1})
	half := 4.30265 * math.Sqrt2 * d
	if err != nil || !near(got.Value, 1.1) || !near(got.Low, 1.1*math.Exp(-half)) || !near(got.High, 1.1*math.Exp(half)) || got.Rounds != 2 {
		t.Errorf("it is %+v, %v", got, err)
	}
	// Where only one of the two differs between repeats, the degrees of freedom are that one's.
	got, err = UnpairedRatio([]float64{110, 110, 110, 110}, []float64{100 * 1.1, 100 / 1.1})
	half = 12.7062 * d
	if err != nil || !near(got.Low, 1.1*math.Exp(-half)) || got.Rounds != 2 {
		t.Errorf("it is %+v, %v", got, err)
	}
	if got, err = UnpairedRatio([]float64{7, 7}, []float64{7, 7, 7}); err != nil || !near(got.Low, 1) || !near(got.High, 1) {
		t.Errorf("figures that never differ give %+v, %v", got, err)
	}
	if _, err := UnpairedRatio([]float64{1}, []float64{1, 1}); !errors.Is(err, ErrTooFew) {
		t.Errorf("one repeat gave %v", err)
	}
	if _, err := UnpairedRatio([]float64{1, 1}, []float64{1, 0}); err == nil {
		t.Error("a zero was taken")
	}
}

func TestNotWorse(t *testing.T) {
	for name, row := range map[string]struct {
		low, high float64
		want      Verdict
	}{
		"worse by more than the margin, for sure": {1.06, 1.2, Larger},
		"worse, perhaps by less than the margin":  {1.04, 1.2, Undecided},
		"worse by less than the margin, for sure": {1.01, 1.04, Same},
		"better, for sure":                        {0.5, 0.9, Same},
		"the edge":                                {0.9, 1.05, Same},
		"anything":                                {0.1, 10, Undecided},
	} {
		if got := (Ratio{Low: row.low, High: row.high}).NotWorse(0.05); got != row.want {
			t.Errorf("%s: %d, not %d", name, got, row.want)
		}
	}
}

// What RepeatsToSettle says is so: with that many repeats about 80 of 100 comparisons are settled, with
// half as many clearly fewer.
func TestRepeatsToSettle(t *testing.T) {
	const spread, truth, margin = 0.06, 1.15, 0.05
	u := Unpaired{Ratio: Ratio{Value: truth}, variance: 2 * spread * spread}
	n := u.RepeatsToSettle(margin)
	r := rand.New(rand.NewPCG(21, 22))
	settled := func(n int) float64 {
		count := 0
		for range comparisons {
			a, b := make([]float64, n), make([]float64, n)
			for i := range n {
				a[i], b[i] = truth*math.Exp(spread*r.NormFloat64()), math.Exp(spread*r.NormFloat64())
			}
			if ratio, err := UnpairedRatio(a, b); err == nil && ratio.NotWorse(margin) == Larger {
				count++
			}
		}
		return float64(count) * 100 / comparisons
	}
	enough, half := settled(n), settled(n/2)
	t.Logf("%d repeats settle %.1f of 100, %d settle %.1f", n, enough, n/2, half)
	if enough < 78 || enough > 90 || half > 65 {
		t.Errorf("%d repeats are said to settle 80 of 100 and settle %.1f; %d settle %.1f", n, enough, n/2, half)
	}
	for name, value := range map[string]float64{"at the margin": 1 + margin, "a hair from it": 1.0501} {
		if got := (Unpaired{Ratio: Ratio{Value: value}, variance: u.variance}).RepeatsToSettle(margin); got != 0 {
			t.Errorf("%s, %d repeats are said to be enough", name, got)
		}
	}
}

func TestRankInterval(t *testing.T) {
	for name, row := range map[string]struct {
		n         int64
		perMille  int
		low, high int64
		ok        bool
	}{
		// Conover, Practical Nonparametric Statistics: the sign test's interval of a median.
		"the median of ten":             {10, 500, 2, 9, true},
		"the median of five":            {5, 500, 0, 5, false},
		"the median of six":             {6, 500, 1, 6, true},
		"the median of a hundred":       {100, 500, 40, 61, true},
		"p95 of 58 has no upper end":    {58, 950, 0, 0, false},
		"p95 of 59 has the slowest":     {59, 950, 50, 59, true},
		"p99 of 299 too":                {299, 990, 289, 299, true},
		"p95 of 72 has equal tails":     {72, 950, 64, 72, true},
		"nothing was measured":          {0, 500, 0, 0, false},
		"the slowest has no percentile": {100, 1000, 0, 0, false},
	} {
		low, high, ok := RankInterval(row.n, row.perMille)
		if low != row.low || high != row.high || ok != row.ok {
			t.Errorf("%s: %d to %d, %t; not %d to %d, %t", name, low, high, ok, row.low, row.high, row.ok)
		}
	}
}

// Whatever n is, the interval holds the true percentile in at least 95 of 100 runs: exactly so, by the binomial distribution.
func TestRankIntervalsHoldTheTruth(t *testing.T) {
	for _, perMille := range []int{500, 750, 900, 950, 990} {
		p := float64(perMille) / 1000
		for n := int64(1); n <= 400; n++ {
			low, high, ok := RankInterval(n, perMille)
			if equal := HasEqualTails(n, perMille); equal && !ok {
				t.Errorf("p%d of %d has equal tails and no interval", perMille/10, n)
			}
			if !ok {
				continue
			}
			// The percentile lies between the ranks where at least low and fewer than high measurements lie below it.
			holds, of := 0.0, math.Pow(p, float64(n))
			for below := n; below >= low; below-- {
				if below < high {
					holds += of
				}
				of *= float64(below) / float64(n-below+1) * (1 - p) / p
			}
			if holds < 0.95-1e-9 {
				t.Errorf("p%d of %d: ranks %d to %d hold it in %.4f", perMille/10, n, low, high, holds)
			}
		}
	}
}

func TestMeanInterval(t *testing.T) {
	low, high, err := MeanInterval([]float64{100, 121})
	half := 12.7062 * math.Log(1.21) / 2
	if err != nil || math.Abs(low-110*math.Exp(-half)) > 1e-3 || math.Abs(high/(110*math.Exp(half))-1) > 1e-4 {
		t.Errorf("%g to %g, %v", low, high, err)
	}
	if _, _, err := MeanInterval([]float64{100}); !errors.Is(err, ErrTooFew) {
		t.Errorf("one repeat gave %v", err)
	}
}

package statistics

import (
	"errors"
	"math"
	"testing"
)

// The values are those of the printed tables (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
func TestStudentIsThatOfTheTables(t *testing.T) {
	for _, row := range []struct{ p, df, want float64 }{
		{0.975, 1, 12.706}, {0.975, 2, 4.303}, {0.975, 3, 3.182}, {0.975, 5, 2.571}, {0.975, 7, 2.365}, {0.975, 11, 2.201},
		{0.95, 3, 2.353}, {0.90, 10, 1.372}, {0.999, 4, 7.173}, {0.975, 100, 1.984},
	} {
		if got := StudentQuantile(row.p, row.df); math.Abs(got-row.want) > 0.0006 {
			t.Errorf("t of %g with %g degrees of freedom is %.4f, not %.3f", row.p, row.df, got, row.want)
		}
		if got := StudentQuantile(1-row.p, row.df); math.Abs(got+row.want) > 0.0006 {
			t.Errorf("t of %g with %g degrees of freedom is %.4f, not %.3f", 1-row.p, row.df, got, -row.want)
		}
	}
	// With one degree of freedom it is Cauchy's distribution, which has a closed form.
	for _, x := range []float64{-1e6, -3, -1, 0, 0.5, 2, 40} {
		if got, want := StudentCDF(x, 1), 0.5+math.Atan(x)/math.Pi; math.Abs(got-want) > 1e-12 {
			t.Errorf("the CDF at %g is %g, not %g", x, got, want)
		}
	}
	if StudentCDF(math.Inf(1), 3) != 1 || StudentCDF(math.Inf(-1), 3) != 0 {
		t.Error("the CDF does not end at 0 and 1")
	}
}

func TestPairedRatio(t *testing.T) {
	for name, row := range map[string]struct {
		numerator, denominator []float64
		want                   Ratio
	}{
		"twice as much in every round is twice as much, for sure": {[]float64{200, 400}, []float64{100, 200}, Ratio{Value: 2, Low: 2, High: 2, Rounds: 2}},
		// By hand: logs 0, ln 1.21; mean ln 1.1; s = ln(1.21)/√2; half = 12.7062 × ln(1.21)/2.
		"two rounds that disagree say next to nothing": {[]float64{100, 121}, []float64{100, 100},
			Ratio{Value: 1.1, Low: 1.1 * math.Exp(-12.7062*math.Log(1.21)/2), High: 1.1 * math.Exp(12.7062*math.Log(1.21)/2), Rounds: 2,
				SmallestEffect: math.Expm1((12.7062 + 1.37638) * math.Log(1.21) / 2)}},
		"what a round does to both divides out": {[]float64{110, 1100, 11}, []float64{100, 1000, 10}, Ratio{Value: 1.1, Low: 1.1, High: 1.1, Rounds: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := PairedRatio(row.numerator, row.denominator)
			if err != nil {
				t.Fatal(err)
			}
			close := func(a, b float64) bool { return math.Abs(a-b) <= 1e-4*math.Max(1, math.Abs(b)) }
			if !close(got.Value, row.want.Value) || !close(got.Low, row.want.Low) || !close(got.High, row.want.High) ||
				!close(got.SmallestEffect, row.want.SmallestEffect) || got.Rounds != row.want.Rounds {
				t.Errorf("it is %+v, not %+v", got, row.want)
			}
		})
	}
	swapped, err := PairedRatio([]float64{90, 130, 100, 95}, []float64{100, 100, 120, 99})
	back, err2 := PairedRatio([]float64{100, 100, 120, 99}, []float64{90, 130, 100, 95})
	if err != nil || err2 != nil || math.Abs(swapped.Value*back.Value-1) > 1e-12 || math.Abs(swapped.Low*back.High-1) > 1e-12 {
		t.Errorf("the ratio the other way round is not the inverse: %+v and %+v", swapped, back)
	}
	if _, err := PairedRatio([]float64{1}, []float64{1}); !errors.Is(err, ErrTooFew) {
		t.Errorf("one round gave %v", err)
	}
	for _, bad := range [][2][]float64{{{1, 2}, {1}}, {{1, 0}, {1, 1}}, {{1, 1}, {1, -1}}, {{math.NaN(), 1}, {1, 1}}, {{math.Inf(1), 1}, {1, 1}}} {
		if _, err := PairedRatio(bad[0], bad[1]); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

func TestJudge(t *testing.T) {
	for name, row := range map[string]struct {
		low, high float64
		want      Verdict
	}{
		"below 1":                                {0.7, 0.9, Smaller},
		"above 1":                                {1.02, 1.3, Larger},
		"around 1 and narrow":                    {0.97, 1.04, Same},
		"around 1 and wide":                      {0.9, 1.1, Undecided},
		"sure but too little to matter":          {1.01, 1.03, Same},
		"sure, and perhaps more than the margin": {1.01, 1.08, Larger},
		"the edge of the margin":                 {1 / 1.05, 1.05, Same},
		"touching 1 from above":                  {1, 1.2, Undecided},
	} {
		if got := (Ratio{Low: row.low, High: row.high}).Judge(0.05); got != row.want {
			t.Errorf("%s: %d, not %d", name, got, row.want)
		}
	}
}

// Package statistics says how sure a difference between measured latencies is. It is pure, and knows
// nothing of what was measured.
package statistics

import "math"

// StudentCDF is the probability that Student's t with df degrees of freedom is at most t.
func StudentCDF(t, df float64) float64 {
	if math.IsInf(t, 0) {
		return (1 + math.Copysign(1, t)) / 2
	}
	tail := incompleteBeta(df/2, 0.5, df/(df+t*t)) / 2
	if t > 0 {
		return 1 - tail
	}
	return tail
}

// StudentQuantile is the t below which Student's t with df degrees of freedom lies with probability p,
// for 0 < p < 1 and df >= 1.
func StudentQuantile(p, df float64) float64 {
	if p < 0.5 {
		return -StudentQuantile(1-p, df)
	}
	low, high := 0.0, 1.0
	for StudentCDF(high, df) < p {
		high *= 2
	}
	// Bisection to the last bit of a float64: the function is monotone and nobody is in a hurry.
	for range 200 {
		middle := (low + high) / 2
		if middle == low || middle == high {
			break
		}
		if StudentCDF(middle, df) < p {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// incompleteBeta is the regularised incomplete beta function I_x(a, b), by its continued fraction
// (Abramowitz and Stegun 26.5.8) with the modified method of Lentz.
func incompleteBeta(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		// The fraction converges fast only on this side.
		return 1 - incompleteBeta(b, a, 1-x)
	}
	const tiny, enough = 1e-300, 1e-15
	logA, _ := math.Lgamma(a)
	logB, _ := math.Lgamma(b)
	logAB, _ := math.Lgamma(a + b)
	front := math.Exp(logAB-logA-logB+a*math.Log(x)+b*math.Log1p(-x)) / a

	away := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/away(1-(a+b)*x/(a+1))
	fraction := d
	for m := 1.0; m < 1000; m++ {
		for _, numerator := range []float64{
			m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m)),
			-(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1)),
		} {
			d = 1 / away(1+numerator*d)
			c = away(1 + numerator/c)
			fraction *= c * d
		}
		if math.Abs(c*d-1) < enough {
			break
		}
	}
	return front * fraction
}

package result

import (
	"math"
	"strings"
	"testing"
)

func TestSamplesForIsWilks(t *testing.T) {
	for perMille, want := range map[int]int64{0: 10, 500: 10, 900: 29, 950: 59, 990: 299, 999: 2995, 1000: 59} {
		if got := SamplesFor(perMille); got != want {
			t.Errorf("%d of 1000 needs %d, want %d", perMille, got, want)
		}
	}
	for _, perMille := range []int{900, 950, 990, 999} {
		p, n := float64(perMille)/1000, float64(SamplesFor(perMille))
		if 1-math.Pow(p, n) < 0.95 || 1-math.Pow(p, n-1) >= 0.95 {
			t.Errorf("%v is not the least number for %d", n, perMille)
		}
	}
}

func TestUnsupported(t *testing.T) {
	for n, want := range map[int64]string{0: "", 9: "p50 p90 p95 p99 p99.9", 30: "p95 p99 p99.9", 59: "p99 p99.9", 299: "p99.9", 2995: ""} {
		if got := strings.Join(Unsupported(n), " "); got != want {
			t.Errorf("of %d: %q, want %q", n, got, want)
		}
	}
}

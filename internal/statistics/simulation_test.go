package statistics

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The simulations draw whole comparisons of two variants whose true ratio is known, and count how
// often the interval holds it. Seeds are fixed: a run is the same on every machine.

// world is how latencies come about.
type world struct {
	name string
	// rounds, and samples of each variant in each.
	rounds, samples int
	// tail draws the latency of one request around 1.
	tail func(*rand.Rand) float64
	// roundSpread is the deviation (of the logarithm) of what a round does to both variants alike:
	// the neighbours on the machine. slotSpread is what each single measurement has for itself.
	roundSpread, slotSpread float64
	// drift is the slow-down from the first to the last measurement.
	drift float64
}

func lognormal(r *rand.Rand) float64 { return math.Exp(0.15 * r.NormFloat64()) }

// heavy has a tail like that of requests behind a commit that waits: one in ten is far slower.
func heavy(r *rand.Rand) float64 {
	latency := lognormal(r)
	if r.Float64() < 0.1 {
		// Pareto with infinite variance.
		latency *= math.Pow(1-r.Float64(), -1/1.8)
	}
	return latency
}

// draw the samples of each round of a variant whose true latency is scale, and of one whose is 1, in
// the order A B B A.
func (w world) draw(r *rand.Rand, scale float64) (a, b [][]float64) {
	slots := float64(2*w.rounds - 1)
	for round := range w.rounds {
		shared := math.Exp(w.roundSpread * r.NormFloat64())
		first := float64(2*round) / slots
		second := float64(2*round+1) / slots
		if round%2 == 1 {
			first, second = second, first
		}
		slot := func(scale, when float64) []float64 {
			own := scale * shared * math.Exp(w.slotSpread*r.NormFloat64()) * (1 + w.drift*when)
			samples := make([]float64, w.samples)
			for i := range samples {
				samples[i] = own * w.tail(r)
			}
			slices.Sort(samples)
			return samples
		}
		a = append(a, slot(scale, first))
		b = append(b, slot(1, second))
	}
	return a, b
}

// percentile by nearest rank, as internal/result has it.
func percentile(sorted []float64, perMille int) float64 {
	rank := max(1, (perMille*len(sorted)+999)/1000)
	return sorted[rank-1]
}

func figures(rounds [][]float64, perMille int) []float64 {
	out := make([]float64, len(rounds))
	for i, samples := range rounds {
		out[i] = percentile(samples, perMille)
	}
	return out
}

const comparisons = 2000

// coverage is the share, in per cent, of comparisons whose interval holds the true ratio.
func (w world) coverage(seed uint64, scale float64, interval func(r *rand.Rand, a, b [][]float64) (low, high float64)) float64 {
	r := rand.New(rand.NewPCG(seed, 77))
	held := 0
	for range comparisons {
		a, b := w.draw(r, scale)
		if low, high := interval(r, a, b); low <= scale && scale <= high {
			held++
		}
	}
	return float64(held) * 100 / comparisons
}

func paired(perMille int) func(*rand.Rand, [][]float64, [][]float64) (float64, float64) {
	return func(_ *rand.Rand, a, b [][]float64) (float64, float64) {
		ratio, err := PairedRatio(figures(a, perMille), figures(b, perMille))
		if err != nil {
			panic(err)
		}
		return ratio.Low, ratio.High
	}
}

func TestTheIntervalHoldsTheTruth95TimesOutOf100(t *testing.T) {
	seed := uint64(0)
	// In this order and no map's, since the seeds are counted.
	for _, w := range []world{
		{name: "quiet", samples: 20, tail: lognormal},
		{name: "a heavy tail", samples: 20, tail: heavy},
		{name: "a heavy tail and neighbours", samples: 20, tail: heavy, roundSpread: 0.3, slotSpread: 0.08},
		{name: "a heavy tail, neighbours and a slow drift", samples: 60, tail: heavy, roundSpread: 0.2, slotSpread: 0.05, drift: 0.3},
		{name: "few samples", samples: 10, tail: heavy, roundSpread: 0.2, slotSpread: 0.05},
	} {
		for _, rounds := range []int{4, 6, 8} {
			for _, perMille := range []int{500, 950} {
				w.rounds = rounds
				seed++
				got := w.coverage(seed, 1.3, paired(perMille))
				t.Logf("%s, %d rounds, p%d: the interval held the truth in %.1f of 100", w.name, rounds, perMille/10, got)
				// Two thousand comparisons have a standard error of half a per cent. A drift makes the
				// interval wider than need be, which is the safe side.
				if got < 93.5 || got > 99 {
					t.Errorf("%s, %d rounds, p%d: the interval held the truth in %.1f of 100", w.name, rounds, perMille/10, got)
				}
			}
		}
	}
}

// Why the rounds and not the requests are the sample, and why not the bootstrap.
func TestOtherIntervalsAreTooNarrow(t *testing.T) {
	w := world{rounds: 4, samples: 20, tail: heavy, roundSpread: 0.2, slotSpread: 0.08}
	resampled := func(r *rand.Rand, draws int, statistic func() float64) (float64, float64) {
		values := make([]float64, draws)
		for i := range values {
			values[i] = statistic()
		}
		slices.Sort(values)
		return values[draws*25/1000], values[draws*975/1000-1]
	}
	pooled := func(r *rand.Rand, a, b [][]float64) (float64, float64) {
		one, other := slices.Concat(a...), slices.Concat(b...)
		again := func(samples []float64) float64 {
			drawn := make([]float64, len(samples))
			for i := range drawn {
				drawn[i] = samples[r.IntN(len(samples))]
			}
			slices.Sort(drawn)
			return percentile(drawn, 500)
		}
		return resampled(r, 200, func() float64 { return again(one) / again(other) })
	}
	rounds := func(r *rand.Rand, a, b [][]float64) (float64, float64) {
		one, other := figures(a, 500), figures(b, 500)
		return resampled(r, 200, func() float64 {
			sum := 0.0
			for range one {
				i := r.IntN(len(one))
				sum += math.Log(one[i] / other[i])
			}
			return math.Exp(sum / float64(len(one)))
		})
	}
	for name, interval := range map[string]func(*rand.Rand, [][]float64, [][]float64) (float64, float64){
		"a bootstrap over all requests": pooled, "a bootstrap over the rounds": rounds,
	} {
		got := w.coverage(5, 1.3, interval)
		t.Logf("%s held the truth in %.1f of 100", name, got)
		if got > 90 {
			t.Errorf("%s held the truth in %.1f of 100; then PairedRatio should say something else", name, got)
		}
	}
}

// Two equal variants are called different in about five of a hundred comparisons, not more, and the
// smallest effect that is stated is found in about eighty.
func TestErrorsAreAsRareAsStated(t *testing.T) {
	w := world{rounds: 6, samples: 30, tail: lognormal, roundSpread: 0.2, slotSpread: 0.03}
	r := rand.New(rand.NewPCG(11, 12))
	wrong, effect := 0, 0.0
	for range comparisons {
		a, b := w.draw(r, 1)
		ratio, err := PairedRatio(figures(a, 500), figures(b, 500))
		if err != nil {
			t.Fatal(err)
		}
		if ratio.Low > 1 || ratio.High < 1 {
			wrong++
		}
		effect += math.Log1p(ratio.SmallestEffect) / comparisons
	}
	if share := float64(wrong) * 100 / comparisons; share < 3.5 || share > 6.5 {
		t.Errorf("equal variants were told apart in %.1f of 100", share)
	}
	found := 0
	for range comparisons {
		a, b := w.draw(r, math.Exp(effect))
		if ratio, err := PairedRatio(figures(a, 500), figures(b, 500)); err == nil && ratio.Low > 1 {
			found++
		}
	}
	share := float64(found) * 100 / comparisons
	t.Logf("an effect of %.1f %% was found in %.1f of 100", 100*math.Expm1(effect), share)
	if share < 74 || share > 90 {
		t.Errorf("an effect of %.1f %%, which is said to be found in 80 of 100, was found in %.1f", 100*math.Expm1(effect), share)
	}
}

package result

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestBucketsAreContiguousAndNarrow(t *testing.T) {
	last := int32(-1)
	for v := int64(0); v < 200_000; v++ {
		b := bucketOf(v)
		if b != last && b != last+1 {
			t.Fatalf("%d is in bucket %d, the one before in %d", v, b, last)
		}
		if edge := upperEdge(b); edge < v || float64(edge) > float64(v)*1.032+1 {
			t.Fatalf("the upper edge of %d is %d", v, edge)
		}
		last = b
	}
	if edge := upperEdge(bucketOf(MaxMicros)); edge < MaxMicros {
		t.Errorf("the last bucket ends at %d", edge)
	}
}

// random is a timeline of a run with answers of many sizes.
func random(r *rand.Rand, seconds int64) (*Timeline, []int64) {
	tl, values := NewTimeline(), []int64{}
	for range 2000 {
		v := int64(r.ExpFloat64() * 50_000)
		failed := r.IntN(20) == 0
		tl.Record(r.Int64N(seconds*1_000_000), v, failed)
		if !failed {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return tl, values
}

func TestTimelineOfAnyLengthStaysBoundedAndLosesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, seconds := range []int64{1, 10, 240, 241, 5000, 86_400} {
		tl, values := random(r, seconds)
		var n, failed int64
		for i := range tl.Intervals {
			n += tl.Intervals[i].Count()
			failed += tl.Intervals[i].Failed
		}
		if len(tl.Intervals) > maxIntervals || n != int64(len(values)) || n+failed != 2000 {
			t.Errorf("%d s: %d intervals hold %d answers and %d failures of 2000", seconds, len(tl.Intervals), n, failed)
		}
		for _, perMille := range []int{1, 500, 950, 1000} {
			truth := values[max(0, (perMille*len(values)+999)/1000-1)]
			if got := tl.PerMille(0, len(tl.Intervals), perMille); got < truth || float64(got) > float64(truth)*1.032+1 {
				t.Errorf("%d s: %d ‰ is %d, the truth is %d", seconds, perMille, got, truth)
			}
		}
	}
}

func TestTimelinesMergeAsIfOneHadRecordedAll(t *testing.T) {
	for name, test := range map[string]struct{ first, second, shift int64 }{
		"two Pods at once":                       {10, 10, 0},
		"a Pod that began later":                 {10, 10, 3},
		"a repeat that makes the whole too long": {200, 200, 210},
		"a long one into a short one":            {10, 4000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			one, merged := NewTimeline(), NewTimeline()
			parts := []*Timeline{NewTimeline(), NewTimeline()}
			for i, seconds := range []int64{test.first, test.second} {
				shift := []int64{0, test.shift}[i]
				for range 500 {
					end, v, failed := r.Int64N(seconds)*1_000_000, r.Int64N(1_000_000), r.IntN(9) == 0
					parts[i].Record(end, v, failed)
					one.Record(end+shift*1_000_000, v, failed)
				}
			}
			merged.Merge(parts[0], 0)
			merged.Merge(parts[1], test.shift*1_000_000)
			a, _ := json.Marshal(one)
			b, _ := json.Marshal(merged)
			if test.shift%parts[1].IntervalSeconds == 0 && string(a) != string(b) {
				t.Errorf("merged\n%s\nwant\n%s", b, a)
			}
		})
	}
}

func TestTimelineRoundTrip(t *testing.T) {
	tl, _ := random(rand.New(rand.NewPCG(5, 6)), 700)
	data, err := json.Marshal(tl)
	if err != nil {
		t.Fatal(err)
	}
	var back Timeline
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if again, _ := json.Marshal(&back); string(again) != string(data) {
		t.Error("a timeline that was read is not the one that was written")
	}
}

func FuzzTimelineJSON(f *testing.F) {
	tl, _ := random(rand.New(rand.NewPCG(7, 8)), 30)
	data, _ := json.Marshal(tl)
	f.Add(data)
	f.Add([]byte(`{"intervalSeconds":3,"intervals":[]}`))
	f.Add([]byte(`{"intervalSeconds":1,"intervals":[{"at":0,"counts":"/////////////w=="}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var tl Timeline
		if json.Unmarshal(data, &tl) != nil {
			return
		}
		for i := range tl.Intervals {
			if n := tl.Intervals[i].Count(); n < 0 || n > 0 && tl.Intervals[i].PerMille(500) < 0 {
				t.Fatalf("an interval counts %d", n)
			}
		}
	})
}

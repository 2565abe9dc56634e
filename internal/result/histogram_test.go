package result

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/quick"
)

// histogramOf counts values.
func histogramOf(values ...int64) *Histogram {
	h := NewHistogram()
	for _, v := range values {
		h.Record(v)
	}
	return h
}

// nearestRank is the percentile's definition, on all the samples.
func nearestRank(sorted []int64, perMille int) int64 {
	rank := max(1, (perMille*len(sorted)+999)/1000)
	return sorted[rank-1]
}

func TestPercentilesAgreeWithTheSamples(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 7, 10, 19, 20, 21, 60, 99, 100, 101, 999, 1000, 5000} {
		values := make([]int64, n)
		for i := range values {
			values[i] = int64(random.ExpFloat64() * 300_000)
		}
		h := histogramOf(values...)
		slices.Sort(values)
		for perMille := 0; perMille <= 1000; perMille++ {
			want, got := nearestRank(values, perMille), h.PerMille(perMille)
			if got < want || float64(got) > float64(want)*1.001+1 {
				t.Errorf("n=%d: PerMille(%d) is %d, the samples say %d", n, perMille, got, want)
			}
		}
		if h.Max() != values[n-1] || h.Min() != values[0] || h.PerMille(1000) != values[n-1] {
			t.Errorf("n=%d: extremes are %d and %d, want %d and %d", n, h.Min(), h.Max(), values[0], values[n-1])
		}
	}
}

func TestMergeIsTheSameAsAllInOne(t *testing.T) {
	same := func(parts [][]uint32) bool {
		merged, all := NewHistogram(), NewHistogram()
		for _, part := range parts {
			h := NewHistogram()
			for _, v := range part {
				h.Record(int64(v))
				all.Record(int64(v))
			}
			merged.Merge(h)
		}
		return equal(merged, all)
	}
	if err := quick.Check(same, nil); err != nil {
		t.Error(err)
	}
}

func TestJSONKeepsEverything(t *testing.T) {
	same := func(values []uint32) bool {
		h := NewHistogram()
		for _, v := range values {
			h.Record(int64(v))
		}
		data, err := json.Marshal(h)
		if err != nil {
			t.Log(err)
			return false
		}
		read := &Histogram{}
		if err := json.Unmarshal(data, read); err != nil {
			t.Log(err)
			return false
		}
		return equal(h, read)
	}
	if err := quick.Check(same, nil); err != nil {
		t.Error(err)
	}
}

func equal(a, b *Histogram) bool {
	return a.Count() == b.Count() && a.Min() == b.Min() && a.Max() == b.Max() && a.sum == b.sum && slices.Equal(a.Bars(), b.Bars())
}

func TestValuesOutsideTheRangeCountAsItsEnds(t *testing.T) {
	h := histogramOf(-5, MaxMicros+1)
	if h.Min() != 0 || h.Max() != MaxMicros || h.Count() != 2 {
		t.Errorf("min %d, max %d, count %d", h.Min(), h.Max(), h.Count())
	}
}

func TestNilAndEmptyHaveNoFigures(t *testing.T) {
	for _, h := range []*Histogram{nil, NewHistogram()} {
		if h.Count()+h.Min()+h.Max()+h.Mean()+h.PerMille(950) != 0 || len(h.Bars()) != 0 {
			t.Error("an empty histogram has figures")
		}
	}
}

func TestJSONThatContradictsItselfIsRefused(t *testing.T) {
	data, _ := json.Marshal(histogramOf(1000, 2000))
	for name, change := range map[string][2]string{
		"another count":     {`"count":2`, `"count":3`},
		"a negative count":  {`"count":2`, `"count":-2`},
		"another maximum":   {`"maxMicros":2000`, `"maxMicros":9000`},
		"another minimum":   {`"minMicros":1000`, `"minMicros":1`},
		"no base64":         {`"hdr":"`, `"hdr":"*`},
		"nothing in it":     {`"hdr":"`, `"hdr":"","x":"`},
		"swapped extremes":  {`"minMicros":1000`, `"minMicros":3000`},
		"a sum below zero":  {`"sumMicros":3000`, `"sumMicros":-1`},
		"no histogram":      {`{"count"`, `[{"count"`},
		"buckets of others": {`"hdr":"H`, `"hdr":"A`},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(string(data), change[0], change[1], 1)
			if changed == string(data) {
				t.Fatalf("nothing was changed in %s", data)
			}
			if err := json.Unmarshal([]byte(changed), &Histogram{}); err == nil {
				t.Errorf("%s was read", changed)
			}
		})
	}
}

func TestFormatMicros(t *testing.T) {
	for micros, want := range map[int64]string{0: "0µs", 850: "850µs", 999: "999µs", 1000: "1.00ms", 9_870: "9.87ms", 9_996: "10.0ms",
		61_200: "61.2ms", 99_960: "100ms", 612_345: "612ms", 999_600: "1.00s", 1_234_000: "1.23s", 59_999_000: "1m0s", 125_000_000: "2m5s"} {
		if got := FormatMicros(micros); got != want {
			t.Errorf("FormatMicros(%d) is %s, want %s", micros, got, want)
		}
	}
}

package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func recorded(of MetricType, values ...float64) Metric {
	m := Metric{Name: "m", Type: of}
	for _, v := range values {
		m.Record(v)
	}
	return m
}

func TestAMetricHoldsItsValues(t *testing.T) {
	for name, test := range map[string]struct {
		metric Metric
		want   string
	}{
		"a Counter adds up, fractions too": {recorded(MetricCounter, 1, 2.5, -0.25), `{"name":"m","type":"Counter","count":3,"sumMilli":3250}`},
		"a Rate counts what is not 0":      {recorded(MetricRate, 0, 1, 2), `{"name":"m","type":"Rate","count":3,"true":2}`},
		"a Gauge keeps its extremes":       {recorded(MetricGauge, 7, -2, 3), `{"name":"m","type":"Gauge","count":3,"minMilli":-2000,"maxMilli":7000}`},
		"a Gauge of one value has it twice, whatever stood there before": {recorded(MetricGauge, math.Inf(1), -4),
			`{"name":"m","type":"Gauge","count":2,"leftOut":1,"minMilli":-4000,"maxMilli":-4000}`},
		"a Counter leaves out what is no number": {recorded(MetricCounter, math.NaN(), math.Inf(-1), 1e13, 1), `{"name":"m","type":"Counter","count":4,"leftOut":3,"sumMilli":1000}`},
		"a Trend of nothing that it holds":       {recorded(MetricTrend, -1, 3_600_001), `{"name":"m","type":"Trend","count":2,"leftOut":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(test.metric)
			if err != nil || string(text) != test.want {
				t.Errorf("%v, %s, want %s", err, text, test.want)
			}
			if err := test.metric.validate(); err != nil {
				t.Error(err)
			}
		})
	}
	trend := recorded(MetricTrend, 0, 0.5, 12.25, 3_600_000, -0.1)
	if trend.Count != 5 || trend.LeftOut != 1 || trend.Values.Count() != 4 || trend.Values.Max() != MaxMicros || trend.Values.Rank(2) != 500 {
		t.Errorf("%+v, %d to %d", trend, trend.Values.Min(), trend.Values.Max())
	}
}

func TestMetricsMergeWithoutLoss(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	of := map[MetricType]func() float64{
		MetricTrend: func() float64 { return random.ExpFloat64() * 1e5 }, MetricCounter: func() float64 { return random.Float64() * 10 },
		MetricRate: func() float64 { return float64(random.IntN(2)) }, MetricGauge: func() float64 { return random.NormFloat64() * 100 },
	}
	one, parts := &Run{Scenarios: []Scenario{{Name: "Script"}}}, []*Run{}
	for range 4 {
		part := &Run{Scenarios: []Scenario{{Name: "Script", MetricValuesLeftOut: 2}}}
		for name, draw := range of {
			for range 500 {
				v := draw()
				part.Scenarios[0].Metric("mine", name).Record(v)
				one.Scenarios[0].Metric("mine", name).Record(v)
			}
		}
		parts = append(parts, part)
	}
	one.Scenarios[0].MetricValuesLeftOut = 8
	before := frameOf(t, parts[0])
	for name, merged := range map[string]*Run{"of repeats": Merge(parts...), "of Pods": MergePods(parts...)} {
		t.Run(name, func(t *testing.T) {
			// The empty runs say nothing else.
			sameRun(t, &Run{Scenarios: merged.Scenarios}, one)
		})
	}
	if frameOf(t, parts[0]) != before {
		t.Error("Merge changed a run")
	}
}

func TestMetricsAreBounded(t *testing.T) {
	var runs []*Run
	for n := range 2 {
		s := Scenario{Name: "Script"}
		for i := range MaxMetrics {
			s.Metric(fmt.Sprintf("m%d", i+n*10), MetricCounter).Record(1)
		}
		if s.Metric("one more", MetricCounter) != nil {
			t.Error("there is one more")
		}
		runs = append(runs, &Run{Scenarios: []Scenario{s}})
	}
	s := Merge(runs...).Scenarios[0]
	if len(s.Metrics) != MaxMetrics || s.MetricValuesLeftOut != 10 {
		t.Errorf("%d metrics, %d values left out", len(s.Metrics), s.MetricValuesLeftOut)
	}
	frameOf(t, Merge(runs...))
}

func TestAReaderRefusesMetricsThatMakeNoSense(t *testing.T) {
	trend := recorded(MetricTrend, 1, 2)
	for name, m := range map[string]Metric{
		"a type that k6 does not have":             {Type: "Summary"},
		"a negative count":                         {Type: MetricCounter, Count: -1},
		"more left out than counted":               {Type: MetricGauge, Count: 1, LeftOut: 2},
		"a Trend of more values than it holds":     {Type: MetricTrend, Count: 3, Values: trend.Values},
		"a Trend without its values":               {Type: MetricTrend, Count: 2},
		"a Counter with a distribution":            {Type: MetricCounter, Count: 2, Values: trend.Values},
		"a Rate that is true more often than ever": {Type: MetricRate, Count: 2, True: 3},
		"a Gauge that is true":                     {Type: MetricGauge, Count: 2, True: 1},
		"a sum beyond its bound":                   {Type: MetricCounter, Count: 1, SumMilli: math.MaxInt64},
		"a Gauge upside down":                      {Type: MetricGauge, Count: 2, MinMilli: 2, MaxMilli: 1},
	} {
		t.Run(name, func(t *testing.T) {
			run := &Run{Scenarios: []Scenario{{Name: "Script", Metrics: []Metric{m}}}}
			if err := Write(&bytes.Buffer{}, run); !errors.Is(err, ErrCorrupt) {
				t.Errorf("Write gives %v", err)
			}
			content, err := json.Marshal(run)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := decodeRun(content, Format); !errors.Is(err, ErrCorrupt) || got != nil {
				t.Errorf("reading gives %v", err)
			}
		})
	}
	many := &Run{Scenarios: []Scenario{{Metrics: make([]Metric, MaxMetrics+1)}}}
	if err := Write(&bytes.Buffer{}, many); !errors.Is(err, ErrCorrupt) {
		t.Errorf("too many give %v", err)
	}
}

func TestACoarseHistogramIsThreePercentOff(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for name, draw := range map[string]func() int64{
		"one value":           func() int64 { return 12_345 },
		"small ones":          func() int64 { return random.Int64N(70) },
		"all that there are":  func() int64 { return int64(math.Exp(random.Float64() * 22)) },
		"the greatest alone":  func() int64 { return MaxMicros },
		"the ends of a range": func() int64 { return []int64{0, MaxMicros}[random.IntN(2)] },
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHistogram()
			for range 20_000 {
				h.Record(draw())
			}
			coarse := h.coarse()
			if coarse.Count() != h.Count() || coarse.Min() != h.Min() || coarse.Max() != h.Max() || coarse.Sum() != h.Sum() {
				t.Errorf("%d from %d to %d, was %d from %d to %d", coarse.Count(), coarse.Min(), coarse.Max(), h.Count(), h.Min(), h.Max())
			}
			for _, p := range []int{0, 500, 900, 990, 999, 1000} {
				if was, is := h.PerMille(p), coarse.PerMille(p); is < was || float64(is) > float64(was)*1.034 {
					t.Errorf("the percentile %d was %d and is %d", p, was, is)
				}
			}
			text, err := json.Marshal(coarse)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &Histogram{}); err != nil {
				t.Error(err)
			}
		})
	}
	if (*Histogram)(nil).coarse() != nil {
		t.Error("nothing became something")
	}
}

// The most that a writer lets a script make, each histogram as full as 100,000 values alike in every doubling fill it.
func TestAFrameOfManyTrendsStaysBelowOneMiB(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	full := func() *Histogram {
		h := NewHistogram()
		for range 100_000 {
			h.Record(int64(math.Exp(random.Float64() * 22)))
		}
		return h
	}
	run := &Run{Scenarios: []Scenario{{Name: "Script"}}}
	for i := range 33 {
		s := Series{Scenario: "Script", Endpoint: fmt.Sprint(i), Requests: 100_000, Total: full(), Intended: full(), Wait: full(), Receive: full(), Timeline: NewTimeline()}
		for n := range int64(5000) {
			s.Timeline.Record(n*1_000_000, int64(math.Exp(random.Float64()*22)), false)
		}
		run.Series = append(run.Series, s)
	}
	for i := range MaxMetrics {
		m := run.Scenarios[0].Metric(fmt.Sprint(i), MetricTrend)
		m.Count, m.Values = 100_000, full()
	}
	p99, trend := run.Series[0].Total.PerMille(990), run.Scenarios[0].Metrics[0].Values.PerMille(990)
	frame := frameOf(t, run)
	if len(frame) > 1<<20 {
		t.Errorf("the frame has %d bytes without %q", len(frame), run.Trimmed)
	}
	read, err := Read(strings.NewReader(frame))
	if err != nil {
		t.Fatal(err)
	}
	if got := read.Series[0].Total.PerMille(990); got != p99 || len(read.Trimmed) != len(trims) {
		t.Errorf("p99 was %d and is %d, without %q", p99, got, read.Trimmed)
	}
	if got := read.Scenarios[0].Metrics[0].Values.PerMille(990); got < trend || float64(got) > float64(trend)*1.034 {
		t.Errorf("p99 of a Trend was %d and is %d", trend, got)
	}
}

// A Trend of times and an endpoint may have one name, and a run may have met only one of the two.
func TestATrendIsToldApartFromAnEndpointOfItsName(t *testing.T) {
	series := func(endpoint string, own bool, micros ...int64) Series {
		s := Series{Scenario: "Script", Endpoint: endpoint, Own: own, Requests: int64(len(micros)), Total: NewHistogram()}
		for _, m := range micros {
			s.Total.Record(m)
		}
		return s
	}
	alone := &Run{Series: []Series{series("search", true, 1, 1)}}
	both := &Run{Series: []Series{series("search", false, 100), series("search"+TrendMark, true, 2)}}
	other := &Run{Series: []Series{series("render", true, 5), series("fetch", false, 6)}}
	for name, test := range map[string]struct {
		runs []*Run
		want string
	}{
		"no endpoint has its name":             {[]*Run{alone, other}, "fetch=1/false render=1/true search=2/true"},
		"an endpoint of another run has it":    {[]*Run{alone, both}, "search=1/false search (Trend)=3/true"},
		"the same, the other way round":        {[]*Run{both, alone}, "search=1/false search (Trend)=3/true"},
		"a run that is not there":              {[]*Run{nil, both}, "search=1/false search (Trend)=1/true"},
		"a mark that nothing calls for is off": {[]*Run{{Series: both.Series[1:]}}, "search=1/true"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range Merge(test.runs...).Series {
				got = append(got, fmt.Sprintf("%s=%d/%v", s.Endpoint, s.Requests, s.Own))
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
	apart := Apart([]*Run{alone, both})
	if apart[0].Find("Script", "search") != nil || apart[0].Find("Script", "search (Trend)") == nil || alone.Series[0].Endpoint != "search" {
		t.Errorf("%v; the run itself has %q", apart[0].Series, alone.Series[0].Endpoint)
	}
}

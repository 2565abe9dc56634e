package report

import (
	"fmt"
	"math"
	"strings"
)

// chart is one drawing of report.html in the coordinates of its SVG.
type chart struct {
	Title string
	// Endpoint that is drawn.
	Endpoint       string
	Width, Height  float64
	Left, Right    float64
	Top, Bottom    float64
	Bars           []chartBar
	Lines          []chartLine
	Dots           []chartDot
	XTicks, YTicks []chartTick
	Limits         []chartLimit
	XLabel, YLabel string
	// Alone is a drawing in a file of its own, with its title and its colours.
	Alone bool
}

// seriesColours is how many colours lines have; report.html.tmpl and chart_png.go name them.
const seriesColours = 4

type chartBar struct {
	X, Y, Width, Height float64
	Label               string
}

type chartDot struct {
	X, Y  float64
	Label string
}

// chartLine joins points. Class colours it; Label stands in the legend, and where it is empty the line
// has no entry there.
type chartLine struct {
	Points       []chartDot
	Class, Label string
}

// Path is the line in the notation of SVG.
func (l chartLine) Path() string {
	var path strings.Builder
	for i, point := range l.Points {
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", verb, point.X, point.Y)
	}
	return path.String()
}

type chartTick struct {
	At    float64
	Label string
}

// chartLimit is a line for an objective or a percentile; upright where Vertical.
type chartLimit struct {
	At       float64
	Label    string
	Class    string
	Vertical bool
	// Flip puts the label to the left of an upright line that stands near the right edge.
	Flip bool
	// Row keeps the labels of neighbouring lines apart.
	Row float64
}

func newChart(title, x, y string) chart {
	return chart{Title: title, Width: 560, Height: 250, Left: 52, Right: 548, Top: 50, Bottom: 206, XLabel: x, YLabel: y}
}

// distributionChart shows how many durations fell where, on a logarithmic axis of time.
func distributionChart(p Plot, objectives []Objective) chart {
	c := newChart("Distribution", "duration", p.Endpoint+"s")
	low, high := p.Bins[0].FromMicros, p.Bins[len(p.Bins)-1].ToMicros
	limits := objectivesOf(p, objectives)
	for _, o := range limits {
		// An objective close by belongs into the picture; one far off would only squeeze it.
		if o.BelowMicros > high && o.BelowMicros < high*2 {
			high = o.BelowMicros * 102 / 100
		}
	}
	x := func(micros int64) float64 {
		return scale(math.Log(float64(max(micros, 1))), math.Log(float64(max(low, 1))), math.Log(float64(high)), c.Left, c.Right)
	}
	var most int64 = 1
	for _, bin := range p.Bins {
		most = max(most, bin.Count)
	}
	ticks, top := countTicks(most)
	y := func(n int64) float64 { return scale(float64(n), 0, float64(top), c.Bottom, c.Top) }
	for _, n := range ticks {
		c.YTicks = append(c.YTicks, chartTick{y(n), fmt.Sprint(n)})
	}
	for _, bin := range p.Bins {
		if bin.Count > 0 {
			left, right := x(bin.FromMicros), x(bin.ToMicros)
			c.Bars = append(c.Bars, chartBar{left + 0.5, y(bin.Count), math.Max(1, right-left-1), c.Bottom - y(bin.Count),
				fmt.Sprintf("%s to %s: %d", duration(bin.FromMicros), duration(bin.ToMicros), bin.Count)})
		}
	}
	c.XTicks = timeTicks(low, high, x)
	for _, perMille := range []int{500, 950} {
		micros := at(p, perMille)
		c.addUpright(x(micros), fmt.Sprintf("p%d %s", perMille/10, duration(micros)), "percentile")
	}
	for _, o := range limits {
		if o.BelowMicros >= low && o.BelowMicros <= high {
			c.addUpright(x(o.BelowMicros), fmt.Sprintf("p%d objective %s", o.Percentile, duration(o.BelowMicros)), "objective "+metClass(o.Met))
		}
	}
	return c
}

func (c *chart) addUpright(at float64, label, class string) {
	c.Limits = append(c.Limits, chartLimit{At: at, Label: label, Class: class, Vertical: true,
		Flip: at > (c.Left+c.Right)*0.62, Row: 10 + 13*float64(len(c.Limits)%3)})
}

// spectrumChart shows the duration at each percentile; the axis stretches towards the slow end, where
// each mark is ten times rarer than the one before.
func spectrumChart(p Plot, objectives []Objective) chart {
	return spectraChart("Percentiles", []Plot{p}, []string{""}, objectivesOf(p, objectives))
}

// spectraChart draws the percentiles of several plots over each other, each under its label.
func spectraChart(title string, list []Plot, labels []string, limits []Objective) chart {
	c := newChart(title, "percentile", "duration")
	var longest, most int64
	for _, p := range list {
		longest, most = max(longest, p.Spectrum[len(p.Spectrum)-1].Micros), max(most, p.Count)
	}
	top := longest
	for _, o := range limits {
		if o.BelowMicros > top && o.BelowMicros < longest*2 {
			top = o.BelowMicros
		}
	}
	steps, top := durationTicks(top)
	y := func(micros int64) float64 { return scale(float64(micros), 0, float64(top), c.Bottom, c.Top) }
	// The maximum stands where a run of this size has its last sample.
	end := math.Log10(float64(max(most, 2)))
	x := func(perMille int) float64 {
		v := end
		if perMille < 1000 {
			v = math.Min(end, math.Log10(1000/float64(1000-perMille)))
		}
		return scale(v, 0, end, c.Left, c.Right)
	}
	for _, micros := range steps {
		label := "0"
		if micros > 0 {
			label = duration(micros)
		}
		c.YTicks = append(c.YTicks, chartTick{y(micros), label})
	}
	for _, tick := range []struct {
		perMille int
		label    string
	}{{0, "min"}, {500, "p50"}, {750, "p75"}, {900, "p90"}, {950, "p95"}, {990, "p99"}, {999, "p99.9"}} {
		if position := x(tick.perMille); position < c.Right-28 {
			c.XTicks = append(c.XTicks, chartTick{position, tick.label})
		}
	}
	c.XTicks = append(c.XTicks, chartTick{c.Right, "max"})
	for i, p := range list {
		line := chartLine{Class: fmt.Sprintf("series%d", i%seriesColours), Label: labels[i]}
		for _, point := range p.Spectrum {
			label := fmt.Sprintf("p%g: %s", float64(point.PerMille)/10, duration(point.Micros))
			if point.PerMille == 1000 {
				label = "slowest: " + duration(point.Micros)
			}
			if labels[i] != "" {
				label = labels[i] + ", " + label
			}
			line.Points = append(line.Points, chartDot{x(point.PerMille), y(point.Micros), label})
		}
		c.Lines, c.Dots = append(c.Lines, line), append(c.Dots, line.Points...)
	}
	for _, o := range limits {
		if o.BelowMicros <= top {
			c.Limits = append(c.Limits, chartLimit{At: y(o.BelowMicros), Label: fmt.Sprintf("p%d objective %s", o.Percentile, duration(o.BelowMicros)),
				Class: "objective " + metClass(o.Met)})
		}
	}
	return c
}

func objectivesOf(p Plot, objectives []Objective) []Objective {
	var list []Objective
	for _, o := range objectives {
		if o.Scenario == p.Scenario && o.Endpoint == p.Endpoint {
			list = append(list, o)
		}
	}
	return list
}

// at is the duration at a percentile, from the nearest point of the spectrum at or above it.
func at(p Plot, perMille int) int64 {
	for _, point := range p.Spectrum {
		if point.PerMille >= perMille {
			return point.Micros
		}
	}
	return 0
}

func scale(v, from, to, low, high float64) float64 {
	if to == from {
		return (low + high) / 2
	}
	return math.Round((low+(v-from)/(to-from)*(high-low))*10) / 10
}

// niceSteps are the round numbers that axes are marked with: 1, 2 and 5 times a power of ten.
func niceSteps(yield func(int64) bool) {
	for base := int64(1); base < math.MaxInt64/100; base *= 10 {
		for _, factor := range []int64{1, 2, 5} {
			if !yield(base * factor) {
				return
			}
		}
	}
}

// countTicks are at most five marks from zero and the top of the axis.
func countTicks(most int64) (ticks []int64, top int64) {
	for step := range niceSteps {
		if most <= step*4 {
			top = (most + step - 1) / step * step
			for n := int64(0); n <= top; n += step {
				ticks = append(ticks, n)
			}
			break
		}
	}
	return ticks, top
}

func durationTicks(longest int64) (ticks []int64, top int64) { return countTicks(max(longest, 4)) }

// timeTicks are round durations on a logarithmic axis, with room between their labels.
func timeTicks(low, high int64, x func(int64) float64) []chartTick {
	const room = 44
	var ticks []chartTick
	add := func(micros int64) {
		position := x(micros)
		for _, t := range ticks {
			if math.Abs(t.At-position) < room {
				return
			}
		}
		ticks = append(ticks, chartTick{position, duration(micros)})
	}
	for step := range niceSteps {
		if step > high {
			break
		}
		if step >= low {
			add(step)
		}
	}
	// A narrow range may hold none or one of them: then equal parts of it are marked.
	if len(ticks) < 3 {
		for step := range niceSteps {
			if (high-low)/step <= 6 {
				for micros := (low + step - 1) / step * step; micros <= high; micros += step {
					add(micros)
				}
				break
			}
		}
	}
	return ticks
}

func metClass(met bool) string {
	if met {
		return "met"
	}
	return "missed"
}

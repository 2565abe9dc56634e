package report

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

// LegendRow is the height of the i-th entry of the legend.
func (c chart) LegendRow(i int) float64 {
	row := 14 + 13*float64(i)
	if c.Alone {
		row += titleHeight
	}
	return row
}

// titleHeight is what the title of a drawing that stands alone takes above the rest.
const titleHeight = 14

// alone is the drawing for a file of its own.
func (c chart) alone(title string) chart {
	c.Title, c.Alone, c.Limits = title, true, slices.Clone(c.Limits)
	for i := range c.Limits {
		if c.Limits[i].Vertical && c.Limits[i].Label != "" {
			c.Limits[i].Row += titleHeight
		}
	}
	return c
}

// chartsOf are the drawings of a plot.
func chartsOf(r *Report, p Plot) []chart {
	list := []chart{distributionChart(p, r.Objectives), spectrumChart(p, r.Objectives)}
	if len(p.Timeline) > 1 {
		list = append(list, timelineChart(p))
	}
	return list
}

// overlays draw the percentiles of every scenario that two or more tests of the file have over each
// other; nothing for a single test.
func overlays(r *Report) []chart {
	var list []chart
	for _, first := range r.Plots {
		plots, labels := []Plot{first}, []string{labelOf(r)}
		for _, other := range r.Others {
			for _, p := range other.Plots {
				if p.Scenario == first.Scenario && p.Endpoint == first.Endpoint && len(p.Spectrum) > 0 {
					plots, labels = append(plots, p), append(labels, labelOf(other))
				}
			}
		}
		if len(plots) > 1 {
			list = append(list, spectraChart(fmt.Sprintf("%s %s", first.Scenario, first.Endpoint), plots, labels, nil))
		}
	}
	return list
}

// labelOf names a test in a legend.
func labelOf(r *Report) string {
	if r.Subject.Double {
		return "DOUBLE " + r.Namespace + "/" + r.Name
	}
	return r.Namespace + "/" + r.Name
}

// timelineChart shows the median and the p95 over the run.
func timelineChart(p Plot) chart {
	c := newChart("Over time", "time since the start of the run", "duration")
	var longest, end int64
	for _, m := range p.Timeline {
		longest, end = max(longest, m.P95Micros), max(end, m.FromSeconds+m.Seconds)
	}
	// Room for the legend above the curves.
	steps, top := durationTicks(longest * 115 / 100)
	y := func(micros int64) float64 { return scale(float64(micros), 0, float64(top), c.Bottom, c.Top) }
	x := func(seconds float64) float64 { return scale(seconds, 0, float64(end), c.Left, c.Right) }
	for _, micros := range steps {
		label := "0"
		if micros > 0 {
			label = duration(micros)
		}
		c.YTicks = append(c.YTicks, chartTick{y(micros), label})
	}
	seconds, _ := countTicks(end)
	for _, s := range seconds {
		if s <= end {
			c.XTicks = append(c.XTicks, chartTick{x(float64(s)), duration(s * 1_000_000)})
		}
	}
	c.XTicks[0].Label = "0"
	median, p95 := chartLine{Class: "series0", Label: "median"}, chartLine{Class: "series1", Label: "p95"}
	for _, m := range p.Timeline {
		at := x(float64(m.FromSeconds) + float64(m.Seconds)/2)
		if m.Failed > 0 {
			c.Limits = append(c.Limits, chartLimit{At: at, Class: "objective missed", Vertical: true, Label: "", Row: c.Bottom - c.Top})
		}
		if m.Count == 0 {
			continue
		}
		when := fmt.Sprintf("from %s, %d answers: ", duration(m.FromSeconds*1_000_000), m.Count)
		median.Points = append(median.Points, chartDot{at, y(m.P50Micros), when + "median " + duration(m.P50Micros)})
		p95.Points = append(p95.Points, chartDot{at, y(m.P95Micros), when + "p95 " + duration(m.P95Micros)})
	}
	c.Lines = []chartLine{median, p95}
	c.Dots = append(append(c.Dots, median.Points...), p95.Points...)
	return c
}

// PlotFile is one drawing as a file of its own.
type PlotFile struct {
	// Name without an extension, for example demo-login-distribution.
	Name  string
	chart chart
}

// PlotFiles are the drawings of a report: those of each plot, and for several tests those that draw
// them over each other.
func PlotFiles(r *Report) []PlotFile {
	var files []PlotFile
	add := func(prefix string, c chart) {
		name := strings.ToLower(strings.NewReplacer(" ", "-", "/", "-").Replace(prefix + "-" + c.Title))
		files = append(files, PlotFile{Name: name, chart: c.alone(prefix + ": " + c.Title)})
	}
	for _, one := range r.All() {
		for _, p := range one.Plots {
			for _, c := range chartsOf(one, p) {
				prefix := one.Name + " " + p.Endpoint
				if one.Subject.Double {
					// A picture travels without its report.
					prefix = "DOUBLE " + prefix
				}
				add(prefix, c)
			}
		}
	}
	for _, c := range overlays(r) {
		add("compared", c)
	}
	return files
}

// aloneStyle is what report.html says of drawings, in the colours of a light page.
const aloneStyle = `text{font:11px sans-serif;fill:#666d75}.title{font-weight:bold;fill:#1d2126}.axis{stroke:#e2e3e0}.bar{fill:#4c78a8}` +
	`.curve{fill:none;stroke-width:2}.legend{stroke-width:4}.series0{stroke:#2f5d8f}.series1{stroke:#e07a1f}.series2{stroke:#59a14f}.series3{stroke:#b07aa1}` +
	`.dot{fill:none}.percentile line{stroke:#1d2126;stroke-dasharray:2 3}.objective line{stroke-width:1.5;stroke-dasharray:6 3}.met line{stroke:#1a7f4b}.missed line{stroke:#c2332b}`

var aloneTemplate = template.Must(template.New("alone").Funcs(template.FuncMap{
	"half":  func(a, b float64) float64 { return (a + b) / 2 },
	"plus":  func(a, b float64) float64 { return a + b },
	"style": func() template.CSS { return aloneStyle },
}).Parse(drawing))

// WriteSVG writes the drawing as an SVG file that needs nothing else.
func (f PlotFile) WriteSVG(w io.Writer) error {
	return aloneTemplate.ExecuteTemplate(w, "chart", f.chart)
}

// WritePNG writes the drawing as a PNG file of 1120 × 500 pixels.
func (f PlotFile) WritePNG(w io.Writer) error { return writePNG(w, f.chart) }

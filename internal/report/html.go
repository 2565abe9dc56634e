package report

import (
	_ "embed"
	"html/template"
	"io"
	"strings"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
)

//go:embed report.html.tmpl
var page string

//go:embed chart.svg.tmpl
var drawing string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"cause":    causeWords,
	"cells":    cells,
	"columns":  func() []string { return columns },
	"describe": describe,
	"double":   doubleWarning,
	"duration": duration,
	"mark":     mark,
	"further":  furtherOf,
	"measured": measured,
	"stars":    starNote,
	"verdict":  verdictWord,
	"class":    func(v v1alpha1.Verdict) string { return strings.ToLower(string(v)) },
	"when":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"charts":   chartsOf,
	"before":   overlays,
	// Only drawings that stand alone carry their own style.
	"style": func() template.CSS { return "" },
	"storage": func(p *v1alpha1.StorageProbeStatus) storageView {
		return storageView{[]storageGrid{{storageColumns, storageRows(p)}, {patternColumns, patternRows(p)}}, storageWords(p)}
	},
	"phases":   phaseRows,
	"percent":  func(part, of int64) int64 { return part * 100 / max(of, 1) },
	"mebibyte": func(bytes int64) int64 { return bytes >> 20 },
	"times":    func(a int64, b int) int64 { return a * int64(b) },
	"half":     func(a, b float64) float64 { return (a + b) / 2 },
	"plus":     func(a, b float64) float64 { return a + b },

	"compareColumns":  compareColumns,
	"compareRows":     compareRows,
	"probedStorages":  (*Report).probedStorages,
	"probedColumns":   func() []string { return probedColumns },
	"probedRows":      probedRows,
	"probedWords":     probedWords,
	"commitColumns":   commitColumns,
	"commitRows":      commitRows,
	"commitWords":     commitWords,
	"baselineColumns": func() []string { return baselineColumns }, "baselineCells": baselineCells,
	"pairColumns": func() []string { return pairColumns },
	"pairCells":   pairCells,
	"forest":      forest,
	"whole":       wholeName,
	"patch":       func(v Variant) string { return string(v.Patch) },
	"firstPairs":  (*Report).againstFirst,
}).Parse(drawing + page))

// WriteHTML writes the report as one file that needs nothing else, no network and no script.
func WriteHTML(w io.Writer, r *Report) error {
	return pageTemplate.Execute(w, r)
}

// phaseRow is a row of the table of where the time of a request goes.
type phaseRow struct {
	Row
	Segments []phaseSegment
}

type phaseSegment struct {
	Name, Class string
	Micros      int64
	// Percent of the longest row of the report.
	Percent float64
}

func phaseRows(r *Report) []phaseRow {
	var rows []phaseRow
	var longest int64 = 1
	for _, row := range r.Scenarios {
		if row.Phases == nil || row.Requests == row.Failed {
			continue
		}
		p := row.Phases
		rows = append(rows, phaseRow{Row: row, Segments: []phaseSegment{
			{Name: "DNS", Class: "dns", Micros: p.DNSMicros}, {Name: "connect", Class: "connect", Micros: p.ConnectMicros},
			{Name: "TLS", Class: "tls", Micros: p.TLSMicros}, {Name: "wait", Class: "wait", Micros: p.WaitMicros},
			{Name: "receive", Class: "receive", Micros: p.ReceiveMicros},
		}})
		longest = max(longest, p.DNSMicros+p.ConnectMicros+p.TLSMicros+p.WaitMicros+p.ReceiveMicros)
	}
	for i := range rows {
		for j := range rows[i].Segments {
			s := &rows[i].Segments[j]
			s.Percent = float64(s.Micros*1000/longest) / 10
		}
	}
	return rows
}

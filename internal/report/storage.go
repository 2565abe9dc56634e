package report

import (
	"bytes"
	"fmt"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
)

// probed is the probe of the stack's storage, where it has something to tell.
func probed(st *v1alpha1.AuthStack) *v1alpha1.StorageProbeStatus {
	if st == nil || st.Status.Storage == nil || st.Status.Storage.Probe == nil {
		return nil
	}
	p := st.Status.Storage.Probe
	if len(p.Syncs) == 0 && len(p.Findings) == 0 && p.Problem == "" {
		return nil
	}
	return p.DeepCopy()
}

var storageColumns = []string{"STORAGE", "PHASE", "SYNCS", "PER SECOND", "P50", "P99", "P99.9", "MAX"}

// storageRows are the phases of 8 kB writes with fdatasync.
func storageRows(p *v1alpha1.StorageProbeStatus) [][]string {
	rows := make([][]string, 0, len(p.Syncs))
	for _, s := range p.Syncs {
		rows = append(rows, []string{"8 kB fdatasync", fmt.Sprintf("%s, %d s", s.Phase, s.DurationSeconds), fmt.Sprint(s.Syncs), fmt.Sprint(s.SyncsPerSecond),
			duration(s.P50Micros), duration(s.P99Micros), duration(s.P999Micros), duration(s.MaxMicros)})
	}
	return rows
}

var patternColumns = []string{"PATTERN", "BLOCK", "DEPTH", "PER SECOND", "MB/S", "P50", "P99"}

func patternRows(p *v1alpha1.StorageProbeStatus) [][]string {
	rows := make([][]string, 0, len(p.Patterns))
	for _, f := range p.Patterns {
		rows = append(rows, []string{f.Name, fmt.Sprintf("%d kB", f.BlockBytes>>10), fmt.Sprint(f.Depth), fmt.Sprint(f.OperationsPerSecond),
			fmt.Sprint((f.BytesPerSecond + 500_000) / 1_000_000), duration(f.P50Micros), duration(f.P99Micros)})
	}
	return rows
}

// storageWords are the sentences beside the figures: what is claimed, what was measured, what stands out.
func storageWords(p *v1alpha1.StorageProbeStatus) []string {
	var words []string
	say := func(title, text string) {
		if text != "" {
			words = append(words, title+": "+text)
		}
	}
	say("Claimed", p.Claim)
	say("Measured", p.Measured)
	where := strings.TrimSpace(strings.Join([]string{p.StorageClassName, p.VolumeSize, p.Node}, " "))
	if p.Device != "" {
		where += ", " + p.Device
	}
	if p.CopiedFrom != "" {
		where += ", probed for AuthStack " + p.CopiedFrom
	}
	say("Probed", where)
	if c := p.CPU; c != nil {
		instructions := "with"
		if !c.AESInstructions {
			instructions = "without"
		}
		say("CPU", fmt.Sprintf("%s AES instructions; one core: AES-GCM %d MB/s, ChaCha20-Poly1305 %d MB/s", instructions,
			(c.AESGCMBytesPerSecond+500_000)/1_000_000, (c.ChaCha20Poly1305BytesPerSecond+500_000)/1_000_000))
	}
	say("Not probed", p.Problem)
	for _, finding := range p.Findings {
		say("! "+string(finding.Kind), finding.Message)
	}
	return words
}

// storageView is the probe for the template of the HTML report.
type storageView struct {
	Grids []storageGrid
	Words []string
}

type storageGrid struct {
	Columns []string
	Rows    [][]string
}

func storageTable(b *strings.Builder, p *v1alpha1.StorageProbeStatus) {
	b.WriteString("\nStorage\n")
	if rows := storageRows(p); len(rows) > 0 {
		align(b, append([][]string{storageColumns}, rows...))
	}
	if rows := patternRows(p); len(rows) > 0 {
		align(b, append([][]string{patternColumns}, rows...))
	}
	for _, words := range storageWords(p) {
		b.WriteString(" " + words + "\n")
	}
}

func storageMarkdown(b *bytes.Buffer, p *v1alpha1.StorageProbeStatus) {
	for _, table := range []storageGrid{{storageColumns, storageRows(p)}, {patternColumns, patternRows(p)}} {
		if len(table.Rows) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n| %s |\n|---|---|%s\n", strings.Join(table.Columns, " | "), strings.Repeat("--:|", len(table.Columns)-2))
		for _, row := range table.Rows {
			fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
		}
	}
	b.WriteString("\n")
	for _, words := range storageWords(p) {
		fmt.Fprintf(b, "- %s\n", cell(words))
	}
}

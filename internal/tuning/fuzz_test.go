package tuning

import (
	"strings"
	"testing"

	"authstack.dev/authstack/internal/facts"
)

// FuzzRecommend: whatever the limits, the values are ones that PostgreSQL takes, and what it may
// allocate fits into the memory.
func FuzzRecommend(f *testing.F) {
	f.Add(uint64(128<<20), uint64(1<<30), uint16(0), uint8(14))
	f.Add(uint64(1<<30), uint64(10<<30), uint16(150), uint8(17))
	f.Add(uint64(256<<30), uint64(4<<40), uint16(5000), uint8(18))
	f.Fuzz(func(t *testing.T, memory, volume uint64, connections uint16, major uint8) {
		in := Input{
			Major:       14 + int(major%5),
			MemoryBytes: int64(memory%uint64(256*gB-128*mB)) + 128*mB,
			VolumeBytes: int64(volume%uint64(8<<40)) + gB,
			Connections: int(connections),
			Product:     "authentik",
			DeepJoins:   true,
		}
		result := Recommend(in)
		if len(result.Refused) != 0 {
			t.Fatalf("computed values are refused: %q", result.Refused)
		}
		values := map[string]float64{}
		for _, setting := range result.Settings {
			kind, known := kinds[setting.Name]
			if !known {
				continue
			}
			value, ok := kind.parse(setting.Value)
			if !ok || value < kind.minimum && kind.unit != "bool" {
				t.Fatalf("%s = %s is not valid for %+v", setting.Name, setting.Value, in)
			}
			values[setting.Name] = value
			if same := (facts.Setting{Value: strings.TrimSuffix(formatFloat(value), ".0"), Unit: kind.unit, VarType: "real"}); kind.unit != "bool" && !InForce(setting.Name, setting.Value, same) {
				t.Fatalf("%s = %s is not seen as in force by %+v", setting.Name, setting.Value, same)
			}
		}
		allocated := values["shared_buffers"]*8192 + values["wal_buffers"]*8192 + values["maintenance_work_mem"]*1024 +
			3*values["autovacuum_work_mem"]*1024 + values["max_connections"]*values["work_mem"]*1024
		if allocated >= float64(in.MemoryBytes) {
			t.Fatalf("%.0f of %d bytes may be allocated: %+v", allocated, in.MemoryBytes, values)
		}
		if values["min_wal_size"] > values["max_wal_size"] || values["max_wal_size"]*float64(mB) > float64(in.VolumeBytes)/2 {
			t.Fatalf("WAL sizes do not fit a volume of %d: %+v", in.VolumeBytes, values)
		}
		parseable(t, Render(result.Server()))
	})
}

// parseable reads lines as guc-file.l does: a name, an equals sign, one quoted word.
func parseable(t *testing.T, config string) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSuffix(config, "\n"), "\n") {
		name, value, found := strings.Cut(line, " = ")
		if !found || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") != "" {
			t.Fatalf("no setting: %q", line)
		}
		if len(value) < 2 || value[0] != '\'' || value[len(value)-1] != '\'' {
			t.Fatalf("not quoted: %q", line)
		}
		inner := strings.NewReplacer(`''`, "", `\\`, "").Replace(value[1 : len(value)-1])
		if strings.ContainsAny(inner, `'\`) {
			t.Fatalf("ends early: %q", line)
		}
	}
}

// FuzzQuote: no value of a user breaks out of its line.
func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"", "on", "it's", `\`, "a\nfsync = off", `\'`, "''"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		parseable(t, Render(map[string]string{"name": value}))
	})
}

// FuzzUnits: reading never panics, and what is printed reads as the same amount.
func FuzzUnits(f *testing.F) {
	for _, seed := range []string{"1GB", "131072", "15min", "0x10", "1e3", "-1", "8 kB", "٣", "1e", "..", "0.5h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, unit := range []string{"", "8kB", "kB", "MB", "ms", "s", "min"} {
			number, ok := inUnit(value, unit)
			if !ok || number < 0 || number != float64(int64(number)) || number > 1<<40 {
				continue
			}
			setting := facts.Setting{Value: formatFloat(number), Unit: unit, VarType: "integer"}
			if !InForce("x", value, setting) {
				t.Fatalf("%q in %q is %v and not in force by itself", value, unit, number)
			}
			if unit != "" && !InForce("x", format(setting), setting) {
				t.Fatalf("%q prints as %q, which is another amount", setting.Value+setting.Unit, format(setting))
			}
		}
	})
}

package tuning

import (
	"maps"
	"slices"
	"strings"
)

// Render settings as lines of postgresql.conf, in the order of their names.
func Render(settings map[string]string) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		out.WriteString(name + " = " + Quote(settings[name]) + "\n")
	}
	return out.String()
}

// Quote a value for postgresql.conf: in single quotes, with quotes doubled and backslashes escaped
// (guc-file.l reads both).
func Quote(value string) string {
	return "'" + strings.NewReplacer("'", "''", `\`, `\\`, "\n", " ", "\r", " ", "\x00", "").Replace(value) + "'"
}

package tuning

import (
	"math"
	"strings"

	"authstack.dev/authstack/internal/facts"
)

// synonyms of enumeration values, as PostgreSQL stores them.
var synonyms = map[string]map[string]string{
	"wal_compression": {"on": "pglz", "true": "pglz", "yes": "pglz", "1": "pglz", "false": "off", "no": "off", "0": "off"},
}

// InForce is whether a desired value is what PostgreSQL uses, whatever the notation: 1GB and 131072
// pages of 8kB, on and true, 15min and 900 s.
func InForce(name, desired string, actual facts.Setting) bool {
	if actual.VarType == "string" {
		return desired == actual.Value
	}
	desired = strings.TrimSpace(desired)
	// -1 lets PostgreSQL choose at its start, and pg_settings shows the choice.
	if name == "wal_buffers" && desired == "-1" {
		return true
	}
	switch actual.VarType {
	case "bool":
		want, ok := parseBool(desired)
		have, okHave := parseBool(actual.Value)
		return ok && okHave && want == have
	case "integer", "real":
		return sameNumber(desired, actual)
	case "enum":
		return enumValue(name, desired) == enumValue(name, actual.Value)
	case "":
		// A fact without its type is compared every way that could be meant.
		if want, ok := parseBool(desired); ok && !isNumber(desired) {
			have, okHave := parseBool(actual.Value)
			return okHave && want == have
		}
		return desired == actual.Value || sameNumber(desired, actual)
	}
	return desired == actual.Value
}

func isNumber(value string) bool {
	_, _, ok := splitValue(value)
	return ok
}

func sameNumber(desired string, actual facts.Setting) bool {
	want, ok := inUnit(desired, actual.Unit)
	have, unit, okHave := splitValue(actual.Value)
	if !ok || !okHave || unit != "" {
		return false
	}
	if actual.VarType == "real" {
		return math.Abs(want-have) <= 1e-9*math.Max(1, math.Abs(want))
	}
	// PostgreSQL rounds to whole base units.
	return math.Round(want) == math.Round(have)
}

func enumValue(name, value string) string {
	value = strings.ToLower(strings.TrimSpace(value))
	if synonym, ok := synonyms[name][value]; ok {
		// Before PostgreSQL 15 wal_compression is a bool and does not get here.
		return synonym
	}
	if name == "wal_compression" {
		return value
	}
	// Enumerations that grew out of booleans (synchronous_commit, huge_pages, …) take their spellings.
	switch value {
	case "true", "yes", "1":
		return "on"
	case "false", "no", "0":
		return "off"
	}
	return value
}

// format a value of pg_settings for people: 131072 with unit 8kB is 1GB.
func format(setting facts.Setting) string {
	number, unit, ok := splitValue(setting.Value)
	if !ok || unit != "" || setting.Unit == "" || number < 0 {
		return setting.Value
	}
	if factor, memory := memoryUnits[setting.Unit]; memory {
		return formatIn(number*factor, []string{"TB", "GB", "MB", "kB", "B"}, memoryUnits)
	}
	if factor, time := timeUnits[setting.Unit]; time {
		return formatIn(number*factor, []string{"d", "h", "min", "s", "ms", "us"}, timeUnits)
	}
	return setting.Value + " " + setting.Unit
}

func formatIn(amount float64, order []string, units map[string]float64) string {
	if amount == 0 {
		return "0"
	}
	for _, unit := range order {
		if whole := amount / units[unit]; whole >= 1 && whole == math.Trunc(whole) {
			return strings.TrimSuffix(formatFloat(whole), ".0") + unit
		}
	}
	return formatFloat(amount)
}

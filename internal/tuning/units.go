package tuning

import (
	"math"
	"strconv"
	"strings"
)

// factors of PostgreSQL's units: memory in bytes, time in microseconds.
var (
	memoryUnits = map[string]float64{
		"B": 1, "kB": 1 << 10, "8kB": 8 << 10, "MB": 1 << 20, "16MB": 16 << 20, "GB": 1 << 30, "TB": 1 << 40,
	}
	timeUnits = map[string]float64{"us": 1, "ms": 1e3, "s": 1e6, "min": 60e6, "h": 3600e6, "d": 86400e6}
)

// splitValue parts a value in postgresql.conf's notation into number and unit: "1GB", "15 min", "0.9".
// Units are case-sensitive, as PostgreSQL's are.
func splitValue(value string) (number float64, unit string, ok bool) {
	value = strings.TrimSpace(value)
	end := 0
	for end < len(value) && strings.ContainsRune("0123456789.+-eEx", rune(value[end])) {
		// An e that starts no exponent belongs to the unit; no unit starts with e, so nothing is lost.
		end++
	}
	digits, unit := value[:end], strings.TrimSpace(value[end:])
	if whole, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return float64(whole), unit, true
	}
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
		return 0, "", false
	}
	return number, unit, true
}

// inUnit converts a value to a base unit of pg_settings. A bare number is in the base unit already.
func inUnit(value, base string) (float64, bool) {
	number, unit, ok := splitValue(value)
	if !ok {
		return 0, false
	}
	if unit == "" {
		return number, true
	}
	for _, family := range []map[string]float64{memoryUnits, timeUnits} {
		from, known := family[unit]
		to, fits := family[base]
		// 8kB and 16MB are units of pg_settings, not of postgresql.conf.
		if known && fits && unit != "8kB" && unit != "16MB" {
			return number * from / to, true
		}
	}
	return 0, false
}

// parseBool reads PostgreSQL's spellings of a boolean, unambiguous prefixes included.
func parseBool(value string) (on, ok bool) {
	value = strings.ToLower(strings.TrimSpace(value))
	switch value {
	case "":
		return false, false
	case "1", "on":
		return true, true
	case "0", "of", "off":
		return false, true
	}
	for _, word := range []struct {
		text string
		on   bool
	}{{"true", true}, {"yes", true}, {"false", false}, {"no", false}} {
		if strings.HasPrefix(word.text, value) {
			return word.on, true
		}
	}
	return false, false
}

// kind is how the values of a setting of this package are read.
type kind struct {
	// unit of pg_settings; empty for a plain number; "bool" and "enum" are not numbers.
	unit    string
	minimum float64
	example string
}

// kinds of the settings that this package computes and of others that are often set, with
// PostgreSQL's minimum in the unit of pg_settings (src/backend/utils/misc/guc_tables.c).
var kinds = map[string]kind{
	"shared_buffers":                  {"8kB", 16, "256MB"},
	"effective_cache_size":            {"8kB", 1, "1GB"},
	"work_mem":                        {"kB", 64, "8MB"},
	"maintenance_work_mem":            {"kB", 64, "128MB"},
	"autovacuum_work_mem":             {"kB", -1, "64MB"},
	"wal_buffers":                     {"8kB", -1, "16MB"},
	"max_wal_size":                    {"MB", 32, "4GB"},
	"min_wal_size":                    {"MB", 32, "1GB"},
	"checkpoint_timeout":              {"s", 30, "15min"},
	"checkpoint_completion_target":    {"", 0, "0.9"},
	"max_connections":                 {"", 10, "200"},
	"tcp_keepalives_idle":             {"s", 0, "60"},
	"tcp_keepalives_interval":         {"s", 0, "10"},
	"tcp_keepalives_count":            {"", 0, "6"},
	"random_page_cost":                {"", 0, "1.1"},
	"effective_io_concurrency":        {"", 0, "200"},
	"autovacuum_analyze_threshold":    {"", 0, "10"},
	"autovacuum_analyze_scale_factor": {"", 0, "0.05"},
	"autovacuum_vacuum_scale_factor":  {"", 0, "0.05"},
	"autovacuum_naptime":              {"s", 1, "30s"},
	"join_collapse_limit":             {"", 1, "4"},
	"wal_writer_delay":                {"ms", 1, "200ms"},
	"commit_delay":                    {"", 0, "0"},
	"jit":                             {"bool", 0, "off"},
	"track_io_timing":                 {"bool", 0, "on"},
	"track_wal_io_timing":             {"bool", 0, "on"},
	"autovacuum":                      {"bool", 0, "on"},
}

func (k kind) parse(value string) (float64, bool) {
	if k.unit == "bool" {
		_, ok := parseBool(value)
		return 0, ok
	}
	return inUnit(value, k.unit)
}

func (k kind) words() string {
	switch {
	case k.unit == "bool":
		return "on or off"
	case k.unit == "":
		return "a number"
	case memoryUnits[k.unit] != 0:
		return "an amount of memory in kB, MB or GB"
	}
	return "a duration in ms, s or min"
}

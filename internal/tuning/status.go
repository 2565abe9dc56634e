package tuning

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
)

func formatFloat(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }

// Outcome is where the settings stand: a reason of api/v1alpha1 and a sentence.
type Outcome struct {
	Ready           bool
	Reason, Message string
}

// Compare the desired settings with those in force, for status, and judge. database is nil where it
// did not answer. Running is not in force: only what PostgreSQL itself says counts
// (facts/postgres-ceph.md A2).
func Compare(settings []Setting, database *facts.Database) ([]v1alpha1.SettingStatus, Outcome) {
	statuses := make([]v1alpha1.SettingStatus, 0, len(settings))
	var pending, different []string
	for _, setting := range settings {
		status := v1alpha1.SettingStatus{
			Name: setting.Name, Scope: string(setting.Scope), Desired: setting.Value, Reason: setting.Reason,
		}
		actual, known := lookUp(setting, database)
		if known {
			status.InForce, status.Source, status.PendingRestart = format(actual), actual.Source, actual.PendingRestart
		}
		statuses = append(statuses, status)
		switch {
		case database == nil:
		case known && InForce(setting.Name, setting.Value, actual):
			if actual.PendingRestart {
				pending = append(pending, setting.Name)
			}
		case known && actual.PendingRestart:
			pending = append(pending, setting.Name)
		case known:
			different = append(different, fmt.Sprintf("%s is %s (source: %s) instead of %s", setting.Name, format(actual), cmp.Or(actual.Source, "unknown"), setting.Value))
		default:
			different = append(different, fmt.Sprintf("%s is unknown to this PostgreSQL", setting.Name))
		}
	}
	slices.SortFunc(statuses, func(a, b v1alpha1.SettingStatus) int { return cmp.Compare(a.Name, b.Name) })
	return statuses, judge(len(settings), database, pending, different)
}

// lookUp what is in force. A role setting is in effect for new connections of the role, so the
// server's answer to the product's role counts; what ALTER ROLE holds is the fallback, since the
// connection that asked may be older than the setting.
func lookUp(setting Setting, database *facts.Database) (facts.Setting, bool) {
	if database == nil {
		return facts.Setting{}, false
	}
	actual, known := database.Settings[setting.Name]
	if setting.Scope != ScopeRole {
		return actual, known
	}
	held, set := database.RoleSettings[setting.Name]
	if known && set && !InForce(setting.Name, setting.Value, actual) && InForce(setting.Name, setting.Value, facts.Setting{Value: held, VarType: actual.VarType}) {
		actual.Value, actual.Source, actual.PendingRestart = held, "database user", false
	}
	return actual, known
}

func judge(count int, database *facts.Database, pending, different []string) Outcome {
	if database == nil {
		return Outcome{Reason: v1alpha1.ReasonDependencyNotReady, Message: "what PostgreSQL has in force is read when it answers"}
	}
	for _, name := range unsafe {
		actual, known := database.Settings[name]
		if on, ok := parseBool(actual.Value); known && ok && !on {
			return Outcome{Reason: v1alpha1.ReasonUnsafeDurability, Message: fmt.Sprintf(
				"PostgreSQL runs with %s=off (source: %s): a crash can corrupt the database; remove the setting where it was made", name, cmp.Or(actual.Source, "unknown"))}
		}
	}
	switch {
	case len(different) > 0:
		return Outcome{Reason: v1alpha1.ReasonNotInForce, Message: "not in force yet: " + shorten(different, 4)}
	case len(pending) > 0:
		return Outcome{Reason: v1alpha1.ReasonPendingRestart, Message: "PostgreSQL takes these settings at its next restart: " + shorten(pending, 8)}
	}
	return Outcome{Ready: true, Reason: v1alpha1.ReasonReady, Message: fmt.Sprintf("all %d settings are in force", count)}
}

func shorten(words []string, n int) string {
	if len(words) > n {
		return strings.Join(words[:n], ", ") + fmt.Sprintf(" and %d more", len(words)-n)
	}
	return strings.Join(words, ", ")
}

// defaults of PostgreSQL for the settings that this package computes, in postgresql.conf's notation;
// the fallback where pg_settings.boot_val is not known.
var defaults = map[string]string{
	"shared_buffers": "128MB", "effective_cache_size": "4GB", "work_mem": "4MB",
	"maintenance_work_mem": "64MB", "autovacuum_work_mem": "-1", "wal_buffers": "-1",
	"max_wal_size": "1GB", "min_wal_size": "80MB", "checkpoint_timeout": "5min",
	"checkpoint_completion_target": "0.9", "wal_compression": "off", "wal_level": "replica",
	"max_connections": "100", "tcp_keepalives_idle": "0", "tcp_keepalives_interval": "0",
	"tcp_keepalives_count": "0", "random_page_cost": "4", "effective_io_concurrency": "1",
	"autovacuum_analyze_threshold": "50", "autovacuum_analyze_scale_factor": "0.1",
	"autovacuum_vacuum_scale_factor": "0.2", "autovacuum_naptime": "1min",
	"track_io_timing": "off", "track_wal_io_timing": "off",
}

// Restore adds server settings that were once made and are asked no longer, with PostgreSQL's own
// default: Zalando's operator never unsets a parameter whose key has gone from its manifest
// (postgres-operator #3061). previous is status.database.settings, the memory of what was made. Once
// the default is in force the setting is forgotten. It returns the names whose default is not known.
func Restore(settings []Setting, previous []v1alpha1.SettingStatus, database *facts.Database) (out []Setting, unknown []string) {
	out = settings
	for _, before := range previous {
		if before.Scope != string(ScopeServer) || slices.ContainsFunc(settings, func(s Setting) bool { return s.Name == before.Name }) {
			continue
		}
		var actual facts.Setting
		known := false
		if database != nil {
			actual, known = database.Settings[before.Name]
		}
		value, found := defaults[before.Name], false
		if found = value != ""; known && actual.BootValue != "" {
			value, found = actual.BootValue, true
		}
		if !found {
			unknown = append(unknown, before.Name)
			continue
		}
		if known && !actual.PendingRestart && InForce(before.Name, value, actual) {
			continue
		}
		out = append(out, Setting{
			Name: before.Name, Value: value, Scope: ScopeServer, NeedsRestart: restart[before.Name],
			Reason: "no longer asked for; PostgreSQL's default is written back, since Zalando's operator never unsets a parameter",
		})
	}
	return out, unknown
}

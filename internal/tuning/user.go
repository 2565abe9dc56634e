package tuning

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// userReason of a setting that the user gave.
const userReason = "set in spec.postgres.parameters"

// refused are parameters that no layer may set; the CRD refuses them too. The value is why.
var refused = map[string]string{
	"synchronous_commit":      "it is set by spec.postgres.durability",
	"listen_addresses":        "it belongs to the operator",
	"port":                    "it belongs to the operator",
	"data_directory":          "it belongs to the operator",
	"config_file":             "it belongs to the operator",
	"hba_file":                "it belongs to the operator",
	"ident_file":              "it belongs to the operator",
	"external_pid_file":       "it belongs to the operator",
	"unix_socket_directories": "it belongs to the operator",
	"archive_command":         "it runs a command in the database Pod",
	"restore_command":         "it runs a command in the database Pod",
	"archive_cleanup_command": "it runs a command in the database Pod",
	"recovery_end_command":    "it runs a command in the database Pod",
	"ssl_passphrase_command":  "it runs a command in the database Pod",
	"archive_library":         "it loads code into the database",
	"zero_damaged_pages":      "it hides corruption by destroying data",
	"ignore_checksum_failure": "it hides corruption",
}

// unsafe are the settings that may only be on: without them a crash corrupts the database.
var unsafe = []string{"fsync", "full_page_writes"}

// Refuse says why a parameter may not be set to a value, or returns "".
func Refuse(name, value string) string {
	if reason, found := refused[strings.ToLower(name)]; found {
		return reason
	}
	if slices.Contains(unsafe, strings.ToLower(name)) {
		if on, ok := parseBool(value); !ok || !on {
			return "without it a crash corrupts the database; write durability: Relaxed for a faster commit that cannot corrupt"
		}
	}
	if strings.ContainsAny(value, "\n\r\x00") {
		return "a value has no line breaks"
	}
	return ""
}

// overlay puts the user's layer over the computed one. A parameter that is computed for the role is
// replaced there, or the role's setting would hide it.
func overlay(in Input, settings []Setting) (out []Setting, refusals []string) {
	at := map[string]int{}
	for i, setting := range settings {
		at[setting.Name] = i
	}
	for _, name := range slices.Sorted(maps.Keys(in.Parameters)) {
		value := in.Parameters[name]
		why := Refuse(name, value)
		if why == "" {
			why = misfit(in, name, value)
		}
		if why != "" {
			refusals = append(refusals, fmt.Sprintf("spec.postgres.parameters.%s is left out: %s", name, why))
			continue
		}
		given := Setting{Name: name, Value: value, Scope: ScopeServer, Reason: userReason, NeedsRestart: restart[name]}
		if i, computed := at[name]; computed {
			given.Scope = settings[i].Scope
			settings[i] = given
			continue
		}
		settings = append(settings, given)
	}
	return settings, refusals
}

// misfit says why a value cannot work though its name is allowed: a PostgreSQL that cannot read its
// configuration, or cannot get its memory, does not start.
func misfit(in Input, name, value string) string {
	kind, known := kinds[name]
	if !known {
		return ""
	}
	number, ok := kind.parse(value)
	if !ok {
		return fmt.Sprintf("%q is not %s; write for example %s", value, kind.words(), kind.example)
	}
	if number < kind.minimum {
		return fmt.Sprintf("%s is below PostgreSQL's minimum", value)
	}
	if name == "shared_buffers" && in.MemoryBytes > 0 && number*8*1024 > float64(in.MemoryBytes)*0.8 {
		return fmt.Sprintf("%s does not fit into the memory limit of %s; raise spec.postgres.resources.limits.memory first", value, inMB(in.MemoryBytes))
	}
	return ""
}

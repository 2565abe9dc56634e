package postgres

import (
	"embed"

	"authstack.dev/authstack/internal/tuning"
)

//go:embed scripts
var scripts embed.FS

// fixed settings of the standalone PostgreSQL, which are not tuning.
var fixed = map[string]string{
	"listen_addresses":        "*",
	"port":                    "5432",
	"hba_file":                configMount + "/pg_hba.conf",
	"unix_socket_directories": socketMount,
	"password_encryption":     "scram-sha-256",
	"log_destination":         "stderr",
	"logging_collector":       "off",
	"log_line_prefix":         "%m [%p] %q%u@%d ",
	"log_checkpoints":         "on",
	"log_lock_waits":          "on",
	"log_timezone":            "UTC",
	"timezone":                "UTC",
}

// configuration is the ConfigMap of the standalone PostgreSQL: its scripts, who may connect, and
// postgresql.conf from the settings.
func configuration(settings tuning.Result) map[string]string {
	files := map[string]string{}
	entries, err := scripts.ReadDir("scripts")
	if err != nil {
		panic(err) // The files are compiled in.
	}
	for _, entry := range entries {
		content, err := scripts.ReadFile("scripts/" + entry.Name())
		if err != nil {
			panic(err)
		}
		files[entry.Name()] = string(content)
	}
	computed := settings.Server()
	own := map[string]string{}
	for name, value := range fixed {
		if _, given := computed[name]; !given {
			own[name] = value
		}
	}
	files["postgresql.conf"] = "# Rendered by authstack; changes are overwritten.\n# Fixed:\n" +
		tuning.Render(own) + "# Tuning, with reasons in status.database.settings of the AuthStack:\n" + tuning.Render(computed)
	return files
}

package tuning

import (
	"strings"
	"testing"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
)

func byName(settings []Setting) map[string]Setting {
	out := map[string]Setting{}
	for _, setting := range settings {
		out[setting.Name] = setting
	}
	return out
}

func recommend(change func(*Input)) map[string]Setting {
	in := Input{Major: 17, MemoryBytes: gB, VolumeBytes: 10 * gB, Medium: v1alpha1.MediumNodeLocal, Product: "authentik", Connections: 138, DeepJoins: true}
	if change != nil {
		change(&in)
	}
	return byName(Recommend(in).Settings)
}

func TestRecommended(t *testing.T) {
	for sentence, test := range map[string]struct {
		change      func(*Input)
		name, value string
		scope       Scope
	}{
		"a quarter of the memory is for shared_buffers":                     {nil, "shared_buffers", "256MB", ScopeServer},
		"sixteen times the memory gives sixteen times the shared_buffers":   {func(in *Input) { in.MemoryBytes = 16 * gB }, "shared_buffers", "4096MB", ScopeServer},
		"connections follow the product's budget":                           {nil, "max_connections", "153", ScopeServer},
		"connections are bounded by a small memory":                         {func(in *Input) { in.MemoryBytes = 256 * mB }, "max_connections", "76", ScopeServer},
		"WAL may take a quarter of a small volume":                          {func(in *Input) { in.VolumeBytes = gB }, "max_wal_size", "256MB", ScopeServer},
		"WAL takes at most 4 GB of a large volume":                          {func(in *Input) { in.VolumeBytes = 100 * gB }, "max_wal_size", "4096MB", ScopeServer},
		"WAL is compressed with lz4 from 15":                                {nil, "wal_compression", "lz4", ScopeServer},
		"WAL is compressed with pglz before 15":                             {func(in *Input) { in.Major = 14 }, "wal_compression", "on", ScopeServer},
		"deep joins are not compiled":                                       {nil, "jit", "off", ScopeRole},
		"deep joins are planned in the order they are written":              {nil, "join_collapse_limit", "4", ScopeRole},
		"Strict waits for the WAL":                                          {nil, "synchronous_commit", "on", ScopeRole},
		"Relaxed does not, for the product's role alone":                    {func(in *Input) { in.Durability = v1alpha1.DurabilityRelaxed }, "synchronous_commit", "off", ScopeRole},
		"the user's value replaces the computed one":                        {func(in *Input) { in.Parameters = map[string]string{"work_mem": "8MB"} }, "work_mem", "8MB", ScopeServer},
		"the user's value of a role setting is made where it is not hidden": {func(in *Input) { in.Parameters = map[string]string{"jit": "on"} }, "jit", "on", ScopeRole},
		"a parameter that is not computed is passed on":                     {func(in *Input) { in.Parameters = map[string]string{"pg_stat_statements.max": "9"} }, "pg_stat_statements.max", "9", ScopeServer},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, found := recommend(test.change)[test.name]
			if !found || got.Value != test.value || got.Scope != test.scope {
				t.Errorf("%s = %+v, want %s in scope %s", test.name, got, test.value, test.scope)
			}
		})
	}
}

func TestEachSettingHasAReason(t *testing.T) {
	for name, setting := range recommend(nil) {
		if len(setting.Reason) < 10 {
			t.Errorf("%s has no reason: %q", name, setting.Reason)
		}
		if setting.Scope == ScopeServer {
			if _, known := kinds[name]; !known && name != "wal_compression" && name != "wal_level" {
				t.Errorf("the notation of %s is not known, so a wrong value of the user would stop PostgreSQL", name)
			}
			if _, known := defaults[name]; !known {
				t.Errorf("the default of %s is not known, so it could not be taken back", name)
			}
		}
	}
	if reason := recommend(func(in *Input) { in.Parameters = map[string]string{"work_mem": "8MB"} })["work_mem"].Reason; reason != "set in spec.postgres.parameters" {
		t.Errorf("the user's layer has the reason %q", reason)
	}
}

func TestAnExternalServerGetsRoleSettingsOnly(t *testing.T) {
	for name, setting := range recommend(func(in *Input) { in.External = true }) {
		if setting.Scope != ScopeRole {
			t.Errorf("%s would be set on a server that is not ours", name)
		}
	}
}

func TestRefusedParametersAreLeftOutAndNamed(t *testing.T) {
	for name, value := range map[string]string{
		"fsync": "off", "full_page_writes": "false", "synchronous_commit": "off", "archive_command": "rm -rf /",
		"listen_addresses": "*", "zero_damaged_pages": "on", "work_mem": "lots", "shared_buffers": "4GB",
		"max_connections": "2", "log_line_prefix": "a\nfsync = off",
	} {
		result := Recommend(Input{Major: 17, MemoryBytes: gB, Parameters: map[string]string{name: value}})
		if len(result.Refused) != 1 || !strings.Contains(result.Refused[0], name) {
			t.Errorf("%s=%q: refused is %q", name, value, result.Refused)
		}
		if got := byName(result.Settings)[name].Value; got == value {
			t.Errorf("%s=%q was let through", name, value)
		}
	}
	if result := Recommend(Input{Major: 17, MemoryBytes: gB, Parameters: map[string]string{"fsync": "on"}}); len(result.Refused) != 0 {
		t.Errorf("fsync=on is refused: %q", result.Refused)
	}
}

func TestInForce(t *testing.T) {
	pages := facts.Setting{Value: "131072", Unit: "8kB", VarType: "integer"}
	for sentence, test := range map[string]struct {
		name, desired string
		actual        facts.Setting
		want          bool
	}{
		"1GB is 131072 pages":                        {"shared_buffers", "1GB", pages, true},
		"1024MB is 131072 pages":                     {"shared_buffers", "1024MB", pages, true},
		"0.001TB is not 131072 pages":                {"shared_buffers", "0.001TB", pages, false},
		"a bare number is in the unit of the server": {"shared_buffers", "131072", pages, true},
		"2GB is not":                                 {"shared_buffers", "2GB", pages, false},
		"15min is 900 s":                             {"checkpoint_timeout", "15min", facts.Setting{Value: "900", Unit: "s", VarType: "integer"}, true},
		"200ms with a space is 200 ms":               {"wal_writer_delay", "200 ms", facts.Setting{Value: "200", Unit: "ms", VarType: "integer"}, true},
		"units are case-sensitive":                   {"work_mem", "8mb", facts.Setting{Value: "8192", Unit: "kB", VarType: "integer"}, false},
		"on is true":                                 {"jit", "true", facts.Setting{Value: "on", VarType: "bool"}, true},
		"f is off":                                   {"jit", "f", facts.Setting{Value: "off", VarType: "bool"}, true},
		"o means nothing":                            {"jit", "o", facts.Setting{Value: "off", VarType: "bool"}, false},
		"0.90 is 0.9":                                {"checkpoint_completion_target", "0.90", facts.Setting{Value: "0.9", VarType: "real"}, true},
		"1.1 is not 1.2":                             {"random_page_cost", "1.1", facts.Setting{Value: "1.2", VarType: "real"}, false},
		"enumerations know no case":                  {"wal_compression", "LZ4", facts.Setting{Value: "lz4", VarType: "enum"}, true},
		"compression on is pglz":                     {"wal_compression", "on", facts.Setting{Value: "pglz", VarType: "enum"}, true},
		"compression lz4 is not pglz":                {"wal_compression", "lz4", facts.Setting{Value: "pglz", VarType: "enum"}, false},
		"synchronous_commit false is off":            {"synchronous_commit", "false", facts.Setting{Value: "off", VarType: "enum"}, true},
		"synchronous_commit local is not on":         {"synchronous_commit", "local", facts.Setting{Value: "on", VarType: "enum"}, false},
		"PostgreSQL chose wal_buffers itself":        {"wal_buffers", "-1", facts.Setting{Value: "512", Unit: "8kB", VarType: "integer"}, true},
		"text is compared as it is":                  {"log_line_prefix", "%m ", facts.Setting{Value: "%m ", VarType: "string"}, true},
		"a fact without a type is still understood":  {"work_mem", "8MB", facts.Setting{Value: "8192", Unit: "kB"}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := InForce(test.name, test.desired, test.actual); got != test.want {
				t.Errorf("InForce(%s, %q, %+v) = %v", test.name, test.desired, test.actual, got)
			}
		})
	}
}

func TestCompareSaysWhatIsInForce(t *testing.T) {
	settings := []Setting{
		{Name: "shared_buffers", Value: "256MB", Scope: ScopeServer, NeedsRestart: true},
		{Name: "synchronous_commit", Value: "on", Scope: ScopeRole},
	}
	buffers := facts.Setting{Value: "32768", Unit: "8kB", VarType: "integer", Source: "configuration file"}
	waiting := facts.Setting{Value: "16384", Unit: "8kB", VarType: "integer", Source: "configuration file", PendingRestart: true}
	old := facts.Setting{Value: "16384", Unit: "8kB", VarType: "integer", Source: "default"}
	commit := facts.Setting{Value: "on", VarType: "enum", Source: "default"}
	async := facts.Setting{Value: "off", VarType: "enum", Source: "database"}
	unsafely := facts.Setting{Value: "off", VarType: "bool", Source: "command line"}
	for sentence, test := range map[string]struct {
		settings map[string]facts.Setting
		role     map[string]string
		reason   string
		says     string
	}{
		"everything is in force":                        {map[string]facts.Setting{"shared_buffers": buffers, "synchronous_commit": commit}, nil, v1alpha1.ReasonReady, "all 2"},
		"a changed value waits for a restart":           {map[string]facts.Setting{"shared_buffers": waiting, "synchronous_commit": commit}, nil, v1alpha1.ReasonPendingRestart, "shared_buffers"},
		"another value is in force, with its source":    {map[string]facts.Setting{"shared_buffers": old, "synchronous_commit": commit}, nil, v1alpha1.ReasonNotInForce, "128MB (source: default) instead of 256MB"},
		"somebody relaxed the database":                 {map[string]facts.Setting{"shared_buffers": buffers, "synchronous_commit": async}, nil, v1alpha1.ReasonNotInForce, "synchronous_commit is off"},
		"the role's setting counts for new connections": {map[string]facts.Setting{"shared_buffers": buffers, "synchronous_commit": async}, map[string]string{"synchronous_commit": "on"}, v1alpha1.ReasonReady, ""},
		"a parameter that this server does not have":    {map[string]facts.Setting{"shared_buffers": buffers}, nil, v1alpha1.ReasonNotInForce, "unknown to this PostgreSQL"},
		"fsync off beats everything":                    {map[string]facts.Setting{"shared_buffers": old, "synchronous_commit": commit, "fsync": unsafely}, nil, v1alpha1.ReasonUnsafeDurability, "fsync=off"},
		"full_page_writes off is as bad":                {map[string]facts.Setting{"shared_buffers": buffers, "synchronous_commit": commit, "full_page_writes": unsafely}, nil, v1alpha1.ReasonUnsafeDurability, "full_page_writes=off"},
	} {
		t.Run(sentence, func(t *testing.T) {
			statuses, outcome := Compare(settings, &facts.Database{Settings: test.settings, RoleSettings: test.role})
			if outcome.Reason != test.reason || !strings.Contains(outcome.Message, test.says) || outcome.Ready != (test.reason == v1alpha1.ReasonReady) {
				t.Errorf("outcome %+v, want %s: …%s…", outcome, test.reason, test.says)
			}
			if len(statuses) != 2 {
				t.Errorf("%d statuses", len(statuses))
			}
		})
	}
	if _, outcome := Compare(settings, nil); outcome.Ready {
		t.Error("ready though PostgreSQL did not answer")
	}
}

func TestRestoreWritesDefaultsBack(t *testing.T) {
	desired := []Setting{{Name: "work_mem", Value: "8MB", Scope: ScopeServer}}
	before := []v1alpha1.SettingStatus{
		{Name: "work_mem", Scope: "Server", Desired: "4MB"}, {Name: "random_page_cost", Scope: "Server", Desired: "2"},
		{Name: "log_min_messages", Scope: "Server", Desired: "debug1"}, {Name: "jit", Scope: "Role", Desired: "off"},
	}
	unasked := &facts.Database{Settings: map[string]facts.Setting{
		"random_page_cost": {Value: "2", VarType: "real", BootValue: "4"},
		"log_min_messages": {Value: "debug1", VarType: "enum", BootValue: "warning"},
	}}
	out, unknown := Restore(desired, before, unasked)
	got := byName(out)
	if got["random_page_cost"].Value != "4" || got["log_min_messages"].Value != "warning" || len(out) != 3 || len(unknown) != 0 {
		t.Errorf("restored %+v, unknown %v", got, unknown)
	}
	unasked.Settings["random_page_cost"] = facts.Setting{Value: "4", VarType: "real", BootValue: "4"}
	if out, _ := Restore(desired, before, unasked); byName(out)["random_page_cost"].Value != "" {
		t.Error("a default in force is written for ever")
	}
	if _, unknown := Restore(desired, before, nil); len(unknown) != 1 || unknown[0] != "log_min_messages" {
		t.Errorf("without an answer unknown is %v", unknown)
	}
}

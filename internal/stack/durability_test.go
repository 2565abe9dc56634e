package stack_test

import (
	"slices"
	"strings"
	"testing"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/durability"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack"
)

// relax is what a test does to a settled stack.
type relax = func(*stack.Input)

func ask(level v1alpha1.Durability) relax {
	return func(in *stack.Input) {
		if in.Stack.Spec.Postgres == nil {
			in.Stack.Spec.Postgres = &v1alpha1.PostgresSpec{}
		}
		in.Stack.Spec.Postgres.Durability = level
	}
}

func TestDurability(t *testing.T) {
	const strict, identity, relaxed = v1alpha1.DurabilityStrict, v1alpha1.DurabilityIdentity, v1alpha1.DurabilityRelaxed
	without := func(name string) relax {
		return func(in *stack.Input) {
			in.Facts.Database.Durability.Triggers = slices.DeleteFunc(slices.Clone(in.Facts.Database.Durability.Triggers), func(t facts.Trigger) bool {
				return t.Table == "authentik_core_session" && t.Name == name
			})
		}
	}
	change := func(f func(*facts.Trigger)) relax {
		return func(in *stack.Input) {
			triggers := slices.Clone(in.Facts.Database.Durability.Triggers)
			for i := range triggers {
				if triggers[i].Table == "authentik_core_session" && triggers[i].Name == durability.RowName("UPDATE") {
					f(&triggers[i])
				}
			}
			in.Facts.Database.Durability.Triggers = triggers
		}
	}
	for sentence, test := range map[string]struct {
		base   string
		change []relax
		// inForce and relaxed are what the status says; installs and removes are the tables of the change.
		inForce           v1alpha1.Durability
		relaxed           int
		installs, removes int
		// tuned is whether TuningApplied holds; says is in the note or the condition.
		tuned bool
		says  string
		// withheld is whether the product's objects wait.
		withheld bool
	}{
		"by default, authentik":                 {smallest, nil, identity, 7, 0, 0, true, "no user, credential, token, event, logout, revocation or task in the queue", false},
		"by default, authentik with Redis":      {blueprint, nil, identity, 5, 0, 0, true, "", false},
		"by default, Authelia":                  {replicas, nil, strict, 0, 0, 0, true, "Authelia keeps nothing in PostgreSQL that can be made again", false},
		"asked for, Authelia":                   {replicas, []relax{ask(identity)}, strict, 0, 0, 0, true, "Authelia keeps nothing", false},
		"asked for":                             {smallest, []relax{ask(identity)}, identity, 7, 0, 0, true, "", false},
		"Strict is asked for, the triggers go":  {smallest, []relax{ask(strict)}, identity, 7, 0, 7, true, "", false},
		"Strict, the triggers are gone":         {smallest, []relax{ask(strict), func(in *stack.Input) { in.Facts.Database.Durability = facts.Durability{} }}, strict, 0, 0, 0, true, "takes no acknowledged commit", false},
		"Relaxed is asked for, the triggers go": {smallest, []relax{ask(relaxed)}, identity, 7, 0, 7, false, "Relaxed comes into force", false},
		"the database itself is relaxed":        {smallest, []relax{func(in *stack.Input) { in.Facts.Database.RoleSettings = map[string]string{"synchronous_commit": "off"} }}, relaxed, 0, 0, 0, true, "logins, logouts, password changes", false},
		"the trigger after UPDATE is missing":   {smallest, []relax{ask(identity), without(durability.RowName("UPDATE"))}, identity, 6, 7, 0, false, "authentik_core_session lacks authstack_durability_update", false},
		"it is missing and nobody asked":        {smallest, []relax{without(durability.RowName("UPDATE"))}, identity, 6, 7, 0, true, "", false},
		"it is disabled":                        {smallest, []relax{ask(identity), change(func(t *facts.Trigger) { t.Enabled = "D" })}, identity, 6, 7, 0, false, "authstack_durability_update", false},
		"it was replaced":                       {smallest, []relax{ask(identity), change(func(t *facts.Trigger) { t.Comment = "" })}, identity, 7, 7, 0, false, "authstack_durability_update", false},
		"it calls something else":               {smallest, []relax{ask(identity), change(func(t *facts.Trigger) { t.Function = "nothing" })}, identity, 7, 7, 0, false, "authstack_durability_update", false},
		"one of an older release is left over":  {smallest, []relax{ask(identity), leftover}, identity, 6, 7, 0, false, "a set of triggers without authstack_durability_row", false},
		"the function is another": {smallest, []relax{ask(identity), func(in *stack.Input) {
			in.Facts.Database.Durability.Functions = map[string]string{durability.DecideName: "x"}
		}}, identity, 7, 7, 0, false, "the functions are missing", false},
		"somebody's deferred trigger":            {smallest, []relax{ask(identity), stranger}, identity, 6, 0, 0, false, "zzz, which is not ours", false},
		"the same, and nobody asked":             {smallest, []relax{stranger}, identity, 6, 0, 0, true, "zzz, which is not ours", false},
		"triggers on a table that has no reason": {smallest, []relax{ask(identity), astray}, identity, 7, 0, 1, false, "authentik_core_token has triggers that it should not have", false},
		"a new version":                          {smallest, []relax{version("2026.8.9")}, identity, 7, 0, 7, true, "", true},
		"a new image of the same version":        {smallest, []relax{func(in *stack.Input) { in.Stack.Spec.Authentik.Image = "registry.example.com/authentik:x" }}, identity, 7, 0, 7, true, "", true},
		"a version that cannot follow":           {smallest, []relax{version("2025.10.1")}, identity, 7, 0, 0, false, "", false},
		"after the triggers went, the version":   {smallest, []relax{version("2026.8.9"), func(in *stack.Input) { in.Facts.Database.Durability = facts.Durability{} }}, strict, 0, 0, 0, true, "comes into force when the migrations are done", false},
		"a Pod is not ready, nothing changes":    {smallest, []relax{unready, without(durability.RowName("UPDATE"))}, identity, 6, 0, 0, true, "", false},
		"the database does not answer":           {smallest, []relax{func(in *stack.Input) { in.Facts.Database = nil }}, identity, 7, 0, 0, false, "", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			in, _ := settle(t, cases[test.base]())
			for _, change := range test.change {
				change(&in)
			}
			plan := build(t, in)
			status := plan.Status.Database
			if status.Durability != test.inForce || len(status.RelaxedTables) != test.relaxed {
				t.Errorf("in force %q with %d relaxed tables, want %q with %d", status.Durability, len(status.RelaxedTables), test.inForce, test.relaxed)
			}
			if len(plan.Durability.Install) != test.installs || len(plan.Durability.Remove) != test.removes {
				t.Errorf("change %+v, want %d installed and %d removed", plan.Durability, test.installs, test.removes)
			}
			if said := status.DurabilityNote + " " + plan.Tuning.State.Message; !strings.Contains(said, test.says) {
				t.Errorf("%q does not say %q", said, test.says)
			}
			if plan.Tuning.State.Ready != test.tuned {
				t.Errorf("TuningApplied %+v, want %v", plan.Tuning.State, test.tuned)
			}
			if withheld := strings.Contains(plan.IdentityProvider.State.Message, "taken off first") && len(plan.IdentityProvider.Objects) == 0; withheld != test.withheld {
				t.Errorf("the product's objects wait: %v, want %v: %+v", withheld, test.withheld, plan.IdentityProvider.State)
			}
			if len(status.DurabilityNote) > 1024 {
				t.Errorf("a note of %d characters", len(status.DurabilityNote))
			}
		})
	}
}

func version(v string) relax {
	return func(in *stack.Input) { in.Stack.Spec.Authentik.Version = v }
}

func stranger(in *stack.Input) {
	in.Facts.Database.Durability.Triggers = append(slices.Clone(in.Facts.Database.Durability.Triggers),
		facts.Trigger{Schema: "public", Table: "authentik_core_session", Name: "zzz", Function: "audit", Enabled: "O"})
}

func astray(in *stack.Input) {
	in.Facts.Database.Durability.Triggers = append(slices.Clone(in.Facts.Database.Durability.Triggers),
		facts.Trigger{Schema: "public", Table: "authentik_core_token", Name: durability.DecideName, Function: durability.DecideName, Enabled: "O"})
}

func leftover(in *stack.Input) {
	in.Facts.Database.Durability.Triggers = append(slices.Clone(in.Facts.Database.Durability.Triggers),
		facts.Trigger{Schema: "public", Table: "authentik_core_session", Name: "authstack_durability_row", Function: durability.WaitName, Enabled: "A"})
}

func unready(in *stack.Input) {
	w := in.Facts.Workloads["sso-authentik-server"]
	w.Ready, w.Available = 1, 1
	in.Facts.Workloads["sso-authentik-server"] = w
}

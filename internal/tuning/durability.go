package tuning

import "authstack.dev/authstack/api/v1alpha1"

// roleSettings are those of the product's role in its database. They are read at each new
// connection, need no restart and work alike with every provider, external ones included.
func roleSettings(in Input) []Setting {
	role := func(name, value, reason string) Setting {
		return Setting{Name: name, Value: value, Scope: ScopeRole, Reason: reason}
	}
	var settings []Setting
	if in.DeepJoins {
		settings = append(settings,
			role("jit", "off", "compiling queries over dozens of small tables takes longer than running them: 0.9 to 1.1 s instead of 0.25 s on a fresh "+in.Product+" (facts/authentik-measured.md 5, authentik #24179)"),
			role("join_collapse_limit", "4", "two queries with 63 joins each are planned anew at every request: 190 to 249 ms with 8, 129 to 138 ms with 4 (facts/authentik-measured.md 4)"),
		)
	}
	switch in.Durability {
	case v1alpha1.DurabilityRelaxed:
		return append(settings, role("synchronous_commit", "off", "spec.postgres.durability is Relaxed: a commit does not wait for the WAL; set for the product's role, where no database operator undoes it (facts/postgres-ceph.md A4)"))
	case v1alpha1.DurabilityIdentity:
		return append(settings, role("synchronous_commit", "on", "durability IdentityDurable: commits wait for the WAL, but for those that triggers let go (docs/durability.md)"))
	}
	return append(settings, role("synchronous_commit", "on", "durability Strict: an acknowledged commit survives a crash"))
}

// unflushed is how old a commit that did not wait can be and still be lost: the WAL writer may need three rounds for it
// (PostgreSQL docs, "Asynchronous Commit"), each wal_writer_delay, 200 ms by default, and a flush; the 1.2 s were measured
// on a Ceph that three databases loaded (docs/durability.md).
const unflushed = "up to three rounds of the WAL writer, each wal_writer_delay and a flush (about 0.6 s on a fast disk; 1.2 s was seen on a loaded Ceph)"

// DurabilityNote says what a crash can take, or is empty where that is not known.
func DurabilityNote(durability v1alpha1.Durability) string {
	switch durability {
	case v1alpha1.DurabilityRelaxed:
		return "a crash can take the acknowledged commits of " + unflushed + ": logins, logouts, password changes; nothing is corrupted"
	case v1alpha1.DurabilityIdentity:
		return "a crash can take new and changed sessions, cache entries, times of logins, reputation scores and how far background tasks are, of " + unflushed +
			", so that a person logs in again and a task is done twice; no user, credential, token, event, logout, revocation or task in the queue"
	case v1alpha1.DurabilityStrict:
		return "a crash takes no acknowledged commit"
	}
	return ""
}

package durability

import (
	"fmt"
	"strings"
)

// Table whose new and changed rows can be made again.
type Table struct {
	// Name in the schema public.
	Name string
	// Lost says what it means for a person that a crash took the newest rows.
	Lost string
	// relaxedOn are the events whose rows may be lost.
	relaxedOn string
	// waitsOn and waitsWhen are the events, and the rows among them, that make their transaction wait all the same.
	waitsOn, waitsWhen string
	// waitsBut are columns: an UPDATE that changes nothing else does not wait, whatever waitsOn says.
	waitsBut []string
}

// Waits is whether a commit waits for that statement (INSERT, UPDATE or DELETE) on rows of the table that can be made
// again; what WaitsWhen says of other rows is not asked.
func (t Table) Waits(statement string) bool { return !strings.Contains(t.relaxedOn, statement) }

// recreatedKeys are the cache entries that are computed again when they are missing: the throttle's counters
// (facts/authentik-measured.md 2.1), policy results with the application lists among them, and flow plans. All others
// wait: the cache also holds the identifiers of SAML responses that were seen, and losing one would let it be replayed
// (authentik/sources/saml/processors/response.py, CACHE_SEEN_REQUEST_ID).
const recreatedKeys = `^[^:]*:authentik_cache:[0-9]+:(throttle_anon_|goauthentik\.io/policies/(?!reputation/)|goauthentik\.io/flows/planner/)`

var (
	cacheEntry = Table{
		Name:      "django_postgres_cache_cacheentry",
		Lost:      "a policy result, application list or flow plan is computed again, and a client may make the requests of the last moments once more before it is throttled",
		relaxedOn: "INSERT OR UPDATE",
		waitsOn:   "INSERT OR UPDATE", waitsWhen: `NEW.cache_key !~ '` + recreatedKeys + `'`,
	}
	// A logout, a revocation and "delete this session" are DELETEs and wait. An UPDATE that ends something waits too: an
	// earlier expiry, another key, and the end of an impersonation, which is the one right that authentik keeps in the
	// session's data (authentik/core/middleware.py, SESSION_KEY_IMPERSONATE_USER); data is a pickle, in which the
	// key stands as it is. Who is logged in is not in the data but in authenticatedsession.
	session = Table{
		Name:      "authentik_core_session",
		Lost:      "a login of the last moments is asked for again, or one that is under way goes a step back",
		relaxedOn: "INSERT OR UPDATE",
		waitsOn:   "UPDATE",
		waitsWhen: `NEW.session_key IS DISTINCT FROM OLD.session_key OR NEW.expires < OLD.expires OR (NEW.expires IS NULL) <> (OLD.expires IS NULL)` +
			` OR position('authentik/impersonate/user'::bytea IN OLD.session_data) > 0 AND position('authentik/impersonate/user'::bytea IN NEW.session_data) = 0`,
	}
	authenticatedSession = Table{
		Name:      "authentik_core_authenticatedsession",
		Lost:      "a person who logged in within the last moments logs in again",
		relaxedOn: "INSERT",
		waitsOn:   "UPDATE",
	}
	// A login saves when it was, and nothing else of the person (Django's update_last_login; its own commit in
	// facts/authentik-measured.md 2.1). Every other change of an account waits, and every new one.
	lastLogin = Table{
		Name:      "authentik_core_user",
		Lost:      "an account shows an earlier last login",
		relaxedOn: "UPDATE",
		waitsOn:   "INSERT OR UPDATE", waitsBut: []string{"last_login", "last_updated"},
	}
	// The scores are counters, like the throttle's. authentik itself kept them in its cache and wrote them down every
	// five minutes (authentik/policies/reputation/tasks.py, until 2024).
	reputation = Table{
		Name:      "authentik_policies_reputation_reputation",
		Lost:      "a login of the last moments, good or bad, does not count for the reputation of a name and address",
		relaxedOn: "INSERT OR UPDATE",
		waitsOn:   "UPDATE", waitsWhen: "NEW.identifier IS DISTINCT FROM OLD.identifier OR NEW.ip IS DISTINCT FROM OLD.ip",
	}
)

// authentik's tables by release. Sessions are in PostgreSQL from 2025.4, the cache from 2025.10
// (facts/authentik.md 1.1, 1.2). Not among them, though short-lived: channel messages, which tell outposts that a session
// has ended; channel groups, without which such a message reaches nobody; tasks, which carry revocations out; the
// embedded outpost's sessions; tokens and authorization codes.
var (
	cacheInRedis      = []Table{session, authenticatedSession, lastLogin, reputation}
	cacheInPostgreSQL = []Table{cacheEntry, session, authenticatedSession, lastLogin, reputation}

	authentikTables = map[string][]Table{
		"2025.10": cacheInPostgreSQL,
		"2025.12": cacheInPostgreSQL,
		"2026.2":  cacheInPostgreSQL,
		"2026.5":  cacheInPostgreSQL,
		"2026.8":  cacheInPostgreSQL,
		"2025.4":  cacheInRedis,
		"2025.6":  cacheInRedis,
		"2025.8":  cacheInRedis,
	}
)

// Tables of a product's version whose commits need not wait, or why there are none, as a sentence without its end.
func Tables(product, version string) (tables []Table, none string) {
	switch product {
	case "authentik":
		parts := strings.SplitN(version, ".", 3)
		if len(parts) >= 2 {
			tables = authentikTables[parts[0]+"."+parts[1]]
		}
		if tables == nil {
			return nil, fmt.Sprintf("which tables of authentik %s can be made again was not looked into, so every commit waits", version)
		}
		return tables, ""
	case "authelia":
		return nil, "Authelia keeps nothing in PostgreSQL that can be made again: its sessions are in memory or in Redis, " +
			"and the log of logins counts towards bans, so every commit waits"
	}
	return nil, fmt.Sprintf("which tables of %s can be made again is not known, so every commit waits", product)
}

package durability

import (
	"fmt"
	"strings"
)

// Table some of whose rows can be made again.
type Table struct {
	// Name in the schema public.
	Name string
	// Lost says what it means for a person that a crash took the newest rows.
	Lost string
	// relaxed are the statements whose rows may be lost: INSERT, UPDATE or DELETE, each with the condition on OLD and NEW
	// under which its transaction waits all the same, empty where no row makes it wait. What is not there always waits.
	relaxed map[string]string
	// notifies is how the names of the product's own deferred triggers on the table begin that fire only for rows that
	// wait. The function names them too, since it has to let them pass.
	notifies string
}

// everyRow is the condition of a statement that waits, unless it finds no row: Django deletes what might hang on a row
// before the row itself.
const everyRow = "true"

// statements that write rows, in the order in which triggers are made for them.
var statements = []string{"INSERT", "UPDATE", "DELETE"}

// Waits is whether a commit waits for that statement (INSERT, UPDATE or DELETE) on whatever row of the table; what a
// condition says of some rows is not asked.
func (t Table) Waits(statement string) bool {
	condition, relaxed := t.relaxed[statement]
	return !relaxed || condition == everyRow
}

// recreatedKeys are the cache entries that are computed again when they are missing: the throttle's counters
// (facts/authentik-measured.md 2.1), policy results with the application lists among them, and flow plans. All others
// wait: the cache also holds the identifiers of SAML responses that were seen, and losing one would let it be replayed
// (authentik/sources/saml/processors/response.py, CACHE_SEEN_REQUEST_ID).
const recreatedKeys = `^[^:]*:authentik_cache:[0-9]+:(throttle_anon_|goauthentik\.io/policies/(?!reputation/)|goauthentik\.io/flows/planner/)`

// unlessOnly is the condition that an UPDATE changed more than these columns.
func unlessOnly(columns ...string) string {
	but := "'{" + strings.Join(columns, ",") + "}'::text[]"
	return "(to_jsonb(NEW) - " + but + ") <> (to_jsonb(OLD) - " + but + ")"
}

var (
	cacheEntry = Table{
		Name:    "django_postgres_cache_cacheentry",
		Lost:    "a policy result, application list or flow plan is computed again, and a client may make the requests of the last moments once more before it is throttled",
		relaxed: map[string]string{"INSERT": `NEW.cache_key !~ '` + recreatedKeys + `'`, "UPDATE": `NEW.cache_key !~ '` + recreatedKeys + `'`},
	}
	// A DELETE waits, but for the session from before a login, which the login gives a new key: one that is in the middle
	// of a flow (authentik/flows/views/executor.py, SESSION_KEY_PLAN) and in which nobody is logged in. Who is logged in
	// stands in authenticatedsession and not in the session's data (authentik/core/sessions.py), so that a logout and a
	// revocation delete a row there, and wait by that, flow or not. An impersonation stands in the data. An UPDATE that ends something waits: an earlier
	// expiry, another key, and the end of an impersonation, which is the one right that authentik keeps in the session's
	// data (authentik/core/middleware.py, SESSION_KEY_IMPERSONATE_USER). Data is a pickle, in which keys stand as they are.
	session = Table{
		Name: "authentik_core_session",
		Lost: "a login of the last moments is asked for again, or one that is under way goes a step back",
		relaxed: map[string]string{
			"INSERT": "",
			"DELETE": `position('authentik/flows/plan'::bytea IN OLD.session_data) = 0 OR position('authentik/impersonate/user'::bytea IN OLD.session_data) > 0`,
			"UPDATE": `NEW.session_key IS DISTINCT FROM OLD.session_key OR NEW.expires < OLD.expires OR (NEW.expires IS NULL) <> (OLD.expires IS NULL)` +
				` OR position('authentik/impersonate/user'::bytea IN OLD.session_data) > 0 AND position('authentik/impersonate/user'::bytea IN NEW.session_data) = 0`,
		},
	}
	authenticatedSession = Table{
		Name:    "authentik_core_authenticatedsession",
		Lost:    "a person who logged in within the last moments logs in again",
		relaxed: map[string]string{"INSERT": "", "DELETE": everyRow},
	}
	// A login saves when it was, and nothing else of the person (Django's update_last_login; its own commit in
	// facts/authentik-measured.md 2.1). Every other change of an account waits, and every new one.
	lastLogin = Table{
		Name:    "authentik_core_user",
		Lost:    "an account shows an earlier last login",
		relaxed: map[string]string{"UPDATE": unlessOnly("last_login", "last_updated")},
	}
	// The scores are counters, like the throttle's. authentik itself kept them in its cache and wrote them down every
	// five minutes (authentik/policies/reputation/tasks.py, until 2024).
	reputation = Table{
		Name:    "authentik_policies_reputation_reputation",
		Lost:    "a login of the last moments, good or bad, does not count for the reputation of a name and address",
		relaxed: map[string]string{"INSERT": "", "UPDATE": "NEW.identifier IS DISTINCT FROM OLD.identifier OR NEW.ip IS DISTINCT FROM OLD.ip"},
	}
	// How far the worker is with a task. To put one into the queue, anew too, waits: tasks carry revocations out and send
	// messages. What is lost is that it was taken, or done, so that it is done once more; a worker that is killed before it
	// has said that it is done has the same effect, which is why the queue's tasks bear it (dramatiq runs each at least
	// once; django_dramatiq_postgres/broker.py takes up what is neither done nor rejected). The queue's own trigger
	// notifies the workers of a task that is queued.
	taskProgress = Table{
		Name:     "authentik_tasks_task",
		Lost:     "a background task of the last moments is done a second time: a message may come twice",
		relaxed:  map[string]string{"UPDATE": "NEW.state NOT IN ('consumed', 'preprocess', 'running', 'postprocess', 'rejected', 'done')"},
		notifies: "pgtrigger_notify_enqueueing_",
	}
	taskLog = Table{
		Name:    "authentik_tasks_tasklog",
		Lost:    "the notes that a background task made in the last moments are missing",
		relaxed: map[string]string{"INSERT": ""},
	}
)

// authentik's tables by release. Sessions are in PostgreSQL from 2025.4, tasks from 2025.8, with a table of their notes
// from 2025.10, the cache from 2025.10 (facts/authentik.md 1.1, 1.2; the notes: field "logs" of the task in the client
// that each release publishes). Not among them, though short-lived: channel messages, which tell outposts that a session
// has ended; channel groups, without which such a message reaches nobody; new tasks, which carry revocations out; the
// embedded outpost's sessions; tokens and authorization codes.
var (
	tasksInRedis      = []Table{session, authenticatedSession, lastLogin, reputation}
	cacheInRedis      = []Table{session, authenticatedSession, lastLogin, reputation, taskProgress}
	cacheInPostgreSQL = []Table{cacheEntry, session, authenticatedSession, lastLogin, reputation, taskProgress, taskLog}

	authentikTables = map[string][]Table{
		"2025.10": cacheInPostgreSQL,
		"2025.12": cacheInPostgreSQL,
		"2026.2":  cacheInPostgreSQL,
		"2026.5":  cacheInPostgreSQL,
		"2026.8":  cacheInPostgreSQL,
		"2025.4":  tasksInRedis,
		"2025.6":  tasksInRedis,
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

package durability

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"authstack.dev/authstack/internal/durability"
)

// pipelined are statements of the extended protocol that share one Sync, and so one transaction.
var pipelined = map[string]struct {
	statements []string
	waits      bool
}{
	"a new session":                                  {[]string{newSession}, false},
	"sessions and a cache entry":                     {[]string{newSession, newThrottle, touch}, false},
	"a session and a durable row":                    {[]string{newSession, newUser}, true},
	"a session and a logout":                         {[]string{newSession, logout("old30")}, true},
	"constraints immediate, then a durable row":      {[]string{newSession, "SET CONSTRAINTS ALL IMMEDIATE", newUser}, true},
	"constraints immediate first":                    {[]string{"SET CONSTRAINTS ALL IMMEDIATE", newSession, newUser}, true},
	"constraints immediate by a function":            {[]string{"SELECT early()", newSession, newUser}, true},
	"constraints immediate and nothing durable":      {[]string{"SET CONSTRAINTS ALL IMMEDIATE", newSession}, true}, // could go, but is not worth a test at commit
	"a transaction with BEGIN and COMMIT":            {[]string{"BEGIN", newSession, "COMMIT"}, false},
	"the same with constraints immediate":            {[]string{"BEGIN", "SET CONSTRAINTS ALL IMMEDIATE", newSession, newUser, "COMMIT"}, true},
	"a cursor that writes when the transaction ends": {[]string{newSession, `DECLARE c CURSOR WITH HOLD FOR SELECT writes()`}, true},
}

// The tables' owner sends these, as the product does; the cases before are a superuser's.
func TestWhichCommitsWaitInTheExtendedProtocol(t *testing.T) {
	c, monitor := prepare(t)
	execute(t, monitor, "GRANT ALL ON ALL TABLES IN SCHEMA public TO authentik")
	for sentence, test := range pipelined {
		t.Run(sentence, func(t *testing.T) {
			conn := c.connect(c.owner)
			defer func() { _ = conn.Close(context.Background()) }()
			got := waited(t, monitor, func() error {
				pipeline := conn.PgConn().StartPipeline(context.Background())
				for _, statement := range test.statements {
					pipeline.SendQueryParams(statement, nil, nil, nil, nil)
				}
				if err := pipeline.Sync(); err != nil {
					return err
				}
				return pipeline.Close()
			})
			if got != test.waits {
				t.Errorf("waited for the WAL: %v, want %v", got, test.waits)
			}
		})
	}
}

// guards of the function, each with a transaction that it makes wait. Taking one away must show: otherwise the cases
// above prove nothing of it.
var guards = map[string]struct {
	guard, instead string
	sentence       string
}{
	"nested calls":                {`strpos(stack, E'\n') > 0`, "false", "everything in one function"},
	"the statement in progress":   {`NOT (CASE`, "false AND NOT (CASE", "constraints immediate, then a durable row"},
	"one statement a message":     {`AND strpos(rtrim(query, E'; \n\t'), ';') = 0`, "", "constraints immediate by a function, in one message"},
	"a statement of its own":      {"now() = statement_timestamp() AND", "", "constraints immediate first"},
	"locks on relations":          {"l.mode NOT IN ('AccessShareLock', 'RowShareLock')", "false", "a session and a durable row"},
	"views and sequences":         {"c.relkind IN ('i', 't')", "c.relkind <> 'r'", "a number from a sequence"},
	"the lock of a logout":        {"l.classid = 1635087475", "false", "a logout after a new session"},
	"triggers that are all there": {"= NULLIF(max(t.tgnargs)", ">= 0 OR true OR 1 > NULLIF(max(t.tgnargs)", "a durable row and a session"},
	"triggers that fire":          {"t.tgenabled = 'A'", "true", "a logout while its trigger is disabled"},
	"deferred triggers":           {"bool_and(NOT t.tgdeferrable OR", "bool_and(true OR", "somebody's deferred trigger that writes at the end"},
	"no triggers at all":          {"NULLIF(max(t.tgnargs) FILTER (WHERE t.tgname = 'authstack_durability' AND t.tgenabled = 'O'), 0)", "max(t.tgnargs) FILTER (WHERE t.tgname = 'authstack_durability' AND t.tgenabled = 'O')", "a table with the deciding trigger alone"},
	"the queue's trigger alone":   {"c.relname = 'authentik_tasks_task' AND", "", "somebody's deferred trigger that has the name of the queue's"},
	"a trigger with a condition":  {"AND t.tgqual IS NOT NULL", "", "a deferred trigger of the queue that fires for every row"},
	"catalogs":                    {"pg_stat_get_xact_tuples_inserted(c) + pg_stat_get_xact_tuples_updated(c) + pg_stat_get_xact_tuples_deleted(c) > 0", "false", "a right taken from everybody"},
	"cursors":                     {"WHERE is_holdable", "WHERE false", "a cursor that writes when the transaction ends"},
}

func TestEachGuardIsNeeded(t *testing.T) {
	c, monitor := prepare(t)
	for name, test := range guards {
		t.Run(name, func(t *testing.T) {
			broken := strings.Replace(durability.Functions(), test.guard, test.instead, 1)
			if broken == durability.Functions() {
				t.Fatalf("the function does not say %q", test.guard)
			}
			execute(t, monitor, broken)
			defer execute(t, monitor, durability.Functions())
			trial := cases[test.sentence]
			if !trial.waits {
				t.Fatalf("%q is not a transaction that waits", test.sentence)
			}
			conn := c.connect(c.superuser)
			defer func() { _ = conn.Close(context.Background()) }()
			execute(t, monitor, trial.before...)
			defer execute(t, monitor, trial.after...)
			if waited(t, monitor, messages(conn.PgConn(), trial.messages)) {
				t.Errorf("%q waits even without the guard", test.sentence)
			}
		})
	}
}

// The same for the triggers: without the one for logouts a logout beside a new session would be lost.
func TestEachTriggerIsNeeded(t *testing.T) {
	c, monitor := prepare(t)
	for sentence, test := range map[string]struct{ table, trigger, transaction string }{
		"the one for logouts":       {"authentik_core_authenticatedsession", durability.RowName("DELETE"), "a logout after a new session"},
		"the one for changed rows":  {"authentik_core_session", durability.RowName("UPDATE"), "a session that expires earlier"},
		"the one for sessions":      {"authentik_core_session", durability.RowName("DELETE"), "a session that is in no flow"},
		"the one for cache entries": {"django_postgres_cache_cacheentry", durability.RowName("INSERT"), "a SAML response that was seen"},
		"the one for cache flushes": {"django_postgres_cache_cacheentry", durability.AlwaysName, "a cache flush beside a counter"},
		"the one for accounts":      {"authentik_core_user", durability.RowName("UPDATE"), "a password with the time of a login"},
		"the one for new accounts":  {"authentik_core_user", durability.AlwaysName, "a new account with its number and a session"},
		"the one for the queue":     {"authentik_tasks_task", durability.RowName("UPDATE"), "a task that is put into the queue again"},
		"the one for new tasks":     {"authentik_tasks_task", durability.AlwaysName, "a task beside a session"},
	} {
		t.Run(sentence, func(t *testing.T) {
			defer c.install()
			// A trigger of the right name that does nothing.
			var definition string
			if err := monitor.QueryRow(context.Background(), `SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = $1 AND tgrelid = $2::regclass`,
				pgx.QueryExecModeSimpleProtocol, test.trigger, test.table).Scan(&definition); err != nil {
				t.Fatal(err)
			}
			execute(t, monitor, "DROP TRIGGER "+test.trigger+" ON "+test.table, strings.Replace(definition, durability.WaitName+"(", "nothing(", 1),
				"ALTER TABLE "+test.table+" ENABLE ALWAYS TRIGGER "+test.trigger)
			conn := c.connect(c.superuser)
			defer func() { _ = conn.Close(context.Background()) }()
			if waited(t, monitor, messages(conn.PgConn(), cases[test.transaction].messages)) {
				t.Errorf("%q waits even without it", test.transaction)
			}
		})
	}
}

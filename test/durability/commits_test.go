package durability

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"authstack.dev/authstack/test/durability/load"
)

// What the tests write; small, and each with another key.
const (
	newSession  = load.NewSession
	newThrottle = load.NewThrottle
	newUser     = `INSERT INTO authentik_core_group VALUES (gen_random_uuid(), md5(random()::text), false, '{}')`
	touch       = `UPDATE authentik_core_session SET last_used = now(), expires = now() + interval '2 days', session_data = '\x8081' WHERE session_key = 'old20'`
)

// A reputation as the product's upsert writes it, and an account.
const (
	newReputation = `INSERT INTO authentik_policies_reputation_reputation VALUES (gen_random_uuid(), 'u1', '10.0.0.1', '{}', '{}', 1, now(), true, now()) ON CONFLICT (identifier, ip) DO UPDATE SET score = LEAST(authentik_policies_reputation_reputation.score + EXCLUDED.score, 5), updated = now()`
	newAccount    = `INSERT INTO authentik_core_user (password, username, first_name, last_name, email, is_active, date_joined, uuid, name, path, type, attributes, last_updated, password_change_date) VALUES ('', md5(random()::text), '', '', '', true, now(), gen_random_uuid(), '', '', '', '{}', now(), now())`
)

// A task as the product queues it, and how far a worker is with it.
const (
	tenant   = `INSERT INTO authentik_tenants_tenant VALUES (gen_random_uuid(), 'public', '', true, '', true, true, true, '', 0, 0, '[]', true, true, '', 60)`
	newTask  = `INSERT INTO authentik_tasks_task (message_id, queue_name, actor_name, state, mtime, retries, aggregated_status, expiring, tenant_id) SELECT gen_random_uuid(), 'default', 'a', 'queued', now(), 0, 'queued', true, tenant_uuid FROM authentik_tenants_tenant`
	progress = `UPDATE authentik_tasks_task SET state = 'running', mtime = now(), aggregated_status = 'running'`
	taskNote = `INSERT INTO authentik_tasks_tasklog (task_id, event, log_level, logger, "timestamp", attributes, previous) SELECT message_id, 'Task is being processed', 'info', 'a', now(), '{}', false FROM authentik_tasks_task`
)

// logout of somebody, in one statement.
func logout(key string) string {
	return `WITH person AS (DELETE FROM authentik_core_authenticatedsession WHERE session_id = '` + key + `') DELETE FROM authentik_core_session WHERE session_key = '` + key + `'`
}

// prepared is what the cases find: rows, and objects as an adversary or a plug-in would make them.
var prepared = []string{
	`INSERT INTO authentik_core_user SELECT i, '', NULL, 'u' || i, '', '', '', true, now(), gen_random_uuid(), '', '', '', '{}', now(), now() FROM generate_series(1, 9) i`,
	`SELECT setval(pg_get_serial_sequence('authentik_core_user', 'id'), 1000)`,
	`INSERT INTO authentik_core_session VALUES ('kept', now() + interval '1 day', true, convert_to('authentik/impersonate/user', 'UTF8'), '10.0.0.1', 'test', now())`,
	`INSERT INTO authentik_core_session SELECT 'kept2', expires, expiring, session_data, last_ip, last_user_agent, last_used FROM authentik_core_session`,
	`INSERT INTO authentik_core_session SELECT 'old' || i, now(), true, '\x80', '10.0.0.1', 'test', now() FROM generate_series(1, 1000) i`,
	// Somebody is logged in to the first fifty, and from the hundredth on they are in a flow.
	`UPDATE authentik_core_session SET session_data = '\x80' || convert_to('authentik/flows/plan', 'UTF8') WHERE session_key ~ '^old1[0-9][0-9]$'`,
	`UPDATE authentik_core_session SET session_data = '\x80' || convert_to('authentik/flows/plan', 'UTF8') WHERE session_key IN ('old7', 'old15', 'old22')`, // By whose logouts the session itself need not wait.
	`INSERT INTO authentik_core_authenticatedsession SELECT 'old' || i, gen_random_uuid(), 1 FROM generate_series(1, 50) i`,
	tenant, newTask,
	`CREATE TABLE ordinary (id int)`, `CREATE UNLOGGED TABLE unlogged (id int)`, `CREATE SEQUENCE counter`,
	`CREATE TABLE parted (id int) PARTITION BY LIST (id); CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1)`,
	`CREATE SCHEMA other; CREATE TABLE other.authentik_core_session (LIKE authentik_core_session INCLUDING ALL)`,
	`INSERT INTO authentik_core_authenticatedsession VALUES ('kept', gen_random_uuid(), 1)`,
	`CREATE TABLE altered (id int)`,
	`CREATE VIEW groups AS SELECT * FROM authentik_core_group`,
	`CREATE FUNCTION early() RETURNS int LANGUAGE plpgsql AS $$ BEGIN SET CONSTRAINTS ALL IMMEDIATE; RETURN 1; END $$`,
	`CREATE FUNCTION writes() RETURNS int LANGUAGE sql AS $$ ` + newUser + `; SELECT 1 $$`,
	`CREATE FUNCTION forgets() RETURNS void LANGUAGE plpgsql SET authstack.waits = '' SET synchronous_commit = on AS $$ BEGIN DELETE FROM authentik_core_authenticatedsession WHERE session_id = 'old40'; END $$`,
	`CREATE FUNCTION everything() RETURNS int LANGUAGE plpgsql AS $$ BEGIN ` + newSession + `; SET CONSTRAINTS ALL IMMEDIATE; ` + newUser + `; RETURN 1; END $$`,
	`CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`,
	`CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ordinary VALUES (1); RETURN NULL; END $$`,
	`CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$ BEGIN ` + newSession + `; COMMIT; ` + newUser + `; END $$`,
	`CREATE ROLE somebody`, `GRANT ALL ON ordinary TO authentik`,
}

func begin(statements ...string) []string {
	return append(append([]string{"BEGIN"}, statements...), "COMMIT")
}

// cases are transactions, each a list of messages of the simple protocol, and whether the commit has to wait.
var cases = map[string]struct {
	messages []string
	waits    bool
	// before and after are what is made first and taken away at last.
	before, after []string
}{
	// What shall not wait.
	"a new session": {messages: []string{newSession}, waits: false},
	"a new session in a transaction, as Django's":      {messages: begin("SET search_path = 'public'", newSession), waits: false},
	"a changed session":                                {messages: begin(touch), waits: false},
	"a throttle counter":                               {messages: []string{newThrottle}, waits: false},
	"a policy result":                                  {messages: []string{strings.Replace(newThrottle, "throttle_anon_", "goauthentik.io/policies/0af_", 1)}, waits: false},
	"a flow plan":                                      {messages: []string{strings.Replace(newThrottle, "throttle_anon_", "goauthentik.io/flows/planner/1#2", 1)}, waits: false},
	"session and cache together":                       {messages: begin(newSession, newThrottle, touch), waits: false},
	"a new authenticated session":                      {messages: begin(newSession, `INSERT INTO authentik_core_authenticatedsession SELECT session_key, gen_random_uuid(), 1 FROM authentik_core_session WHERE session_key NOT IN (SELECT session_id FROM authentik_core_authenticatedsession) LIMIT 1`), waits: false},
	"rows of a user locked on the way":                 {messages: begin(`SELECT 1 FROM authentik_core_user FOR UPDATE`, newSession), waits: false},
	"a thousand sessions at once":                      {messages: []string{`INSERT INTO authentik_core_session SELECT md5(random()::text || i), now(), true, '\x80', '10.0.0.1', 'test', now() FROM generate_series(1, 1000) i`}, waits: false},
	"a value so long that it is stored out of line":    {messages: begin(`UPDATE authentik_core_session SET session_data = (SELECT string_agg(decode(md5(i::text), 'hex'), '') FROM generate_series(1, 2000) i) WHERE session_key = 'old1'`), waits: false},
	"a durable write undone by a savepoint":            {messages: begin(newSession, "SAVEPOINT a", newUser, "ROLLBACK TO a"), waits: false},
	"a logout undone by a savepoint":                   {messages: begin(newSession, "SAVEPOINT a", logout("old2"), "ROLLBACK TO a"), waits: false},
	"COPY into sessions":                               {messages: []string{`COPY authentik_core_session FROM PROGRAM 'printf "copied%s\t2030-01-01\tt\t\\\\\\\\x80\t10.0.0.1\ttest\t2030-01-01\n" $RANDOM$$'`}, waits: false},
	"NOTIFY beside it":                                 {messages: begin(newSession, "NOTIFY channel"), waits: false},
	"constraints deferred by name, as they are anyway": {messages: begin("SET CONSTRAINTS ALL DEFERRED", newSession), waits: false},

	"the time of a login": {messages: []string{`UPDATE authentik_core_user SET last_login = now() WHERE id = 1`}, waits: false},
	"the same with a column that says when a row was saved": {messages: []string{`UPDATE authentik_core_user SET last_login = now(), last_updated = now(), username = username WHERE id = 1`}, waits: false},
	"the times of logins of everybody":                      {messages: []string{`UPDATE authentik_core_user SET last_login = now()`}, waits: false},
	"a reputation score and its change":                     {messages: []string{newReputation, newReputation}, waits: false},

	"the session from before a login":             {messages: begin(newSession, `DELETE FROM authentik_core_session WHERE session_key = 'old100'`), waits: false},
	"the same by itself":                          {messages: []string{`DELETE FROM authentik_core_session WHERE session_key = 'old101'`}, waits: false},
	"the same after a look for who was logged in": {messages: begin(`DELETE FROM authentik_core_authenticatedsession WHERE session_id IN ('old102')`, `DELETE FROM authentik_core_session WHERE session_key = 'old102'`), waits: false},
	"how far a worker is with a task":             {messages: begin(progress, taskNote), waits: false},
	"a task that is done, and its message":        {messages: []string{`UPDATE authentik_tasks_task SET state = 'done', message = ''`}, waits: false},
	"a note of a task":                            {messages: []string{taskNote}, waits: false},

	// What has to.
	"a session that is in no flow":                  {messages: begin(newSession, `DELETE FROM authentik_core_session WHERE session_key = 'old200'`), waits: true},
	"a logout in the middle of a flow":              {messages: begin(logout("old22"), newSession), waits: true},
	"a task":                                        {messages: begin(newTask, taskNote), waits: true},
	"a task beside a session":                       {messages: begin(newSession, newTask), waits: true},
	"a task that is put into the queue again":       {messages: begin(progress, `UPDATE authentik_tasks_task SET state = 'queued'`), waits: true},
	"a task in a state that is not known":           {messages: []string{`UPDATE authentik_tasks_task SET state = 'waiting_for_dependencies'`}, waits: true, after: []string{progress}},
	"a task that is taken away":                     {messages: begin(progress, `DELETE FROM authentik_tasks_tasklog`, `DELETE FROM authentik_tasks_task WHERE actor_name = 'b'`), waits: true},
	"notes of a task that are marked as old":        {messages: begin(progress, `UPDATE authentik_tasks_tasklog SET previous = true`), waits: true, before: []string{taskNote}},
	"a logout that deletes the session first":       {messages: begin(`DELETE FROM authentik_core_session WHERE session_key = 'old21'`, `DELETE FROM authentik_core_authenticatedsession WHERE session_id = 'old21'`), waits: true},
	"a password with the time of a login":           {messages: []string{`UPDATE authentik_core_user SET last_login = now(), password = md5(random()::text) WHERE id = 1`}, waits: true},
	"a person of many who is deactivated":           {messages: []string{`UPDATE authentik_core_user SET last_login = now(), is_active = id <> 3`}, waits: true, after: []string{`UPDATE authentik_core_user SET is_active = true`}},
	"an attribute that becomes null":                {messages: []string{`UPDATE authentik_core_user SET attributes = '{"a": null}' WHERE id = 2`}, waits: true, after: []string{`UPDATE authentik_core_user SET attributes = '{}'`}},
	"a new account":                                 {messages: []string{newAccount}, waits: true},
	"a new account with its number and a session":   {messages: begin(newSession, strings.NewReplacer("(password,", "(id, password,", "VALUES (", "VALUES (1000000 * random() + 10000, ").Replace(newAccount)), waits: true},
	"a new account beside a session":                {messages: begin(newSession, newAccount), waits: true},
	"an account that is there already, ON CONFLICT": {messages: []string{strings.Replace(newAccount, "md5(random()::text), ''", "'u1', ''", 1) + ` ON CONFLICT (username) DO UPDATE SET email = md5(random()::text)`}, waits: true},
	"an account that is deleted":                    {messages: []string{`DELETE FROM authentik_core_user WHERE username = 'u9'`}, waits: true},
	"a reputation of another name":                  {messages: []string{`UPDATE authentik_policies_reputation_reputation SET identifier = md5(random()::text)`}, waits: true, before: []string{newReputation}},
	"a reputation that is deleted":                  {messages: []string{`DELETE FROM authentik_policies_reputation_reputation`}, waits: true, before: []string{newReputation}},
	"a durable row":                                 {messages: []string{newUser}, waits: true},
	"a logout":                                      {messages: []string{logout("old3")}, waits: true},
	"a logout in a transaction":                     {messages: begin(logout("old4")), waits: true},
	"a cache flush":                                 {messages: []string{`DELETE FROM django_postgres_cache_cacheentry`}, waits: true, before: []string{newThrottle}},
	"a cache flush beside a counter":                {messages: begin(newThrottle, `DELETE FROM django_postgres_cache_cacheentry`), waits: true},
	"a SAML response that was seen":                 {messages: []string{strings.Replace(newThrottle, "throttle_anon_", "authentik_saml_seen_ids_1", 1)}, waits: true},
	"a key that only looks relaxed":                 {messages: []string{strings.Replace(newThrottle, "throttle_anon_", "x:goauthentik.io/policies/", 1)}, waits: true},
	"a reputation score":                            {messages: []string{strings.Replace(newThrottle, "throttle_anon_", "goauthentik.io/policies/reputation/scores/", 1)}, waits: true},
	"a seen SAML response among many entries":       {messages: begin(newThrottle, strings.Replace(newThrottle, "throttle_anon_", "authentik_saml_seen_ids_1", 1), newThrottle), waits: true},
	"a session that expires earlier":                {messages: begin(`UPDATE authentik_core_session SET expires = now() - interval '1 year' WHERE session_key = 'old5'`), waits: true},
	"a session that expires at last":                {messages: begin(`UPDATE authentik_core_session SET expires = NULL WHERE session_key = 'old5'`), waits: true},
	"another session key":                           {messages: begin(`UPDATE authentik_core_session SET session_key = 'new66' WHERE session_key = 'old66'`), waits: true},
	"the end of an impersonation":                   {messages: begin(strings.Replace(touch, "old20", "kept", 1)), waits: true},
	"an impersonation that goes on":                 {messages: begin(`UPDATE authentik_core_session SET last_used = now() WHERE session_key = 'kept2'`), waits: false},
	"an authenticated session of somebody else":     {messages: begin(`UPDATE authentik_core_authenticatedsession SET user_id = 2`), waits: true},
	"a logout after a new session":                  {messages: begin(newSession, logout("old7")), waits: true},
	"a logout before a new session":                 {messages: begin(logout("old8"), newSession), waits: true},
	"a logout and a cache entry":                    {messages: begin(logout("old9"), newThrottle), waits: true},
	"a logout in a savepoint that is released":      {messages: begin("SAVEPOINT a", logout("old10"), "RELEASE a", newSession), waits: true},
	"a logout by MERGE and a new session":           {messages: begin(`MERGE INTO authentik_core_authenticatedsession s USING (SELECT 'old11' AS k) o ON s.session_id = o.k WHEN MATCHED THEN DELETE`, newSession), waits: true},
	"a logout in one statement with a new session":  {messages: []string{`WITH gone AS (DELETE FROM authentik_core_authenticatedsession WHERE session_id = 'old12') ` + newSession}, waits: true},
	"TRUNCATE and a new session":                    {messages: begin(`TRUNCATE django_postgres_cache_cacheentry`, newSession), waits: true},
	"a session and a durable row":                   {messages: begin(newSession, newUser), waits: true},
	"a durable row and a session":                   {messages: begin(newUser, newSession), waits: true},
	"a durable row in one statement with a session": {messages: []string{`WITH g AS (` + newUser + `) ` + newSession}, waits: true},
	"a durable row in one message with a session":   {messages: []string{newSession + "; " + newUser}, waits: true},
	"a durable row by a view":                       {messages: begin(newSession, `INSERT INTO groups VALUES (gen_random_uuid(), md5(random()::text), false, '{}')`), waits: true},
	"a durable row by a function":                   {messages: begin(newSession, `SELECT writes()`), waits: true},
	"a durable row by COPY":                         {messages: begin(newSession, `COPY ordinary FROM PROGRAM 'echo 1'`), waits: true},
	"a table that was added later":                  {messages: begin(newSession, `INSERT INTO ordinary VALUES (1)`), waits: true},
	"a table of this transaction":                   {messages: begin(newSession, `CREATE TABLE IF NOT EXISTS made (id int)`, `INSERT INTO made VALUES (1)`), waits: true},
	"a partition":                                   {messages: begin(newSession, `INSERT INTO parted VALUES (1)`), waits: true},
	"a partition by itself":                         {messages: begin(newSession, `INSERT INTO parted_1 VALUES (1)`), waits: true},
	"a table of the same name elsewhere":            {messages: begin(newSession, `INSERT INTO other.authentik_core_session SELECT * FROM authentik_core_session WHERE session_key = 'kept'`, `DELETE FROM other.authentik_core_session`), waits: true},
	"the same, found by the search path":            {messages: begin("SET LOCAL search_path = other, public", `INSERT INTO django_postgres_cache_cacheentry VALUES ('public:authentik_cache:1:throttle_anon_' || random(), 'x', now())`, newSession, `DELETE FROM authentik_core_session`), waits: true},
	"a child of the table": {
		messages: begin(newSession, `UPDATE authentik_core_session SET last_used = now() WHERE session_key = 'child'`), waits: true,
		before: []string{`CREATE TABLE child () INHERITS (authentik_core_session)`, `INSERT INTO child SELECT 'child', expires, expiring, session_data, last_ip, last_user_agent, last_used FROM authentik_core_session LIMIT 1`},
		after:  []string{`DROP TABLE child`},
	},
	"an unlogged table":                              {messages: begin(newSession, `INSERT INTO unlogged VALUES (1)`), waits: true},
	"a temporary table":                              {messages: begin(newSession, `CREATE TEMP TABLE t ON COMMIT DROP AS SELECT 1`), waits: true},
	"a number from a sequence":                       {messages: begin(newSession, `SELECT nextval('counter')`), waits: true},
	"a number from a sequence in a savepoint undone": {messages: begin(newSession, "SAVEPOINT a", `SELECT nextval('counter')`, "ROLLBACK TO a"), waits: true},
	"a large object":                                 {messages: begin(newSession, `SELECT lo_from_bytea(0, '\x01')`), waits: true},
	"GRANT":                                          {messages: begin(newSession, `GRANT SELECT ON ordinary TO somebody`), waits: true},
	"REVOKE":                                         {messages: begin(newSession, `REVOKE ALL ON ordinary FROM somebody`, `REVOKE ALL ON ordinary FROM PUBLIC, somebody`, `GRANT UPDATE ON ordinary TO somebody`), waits: true},
	"a right taken from everybody":                   {messages: begin(newSession, `REVOKE SELECT ON altered FROM PUBLIC`), waits: true, before: []string{`GRANT SELECT ON altered TO PUBLIC`}},
	"a role's password":                              {messages: begin(newSession, `ALTER ROLE somebody PASSWORD 'x'`), waits: true},
	"membership of a role":                           {messages: begin(newSession, `GRANT authentik TO somebody`), waits: true},
	"a function":                                     {messages: begin(newSession, `CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'`), waits: true},
	"a comment":                                      {messages: begin(newSession, `COMMENT ON TABLE ordinary IS 'x'`), waits: true},
	"an index":                                       {messages: begin(newSession, `CREATE INDEX ON ordinary (id)`), waits: true},
	"a table altered":                                {messages: begin(newSession, `ALTER TABLE altered ADD COLUMN IF NOT EXISTS more int`), waits: true},
	"a setting of the role":                          {messages: begin(newSession, `ALTER ROLE somebody SET jit = off`), waits: true},

	// Attempts to have the decision made too early, or forgotten.
	"constraints immediate, then a durable row":               {messages: begin(newSession, "SET CONSTRAINTS ALL IMMEDIATE", newUser), waits: true},
	"constraints immediate by name":                           {messages: begin(newSession, "set constraints public.authstack_durability immediate", newUser), waits: true},
	"constraints immediate first":                             {messages: begin("SET CONSTRAINTS ALL IMMEDIATE", newSession, newUser), waits: true},
	"constraints immediate first, in one message":             {messages: []string{"BEGIN; SET CONSTRAINTS ALL IMMEDIATE; " + newSession + "; " + newUser + "; COMMIT"}, waits: true},
	"constraints immediate in the middle of one message":      {messages: []string{newSession + "; SET/**/CONSTRAINTS ALL IMMEDIATE; " + newUser}, waits: true},
	"constraints immediate by a function":                     {messages: begin(newSession, "SELECT early()", newUser), waits: true},
	"constraints immediate by a function first":               {messages: begin("SELECT early()", newSession, newUser), waits: true},
	"constraints immediate by a function, in one message":     {messages: []string{"SELECT early(); " + newSession + "; " + newUser}, waits: true},
	"constraints immediate inside the INSERT, in one message": {messages: []string{strings.TrimSuffix(strings.Replace(newSession, "VALUES (md5(random()::text)", "SELECT md5((random() + early())::text)", 1), ")") + "; " + newUser}, waits: true},
	"constraints immediate by DO":                             {messages: begin(newSession, "DO 'BEGIN SET CONSTRAINTS ALL IMMEDIATE; END'", newUser), waits: true},
	"immediate, deferred, and a durable row":                  {messages: begin("SET CONSTRAINTS ALL IMMEDIATE", newSession, "SET CONSTRAINTS ALL DEFERRED", newUser), waits: true},
	"everything in one function":                              {messages: []string{"SELECT everything()"}, waits: true},
	"everything in one DO":                                    {messages: []string{`DO $$ BEGIN ` + newSession + `; SET CONSTRAINTS ALL IMMEDIATE; ` + newUser + `; END $$`}, waits: true},
	"a cursor that writes when the transaction ends":          {messages: begin(newSession, `DECLARE c CURSOR WITH HOLD FOR SELECT writes()`), waits: true},
	"all settings reset after a logout":                       {messages: begin(logout("old13"), "RESET ALL", newSession), waits: true},
	"a logout in a function that forgets":                     {messages: begin(`SELECT forgets()`, newSession), waits: true},
	"the settings forged":                                     {messages: begin(newSession, newUser, "SET LOCAL authstack.waits = ''"), waits: true},
	"advisory locks given back after a logout":                {messages: begin(logout("old14"), "SELECT pg_advisory_unlock_all()", "SELECT pg_advisory_unlock_shared(1635087475, 1952539489)", newSession), waits: true},
	"a search path with look-alikes":                          {messages: begin("CREATE SCHEMA IF NOT EXISTS evil", "CREATE OR REPLACE FUNCTION evil.current_query() RETURNS text LANGUAGE sql AS 'SELECT ''COMMIT''::text'", "CREATE OR REPLACE VIEW evil.pg_locks AS SELECT * FROM pg_catalog.pg_locks WHERE false", "SET LOCAL search_path = evil, pg_catalog, public", newSession), waits: true},
	"a logout while its trigger is disabled": {
		messages: begin(logout("old15"), newSession), waits: true,
		before: []string{"ALTER TABLE authentik_core_authenticatedsession DISABLE TRIGGER authstack_durability_delete"},
		after:  []string{"ALTER TABLE authentik_core_authenticatedsession ENABLE ALWAYS TRIGGER authstack_durability_delete"},
	},
	"a logout while no trigger fires": {
		messages: begin(logout("old17"), newThrottle), waits: true,
		before: []string{"ALTER TABLE authentik_core_authenticatedsession DISABLE TRIGGER USER"},
		after: []string{"ALTER TABLE authentik_core_authenticatedsession ENABLE TRIGGER USER", "ALTER TABLE authentik_core_authenticatedsession ENABLE ALWAYS TRIGGER authstack_durability_delete",
			"ALTER TABLE authentik_core_authenticatedsession ENABLE ALWAYS TRIGGER authstack_durability_always"},
	},
	"somebody's deferred trigger that writes at the end": {
		messages: []string{newSession}, waits: true,
		before: []string{"CREATE CONSTRAINT TRIGGER zzz AFTER INSERT ON authentik_core_session DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION audit()"},
		after:  []string{"DROP TRIGGER zzz ON authentik_core_session"},
	},
	"a session in a flow that impersonates": {
		messages: begin(newSession, `DELETE FROM authentik_core_session WHERE session_key = 'kept3'`), waits: true,
		before: []string{`INSERT INTO authentik_core_session VALUES ('kept3', now(), true, convert_to('authentik/flows/plan authentik/impersonate/user', 'UTF8'), '10.0.0.1', 'test', now())`},
	},
	"a table with the deciding trigger alone": {
		messages: begin(newSession, `INSERT INTO ordinary VALUES (1)`), waits: true,
		before: []string{"CREATE CONSTRAINT TRIGGER authstack_durability AFTER INSERT ON ordinary DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION authstack_durability()"},
		after:  []string{"DROP TRIGGER authstack_durability ON ordinary"},
	},
	"somebody's deferred trigger that has the name of the queue's": {
		messages: []string{newSession}, waits: true,
		before: []string{"CREATE CONSTRAINT TRIGGER pgtrigger_notify_enqueueing_1 AFTER INSERT ON authentik_core_session DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.session_key <> '') EXECUTE FUNCTION audit()"},
		after:  []string{"DROP TRIGGER pgtrigger_notify_enqueueing_1 ON authentik_core_session"},
	},
	"a deferred trigger of the queue that fires for every row": {
		messages: []string{progress}, waits: true,
		before: []string{"CREATE CONSTRAINT TRIGGER pgtrigger_notify_enqueueing_2 AFTER UPDATE ON authentik_tasks_task DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION audit()"},
		after:  []string{"DROP TRIGGER pgtrigger_notify_enqueueing_2 ON authentik_tasks_task"},
	},
	"a row of which nobody knows whether it waits": {
		messages: []string{`UPDATE authentik_tasks_task SET state = NULL`}, waits: true,
		before: []string{"ALTER TABLE authentik_tasks_task ALTER state DROP NOT NULL"},
		after:  []string{"UPDATE authentik_tasks_task SET state = 'done'", "ALTER TABLE authentik_tasks_task ALTER state SET NOT NULL"},
	},
	"somebody's deferred trigger on the queue": {
		messages: []string{progress}, waits: true,
		before: []string{"CREATE CONSTRAINT TRIGGER zzz AFTER UPDATE ON authentik_tasks_task DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION audit()"},
		after:  []string{"DROP TRIGGER zzz ON authentik_tasks_task"},
	},
	"somebody's deferred trigger on the other table": {
		messages: begin(newThrottle, newSession), waits: true,
		before: []string{"CREATE CONSTRAINT TRIGGER zzz AFTER INSERT ON authentik_core_session DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION audit()"},
		after:  []string{"DROP TRIGGER zzz ON authentik_core_session"},
	},
	"somebody's plain trigger that writes nothing": {
		messages: []string{newSession}, waits: false,
		before: []string{"CREATE TRIGGER zzz AFTER INSERT ON authentik_core_session FOR EACH ROW EXECUTE FUNCTION nothing()"},
		after:  []string{"DROP TRIGGER zzz ON authentik_core_session"},
	},
	"somebody's plain trigger that writes": {
		messages: []string{newSession}, waits: true,
		before: []string{"CREATE TRIGGER zzz AFTER INSERT ON authentik_core_session FOR EACH ROW EXECUTE FUNCTION audit()"},
		after:  []string{"DROP TRIGGER zzz ON authentik_core_session"},
	},
	"a rule that writes elsewhere": {
		messages: []string{newSession}, waits: true,
		before: []string{"GRANT ALL ON ordinary TO authentik", "CREATE RULE elsewhere AS ON INSERT TO authentik_core_session DO ALSO INSERT INTO ordinary VALUES (1)"},
		after:  []string{"DROP RULE elsewhere ON authentik_core_session", "VACUUM authentik_core_session"},
	},
	"a table made anew without its triggers": {
		messages: begin(newSession, `DELETE FROM django_postgres_cache_cacheentry`), waits: true,
		before: []string{"CREATE TABLE copy (LIKE django_postgres_cache_cacheentry INCLUDING ALL); ALTER TABLE django_postgres_cache_cacheentry RENAME TO away; ALTER TABLE copy RENAME TO django_postgres_cache_cacheentry"},
		after:  []string{"DROP TABLE django_postgres_cache_cacheentry; ALTER TABLE away RENAME TO django_postgres_cache_cacheentry"},
	},
	"a logout as a replica, a session as the origin": {messages: begin("SET LOCAL session_replication_role = replica", logout("old16"), "SET LOCAL session_replication_role = origin", newSession), waits: true},
	"a session as a replica":                         {messages: begin("SET LOCAL session_replication_role = replica", newSession), waits: true},
	"PREPARE TRANSACTION":                            {messages: []string{"BEGIN", newSession, "PREPARE TRANSACTION 'p'", "COMMIT PREPARED 'p'"}, waits: true},
	"COMMIT by a procedure":                          {messages: []string{"CALL commits()"}, waits: true},
	"a commit under another name":                    {messages: []string{"BEGIN", newSession, newUser, "END WORK"}, waits: true},
}

// prepare a database with the tables, the triggers and what the cases need.
func prepare(t *testing.T) (*cluster, *pgx.Conn) {
	c := newCluster(t)
	c.schema()
	admin := c.connect(c.superuser)
	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	execute(t, admin, prepared...)
	c.install()
	c.stopWALWriter(admin)
	return c, admin
}

// waited runs f and says whether what it committed was flushed when it came back.
func waited(t *testing.T, monitor *pgx.Conn, f func() error) bool {
	t.Helper()
	ctx := context.Background()
	var wrote, flushed bool
	// A backend that ends may write too: its temporary tables go.
	for clients := 0; clients != 2; {
		if err := monitor.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'").Scan(&clients); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, monitor, "SELECT pg_switch_wal()") // Begins a page, so that none is full and given to the WAL writer on the way.
	var before string
	if err := monitor.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text").Scan(&before); err != nil {
		t.Fatal(err)
	}
	if err := f(); err != nil {
		t.Fatal(err)
	}
	if err := monitor.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn() > $1::pg_lsn, pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()", before).Scan(&wrote, &flushed); err != nil {
		t.Fatal(err)
	}
	if !wrote {
		t.Fatal("the transaction wrote no WAL, so it shows nothing")
	}
	return flushed
}

func messages(conn *pgconn.PgConn, messages []string) func() error {
	return func() error {
		for _, message := range messages {
			if _, err := conn.Exec(context.Background(), message).ReadAll(); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestWhichCommitsWait(t *testing.T) {
	c, monitor := prepare(t)
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			conn := c.connect(c.superuser)
			defer func() {
				_ = conn.Close(context.Background())
				execute(t, monitor, test.after...)
			}()
			execute(t, monitor, test.before...)
			if got := waited(t, monitor, messages(conn.PgConn(), test.messages)); got != test.waits {
				t.Errorf("waited for the WAL: %v, want %v", got, test.waits)
			}
			// What one transaction decided is forgotten in the next.
			if waited(t, monitor, messages(conn.PgConn(), []string{newUser})) == false {
				t.Error("a durable row afterwards does not wait")
			}
		})
	}
}

-- What decides at each commit whether it waits for the WAL. docs/durability.md says why each test is here.

-- The transaction waits: a lock that nothing but its end, or a rollback to before it, takes away.
CREATE OR REPLACE FUNCTION public.authstack_durability_wait() RETURNS trigger LANGUAGE plpgsql AS $wait$
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock_shared(1635087475, 1952539489);
  RETURN NULL;
END
$wait$;

-- Fires once for each row that can be made again, when the transaction commits, and turns the wait off where the
-- transaction did nothing else.
CREATE OR REPLACE FUNCTION public.authstack_durability() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $decide$
DECLARE
  stack text;
  query text;
BEGIN
  IF current_setting('synchronous_commit') = 'off' OR current_setting('authstack.waits', true) = 'yes' THEN
    RETURN NULL; -- Decided by an earlier row.
  END IF;

  -- Only at the end: SET CONSTRAINTS fires this before it, and what follows would be relaxed with it.
  GET DIAGNOSTICS stack = PG_CONTEXT;
  query := current_query();
  IF strpos(stack, E'\n') > 0 OR NOT (CASE
    WHEN query IS NULL OR query = '' THEN true -- The Sync of the extended protocol: no statement runs.
    WHEN octet_length(query) < 32 AND upper(btrim(query, E'; \n\t')) IN ('COMMIT', 'END', 'COMMIT WORK', 'COMMIT TRANSACTION', 'END WORK', 'END TRANSACTION') THEN true
    -- A statement of its own: the transaction began with this message, and it holds no other statement.
    ELSE now() = statement_timestamp() AND strpos(rtrim(query, E'; \n\t'), ';') = 0
  END)
  -- Something was written that has to stay, or is locked as strongly as a change of a table's definition does.
  OR EXISTS (
    SELECT FROM pg_lock_status() l WHERE l.pid = pg_backend_pid() AND CASE l.locktype
      WHEN 'relation' THEN l.mode NOT IN ('AccessShareLock', 'RowShareLock') AND NOT EXISTS (
        SELECT FROM pg_class c WHERE c.oid = l.relation AND l.mode = 'RowExclusiveLock' AND (
          c.relkind IN ('i', 't') -- Never without their table.
          OR c.relkind = 'r' AND NOT c.relhasrules AND (
            SELECT count(*) FILTER (WHERE t.tgname LIKE 'authstack\_durability\_%' AND t.tgenabled = 'A')
                = NULLIF(max(t.tgnargs) FILTER (WHERE t.tgname = 'authstack_durability' AND t.tgenabled = 'O'), 0)
              -- authentik's queue notifies of tasks when they are queued, and those wait.
              AND bool_and(NOT t.tgdeferrable OR t.tgname = 'authstack_durability' OR
                c.relname = 'authentik_tasks_task' AND t.tgname LIKE 'pgtrigger\_notify\_enqueueing\_%' AND t.tgqual IS NOT NULL)
            FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)))
      WHEN 'advisory' THEN l.classid = 1635087475 AND l.objid = 1952539489 AND l.objsubid = 2
      ELSE l.locktype NOT IN ('virtualxid', 'transactionid', 'tuple', 'page', 'extend', 'spectoken')
    END)
  -- A catalog was written; GRANT, REVOKE and CREATE FUNCTION leave no lock.
  OR current_setting('track_counts') <> 'on'
  OR EXISTS (
    SELECT FROM unnest('{CATALOGS}'::oid[]) c
    WHERE pg_stat_get_xact_tuples_inserted(c) + pg_stat_get_xact_tuples_updated(c) + pg_stat_get_xact_tuples_deleted(c) > 0)
  -- A cursor WITH HOLD runs its query after this.
  OR EXISTS (SELECT FROM pg_cursor() WHERE is_holdable)
  THEN
    PERFORM set_config('authstack.waits', 'yes', true);
    RETURN NULL;
  END IF;

  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN NULL;
END
$decide$;

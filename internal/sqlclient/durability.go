package sqlclient

import (
	"context"

	"github.com/jackc/pgx/v5"

	"authstack.dev/authstack/internal/durability"
	"authstack.dev/authstack/internal/facts"
)

// durability asks for the functions and triggers that decide which commits wait for the WAL.
func (s *Session) durability(ctx context.Context, db *facts.Database) error {
	db.Durability = facts.Durability{Functions: map[string]string{}}
	names := []string{durability.DecideName, durability.WaitName}
	rows, err := s.conn.Query(ctx, `SELECT p.proname::text, md5(p.prosrc) FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = pg_catalog.to_regnamespace($1) AND p.proname::text = ANY ($2::text[])`, durability.Schema, names)
	if err != nil {
		return err
	}
	var name, sum string
	if _, err = pgx.ForEachRow(rows, []any{&name, &sum}, func() error {
		db.Durability.Functions[name] = sum
		return nil
	}); err != nil {
		return err
	}
	// Ours, and on their tables whatever else is put off to the end of the transaction, but no foreign keys.
	rows, err = s.conn.Query(ctx, `WITH ours AS (
			SELECT t.oid, t.tgrelid FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
			WHERE p.pronamespace = pg_catalog.to_regnamespace($1) AND p.proname::text = ANY ($2::text[]))
		SELECT n.nspname::text, c.relname::text, t.tgname::text, p.proname::text, coalesce(pg_catalog.obj_description(t.oid, 'pg_trigger'), ''), t.tgenabled::text
		FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
			JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
		WHERE t.oid IN (SELECT oid FROM ours) OR t.tgrelid IN (SELECT tgrelid FROM ours) AND NOT t.tgisinternal AND t.tgdeferrable
		ORDER BY 1, 2, 3`, durability.Schema, names)
	if err != nil {
		return err
	}
	db.Durability.Triggers, err = pgx.CollectRows(rows, pgx.RowToStructByPos[facts.Trigger])
	return err
}

// SetDurability changes the triggers in one transaction. It waits for no lock longer than two seconds, lest logins queue up
// behind it; the next reconcile tries again.
func (s *Session) SetDurability(ctx context.Context, change durability.Change) error {
	return plain(pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		for _, statement := range append([]string{`SET LOCAL lock_timeout = '2s'`, `SET LOCAL client_min_messages = warning`}, change.Statements()...) {
			// Several statements in one string go by the simple protocol alone.
			if _, err := tx.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		return nil
	}))
}

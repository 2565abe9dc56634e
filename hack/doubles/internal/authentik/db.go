package authentik

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// A budget is how many statements one request sends, and how many of them are SET search_path: django-tenants sends
// one before nearly every statement (facts/authentik-measured.md §2).
type budget struct{ total, sets int }

// reqDB is the one PostgreSQL connection of one request. The product runs with CONN_MAX_AGE=0: it is opened for the
// request and closed after it, and no plan is ever reused (facts/authentik-measured.md §4, §6).
type reqDB struct {
	ctx    context.Context
	conn   *pgx.Conn
	others int // statements left that are not SET search_path
	sets   int // SET search_path left
	next   int // next filler
}

// connect opens a connection that sends unprepared statements, as psycopg's client-side cursors do.
func (c *Config) connect(ctx context.Context) (*pgx.Conn, error) { return connectTo(ctx, c.DSN(false)) }

// connectDirect is for LISTEN, advisory locks and migrations.
func (c *Config) connectDirect(ctx context.Context) (*pgx.Conn, error) {
	return connectTo(ctx, c.DSN(true))
}

func connectTo(ctx context.Context, dsn string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("the PostgreSQL settings do not parse") // not err: it may quote the password
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	cfg.ConnectTimeout = 10 * time.Second
	return pgx.ConnectConfig(ctx, cfg)
}

// open starts a request's share of the database.
func (c *Config) open(ctx context.Context, b budget) (*reqDB, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &reqDB{ctx: ctx, conn: conn, others: b.total - b.sets, sets: b.sets}, nil
}

func (d *reqDB) close() { _ = d.conn.Close(context.Background()) }

// set sends the SET search_path that precedes the next statement, while the request still has some to send.
func (d *reqDB) set() error {
	if d.sets <= 0 {
		return nil
	}
	d.sets--
	_, err := d.conn.Exec(d.ctx, "SET search_path = 'public'")
	return err
}

// exec runs one statement in its own commit.
func (d *reqDB) exec(sql string, args ...any) error {
	if err := d.set(); err != nil {
		return err
	}
	return d.raw(sql, args...)
}

// raw is exec without the SET: BEGIN, SAVEPOINT, COMMIT.
func (d *reqDB) raw(sql string, args ...any) error {
	d.others--
	_, err := d.conn.Exec(d.ctx, sql, args...)
	return err
}

// affected is exec that tells how many rows it touched.
func (d *reqDB) affected(sql string, args ...any) (int64, error) {
	if err := d.set(); err != nil {
		return 0, err
	}
	d.others--
	tag, err := d.conn.Exec(d.ctx, sql, args...)
	return tag.RowsAffected(), err
}

// one scans the first row into dest; found is false when there is none.
func (d *reqDB) one(dest []any, sql string, args ...any) (found bool, err error) {
	if err = d.set(); err != nil {
		return false, err
	}
	d.others--
	err = d.conn.QueryRow(d.ctx, sql, args...).Scan(dest...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// all runs a query and hands each row to scan.
func (d *reqDB) all(scan func(pgx.Rows) error, sql string, args ...any) error {
	if err := d.set(); err != nil {
		return err
	}
	d.others--
	rows, err := d.conn.Query(d.ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if scan == nil {
			continue
		}
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// inTx runs f in one transaction with a savepoint, as the task broker's enqueue does.
func (d *reqDB) inTx(f func() error) error {
	if err := d.raw("BEGIN"); err != nil {
		return err
	}
	if err := f(); err != nil {
		_ = d.raw("ROLLBACK")
		return err
	}
	return d.raw("COMMIT")
}

// fillers are the cheap look-ups by key that Django's middlewares and the flow planner make: nothing in them waits.
var fillers = []string{
	"SELECT t.tenant_uuid, t.schema_name, t.avatars FROM authentik_tenants_domain d INNER JOIN authentik_tenants_tenant t ON d.tenant_id = t.tenant_uuid WHERE d.domain = 'localhost' LIMIT 1",
	"SELECT tenant_uuid, schema_name, avatars, footer_links FROM authentik_tenants_tenant WHERE schema_name = 'public' LIMIT 1",
	"SELECT brand_uuid, domain, branding_title FROM authentik_brands_brand WHERE \"default\" LIMIT 1",
	"SELECT flow_uuid, slug, designation FROM authentik_flows_flow WHERE slug = 'default-authentication-flow'",
	"SELECT fsb_uuid, stage_id FROM authentik_flows_flowstagebinding WHERE target_id = '00000000-0000-0000-0000-000000000000' ORDER BY \"order\"",
	"SELECT policy_binding_uuid, policy_id FROM authentik_policies_policybinding WHERE target_id = '00000000-0000-0000-0000-000000000000' ORDER BY \"order\"",
	"SELECT group_uuid, name FROM authentik_core_group WHERE group_uuid = '00000000-0000-0000-0000-000000000000'",
	"SELECT id, username FROM authentik_core_user WHERE id = 0",
	"SELECT identifier FROM authentik_core_token WHERE identifier = 'goauthentik.io/outpost'",
	"SELECT score FROM authentik_policies_reputation_reputation WHERE identifier = '' AND ip = '0.0.0.0'",
}

// fill sends fillers until reserve statements that are not SET are left to the request's own code.
func (d *reqDB) fill(reserve int) error {
	for d.others > reserve {
		sql := fillers[d.next%len(fillers)]
		d.next++
		if err := d.all(nil, sql); err != nil {
			return err
		}
	}
	return nil
}

// finish sends what is left of the budget.
func (d *reqDB) finish() error {
	if err := d.fill(0); err != nil {
		return err
	}
	for d.sets > 0 {
		if err := d.set(); err != nil {
			return err
		}
	}
	return nil
}

// Package sqlclient is the thin edge to PostgreSQL: it asks a database about itself as the product's
// role, holds that role's settings and runs ANALYZE. It decides nothing.
package sqlclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack"
)

// Client connects to databases.
type Client struct {
	// Dial replaces the way to the server; nil is the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Timeout of a connection with its questions. Default: 10 s.
	Timeout time.Duration
}

// Session is a connection to one database.
type Session struct {
	conn *pgx.Conn
	role string
	name string
}

// Connect opens a session. Errors name the server's answer and never the password.
func (c *Client) Connect(ctx context.Context, target stack.DatabaseTarget) (*Session, error) {
	config, err := pgx.ParseConfig("")
	if err != nil {
		return nil, errors.New("the environment holds PostgreSQL variables that cannot be read")
	}
	config.Host, config.Port = target.Host, uint16(target.Port)
	config.Database, config.User, config.Password = target.Database, target.User, target.Password
	config.ConnectTimeout = c.timeout()
	config.Fallbacks = nil
	config.TLSConfig = nil
	if target.SSLMode == "require" {
		// sslmode=require encrypts and does not verify: the server's certificate is its own.
		config.TLSConfig = &tls.Config{InsecureSkipVerify: true}
	}
	// A server that went away with its machine is noticed within 20 s, also by a question without a time limit.
	config.DialFunc = (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}}).DialContext
	config.RuntimeParams = map[string]string{"application_name": "authstack"}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if c.Dial != nil {
		config.DialFunc = c.Dial
		config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	}
	// What pgx says of a time that ran out does not say in which step.
	var taken atomic.Bool
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		taken.Store(err == nil)
		return conn, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil && taken.Load() && pgconn.Timeout(err) {
		return nil, facts.ErrStandsStill
	}
	if err != nil {
		return nil, plain(err)
	}
	return &Session{conn: conn, role: target.User, name: target.Database}, nil
}

func (c *Client) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return 10 * time.Second
}

// Bound is the context of one connection with its questions.
func (c *Client) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout())
}

// Close ends the session.
func (s *Session) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx)
}

// Observe asks the database about itself.
func (s *Session) Observe(ctx context.Context) (*facts.Database, error) {
	db := &facts.Database{Settings: map[string]facts.Setting{}, RoleSettings: map[string]string{}}
	err := s.conn.QueryRow(ctx, `SELECT current_setting('server_version'), pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()`).
		Scan(&db.Version, &db.Encoding)
	if pgconn.Timeout(err) {
		// Nothing that this asks for can be locked.
		return nil, facts.ErrStandsStill
	}
	if err != nil {
		return nil, plain(err)
	}
	// "17.5 (Debian 17.5-1.pgdg12+1)"
	db.Version, _, _ = strings.Cut(db.Version, " ")
	for _, ask := range []func(context.Context, *facts.Database) error{s.settings, s.roleSettings, s.tables, s.migrated, s.durability} {
		if err := ask(ctx, db); err != nil {
			return nil, plain(err)
		}
	}
	return db, nil
}

func (s *Session) settings(ctx context.Context, db *facts.Database) error {
	rows, err := s.conn.Query(ctx, `SELECT name, coalesce(setting, ''), coalesce(unit, ''), source, pending_restart, vartype, context,
		coalesce(boot_val, '') FROM pg_settings`)
	if err != nil {
		return err
	}
	var name string
	var v facts.Setting
	_, err = pgx.ForEachRow(rows, []any{&name, &v.Value, &v.Unit, &v.Source, &v.PendingRestart, &v.VarType, &v.Context, &v.BootValue}, func() error {
		db.Settings[name] = v
		return nil
	})
	return err
}

func (s *Session) roleSettings(ctx context.Context, db *facts.Database) error {
	rows, err := s.conn.Query(ctx, `SELECT unnest(s.setconfig) FROM pg_db_role_setting s
		JOIN pg_database d ON d.oid = s.setdatabase JOIN pg_roles r ON r.oid = s.setrole
		WHERE d.datname = current_database() AND r.rolname = current_user`)
	if err != nil {
		return err
	}
	var entry string
	_, err = pgx.ForEachRow(rows, []any{&entry}, func() error {
		name, value, _ := strings.Cut(entry, "=")
		db.RoleSettings[name] = value
		return nil
	})
	return err
}

func (s *Session) tables(ctx context.Context, db *facts.Database) error {
	return s.conn.QueryRow(ctx, `SELECT count(*)::int4, count(*) FILTER (WHERE last_analyze IS NULL AND last_autoanalyze IS NULL)::int4 FROM pg_stat_user_tables`).
		Scan(&db.Tables, &db.NeverAnalyzed)
}

// migrationTables of the products: authentik's is Django's, Authelia's its own.
var migrationTables = []string{"django_migrations", "migrations"}

func (s *Session) migrated(ctx context.Context, db *facts.Database) error {
	for _, table := range migrationTables {
		var present bool
		if err := s.conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, table).Scan(&present); err != nil {
			return err
		}
		if !present {
			continue
		}
		if err := s.conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+pgx.Identifier{table}.Sanitize()+`)`).Scan(&present); err != nil {
			return err
		}
		db.Migrated = db.Migrated || present
	}
	return nil
}

// SetRole gives the role its settings in its database, where they differ from what it has, and takes
// back those of reset. It says whether it changed anything.
func (s *Session) SetRole(ctx context.Context, has, want map[string]string, reset []string) (changed bool, err error) {
	alter := `ALTER ROLE ` + pgx.Identifier{s.role}.Sanitize() + ` IN DATABASE ` + pgx.Identifier{s.name}.Sanitize()
	var statements []string
	for name, value := range want {
		if held, ok := has[name]; !ok || held != value {
			statements = append(statements, alter+` SET `+quoteName(name)+` TO `+quoteValue(value))
		}
	}
	for _, name := range reset {
		if _, ok := has[name]; ok {
			statements = append(statements, alter+` RESET `+quoteName(name))
		}
	}
	sort.Strings(statements)
	for _, statement := range statements {
		if _, err := s.conn.Exec(ctx, statement); err != nil {
			return changed, plain(err)
		}
		changed = true
	}
	return changed, nil
}

// Analyze has PostgreSQL gather statistics of every table that the role may analyse.
func (s *Session) Analyze(ctx context.Context) error {
	// Waits for no lock longer than a second at a time, lest it hold up a migration.
	if _, err := s.conn.Exec(ctx, `SET lock_timeout = '5s'`); err != nil {
		return plain(err)
	}
	rows, err := s.conn.Query(ctx, `SELECT format('%I.%I', schemaname, relname) FROM pg_stat_user_tables ORDER BY 1`)
	if err != nil {
		return plain(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return plain(err)
	}
	if len(tables) == 0 {
		return nil
	}
	_, err = s.conn.Exec(ctx, `ANALYZE `+strings.Join(tables, ", "))
	return plain(err)
}

// quoteName quotes the name of a parameter, whose parts are joined by a dot.
func quoteName(name string) string {
	return pgx.Identifier(strings.Split(name, ".")).Sanitize()
}

func quoteValue(value string) string {
	return `'` + strings.ReplaceAll(value, `'`, `''`) + `'`
}

// plain is an error in words: the server's answer with its code, or why there is none.
func plain(err error) error {
	if err == nil {
		return nil
	}
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return &facts.ServerError{Message: answer.Message, Code: answer.Code}
	}
	var lookup *net.DNSError
	if errors.As(err, &lookup) {
		return fmt.Errorf("the name %s is not known (yet)", lookup.Name)
	}
	var dial *net.OpError
	if errors.As(err, &dial) {
		return fmt.Errorf("%s %v: %w", dial.Op, dial.Addr, dial.Err)
	}
	if errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) {
		return errors.New("no answer in time")
	}
	return errors.New("the connection failed: " + firstLine(errors.Unwrap(err), err))
}

func firstLine(inner, outer error) string {
	err := outer
	if inner != nil {
		err = inner
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

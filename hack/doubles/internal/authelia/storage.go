package authelia

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx": the product too goes through database/sql
)

// storage is what a login asks of SQL: two ban look-ups and one row, even with regulation disabled (§1.6).
type storage interface {
	bannedIP(ctx context.Context, ip string) (bool, error)
	bannedUser(ctx context.Context, user string) (bool, error)
	record(ctx context.Context, a attempt) error
	failures(ctx context.Context, column, value string, since time.Time) (int, error)
	ban(ctx context.Context, table, column, value string, until time.Time) error
	ping(ctx context.Context) error
}

// attempt is a row of authentication_logs.
type attempt struct {
	time        time.Time
	successful  bool
	banned      bool
	username    string
	remoteIP    string
	uri, method string
}

// postgres uses database/sql without any pool setting, as the product does: connections unlimited, two kept idle.
type postgres struct{ db *sql.DB }

func openPostgres(c *PostgresConfig) (*postgres, error) {
	q := url.Values{"sslmode": {"disable"}, "application_name": {"authelia"}, "search_path": {c.Schema}, "connect_timeout": {strconv.Itoa(int(time.Duration(c.Timeout).Seconds()))}}
	if c.TLS != nil {
		q.Set("sslmode", "verify-full")
		if c.TLS.SkipVerify {
			q.Set("sslmode", "require")
		}
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(c.Username, c.Password), Path: "/" + c.Database}
	network, addr, err := splitAddress(c.Address, "5432")
	if err != nil {
		return nil, err
	}
	if network == "unix" {
		q.Set("host", addr)
	} else {
		u.Host = addr
	}
	u.RawQuery = q.Encode()
	db, err := sql.Open("pgx", u.String())
	if err != nil {
		return nil, errors.New("storage: postgres: the settings do not parse") // not err: it may quote the password
	}
	return &postgres{db}, nil
}

// splitAddress reads tcp://host:port, host:port, or unix:///path.
func splitAddress(address, port string) (network, addr string, err error) {
	if strings.HasPrefix(address, "/") {
		return "unix", address, nil
	}
	if !strings.Contains(address, "://") {
		address = "tcp://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", "", err
	}
	if u.Scheme == "unix" {
		return "unix", u.Path, nil
	}
	if u.Port() != "" {
		port = u.Port()
	}
	return "tcp", net.JoinHostPort(u.Hostname(), port), nil
}

// schemaVersion is the last migration of v4.39.20.
const schemaVersion = 24

var tables = []string{
	`CREATE TABLE IF NOT EXISTS authentication_logs (id SERIAL PRIMARY KEY, time TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT CURRENT_TIMESTAMP, successful BOOLEAN NOT NULL, banned BOOLEAN NOT NULL DEFAULT FALSE, username VARCHAR(100) NOT NULL, auth_type VARCHAR(8) NOT NULL DEFAULT '1FA', remote_ip VARCHAR(39) NULL, request_uri TEXT, request_method VARCHAR(8) NOT NULL DEFAULT '')`,
	`CREATE INDEX IF NOT EXISTS authentication_logs_username_idx ON authentication_logs (time, username, auth_type)`,
	`CREATE INDEX IF NOT EXISTS authentication_logs_remote_ip_idx ON authentication_logs (time, remote_ip, auth_type)`,
	`CREATE TABLE IF NOT EXISTS banned_user (id SERIAL PRIMARY KEY, time TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT CURRENT_TIMESTAMP, expires TIMESTAMP WITH TIME ZONE NULL, expired TIMESTAMP WITH TIME ZONE NULL, revoked BOOLEAN NOT NULL DEFAULT FALSE, username VARCHAR(100) NOT NULL, source VARCHAR(10) NOT NULL, reason VARCHAR(100) NULL)`,
	`CREATE INDEX IF NOT EXISTS banned_user_lookup_idx ON banned_user (username, revoked, expires, expired)`,
	`CREATE TABLE IF NOT EXISTS banned_ip (id SERIAL PRIMARY KEY, time TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT CURRENT_TIMESTAMP, expires TIMESTAMP WITH TIME ZONE NULL, expired TIMESTAMP WITH TIME ZONE NULL, revoked BOOLEAN NOT NULL DEFAULT FALSE, ip VARCHAR(39) NOT NULL, source VARCHAR(10) NOT NULL, reason VARCHAR(100) NULL)`,
	`CREATE INDEX IF NOT EXISTS banned_ip_lookup_idx ON banned_ip (ip, revoked, expires, expired)`,
	`CREATE TABLE IF NOT EXISTS encryption (id SERIAL PRIMARY KEY, name VARCHAR(100) UNIQUE, value BYTEA NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS identity_verification (id SERIAL PRIMARY KEY, jti VARCHAR(36) UNIQUE, iat TIMESTAMP WITH TIME ZONE NOT NULL, username VARCHAR(100) NOT NULL, action VARCHAR(50) NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS totp_configurations (id SERIAL PRIMARY KEY, username VARCHAR(100) UNIQUE NOT NULL, secret BYTEA NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS webauthn_credentials (id SERIAL PRIMARY KEY, username VARCHAR(100) NOT NULL, kid VARCHAR(512) UNIQUE NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS user_preferences (id SERIAL PRIMARY KEY, username VARCHAR(100) UNIQUE NOT NULL, second_factor_method VARCHAR(11) NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS user_opaque_identifier (id SERIAL PRIMARY KEY, service VARCHAR(20) NOT NULL, sector_id VARCHAR(255) NOT NULL, username VARCHAR(100) NOT NULL, identifier UUID UNIQUE NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS one_time_code (id SERIAL PRIMARY KEY, public_id CHAR(36) UNIQUE NOT NULL, signature VARCHAR(128) NOT NULL, username VARCHAR(100) NOT NULL)`,
}

// migrate runs at every start; a fresh install locks the migrations table exclusively (§1.6).
func (p *postgres) migrate(ctx context.Context, version string) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it has nothing to do
	for _, q := range []string{
		`CREATE TABLE IF NOT EXISTS migrations (id SERIAL PRIMARY KEY, applied TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT CURRENT_TIMESTAMP, version_before INTEGER NULL DEFAULT NULL, version_after INTEGER NOT NULL, application_version VARCHAR(128) NOT NULL)`,
		`LOCK TABLE migrations IN ACCESS EXCLUSIVE MODE`,
	} {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	var have int
	if err := tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(version_after), 0) FROM migrations`).Scan(&have); err != nil {
		return err
	}
	if have >= schemaVersion {
		return tx.Commit()
	}
	for _, q := range slices.Concat(tables, oidcTables) {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%.50s: %w", q, err)
		}
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO migrations (version_before, version_after, application_version) VALUES ($1, $2, $3)`, have, schemaVersion, version); err != nil {
		return err
	}
	return tx.Commit()
}

func (p *postgres) ping(ctx context.Context) error { return p.db.PingContext(ctx) }

func (p *postgres) bannedIP(ctx context.Context, ip string) (bool, error) {
	return p.banned(ctx, `SELECT id, time, expires, expired, revoked, ip, source, reason FROM banned_ip WHERE ip = $1 AND revoked = FALSE AND (expires IS NULL OR expires > $2) AND expired IS NULL ORDER BY time DESC LIMIT 1`, ip)
}

func (p *postgres) bannedUser(ctx context.Context, user string) (bool, error) {
	return p.banned(ctx, `SELECT id, time, expires, expired, revoked, username, source, reason FROM banned_user WHERE username = $1 AND revoked = FALSE AND (expires IS NULL OR expires > $2) AND expired IS NULL ORDER BY time DESC LIMIT 1`, user)
}

func (p *postgres) banned(ctx context.Context, query, value string) (bool, error) {
	rows, err := p.db.QueryContext(ctx, query, value, time.Now())
	if err != nil {
		return false, err
	}
	defer rows.Close()
	found := rows.Next()
	return found, rows.Err()
}

func (p *postgres) record(ctx context.Context, a attempt) error {
	_, err := p.db.ExecContext(ctx, `INSERT INTO authentication_logs (time, successful, banned, username, auth_type, remote_ip, request_uri, request_method) VALUES ($1, $2, $3, $4, '1FA', $5, $6, $7)`,
		a.time, a.successful, a.banned, a.username, a.remoteIP, a.uri, a.method)
	return err
}

// failures counts the failed attempts since the last success: the second look-up is the row set itself.
func (p *postgres) failures(ctx context.Context, column, value string, since time.Time) (int, error) {
	var lastBan sql.NullTime
	table := map[string]string{"username": "banned_user", "remote_ip": "banned_ip"}[column]
	key := map[string]string{"username": "username", "remote_ip": "ip"}[column]
	if err := p.db.QueryRowContext(ctx, `SELECT MAX(time) FROM `+table+` WHERE `+key+` = $1`, value).Scan(&lastBan); err != nil {
		return 0, err
	}
	if lastBan.Valid && lastBan.Time.After(since) {
		since = lastBan.Time
	}
	rows, err := p.db.QueryContext(ctx, `SELECT time, successful FROM authentication_logs WHERE time > $1 AND `+column+` = $2 AND banned = FALSE ORDER BY time DESC LIMIT 100`, since, value)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var at time.Time
		var ok bool
		if err := rows.Scan(&at, &ok); err != nil {
			return 0, err
		}
		if ok {
			break
		}
		n++
	}
	return n, rows.Err()
}

func (p *postgres) ban(ctx context.Context, table, column, value string, until time.Time) error {
	_, err := p.db.ExecContext(ctx, `INSERT INTO `+table+` (expires, `+column+`, source, reason) VALUES ($1, $2, 'regulation', 'Exceeding Maximum Retries')`, until, value)
	return err
}

// local stands for storage.local: attempts and bans in memory, for the double links no SQLite.
type local struct {
	mu   sync.Mutex
	log  []attempt
	bans map[string]time.Time
}

func (l *local) ping(context.Context) error { return nil }

func (l *local) isBanned(k string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.bans[k]), nil
}

func (l *local) bannedIP(_ context.Context, ip string) (bool, error) {
	return l.isBanned("banned_ip/" + ip)
}

func (l *local) bannedUser(_ context.Context, u string) (bool, error) {
	return l.isBanned("banned_user/" + u)
}

func (l *local) record(_ context.Context, a attempt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, a)
	if len(l.log) > 10000 {
		l.log = l.log[5000:]
	}
	return nil
}

func (l *local) failures(_ context.Context, column, value string, since time.Time) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.log) - 1; i >= 0 && l.log[i].time.After(since); i-- {
		a := l.log[i]
		if (column == "username" && a.username != value) || (column == "remote_ip" && a.remoteIP != value) || a.banned {
			continue
		}
		if a.successful {
			break
		}
		n++
	}
	return n, nil
}

func (l *local) ban(_ context.Context, table, _, value string, until time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bans[table+"/"+value] = until
	return nil
}

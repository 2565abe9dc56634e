package durability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// ledger is what the database has acknowledged, by person. Only what an answer came for is in it; what was under way
// when the crash came may be there or not.
type ledger struct {
	mu sync.Mutex
	// users have their newest acknowledged password; uncertain are the sessions and tokens whose end was asked for.
	users     map[int]string
	uncertain map[string]bool
	// tokens that exist, revoked ones that must not, and sessions that were logged out and must not exist.
	tokens, revoked, loggedOut map[string]bool
	// made are the accounts that were made.
	made map[string]bool
	// sessions that were made; a crash may take them, and their loss is counted.
	sessions map[string]bool
	// acknowledged counts the commits, and at is when the newest of each name was.
	acknowledged int
	at           map[string]time.Time
}

func newLedger() *ledger {
	return &ledger{users: map[int]string{}, uncertain: map[string]bool{}, tokens: map[string]bool{}, revoked: map[string]bool{}, loggedOut: map[string]bool{}, made: map[string]bool{}, sessions: map[string]bool{}, at: map[string]time.Time{}}
}

// person is one client that logs in and out, changes its password, makes tokens and revokes them.
type person struct {
	id     int
	conn   *pgx.Conn
	ledger *ledger
	random *rand.Rand
	serial int
	key    string
	token  string
	// run tells the runs apart, so that names are used once.
	run int
}

func (p *person) name(kind string) string {
	p.serial++
	return fmt.Sprintf("%s-%d-%d-%d", kind, p.run, p.id, p.serial)
}

// send one message of the simple protocol, as the product's driver does, and note an acknowledgement.
func (p *person) send(ctx context.Context, statement, name string, noted func()) error {
	_, err := p.conn.PgConn().Exec(ctx, statement).ReadAll()
	if err == nil {
		p.ledger.mu.Lock()
		defer p.ledger.mu.Unlock()
		p.ledger.acknowledged++
		p.ledger.at[name] = time.Now()
		if noted != nil {
			noted()
		}
	}
	return err
}

// transaction is how Django saves a session: BEGIN, the statements and COMMIT, a message each.
func (p *person) transaction(ctx context.Context, name string, noted func(), statements ...string) error {
	for _, statement := range append([]string{"BEGIN"}, statements...) {
		if _, err := p.conn.PgConn().Exec(ctx, statement).ReadAll(); err != nil {
			return err
		}
	}
	return p.send(ctx, "COMMIT", name, noted)
}

// expect notes before a change what will not be certain until it is acknowledged.
func (p *person) expect(what string) {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	p.ledger.uncertain[what] = true
}

const sessionData = `decode(repeat(md5(random()::text), 100), 'hex')`

// login as authentik 2025.12 writes it: throttle, session and policy rows, another session key, the person's row.
func (p *person) login(ctx context.Context) error {
	anonymous := p.name("s")
	insert := func(key string) string {
		return fmt.Sprintf(`INSERT INTO authentik_core_session VALUES ('%s', now() + interval '1 day', true, %s, '10.0.0.1', 'Mozilla/5.0 (X11; Linux x86_64)', now())`, key, sessionData)
	}
	save := fmt.Sprintf(`UPDATE authentik_core_session SET expires = now() + interval '1 day', session_data = %s, last_used = now() WHERE session_key = '%s'`, sessionData, anonymous)
	p.key = p.name("s")
	key := p.key
	for _, step := range []func() error{
		func() error { return p.send(ctx, newThrottle, "", nil) },
		func() error {
			return p.transaction(ctx, anonymous, func() { p.ledger.sessions[anonymous] = true }, insert(anonymous))
		},
		func() error { return p.transaction(ctx, "", nil, save) },
		func() error { return p.send(ctx, newThrottle, "", nil) },
		func() error { return p.transaction(ctx, key, func() { p.ledger.sessions[key] = true }, insert(key)) },
		func() error {
			p.expect(anonymous)
			return p.send(ctx, fmt.Sprintf(`DELETE FROM authentik_core_session WHERE session_key = '%s'`, anonymous), anonymous, func() {
				delete(p.ledger.sessions, anonymous)
				p.ledger.loggedOut[anonymous] = true
			})
		},
		func() error {
			return p.transaction(ctx, "", nil, fmt.Sprintf(`INSERT INTO authentik_core_authenticatedsession VALUES ('%s', gen_random_uuid(), %d)`, key, p.id))
		},
		func() error {
			return p.send(ctx, fmt.Sprintf(`UPDATE authentik_core_user SET last_login = now() WHERE id = %d`, p.id), "", nil)
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// logout deletes the session; half of the time with a new one in the same transaction, as a product could.
func (p *person) logout(ctx context.Context) error {
	key := p.key
	p.expect(key)
	noted := func() {
		delete(p.ledger.sessions, key)
		p.ledger.loggedOut[key] = true
	}
	gone := []string{fmt.Sprintf(`DELETE FROM authentik_core_authenticatedsession WHERE session_id = '%s'`, key), fmt.Sprintf(`DELETE FROM authentik_core_session WHERE session_key = '%s'`, key)}
	if p.random.IntN(2) == 0 {
		gone = append(gone, newSession)
	}
	return p.transaction(ctx, key, noted, gone...)
}

func (p *person) password(ctx context.Context) error {
	value := p.name("p")
	statements := []string{fmt.Sprintf(`UPDATE authentik_core_user SET password = '%s', password_change_date = now() WHERE id = %d`, value, p.id)}
	if p.random.IntN(2) == 0 {
		statements = append(statements, newSession) // A session in the same transaction must not take the wait away.
	}
	return p.transaction(ctx, value, func() { p.ledger.users[p.id] = value }, statements...)
}

func (p *person) account(ctx context.Context) error {
	name := p.name("u")
	return p.transaction(ctx, name, func() { p.ledger.made[name] = true }, newSession, fmt.Sprintf(`INSERT INTO authentik_core_user (password, username, first_name,
		last_name, email, is_active, date_joined, uuid, name, path, type, attributes, last_updated, password_change_date)
		VALUES ('', '%s', '', '', '', true, now(), gen_random_uuid(), '', '', '', '{}', now(), now())`, name), newThrottle)
}

func (p *person) makeToken(ctx context.Context) error {
	p.token = p.name("t")
	token := p.token
	return p.send(ctx, fmt.Sprintf(`INSERT INTO authentik_core_token VALUES (gen_random_uuid(), '%s', '%s', 'api', NULL, false, '', NULL, %d)`, token, token, p.id), token, func() { p.ledger.tokens[token] = true })
}

func (p *person) revokeToken(ctx context.Context) error {
	token := p.token
	p.expect(token)
	return p.transaction(ctx, token, func() {
		delete(p.ledger.tokens, token)
		p.ledger.revoked[token] = true
	}, newThrottle, fmt.Sprintf(`DELETE FROM authentik_core_token WHERE identifier = '%s'`, token))
}

// live goes on until the connection breaks. When the load is to end, one more logout is the last thing that is done, so
// that nothing follows that would flush it.
func (p *person) live(ctx context.Context, stop *atomic.Bool) error {
	steps := []func(context.Context) error{p.login, p.password, p.account, p.makeToken, p.revokeToken, p.logout}
	for i := 0; ; i++ {
		if stop.Load() && i%len(steps) == len(steps)-1 {
			return p.logout(ctx)
		}
		if err := steps[i%len(steps)](ctx); err != nil {
			return err
		}
	}
}

// broken is what survived a crash against its acknowledgement.
type broken struct {
	accounts, passwords, tokens, revocations, logouts, sessions int
	// oldest is when the oldest of them was acknowledged.
	oldest time.Time
}

func (b broken) identity() int {
	return b.accounts + b.passwords + b.tokens + b.revocations + b.logouts
}

// check what is in force after the crash.
func (l *ledger) check(t testing.TB, conn *pgx.Conn) broken {
	t.Helper()
	ctx := context.Background()
	set := func(query string) map[string]bool {
		rows, err := conn.Query(ctx, query)
		if err != nil {
			t.Fatal(err)
		}
		values, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]bool{}
		for _, value := range values {
			out[value] = true
		}
		return out
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var b broken
	sessions, tokens := set(`SELECT session_key FROM authentik_core_session`), set(`SELECT identifier FROM authentik_core_token`)
	count := func(into *int, name string, condition bool) {
		if !condition {
			return
		}
		*into++
		if at := l.at[name]; b.oldest.IsZero() || at.Before(b.oldest) {
			b.oldest = at
		}
	}
	for id, acknowledged := range l.users {
		var password string
		if err := conn.QueryRow(ctx, `SELECT password FROM authentik_core_user WHERE id = $1`, id).Scan(&password); err != nil {
			t.Fatal(err)
		}
		count(&b.passwords, acknowledged, later(acknowledged, password))
	}
	accounts := set(`SELECT username FROM authentik_core_user`)
	for name := range l.made {
		count(&b.accounts, name, !accounts[name])
	}
	for token := range l.tokens {
		count(&b.tokens, token, !tokens[token] && !l.uncertain[token])
	}
	for token := range l.revoked {
		count(&b.revocations, token, tokens[token])
	}
	for key := range l.loggedOut {
		count(&b.logouts, key, sessions[key])
	}
	for key := range l.sessions {
		count(&b.sessions, key, !sessions[key] && !l.uncertain[key])
	}
	return b
}

// later is whether a name carries a higher serial number than another.
func later(a, b string) bool {
	serial := func(name string) int {
		i := len(name)
		for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
			i--
		}
		n, _ := strconv.Atoi(name[i:])
		return n
	}
	return serial(a) > serial(b)
}

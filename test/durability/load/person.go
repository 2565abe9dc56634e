package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// person is one client that logs in and out, changes its password, makes tokens and revokes them.
type person struct {
	id     int
	conn   *pgx.Conn
	ledger *Ledger
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

const sessionData = `convert_to('authentik/flows/plan', 'UTF8') || decode(repeat(md5(random()::text), 100), 'hex')`

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
		func() error { return p.send(ctx, NewThrottle, "", nil) },
		func() error {
			return p.transaction(ctx, anonymous, func() { p.ledger.sessions[anonymous] = true }, insert(anonymous))
		},
		func() error { return p.transaction(ctx, "", nil, save) },
		func() error { return p.send(ctx, NewThrottle, "", nil) },
		func() error { return p.transaction(ctx, key, func() { p.ledger.sessions[key] = true }, insert(key)) },
		func() error {
			p.expect(anonymous)
			return p.send(ctx, fmt.Sprintf(`DELETE FROM authentik_core_session WHERE session_key = '%s'`, anonymous), "", func() { delete(p.ledger.sessions, anonymous) })
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
		gone = append(gone, NewSession)
	}
	return p.transaction(ctx, key, noted, gone...)
}

func (p *person) password(ctx context.Context) error {
	value := p.name("p")
	statements := []string{fmt.Sprintf(`UPDATE authentik_core_user SET password = '%s', password_change_date = now() WHERE id = %d`, value, p.id)}
	if p.random.IntN(2) == 0 {
		statements = append(statements, NewSession) // A session in the same transaction must not take the wait away.
	}
	return p.transaction(ctx, value, func() { p.ledger.users[p.id] = value }, statements...)
}

func (p *person) account(ctx context.Context) error {
	name := p.name("u")
	return p.transaction(ctx, name, func() { p.ledger.made[name] = true }, NewSession, fmt.Sprintf(`INSERT INTO authentik_core_user (password, username, first_name,
		last_name, email, is_active, date_joined, uuid, name, path, type, attributes, last_updated, password_change_date)
		VALUES ('', '%s', '', '', '', true, now(), gen_random_uuid(), '', '', '', '{}', now(), now())`, name), NewThrottle)
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
	}, NewThrottle, fmt.Sprintf(`DELETE FROM authentik_core_token WHERE identifier = '%s'`, token))
}

// task puts one into the queue, does it as a worker does, and puts it into the queue again, as a person can who retries it.
// The queue is none that a worker of the stack looks at.
func (p *person) task(ctx context.Context) error {
	p.serial++
	id := fmt.Sprintf("%08x-%04x-4000-8000-%012x", p.id, p.run, p.serial)
	note := fmt.Sprintf(`INSERT INTO authentik_tasks_tasklog (id, task_id, event, log_level, logger, "timestamp", attributes, previous) VALUES (gen_random_uuid(), '%s', '', 'info', '', now(), '{}', false)`, id)
	state := func(state string) string {
		return fmt.Sprintf(`UPDATE authentik_tasks_task SET state = '%s', mtime = now(), aggregated_status = '%s' WHERE message_id = '%s'`, state, state, id)
	}
	queued := func() { p.ledger.tasks[id] = true }
	if err := p.transaction(ctx, id, queued, fmt.Sprintf(`INSERT INTO authentik_tasks_task (message_id, queue_name, actor_name, state, mtime, retries, aggregated_status, expiring, tenant_id)
		SELECT '%s', 'crash', 'nothing', 'queued', now(), 0, 'queued', true, tenant_uuid FROM authentik_tenants_tenant LIMIT 1`, id), note); err != nil {
		return err
	}
	p.ledger.mu.Lock()
	delete(p.ledger.tasks, id) // From here on it may be seen as consumed or done.
	p.ledger.mu.Unlock()
	for _, statement := range []string{state("consumed"), note, state("done")} {
		if err := p.send(ctx, statement, "", nil); err != nil {
			return err
		}
	}
	return p.transaction(ctx, id, queued, state("queued"), NewSession)
}

// live goes on until the connection breaks. When the load is to end, the last thing that is done is one that must stay (a
// logout, a password, an account, a revocation, a task), so that nothing follows that would flush it.
func (p *person) live(ctx context.Context, stop *atomic.Bool) error {
	steps := []func(context.Context) error{p.login, p.password, p.account, p.makeToken, p.revokeToken, p.task, p.logout}
	for i := 0; ; i++ {
		if stop.Load() && i%len(steps) == len(steps)-1 {
			return p.last(ctx)
		}
		if err := steps[i%len(steps)](ctx); err != nil {
			return err
		}
	}
}

// last is as often a revocation, in a table without triggers, as a logout, in one with them.
func (p *person) last(ctx context.Context) error {
	switch p.random.IntN(7) {
	case 0:
		return p.password(ctx)
	case 1:
		return p.account(ctx)
	case 6:
		return p.task(ctx)
	case 2, 3:
		if err := p.makeToken(ctx); err != nil {
			return err
		}
		return p.revokeToken(ctx)
	}
	return p.logout(ctx)
}

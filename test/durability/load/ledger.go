package load

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Ledger is what the database has acknowledged, by person. Only what an answer came for is in it; what was under way
// when the crash came may be there or not.
type Ledger struct {
	mu sync.Mutex
	// users have their newest acknowledged password; uncertain are the sessions and tokens whose end was asked for.
	users     map[int]string
	uncertain map[string]bool
	// tokens that exist, revoked ones that must not, and sessions that were logged out and must not exist.
	tokens, revoked, loggedOut map[string]bool
	// made are the accounts that were made, and tasks those that were put into the queue, the second time after they were done.
	made, tasks map[string]bool
	// sessions that were made; a crash may take them, and their loss is counted.
	sessions map[string]bool
	// acknowledged counts the commits, and at is when the newest of each name was.
	acknowledged int
	at           map[string]time.Time
}

// NewLedger makes an empty one.
func NewLedger() *Ledger {
	return &Ledger{users: map[int]string{}, at: map[string]time.Time{}, uncertain: map[string]bool{}, tokens: map[string]bool{}, revoked: map[string]bool{}, loggedOut: map[string]bool{},
		made: map[string]bool{}, tasks: map[string]bool{}, sessions: map[string]bool{}}
}

// Broken is what survived a crash against its acknowledgement.
type Broken struct {
	Accounts, Passwords, Tokens, Revocations, Logouts, Tasks, Sessions int
	// Oldest is when the oldest of them was acknowledged; zero where nothing is missing.
	Oldest time.Time
}

// Identity counts what no crash may take under Strict and IdentityDurable.
func (b Broken) Identity() int {
	return b.Accounts + b.Passwords + b.Tokens + b.Revocations + b.Logouts + b.Tasks
}

// Add what another crash broke.
func (b *Broken) Add(other Broken) {
	b.Accounts += other.Accounts
	b.Passwords += other.Passwords
	b.Tokens += other.Tokens
	b.Revocations += other.Revocations
	b.Logouts += other.Logouts
	b.Tasks += other.Tasks
	b.Sessions += other.Sessions
	if b.Oldest.IsZero() || !other.Oldest.IsZero() && other.Oldest.Before(b.Oldest) {
		b.Oldest = other.Oldest
	}
}

// Check what is in force after a crash.
func (l *Ledger) Check(ctx context.Context, conn *pgx.Conn) (Broken, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b Broken
	var there struct{ sessions, tokens, accounts, waiting map[string]bool }
	for query, into := range map[string]*map[string]bool{
		`SELECT session_key FROM authentik_core_session`:                           &there.sessions,
		`SELECT identifier FROM authentik_core_token`:                              &there.tokens,
		`SELECT username FROM authentik_core_user`:                                 &there.accounts,
		`SELECT message_id::text FROM authentik_tasks_task WHERE state = 'queued'`: &there.waiting,
	} {
		rows, err := conn.Query(ctx, query)
		if err != nil {
			return b, err
		}
		values, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return b, err
		}
		*into = map[string]bool{}
		for _, value := range values {
			(*into)[value] = true
		}
	}
	count := func(into *int, name string, condition bool) {
		if !condition {
			return
		}
		*into++
		if at := l.at[name]; b.Oldest.IsZero() || at.Before(b.Oldest) {
			b.Oldest = at
		}
	}
	for id, acknowledged := range l.users {
		var password string
		if err := conn.QueryRow(ctx, `SELECT password FROM authentik_core_user WHERE id = $1`, id).Scan(&password); err != nil {
			return b, fmt.Errorf("the password of person %d: %w", id, err)
		}
		count(&b.Passwords, acknowledged, later(acknowledged, password))
	}
	for name := range l.made {
		count(&b.Accounts, name, !there.accounts[name])
	}
	for token := range l.tokens {
		count(&b.Tokens, token, !there.tokens[token] && !l.uncertain[token])
	}
	for token := range l.revoked {
		count(&b.Revocations, token, there.tokens[token])
	}
	for key := range l.loggedOut {
		count(&b.Logouts, key, there.sessions[key])
	}
	for id := range l.tasks {
		count(&b.Tasks, id, !there.waiting[id])
	}
	for key := range l.sessions {
		count(&b.Sessions, key, !there.sessions[key] && !l.uncertain[key])
	}
	return b, nil
}

// Counted forgets the sessions: what a crash took of them has been counted.
func (l *Ledger) Counted() { l.sessions = map[string]bool{} }

// Acknowledged is the number of commits so far, and whether each kind of them was among them.
func (l *Ledger) Acknowledged() (commits int, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acknowledged, len(l.loggedOut) > 0 && len(l.tokens)+len(l.revoked) > 0 && len(l.users) > 0 && len(l.made) > 0 && len(l.tasks) > 0
}

// later is whether the name of one password is newer than another: of a later run, or of the same and with a higher number.
// A person's first password has no name.
func later(a, b string) bool {
	order := func(name string) (run, serial int) {
		if parts := strings.Split(name, "-"); len(parts) == 4 {
			run, _ = strconv.Atoi(parts[1])
			serial, _ = strconv.Atoi(parts[3])
		}
		return run, serial
	}
	runA, serialA := order(a)
	runB, serialB := order(b)
	return runA > runB || runA == runB && serialA > serialB
}

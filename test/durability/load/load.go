// Package load is a load on authentik's tables by people whose every acknowledged change is remembered, so that after a
// crash of the database it can be told what of it is no longer in force.
package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// NewSession is a statement that makes a session, and NewThrottle one that counts a request: what goes beside everything else.
const (
	NewSession  = `INSERT INTO authentik_core_session VALUES (md5(random()::text), now() + interval '1 day', true, '\x80', '10.0.0.1', 'test', now())`
	NewThrottle = `INSERT INTO django_postgres_cache_cacheentry VALUES ('public:authentik_cache:1:throttle_anon_' || random(), 'x', now()) ON CONFLICT (cache_key) DO UPDATE SET value = EXCLUDED.value`
)

// MakePeople makes accounts and returns their ids, which the database chose.
func MakePeople(ctx context.Context, conn *pgx.Conn, count int) ([]int, error) {
	rows, err := conn.Query(ctx, `INSERT INTO authentik_core_user (password, username, first_name, last_name, email, is_active, date_joined, uuid, name, path, type,
			attributes, last_updated, password_change_date)
		SELECT '', 'person-' || gen_random_uuid(), '', '', '', true, now(), gen_random_uuid(), '', '', '', '{}', now(), now() FROM generate_series(1, $1::int) RETURNING id`, count)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

// Crowd are people who load a database at once, each on a connection.
type Crowd struct {
	stop, over atomic.Bool
	group      sync.WaitGroup
	// failed is what broke before Crashing was called.
	mu     sync.Mutex
	failed error
}

// Start has people live on the connections, and close them; the run tells the loads apart that one ledger is kept of.
func Start(ctx context.Context, ledger *Ledger, run int, people []int, conns []*pgx.Conn) *Crowd {
	c := &Crowd{}
	for i, conn := range conns {
		p := &person{id: people[i], conn: conn, ledger: ledger, random: rand.New(rand.NewPCG(uint64(run), uint64(i))), run: run}
		c.group.Go(func() {
			if err := p.live(ctx, &c.stop); err != nil && !c.over.Load() {
				c.mu.Lock()
				c.failed = fmt.Errorf("before the crash: %w", err)
				c.mu.Unlock()
			}
			_ = conn.Close(ctx)
		})
	}
	return c
}

// Stop has everybody end with something that must stay, and waits for it.
func (c *Crowd) Stop() {
	c.stop.Store(true)
	c.group.Wait()
}

// Crashing says that from now on connections may break.
func (c *Crowd) Crashing() { c.over.Store(true) }

// Wait until the last connection is broken; the error is of one that broke before that was due.
func (c *Crowd) Wait() error {
	c.group.Wait()
	return c.failed
}

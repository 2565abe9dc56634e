package conformance

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"authstack.dev/authstack/hack/doubles/internal/authentik"
)

// loginStatements are the measured statements of each step, and the SET search_path among them; they hold for the
// versions whose cache and throttle are in PostgreSQL (facts/authentik-measured.md §2.1).
var loginStatements = [6][2]int{{39, 18}, {27, 12}, {33, 15}, {31, 14}, {47, 22}, {111, 50}}

// tolerance is how far a count may be off: the product itself scatters (288 to 292 statements, 23.4 to 24.5 syncs).
const tolerance = 0.08

// probe reads PostgreSQL's counters.
type probe struct {
	conn       *pgx.Conn
	ctx        context.Context
	statements bool // pg_stat_statements is there
	syncs      string
	// rest is how few backends were ever seen: those that stay between requests.
	rest int
}

func openProbe(ctx context.Context, dsn string) (*probe, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	p := &probe{conn: conn, ctx: ctx, rest: -1}
	var wal bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_stat_statements'),
EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'pg_stat_wal'::regclass AND attname = 'wal_sync')`).Scan(&p.statements, &wal)
	p.syncs = "SELECT wal_sync::bigint FROM pg_stat_wal"
	if !wal { // PostgreSQL 18 moved it
		p.syncs = "SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal'"
	}
	return p, err
}

// counts is one reading.
type counts struct{ syncs, stmts, sets, sessions int64 }

func (p *probe) read() (c counts, err error) {
	if err = p.settle(); err != nil {
		return c, err
	}
	if _, err = p.conn.Exec(p.ctx, "SELECT pg_stat_clear_snapshot()"); err != nil {
		return c, err
	}
	if err = p.conn.QueryRow(p.ctx, p.syncs).Scan(&c.syncs); err != nil {
		return c, err
	}
	if err = p.conn.QueryRow(p.ctx, "SELECT sessions FROM pg_stat_database WHERE datname = current_database()").Scan(&c.sessions); err != nil {
		return c, err
	}
	if p.statements {
		err = p.conn.QueryRow(p.ctx, `SELECT COALESCE(sum(calls), 0)::bigint, COALESCE(sum(calls) FILTER (WHERE query ILIKE 'SET search_path%'), 0)::bigint FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT ILIKE '%pg_stat_%'`).Scan(&c.stmts, &c.sets)
	}
	return c, err
}

// settle waits until no backend comes or goes: a request's backend reports what it did when it ends, and on a busy
// machine that is a while after the answer. As many as ever stayed between requests may stay; where more do, it is
// waited for a second in which none comes or goes.
func (p *probe) settle() error {
	const pause, quiet, busy = 30 * time.Millisecond, 3, 34
	// At most six seconds: a database that others use as well never settles.
	for same, last, tries := 0, -1, 0; tries < 200; tries++ {
		time.Sleep(pause)
		var n int
		if err := p.conn.QueryRow(p.ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()").Scan(&n); err != nil {
			return err
		}
		if same++; n != last {
			same, last = 0, n
		}
		if same >= quiet && n <= p.rest || same >= busy {
			if p.rest < 0 || n < p.rest {
				p.rest = n
			}
			return nil
		}
	}
	return nil
}

// reported waits until connections that stay, such as the embedded outpost's, have reported what was done on them before:
// PostgreSQL counts it ten seconds after they became idle (PGSTAT_IDLE_INTERVAL, since version 15), in the middle of something else.
func (p *probe) reported() error {
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(300 * time.Millisecond) {
		var waiting int
		if err := p.conn.QueryRow(p.ctx, `SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state_change > clock_timestamp() - interval '11 s'`).Scan(&waiting); err != nil || waiting == 0 {
			return err
		}
	}
	return nil // Somebody is always at work here, and what they do is counted as well.
}

// delta runs f and returns what it added to the counters.
func (p *probe) delta(f func() error) (counts, error) {
	a, err := p.read()
	if err != nil {
		return a, err
	}
	if err := f(); err != nil {
		return a, err
	}
	b, err := p.read()
	return counts{b.syncs - a.syncs, b.stmts - a.stmts, b.sets - a.sets, b.sessions - a.sessions}, err
}

// near is |got - want| within the tolerance, and never less than one off.
func near(got, want float64) bool {
	d := got - want
	return d <= max(1, want*tolerance) && -d <= max(1, want*tolerance)
}

// written are the rows a login changes, by table: what the real product's statement log showed.
var written = []string{"authentik_core_session", "authentik_core_authenticatedsession", "authentik_events_event", "authentik_core_user", "authentik_policies_reputation_reputation"}

func (p *probe) rows() (map[string]int64, error) {
	out := map[string]int64{}
	if _, err := p.conn.Exec(p.ctx, "SELECT pg_stat_clear_snapshot()"); err != nil {
		return nil, err
	}
	r, err := p.conn.Query(p.ctx, "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables")
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for r.Next() {
		var name string
		var n int64
		if err := r.Scan(&name, &n); err != nil {
			return nil, err
		}
		out[name] = n
	}
	return out, r.Err()
}

// countAuthentik counts commits, statements, connections and tables of logins and dashboard requests.
func (s *suite) countAuthentik(user, password string) error {
	b, err := authentik.BehaviourOf(s.o.Version)
	if err != nil {
		return err
	}
	p, err := openProbe(s.ctx, s.o.DSN)
	if err != nil {
		return err
	}
	defer p.conn.Close(context.Background())
	if err := s.client().loginAuthentik(user, password); err != nil { // warms the plan cache
		return err
	}
	if s.o.WorkerStopped {
		if err := p.reported(); err != nil {
			return err
		}
	}
	before, err := p.rows()
	if err != nil {
		return err
	}
	all, err := p.delta(func() error {
		for range s.o.Logins {
			if err := s.client().loginAuthentik(user, password); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	n := float64(s.o.Logins)
	after, err := p.rows()
	if err != nil {
		return err
	}
	tables := append([]string{}, written...)
	if !b.Redis {
		tables = append(tables, "django_postgres_cache_cacheentry")
	}
	if b.TasksInDB {
		tables = append(tables, "authentik_tasks_task", "authentik_tasks_tasklog")
	}
	for _, t := range tables {
		s.check("a login writes "+t, after[t]-before[t] >= int64(s.o.Logins), "%.1f rows a login", float64(after[t]-before[t])/n)
	}
	sess := float64(after["authentik_core_session"]-before["authentik_core_session"]) / n
	s.check("session rows written per login", near(sess, 9), "%.1f, measured 9", sess)
	syncs := float64(all.syncs) / n
	want := float64(b.CommitsPerLogin())
	if !s.o.WorkerStopped {
		s.check("WAL syncs per login, worker running", syncs >= want*(1-tolerance), "%.1f, at least %.0f in the requests", syncs, want)
		return nil
	}
	if s.o.Counted != nil {
		if err := s.countRequests(p, user, password); err != nil {
			return err
		}
	}
	s.check("WAL syncs per login", near(syncs, want), "%.1f, expected %.0f", syncs, want)
	s.check("a new PostgreSQL session per request", float64(all.sessions)/n >= 6, "%.1f sessions for 6 requests", float64(all.sessions)/n)
	if !p.statements {
		s.check("pg_stat_statements is there to count with", false, "CREATE EXTENSION pg_stat_statements in the product's database")
		return nil
	}
	if b.ThrottleInCache && !b.Redis {
		if err := s.countSteps(p, user, password); err != nil {
			return err
		}
	}
	return s.countDashboard(p, user, password, b.FlushOnLogin && !b.Redis)
}

func (s *suite) countSteps(p *probe, user, password string) error {
	c := s.client()
	for i, st := range steps {
		got, err := p.delta(func() error { _, err := c.take(st, user, password); return err })
		if err != nil {
			return err
		}
		w := loginStatements[i]
		// An expired throttle row adds a DELETE, an expired flow plan an upsert: up to two statements and their SETs.
		ok := got.stmts >= int64(w[0])-3 && got.stmts <= int64(w[0])+5 && got.sets >= int64(w[1])-2 && got.sets <= int64(w[1])+3
		s.check("statements of "+st.name, ok, "%d (%d SET search_path), measured %d (%d)", got.stmts, got.sets, w[0], w[1])
	}
	return nil
}

// countDashboard counts the GETs. The application list misses its cache once after a login where logins flush it; in
// the other versions whether it does depends on what was asked before.
func (s *suite) countDashboard(p *probe, user, password string, flushes bool) error {
	c := s.client()
	if err := c.loginAuthentik(user, password); err != nil {
		return err
	}
	for _, r := range []struct {
		name, path         string
		stmts, sets, syncs int64
	}{
		{"applications, cache miss", "/api/v3/core/applications/", 81, -1, 1},
		{"applications, cache hit", "/api/v3/core/applications/", 43, 21, 0},
		{"users/me by cookie", "/api/v3/core/users/me/", 25, 11, 1},
		{"health live", "/-/health/live/", 10, -1, 0},
		{"health ready", "/-/health/ready/", 12, -1, 0},
	} {
		if r.stmts == 81 && !flushes {
			if _, err := c.do(http.MethodGet, r.path, nil); err != nil {
				return err
			}
			continue
		}
		got, err := p.delta(func() error {
			a, err := c.do(http.MethodGet, r.path, nil)
			if err == nil && a.status != 200 {
				err = fmt.Errorf("%s: status %d", r.path, a.status)
			}
			return err
		})
		if err != nil {
			return err
		}
		s.check("statements of "+r.name, near(float64(got.stmts), float64(r.stmts)) && (r.sets < 0 || near(float64(got.sets), float64(r.sets))), "%d (%d SET search_path), measured %d", got.stmts, got.sets, r.stmts)
		s.check("WAL syncs of "+r.name, got.syncs >= r.syncs && got.syncs <= r.syncs+1, "%d, measured %d", got.syncs, r.syncs)
	}
	return nil
}

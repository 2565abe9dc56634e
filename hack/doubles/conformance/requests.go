package conformance

import (
	"fmt"
	"maps"
	"slices"
)

// RequestCount is what one request of a login made PostgreSQL do, as a mean over the logins that were counted.
type RequestCount struct {
	Request string `json:"request"`
	// Waits are the commits that waited for the WAL, by PostgreSQL's own count of its syncs.
	Waits float64 `json:"waits"`
	// Writes are the rows that it changed, by table, those that it changed none of left out.
	Writes []TableCount `json:"writes,omitempty"`
}

// TableCount is how many rows of a table were written.
type TableCount struct {
	Table    string  `json:"table"`
	Inserted float64 `json:"inserted,omitempty"`
	Updated  float64 `json:"updated,omitempty"`
	Deleted  float64 `json:"deleted,omitempty"`
}

// writtenRows are the counters of a table.
type writtenRows struct{ inserted, updated, deleted int64 }

// writes are the counters of all tables, once no backend has anything left to report.
func (p *probe) writes() (map[string]writtenRows, error) {
	if err := p.settle(); err != nil {
		return nil, err
	}
	if _, err := p.conn.Exec(p.ctx, "SELECT pg_stat_clear_snapshot()"); err != nil {
		return nil, err
	}
	rows, err := p.conn.Query(p.ctx, "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables ORDER BY relname")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]writtenRows{}
	for rows.Next() {
		var name string
		var w writtenRows
		if err := rows.Scan(&name, &w.inserted, &w.updated, &w.deleted); err != nil {
			return nil, err
		}
		out[name] = w
	}
	return out, rows.Err()
}

// countRequests counts the commits that wait and the rows that are written, request by request, over the logins. It
// needs the worker stopped: its tasks, four a login, would be counted as the requests'.
func (s *suite) countRequests(p *probe, user, password string) error {
	requests := make([]RequestCount, len(steps))
	sums := make([]map[string]writtenRows, len(steps))
	// The first is left out: backends that did something before have only now told what.
	for n := range s.o.Logins + 1 {
		c := s.client()
		for i, st := range steps {
			before, err := p.writes()
			if err != nil {
				return err
			}
			got, err := p.delta(func() error { _, err := c.take(st, user, password); return err })
			if err != nil {
				return fmt.Errorf("%s: %w", st.name, err)
			}
			after, err := p.writes()
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			requests[i].Request = st.name
			requests[i].Waits += float64(got.syncs) / float64(s.o.Logins)
			if sums[i] == nil {
				sums[i] = map[string]writtenRows{}
			}
			for table, now := range after {
				was, sum := before[table], sums[i][table]
				sums[i][table] = writtenRows{sum.inserted + now.inserted - was.inserted, sum.updated + now.updated - was.updated, sum.deleted + now.deleted - was.deleted}
			}
		}
	}
	for i := range requests {
		for _, table := range slices.Sorted(maps.Keys(sums[i])) {
			if w := sums[i][table]; w != (writtenRows{}) {
				n := float64(s.o.Logins)
				requests[i].Writes = append(requests[i].Writes, TableCount{table, float64(w.inserted) / n, float64(w.updated) / n, float64(w.deleted) / n})
			}
		}
	}
	s.o.Counted(requests)
	return nil
}

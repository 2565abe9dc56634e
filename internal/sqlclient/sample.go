package sqlclient

import (
	"context"
	"slices"
	"strconv"
	"time"

	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack"
)

// samples of each duration that is measured; an odd number has a median.
const samples = 21

// Sample connects as the product's role and asks for what the server has counted, and measures how
// quickly it answers. It changes nothing: the commits it times write a message into the WAL that nobody
// reads (pg_logical_emit_message, which every role may call), and no row.
func (c *Client) Sample(ctx context.Context, target stack.DatabaseTarget) (*facts.DatabaseSample, error) {
	ctx, cancel := c.Bound(ctx)
	defer cancel()
	began := time.Now()
	session, err := c.Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	// The counters first: what the sample's own commits add is in the next sample's, and can be taken off there.
	sample := &facts.DatabaseSample{ConnectMicros: time.Since(began).Microseconds()}
	for _, ask := range []func(context.Context, *facts.DatabaseSample) error{session.counters, session.planner, session.wal, session.durations} {
		if err := ask(ctx, sample); err != nil {
			return nil, plain(err)
		}
	}
	return sample, nil
}

func (s *Session) durations(ctx context.Context, sample *facts.DatabaseSample) (err error) {
	if sample.RoundTripMicros, err = s.median(ctx, `SELECT 1`); err != nil {
		return err
	}
	// The role may have synchronous_commit off; what is measured is a commit that waits.
	if _, err = s.conn.Exec(ctx, `SET synchronous_commit = on`); err != nil {
		return err
	}
	sample.CommitMicros, err = s.median(ctx, `SELECT pg_logical_emit_message(true, 'authstack', 'latency')`)
	sample.OwnCommits = samples
	return err
}

// median duration of a statement in microseconds.
func (s *Session) median(ctx context.Context, statement string) (int64, error) {
	var took []int64
	for range samples {
		began := time.Now()
		if _, err := s.conn.Exec(ctx, statement); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began).Microseconds())
	}
	slices.Sort(took)
	return took[samples/2], nil
}

func (s *Session) counters(ctx context.Context, sample *facts.DatabaseSample) error {
	return s.conn.QueryRow(ctx, `SELECT xact_commit, sessions, blks_hit, blks_read, (blk_read_time * 1000)::int8, numbackends::int8,
		current_setting('track_io_timing')::bool FROM pg_stat_database WHERE datname = current_database()`).
		Scan(&sample.Commits, &sample.Sessions, &sample.BlocksHit, &sample.BlocksRead, &sample.ReadMicros, &sample.Backends, &sample.ReadsTimed)
}

func (s *Session) planner(ctx context.Context, sample *facts.DatabaseSample) error {
	var limit string
	err := s.conn.QueryRow(ctx, `SELECT current_setting('jit')::bool, current_setting('join_collapse_limit'),
		(SELECT count(*) FROM pg_stat_user_tables WHERE last_analyze IS NULL AND last_autoanalyze IS NULL)`).
		Scan(&sample.JIT, &limit, &sample.NeverAnalyzed)
	if err != nil {
		return err
	}
	sample.JoinCollapseLimit, err = strconv.ParseInt(limit, 10, 64)
	return err
}

// wal counts since PostgreSQL 14; 18 moved the syncs from pg_stat_wal to pg_stat_io.
func (s *Session) wal(ctx context.Context, sample *facts.DatabaseSample) error {
	var version int
	if err := s.conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int4`).Scan(&version); err != nil {
		return err
	}
	question := `SELECT wal_sync, (wal_sync_time * 1000)::int8, wal_bytes::int8, current_setting('track_wal_io_timing')::bool FROM pg_stat_wal`
	switch {
	case version < 140000:
		return nil
	case version >= 180000:
		question = `SELECT coalesce(sum(fsyncs), 0)::int8, coalesce(sum(fsync_time) * 1000, 0)::int8, (SELECT wal_bytes::int8 FROM pg_stat_wal),
			current_setting('track_wal_io_timing')::bool FROM pg_stat_io WHERE object = 'wal'`
	}
	sample.WALKnown = true
	return s.conn.QueryRow(ctx, question).Scan(&sample.WALSyncs, &sample.WALSyncMicros, &sample.WALBytes, &sample.WALTimed)
}

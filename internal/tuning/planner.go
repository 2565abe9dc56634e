package tuning

import (
	"fmt"

	"authstack.dev/authstack/api/v1alpha1"
)

// planner settings for disks without a moving head (facts/postgres-ceph.md C3).
func planner(in Input) []Setting {
	medium := in.Medium
	if medium == "" {
		medium = v1alpha1.MediumUnknown
	}
	return []Setting{
		server("random_page_cost", "1.1", fmt.Sprintf("a random page costs about as much as the next one on the medium %s, and this database fits into memory; 4 is for disks that turn", medium)),
		server("effective_io_concurrency", "200", "SSDs and Ceph answer many reads at once"),
	}
}

// maintenance settings: the tables are many and small (authentik has 208), and sessions and cache
// rows are rewritten all the time.
func maintenance(Input) []Setting {
	return []Setting{
		server("autovacuum_analyze_threshold", "10", "tables that never see 50 changes are never analysed, and a plan over dozens of tables without statistics is wrong by seconds (authentik #24179, facts/authentik-measured.md 5)"),
		server("autovacuum_analyze_scale_factor", "0.05", "as autovacuum_analyze_threshold"),
		server("autovacuum_vacuum_scale_factor", "0.05", "sessions and cache rows are rewritten at each request; dead rows slow the next one down"),
		server("autovacuum_naptime", "30s", "as autovacuum_vacuum_scale_factor"),
	}
}

// observation settings: without them nobody can tell a slow flush from a slow plan
// (facts/postgres-ceph.md C4).
func observation(in Input) []Setting {
	settings := []Setting{
		server("track_io_timing", "on", "read and write times, for telling where latency comes from; the clock costs nanoseconds here"),
	}
	if in.Major >= 14 {
		settings = append(settings, server("track_wal_io_timing", "on", "time per WAL flush (pg_stat_wal, from 18 pg_stat_io): the number behind a commit that waits for its disk"))
	}
	return settings
}

package schema_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"authstack.dev/authstack/hack/doubles/internal/authentik/schema"
	"authstack.dev/authstack/hack/doubles/internal/testenv"
)

// jitAboveCost is PostgreSQL's default.
const jitAboveCost = 100000

// TestPlanning prints what the big queries cost to plan; only what does not depend on the machine is asserted: the
// number of joins, and that tables without statistics make PostgreSQL reach for the JIT compiler, which ANALYZE ends
// (facts/authentik-measured.md §4, §5).
func TestPlanning(t *testing.T) {
	pg := testenv.StartPostgres(t)
	ctx := context.Background()
	connect := func() *pgx.Conn {
		cfg, err := pgx.ParseConfig(pg.DSN("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	m := schema.Load()
	conn := connect()
	defer conn.Close(ctx)
	for _, sql := range m.DDL() {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%.100s: %v", sql, err)
		}
	}
	var tables int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tables", tables)
	if tables < 190 {
		t.Errorf("%d tables, the product has 208", tables)
	}
	const none = "00000000-0000-0000-0000-000000000000"
	queries := map[string]string{"applications": m.Applications(), "bindings": strings.ReplaceAll(m.Bindings(), "$1", "'{"+none+"}'"), "stage": strings.ReplaceAll(m.Stage(), "$1", "'"+none+"'"), "sources": strings.ReplaceAll(m.Sources(), "$1", "'"+none+"'")}
	for _, name := range []string{"applications", "bindings"} {
		if n := strings.Count(queries[name], " JOIN "); n != schema.Joins {
			t.Errorf("%s: %d joins, measured %d", name, n, schema.Joins)
		}
	}
	// explain plans on a connection of its own, as each request does.
	explain := func(sql, limit string) (cost, ms float64) {
		c := connect()
		defer c.Close(ctx)
		if _, err := c.Exec(ctx, "SET join_collapse_limit = "+limit); err != nil {
			t.Fatal(err)
		}
		var raw string
		if err := c.QueryRow(ctx, "EXPLAIN (FORMAT JSON, SUMMARY) "+sql).Scan(&raw); err != nil {
			t.Fatal(err)
		}
		var out []struct {
			Plan struct {
				Cost float64 `json:"Total Cost"`
			}
			Planning float64 `json:"Planning Time"`
		}
		if err := json.Unmarshal([]byte(raw), &out); err != nil {
			t.Fatal(err)
		}
		return out[0].Plan.Cost, out[0].Planning
	}
	for _, state := range []string{"never analysed", "analysed"} {
		if state == "analysed" {
			if _, err := conn.Exec(ctx, "ANALYZE"); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"applications", "bindings", "stage", "sources"} {
			cost, eight := explain(queries[name], "8")
			_, four := explain(queries[name], "4")
			t.Logf("%-14s %-13s cost %10.0f, planning %5.1f ms at join_collapse_limit=8, %5.1f ms at 4", state, name, cost, eight, four)
			if name == "applications" && (cost > jitAboveCost) != (state == "never analysed") {
				t.Errorf("%s, %s: cost %.0f, jit_above_cost is %d", name, state, cost, jitAboveCost)
			}
		}
	}
}

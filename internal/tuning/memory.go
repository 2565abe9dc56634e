package tuning

import "fmt"

// budget is how the memory limit is shared out. What is left is for the processes themselves and
// for the page cache, which counts towards the container's limit but is given back under pressure.
type budget struct {
	sharedBuffers, walBuffers, maintenance, autovacuum, workMem int64
	connections                                                 int64
}

const (
	// minimumMemory is what is reckoned with at least; PostgreSQL does not run well below it.
	minimumMemory = 128 * mB
	// bytesPerConnection is what a connection must at least find beside shared_buffers: a backend's own
	// memory after a few of authentik's queries. Fewer connections than asked are given rather than a
	// database that is killed for its memory, which is a crash for everybody.
	bytesPerConnection = 5 * mB / 2
	// minimumConnections leave room for the operator, for superusers (3 reserved) and for a product.
	minimumConnections = 25
	// spareConnections are for the operator, ANALYZE, monitoring and the three reserved for superusers.
	spareConnections = 15
)

func share(in Input) budget {
	limit := max(in.MemoryBytes, minimumMemory)
	b := budget{
		sharedBuffers: limit / 4 / mB * mB,
		maintenance:   clamp(limit/16, 8*mB, gB) / mB * mB,
		autovacuum:    clamp(limit/64, 2*mB, 256*mB) / mB * mB,
	}
	b.walBuffers = clamp(b.sharedBuffers/32, mB, 16*mB) / mB * mB
	b.connections = max(int64(in.Connections)+spareConnections, 100)
	b.connections = clamp(b.connections, minimumConnections, (limit-b.sharedBuffers)/bytesPerConnection)
	rest := limit - b.sharedBuffers - b.walBuffers - b.maintenance - 3*b.autovacuum
	b.workMem = clamp(rest/(b.connections*2), 64*kB, 64*mB) / kB * kB
	return b
}

// memory settings from the limit (facts/postgres-ceph.md C3).
func memory(in Input) []Setting {
	b := share(in)
	limit := max(in.MemoryBytes, minimumMemory)
	of := "of the memory limit of " + inMB(limit)
	return []Setting{
		server("shared_buffers", inMB(b.sharedBuffers), "25 % "+of+" (PostgreSQL documentation, Resource Consumption)"),
		server("effective_cache_size", inMB(limit*6/10), "60 % "+of+": shared_buffers and the page cache that the container may keep; the planner's estimate, nothing is allocated"),
		server("work_mem", inKB(b.workMem), fmt.Sprintf("what is left %s over %d connections, twice each, since hashes may take hash_mem_multiplier 2 times as much; at most 64MB", of, b.connections)),
		server("maintenance_work_mem", inMB(b.maintenance), "a sixteenth "+of+", at most 1GB: ANALYZE, index builds of migrations"),
		server("autovacuum_work_mem", inMB(b.autovacuum), "a sixty-fourth "+of+": three workers may use it at once; sessions and cache rows are small"),
		server("wal_buffers", inMB(b.walBuffers), "a thirty-second of shared_buffers, at most 16MB (PostgreSQL's own rule, written out so that it can be compared)"),
	}
}

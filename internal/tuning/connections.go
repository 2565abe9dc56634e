package tuning

import (
	"fmt"
	"strconv"
)

// connections settings: from the product's budget, bounded by memory.
func connections(in Input) []Setting {
	b := share(in)
	reason := fmt.Sprintf("%s may hold %d connections, rolling update included, and %d are spare; at least 100", orThe(in.Product), in.Connections, spareConnections)
	if wanted := max(int64(in.Connections)+spareConnections, 100); b.connections < wanted {
		reason = fmt.Sprintf("%d are wanted, the memory limit of %s carries %d; raise spec.postgres.resources.limits.memory", wanted, inMB(max(in.MemoryBytes, minimumMemory)), b.connections)
	}
	return []Setting{
		server("max_connections", strconv.FormatInt(b.connections, 10), reason),
		server("tcp_keepalives_idle", "60", "a client that vanished with its node is noticed after two minutes instead of two hours, and its connection is free again"),
		server("tcp_keepalives_interval", "10", "as tcp_keepalives_idle"),
		server("tcp_keepalives_count", "6", "as tcp_keepalives_idle"),
	}
}

func orThe(product string) string {
	if product == "" {
		return "the product"
	}
	return product
}

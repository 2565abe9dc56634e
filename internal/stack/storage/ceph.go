package storage

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/part"
)

// unavailable is Ceph's health check of placement groups that serve neither reads nor writes. Ceph
// calls it a warning, yet every write to them hangs (Ceph docs, Health checks, PG_AVAILABILITY).
const unavailable = "PG_AVAILABILITY"

// phases of a CephBlockPool and health of a CephCluster (facts/postgres-ceph.md D2).
const (
	poolReady    = "Ready"
	poolFailure  = "Failure"
	poolDeleting = "Deleting"
	healthError  = "HEALTH_ERR"
)

// cephState is what Rook says of the pool that a class's parameters, or a volume's attributes, name:
// a sentence, and the state that stands in the way of a database, or the zero state. Live is whether
// the database is on it already: then nothing is refused, since what hangs may come back.
func cephState(ceph *facts.Ceph, parameters map[string]string, live bool) (string, part.State) {
	if ceph == nil {
		return "Rook's resources are not served here, so the pool and the health of the cluster were not checked", part.State{}
	}
	// Beside Rook clusterID is the fsid, with a radosNamespace a hash (D2, D4): neither is a namespace.
	at := slices.IndexFunc(ceph.Clusters, func(c facts.CephCluster) bool { return c.Namespace == parameters["clusterID"] })
	if at < 0 {
		return fmt.Sprintf("no CephCluster of Rook has the clusterID %s, so the pool and the health of the cluster were not checked", orNone(parameters["clusterID"])), part.State{}
	}
	cluster, name := ceph.Clusters[at], parameters["pool"]
	if state := clusterState(cluster); state.Reason != "" {
		return state.Message, state
	}
	pool := slices.IndexFunc(ceph.Pools, func(p facts.CephPool) bool { return p.Namespace == cluster.Namespace && p.Name == name })
	if pool < 0 {
		return fmt.Sprintf("CephCluster %s/%s is %s; the pool %s was not made through Rook, so its state is not known", cluster.Namespace, cluster.Name, orNone(cluster.Health), orNone(name)), part.State{}
	}
	if state := poolState(ceph.Pools[pool], live); state.Reason != "" {
		return state.Message, state
	}
	return fmt.Sprintf("CephBlockPool %s/%s is Ready, CephCluster %s is %s", cluster.Namespace, name, cluster.Name, orNone(cluster.Health)), part.State{}
}

// clusterState is why no write to the cluster can be relied on, or the zero state.
func clusterState(cluster facts.CephCluster) part.State {
	name := cluster.Namespace + "/" + cluster.Name
	if words, hangs := cluster.Problems[unavailable]; hangs {
		return part.Waiting(v1alpha1.ReasonCephUnhealthy, fmt.Sprintf(
			"CephCluster %s has data that cannot be read or written, so the database's storage may hang: %s; bring its OSDs back", name, words))
	}
	if cluster.Health == healthError {
		return part.Waiting(v1alpha1.ReasonCephUnhealthy, fmt.Sprintf(
			"CephCluster %s is in HEALTH_ERR: %s; a database relies on it only when Ceph is well again", name, problems(cluster)))
	}
	return part.State{}
}

func problems(cluster facts.CephCluster) string {
	var all []string
	for _, code := range slices.Sorted(maps.Keys(cluster.Problems)) {
		all = append(all, code+" "+cluster.Problems[code])
	}
	if len(all) == 0 {
		return "ceph status says why"
	}
	return strings.Join(all[:min(len(all), 3)], ", ")
}

// poolState is why the pool cannot carry a database, or the zero state.
func poolState(pool facts.CephPool, live bool) part.State {
	name := pool.Namespace + "/" + pool.Name
	switch pool.Phase {
	case poolReady:
		return part.State{}
	case poolFailure, poolDeleting:
		message := fmt.Sprintf("CephBlockPool %s is in phase %s, kubectl describe it says why; put it right, or choose another class in spec.postgres.storage", name, pool.Phase)
		if live {
			return part.Waiting(v1alpha1.ReasonCephPoolNotReady, message)
		}
		return part.Stalled(v1alpha1.ReasonCephPoolNotReady, message)
	}
	if live {
		return part.State{} // Rook looks at a pool that serves.
	}
	return part.Waiting(v1alpha1.ReasonCephPoolNotReady, fmt.Sprintf("waiting for Rook to make CephBlockPool %s Ready; its phase is %s", name, orNone(pool.Phase)))
}

package facts

// DatabaseSample is what a database had counted at one moment, and how quickly it answered the operator
// then. Two of them, before and after a run, say what the run did to it.
type DatabaseSample struct {
	// WALKnown is whether the server counts WAL syncs (from PostgreSQL 14), WALTimed whether it times
	// them (track_wal_io_timing).
	WALKnown bool `json:"walKnown,omitempty"`
	WALTimed bool `json:"walTimed,omitempty"`
	// WALSyncs of the whole server, the time they took in microseconds, and the bytes of WAL.
	WALSyncs      int64 `json:"walSyncs,omitempty"`
	WALSyncMicros int64 `json:"walSyncMicros,omitempty"`
	WALBytes      int64 `json:"walBytes,omitempty"`
	// Commits, Sessions that began, blocks that were found in and outside of shared_buffers, and the time
	// of reading the latter (track_io_timing), of the product's database.
	Commits    int64 `json:"commits,omitempty"`
	Sessions   int64 `json:"sessions,omitempty"`
	BlocksHit  int64 `json:"blocksHit,omitempty"`
	BlocksRead int64 `json:"blocksRead,omitempty"`
	ReadMicros int64 `json:"readMicros,omitempty"`
	ReadsTimed bool  `json:"readsTimed,omitempty"`
	// Backends that are connected, and tables that no ANALYZE has seen.
	Backends      int64 `json:"backends,omitempty"`
	NeverAnalyzed int64 `json:"neverAnalyzed,omitempty"`
	// ConnectMicros is how long the operator's connection took to open, with TLS and password;
	// RoundTripMicros the median of the shortest questions; CommitMicros the median of a transaction of
	// one small WAL record that waits for its commit, in one round trip.
	ConnectMicros   int64 `json:"connectMicros,omitempty"`
	RoundTripMicros int64 `json:"roundTripMicros,omitempty"`
	CommitMicros    int64 `json:"commitMicros,omitempty"`
	// OwnCommits are those that CommitMicros is the median of; they were made after the counters were read, and each
	// waited for a WAL sync.
	OwnCommits int64 `json:"ownCommits,omitempty"`
	// JIT and JoinCollapseLimit are in force for the product's role.
	JIT               bool  `json:"jit,omitempty"`
	JoinCollapseLimit int64 `json:"joinCollapseLimit,omitempty"`
}

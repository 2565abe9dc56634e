// Package diagnosis says where the time of a run went: evidence in, ranked causes out, each with the
// number behind it and the field to change. It is pure. A cause without a measured number is not named.
//
// Two kinds of numbers stand behind a share. Measured: it was counted or timed in this very run.
// Estimated: what was measured here times a ratio that was measured on the real product
// (facts/authentik-measured.md for authentik 2025.12.4, facts/authelia.md for Authelia 4.39); each rule
// says which. Shares are of the median of one scenario's whole; they need not add up, since causes
// overlap (a throttled Pod also hashes more slowly).
package diagnosis

import (
	"cmp"
	"slices"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/result"
)

// The causes by name.
const (
	// CauseGenerator: the load generator measured itself. It comes first, since it spoils the others.
	CauseGenerator = "generator-bound"
	// CauseCPUThrottled: the kernel held Pods of the stack back at their CPU limit.
	CauseCPUThrottled = "cpu-throttled"
	// CausePasswordHashing: slow on purpose, CPU, and no fault of a disk.
	CausePasswordHashing = "password-hashing"
	// CauseLoginDelay: Authelia's deliberate delay of every login.
	CauseLoginDelay = "login-delay"
	// CauseCommitWait: commits that wait until the WAL is on the disk, or on three of Ceph.
	CauseCommitWait = "commit-wait"
	// CausePlanning: PostgreSQL plans the product's deep joins anew for each request.
	CausePlanning = "query-planning"
	// CauseJIT: PostgreSQL compiles queries over tables without statistics.
	CauseJIT = "jit"
	// CauseRoundTrips: the product asks its database hundreds of small questions.
	CauseRoundTrips = "database-round-trips"
	// CauseConnections: the product opens a connection to its database for each request.
	CauseConnections = "connection-per-request"
	// CauseLeakedConnections: connections stay open that nobody uses again.
	CauseLeakedConnections = "connections-kept"
	// CauseColdCache: blocks came from the disk instead of shared_buffers.
	CauseColdCache = "cold-cache"
	// CauseRedis: Authelia opens a connection to Redis for each command.
	CauseRedis = "redis-connections"
	// CauseRemoteRedis: Redis is a network away.
	CauseRemoteRedis = "remote-redis"
	// CauseLogLevel: Authelia writes a line for each request.
	CauseLogLevel = "log-level"
	// CauseEncryption: a CPU without AES instructions encrypts slowly.
	CauseEncryption = "slow-encryption"
)

// Evidence is what is known of a run and of the stack that was measured. What is nil or zero was not
// measured, and no cause follows from it.
type Evidence struct {
	// Provider is authentik or authelia, Version its release.
	Provider, Version string
	// Cache is redis, postgres or memory.
	Cache      string
	Durability v1alpha1.Durability
	Medium     v1alpha1.Medium
	// Run is the merged result of all repeats.
	Run *result.Run
	// Before and After are the database's counters around all repeats.
	Before, After *facts.DatabaseSample
	// StorageSyncMicros is the storage probe's median fdatasync of 8 kB.
	StorageSyncMicros int64
	// LogLevel that Authelia's configuration asks for, where it is not the operator's warn.
	LogLevel string
	// RedisRoundTripMicros is a PING over an open connection.
	RedisRoundTripMicros int64
	// Throttled are the Pods of the stack that the kernel held back during the run.
	Throttled []Throttled
	// Crypto is how fast the database's node encrypts.
	Crypto *Crypto
}

// Throttled is how long the kernel held a Pod back (cpu.stat of its cgroup), over the run.
type Throttled struct {
	Pod string
	// Component is server, worker, database or redis.
	Component string
	// Micros of wall time, in Throttled of Periods scheduling periods.
	Micros, Periods, ThrottledPeriods int64
}

// Crypto is what one core of a node encrypts in a second.
type Crypto struct {
	AESInstructions                                      bool
	AESGCMBytesPerSecond, ChaCha20Poly1305BytesPerSecond int64
}

// worthNaming is the least share of a median, in thousandths, that makes a cause: below, noise is more.
const worthNaming = 10

// finding is a cause before it is ranked.
type finding struct {
	name      string
	scenario  v1alpha1.ScenarioName
	endpoint  string
	micros    int64
	estimated bool
	detail    string
	remedy    string
	// first puts it before all others, whatever its share.
	first bool
	// always names it however small its share, since its figure is not a duration.
	always bool
}

// Diagnose returns the causes, the greatest share of a median first; nil where nothing was measured.
func Diagnose(e Evidence) []v1alpha1.Cause {
	if e.Run == nil {
		return nil
	}
	var findings []finding
	for _, rule := range []func(*Evidence) []finding{
		generator, throttled, hashing, loginDelay, commitWait, planning, roundTrips, connections, coldCache,
		redisConnections, remoteRedis, logLevel, encryption,
	} {
		findings = append(findings, rule(&e)...)
	}
	causes := make([]v1alpha1.Cause, 0, len(findings))
	firsts := map[string]bool{}
	for _, f := range findings {
		median := e.median(f.scenario, f.endpoint)
		if median <= 0 || f.micros <= 0 && !f.always && !f.first {
			continue
		}
		micros := min(f.micros, median)
		share := micros * 1000 / median
		if share < worthNaming && !f.always && !f.first {
			continue
		}
		basis := v1alpha1.BasisMeasured
		if f.estimated {
			basis = v1alpha1.BasisEstimated
		}
		firsts[f.name] = f.first
		causes = append(causes, v1alpha1.Cause{
			Name: f.name, Scenario: f.scenario, Endpoint: f.endpoint, Micros: micros, ShareMilli: int32(share), Basis: basis,
			Detail: clip(f.detail), Remedy: clip(f.remedy),
		})
	}
	slices.SortStableFunc(causes, func(a, b v1alpha1.Cause) int {
		if x, y := firsts[a.Name], firsts[b.Name]; x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.ShareMilli, a.ShareMilli), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Endpoint, b.Endpoint))
	})
	causes = causes[:min(len(causes), maxCauses)]
	for i := range causes {
		causes[i].Rank = int32(i + 1)
	}
	return causes
}

const (
	// maxCauses is how many the status takes.
	maxCauses = 16
	// maxText is how long a detail or a remedy may be.
	maxText = 1024
)

func clip(text string) string {
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText-1]) + "…"
	}
	return text
}

// median of an endpoint in microseconds; 0 where it was not measured.
func (e *Evidence) median(scenario v1alpha1.ScenarioName, endpoint string) int64 {
	s := e.Run.Find(string(scenario), endpoint)
	if s == nil {
		return 0
	}
	return s.Total.PerMille(500)
}

// iterations of a scenario, warm-up included, since the database counted those too.
func (e *Evidence) iterations(scenario v1alpha1.ScenarioName) int64 {
	for _, s := range e.Run.Scenarios {
		if s.Name == string(scenario) {
			return s.Iterations + s.WarmUpIterations
		}
	}
	return 0
}

// wholes are the scenarios' composites that were measured, or the endpoint that stands for the scenario.
func (e *Evidence) wholes() []*result.Series {
	var list []*result.Series
	for i := range e.Run.Series {
		if s := &e.Run.Series[i]; s.Whole && s.Total.Count() > 0 {
			list = append(list, s)
		}
	}
	return list
}

// requests of the run to the product, warm-up included.
func (e *Evidence) requests() (n int64) {
	for i := range e.Run.Series {
		if s := &e.Run.Series[i]; s.OfRequests() {
			n += s.Requests + s.WarmUpRequests
		}
	}
	return n
}

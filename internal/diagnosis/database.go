package diagnosis

import (
	"fmt"
	"strconv"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/result"
)

// The cost of a login of authentik 2025.12.4 (facts/authentik-measured.md 2.1 and 3.3).
const (
	// waitsOfLogin is how many of its commits wait for the WAL, one after the other.
	waitsOfLogin = 24
	// slopeOfLogin is by how many microseconds it grows for each millisecond of a WAL sync: a little more
	// than its waits, since a commit also waits for the WAL's lock.
	slopeOfLogin = 27_100
	// relaxedWaits of the 24 are left where only commits that matter wait (docs/durability.md, counted on the double: the
	// flush of cached policy results, the end of the session from before the login, the event, the task).
	relaxedWaits = 4
	// statementsOfLogin and statementsOfApplications each cost one round trip.
	statementsOfLogin        = 290
	statementsOfApplications = 43
)

// leastSyncs of a run give a mean that is worth something.
const leastSyncs = 20

// sync is how long a WAL sync, or a commit of it, took in microseconds, and where that is from. The best
// evidence comes first: what the server itself timed during the run, what the operator's own commits took
// around it, what the storage probe measured at another time.
func (e *Evidence) sync() (micros int64, source string) {
	if b, a := e.Before, e.After; b != nil && a != nil {
		if syncs := a.WALSyncs - b.WALSyncs; b.WALTimed && a.WALTimed && syncs >= leastSyncs {
			if micros := (a.WALSyncMicros - b.WALSyncMicros) / syncs; micros > 0 {
				return micros, fmt.Sprintf("the mean of %d WAL syncs during the run", syncs)
			}
		}
		if micros := (b.CommitMicros - b.RoundTripMicros + a.CommitMicros - a.RoundTripMicros) / 2; b.CommitMicros > 0 && a.CommitMicros > 0 && micros > 0 {
			return micros, "the median of the operator's own commits before and after the run"
		}
	}
	if e.StorageSyncMicros > 0 {
		return e.StorageSyncMicros, "the storage probe's median fdatasync"
	}
	return 0, ""
}

// syncs of the WAL during the run, without those of the operator's own commits before it.
func (e *Evidence) syncs() int64 {
	return max(0, e.After.WALSyncs-e.Before.WALSyncs-e.Before.OwnCommits)
}

// waits is how many commits of a login wait for the WAL. For authentik it follows from the version and the
// durability: the server's counter also has the background worker's, four times as many (facts 7), so
// that it only bounds the number. Authelia has no worker; there it is the number.
func (e *Evidence) waits() int64 {
	if e.Durability == v1alpha1.DurabilityRelaxed {
		return 0
	}
	counted := int64(-1)
	if n := e.iterations(login); n > 0 && e.Before != nil && e.After != nil && e.Before.WALKnown && e.After.WALKnown {
		counted = (e.syncs() + n/2) / n
	}
	if e.Provider == latency.Authelia {
		return max(counted, 0)
	}
	waits := int64(waitsOfLogin)
	switch {
	case !since(e.Version, 2025, 10):
		waits -= 10 // The cache is in Redis: six throttle rows, three policy results, one flush.
	case since(e.Version, 2026, 8):
		waits -= 6 // Throttle rows are no longer in the cache.
	}
	if e.Durability == v1alpha1.DurabilityIdentity {
		waits = min(waits, relaxedWaits)
	}
	if counted >= 0 {
		waits = min(waits, counted)
	}
	return waits
}

// since is whether a release such as 2025.12.4 is of this month or later.
func since(version string, year, month int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return true
	}
	y, _ := strconv.Atoi(parts[0])
	m, _ := strconv.Atoi(parts[1])
	return y > year || y == year && m >= month
}

// commitWait is what a login waits for its commits, in microseconds, and in words.
func (e *Evidence) commitWait() (micros int64, words string) {
	sync, source := e.sync()
	waits := e.waits()
	micros = waits * sync * slopeOfLogin / waitsOfLogin / 1000
	return micros, fmt.Sprintf("%d commits of a login wait one after the other, each for a WAL sync of %s (%s)", waits, result.FormatMicros(sync), source)
}

func commitWait(e *Evidence) []finding {
	micros, words := e.commitWait()
	remedy := "spec.postgres.durability: IdentityDurable, by which only commits wait that must not be lost; or spec.postgres.storage.localNVMe in a new AuthStack"
	switch {
	case e.Durability == v1alpha1.DurabilityIdentity && e.Medium == v1alpha1.MediumNodeLocal:
		remedy = "spec.postgres.storage: a disk whose fdatasync is faster (with power-loss protection); what still waits is what must not be lost"
	case e.Durability == v1alpha1.DurabilityIdentity:
		remedy = "spec.postgres.storage.localNVMe in a new AuthStack, with two instances; what still waits is what must not be lost"
	case e.Provider == latency.Authelia:
		remedy = "spec.postgres.storage: a faster medium; Authelia commits little and all of it matters"
	}
	// The time of a sync is of this run, the number of waits of authentik from the model.
	return []finding{{name: CauseCommitWait, scenario: login, endpoint: loginWhole, micros: micros, estimated: e.Provider == latency.Authentik,
		detail: words, remedy: remedy}}
}

// Planning of authentik's list of applications, whose two queries with 63 joins are planned anew each time
// (facts/authentik-measured.md section 4): 114 of 219.5 ms with PostgreSQL's own join_collapse_limit of 8;
// with 4 the list takes 133.5 ms, so 86 ms of it are saved and 28 are left.
var (
	planningAtDefault = part{1140, 2195}
	planningAtFour    = part{280, 1335}
	planningSaved     = part{860, 2195}
	// jitOfFresh: 0.88 to 1.09 s with JIT over tables without statistics, 0.24 to 0.28 s without (section 5).
	jitOfFresh = part{725, 985}
)

type part struct{ of, all int64 }

func (p part) take(micros int64) int64 { return micros * p.of / p.all }

// planning explains dashboards: they wait for no commit while their cache is warm, so that no disk does.
func planning(e *Evidence) []finding {
	if e.Provider != latency.Authentik || e.After == nil {
		return nil
	}
	var list []finding
	for _, endpoint := range []string{"dashboard-parallel", "dashboard-sequential"} {
		median := e.median(dashboard, endpoint)
		if e.After.JIT && e.After.NeverAnalyzed > 0 {
			list = append(list, finding{
				name: CauseJIT, scenario: dashboard, endpoint: endpoint, micros: jitOfFresh.take(median), estimated: true,
				detail: fmt.Sprintf("jit is on and %d tables were never analysed, so that PostgreSQL takes small queries for large ones and compiles them; the median is %s here, and on the test machine a request took 0.99 s so and 0.26 s with jit off",
					e.After.NeverAnalyzed, result.FormatMicros(median)),
				remedy: "the role's setting jit: off, which the operator sets unless spec.postgres.parameters says otherwise; the condition TuningApplied says why it is not in force",
			})
		}
		f := finding{
			name: CausePlanning, scenario: dashboard, endpoint: endpoint, micros: planningAtFour.take(median), estimated: true,
			detail: fmt.Sprintf("two queries with 63 joins are planned anew for each request; join_collapse_limit is %d, the median %s; no commit waits, so no disk explains it",
				e.After.JoinCollapseLimit, result.FormatMicros(median)),
			remedy: "none by a field: join_collapse_limit is in force; more CPU for PostgreSQL in spec.postgres.resources",
		}
		if limit := e.After.JoinCollapseLimit; limit > 4 {
			f.micros = planningAtDefault.take(median)
			f.detail += fmt.Sprintf("; with 4 about %s less", result.FormatMicros(planningSaved.take(median)))
			f.remedy = "the role's setting join_collapse_limit: 4, which the operator sets unless spec.postgres.parameters says otherwise; the condition TuningApplied says why it is not in force"
		}
		if e.After.JoinCollapseLimit > 0 {
			list = append(list, f)
		}
	}
	return list
}

// roundTrips: half of the statements are SET search_path, and none are batched.
func roundTrips(e *Evidence) []finding {
	if e.Provider != latency.Authentik || e.After == nil || e.After.RoundTripMicros <= 0 {
		return nil
	}
	trip := e.After.RoundTripMicros
	if e.Before != nil && e.Before.RoundTripMicros > 0 {
		trip = (trip + e.Before.RoundTripMicros) / 2
	}
	var list []finding
	for _, c := range []struct {
		scenario   v1alpha1.ScenarioName
		endpoint   string
		statements int64
	}{{login, loginWhole, statementsOfLogin}, {dashboard, "dashboard-sequential", 8 * statementsOfApplications}} {
		list = append(list, finding{
			name: CauseRoundTrips, scenario: c.scenario, endpoint: c.endpoint, micros: c.statements * trip, estimated: true,
			detail: fmt.Sprintf("about %d statements, each a round trip to the database of %s as measured from the operator's Pod", c.statements, result.FormatMicros(trip)),
			remedy: "bring the product and its database together, in one zone or on one node; spec.postgres.external.host where the database is external",
		})
	}
	return list
}

// leaked is how many more backends after a run than before make a leak rather than a busy moment.
const leaked = 10

// connections: authentik's CONN_MAX_AGE of 0 opens a connection for each request, and under its ASGI server
// any other value reuses none either and leaves them open (facts/authentik-measured.md section 6).
func connections(e *Evidence) []finding {
	if e.Before == nil || e.After == nil || e.Provider != latency.Authentik {
		return nil
	}
	requests, opened, grown := e.requests(), e.After.Sessions-e.Before.Sessions, e.After.Backends-e.Before.Backends
	if requests <= 0 || opened*2 < requests {
		return nil
	}
	connect := (e.Before.ConnectMicros + e.After.ConnectMicros) / 2
	const perLogin = 6
	f := finding{
		name: CauseConnections, scenario: login, endpoint: loginWhole, micros: perLogin * connect, estimated: true,
		detail: fmt.Sprintf("%d connections to the database were opened for %d requests, and opening one takes %s with TLS and password, as measured from the operator's Pod; a login makes %d requests",
			opened, requests, result.FormatMicros(connect), perLogin),
		remedy: "none by a field: leave AUTHENTIK_POSTGRESQL__CONN_MAX_AGE at 0, since any other value reuses nothing and leaks; a pooler near the product, as spec.postgres.external, takes the connection's cost",
	}
	if grown >= leaked {
		f.name, f.always = CauseLeakedConnections, true
		f.detail = fmt.Sprintf("%d connections to the database were opened for %d requests and %d more are open after the run than before: CONN_MAX_AGE keeps them and nothing reuses them", opened, requests, grown)
		f.remedy = "AUTHENTIK_POSTGRESQL__CONN_MAX_AGE: remove it from the product's environment"
	}
	return []finding{f}
}

// coldCache is the time that reads outside of shared_buffers took, spread over the iterations of all
// scenarios. Without track_io_timing there is no number, and so no cause.
func coldCache(e *Evidence) []finding {
	if e.Before == nil || e.After == nil || !e.After.ReadsTimed {
		return nil
	}
	var iterations int64
	for _, s := range e.Run.Scenarios {
		iterations += s.Iterations + s.WarmUpIterations
	}
	read, hit, micros := e.After.BlocksRead-e.Before.BlocksRead, e.After.BlocksHit-e.Before.BlocksHit, e.After.ReadMicros-e.Before.ReadMicros
	wholes := e.wholes()
	if iterations <= 0 || read <= 0 || micros <= 0 || len(wholes) == 0 {
		return nil
	}
	return []finding{{
		name: CauseColdCache, scenario: v1alpha1.ScenarioName(wholes[0].Scenario), endpoint: wholes[0].Endpoint, micros: micros / iterations,
		detail: fmt.Sprintf("%d of %d blocks were read from outside of shared_buffers, in %s over %d iterations",
			read, read+hit, result.FormatMicros(micros), iterations),
		remedy: "spec.postgres.resources.limits.memory, from which shared_buffers follows; or warmUpIterations in spec.scenarios where only the beginning is cold",
	}}
}

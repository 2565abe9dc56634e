package diagnosis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/result"
)

// measured is a run with these medians in milliseconds, by scenario/endpoint.
func measured(medians map[string]float64) *result.Run {
	run := &result.Run{Generator: result.Generator{GOMAXPROCS: 2, WallMicros: 60_000_000, CPUMicros: 3_000_000}}
	for name, ms := range map[string]int64{"Login": 60, "Dashboard": 30, "ForwardAuth": 600} {
		run.Scenarios = append(run.Scenarios, result.Scenario{Name: name, Iterations: ms, WarmUpIterations: ms / 5})
	}
	for name, ms := range medians {
		scenario, endpoint, _ := strings.Cut(name, "/")
		s := result.Series{Scenario: scenario, Endpoint: endpoint, Requests: 60, WarmUpRequests: 12, Total: result.NewHistogram(),
			Whole: endpoint == "login" || strings.HasPrefix(endpoint, "dashboard-")}
		for range 60 {
			s.Total.Record(int64(ms * 1000))
		}
		run.Series = append(run.Series, s)
	}
	run.Sort()
	return run
}

// authentikLogin is a login as facts/authentik-measured.md 3.3 gives it for a WAL sync of so many milliseconds.
func authentikLogin(sync, waits float64) map[string]float64 {
	slope := 27.1 * sync * waits / 24
	return map[string]float64{"Login/login": 616 + slope, "Login/identification-get": 68 + slope*0.09, "Login/identification-post": 42 + slope*0.09,
		"Login/password-get": 71 + slope*0.13, "Login/password-post": 206 + slope*0.13, "Login/mfa-get": 76 + slope*0.13, "Login/login-get": 122 + slope*0.42}
}

// counted are the samples around a run of so many syncs, each of that many microseconds.
func counted(syncs, micros int64) (before, after *facts.DatabaseSample) {
	before = &facts.DatabaseSample{WALKnown: true, WALTimed: true, WALSyncs: 1000, JoinCollapseLimit: 4}
	after = &facts.DatabaseSample{WALKnown: true, WALTimed: true, WALSyncs: 1000 + syncs, WALSyncMicros: syncs * micros, JoinCollapseLimit: 4}
	return before, after
}

func names(causes []v1alpha1.Cause) string {
	var list []string
	for _, c := range causes {
		list = append(list, c.Name)
	}
	return strings.Join(list, " ")
}

func TestDiagnose(t *testing.T) {
	authentik := func(run *result.Run, change ...func(*Evidence)) Evidence {
		e := Evidence{Provider: "authentik", Version: "2025.12.4", Cache: "postgres", Durability: v1alpha1.DurabilityStrict, Medium: v1alpha1.MediumCephRBD, Run: run}
		for _, f := range change {
			f(&e)
		}
		return e
	}
	authelia := func(run *result.Run, change ...func(*Evidence)) Evidence {
		return authentik(run, append([]func(*Evidence){func(e *Evidence) { e.Provider, e.Version, e.Cache = "authelia", "4.39.20", "memory" }}, change...)...)
	}
	syncs := func(n, micros int64) func(*Evidence) {
		return func(e *Evidence) { e.Before, e.After = counted(n, micros) }
	}
	dashboards := map[string]float64{"Dashboard/dashboard-parallel": 830, "Dashboard/dashboard-sequential": 1600}
	for name, c := range map[string]struct {
		evidence Evidence
		// want are the causes in their order.
		want string
		// says is part of the first one's detail, remedy of its remedy.
		says, remedy string
		// share of the first one, in thousandths.
		share int32
	}{
		"the Ceph story: commits that wait 17 ms are most of a login, hashing comes after": {
			evidence: authentik(measured(authentikLogin(17, 24)), syncs(72*107, 17_000)),
			want:     "commit-wait password-hashing", share: 427,
			says: "24 commits of a login wait one after the other, each for a WAL sync of 17.0ms", remedy: "spec.postgres.durability",
		},
		"the same with only what matters waiting: hashing comes first, and a medium is what is left": {
			evidence: authentik(measured(authentikLogin(10, 7)), syncs(72*90, 10_000), func(e *Evidence) { e.Durability = v1alpha1.DurabilityIdentity }),
			want:     "password-hashing commit-wait", says: "PBKDF2 is slow on purpose", remedy: "none by a field",
		},
		"on a fast disk the password is what takes long, and the disk is hardly there": {
			evidence: authentik(measured(authentikLogin(0.37, 24)), syncs(72*107, 370)),
			want:     "password-hashing commit-wait", says: "132ms more than its neighbours", remedy: "none by a field", share: 211,
		},
		"with synchronous_commit off no commit waits, however slow the disk": {
			evidence: authentik(measured(authentikLogin(0, 24)), syncs(72*80, 17_000), func(e *Evidence) { e.Durability = v1alpha1.DurabilityRelaxed }),
			want:     "password-hashing",
		},
		"a disk that nobody has measured is not blamed": {
			evidence: authentik(measured(authentikLogin(17, 24))), want: "password-hashing",
		},
		"the storage probe is evidence too": {
			evidence: authentik(measured(authentikLogin(17, 24)), func(e *Evidence) { e.StorageSyncMicros = 17_000 }),
			want:     "commit-wait password-hashing", says: "the storage probe's median fdatasync",
		},
		"so are the operator's own commits, where the server does not time its syncs": {
			evidence: authentik(measured(authentikLogin(17, 24)), func(e *Evidence) {
				e.Before = &facts.DatabaseSample{RoundTripMicros: 200, CommitMicros: 17_100}
				e.After = &facts.DatabaseSample{RoundTripMicros: 200, CommitMicros: 17_300}
			}),
			want: "commit-wait password-hashing database-round-trips", says: "WAL sync of 17.0ms (the median of the operator's own commits",
		},
		"the server counted fewer syncs than the model has: the count is believed": {
			evidence: authentik(measured(authentikLogin(17, 24)), syncs(72*6, 17_000)),
			want:     "password-hashing commit-wait",
		},
		"before 2025.10 the cache is not in PostgreSQL and ten commits fewer wait": {
			evidence: authentik(measured(authentikLogin(17, 14)), syncs(72*100, 17_000), func(e *Evidence) { e.Version, e.Cache = "2025.8.4", "redis" }),
			want:     "commit-wait password-hashing", says: "14 commits of a login",
		},
		"a dashboard that is slow is planned slowly, and no disk is blamed, however slow": {
			evidence: authentik(measured(dashboards), syncs(0, 0), func(e *Evidence) { e.StorageSyncMicros, e.After.JoinCollapseLimit = 17_000, 8 }),
			want:     "query-planning query-planning", share: 519, says: "no disk explains it", remedy: "join_collapse_limit: 4",
		},
		"the same with the setting in force leaves a little": {
			evidence: authentik(measured(dashboards), syncs(0, 0)),
			want:     "query-planning query-planning", share: 209, says: "join_collapse_limit is 4", remedy: "none by a field",
		},
		"a fresh database with jit on compiles": {
			evidence: authentik(measured(dashboards), syncs(0, 0), func(e *Evidence) { e.After.JIT, e.After.NeverAnalyzed = true, 190 }),
			want:     "jit jit query-planning query-planning", share: 736, says: "190 tables were never analysed", remedy: "jit: off",
		},
		"jit over tables with statistics does no harm": {
			evidence: authentik(measured(dashboards), syncs(0, 0), func(e *Evidence) { e.After.JIT = true }),
			want:     "query-planning query-planning",
		},
		"a database that is a network away is asked 290 times": {
			evidence: authentik(measured(authentikLogin(0, 24)), func(e *Evidence) {
				e.Before, e.After = &facts.DatabaseSample{RoundTripMicros: 900}, &facts.DatabaseSample{RoundTripMicros: 1100}
			}),
			want: "database-round-trips password-hashing", share: 470, says: "290 statements",
		},
		"a connection for each request costs what opening one costs": {
			evidence: authentik(measured(authentikLogin(0, 24)), func(e *Evidence) {
				e.Before, e.After = &facts.DatabaseSample{ConnectMicros: 9000}, &facts.DatabaseSample{ConnectMicros: 11_000, Sessions: 432, Backends: 2}
			}),
			want: "password-hashing connection-per-request",
		},
		"connections that stay open come from CONN_MAX_AGE": {
			evidence: authentik(measured(authentikLogin(0, 24)), func(e *Evidence) {
				e.Before, e.After = &facts.DatabaseSample{ConnectMicros: 9000}, &facts.DatabaseSample{ConnectMicros: 11_000, Sessions: 432, Backends: 33}
			}),
			want: "password-hashing connections-kept",
		},
		"connections that are reused are no cause": {
			evidence: authentik(measured(authentikLogin(0, 24)), func(e *Evidence) {
				e.Before, e.After = &facts.DatabaseSample{ConnectMicros: 9000}, &facts.DatabaseSample{ConnectMicros: 11_000, Sessions: 8}
			}),
			want: "password-hashing",
		},
		"a cold cache is what its reads took": {
			evidence: authentik(measured(authentikLogin(0, 24)), func(e *Evidence) {
				e.Before, e.After = &facts.DatabaseSample{}, &facts.DatabaseSample{ReadsTimed: true, BlocksRead: 90_000, BlocksHit: 10_000, ReadMicros: 828 * 200_000}
			}),
			want: "cold-cache password-hashing", says: "90000 of 100000 blocks", remedy: "spec.postgres.resources.limits.memory", share: 324,
		},
		"reads that nobody timed are none": {
			evidence: authentik(measured(authentikLogin(0, 24)), func(e *Evidence) {
				e.Before, e.After = &facts.DatabaseSample{}, &facts.DatabaseSample{BlocksRead: 90_000, BlocksHit: 10_000}
			}),
			want: "password-hashing",
		},
		"a Pod at its CPU limit, which hashing feels too": {
			evidence: authentik(measured(authentikLogin(0, 24)), func(e *Evidence) {
				e.Throttled = []Throttled{{Pod: "sso-authentik-server-0", Component: "server", Micros: 30_000_000, Periods: 600, ThrottledPeriods: 400}}
			}),
			want: "cpu-throttled password-hashing", says: "sso-authentik-server-0 back for 30.00s of 1m0s, in 400 of 600 periods", remedy: "spec.authentik.server.resources.limits.cpu", share: 500,
		},
		"a generator that measured itself comes before everything": {
			evidence: authentik(measured(authentikLogin(17, 24)), syncs(72*107, 17_000), func(e *Evidence) { e.Run.Generator.CPUMicros = 110_000_000 }),
			want:     "generator-bound commit-wait password-hashing", says: "k6 used 91 % of its 2 cores", remedy: "spec.generator.resources",
		},
		"the Pi without AES: its encryption is named with its figure, behind what takes longer": {
			evidence: authentik(measured(authentikLogin(17, 24)), syncs(72*107, 17_000), func(e *Evidence) {
				e.Crypto, e.After.WALBytes = &Crypto{AESGCMBytesPerSecond: 27_000_000, ChaCha20Poly1305BytesPerSecond: 173_000_000}, 72*55_000
			}),
			want: "commit-wait password-hashing slow-encryption",
		},
		"a CPU with AES instructions has no such cause": {
			evidence: authentik(measured(authentikLogin(0, 24)), func(e *Evidence) {
				e.Crypto = &Crypto{AESInstructions: true, AESGCMBytesPerSecond: 150_000_000}
			}),
			want: "password-hashing",
		},
		"Authelia's login stands at its deliberate delay": {
			evidence: authelia(measured(map[string]float64{"Login/login": 292, "Login/firstfactor": 292})),
			want:     "login-delay", says: "no login took less than 292ms", remedy: "none", share: 1000,
		},
		"an Argon2id above the delay is hashing": {
			evidence: authelia(measured(map[string]float64{"Login/login": 540, "Login/firstfactor": 540})),
			want:     "password-hashing login-delay", says: "498ms are left", share: 922,
		},
		"the operator's own commits before a run are not the login's": {
			evidence: authelia(measured(map[string]float64{"Login/login": 540, "Login/firstfactor": 540}), syncs(2*72+21, 200_000), func(e *Evidence) { e.Before.OwnCommits = 21 }),
			want:     "commit-wait password-hashing login-delay", says: "2 commits of a login wait", remedy: "a faster medium", share: 836,
		},
		"Authelia that logs each request": {
			evidence: authelia(measured(map[string]float64{"ForwardAuth/authorised": 2.2, "ForwardAuth/unauthorised": 2.2}), func(e *Evidence) { e.LogLevel = "info" }),
			want:     "log-level log-level", says: "level info; with a median of 2.20ms", remedy: "spec.authelia.extraConfig", share: 303,
		},
		"Authelia with Redis": {
			evidence: authelia(measured(map[string]float64{"ForwardAuth/authorised": 7, "ForwardAuth/unauthorised": 3.9}), func(e *Evidence) { e.Cache = "redis" }),
			want:     "redis-connections redis-connections", says: "a connection for each command", remedy: "spec.cache.memory", share: 923,
		},
		"and a Redis that is far away": {
			evidence: authelia(measured(map[string]float64{"ForwardAuth/authorised": 20}), func(e *Evidence) { e.Cache, e.RedisRoundTripMicros = "redis", 2000 }),
			want:     "redis-connections remote-redis",
		},
		"authentik's log level and Redis' connections are not Authelia's": {
			evidence: authentik(measured(map[string]float64{"ForwardAuth/authorised": 7}), func(e *Evidence) { e.Cache, e.LogLevel = "redis", "info" }),
		},
		"nothing was measured": {evidence: authentik(nil)},
		"a run without data":   {evidence: authentik(&result.Run{}, syncs(500, 17_000))},
	} {
		t.Run(name, func(t *testing.T) {
			causes := Diagnose(c.evidence)
			if got := names(causes); got != c.want {
				t.Fatalf("the causes are %q, want %q: %+v", got, c.want, causes)
			}
			for i, cause := range causes {
				if cause.Rank != int32(i+1) || cause.ShareMilli < 0 || cause.ShareMilli > 1000 || cause.Remedy == "" || !strings.ContainsAny(cause.Detail, "0123456789") {
					t.Errorf("no number, no remedy or no share: %+v", cause)
				}
				if cause.Name == CausePasswordHashing && strings.Contains(cause.Remedy, "spec.postgres") {
					t.Errorf("the disk is blamed for hashing: %+v", cause)
				}
			}
			if len(causes) == 0 {
				return
			}
			first := causes[0]
			if !strings.Contains(first.Detail, c.says) || !strings.Contains(first.Remedy, c.remedy) {
				t.Errorf("%s: %s | %s\nwant …%s… | …%s…", first.Name, first.Detail, first.Remedy, c.says, c.remedy)
			}
			if c.share != 0 && first.ShareMilli != c.share {
				t.Errorf("%s has %d of 1000, want %d", first.Name, first.ShareMilli, c.share)
			}
		})
	}
}

// The cost model is the one that was measured: what is said to wait grows with the disk as the login does.
func TestCommitWaitFollowsTheMeasuredLogins(t *testing.T) {
	// facts/authentik-measured.md 3.3: milliseconds per sync, and the median login.
	logins := []struct{ sync, login float64 }{{0.37, 603}, {5.6, 797}, {10.6, 904}, {20.6, 1167}}
	for _, l := range logins {
		e := Evidence{Provider: "authentik", Version: "2025.12.4", Durability: v1alpha1.DurabilityStrict, StorageSyncMicros: int64(l.sync * 1000),
			Run: measured(map[string]float64{"Login/login": l.login})}
		waited, _ := e.commitWait()
		rest := time.Duration(int64(l.login*1000)-waited) * time.Microsecond
		if rest < 570*time.Millisecond || rest > 660*time.Millisecond {
			t.Errorf("at %v ms per sync %v are left of a login, want the 616 ms that no disk explains", l.sync, rest)
		}
	}
}

func ExampleDiagnose() {
	e := Evidence{Provider: "authentik", Version: "2025.12.4", Durability: v1alpha1.DurabilityStrict, StorageSyncMicros: 17_000, Run: measured(authentikLogin(17, 24))}
	for _, cause := range Diagnose(e) {
		fmt.Printf("%d. %s: %d of 1000 of %s\n", cause.Rank, cause.Name, cause.ShareMilli, cause.Scenario)
	}
	// Output:
	// 1. commit-wait: 427 of 1000 of Login
	// 2. password-hashing: 123 of 1000 of Login
}

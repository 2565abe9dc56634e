package diagnosis

import (
	"fmt"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/result"
)

const (
	login       = v1alpha1.ScenarioLogin
	dashboard   = v1alpha1.ScenarioDashboard
	forwardAuth = v1alpha1.ScenarioForwardAuth
	loginWhole  = "login"
)

// The generator's limits are those of the guards (internal/latency/guards.go): beyond them a run is
// Inconclusive and this says why.
const (
	generatorCPUPercent       = 80
	generatorThrottledPercent = 1
)

func generator(e *Evidence) []finding {
	g := e.Run.Generator
	available := g.WallMicros * int64(g.GOMAXPROCS)
	wholes := e.wholes()
	if available <= 0 || len(wholes) == 0 {
		return nil
	}
	f := finding{name: CauseGenerator, first: true, scenario: v1alpha1.ScenarioName(wholes[0].Scenario), endpoint: wholes[0].Endpoint}
	if percent := g.CPUMicros * 100 / available; percent >= generatorCPUPercent {
		f.detail = fmt.Sprintf("k6 used %d %% of its %d cores, so that it measured itself; the shares below are not to be trusted", percent, g.GOMAXPROCS)
		f.remedy = "spec.generator.resources: more CPU, or fewer virtualUsers in spec.scenarios"
		return []finding{f}
	}
	if t := g.Throttle; t != nil && t.ThrottledMicros*100 > g.WallMicros*generatorThrottledPercent {
		f.detail = fmt.Sprintf("the kernel held k6 back for %s of %s; the shares below are not to be trusted",
			result.FormatMicros(t.ThrottledMicros), result.FormatMicros(g.WallMicros))
		f.remedy = "spec.generator.resources.limits.cpu: remove it, a throttled generator measures itself"
		return []finding{f}
	}
	return nil
}

// throttled blames a Pod's CPU limit for its part of each iteration: throttled time is wall time in which
// every request of that Pod stands still.
func throttled(e *Evidence) []finding {
	fields := map[string]string{
		"server": "spec.authentik.server.resources.limits.cpu", "worker": "spec.authentik.worker.resources.limits.cpu",
		"database": "spec.postgres.resources.limits.cpu", "redis": "spec.cache.redis.resources.limits.cpu",
	}
	if e.Provider == latency.Authelia {
		fields["server"] = "spec.authelia.resources.limits.cpu"
	}
	var list []finding
	for _, pod := range e.Throttled {
		if pod.Periods <= 0 || pod.Micros <= 0 || e.Run.Generator.WallMicros <= 0 {
			continue
		}
		for _, whole := range e.wholes() {
			list = append(list, finding{
				name: CauseCPUThrottled, scenario: v1alpha1.ScenarioName(whole.Scenario), endpoint: whole.Endpoint,
				micros: min(pod.Micros, e.Run.Generator.WallMicros) * whole.Total.PerMille(500) / e.Run.Generator.WallMicros,
				detail: fmt.Sprintf("the kernel held Pod %s back for %s of %s, in %d of %d periods, at its CPU limit",
					pod.Pod, result.FormatMicros(pod.Micros), result.FormatMicros(e.Run.Generator.WallMicros), pod.ThrottledPeriods, pod.Periods),
				remedy: fields[pod.Component] + ": raise it or remove it",
			})
			break
		}
	}
	return list
}

// hashing is the time that verifying a password takes, on purpose, on the product's CPU. For authentik it
// is what the request with the password takes longer than its two neighbours, which do the same but hash
// (150 ms on the test machine whatever the disk: facts/authentik-measured.md section 4).
func hashing(e *Evidence) []finding {
	remedy := "none by a field: the hash is the protection of stolen password tables, and no disk makes it faster; more or faster CPU for the product does"
	if e.Provider == latency.Authelia {
		return autheliaHashing(e, remedy)
	}
	with, before, after := e.median(login, "password-post"), e.median(login, "password-get"), e.median(login, "mfa-get")
	if with == 0 || before == 0 || after == 0 {
		return nil
	}
	micros := with - (before+after)/2
	return []finding{{
		name: CausePasswordHashing, scenario: login, endpoint: loginWhole, micros: micros, remedy: remedy,
		detail: fmt.Sprintf("the request with the password takes %s, %s more than its neighbours, which do the same without hashing: PBKDF2 is slow on purpose, and a floor of CPU, not of the disk",
			result.FormatMicros(with), result.FormatMicros(micros)),
	}}
}

// Authelia delays each login, good or bad: to the longer of 250 ms and the mean of the last ten good
// ones, and a random 0 to 84 ms more, so that nobody learns from the time whether a user exists
// (facts/authelia.md 1.10; constants of its code, no configuration).
const (
	autheliaDelayFloor  = 250_000
	autheliaDelayRandom = 84_000
)

// delayed is whether the floor of the delay decides: then the work itself cannot be seen from outside.
func delayed(median int64) bool { return median <= autheliaDelayFloor+autheliaDelayRandom }

func loginDelay(e *Evidence) []finding {
	whole := e.Run.Find(string(login), loginWhole)
	if e.Provider != latency.Authelia || whole == nil || whole.Total.Min() < autheliaDelayFloor {
		return nil
	}
	f := finding{name: CauseLoginDelay, scenario: login, endpoint: loginWhole,
		remedy: "none: the delay is compiled in and hides which users exist; an objective for Login below 340ms cannot be met"}
	median := whole.Total.PerMille(500)
	if delayed(median) {
		f.micros = median
		f.detail = fmt.Sprintf("no login took less than %s: Authelia delays each to 250 ms and a random 0 to 84 ms, whatever the work behind it takes",
			result.FormatMicros(whole.Total.Min()))
	} else {
		f.micros, f.estimated = autheliaDelayRandom/2, true
		f.detail = fmt.Sprintf("the median of %s lies above the floor of 250 ms, so that only the random 0 to 84 ms, 42 ms in the mean, are added", result.FormatMicros(median))
	}
	return []finding{f}
}

// autheliaHashing is what the floor of the delay, its random part and the commits leave over.
func autheliaHashing(e *Evidence, remedy string) []finding {
	median := e.median(login, loginWhole)
	if median == 0 || delayed(median) {
		return nil
	}
	waited, _ := e.commitWait()
	micros := median - autheliaDelayRandom/2 - waited
	return []finding{{
		name: CausePasswordHashing, scenario: login, endpoint: loginWhole, micros: micros, estimated: true, remedy: remedy,
		detail: fmt.Sprintf("of the median of %s, %s are left once the random delay and the commits that wait (%s) are taken off: Argon2id is slow on purpose, and a floor of CPU, not of the disk",
			result.FormatMicros(median), result.FormatMicros(micros), result.FormatMicros(waited)),
	}}
}

// ratio of requests a second before and after a change, as measured on Authelia 4.39 over one connection
// (facts/authelia.md section 8).
type ratio struct{ slow, fast int64 }

// saves is the part of a duration that the change takes away.
func (r ratio) saves(micros int64) int64 { return micros - micros*r.slow/r.fast }

var (
	infoInPlaceOfWarn = map[string]ratio{"authorised": {5759, 6448}, "unauthorised": {5405, 7754}}
	redisForMemory    = map[string]ratio{"authorised": {497, 6448}, "unauthorised": {1458, 7754}}
)

func logLevel(e *Evidence) []finding {
	if e.Provider != latency.Authelia || e.LogLevel != "info" && e.LogLevel != "debug" && e.LogLevel != "trace" {
		return nil
	}
	var list []finding
	for _, endpoint := range []string{"authorised", "unauthorised"} {
		median := e.median(forwardAuth, endpoint)
		r := infoInPlaceOfWarn[endpoint]
		list = append(list, finding{
			name: CauseLogLevel, scenario: forwardAuth, endpoint: endpoint, micros: r.saves(median), estimated: true,
			detail: fmt.Sprintf("Authelia logs at level %s; with a median of %s here, warn was %d.%d times as fast in requests a second than info on the test machine",
				e.LogLevel, result.FormatMicros(median), r.fast/r.slow, r.fast*10/r.slow%10),
			remedy: "log.level in spec.authelia.extraConfig: remove it, the operator writes warn",
		})
	}
	return list
}

func redisConnections(e *Evidence) []finding {
	if e.Provider != latency.Authelia || e.Cache != "redis" {
		return nil
	}
	var list []finding
	for _, endpoint := range []string{"authorised", "unauthorised"} {
		median := e.median(forwardAuth, endpoint)
		r := redisForMemory[endpoint]
		list = append(list, finding{
			name: CauseRedis, scenario: forwardAuth, endpoint: endpoint, micros: r.saves(median), estimated: true,
			detail: fmt.Sprintf("sessions are in Redis and Authelia 4.39 opens a connection for each command (an idle time of 300 ns in its code); the median is %s here, and memory was %d times as fast on the test machine",
				result.FormatMicros(median), r.fast/r.slow),
			remedy: "spec.cache.memory with spec.authelia.replicas: 1; or let the reverse proxy keep an answer for some seconds, 25 to 37 times as fast",
		})
	}
	return list
}

// remoteRedis: each command dials, greets and says who it is before it asks, four round trips
// (facts/authelia.md 1.5), and authentik before 2025.10 keeps its connections, one round trip a command.
func remoteRedis(e *Evidence) []finding {
	if e.RedisRoundTripMicros <= 0 || e.Cache != "redis" {
		return nil
	}
	// An authorised check reads its session once and writes it once; a login of authentik through 2025.8
	// had 10 cache writes and about as many reads.
	scenario, endpoint, trips := forwardAuth, "authorised", int64(2*4)
	if e.Provider == latency.Authentik {
		scenario, endpoint, trips = login, loginWhole, 20
	}
	return []finding{{
		name: CauseRemoteRedis, scenario: scenario, endpoint: endpoint, micros: trips * e.RedisRoundTripMicros, estimated: true,
		detail: fmt.Sprintf("a round trip to Redis takes %s, and one iteration makes about %d", result.FormatMicros(e.RedisRoundTripMicros), trips),
		remedy: "run Redis on the product's nodes or zone; spec.cache.memory with one replica where the product can",
	}}
}

// slowEncryption is the most bytes a second of AES-GCM that are called slow: a Raspberry Pi without AES
// instructions does 27 MB/s on one core, and was taken for a slow disk (issue 3).
const slowEncryption = 200_000_000

func encryption(e *Evidence) []finding {
	if e.Crypto == nil || e.Crypto.AESInstructions || e.Crypto.AESGCMBytesPerSecond <= 0 || e.Crypto.AESGCMBytesPerSecond > slowEncryption {
		return nil
	}
	perLogin := int64(0)
	if n := e.iterations(login); n > 0 && e.Before != nil && e.After != nil {
		perLogin = (e.After.WALBytes - e.Before.WALBytes) / n
	}
	return []finding{{
		name: CauseEncryption, scenario: login, endpoint: loginWhole, always: true, estimated: true,
		micros: perLogin * 2 * 1_000_000 / e.Crypto.AESGCMBytesPerSecond,
		detail: fmt.Sprintf("the database's node has no AES instructions: one core encrypts %d MB/s with AES-GCM and %d MB/s with ChaCha20-Poly1305; a login's %d kB of WAL are encrypted and decrypted on an encrypted way to the storage",
			e.Crypto.AESGCMBytesPerSecond/1_000_000, e.Crypto.ChaCha20Poly1305BytesPerSecond/1_000_000, perLogin/1000),
		remedy: "spec.postgres.storage: a class without encryption on this node, a network encryption with ChaCha20 (WireGuard), or a node with AES instructions",
	}}
}

// Package authentik plans authentik: a server and a worker, with every setting of their release.
package authentik

import (
	"fmt"
	"slices"
	"strings"
)

// release is what differs between authentik's releases (facts/authentik.md 1.1, 3 and 4, and the
// release notes named there).
type release struct {
	name string
	// sessions, cache, tasks and channels are where each is kept: redis or postgres.
	sessions, cache, tasks, channels string
	// data is the path that uploaded files are under: /media, from 2025.12 /data; dataFolder is what of
	// /data it was before, so that a claim which is mounted there keeps its files where 2025.12 and later
	// look for them, in /data/media.
	data, dataFolder string
	// listensOnIPv6 is whether the default address is [::], which fails on nodes without IPv6.
	listensOnIPv6 bool
	// threads is the setting for the worker's parallel tasks; from 2025.8 THREADS, before CONCURRENCY.
	threads string
	// utf8 is whether the database must have the encoding UTF8.
	utf8 bool
	// baseURL is whether AUTHENTIK_WEB__BASE_URL exists; 2026.11 will insist on it.
	baseURL bool
	// connOptions is whether AUTHENTIK_POSTGRESQL__CONN_OPTIONS may be used: from 2025.8, deprecated
	// with 2026.8. Session settings are made with ALTER ROLE instead, which works in every release.
	connOptions string
	// server and worker are the PostgreSQL connections that a Pod of each may hold: a connection per
	// request in flight, and from 2025.10 listeners, the channel layer's pool and the embedded outpost
	// on top, which the release notes put at about 50 % more.
	server, worker int
}

const (
	inRedis    = "redis"
	inPostgres = "postgres"
)

// releases in the order of upgrades; one cannot be skipped (authentik #24160).
var releases = []release{
	{name: "2025.2", sessions: inRedis, cache: inRedis, tasks: inRedis, channels: inRedis, data: "/media", dataFolder: "media", threads: "CONCURRENCY", connOptions: "none", server: 20, worker: 10},
	{name: "2025.4", sessions: inPostgres, cache: inRedis, tasks: inRedis, channels: inRedis, data: "/media", dataFolder: "media", threads: "CONCURRENCY", connOptions: "none", server: 20, worker: 10},
	{name: "2025.6", sessions: inPostgres, cache: inRedis, tasks: inRedis, channels: inRedis, data: "/media", dataFolder: "media", threads: "CONCURRENCY", connOptions: "none", server: 20, worker: 10},
	{name: "2025.8", sessions: inPostgres, cache: inRedis, tasks: inPostgres, channels: inRedis, data: "/media", dataFolder: "media", threads: "THREADS", utf8: true, connOptions: "supported", server: 20, worker: 16},
	{name: "2025.10", sessions: inPostgres, cache: inPostgres, tasks: inPostgres, channels: inPostgres, data: "/media", dataFolder: "media", threads: "THREADS", utf8: true, connOptions: "supported", server: 30, worker: 24},
	{name: "2025.12", sessions: inPostgres, cache: inPostgres, tasks: inPostgres, channels: inPostgres, data: "/data", threads: "THREADS", utf8: true, connOptions: "supported", server: 30, worker: 24},
	{name: "2026.2", sessions: inPostgres, cache: inPostgres, tasks: inPostgres, channels: inPostgres, data: "/data", threads: "THREADS", utf8: true, connOptions: "supported", server: 30, worker: 24},
	{name: "2026.5", sessions: inPostgres, cache: inPostgres, tasks: inPostgres, channels: inPostgres, data: "/data", listensOnIPv6: true, threads: "THREADS", utf8: true, connOptions: "supported", server: 30, worker: 23},
	{name: "2026.8", sessions: inPostgres, cache: inPostgres, tasks: inPostgres, channels: inPostgres, data: "/data", listensOnIPv6: true, threads: "THREADS", utf8: true, baseURL: true, connOptions: "deprecated", server: 30, worker: 23},
}

// redis is whether the release needs Redis at all.
func (r release) redis() bool {
	return slices.Contains([]string{r.sessions, r.cache, r.tasks, r.channels}, inRedis)
}

// find the release of a version such as 2025.12.4.
func find(version string) (release, int, error) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) >= 2 {
		name := parts[0] + "." + parts[1]
		if i := slices.IndexFunc(releases, func(r release) bool { return r.name == name }); i >= 0 {
			return releases[i], i, nil
		}
	}
	return release{}, -1, fmt.Errorf("authentik %s is not known; known are the releases %s to %s", version, releases[0].name, releases[len(releases)-1].name)
}

// upgradePath says why a version cannot follow the one that runs, or returns "".
func upgradePath(running, wanted string) string {
	if running == "" || running == wanted {
		return ""
	}
	_, from, err := find(running)
	if err != nil {
		return ""
	}
	_, to, err := find(wanted)
	if err != nil {
		return err.Error()
	}
	switch {
	case to < from:
		return fmt.Sprintf("authentik %s cannot follow %s: its migrations only go forward; restore a backup into a new AuthStack of the older version", wanted, running)
	case to > from+1:
		return fmt.Sprintf("authentik %s runs and %s skips a release: it is upgraded one release at a time; write a version of %s first, wait until the stack is Ready, then go on", running, wanted, releases[from+1].name)
	}
	return ""
}

package authentik

import (
	"fmt"
	"strconv"
	"strings"
)

// DefaultVersion is what the double says it is unless AUTHENTIK_DOUBLE_VERSION says otherwise; the link step may set
// it with -ldflags "-X …/internal/authentik.DefaultVersion=2025.12.4". The counts were measured on 2025.12.4.
var DefaultVersion = "2025.12.4"

// Behaviour is what differs from one product version to the next, as far as a login or a dashboard notices
// (facts/authentik.md §1.1, §1.3, §3).
type Behaviour struct {
	Version         string
	Redis           bool // before 2025.10: cache, throttle and channels in Redis, which is then required
	TasksInDB       bool // from 2025.8: the task queue is PostgreSQL; before, Celery over Redis
	ThrottleInCache bool // through 2026.5: each anonymous API request writes its throttle row to the cache
	FlushOnLogin    bool // before 2026.5.4: saving last_login deletes everybody's app-list and policy entries
	UTF8Only        bool // from 2025.8
	Iterations      int  // PBKDF2-SHA256: Django 5.2 has 1,000,000, Django 5.1 870,000
	Autocomplete    bool // from 2025.8: a page of the API names what its search completes
	Direct          bool // from 2026.8: POSTGRESQL__DIRECT__* for LISTEN and locks
	ListenAny6      bool // from 2026.5 the default address is [::]
	GrantTypes      bool // from 2026.5 an OAuth2 provider lists what its client may ask for
	SignedOutpost   bool // from 2026.8: the outpost (in Rust) signs its cookie and stores each session that it begins
}

// BehaviourOf reads a version such as 2025.12.4.
func BehaviourOf(version string) (Behaviour, error) {
	var n [3]int
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return Behaviour{}, fmt.Errorf("version %q: want year.month or year.month.patch", version)
	}
	for i, p := range parts {
		if j := strings.IndexAny(p, "-+"); j >= 0 {
			p = p[:j]
		}
		v, err := strconv.Atoi(p)
		if err != nil {
			return Behaviour{}, fmt.Errorf("version %q: %w", version, err)
		}
		n[i] = v
	}
	at := func(year, month, patch int) bool {
		want := [3]int{year, month, patch}
		for i := range n {
			if n[i] != want[i] {
				return n[i] > want[i]
			}
		}
		return true
	}
	if !at(2025, 4, 0) {
		return Behaviour{}, fmt.Errorf("version %s: the double knows 2025.4 and later (before that sessions were in the cache)", version)
	}
	b := Behaviour{
		Version:      version,
		Redis:        !at(2025, 10, 0),
		TasksInDB:    at(2025, 8, 0),
		FlushOnLogin: !at(2026, 5, 4),
		UTF8Only:     at(2025, 8, 0),
		Autocomplete: at(2025, 8, 0),
		Iterations:   1_000_000,
		ListenAny6:   at(2026, 5, 0),
		Direct:       at(2026, 8, 0),

		GrantTypes:    at(2026, 5, 0),
		SignedOutpost: at(2026, 8, 0),
	}
	b.ThrottleInCache = !at(2026, 8, 0)
	if !at(2025, 10, 0) {
		b.Iterations = 870_000
	}
	return b, nil
}

// CommitsPerLogin is how many commits of one login wait for the WAL at this version: 24 measured at 2025.12
// (facts/authentik-measured.md §2.1), less what has moved out of PostgreSQL in the others.
func (b Behaviour) CommitsPerLogin() int {
	n := 24
	switch {
	case b.Redis:
		n -= 6 + 3 + 1
	case !b.ThrottleInCache:
		n -= 6
	}
	if !b.Redis && !b.FlushOnLogin {
		n--
	}
	if !b.TasksInDB {
		n--
	}
	return n
}

package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// silencePatience is how long a database is waited for that may stand still; one that is well answers within some
	// milliseconds, and the reconcile waits as well.
	silencePatience = 5 * time.Second
	// silenceHolds is how long the answer is good for: each look leaves a server process behind that cannot be ended while the
	// disk is dead, and a stack that is not ready is looked at every few seconds.
	silenceHolds = time.Minute
)

// silences are the last answers to whether a database stands still, by stack. The zero value knows none.
type silences struct {
	mu    sync.Mutex
	known map[types.UID]silence
}

type silence struct {
	at     time.Time
	silent bool
}

// ask gives the last answer while it is good, and else asks.
func (s *silences) ask(uid types.UID, now time.Time, look func() bool) bool {
	s.mu.Lock()
	last, found := s.known[uid]
	s.mu.Unlock()
	if found && now.Sub(last.at) < silenceHolds {
		return last.silent
	}
	silent := look()
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, answer := range s.known {
		if now.Sub(answer.at) >= silenceHolds {
			delete(s.known, other)
		}
	}
	if s.known == nil {
		s.known = map[types.UID]silence{}
	}
	s.known[uid] = silence{at: now, silent: silent}
	return silent
}

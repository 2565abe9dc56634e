package authelia

import (
	"context"
	"crypto/rand"
	"math/big"
	"sync"
	"time"
)

// delay raises the time of an answer against user enumeration: to max(floor, mean of the last successes) and a
// random part, for successes too. The history is per process and starts at its initial value, so that the first ten
// logins after a start take about a second (§2). The constants are hard-coded in the product as well.
type delay struct {
	mu      sync.Mutex
	history []time.Duration
	next    int
	floor   time.Duration
}

const (
	loginHistory = 10
	loginInitial = time.Second
	loginFloor   = 250 * time.Millisecond
	basicHistory = 50
	basicFloor   = 2 * time.Second
	delayRandom  = 85 * time.Millisecond // exclusive: 0 to 84 ms
)

func newDelay(n int, initial, floor time.Duration) *delay {
	d := &delay{history: make([]time.Duration, n), floor: floor}
	for i := range d.history {
		d.history[i] = initial
	}
	return d
}

// wait sleeps for the rest of the time this answer should take; work is how long it has taken. It holds no lock.
func (d *delay) wait(ctx context.Context, work time.Duration, success bool) {
	d.mu.Lock()
	var sum time.Duration
	for _, h := range d.history {
		sum += h
	}
	mean := sum / time.Duration(len(d.history))
	if success {
		d.history[d.next] = work
		d.next = (d.next + 1) % len(d.history)
	}
	d.mu.Unlock()
	n, _ := rand.Int(rand.Reader, big.NewInt(int64(delayRandom/time.Millisecond)))
	t := time.NewTimer(max(d.floor, mean) + time.Duration(n.Int64())*time.Millisecond - work)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

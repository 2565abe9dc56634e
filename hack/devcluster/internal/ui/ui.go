// Package ui shows what is going on and for how long it has been.
package ui

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Progress prints steps. It is safe for concurrent use.
type Progress struct {
	out   io.Writer
	tty   bool
	start time.Time
	mu    sync.Mutex
}

// New prints to standard error, since the results of commands go to standard output.
func New() *Progress {
	info, err := os.Stderr.Stat()
	return &Progress{
		out:   os.Stderr,
		tty:   err == nil && info.Mode()&os.ModeCharDevice != 0,
		start: time.Now(),
	}
}

// Say prints one line with the time since the command began.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.out, "[%5.1fs] %s\n", time.Since(p.start).Seconds(), fmt.Sprintf(format, args...))
}

// Step prints what is being done until work returns: on a terminal as a line
// that counts, elsewhere as a line every 15 seconds, so that a log stays short
// and yet nobody wonders whether anything still happens.
func (p *Progress) Step(what string, work func() error) error {
	began := time.Now()
	every := 15 * time.Second
	if p.tty {
		every = time.Second
	}
	done := make(chan error, 1)
	go func() { done <- work() }()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			if err == nil && time.Since(began) > 300*time.Millisecond {
				p.Say("%s: done in %.1fs", what, time.Since(began).Seconds())
			}
			return err
		case <-ticker.C:
			p.tick(what, time.Since(began))
		}
	}
}

func (p *Progress) tick(what string, elapsed time.Duration) {
	if !p.tty {
		p.Say("%s: %.0fs so far", what, elapsed.Seconds())
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.out, "[%5.1fs] %s: %.0fs", time.Since(p.start).Seconds(), what, elapsed.Seconds())
}

func (p *Progress) clear() {
	if p.tty {
		fmt.Fprint(p.out, "\r\033[K")
	}
}

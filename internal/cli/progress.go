package cli

import (
	"fmt"
	"time"
)

// progressLines says on Err how far a thing is: one line that is written over on a terminal, a line for
// each change elsewhere, so that a pipeline's log shows no more than what happened.
type progressLines struct {
	since time.Time
	last  string
	open  bool
}

func (a *App) progress(message string) {
	p := &a.lines
	now := a.Now()
	if p.since.IsZero() {
		p.since = now
	}
	line := fmt.Sprintf("[%4ds] %s", int(now.Sub(p.since).Seconds()), message)
	switch {
	case a.Terminal:
		fmt.Fprintf(a.Err, "\r\033[K%s", line)
		p.open = true
	case message != p.last:
		fmt.Fprintln(a.Err, line)
	}
	p.last = message
}

// end leaves a line that is written over where it stands.
func (p *progressLines) end(a *App) {
	if p.open {
		fmt.Fprintln(a.Err)
	}
	p.open = false
}

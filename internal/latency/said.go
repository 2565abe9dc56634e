package latency

import (
	"bytes"
	"strconv"
	"strings"
)

// Said is a writer to which the log of a k6 process is copied; it keeps what k6 first said of an error.
type Said struct {
	// Error in k6's words, the first line of it, or empty.
	Error string
	line  []byte
}

// The longest line that is looked at, and the longest error that is kept.
const (
	maxSaidLine  = 16 << 10
	maxSaidError = 400
)

// Write takes a part of the log. It never fails.
func (s *Said) Write(p []byte) (int, error) {
	n := len(p)
	for s.Error == "" && len(p) > 0 {
		part, rest, whole := bytes.Cut(p, []byte("\n"))
		if room := maxSaidLine - len(s.line); room > 0 {
			s.line = append(s.line, part[:min(len(part), room)]...)
		}
		if !whole {
			break
		}
		s.Error = errorIn(string(s.line))
		s.line, p = s.line[:0], rest
	}
	return n, nil
}

// errorIn is the message of a line of k6's log at the level error, or empty. k6 2.2 writes logrus' text
// form: time="…" level=error msg="…" hint="…".
func errorIn(line string) string {
	_, found, is := strings.Cut(line, "level=error msg=")
	if !is {
		return ""
	}
	message, _, _ := strings.Cut(found, " ")
	if quoted, err := strconv.QuotedPrefix(found); err == nil {
		if text, err := strconv.Unquote(quoted); err == nil {
			message = text
		}
	}
	message, _, _ = strings.Cut(message, "\n")
	for _, noise := range []string{"Error: ", "GoError: "} {
		message = strings.TrimPrefix(message, noise)
	}
	return clip(strings.TrimSpace(message), maxSaidError)
}

package result

import (
	"fmt"
	"time"
)

// FormatMicros writes a duration in microseconds for people, with about three digits: 850µs, 9.87ms,
// 61.2ms, 612ms, 1.23s, 2m5s.
func FormatMicros(micros int64) string {
	ms := float64(micros) / 1000
	switch {
	case micros < 1000:
		return fmt.Sprintf("%dµs", micros)
	case ms < 9.995:
		return fmt.Sprintf("%.2fms", ms)
	case ms < 99.95:
		return fmt.Sprintf("%.1fms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0fms", ms)
	case ms < 59_995:
		return fmt.Sprintf("%.2fs", ms/1000)
	}
	return (time.Duration(micros) * time.Microsecond).Round(time.Second).String()
}

// Package filelock is locks between processes that vanish with their holder.
package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld says that somebody else holds the lock.
var ErrHeld = errors.New("the lock is held")

// Try takes the lock or returns ErrHeld. The file stays open, and the lock
// held, until release is called or the process ends.
func Try(path string) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrHeld
		}
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// Wait takes the lock as soon as it is free, and calls busy once if it is not.
func Wait(ctx context.Context, path string, busy func()) (release func(), err error) {
	for said := false; ; {
		release, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return release, err
		}
		if !said {
			busy()
			said = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Held tells whether some process holds the lock.
func Held(path string) bool {
	if _, err := os.Stat(path); err != nil {
		return false
	}
	release, err := Try(path)
	if err == nil {
		release()
	}
	return errors.Is(err, ErrHeld)
}

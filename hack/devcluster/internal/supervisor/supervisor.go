// Package supervisor keeps the parts of a cluster running: one small process
// per cluster that starts them and starts them again when they end.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"authstack.dev/authstack/hack/devcluster/internal/filelock"
	"authstack.dev/authstack/hack/devcluster/internal/layout"
	"authstack.dev/authstack/hack/devcluster/internal/node"
	"authstack.dev/authstack/hack/devcluster/internal/parts"
)

// startsWithin is how long a supervisor may take until it holds its lock.
const startsWithin = time.Minute

func lockFile(l layout.Layout) string { return l.InState("run", "supervisor.lock") }

// PartsFile is where the list of parts lies.
func PartsFile(l layout.Layout) string { return l.InState("config", "parts.json") }

// PIDFile is where the process of a part, or of the supervisor, is noted.
func PIDFile(l layout.Layout, name string) string { return l.InState("run", name+".pid") }

// LogFile is where a part writes.
func LogFile(l layout.Layout, name string) string { return l.InState("log", name+".log") }

// Running tells whether a supervisor is at work: it holds a lock, which ends
// with it however it ends.
func Running(l layout.Layout) bool { return filelock.Held(lockFile(l)) }

// Start starts a supervisor that outlives this process.
func Start(ctx context.Context, l layout.Layout, executable string) error {
	log, err := os.OpenFile(LogFile(l, "supervisor"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(executable, "supervise", "--state-dir", l.State)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(environment(), node.Mark+"="+l.State, layout.SourceVariable+"="+l.Source)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for began := time.Now(); time.Since(began) < startsWithin; {
		if Running(l) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			return fmt.Errorf("the supervisor ended at once: see %s", LogFile(l, "supervisor"))
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("the supervisor did not start within %s: see %s", startsWithin, LogFile(l, "supervisor"))
}

// environment is the little of the caller's that parts need. Anything else,
// a proxy or a kubeconfig say, would change what they do from one caller to the next.
func environment() []string {
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	return []string{"PATH=" + path, "HOME=/nonexistent", "LANG=C.UTF-8"}
}

// Run is the supervisor's own main function; it returns when told to end.
func Run(l layout.Layout) error {
	// Whoever looks whether there is a supervisor has the lock for a moment.
	patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	release, err := filelock.Wait(patience, lockFile(l), func() {})
	if err != nil {
		return fmt.Errorf("another supervisor is at work: %w", err)
	}
	defer release()
	list, err := parts.Read(PartsFile(l))
	if err != nil {
		return err
	}
	if err := notePID(l, "supervisor", os.Getpid()); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var all sync.WaitGroup
	for _, part := range list {
		all.Go(func() { keep(ctx, l, part) })
	}
	all.Wait()
	return nil
}

// keep runs a part again and again.
func keep(ctx context.Context, l layout.Layout, part parts.Part) {
	// The kernel ends a part when the thread that started it does, so that
	// parts never outlive their supervisor; hence a thread of its own for each.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const shortest, longest = 200 * time.Millisecond, 5 * time.Second
	pause := shortest
	for ctx.Err() == nil {
		if part.Held() {
			pause = shortest
			select {
			case <-ctx.Done():
			case <-time.After(shortest):
			}
			continue
		}
		waitFor(ctx, part.After)
		began := time.Now()
		err := runOnce(ctx, l, part)
		if ctx.Err() != nil {
			return
		}
		fmt.Printf("%s %s ended after %.1fs: %v\n", time.Now().Format(time.RFC3339), part.Name, time.Since(began).Seconds(), err)
		if time.Since(began) > 10*time.Second {
			pause = shortest
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longest)
	}
}

func runOnce(ctx context.Context, l layout.Layout, part parts.Part) error {
	log, err := openLog(LogFile(l, part.Name))
	if err != nil {
		return err
	}
	defer log.Close()
	argv := part.Argv
	switch {
	case part.OnNode:
		argv = node.Enter(l, argv...)
	case part.SeesMounts:
		argv = node.EnterMounts(l, argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 3 * time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := notePID(l, part.Name, cmd.Process.Pid); err != nil {
		fmt.Println(err)
	}
	return cmd.Wait()
}

// openLog starts a new log when the old one has grown large, keeping one.
func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > 64<<20 {
		_ = os.Rename(path, path+".old")
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// waitFor returns when the address answers, or after a while: the part itself
// then says better than we could what is wrong.
func waitFor(ctx context.Context, address string) {
	kind, where, found := strings.Cut(address, "://")
	if !found {
		return
	}
	dialer := net.Dialer{Timeout: time.Second}
	for range 300 {
		conn, err := dialer.DialContext(ctx, kind, where)
		if err == nil {
			_ = conn.Close()
			return
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func notePID(l layout.Layout, name string, pid int) error {
	path := PIDFile(l, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(path, []byte(strconv.Itoa(pid)+"\n"), 0o644)
}

// PID returns the noted process of a part; ok only if it is alive and the cluster's.
func PID(l layout.Layout, name string, alive []node.Process) (pid int, ok bool) {
	data, err := os.ReadFile(PIDFile(l, name))
	if err != nil {
		return 0, false
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, false
	}
	for _, p := range alive {
		if p.PID == pid {
			return pid, true
		}
	}
	return pid, false
}

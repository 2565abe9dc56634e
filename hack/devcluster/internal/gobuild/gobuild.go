// Package gobuild builds Go programs into the cache, by the content of what
// they are built from: a second clone finds them there.
package gobuild

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"authstack.dev/authstack/hack/devcluster/internal/command"
	"authstack.dev/authstack/hack/devcluster/internal/filelock"
	"authstack.dev/authstack/hack/devcluster/internal/layout"
	"authstack.dev/authstack/hack/devcluster/internal/ui"
)

// Program is a Go program that can be built.
type Program struct {
	// Name of the executable.
	Name string
	// Module is the absolute path of its module.
	Module string
	// Package in that module; "." unless told otherwise.
	Package string
	// LDFlags are for the linker.
	LDFlags string
	// Hint is said while it is built for the first time.
	Hint string
}

// Cached returns the path of the executable and builds it unless the cache has it.
// The key is the module's files: right for modules that live off released
// dependencies only, as all in this folder do.
func Cached(ctx context.Context, l layout.Layout, progress *ui.Progress, p Program) (string, error) {
	key, err := p.key(ctx)
	if err != nil {
		return "", err
	}
	dir := l.InCache("bin", p.Name+"-"+key)
	path := filepath.Join(dir, p.Name)
	if command.Exists(path) {
		touch(dir)
		return path, nil
	}
	unlock, err := filelock.Wait(ctx, l.InCache("locks", p.Name+".lock"), func() {
		progress.Say("another devcluster is building %s: waiting for it", p.Name)
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if command.Exists(path) {
		return path, nil
	}
	what := "building " + p.Name
	if p.Hint != "" {
		what += " (" + p.Hint + ")"
	}
	if err := progress.Step(what, func() error { return p.Build(ctx, path) }); err != nil {
		return "", err
	}
	prune(l.InCache("bin"), p.Name, dir)
	return path, nil
}

// Build builds into the given file, which appears there only when it is whole.
func (p Program) Build(ctx context.Context, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	pkg := p.Package
	if pkg == "" {
		pkg = "."
	}
	part := path + ".part"
	_, err := command.Run(ctx,
		[]string{"go", "build", "-ldflags", strings.TrimSpace("-s -w " + p.LDFlags), "-o", part, pkg},
		// Static, so that it runs in an image that holds nothing else; and
		// whatever workspace or flags are set for the repository around it do
		// not apply to a module of its own.
		command.In(p.Module), command.Env("CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-buildvcs=false"))
	if err != nil {
		return err
	}
	return os.Rename(part, path)
}

func (p Program) key(ctx context.Context) (string, error) {
	version, err := command.Run(ctx, []string{"go", "env", "GOVERSION", "GOARCH"}, command.In(p.Module))
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n%s\n", version, p.LDFlags, p.Package)
	if err := HashTree(hash, p.Module, func(path string) bool {
		switch filepath.Base(path) {
		case "go.mod", "go.sum":
			return true
		}
		return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
	}); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// HashTree feeds names and contents of the chosen files to a hash, in the order
// of their names.
func HashTree(hash io.Writer, dir string, choose func(string) bool) error {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && choose(path) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	sort.Strings(paths)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintf(hash, "%s %d\n", name, len(data))
		if _, err := hash.Write(data); err != nil {
			return err
		}
	}
	return nil
}

func touch(path string) {
	now := time.Now()
	_ = os.Chtimes(path, now, now)
}

// prune removes builds of the program that nobody asked for in two weeks.
// Running clusters have links of their own to what they run.
func prune(dir, name, keep string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := entry.Info()
		if err == nil && path != keep && len(entry.Name()) == len(name)+13 && strings.HasPrefix(entry.Name(), name+"-") && time.Since(info.ModTime()) > 14*24*time.Hour {
			_ = os.RemoveAll(path)
		}
	}
}

// Package layout knows where everything lies: the sources, the cache that is
// shared by all clones of them, and the state of one running cluster.
package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

const (
	// DefaultState is where the cluster of a machine lies unless told otherwise.
	DefaultState = "/var/lib/authstack/devcluster"
	// StateVariable names the environment variable that tells otherwise.
	StateVariable = "DEVCLUSTER_STATE"
	// SourceVariable tells where the sources are, for a command that was built
	// elsewhere and is run outside of a clone.
	SourceVariable = "DEVCLUSTER_SOURCE"

	// maxState keeps the sockets in the state folder below the 107 bytes that
	// the kernel allows for the path of one.
	maxState = 70
)

// Layout holds three absolute paths.
type Layout struct {
	// Source is the folder of this module, hack/devcluster.
	Source string
	// Cache holds what was built, by its content.
	Cache string
	// State holds everything of one cluster, and only that.
	State string
}

// New finds the three. An empty state means the environment's, or the default.
func New(state string) (Layout, error) {
	if state == "" {
		state = os.Getenv(StateVariable)
	}
	if state == "" {
		state = DefaultState
	}
	state, err := filepath.Abs(state)
	if err != nil {
		return Layout{}, err
	}
	if len(state) > maxState {
		return Layout{}, fmt.Errorf("the state folder %s is %d bytes long; sockets lie in it, so at most %d are possible: choose another with --state-dir", state, len(state), maxState)
	}
	if state == "/" || filepath.Dir(state) == "/" {
		return Layout{}, fmt.Errorf("the state folder is removed by `devcluster down`, so it cannot be %s: choose one further down", state)
	}
	source, err := findSource()
	if err != nil {
		return Layout{}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Layout{}, fmt.Errorf("no place for a cache: %w: set HOME or XDG_CACHE_HOME", err)
	}
	return Layout{Source: source, Cache: filepath.Join(cache, "authstack"), State: state}, nil
}

// Name tells clusters on one machine apart; links and cgroups carry it. It
// follows from the state folder alone, so that what a lost cluster left behind
// can still be found.
func (l Layout) Name() string {
	if l.State == DefaultState {
		return "devcluster"
	}
	sum := sha256.Sum256([]byte(l.State))
	return "devcluster-" + hex.EncodeToString(sum[:3])
}

// LinkPrefix begins the name of every cluster's Link.
const LinkPrefix = "devc"

// Link is the host's end of the cable to the node. At most 15 bytes.
func (l Layout) Link() string {
	sum := sha256.Sum256([]byte(l.State))
	return LinkPrefix + hex.EncodeToString(sum[:3])
}

// InState joins a path to the state folder.
func (l Layout) InState(parts ...string) string {
	return filepath.Join(append([]string{l.State}, parts...)...)
}

// InSource joins a path to the source folder.
func (l Layout) InSource(parts ...string) string {
	return filepath.Join(append([]string{l.Source}, parts...)...)
}

// InCache joins a path to the cache folder.
func (l Layout) InCache(parts ...string) string {
	return filepath.Join(append([]string{l.Cache}, parts...)...)
}

// Socket is containerd's.
func (l Layout) Socket() string { return l.InState("run", "containerd.sock") }

// Kubeconfig is the administrator's.
func (l Layout) Kubeconfig() string { return l.InState("kubeconfig") }

func findSource() (string, error) {
	isSource := func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "images.yaml"))
		return err == nil
	}
	if dir := os.Getenv(SourceVariable); dir != "" {
		if !isSource(dir) {
			return "", fmt.Errorf("%s=%s has no images.yaml: it must be the folder hack/devcluster of a clone", SourceVariable, dir)
		}
		return filepath.Abs(dir)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		for _, candidate := range []string{dir, filepath.Join(dir, "hack", "devcluster")} {
			if isSource(candidate) {
				return candidate, nil
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	// Where this file was when it was compiled.
	if _, file, _, ok := runtime.Caller(0); ok {
		if dir := filepath.Join(filepath.Dir(file), "..", ".."); isSource(dir) {
			return filepath.Clean(dir), nil
		}
	}
	return "", errors.New("the sources are not in sight: run this inside a clone of the repository, or set " + SourceVariable + " to its hack/devcluster")
}

// Package architecture holds the house to its plan: imports run downward only, pure rooms talk to
// nothing, and no file grows beyond what one reads in one go.
package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "authstack.dev/authstack/"

// floors is the house from the ground up. A package may import those of its own floor and below.
var floors = [][]string{
	{"api", "internal/facts", "internal/result", "internal/probe", "internal/tuning", "internal/durability", "internal/schedule", "internal/statistics", "internal/confinement", "loadtests"},
	{"internal/stack", "internal/latency"},
	{"internal/baseline", "internal/comparison", "internal/kube", "internal/diagnosis", "internal/report", "internal/metrics", "internal/sqlclient", "internal/idp"},
	{"controllers", "internal/cli"},
	{"cmd"},
}

// pure are the rooms that turn values into values.
var pure = []string{
	"api", "internal/facts", "internal/result", "internal/probe", "internal/tuning", "internal/durability", "internal/schedule", "internal/statistics", "internal/confinement", "internal/stack", "internal/latency",
	"internal/baseline", "internal/comparison", "internal/diagnosis", "internal/report",
}

// refused are imports that no pure room has, with the reason. controller-runtime's client is not among
// them because of its type client.Object; what else that package has is for the floors above.
var refused = map[string]string{
	"k8s.io/client-go":                           "it talks to a cluster",
	"sigs.k8s.io/controller-runtime/pkg/manager": "it talks to a cluster",
	"sigs.k8s.io/controller-runtime/pkg/cache":   "it talks to a cluster",
	"database/sql":                               "it talks to a database",
	"github.com/jackc/pgx":                       "it talks to a database",
	"net/http":                                   "it talks to a server",
	"os/exec":                                    "it starts programs",
	module + "internal/kube":                     "it talks to a cluster",
	module + "internal/sqlclient":                "it talks to a database",
	module + "internal/idp":                      "it talks to a server",
}

const maxLines = 400

type goPackage struct {
	ImportPath, Dir                    string
	Imports                            []string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

func TestImportsRunDownward(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if within(name, "test") || within(name, "hack") {
			continue
		}
		floor, placed := floorOf(name)
		if !placed {
			t.Errorf("%s is on no floor: add it to floors in this test and to the house in docs", name)
			continue
		}
		for _, imported := range p.Imports {
			if !strings.HasPrefix(imported, module) {
				continue
			}
			other := strings.TrimPrefix(imported, module)
			if above, ok := floorOf(other); !ok || above > floor {
				t.Errorf("%s imports %s, which is above it", name, other)
			}
		}
	}
}

func TestPureRoomsTalkToNothing(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if !withinAny(name, pure) {
			continue
		}
		for _, imported := range p.Imports {
			for path, reason := range refused {
				if within(imported, path) {
					t.Errorf("the pure room %s imports %s: %s", name, imported, reason)
				}
			}
		}
	}
}

func TestTheAPIHasFewImports(t *testing.T) {
	for _, p := range packages(t) {
		if !within(strings.TrimPrefix(p.ImportPath, module), "api") {
			continue
		}
		for _, imported := range p.Imports {
			standard := !strings.Contains(strings.Split(imported, "/")[0], ".")
			if !standard && !within(imported, "k8s.io/api") && !within(imported, "k8s.io/apimachinery") {
				t.Errorf("%s imports %s; whoever uses our kinds would get it too", p.ImportPath, imported)
			}
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	for _, p := range packages(t) {
		for _, file := range append(append(append([]string{}, p.GoFiles...), p.TestGoFiles...), p.XTestGoFiles...) {
			content, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(content, []byte("// Code generated")) {
				continue
			}
			if lines := bytes.Count(content, []byte("\n")); lines > maxLines {
				t.Errorf("%s/%s has %d lines, more than %d: split it by topic", strings.TrimPrefix(p.ImportPath, module), file, lines, maxLines)
			}
		}
	}
}

// packages of this module.
func packages(t *testing.T) []goPackage {
	t.Helper()
	// go test's cache knows the files that this process reads, not those that go list reads.
	for _, rooms := range append([][]string{{"test"}}, floors...) {
		for _, room := range rooms {
			err := filepath.WalkDir(filepath.Join("..", "..", filepath.FromSlash(room)), func(path string, _ fs.DirEntry, err error) error {
				if err == nil && strings.HasSuffix(path, ".go") {
					_, err = os.ReadFile(path)
				}
				return err
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	command := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Dir,Imports,GoFiles,TestGoFiles,XTestGoFiles", "./...")
	command.Dir = filepath.Join("..", "..")
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		found = append(found, p)
	}
	if len(found) < 5 {
		t.Fatalf("go list found only %d packages", len(found))
	}
	return found
}

func floorOf(name string) (int, bool) {
	for floor, rooms := range floors {
		if withinAny(name, rooms) {
			return floor, true
		}
	}
	return 0, false
}

func withinAny(name string, rooms []string) bool {
	for _, room := range rooms {
		if within(name, room) {
			return true
		}
	}
	return false
}

// within is whether a package is that one or below it.
func within(name, room string) bool {
	return name == room || strings.HasPrefix(name, room+"/")
}

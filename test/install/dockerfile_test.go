// Package install tests the ways into a cluster other than the Helm chart: the Dockerfiles, what
// `make deploy` applies, and the samples for Flux.
package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// There is no container builder on the machines that run these tests. What can break in these files is
// that a command needs a file that was not copied, so each is carried out as it stands, with the
// copied files in an empty folder and only the last stage's COPY looked for.
func TestDockerfilesBuildWithWhatTheyCopy(t *testing.T) {
	for name, row := range map[string]struct{ file, program, entrypoint string }{
		"the operator": {"Dockerfile", "/manager", `["/manager"]`},
		"k6":           {"loadtests/k6/Dockerfile", "/usr/bin/k6", `["/usr/bin/k6"]`},
		"the probe":    {"loadtests/probe/Dockerfile", "/usr/bin/authstack-probe", `["/usr/bin/authstack-probe"]`},
	} {
		t.Run(name, func(t *testing.T) {
			source, image := t.TempDir(), t.TempDir()
			stage, built, shipped := 0, false, false
			for _, line := range instructions(t, row.file) {
				word, rest, _ := strings.Cut(line, " ")
				switch {
				case word == "FROM":
					stage++
				case word == "COPY" && stage == 1:
					fields := strings.Fields(rest)
					to := fields[len(fields)-1]
					for _, from := range fields[:len(fields)-1] {
						copyInto(t, from, filepath.Join(source, to), strings.HasSuffix(to, "/"))
					}
				case word == "COPY":
					shipped = shipped || rest == "--from=build "+row.program+" "+row.program
				case word == "RUN" && strings.Contains(rest, "go build"):
					// The result goes into a folder of the test in place of the root. Without -trimpath the
					// dependencies are those that every other build has left in Go's cache.
					rest = strings.NewReplacer("-o /", "-o "+image+"/", "-trimpath ", "").Replace(rest)
					command := exec.CommandContext(t.Context(), "bash", "-euc", rest)
					command.Dir = source
					command.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH=")
					if output, err := command.CombinedOutput(); err != nil {
						t.Fatalf("%s\n%v\n%s", rest, err, output)
					}
					built = true
				case word == "ENTRYPOINT" && rest != row.entrypoint:
					t.Errorf("ENTRYPOINT is %s", rest)
				}
			}
			if info, err := os.Stat(filepath.Join(image, row.program)); !built || err != nil || info.Mode()&0o111 == 0 {
				t.Errorf("no program came out: %v", err)
			}
			if !shipped {
				t.Errorf("the image does not copy %s from the build", row.program)
			}
		})
	}
}

// instructions of a Dockerfile, each on one line and without comments.
func instructions(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(content), "")
	text = regexp.MustCompile(`\\\n\s*`).ReplaceAllString(text, "")
	var list []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// copyInto does what COPY does: the content of a folder, or a file under its name.
func copyInto(t *testing.T, from, to string, folder bool) {
	t.Helper()
	source := filepath.Join(root, from)
	info, err := os.Stat(source)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		// Not os.CopyFS, which refuses a file that an earlier COPY has brought.
		if output, err := exec.CommandContext(t.Context(), "cp", "-R", source+"/.", to).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return
	}
	if folder || from == "go.mod" || from == "go.sum" {
		to = filepath.Join(to, filepath.Base(from))
	}
	content, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Package command runs other programs and turns their failures into errors
// that hold what the program said.
package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Option changes how a program is run.
type Option func(*exec.Cmd)

// In sets the folder.
func In(dir string) Option { return func(c *exec.Cmd) { c.Dir = dir } }

// Env adds to the environment.
func Env(vars ...string) Option {
	return func(c *exec.Cmd) { c.Env = append(c.Environ(), vars...) }
}

// Input sets standard input.
func Input(data []byte) Option { return func(c *exec.Cmd) { c.Stdin = bytes.NewReader(data) } }

// Run runs a program and returns its standard output.
func Run(ctx context.Context, argv []string, options ...Option) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	for _, option := range options {
		option(cmd)
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		said := stderr.String()
		if strings.TrimSpace(said) == "" {
			said = stdout.String()
		}
		return stdout.String(), fmt.Errorf("%s: %w\n%s", strings.Join(shorten(argv), " "), err, tail(said, 20))
	}
	return stdout.String(), nil
}

// Do is Run for those who do not care about the output.
func Do(ctx context.Context, argv ...string) error {
	_, err := Run(ctx, argv)
	return err
}

// Exists tells whether a file is there.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// shorten keeps long scripts and flag lists out of error messages.
func shorten(argv []string) []string {
	const most = 8
	out := make([]string, 0, most+1)
	for i, arg := range argv {
		if i == most {
			return append(out, "…")
		}
		if len(arg) > 120 {
			arg = arg[:117] + "…"
		}
		out = append(out, strings.ReplaceAll(arg, "\n", " "))
	}
	return out
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return "  " + strings.Join(all, "\n  ")
}

package ceph

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long one command may wait for Ceph. A pool that has lost too
// many OSDs answers nothing at all, and the caller asks again later.
const patience = 45 * time.Second

// run runs a program; its error holds what the program said.
func run(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s; `devcluster ceph status` tells whether Ceph can answer", patience)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", argv[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// images are those of one Ceph cluster.
type images struct {
	// conf is the path of its ceph.conf.
	conf string
}

func (i images) rbd(ctx context.Context, args ...string) error {
	_, err := run(ctx, append([]string{"rbd", "--conf", i.conf}, args...)...)
	return err
}

// create makes an image of the size in MiB, or leaves the one that is there.
func (i images) create(ctx context.Context, pool, name string, mebibytes int64) error {
	err := i.rbd(ctx, "create", "--image-feature", "layering", "--size", fmt.Sprintf("%dM", mebibytes), pool+"/"+name)
	if exitCode(err) == int(unix.EEXIST) {
		return nil
	}
	return err
}

// remove removes an image, if it is there.
func (i images) remove(ctx context.Context, pool, name string) error {
	err := i.rbd(ctx, "remove", "--no-progress", pool+"/"+name)
	if exitCode(err) == int(unix.ENOENT) {
		return nil
	}
	return err
}

// resize grows an image that nobody has open.
func (i images) resize(ctx context.Context, pool, name string, mebibytes int64) error {
	return i.rbd(ctx, "resize", "--no-progress", "--size", fmt.Sprintf("%dM", mebibytes), pool+"/"+name)
}

// exitCode of a program that ended with an error; rbd exits with the errno.
func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

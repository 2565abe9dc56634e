package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/renameio/v2"

	"authstack.dev/authstack/hack/devcluster/internal/command"
)

// Load makes the images that are stale and brings them into the node. Each
// name is one of the catalog's or the path of an image tarball.
func (b *Builder) Load(ctx context.Context, snapshotter string, names ...string) error {
	if err := b.waitForContainerd(ctx); err != nil {
		return err
	}
	there, err := command.Run(ctx, b.ctr("images", "list", "--quiet"))
	if err != nil {
		return err
	}
	present := strings.Fields(there)
	wanted := map[name.Reference]v1.Image{}
	notes := map[string]string{}
	for _, n := range names {
		if info, err := os.Stat(n); err == nil && info.Mode().IsRegular() {
			if err := b.importFile(ctx, snapshotter, n); err != nil {
				return err
			}
			continue
		}
		image, err := b.Catalog.Find(n)
		if err != nil {
			return err
		}
		built, err := b.Build(ctx, image)
		if err != nil {
			return err
		}
		digest, err := built.Digest()
		if err != nil {
			return err
		}
		for _, n := range image.Names {
			if noted, _ := os.ReadFile(b.noteFile(n)); string(noted) == digest.String() && slices.Contains(present, n) {
				continue
			}
			tag, err := name.NewTag(n)
			if err != nil {
				return err
			}
			wanted[tag] = built
			notes[n] = digest.String()
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	// One archive for all, so that a layer they share travels once.
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(tarball.MultiRefWrite(wanted, writer)) }()
	what := fmt.Sprintf("loading %s", strings.Join(sortedKeys(notes), ", "))
	if err := b.Progress.Step(what, func() error { return b.importFrom(ctx, snapshotter, reader) }); err != nil {
		return err
	}
	return b.note(notes)
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (b *Builder) importFile(ctx context.Context, snapshotter string, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return b.Progress.Step("loading "+path, func() error { return b.importFrom(ctx, snapshotter, file) })
}

func (b *Builder) importFrom(ctx context.Context, snapshotter string, in io.Reader) error {
	_, err := command.Run(ctx, b.ctr("images", "import", "--snapshotter", snapshotter, "-"),
		func(c *exec.Cmd) { c.Stdin = in })
	if closer, ok := in.(*io.PipeReader); ok {
		// If the other side gave up, the writer must not wait for it for ever.
		_ = closer.CloseWithError(errors.New("the import has ended"))
	}
	return err
}

func (b *Builder) ctr(args ...string) []string {
	return append([]string{"ctr", "--address", b.Layout.Socket(), "--namespace", "k8s.io"}, args...)
}

func (b *Builder) waitForContainerd(ctx context.Context) error {
	var err error
	for range 100 {
		if err = command.Do(ctx, b.ctr("version")...); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return fmt.Errorf("containerd does not answer; `devcluster up` starts the cluster, `devcluster status` tells its state: %w", err)
}

// noteFile is where it is noted which build of an image the node has.
func (b *Builder) noteFile(image string) string {
	sum := sha256.Sum256([]byte(image))
	return b.Layout.InState("images", hex.EncodeToString(sum[:8]))
}

func (b *Builder) note(notes map[string]string) error {
	if err := os.MkdirAll(b.Layout.InState("images"), 0o755); err != nil {
		return err
	}
	for image, digest := range notes {
		if err := renameio.WriteFile(b.noteFile(image), []byte(digest), 0o644); err != nil {
			return err
		}
	}
	return nil
}

package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"authstack.dev/authstack/hack/devcluster/internal/command"
	"authstack.dev/authstack/hack/devcluster/internal/filelock"
	"authstack.dev/authstack/hack/devcluster/internal/gobuild"
	"authstack.dev/authstack/hack/devcluster/internal/layout"
	"authstack.dev/authstack/hack/devcluster/internal/ui"
)

// Builder makes the images of a catalog.
type Builder struct {
	Layout   layout.Layout
	Progress *ui.Progress
	Catalog  *Catalog
}

// Build makes an image, or takes what the cache has of it.
func (b *Builder) Build(ctx context.Context, image *Image) (v1.Image, error) {
	var layers []v1.Layer
	fail := func(err error) (v1.Image, error) { return nil, fmt.Errorf("image %s: %w", image.Names[0], err) }
	if image.Debian != nil {
		below, err := b.debianLayers(ctx, image.Debian)
		if err != nil {
			return fail(err)
		}
		layers = below
	}
	if image.Go != nil {
		top, err := b.goLayers(ctx, image)
		if err != nil {
			return fail(err)
		}
		layers = append(layers, top...)
	}
	built, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(built, configFile(image, layers))
}

func configFile(image *Image, layers []v1.Layer) *v1.ConfigFile {
	config := &v1.ConfigFile{
		Architecture: runtime.GOARCH,
		OS:           "linux",
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       image.User,
			Entrypoint: image.Entrypoint,
			Cmd:        image.Cmd,
			WorkingDir: image.WorkDir,
			Labels:     map[string]string{"authstack.dev/built-by": "devcluster"},
		},
	}
	for key, value := range image.Labels {
		config.Config.Labels[key] = value
	}
	env := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for key, value := range image.Env {
		env[key] = value
	}
	for key, value := range env {
		config.Config.Env = append(config.Config.Env, key+"="+value)
	}
	slices.Sort(config.Config.Env)
	for _, l := range layers {
		id, _ := l.DiffID() // ours know it
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, id)
		config.History = append(config.History, v1.History{CreatedBy: "devcluster"})
	}
	return config
}

func (b *Builder) goLayers(ctx context.Context, image *Image) ([]v1.Layer, error) {
	binary, err := b.goBinary(ctx, image)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	t := newTree()
	for _, step := range []func() error{
		// Programs expect a place for temporary files, and their user to have a name.
		func() error { return t.dir("tmp", 0o1777, 0, 0) },
		func() error {
			return t.file("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n"))
		},
		func() error { return t.file(image.Go.Path, 0o755, data) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	l, err := t.layer()
	if err != nil {
		return nil, err
	}
	return []v1.Layer{l}, nil
}

// goBinary builds the executable. Code of this repository is built each time,
// which Go's own cache makes quick when nothing changed.
func (b *Builder) goBinary(ctx context.Context, image *Image) (string, error) {
	module := b.Layout.InSource(image.Go.Module)
	if !command.Exists(filepath.Join(module, "go.mod")) {
		return "", fmt.Errorf("there is no Go module in %s yet", module)
	}
	program := gobuild.Program{Name: filepath.Base(image.Go.Path), Module: module, Package: image.Go.Package}
	if image.Go.Cached {
		return gobuild.Cached(ctx, b.Layout, b.Progress, program)
	}
	// Clones have different code and must not get each other's.
	sum := sha256.Sum256([]byte(module + "\n" + image.Go.Package))
	path := b.Layout.InCache("images", "go", hex.EncodeToString(sum[:6]), program.Name)
	unlock, err := filelock.Wait(ctx, path+".lock", func() {
		b.Progress.Say("another devcluster is building %s: waiting for it", program.Name)
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	return path, b.Progress.Step("building "+image.Names[0], func() error { return program.Build(ctx, path) })
}

func (b *Builder) debianLayers(ctx context.Context, d *Debian) ([]v1.Layer, error) {
	base, facts, err := b.baseLayer(ctx, b.Catalog.base(d.Base))
	if err != nil {
		return nil, err
	}
	t := newTree()
	passwd, group := accounts(facts.Passwd, facts.Group, d.Users)
	if err := t.file("etc/passwd", 0o644, []byte(passwd)); err != nil {
		return nil, err
	}
	if err := t.file("etc/group", 0o644, []byte(group)); err != nil {
		return nil, err
	}
	for _, dir := range d.Directories {
		mode, _ := strconv.ParseInt(dir.Mode, 8, 32) // checked when the catalog was read
		if err := t.dir(dir.Path, mode, dir.UID, dir.GID); err != nil {
			return nil, err
		}
	}
	if d.Overlay != "" {
		if err := t.folder(b.Layout.InSource(d.Overlay)); err != nil {
			return nil, err
		}
	}
	top, err := t.layer()
	if err != nil {
		return nil, err
	}
	return []v1.Layer{base, top}, nil
}

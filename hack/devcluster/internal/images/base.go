package images

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"authstack.dev/authstack/hack/devcluster/internal/command"
	"authstack.dev/authstack/hack/devcluster/internal/filelock"
	"authstack.dev/authstack/hack/devcluster/internal/hostpkg"
)

// bootstrap is how a base is made. Documentation and translations are left out,
// and so is the database cluster that the package would make by itself.
var bootstrap = []string{
	"mmdebstrap", "--quiet", "--variant=minbase",
	`--aptopt=APT::Install-Recommends "false"`,
	"--dpkgopt=path-exclude=/usr/share/doc/*",
	"--dpkgopt=path-exclude=/usr/share/man/*",
	"--dpkgopt=path-exclude=/usr/share/locale/*",
	`--essential-hook=mkdir -p "$1/etc/postgresql-common"; echo "create_main_cluster = false" >"$1/etc/postgresql-common/createcluster.conf"`,
	`--customize-hook=rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/var/log/*.log`,
}

// baseFacts are kept beside a base, so that nobody has to read it again.
type baseFacts struct {
	SHA256 string `json:"sha256"`
	Passwd string `json:"passwd"`
	Group  string `json:"group"`
}

// baseLayer returns a base from the cache and makes it first if need be.
func (b *Builder) baseLayer(ctx context.Context, base *Base) (*layer, baseFacts, error) {
	fail := func(err error) (*layer, baseFacts, error) {
		return nil, baseFacts{}, fmt.Errorf("base %s: %w", base.Name, err)
	}
	recipe, err := json.Marshal([]any{base.Suite, base.Packages, bootstrap, runtime.GOARCH})
	if err != nil {
		return fail(err)
	}
	sum := sha256.Sum256(recipe)
	file := b.Layout.InCache("images", base.Name+"-"+hex.EncodeToString(sum[:6])+".tar")
	if !command.Exists(file + ".json") {
		unlock, err := filelock.Wait(ctx, b.Layout.InCache("locks", "base-"+base.Name+".lock"), func() {
			b.Progress.Say("another devcluster is making the base %s: waiting for it", base.Name)
		})
		if err != nil {
			return fail(err)
		}
		defer unlock()
	}
	if !command.Exists(file + ".json") {
		if err := b.makeBase(ctx, base, file); err != nil {
			return fail(err)
		}
	}
	data, err := os.ReadFile(file + ".json")
	if err != nil {
		return fail(err)
	}
	var facts baseFacts
	if err := json.Unmarshal(data, &facts); err != nil {
		return fail(fmt.Errorf("%s.json is damaged, remove it: %w", file, err))
	}
	l, err := fileLayer(file, facts.SHA256)
	if err != nil {
		return fail(err)
	}
	return l, facts, nil
}

func (b *Builder) makeBase(ctx context.Context, base *Base, file string) error {
	if err := b.Progress.Step("installing Debian packages for images", func() error {
		return hostpkg.Install(ctx, hostpkg.Images)
	}); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	part := file + ".part"
	argv := slices.Concat(bootstrap, []string{"--format=tar", "--include=" + strings.Join(base.Packages, ","), base.Suite, part})
	err := b.Progress.Step(fmt.Sprintf("making the Debian base %s (once per machine, about a minute)", base.Name), func() error {
		return command.Do(ctx, argv...)
	})
	if err != nil {
		return err
	}
	facts, err := readBase(part)
	if err != nil {
		return err
	}
	if err := os.Rename(part, file); err != nil {
		return err
	}
	data, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	// Last, because it is what says that all is there.
	return renameio.WriteFile(file+".json", data, 0o644)
}

// readBase learns the facts in one pass.
func readBase(file string) (baseFacts, error) {
	in, err := os.Open(file)
	if err != nil {
		return baseFacts{}, err
	}
	defer in.Close()
	hash := sha256.New()
	tee := io.TeeReader(in, hash)
	archive := tar.NewReader(tee)
	var facts baseFacts
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return baseFacts{}, err
		}
		into := map[string]*string{"etc/passwd": &facts.Passwd, "etc/group": &facts.Group}[path.Clean(header.Name)]
		if into != nil {
			data, err := io.ReadAll(archive)
			if err != nil {
				return baseFacts{}, err
			}
			*into = string(data)
		}
	}
	// The reader of archives stops before the padding at the end.
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return baseFacts{}, err
	}
	facts.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return facts, nil
}

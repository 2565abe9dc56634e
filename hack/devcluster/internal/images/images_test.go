package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const catalogText = `
bases: [{name: trixie, suite: trixie, packages: [redis-server]}]
images:
- names: ["example.org/a/tool:1", "example.org/a/tool:2"]
  go: {module: ., path: /tool}
- names: ["docker.io/library/redis:8"]
  debian: {base: trixie, directories: [{path: /data, uid: 9, gid: 9, mode: "1777"}]}
`

func TestTheCatalogOfThisRepositoryIsSound(t *testing.T) {
	catalog, err := ReadCatalog("../../images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"registry.k8s.io/pause:3.10", "ghcr.io/zalando/spilo-17:4.0-p3", "docker.io/library/postgres:17", "redis", "coredns", "authstack.dev/operator:dev"} {
		if _, err := catalog.Find(name); err != nil {
			t.Error(err)
		}
	}
	for _, image := range catalog.Images {
		if d := image.Debian; d != nil && d.Overlay != "" {
			if _, err := os.Stat(filepath.Join("../..", d.Overlay)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestMistakesInACatalogAreSaid(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a field that does not exist": {"images: [{nmaes: [a]}]", "nmaes"},
		"no name":                     {"images: [{go: {module: ., path: /x}}]", "no names"},
		"a name without a tag":        {"images: [{names: [example.org/a/b], go: {module: ., path: /x}}]", "example.org/a/b"},
		"neither kind":                {`images: [{names: ["example.org/a/b:1"]}]`, "go, debian or both"},
		"no such base":                {`images: [{names: ["example.org/a/b:1"], debian: {base: x}}]`, `no base "x"`},
		"a mode that is none":         {`{bases: [{name: x}], images: [{names: ["example.org/a/b:1"], debian: {base: x, directories: [{path: /d, mode: "8"}]}}]}`, "octal"},
		"a relative executable":       {`images: [{names: ["example.org/a/b:1"], go: {module: ., path: x}}]`, "absolute"},
		"one name twice":              {`images: [{names: ["example.org/a/b:1", "example.org/a/b:1"], go: {module: ., path: /x}}]`, "two images"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseCatalog([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want something about %q", err, test.want)
			}
		})
	}
}

func TestImagesAreFoundByAsMuchOfANameAsIsClear(t *testing.T) {
	catalog, err := ParseCatalog([]byte(catalogText))
	if err != nil {
		t.Fatal(err)
	}
	for wanted, want := range map[string]string{
		"redis": "docker.io/library/redis:8", "redis:8": "docker.io/library/redis:8",
		"docker.io/library/redis": "docker.io/library/redis:8",
		"tool":                    "example.org/a/tool:1", "example.org/a/tool:2": "example.org/a/tool:1",
	} {
		image, err := catalog.Find(wanted)
		if err != nil {
			t.Error(err)
		} else if image.Names[0] != want {
			t.Errorf("%s: got %s, want %s", wanted, image.Names[0], want)
		}
	}
	if _, err := catalog.Find("postgres"); err == nil || !strings.Contains(err.Error(), "example.org/a/tool:1") {
		t.Errorf("the error does not list what there is: %v", err)
	}
}

func TestAccountsAreReplacedOrAdded(t *testing.T) {
	passwd, group := accounts(
		"root:x:0:0:root:/root:/bin/bash\npostgres:x:101:103::/var/lib/postgresql:/bin/bash\npostgresql:x:7:7::/:/bin/sh",
		"root:x:0:\npostgres:x:103:\n",
		[]User{{Name: "postgres", UID: 999, GID: 998, Home: "/home/postgres"}})
	want := "root:x:0:0:root:/root:/bin/bash\npostgresql:x:7:7::/:/bin/sh\npostgres:x:999:998::/home/postgres:/bin/sh\n"
	if passwd != want {
		t.Errorf("passwd %q, want %q", passwd, want)
	}
	if want := "root:x:0:\npostgres:x:998:\n"; group != want {
		t.Errorf("group %q, want %q", group, want)
	}
}

func TestTheSameFilesGiveTheSameLayer(t *testing.T) {
	build := func() *layer {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "usr/bin"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "usr/bin/x"), []byte("x"), 0o711); err != nil {
			t.Fatal(err)
		}
		tr := newTree()
		if err := errors.Join(tr.dir("/data", 0o1777, 9, 9), tr.folder(dir)); err != nil {
			t.Fatal(err)
		}
		l, err := tr.layer()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first, second := build(), build()
	if first.hash != second.hash {
		t.Error("two builds differ")
	}
	in, _ := first.Uncompressed()
	archive := tar.NewReader(in)
	got := map[string]int64{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = header.Mode
	}
	if got["data/"] != 0o1777 || got["usr/bin/x"] != 0o755 {
		t.Errorf("modes: %v", got)
	}
}

func TestConfigOfAnImage(t *testing.T) {
	catalog, err := ParseCatalog([]byte(catalogText))
	if err != nil {
		t.Fatal(err)
	}
	l := memoryLayer([]byte("layer"))
	config := configFile(&catalog.Images[0], []v1.Layer{l})
	if got := config.Config.Entrypoint; len(got) != 1 || got[0] != "/tool" {
		t.Errorf("entrypoint %v", got)
	}
	if config.Config.Labels["authstack.dev/built-by"] != "devcluster" {
		t.Error("the image does not say who built it")
	}
	if config.RootFS.DiffIDs[0] != l.hash {
		t.Error("the layer is not listed")
	}
}

func TestBaseIsReadInOnePass(t *testing.T) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for name, text := range map[string]string{"./etc/passwd": "p", "./etc/group": "g", "./etc/motd": "m"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: 1, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "base.tar")
	if err := os.WriteFile(file, buffer.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	facts, err := readBase(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := memoryLayer(buffer.Bytes()).hash.Hex; facts.SHA256 != want || facts.Passwd != "p" || facts.Group != "g" {
		t.Errorf("got %+v, want the hash %s", facts, want)
	}
}

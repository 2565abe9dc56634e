// Package images makes container images out of Go modules and Debian packages,
// and brings them into a node, without Docker and without a registry.
package images

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/yaml"
)

// Catalog is images.yaml.
type Catalog struct {
	Bases  []Base  `json:"bases"`
	Images []Image `json:"images"`
}

// Base is a Debian root file system that images share.
type Base struct {
	Name     string   `json:"name"`
	Suite    string   `json:"suite"`
	Packages []string `json:"packages"`
}

// Image says what an image is made of: Go, Debian, or an executable of Go on top of Debian.
type Image struct {
	// Names are references with a tag; the first one is the image's own.
	Names  []string `json:"names"`
	Go     *Go      `json:"go,omitempty"`
	Debian *Debian  `json:"debian,omitempty"`

	User       string            `json:"user,omitempty"`
	Entrypoint []string          `json:"entrypoint,omitempty"`
	Cmd        []string          `json:"cmd,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	WorkDir    string            `json:"workdir,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// Go is one static executable.
type Go struct {
	// Module is a folder relative to the catalog.
	Module  string `json:"module"`
	Package string `json:"package,omitempty"`
	// Path of the executable in the image; the entrypoint unless told otherwise.
	Path string `json:"path"`
	// Cached modules consist of released dependencies alone.
	Cached bool `json:"cached,omitempty"`
}

// Debian is a base with a few files on top.
type Debian struct {
	Base string `json:"base"`
	// Overlay is a folder relative to the catalog whose files are laid over the base.
	Overlay     string      `json:"overlay,omitempty"`
	Users       []User      `json:"users,omitempty"`
	Directories []Directory `json:"directories,omitempty"`
}

// User replaces the account of that name, and its group, or is added.
type User struct {
	Name string `json:"name"`
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
	Home string `json:"home"`
}

// Directory is made, or given to somebody else.
type Directory struct {
	Path string `json:"path"`
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
	// Mode is octal.
	Mode string `json:"mode"`
}

// ReadCatalog reads and checks images.yaml.
func ReadCatalog(file string) (*Catalog, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	catalog, err := ParseCatalog(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return catalog, nil
}

// ParseCatalog reads and checks a catalog.
func ParseCatalog(data []byte) (*Catalog, error) {
	var catalog Catalog
	if err := yaml.UnmarshalStrict(data, &catalog); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i := range catalog.Images {
		image := &catalog.Images[i]
		if err := catalog.check(image); err != nil {
			return nil, fmt.Errorf("image %d (%s): %w", i+1, strings.Join(image.Names, ", "), err)
		}
		for _, n := range image.Names {
			if seen[n] {
				return nil, fmt.Errorf("two images have the name %s", n)
			}
			seen[n] = true
		}
	}
	return &catalog, nil
}

func (c *Catalog) check(image *Image) error {
	if len(image.Names) == 0 {
		return fmt.Errorf("it has no names")
	}
	for _, n := range image.Names {
		if _, err := name.NewTag(n, name.StrictValidation); err != nil {
			return fmt.Errorf("name %q: %w", n, err)
		}
	}
	if image.Go == nil && image.Debian == nil {
		return fmt.Errorf("it must have go, debian or both")
	}
	if g := image.Go; g != nil {
		if g.Module == "" || !path.IsAbs(g.Path) {
			return fmt.Errorf("go needs a module, and an absolute path for the executable")
		}
		if len(image.Entrypoint) == 0 {
			image.Entrypoint = []string{g.Path}
		}
	}
	if d := image.Debian; d != nil {
		if c.base(d.Base) == nil {
			return fmt.Errorf("there is no base %q", d.Base)
		}
		for _, dir := range d.Directories {
			if _, err := strconv.ParseInt(dir.Mode, 8, 32); err != nil || !path.IsAbs(dir.Path) {
				return fmt.Errorf("directory %q: it needs an absolute path and an octal mode", dir.Path)
			}
		}
	}
	return nil
}

func (c *Catalog) base(name string) *Base {
	for i := range c.Bases {
		if c.Bases[i].Name == name {
			return &c.Bases[i]
		}
	}
	return nil
}

// Find returns the image of that name. A name without a tag, or the last part
// of one, will do as long as it means one image.
func (c *Catalog) Find(wanted string) (*Image, error) {
	var found []*Image
	for i := range c.Images {
		image := &c.Images[i]
		for _, n := range image.Names {
			if n == wanted {
				return image, nil
			}
			repository, _, _ := strings.Cut(path.Base(n), ":")
			if path.Base(n) == wanted || repository == wanted || strings.TrimSuffix(n, n[strings.LastIndex(n, ":"):]) == wanted {
				if !slices.Contains(found, image) {
					found = append(found, image)
				}
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, fmt.Errorf("no image is called %s; those that can be made are:\n  %s\nan image from elsewhere is loaded by the path of its tarball", wanted, strings.Join(c.Names(), "\n  "))
	}
	return nil, fmt.Errorf("%s could be %s or %s: say which", wanted, found[0].Names[0], found[1].Names[0])
}

// Names lists all names.
func (c *Catalog) Names() []string {
	var names []string
	for _, image := range c.Images {
		names = append(names, image.Names...)
	}
	return names
}

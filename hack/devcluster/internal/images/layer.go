package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer is a tar that is never compressed: it travels a few centimetres, and
// compressing half a gigabyte takes longer than everything else together.
type layer struct {
	hash v1.Hash
	size int64
	open func() (io.ReadCloser, error)
}

func (l *layer) Digest() (v1.Hash, error)             { return l.hash, nil }
func (l *layer) DiffID() (v1.Hash, error)             { return l.hash, nil }
func (l *layer) Compressed() (io.ReadCloser, error)   { return l.open() }
func (l *layer) Uncompressed() (io.ReadCloser, error) { return l.open() }
func (l *layer) Size() (int64, error)                 { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error)  { return types.DockerUncompressedLayer, nil }

func memoryLayer(data []byte) *layer {
	sum := sha256.Sum256(data)
	return &layer{
		hash: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])},
		size: int64(len(data)),
		open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

// fileLayer is a layer whose hash is known already.
func fileLayer(path, hexHash string) (*layer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return &layer{
		hash: v1.Hash{Algorithm: "sha256", Hex: hexHash},
		size: info.Size(),
		open: func() (io.ReadCloser, error) { return os.Open(path) },
	}, nil
}

// tree collects files for a layer. The same files give the same bytes: times
// and owners come from here and not from the disk.
type tree struct {
	buffer bytes.Buffer
	writer *tar.Writer
}

func newTree() *tree {
	t := &tree{}
	t.writer = tar.NewWriter(&t.buffer)
	return t
}

func (t *tree) dir(path string, mode int64, uid, gid int) error {
	return t.writer.WriteHeader(&tar.Header{
		Typeflag: tar.TypeDir, Name: strings.TrimPrefix(path, "/") + "/", Mode: mode, Uid: uid, Gid: gid, ModTime: time.Unix(0, 0),
	})
}

func (t *tree) file(path string, mode int64, data []byte) error {
	err := t.writer.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: strings.TrimPrefix(path, "/"), Mode: mode, Size: int64(len(data)), ModTime: time.Unix(0, 0),
	})
	if err == nil {
		_, err = t.writer.Write(data)
	}
	return err
}

// folder adds the files of a folder on the disk, all owned by root.
func (t *tree) folder(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return t.file(name, mode, data)
	})
}

func (t *tree) layer() (*layer, error) {
	if err := t.writer.Close(); err != nil {
		return nil, err
	}
	return memoryLayer(t.buffer.Bytes()), nil
}

// accounts rewrites passwd and group so that the users exist with these ids.
func accounts(passwd, group string, users []User) (newPasswd, newGroup string) {
	for _, u := range users {
		uid, gid := strconv.Itoa(u.UID), strconv.Itoa(u.GID)
		passwd = replaceLine(passwd, u.Name, strings.Join([]string{u.Name, "x", uid, gid, "", u.Home, "/bin/sh"}, ":"))
		group = replaceLine(group, u.Name, strings.Join([]string{u.Name, "x", gid, ""}, ":"))
	}
	return passwd, group
}

func replaceLine(text, name, line string) string {
	var out strings.Builder
	for old := range strings.Lines(text) {
		if !strings.HasPrefix(old, name+":") {
			out.WriteString(strings.TrimSuffix(old, "\n") + "\n")
		}
	}
	return out.String() + line + "\n"
}

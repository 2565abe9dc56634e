package ceph

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// daemon attaches images: a qemu-storage-daemon for each, which shows the image
// as a file by FUSE. One for each, and none of them a child of this process that
// ends with it: what runs on a volume is to outlive the provisioner.
type daemon struct {
	images images
	// dir has a folder for each attached image.
	dir string
	// run is for sockets, whose paths have to be short.
	run string
}

// nodeName is what the image is called inside its daemon.
const nodeName = "image"

func (d daemon) file(handle string) string    { return filepath.Join(d.dir, handle, "image") }
func (d daemon) pidFile(handle string) string { return filepath.Join(d.dir, handle, "pid") }

func (d daemon) socket(handle string) string {
	sum := sha256.Sum256([]byte(handle))
	return filepath.Join(d.run, hex.EncodeToString(sum[:6])+".qmp")
}

// attach returns the file that is the image, which it makes unless it is there.
func (d daemon) attach(ctx context.Context, pool, image, handle string) (string, error) {
	file := d.file(handle)
	if d.alive(handle) {
		return file, nil
	}
	if err := d.detach(handle); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return "", err
	}
	_, err := run(ctx, "qemu-storage-daemon", "--daemonize", "--pidfile", d.pidFile(handle),
		// No cache of librbd's own, as in the kernel's driver.
		"--blockdev", fmt.Sprintf("driver=rbd,node-name=%s,pool=%s,image=%s,conf=%s,cache.direct=on,discard=unmap", nodeName, pool, image, d.images.conf),
		"--export", fmt.Sprintf("type=fuse,id=file,node-name=%s,mountpoint=%s,writable=on", nodeName, file),
		"--chardev", fmt.Sprintf("socket,id=control,path=%s,server=on,wait=off", d.socket(handle)),
		"--monitor", "chardev=control")
	return file, err
}

// alive tells whether the image is attached and its file answers.
func (d daemon) alive(handle string) bool {
	_, running := d.process(handle)
	info, err := os.Stat(d.file(handle))
	return running && err == nil && info.Size() > 0
}

// process of the daemon that has the image. A number in a file may be somebody
// else's by now, so the command line decides.
func (d daemon) process(handle string) (int, bool) {
	data, err := os.ReadFile(d.pidFile(handle))
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return pid, err == nil && strings.Contains(string(line), d.pidFile(handle))
}

// detach ends the daemon, which writes out and closes the image, and removes what
// it left. It fails if somebody still uses the file.
func (d daemon) detach(handle string) error {
	file := d.file(handle)
	// The loop device lets go of the file a moment after it is unmounted.
	gone := within(5*time.Second, func() bool {
		_, err := loopOf(file)
		return errors.Is(err, fs.ErrNotExist)
	})
	_, running := d.process(handle)
	if !gone && running {
		return fmt.Errorf("%s is still used by a loop device", file)
	}
	if pid, running := d.process(handle); running {
		_ = unix.Kill(pid, unix.SIGTERM)
	}
	if !within(20*time.Second, func() bool { _, running := d.process(handle); return !running }) {
		return errors.New("qemu-storage-daemon does not end; most likely it waits for Ceph, see `devcluster ceph status`")
	}
	// One that was killed leaves its mount.
	_ = unix.Unmount(file, unix.MNT_DETACH)
	_ = os.Remove(d.socket(handle))
	return os.RemoveAll(filepath.Dir(file))
}

// resize tells the daemon that its image is larger now; it would not look itself.
func (d daemon) resize(ctx context.Context, handle string, bytes int64) error {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", d.socket(handle))
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	to, from := json.NewEncoder(conn), json.NewDecoder(conn)
	for _, command := range []map[string]any{
		{"execute": "qmp_capabilities"},
		{"execute": "block_resize", "arguments": map[string]any{"node-name": nodeName, "size": bytes}},
	} {
		if err := to.Encode(command); err != nil {
			return err
		}
		for {
			var answer struct {
				Return *json.RawMessage `json:"return"`
				Error  *struct {
					Desc string `json:"desc"`
				} `json:"error"`
			}
			if err := from.Decode(&answer); err != nil {
				return err
			}
			if answer.Error != nil {
				return errors.New("qemu-storage-daemon: " + answer.Error.Desc)
			}
			if answer.Return != nil {
				break // anything else is a greeting or an event
			}
		}
	}
	return nil
}

// within asks until the answer is yes, and returns the last one.
func within(timeout time.Duration, ask func() bool) bool {
	deadline := time.Now().Add(timeout)
	for !ask() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

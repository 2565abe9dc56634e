package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"authstack.dev/authstack/internal/probe"
)

// inspect what the kernel says of the volume of a directory.
func inspect(directory string) probe.Volume {
	var volume probe.Volume
	var stat syscall.Stat_t
	if err := syscall.Stat(directory, &stat); err != nil {
		return volume
	}
	major, minor := device(stat.Dev)
	if mounts, err := os.Open("/proc/self/mountinfo"); err == nil {
		volume.FileSystem = fileSystem(mounts, major, minor)
		_ = mounts.Close()
	}
	block, err := filepath.EvalSymlinks(fmt.Sprintf("/sys/dev/block/%d:%d", major, minor))
	if err != nil {
		return volume // No block device: tmpfs, a network file system, overlay.
	}
	volume.Device = filepath.Base(block)
	if _, err := os.Stat(filepath.Join(block, "partition")); err == nil {
		block = filepath.Dir(block)
	}
	volume.WriteCache = word(filepath.Join(block, "queue", "write_cache"))
	volume.Rotational = word(filepath.Join(block, "queue", "rotational"))
	return volume
}

// device splits st_dev as the kernel does (glibc gnu_dev_major and gnu_dev_minor).
func device(dev uint64) (major, minor uint64) {
	return dev >> 8 & 0xfff, dev&0xff | dev>>12&0xfff00
}

// fileSystem of a device in /proc/self/mountinfo (proc(5)): the third field is the device, and after a
// single dash comes the type.
func fileSystem(mounts io.Reader, major, minor uint64) string {
	wanted := fmt.Sprintf("%d:%d", major, minor)
	lines := bufio.NewScanner(mounts)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 || fields[2] != wanted {
			continue
		}
		for i, field := range fields[:len(fields)-1] {
			if i > 5 && field == "-" {
				return fields[i+1]
			}
		}
	}
	return ""
}

func word(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

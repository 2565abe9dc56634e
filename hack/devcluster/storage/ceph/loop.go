package ceph

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// loopDevice makes a block device of a file. It goes away by itself when its last
// user closes it, be that the mount or, if it never came to one, this process:
// the caller closes the returned file once the device is mounted.
func loopDevice(path string) (*os.File, error) {
	backing, err := os.OpenFile(path, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	config := unix.LoopConfig{Fd: uint32(backing.Fd())}
	// Past the page cache, as an image that the kernel itself maps is: a second
	// cache would answer reads that Ceph should.
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO
	copy(config.Info.File_name[:], path)
	// Another process can take the device that was free a moment ago.
	for range 50 {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("no free loop device: %w", err)
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		if err == nil {
			countWrites(n)
			return device, nil
		}
		device.Close()
		if err != unix.EBUSY {
			return nil, fmt.Errorf("making a loop device of %s: %w", path, err)
		}
	}
	return nil, fmt.Errorf("every free loop device was taken by somebody else")
}

// countWrites has version 1 of cgroups count writes to a loop device, for the kubelet: it begins once a limit was written, be
// it 0, which is none. Version 2 counts by itself and has no such file.
func countWrites(loop int) {
	limit, err := os.OpenFile("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device", os.O_WRONLY, 0)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(limit, "7:%d 0", loop)
	_ = limit.Close()
}

// grow makes the loop device as large as its file has become.
func grow(device string) error {
	file, err := os.OpenFile(device, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.IoctlSetInt(int(file.Fd()), unix.LOOP_SET_CAPACITY, 0)
}

// loopOf finds the loop device of a file.
func loopOf(path string) (string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(data)) == path {
			return "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(file))), nil
		}
	}
	return "", fmt.Errorf("no loop device has %s: %w", path, os.ErrNotExist)
}

package ceph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// format makes a file system, with ceph-csi's options, on a device that has none.
func format(ctx context.Context, device string) error {
	found, err := run(ctx, "blkid", "-p", "-s", "TYPE", "-o", "value", device)
	const nothing = 2 // says blkid(8)
	if found == "ext4" || err != nil && exitCode(err) != nothing {
		return err
	}
	if found != "" {
		return fmt.Errorf("there is a file system %s on the image, not ext4", found)
	}
	_, err = run(ctx, "mkfs.ext4", "-q", "-m0", "-Enodiscard,lazy_itable_init=1,lazy_journal_init=1", device)
	return err
}

// fill makes the file system on a device that is not mounted as large as it is.
func fill(ctx context.Context, device string) error {
	file, err := os.Open(device)
	if err != nil {
		return err
	}
	size, err := file.Seek(0, io.SeekEnd)
	file.Close()
	if err != nil {
		return err
	}
	if filled, err := full(ctx, device, size); filled || err != nil {
		return err
	}
	// resize2fs insists on a check. Exit code 1 says that something was put right.
	if _, err := run(ctx, "e2fsck", "-f", "-p", device); err != nil && exitCode(err) != 1 {
		return err
	}
	_, err = run(ctx, "resize2fs", device)
	return err
}

// full tells whether the file system has the given size, which it rounds down to
// whole groups of blocks.
func full(ctx context.Context, device string, size int64) (bool, error) {
	out, err := run(ctx, "dumpe2fs", "-h", device)
	if err != nil {
		return false, err
	}
	bytes, err := fileSystemSize(out)
	const rounding = 8 * mebibyte
	return bytes > size-rounding, err
}

// fileSystemSize reads what dumpe2fs says.
func fileSystemSize(header string) (int64, error) {
	product := int64(1)
	for _, name := range []string{"Block count:", "Block size:"} {
		_, rest, found := strings.Cut(header, "\n"+name)
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if !found || err != nil {
			return 0, errors.New("dumpe2fs names no " + strings.ToLower(strings.TrimSuffix(name, ":")))
		}
		product *= n
	}
	return product, nil
}

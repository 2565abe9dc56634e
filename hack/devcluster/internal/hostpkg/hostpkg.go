// Package hostpkg installs the Debian packages that the node is made of,
// without starting the services that some of them bring.
package hostpkg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"authstack.dev/authstack/hack/devcluster/internal/command"
)

// Node is what a running node needs.
var Node = []string{
	"containerd", "runc", "containernetworking-plugins",
	"iptables", "conntrack", "iproute2", "util-linux", "mount",
}

// Ceph is what a Ceph and the attaching of its images need: Debian 12 has Ceph
// 16.2.15. qemu's packages are for qemu-storage-daemon and its rbd driver.
var Ceph = []string{
	"ceph-mon", "ceph-mgr", "ceph-osd", "ceph-common",
	"qemu-system-common", "qemu-block-extra", "e2fsprogs",
}

// Images is what building images out of Debian packages needs.
var Images = []string{"mmdebstrap", "debian-archive-keyring"}

const policyFile = "/usr/sbin/policy-rc.d"

// Missing tells which of the packages are not installed.
func Missing(packages []string) []string {
	var missing []string
	for _, name := range packages {
		out, err := exec.Command("dpkg-query", "-W", "-f", "${db:Status-Status}", name).Output()
		if err != nil || string(out) != "installed" {
			missing = append(missing, name)
		}
	}
	return missing
}

// Install installs the packages that are not there.
func Install(ctx context.Context, packages []string) error {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		return errors.New("this machine has no dpkg: devcluster works on Debian and Ubuntu")
	}
	missing := Missing(packages)
	if len(missing) == 0 {
		return nil
	}
	if os.Getuid() != 0 {
		return fmt.Errorf("these Debian packages are missing: %[1]s\nrun as root, or install them first: apt-get install --no-install-recommends %[1]s", strings.Join(missing, " "))
	}
	restore, err := forbidServices()
	if err != nil {
		return err
	}
	defer restore()

	install := append([]string{"apt-get", "-o", "DPkg::Lock::Timeout=600", "install", "-y", "-qq", "--no-install-recommends"}, missing...)
	quiet := command.Env("DEBIAN_FRONTEND=noninteractive")
	// The lists of packages may be old or not there at all; asking for new ones
	// takes seconds, so it is done only when it proves necessary.
	if _, err := command.Run(ctx, install, quiet); err != nil {
		if _, err := command.Run(ctx, []string{"apt-get", "update", "-qq"}, quiet); err != nil {
			return err
		}
		if _, err := command.Run(ctx, install, quiet); err != nil {
			return err
		}
	}
	return disableServices(ctx, missing)
}

// forbidServices makes package scripts start nothing, the way Debian has for
// it: see invoke-rc.d(8).
func forbidServices() (restore func(), err error) {
	if command.Exists(policyFile) {
		return func() {}, nil
	}
	if err := os.WriteFile(policyFile, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(policyFile) }, nil
}

// disableServices keeps a service that was just installed from starting at the
// next boot. Services that were there before are somebody else's.
func disableServices(ctx context.Context, installed []string) error {
	if !command.Exists("/run/systemd/system") {
		return nil
	}
	units := map[string][]string{
		"containerd":  {"containerd.service"},
		"ceph-common": {"ceph.target", "ceph-crash.service", "rbdmap.service"},
	}
	for _, name := range installed {
		for _, unit := range units[name] {
			if err := command.Do(ctx, "systemctl", "disable", "--quiet", unit); err != nil {
				return err
			}
		}
	}
	return nil
}

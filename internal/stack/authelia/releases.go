// Package authelia plans Authelia: its configuration, users, access control and Pods.
package authelia

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// release is what differs between Authelia's minor releases (facts/authelia.md 1).
type release struct {
	name string
	// passwordChange is whether the key authentication_backend.password_change exists: 4.39 lets people
	// change their password in the portal, which would write the read-only users file.
	passwordChange bool
}

// releases in the order of upgrades.
var releases = []release{
	{name: "4.38"},
	{name: "4.39", passwordChange: true},
}

// knowsItsCPUs is the first tag built with Go 1.25 rules, where GOMAXPROCS follows the container's CPU
// limit (facts/authelia.md 1.9).
const knowsItsCPUs = 16 // 4.39.16

func find(version string) (release, int, error) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) == 3 {
		if i := slices.IndexFunc(releases, func(r release) bool { return r.name == parts[0]+"."+parts[1] }); i >= 0 {
			return releases[i], i, nil
		}
	}
	return release{}, -1, fmt.Errorf("Authelia %s is not known; known are the releases 4.38 and 4.39", version)
}

// needsGOMAXPROCS is whether a tag has to be told how many CPUs it may use.
func needsGOMAXPROCS(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 || parts[0]+"."+parts[1] != "4.39" {
		return true
	}
	patch, err := strconv.Atoi(parts[2])
	return err != nil || patch < knowsItsCPUs
}

// upgradePath says why a version cannot follow the one that runs, or returns "".
func upgradePath(running, wanted string) string {
	_, from, errFrom := find(running)
	_, to, errTo := find(wanted)
	if running == "" || errFrom != nil || errTo != nil || to >= from {
		return ""
	}
	return fmt.Sprintf("Authelia %s cannot follow %s: its storage migrations only go forward; restore a backup into a new AuthStack", wanted, running)
}

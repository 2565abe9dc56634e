package node

import (
	"slices"
	"testing"
)

const mountinfo = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw
31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
40 22 254:0 /s/ns /state/ns rw - ext4 /dev/vda rw
41 40 0:4 net:[1] /state/ns/net rw - nsfs nsfs rw
42 22 0:9 / /state/a\040b rw - tmpfs tmpfs rw
43 22 0:9 / /state2/x rw - tmpfs tmpfs rw
`

func TestHierarchiesOfBothVersionsAreFound(t *testing.T) {
	want := []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"}
	if got := parseHierarchies(mountinfo); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	v2 := "30 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
	if got := parseHierarchies(v2); !slices.Equal(got, []string{"/sys/fs/cgroup"}) {
		t.Errorf("version 2 alone: %v", got)
	}
}

func TestOnlyMountsOfTheStateFolderAreFound(t *testing.T) {
	want := []string{"/state/ns", "/state/ns/net", "/state/a b"}
	if got := mountsBelow(mountinfo, "/state"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

package node

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"authstack.dev/authstack/hack/devcluster/internal/layout"
)

// kubeletSysctls are set by the kubelet for the whole machine, in any namespace.
var kubeletSysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom",
	"kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

func sysctlFile(l layout.Layout) string { return l.InState("sysctls.json") }

// saveSysctls notes what they are before the kubelet is started.
func saveSysctls(l layout.Layout) error {
	values := map[string]string{}
	for _, name := range kubeletSysctls {
		if data, err := os.ReadFile(filepath.Join("/proc/sys", name)); err == nil {
			values[name] = strings.TrimSpace(string(data))
		}
	}
	data, err := json.Marshal(values)
	if err != nil {
		return err
	}
	return os.WriteFile(sysctlFile(l), data, 0o644)
}

func restoreSysctls(l layout.Layout) error {
	data, err := os.ReadFile(sysctlFile(l))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	values := map[string]string{}
	if json.Unmarshal(data, &values) != nil {
		return nil // half written by something that was killed: the kubelet had not started yet
	}
	for _, name := range kubeletSysctls {
		value, known := values[name]
		path := filepath.Join("/proc/sys", name)
		now, err := os.ReadFile(path)
		if known && err == nil && strings.TrimSpace(string(now)) != value {
			if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

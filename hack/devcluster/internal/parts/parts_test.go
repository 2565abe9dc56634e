package parts

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"authstack.dev/authstack/hack/devcluster/internal/layout"
	"authstack.dev/authstack/hack/devcluster/internal/network"
)

func setup(t *testing.T) Setup {
	t.Helper()
	plan, err := network.Choose(nil)
	if err != nil {
		t.Fatal(err)
	}
	return Setup{
		Layout:  layout.Layout{State: "/var/lib/x/y"},
		Network: plan, Kubernetes: "/k", Storage: "/s", Snapshotter: "overlayfs", PauseImage: "pause:1",
		CephFSID: "f",
	}
}

func TestConfigurationIsWellFormed(t *testing.T) {
	for name, text := range setup(t).Files() {
		if strings.Contains(text, "%!") {
			t.Errorf("%s: a value is missing:\n%s", name, text)
		}
		var into map[string]any
		switch {
		case strings.HasSuffix(name, ".yaml"):
			if err := yaml.UnmarshalStrict([]byte(text), &into); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case strings.HasSuffix(name, ".conflist"):
			if err := json.Unmarshal([]byte(text), &into); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestEachFlagIsGivenOnce(t *testing.T) {
	for _, part := range setup(t).All() {
		seen := map[string]bool{}
		for _, arg := range part.Argv {
			name, _, _ := strings.Cut(arg, "=")
			if strings.HasPrefix(name, "--") && seen[name] {
				t.Errorf("%s: %s is given twice", part.Name, name)
			}
			seen[name] = true
		}
	}
}

// Files of the cluster must all lie in its state folder: that is what down removes.
func TestPartsWriteIntoTheStateFolderOnly(t *testing.T) {
	for _, part := range setup(t).All() {
		for _, arg := range part.Argv[1:] {
			_, value, _ := strings.Cut(arg, "=")
			if strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "/var/lib/x/y/") {
				t.Errorf("%s: %s", part.Name, arg)
			}
		}
	}
}

func TestCephIsOutOfThePodsReach(t *testing.T) {
	s := setup(t)
	if got := s.CephAddress(); !got.IsLoopback() {
		t.Errorf("it listens at %s", got)
	}
	if other := (Setup{Network: network.Plan{Cable: netip.MustParsePrefix("10.7.255.0/30")}}).CephAddress(); other == s.CephAddress() {
		t.Error("two clusters' Cephs share an address")
	}
}

func TestTheServerIsCertifiedForAllItsNames(t *testing.T) {
	s := setup(t)
	hosts := strings.Join(s.Certificates()["apiserver"].Hosts, " ")
	for _, want := range []string{s.Network.Host().String(), s.Network.KubernetesService().String(), "kubernetes.default.svc"} {
		if !strings.Contains(hosts, want) {
			t.Errorf("%s is not among %s", want, hosts)
		}
	}
	for _, user := range s.Kubeconfigs() {
		if _, ok := s.Certificates()[user]; !ok {
			t.Errorf("%s has a kubeconfig and no certificate", user)
		}
	}
}

// Package parts says how each program of a cluster is run: its command line and
// its configuration, from the layout and the addresses. It only renders.
package parts

import (
	"encoding/json"
	"os"

	"github.com/google/renameio/v2"

	"authstack.dev/authstack/hack/devcluster/internal/layout"
	"authstack.dev/authstack/hack/devcluster/internal/network"
)

// NodeName is the name of the one node.
const NodeName = "devcluster"

// ClusterDomain is the domain of Services.
const ClusterDomain = "cluster.local"

// APIPort is the API server's, on the host's end of the cable.
const APIPort = "6443"

// Part is one supervised process.
type Part struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"`
	// OnNode parts run in the node's namespaces.
	OnNode bool `json:"onNode,omitempty"`
	// SeesMounts parts run in the node's mount namespace alone: what they mount
	// is the kubelet's to use, while their network is the host's.
	SeesMounts bool `json:"seesMounts,omitempty"`
	// Hold is a file; while it is there the part is not started.
	Hold string `json:"hold,omitempty"`
	// After is an address (tcp://… or unix://…) that must answer first. Without
	// it a part would only fail, wait and be started again.
	After string `json:"after,omitempty"`
}

// Held tells whether the part is kept from being started.
func (p Part) Held() bool {
	if p.Hold == "" {
		return false
	}
	_, err := os.Lstat(p.Hold)
	return err == nil
}

// Setup is all that rendering needs to know.
type Setup struct {
	Layout  layout.Layout
	Network network.Plan
	// Kubernetes and Storage are executables.
	Kubernetes, Storage string
	// Snapshotter is containerd's.
	Snapshotter string
	// PauseImage is what sandboxes run.
	PauseImage string
	// CephFSID is the identity of the cluster's Ceph; empty if it has none.
	CephFSID string
}

// Server is the API server's address.
func (s Setup) Server() string { return "https://" + s.Network.Host().String() + ":" + APIPort }

func (s Setup) etcd() string { return "https://" + s.Network.Host().String() + ":2379" }

func (s Setup) pki(file string) string { return s.Layout.InState("pki", file) }

func (s Setup) config(file string) string { return s.Layout.InState("config", file) }

func (s Setup) apiserver() string {
	return "tcp://" + s.Network.Host().String() + ":" + APIPort
}

// All lists the parts in the order in which they are started.
func (s Setup) All() []Part {
	program := func(name string, args ...string) []string {
		return append([]string{s.Kubernetes, name}, args...)
	}
	storage := []string{s.Storage, "--kubeconfig=" + s.config("storage.kubeconfig"), "--dir=" + s.Layout.InState("volumes"), "--node=" + NodeName}
	list := []Part{
		{Name: "etcd", Argv: program("etcd", s.etcdArgs()...)},
		{Name: "containerd", OnNode: true, Argv: []string{"containerd", "--config", s.config("containerd.toml")}},
		{Name: "kube-apiserver", Argv: program("kube-apiserver", s.apiserverArgs()...), After: "tcp://" + s.Network.Host().String() + ":2379"},
		{Name: "kube-controller-manager", Argv: program("kube-controller-manager", s.controllerManagerArgs()...), After: s.apiserver()},
		{Name: "kube-scheduler", Argv: program("kube-scheduler", s.schedulerArgs()...), After: s.apiserver()},
		{Name: "kubelet", OnNode: true, Argv: program("kubelet", s.kubeletArgs()...), After: "unix://" + s.Layout.Socket()},
		{Name: "kube-proxy", OnNode: true, Argv: program("kube-proxy", "--config="+s.config("kube-proxy.yaml")), After: s.apiserver()},
	}
	if s.CephFSID != "" {
		list = append(list, s.cephParts()...)
		storage = append(storage, "--ceph="+s.CephConf(), "--run="+s.Layout.InState("run"), "--kubelet-registry="+s.Layout.InState("kubelet", "plugins_registry"))
	}
	return append(list, Part{Name: "storage", SeesMounts: true, Argv: storage, After: s.apiserver()})
}

// Write stores the list where the supervisor reads it.
func Write(path string, list []Part) error {
	data, err := Encode(list)
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, data, 0o644)
}

// Encode is what Write writes; two lists are the same if it is.
func Encode(list []Part) ([]byte, error) { return json.MarshalIndent(list, "", "  ") }

// Read is the supervisor's side of Write.
func Read(path string) ([]Part, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []Part
	return list, json.Unmarshal(data, &list)
}

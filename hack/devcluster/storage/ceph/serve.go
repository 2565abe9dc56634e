package ceph

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Places of the driver on the node. All in the state folder, and short: the
// kernel allows 107 bytes for the path of a socket.
type Places struct {
	// Volumes has a folder for each attached image.
	Volumes string
	// Run is where the driver's own sockets lie.
	Run string
	// Registry is where the kubelet looks for drivers.
	Registry string
}

// Serve answers the kubelet until the context ends.
func Serve(ctx context.Context, conf, node string, places Places) error {
	for _, dir := range []string{places.Volumes, places.Run, places.Registry} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	endpoint := filepath.Join(places.Run, "csi.sock")
	driver := grpc.NewServer()
	csi.RegisterIdentityServer(driver, identity{})
	csi.RegisterNodeServer(driver, &nodeServer{
		node:   node,
		daemon: daemon{images: images{conf}, dir: places.Volumes, run: places.Run},
	})
	kubelet := grpc.NewServer()
	registration.RegisterRegistrationServer(kubelet, registrar{endpoint: endpoint})
	failed := make(chan error, 2)
	// The driver first: the kubelet asks it as soon as it sees the other.
	for _, s := range []struct {
		server *grpc.Server
		socket string
	}{{driver, endpoint}, {kubelet, filepath.Join(places.Registry, "rbd.sock")}} {
		if err := os.Remove(s.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		listener, err := net.Listen("unix", s.socket)
		if err != nil {
			return err
		}
		go func() { failed <- s.server.Serve(listener) }()
	}
	select {
	case <-ctx.Done():
		driver.Stop()
		kubelet.Stop()
		return nil
	case err := <-failed:
		return fmt.Errorf("serving the kubelet: %w", err)
	}
}

type identity struct {
	csi.UnimplementedIdentityServer
}

func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: Name, VendorVersion: "devcluster"}, nil
}

func (identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// registrar introduces the driver to the kubelet.
type registrar struct {
	registration.UnimplementedRegistrationServer
	endpoint string
}

func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: Name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

func (registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !s.PluginRegistered {
		fmt.Fprintln(os.Stderr, "the kubelet refused the driver:", s.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

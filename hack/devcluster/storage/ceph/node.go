package ceph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nodeServer is the node's half of a CSI driver: the kubelet asks it to attach
// and mount volumes. It runs in the kubelet's mount namespace.
type nodeServer struct {
	csi.UnimplementedNodeServer
	daemon daemon
	node   string
	busy   sync.Map
}

// lock keeps calls for one volume apart. One that waits for a hanging Ceph must
// hold up neither the others nor, by piling up, itself: the kubelet asks again.
func (n *nodeServer) lock(handle string) (unlock func(), err error) {
	if handle == "" || handle == ".." || handle == "." || filepath.Base(handle) != handle {
		return nil, status.Errorf(codes.InvalidArgument, "%q is no volume of %s", handle, Name)
	}
	if _, taken := n.busy.LoadOrStore(handle, true); taken {
		return nil, status.Errorf(codes.Aborted, "the volume %s is being worked on", handle)
	}
	return func() { n.busy.Delete(handle) }, nil
}

// NodeGetInfo names the node; any volume can be attached to it.
func (n *nodeServer) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.node}, nil
}

// NodeGetCapabilities lists what is done beside mounting.
func (n *nodeServer) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, kind := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
	} {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: kind}},
		})
	}
	return response, nil
}

// NodeStageVolume attaches the image, makes a file system on a new one, and
// mounts it where all pods of the node have it from.
func (n *nodeServer) NodeStageVolume(ctx context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	handle, path := request.GetVolumeId(), request.GetStagingTargetPath()
	unlock, err := n.lock(handle)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if mounted(path) {
		if n.daemon.alive(handle) {
			return &csi.NodeStageVolumeResponse{}, nil
		}
		// Its daemon was killed: what is mounted answers nothing but errors.
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return nil, fmt.Errorf("unmounting a dead volume: %w", err)
		}
	}
	attributes := request.GetVolumeContext()
	file, err := n.daemon.attach(ctx, attributes[attributePool], attributes[attributeImage], handle)
	if err != nil {
		return nil, err
	}
	device, err := loopDevice(file)
	if err != nil {
		return nil, err
	}
	defer device.Close()
	if err := format(ctx, device.Name()); err != nil {
		return nil, err
	}
	if err := fill(ctx, device.Name()); err != nil {
		return nil, err
	}
	// The background writing of empty inode tables would be measured along with
	// what is to be measured; a new image reads as zeros anyway.
	options := append([]string{"noinit_itable"}, request.GetVolumeCapability().GetMount().GetMountFlags()...)
	if _, err := run(ctx, "mount", "-t", "ext4", "-o", strings.Join(options, ","), device.Name(), path); err != nil {
		return nil, err
	}
	// As ceph-csi has it: a pod that names no fsGroup can write all the same.
	if err := os.Chmod(path, 0o777); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume undoes NodeStageVolume.
func (n *nodeServer) NodeUnstageVolume(_ context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	handle := request.GetVolumeId()
	unlock, err := n.lock(handle)
	if err != nil {
		return nil, err
	}
	defer unlock()
	path, how := request.GetStagingTargetPath(), 0
	if !n.daemon.alive(handle) {
		how = unix.MNT_DETACH // nothing can be written out any more
	}
	if err := unmount(path, how); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, n.daemon.detach(handle)
}

// NodePublishVolume shows the mounted volume to one pod.
func (n *nodeServer) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	from, to := request.GetStagingTargetPath(), request.GetTargetPath()
	if mounted(to) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if !mounted(from) {
		// Else the pod would write to the machine's own disk and nobody would notice.
		return nil, status.Error(codes.FailedPrecondition, "the volume is not mounted on the node")
	}
	if err := os.MkdirAll(to, 0o750); err != nil {
		return nil, err
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return nil, err
	}
	if request.GetReadonly() {
		return &csi.NodePublishVolumeResponse{}, unix.Mount("", to, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume undoes NodePublishVolume.
func (n *nodeServer) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := unmount(request.GetTargetPath(), unix.MNT_DETACH); err != nil {
		return nil, err
	}
	if err := os.Remove(request.GetTargetPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeGetVolumeStats is what the kubelet's metrics of volumes come from.
func (n *nodeServer) NodeGetVolumeStats(_ context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(request.GetVolumePath(), &stat); err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	block := stat.Bsize
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: int64(stat.Blocks) * block, Available: int64(stat.Bavail) * block, Used: int64(stat.Blocks-stat.Bfree) * block},
		{Unit: csi.VolumeUsage_INODES, Total: int64(stat.Files), Available: int64(stat.Ffree), Used: int64(stat.Files - stat.Ffree)},
	}}, nil
}

// NodeExpandVolume makes the file system as large as the image has become. Where
// the machine does not allow that while it is mounted (it takes CAP_SYS_RESOURCE),
// it is done when it is next attached.
func (n *nodeServer) NodeExpandVolume(ctx context.Context, request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	handle := request.GetVolumeId()
	unlock, err := n.lock(handle)
	if err != nil {
		return nil, err
	}
	defer unlock()
	size := inMebibytes(request.GetCapacityRange().GetRequiredBytes()) * mebibyte
	device, err := loopOf(n.daemon.file(handle))
	if err != nil {
		return nil, err
	}
	filled, err := full(ctx, device, size)
	if filled || err != nil {
		return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, err
	}
	if err := n.daemon.resize(ctx, handle, size); err != nil {
		return nil, err
	}
	if err := grow(device); err != nil {
		return nil, err
	}
	if _, err := run(ctx, "resize2fs", device); err != nil {
		return nil, status.Errorf(codes.FailedPrecondition, "the image has its new size; the file system gets it when no pod has had the volume for a moment, since it cannot be grown in use: %v", err)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, nil
}

// mounted tells whether something is mounted at exactly this path.
func mounted(path string) bool {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == path {
			return true
		}
	}
	return false
}

// unmount unmounts what is mounted at the path, if anything is.
func unmount(path string, how int) error {
	for mounted(path) {
		if err := unix.Unmount(path, how); err != nil {
			return fmt.Errorf("unmounting %s: %w", path, err)
		}
	}
	return nil
}

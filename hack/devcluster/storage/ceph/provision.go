// Package ceph provisions volumes that are RBD images of a real Ceph, and
// attaches them to the node.
//
// It answers to the name of Rook's CSI driver, and its volumes are CSI volumes of
// that name with Rook's attributes, because that is what there is to be seen of
// Ceph in a cluster that Rook serves. The kernel has no rbd module here, so
// images are attached by qemu's storage daemon: see attach.go.
package ceph

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// Name is the provisioner's and the CSI driver's: that of a Rook in the
// namespace rook-ceph.
const Name = "rook-ceph.rbd.csi.ceph.com"

// Attributes of a volume, as ceph-csi names them.
const (
	attributePool    = "pool"
	attributeImage   = "imageName"
	attributeCluster = "clusterID"
)

const mebibyte = 1 << 20

// Provisioner makes and removes images.
type Provisioner struct{ images images }

// NewProvisioner returns one for the Ceph of the given ceph.conf.
func NewProvisioner(conf string) *Provisioner { return &Provisioner{images{conf}} }

// Provision makes an image and describes it as a volume. The file system is made
// when a pod first wants it, as by ceph-csi.
func (p *Provisioner) Provision(ctx context.Context, options controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	pool, err := refuse(options)
	if err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	request := options.PVC.Spec.Resources.Requests[corev1.ResourceStorage]
	size := inMebibytes(request.Value())
	if err := p.images.create(ctx, pool, options.PVName, size); err != nil {
		// Whether there is an image now is not known; only going on tells, even
		// when the claim is gone.
		return nil, controller.ProvisioningInBackground, err
	}
	reclaim := corev1.PersistentVolumeReclaimDelete
	if options.StorageClass.ReclaimPolicy != nil {
		reclaim = *options.StorageClass.ReclaimPolicy
	}
	attributes := map[string]string{
		attributePool:    pool,
		attributeImage:   options.PVName,
		attributeCluster: options.StorageClass.Parameters[attributeCluster],
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: reclaim,
			AccessModes:                   options.PVC.Spec.AccessModes,
			MountOptions:                  options.StorageClass.MountOptions,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(size*mebibyte, resource.BinarySI)},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: Name, VolumeHandle: options.PVName, FSType: "ext4", VolumeAttributes: attributes,
			}},
		},
	}, controller.ProvisioningFinished, nil
}

// refuse returns the class's pool, or why the claim cannot be answered.
func refuse(options controller.ProvisionOptions) (pool string, err error) {
	claim := options.PVC
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		return "", fmt.Errorf("%s has file systems only here: leave volumeMode out of the claim", Name)
	}
	if claim.Spec.Selector != nil {
		return "", fmt.Errorf("%s cannot choose by label: leave selector out of the claim", Name)
	}
	if claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil {
		return "", fmt.Errorf("%s has neither snapshots nor clones here: leave dataSource out of the claim", Name)
	}
	for _, mode := range claim.Spec.AccessModes {
		if mode == corev1.ReadWriteMany || mode == corev1.ReadOnlyMany {
			return "", fmt.Errorf("an RBD image with a file system has one user: write ReadWriteOnce instead of %s", mode)
		}
	}
	pool = options.StorageClass.Parameters[attributePool]
	if pool == "" {
		return "", fmt.Errorf("the storage class %s names no pool: write parameters.pool", options.StorageClass.Name)
	}
	return pool, nil
}

// Delete removes the image. It fails, and is tried again, while a node has it open.
func (p *Provisioner) Delete(ctx context.Context, volume *corev1.PersistentVolume) error {
	source := volume.Spec.CSI
	if source == nil || source.Driver != Name || source.VolumeHandle != volume.Name {
		return &controller.IgnoredError{Reason: "the volume is no image that this provisioner made"}
	}
	return p.images.remove(ctx, source.VolumeAttributes[attributePool], source.VolumeHandle)
}

// inMebibytes rounds up: images are made of whole ones.
func inMebibytes(bytes int64) int64 { return max(1, (bytes+mebibyte-1)/mebibyte) }

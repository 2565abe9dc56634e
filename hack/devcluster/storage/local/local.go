// Package local provisions volumes that are directories on the machine's disk.
//
// It answers to the name of Rancher's local-path-provisioner, because that is
// what k3s ships and so what people at home have: node-local, size not
// enforced. The volumes are of type `local` and not `hostPath`, since the
// kubelet gives only the former to the group in a pod's fsGroup.
package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// Name is what storage classes of this medium have as their provisioner.
const Name = "rancher.io/local-path"

// Provisioner makes and removes the directories.
type Provisioner struct {
	dir  string
	node string
}

// New returns a Provisioner that keeps its volumes below dir/local, for the
// node of the given name.
func New(dir, node string) (*Provisioner, error) {
	root := filepath.Join(dir, "local")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	return &Provisioner{dir: root, node: node}, nil
}

// Provision makes a directory and describes it as a volume of this node.
func (p *Provisioner) Provision(_ context.Context, options controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	claim := options.PVC
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		return nil, controller.ProvisioningFinished, fmt.Errorf("%s has directories only: leave volumeMode out of the claim, or use another storage class", Name)
	}
	if claim.Spec.Selector != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("%s cannot choose by label: leave selector out of the claim", Name)
	}
	path := filepath.Join(p.dir, options.PVName)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	// Not left to the umask: a pod that names no fsGroup has to be able to write.
	if err := os.Chmod(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	reclaim := corev1.PersistentVolumeReclaimDelete
	if options.StorageClass.ReclaimPolicy != nil {
		reclaim = *options.StorageClass.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: reclaim,
			AccessModes:                   claim.Spec.AccessModes,
			MountOptions:                  options.StorageClass.MountOptions,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{p.node},
				}},
			}}}},
		},
	}, controller.ProvisioningFinished, nil
}

// Delete removes the directory of a volume that this provisioner made. A path
// it cannot have made is refused: the volume is an object anybody with the
// rights can write, and what it names is about to be removed as root.
func (p *Provisioner) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	path := filepath.Join(p.dir, volume.Name)
	if volume.Spec.Local == nil || volume.Spec.Local.Path != path || filepath.Dir(path) != p.dir {
		return &controller.IgnoredError{Reason: "the volume does not lie in " + p.dir}
	}
	return os.RemoveAll(path)
}

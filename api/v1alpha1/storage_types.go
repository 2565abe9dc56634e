package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageSpec says on what the database is kept. At most one of cephRBD, localNVMe and
// storageClassName; nothing given means the cluster's default StorageClass.
//
// +kubebuilder:validation:XValidation:rule="(has(self.cephRBD) ? 1 : 0) + (has(self.localNVMe) ? 1 : 0) + (has(self.storageClassName) ? 1 : 0) <= 1",message="set at most one of storage.cephRBD, storage.localNVMe and storage.storageClassName; none means the default StorageClass"
type StorageSpec struct {
	// Size of each volume. It can grow, not shrink. Default: 10Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Gi')) >= 0",message="size must be at least 1Gi, for example 10Gi"
	Size *resource.Quantity `json:"size,omitempty"`

	// CephRBD takes the StorageClass whose provisioner is Ceph RBD (Rook or ceph-csi), or makes a
	// pool and a class of its own through Rook.
	// +optional
	CephRBD *CephRBDStorage `json:"cephRBD,omitempty"`

	// LocalNVMe takes the StorageClass that provisions on the node's own disks.
	// +optional
	LocalNVMe *LocalNVMeStorage `json:"localNVMe,omitempty"`

	// StorageClassName takes this class whatever its provisioner.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`

	// Probe measures what the storage truly does: 8 kB writes, each followed by fdatasync, as
	// PostgreSQL commits. Nothing given: Automatic.
	// +optional
	Probe *StorageProbeSpec `json:"probe,omitempty"`
}

// CephRBDStorage chooses Ceph RBD.
//
// +kubebuilder:validation:XValidation:rule="has(self.blockPool) == has(oldSelf.blockPool)",message="a live database cannot be moved to or from a pool of its own in place; make a second AuthStack and move the data as docs/moving-storage.md says"
type CephRBDStorage struct {
	// BlockPool makes a CephBlockPool and a StorageClass for this stack through Rook. Nothing given:
	// a StorageClass that exists.
	// +optional
	BlockPool *CephBlockPoolSpec `json:"blockPool,omitempty"`
}

// CephBlockPoolSpec is a pool that Rook makes for this stack. A pool of that name that somebody else
// made is never taken over. With deletionPolicy Retain pool and class outlive the stack.
type CephBlockPoolSpec struct {
	// Name of the CephBlockPool. The StorageClass has the same name.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a pool holds a-z, 0-9 and -, for example sso-database"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the pool of a live database cannot be exchanged, the data would stay behind; make a second AuthStack and move the data as docs/moving-storage.md says"
	Name string `json:"name"`

	// Replicas is how many copies Ceph keeps; a write waits for all of them. With 1 a lost disk loses
	// the database. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Replicas *int32 `json:"replicas,omitempty"`

	// FailureDomain that no two copies share, for example host, rack or osd. Default: host.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][-a-z0-9]*$')",message="failureDomain is a level of the CRUSH map in lower case, for example host, rack, zone or osd"
	FailureDomain string `json:"failureDomain,omitempty"`

	// Namespace of the CephCluster. Default: that of the only one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the namespace of the CephCluster cannot be changed, the pool and its data would stay behind; make a second AuthStack"
	Namespace string `json:"namespace,omitempty"`
}

// LocalNVMeStorage chooses the node's own disks.
type LocalNVMeStorage struct{}

// StorageProbeSpec says when the storage is measured, and for how long.
type StorageProbeSpec struct {
	// Mode: Automatic probes once the stack is Ready and no LatencyTest runs, where this class, node
	// and size were not probed before; Manual only on the annotation authstack.dev/probeRequestedAt;
	// Off never. Default: Automatic.
	// +optional
	Mode StorageProbeMode `json:"mode,omitempty"`

	// Short is the length of the first phase: what the medium does fresh. Default: 10s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('5m')",message="short must be 1s to 5m, for example 10s"
	Short *metav1.Duration `json:"short,omitempty"`

	// Long is the length of the second phase: what the medium keeps up. Heat, a full write cache and
	// spent burst credits show after a minute or two. Default: 2m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('1h')",message="long must be 5s to 1h, for example 2m"
	Long *metav1.Duration `json:"long,omitempty"`
}

// StorageProbeMode says when the storage is measured.
// +kubebuilder:validation:Enum=Automatic;Manual;Off
type StorageProbeMode string

// The probe modes.
const (
	// StorageProbeAutomatic probes once a class, node and size.
	StorageProbeAutomatic StorageProbeMode = "Automatic"
	// StorageProbeManual probes on the annotation.
	StorageProbeManual StorageProbeMode = "Manual"
	// StorageProbeOff never probes.
	StorageProbeOff StorageProbeMode = "Off"
)

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Medium is what a volume is on.
// +kubebuilder:validation:Enum=CephRBD;NodeLocal;NetworkFile;NetworkBlock;CloudBlock;Unknown
type Medium string

// The media. A provisioner's name is a hint; the bound volume is better evidence.
const (
	// MediumCephRBD is a Ceph block device.
	MediumCephRBD Medium = "CephRBD"
	// MediumNodeLocal is a disk of the node; a virtual machine's disk may itself be on a network.
	MediumNodeLocal Medium = "NodeLocal"
	// MediumNetworkFile is a network file system, unsuited to a database.
	MediumNetworkFile Medium = "NetworkFile"
	// MediumNetworkBlock is another network block device.
	MediumNetworkBlock Medium = "NetworkBlock"
	// MediumCloudBlock is a cloud's block device.
	MediumCloudBlock Medium = "CloudBlock"
	// MediumUnknown is the honest answer where the provisioner does not tell.
	MediumUnknown Medium = "Unknown"
)

// StorageStatus is the storage that the database is on.
type StorageStatus struct {
	// StorageClassName that was resolved.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`
	// Provisioner of the class.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Provisioner string `json:"provisioner,omitempty"`
	// Medium of the volume.
	// +required
	Medium Medium `json:"medium"`
	// Evidence for the medium, in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Evidence string `json:"evidence,omitempty"`
	// LostDisk says what one lost disk costs, where the volumes are on the node's own.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	LostDisk string `json:"lostDisk,omitempty"`
	// Ceph is what Rook says of the pool and its cluster, in a sentence; empty for other media.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Ceph string `json:"ceph,omitempty"`
	// Probe is what the storage was measured to do.
	// +optional
	Probe *StorageProbeStatus `json:"probe,omitempty"`
}

// StorageProbeStatus is what the storage was measured to do. Durations are microseconds.
type StorageProbeStatus struct {
	// Running names the Job that probes or is about to be removed.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Running string `json:"running,omitempty"`
	// Run counts the probes of this stack.
	// +optional
	Run int64 `json:"run,omitempty"`
	// CompletedRun is the run that the figures are of.
	// +optional
	CompletedRun int64 `json:"completedRun,omitempty"`
	// LastHandledRequestAt is the value of the annotation authstack.dev/probeRequestedAt that was
	// last acted on.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledRequestAt string `json:"lastHandledRequestAt,omitempty"`
	// StorageClassName that was probed.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`
	// Node that the probe ran on.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// VolumeSize of the probe's own claim, for example 10Gi.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	VolumeSize string `json:"volumeSize,omitempty"`
	// CopiedFrom names the AuthStack, as namespace/name, whose probe of the same class, node and size
	// these figures are.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	CopiedFrom string `json:"copiedFrom,omitempty"`
	// CompletedAt is when the probe ended.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// Problem is why there are no figures, in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem,omitempty"`
	// Claim is what the provisioner's name or the volume says.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Claim string `json:"claim,omitempty"`
	// Measured is what the figures look like, in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Measured string `json:"measured,omitempty"`
	// Syncs are the phases of 8 kB writes at depth 1, each followed by fdatasync.
	// +optional
	// +listType=map
	// +listMapKey=phase
	// +kubebuilder:validation:MaxItems=4
	Syncs []SyncFigures `json:"syncs,omitempty"`
	// SyncsPerSecond is the course of the long phase: the mean of each SecondsPerPoint seconds.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=120
	SyncsPerSecond []int32 `json:"syncsPerSecond,omitempty"`
	// SecondsPerPoint of SyncsPerSecond.
	// +optional
	SecondsPerPoint int32 `json:"secondsPerPoint,omitempty"`
	// Patterns are the sequential and random reads and writes, as one runs them with fio.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Patterns []PatternFigures `json:"patterns,omitempty"`
	// CPU is how fast the node encrypts.
	// +optional
	CPU *CPUFigures `json:"cpu,omitempty"`
	// Device is what the kernel says of the volume, for example ext4 on vda, write cache write back.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Device string `json:"device,omitempty"`
	// Findings are what stands out, the worst first.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=8
	Findings []StorageFinding `json:"findings,omitempty"`
}

// SyncFigures are those of one phase of 8 kB writes, each followed by fdatasync.
type SyncFigures struct {
	// Phase is Short or Long.
	// +required
	// +kubebuilder:validation:Enum=Short;Long
	Phase string `json:"phase"`
	// DurationSeconds of the phase.
	// +required
	DurationSeconds int32 `json:"durationSeconds"`
	// Syncs that completed.
	// +required
	Syncs int64 `json:"syncs"`
	// SyncsPerSecond over the phase.
	// +required
	SyncsPerSecond int64 `json:"syncsPerSecond"`
	// P50Micros is the median of fdatasync.
	// +required
	P50Micros int64 `json:"p50Micros"`
	// P99Micros is its 99th percentile.
	// +required
	P99Micros int64 `json:"p99Micros"`
	// P999Micros is its 99.9th percentile.
	// +required
	P999Micros int64 `json:"p999Micros"`
	// MaxMicros is the slowest.
	// +required
	MaxMicros int64 `json:"maxMicros"`
}

// PatternFigures are those of one access pattern.
type PatternFigures struct {
	// Name of the pattern, for example random-read.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// BlockBytes of each read or write.
	// +required
	BlockBytes int64 `json:"blockBytes"`
	// Depth is how many were under way at once.
	// +required
	Depth int32 `json:"depth"`
	// OperationsPerSecond over the pattern's run.
	// +required
	OperationsPerSecond int64 `json:"operationsPerSecond"`
	// BytesPerSecond over the pattern's run.
	// +required
	BytesPerSecond int64 `json:"bytesPerSecond"`
	// P50Micros is the median of one operation.
	// +required
	P50Micros int64 `json:"p50Micros"`
	// P99Micros is its 99th percentile.
	// +required
	P99Micros int64 `json:"p99Micros"`
}

// CPUFigures are how fast one core of the node encrypts records of 16 KiB, the size of TLS.
type CPUFigures struct {
	// AESInstructions is whether the CPU has instructions for AES.
	// +required
	AESInstructions bool `json:"aesInstructions"`
	// AESGCMBytesPerSecond is AES-128-GCM.
	// +required
	AESGCMBytesPerSecond int64 `json:"aesGCMBytesPerSecond"`
	// ChaCha20Poly1305BytesPerSecond is ChaCha20-Poly1305.
	// +required
	ChaCha20Poly1305BytesPerSecond int64 `json:"chaCha20Poly1305BytesPerSecond"`
}

// StorageFinding is one thing that stands out in a probe.
type StorageFinding struct {
	// Kind of the finding.
	// +required
	Kind StorageFindingKind `json:"kind"`
	// Message says what was seen, with the figure behind it, and what it means.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}

// StorageFindingKind names what stands out.
// +kubebuilder:validation:Enum=Hangs;TooFast;Falls;NotAsClaimed;Slow;LongTail;NoAESInstructions
type StorageFindingKind string

// The findings, the worst first.
const (
	// FindingHangs: a write did not come back.
	FindingHangs StorageFindingKind = "Hangs"
	// FindingTooFast: syncs return faster than the medium can make data durable.
	FindingTooFast StorageFindingKind = "TooFast"
	// FindingFalls: the rate falls over time.
	FindingFalls StorageFindingKind = "Falls"
	// FindingNotAsClaimed: the figures do not look like what the provisioner's name says.
	FindingNotAsClaimed StorageFindingKind = "NotAsClaimed"
	// FindingSlow: commits will be felt.
	FindingSlow StorageFindingKind = "Slow"
	// FindingLongTail: single syncs take very much longer than most.
	FindingLongTail StorageFindingKind = "LongTail"
	// FindingNoAES: the CPU encrypts AES in software.
	FindingNoAES StorageFindingKind = "NoAESInstructions"
)

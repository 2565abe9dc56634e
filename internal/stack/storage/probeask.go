package storage

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
)

// ProbeQuestion is what is known when no probe of the stack runs.
type ProbeQuestion struct {
	// Stack with the status that will be written; status.storage says what the database is on.
	Stack *v1alpha1.AuthStack
	// Ready is whether the stack is.
	Ready bool
	// Classes of the cluster, Size of the database's volume, Node of its primary, empty where unknown.
	Classes []facts.StorageClass
	Size    resource.Quantity
	Node    string
}

// ProbeAnswer says whether a probe is due.
type ProbeAnswer struct {
	// Due is whether one is to be run, or copied, when nothing stands in the way; Asked whether somebody
	// asked, so that it is run and not copied.
	Due, Asked bool
	// Problem is why the storage cannot be probed, in a sentence, or empty.
	Problem string
}

// AskProbe says whether the storage is to be probed.
func AskProbe(q ProbeQuestion) ProbeAnswer {
	stored := q.Stack.Status.Storage
	if stored == nil || stored.StorageClassName == "" {
		return ProbeAnswer{}
	}
	request := q.Stack.Annotations[v1alpha1.ProbeRequestedAtAnnotation]
	last := v1alpha1.StorageProbeStatus{}
	if stored.Probe != nil {
		last = *stored.Probe
	}
	asked := request != "" && request != last.LastHandledRequestAt
	mode := probeMode(q.Stack)
	automatic := mode == v1alpha1.StorageProbeAutomatic && q.Ready && !probed(last, q)
	if mode == v1alpha1.StorageProbeOff || !asked && !automatic {
		return ProbeAnswer{}
	}
	at := slices.IndexFunc(q.Classes, func(c facts.StorageClass) bool { return c.Name == stored.StorageClassName })
	switch {
	case at < 0:
		return ProbeAnswer{Problem: fmt.Sprintf("StorageClass %s of the database is gone, so no volume of it can be made to probe", stored.StorageClassName)}
	case q.Classes[at].Provisioner == "kubernetes.io/no-provisioner":
		return ProbeAnswer{Problem: fmt.Sprintf("StorageClass %s has no provisioner: a probe would use up one of its volumes; run fio on one by hand", stored.StorageClassName)}
	case q.Classes[at].RetainsVolumes && !asked:
		return ProbeAnswer{Problem: fmt.Sprintf("StorageClass %s keeps the volumes of claims that are gone (reclaimPolicy Retain), so a probe would leave one behind; to probe all the same, set the annotation %s",
			stored.StorageClassName, v1alpha1.ProbeRequestedAtAnnotation)}
	}
	return ProbeAnswer{Due: true, Asked: asked}
}

// probed is whether the last probe was of what the database is on now.
func probed(last v1alpha1.StorageProbeStatus, q ProbeQuestion) bool {
	return last.CompletedAt != nil && SameProbe(last, q)
}

// SameProbe is whether a probe's figures are of what the database is on. On the node's own disks the
// node counts; a network's volume is the same from each.
func SameProbe(p v1alpha1.StorageProbeStatus, q ProbeQuestion) bool {
	stored, size := q.Stack.Status.Storage, ProbeSize(q.Size)
	pinned := stored.Medium == v1alpha1.MediumNodeLocal || stored.Medium == v1alpha1.MediumUnknown
	return p.StorageClassName == stored.StorageClassName && p.VolumeSize == size.String() && (!pinned || q.Node == "" || p.Node == "" || p.Node == q.Node)
}

// Copy the figures of another stack's probe of the same, or nil. A stack that copied them itself is
// passed over: the origin is named.
func Copy(others []v1alpha1.AuthStack, q ProbeQuestion) *v1alpha1.StorageProbeStatus {
	var newest *v1alpha1.StorageProbeStatus
	for i := range others {
		other := &others[i]
		if other.UID == q.Stack.UID || other.Status.Storage == nil || other.Status.Storage.Probe == nil {
			continue
		}
		p := other.Status.Storage.Probe
		if p.CompletedAt == nil || p.Problem != "" || p.CopiedFrom != "" || len(p.Syncs) == 0 || !SameProbe(*p, q) || other.Status.Storage.Medium != q.Stack.Status.Storage.Medium {
			continue
		}
		if newest == nil || newest.CompletedAt.Before(p.CompletedAt) {
			newest = p.DeepCopy()
			newest.CopiedFrom = Owner(other)
		}
	}
	if newest != nil {
		own := v1alpha1.StorageProbeStatus{}
		if p := q.Stack.Status.Storage.Probe; p != nil {
			own = *p
		}
		newest.Running, newest.Run, newest.CompletedRun, newest.LastHandledRequestAt = own.Running, own.Run, own.Run, own.LastHandledRequestAt
	}
	return newest
}

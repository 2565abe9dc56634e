package storage

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/part"
)

// Result is the storage of a stack's database.
type Result struct {
	// ClassName of the volumes; empty where none was found or none is needed.
	ClassName string
	// Status as far as it is known; nil for an external database.
	Status *v1alpha1.StorageStatus
	State  part.State
	// Objects that the storage needs first: a pool of the stack's own and its class.
	Objects []client.Object
}

// External is the result for a database that has its own storage.
func External() Result {
	return Result{State: part.Ready("the database is external and has its own storage")}
}

// Resolve finds the StorageClass for what the spec asks. claims are the names of the database's
// volume claims: once one is bound, its volume is the evidence, whatever the classes say now, since
// bound volumes keep their class.
func Resolve(in part.Input, spec *v1alpha1.StorageSpec, claims []string) Result {
	if spec == nil {
		spec = &v1alpha1.StorageSpec{}
	}
	pool := (*v1alpha1.CephBlockPoolSpec)(nil)
	if spec.CephRBD != nil {
		pool = spec.CephRBD.BlockPool
	}
	if volume := boundVolume(in.Facts.Volumes, claims); volume != nil {
		result := fromVolume(in.Facts.StorageClasses, *volume)
		live(in, &result, *volume)
		if pool != nil && result.State.Ready {
			result.Objects = ownPool(in, pool).Objects
		}
		return result
	}
	if pool != nil {
		return ownPool(in, pool)
	}
	class, state := choose(in.Facts.StorageClasses, spec)
	if class == nil {
		return Result{State: state}
	}
	medium := Medium(class.Provisioner)
	result := Result{ClassName: class.Name, Status: &v1alpha1.StorageStatus{
		StorageClassName: class.Name,
		Provisioner:      class.Provisioner,
		Medium:           medium,
		Evidence:         provisionerEvidence(*class, medium),
	}}
	result.State = suitable(*class, medium, spec)
	if medium == v1alpha1.MediumCephRBD && result.State.Ready {
		var state part.State
		if result.Status.Ceph, state = cephState(in.Facts.Ceph, class.Parameters, false); state.Reason != "" {
			result.State = state
		}
	}
	return result
}

// live looks at the Ceph below a database that is there already: what hangs is said.
func live(in part.Input, result *Result, volume facts.Volume) {
	if result.Status.Medium != v1alpha1.MediumCephRBD || !result.State.Ready {
		return
	}
	// The volume's own attributes beat the class, which may have been made again.
	named := volume.Attributes
	if named["clusterID"] == "" {
		for _, class := range in.Facts.StorageClasses {
			if class.Name == volume.StorageClass {
				named = class.Parameters
			}
		}
	}
	var state part.State
	if result.Status.Ceph, state = cephState(in.Facts.Ceph, named, true); state.Reason != "" {
		result.State = state
	}
}

func boundVolume(volumes []facts.Volume, claims []string) *facts.Volume {
	for _, claim := range claims {
		for i := range volumes {
			if volumes[i].Claim == claim {
				return &volumes[i]
			}
		}
	}
	return nil
}

// fromVolume judges by the bound volume: its CSI driver beats the class's name, a class can be
// deleted and made again (facts/postgres-ceph.md D6).
func fromVolume(classes []facts.StorageClass, volume facts.Volume) Result {
	status := &v1alpha1.StorageStatus{StorageClassName: volume.StorageClass, Provisioner: volume.Driver}
	if i := slices.IndexFunc(classes, func(c facts.StorageClass) bool { return c.Name == volume.StorageClass }); i >= 0 && status.Provisioner == "" {
		status.Provisioner = classes[i].Provisioner
	}
	byDriver := Medium(volume.Driver)
	switch {
	case volume.Driver != "" && byDriver != v1alpha1.MediumUnknown:
		status.Medium = byDriver
		status.Evidence = fmt.Sprintf("the volume bound to %s is of the CSI driver %s", volume.Claim, volume.Driver)
	case volume.Local:
		status.Medium = v1alpha1.MediumNodeLocal
		status.Evidence = fmt.Sprintf("the volume bound to %s is a directory or disk of its node; the disk of a virtual machine may itself be on a network", volume.Claim)
	case volume.SingleNode && volume.Driver == "":
		status.Medium = v1alpha1.MediumNodeLocal
		status.Evidence = fmt.Sprintf("the volume bound to %s can only be used on one node", volume.Claim)
	case volume.SingleNode:
		status.Medium = v1alpha1.MediumNodeLocal
		status.Evidence = fmt.Sprintf("the volume bound to %s, of the CSI driver %s, can only be used on one node", volume.Claim, volume.Driver)
	default:
		status.Medium = Medium(status.Provisioner)
		status.Evidence = fmt.Sprintf("the volume bound to %s does not tell; the provisioner of its class is %s", volume.Claim, orNone(status.Provisioner))
	}
	result := Result{ClassName: volume.StorageClass, Status: status}
	if status.Medium == v1alpha1.MediumNetworkFile {
		result.State = part.Stalled(v1alpha1.ReasonStorageClassUnsuitable, fmt.Sprintf(
			"%s: a network file system cannot carry a database; make a second AuthStack on a block device or a node's disk and move the data by dump", status.Evidence))
		return result
	}
	result.State = part.Ready(fmt.Sprintf("StorageClass %s is on %s: %s", orNone(volume.StorageClass), status.Medium, status.Evidence))
	return result
}

func provisionerEvidence(class facts.StorageClass, medium v1alpha1.Medium) string {
	if medium == v1alpha1.MediumUnknown {
		return fmt.Sprintf("the provisioner %s does not tell what its volumes are on; a measurement does", class.Provisioner)
	}
	evidence := fmt.Sprintf("the provisioner is %s; a name is a hint, no volume is bound yet", class.Provisioner)
	if medium == v1alpha1.MediumNodeLocal {
		evidence += "; the disk of a virtual machine may itself be on a network"
	}
	return evidence
}

// suitable says whether a class can carry the database.
func suitable(class facts.StorageClass, medium v1alpha1.Medium, spec *v1alpha1.StorageSpec) part.State {
	if medium == v1alpha1.MediumNetworkFile {
		return part.Stalled(v1alpha1.ReasonStorageClassUnsuitable, fmt.Sprintf(
			"StorageClass %s provisions a network file system (%s), which cannot carry a database: locks and flushes are not reliable there; choose a block device or a node's disk in spec.postgres.storage",
			class.Name, class.Provisioner))
	}
	if spec.LocalNVMe != nil && !class.WaitForFirstConsumer {
		return part.Stalled(v1alpha1.ReasonStorageClassUnsuitable, fmt.Sprintf(
			"StorageClass %s binds its volumes at once and so may pick a node where the Pod cannot run; make one with volumeBindingMode: WaitForFirstConsumer",
			class.Name))
	}
	return part.Ready(fmt.Sprintf("StorageClass %s (%s) is on %s", class.Name, class.Provisioner, medium))
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// describe classes with their provisioners, for messages.
func describe(classes []facts.StorageClass) string {
	if len(classes) == 0 {
		return "there are none"
	}
	names := make([]string, 0, len(classes))
	for _, class := range classes {
		name := fmt.Sprintf("%s (%s)", class.Name, class.Provisioner)
		if class.Default {
			name = fmt.Sprintf("%s (%s, default)", class.Name, class.Provisioner)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) > 12 {
		names = append(names[:12], fmt.Sprintf("and %d more", len(classes)-12))
	}
	return strings.Join(names, ", ")
}

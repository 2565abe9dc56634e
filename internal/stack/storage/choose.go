package storage

import (
	"fmt"
	"slices"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/part"
)

// choose the class that the spec asks for; nil with the state that says why there is none.
func choose(classes []facts.StorageClass, spec *v1alpha1.StorageSpec) (*facts.StorageClass, part.State) {
	classes = slices.Clone(classes)
	slices.SortFunc(classes, func(a, b facts.StorageClass) int { return strings.Compare(a.Name, b.Name) })
	switch {
	case spec.StorageClassName != "":
		for i := range classes {
			if classes[i].Name == spec.StorageClassName {
				return &classes[i], part.State{}
			}
		}
		return nil, part.Stalled(v1alpha1.ReasonStorageClassMissing, fmt.Sprintf(
			"StorageClass %s of spec.postgres.storage.storageClassName does not exist; in the cluster: %s", spec.StorageClassName, describe(classes)))
	case spec.CephRBD != nil:
		return only(classes, byMedium(classes, v1alpha1.MediumCephRBD, false), "cephRBD",
			"no StorageClass is provisioned by Ceph RBD (Rook or ceph-csi)", "install Rook or ceph-csi")
	case spec.LocalNVMe != nil:
		fitting := byMedium(classes, v1alpha1.MediumNodeLocal, true)
		if len(fitting) == 0 {
			if immediate := byMedium(classes, v1alpha1.MediumNodeLocal, false); len(immediate) > 0 {
				return nil, part.Stalled(v1alpha1.ReasonStorageClassUnsuitable, fmt.Sprintf(
					"StorageClasses on the node's own disks exist, but bind their volumes at once and so may pick a node where the Pod cannot run: %s; make one with volumeBindingMode: WaitForFirstConsumer", describe(immediate)))
			}
		}
		return only(classes, fitting, "localNVMe", "no StorageClass provisions on the node's own disks",
			"install for example local-path-provisioner, OpenEBS LVM or TopoLVM")
	default:
		return defaultClass(classes)
	}
}

func byMedium(classes []facts.StorageClass, medium v1alpha1.Medium, waitForFirstConsumer bool) []facts.StorageClass {
	var fitting []facts.StorageClass
	for _, class := range classes {
		if Medium(class.Provisioner) == medium && (!waitForFirstConsumer || class.WaitForFirstConsumer) {
			fitting = append(fitting, class)
		}
	}
	return fitting
}

// only takes the one class that fits, or the default one among several.
func only(all, fitting []facts.StorageClass, field, missing, remedy string) (*facts.StorageClass, part.State) {
	if len(fitting) == 0 {
		return nil, part.Stalled(v1alpha1.ReasonStorageClassMissing, fmt.Sprintf(
			"%s; %s, or name a class in spec.postgres.storage.storageClassName; in the cluster: %s", missing, remedy, describe(all)))
	}
	if len(fitting) == 1 {
		return &fitting[0], part.State{}
	}
	var defaults []int
	for i := range fitting {
		if fitting[i].Default {
			defaults = append(defaults, i)
		}
	}
	if len(defaults) == 1 {
		return &fitting[defaults[0]], part.State{}
	}
	return nil, part.Stalled(v1alpha1.ReasonStorageClassAmbiguous, fmt.Sprintf(
		"several StorageClasses fit spec.postgres.storage.%s: %s; name one in spec.postgres.storage.storageClassName instead", field, describe(fitting)))
}

func defaultClass(classes []facts.StorageClass) (*facts.StorageClass, part.State) {
	var defaults []facts.StorageClass
	for _, class := range classes {
		if class.Default {
			defaults = append(defaults, class)
		}
	}
	switch len(defaults) {
	case 0:
		return nil, part.Stalled(v1alpha1.ReasonStorageClassMissing, fmt.Sprintf(
			"the cluster has no default StorageClass; set spec.postgres.storage to cephRBD, localNVMe or a storageClassName; in the cluster: %s", describe(classes)))
	case 1:
		return &defaults[0], part.State{}
	}
	return nil, part.Stalled(v1alpha1.ReasonStorageClassAmbiguous, fmt.Sprintf(
		"several StorageClasses are marked as default: %s; name one in spec.postgres.storage.storageClassName", describe(defaults)))
}

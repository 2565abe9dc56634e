// Package storage finds the StorageClass for what a stack asks, and says what its volumes are on.
package storage

import (
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
)

// provisioners tells the medium by the exact name of a provisioner or CSI driver
// (facts/postgres-ceph.md D6). A name is a hint: a node's disk may itself be on Ceph (D4, item 4).
var provisioners = map[string]v1alpha1.Medium{
	"rbd.csi.ceph.com":  v1alpha1.MediumCephRBD,
	"kubernetes.io/rbd": v1alpha1.MediumCephRBD,
	"ceph.com/rbd":      v1alpha1.MediumCephRBD,

	"cephfs.csi.ceph.com":                         v1alpha1.MediumNetworkFile,
	"nfs.csi.k8s.io":                              v1alpha1.MediumNetworkFile,
	"k8s-sigs.io/nfs-subdir-external-provisioner": v1alpha1.MediumNetworkFile,
	"efs.csi.aws.com":                             v1alpha1.MediumNetworkFile,
	"file.csi.azure.com":                          v1alpha1.MediumNetworkFile,
	"filestore.csi.storage.gke.io":                v1alpha1.MediumNetworkFile,
	"kubernetes.io/azure-file":                    v1alpha1.MediumNetworkFile,
	"kubernetes.io/cephfs":                        v1alpha1.MediumNetworkFile,
	"kubernetes.io/glusterfs":                     v1alpha1.MediumNetworkFile,
	"smb.csi.k8s.io":                              v1alpha1.MediumNetworkFile,
	"nfs.rook.io":                                 v1alpha1.MediumNetworkFile,

	"driver.longhorn.io":       v1alpha1.MediumNetworkBlock,
	"io.openebs.csi-mayastor":  v1alpha1.MediumNetworkBlock,
	"cstor.csi.openebs.io":     v1alpha1.MediumNetworkBlock,
	"linstor.csi.linbit.com":   v1alpha1.MediumNetworkBlock,
	"pxd.portworx.com":         v1alpha1.MediumNetworkBlock,
	"csi.trident.netapp.io":    v1alpha1.MediumNetworkBlock,
	"csi.vsphere.vmware.com":   v1alpha1.MediumNetworkBlock,
	"csi.san.synology.com":     v1alpha1.MediumNetworkBlock,
	"cinder.csi.openstack.org": v1alpha1.MediumNetworkBlock,

	"ebs.csi.aws.com":           v1alpha1.MediumCloudBlock,
	"pd.csi.storage.gke.io":     v1alpha1.MediumCloudBlock,
	"disk.csi.azure.com":        v1alpha1.MediumCloudBlock,
	"csi.hetzner.cloud":         v1alpha1.MediumCloudBlock,
	"dobs.csi.digitalocean.com": v1alpha1.MediumCloudBlock,
	"linodebs.csi.linode.com":   v1alpha1.MediumCloudBlock,
	"kubernetes.io/aws-ebs":     v1alpha1.MediumCloudBlock,
	"kubernetes.io/gce-pd":      v1alpha1.MediumCloudBlock,
	"kubernetes.io/azure-disk":  v1alpha1.MediumCloudBlock,

	"rancher.io/local-path":        v1alpha1.MediumNodeLocal,
	"openebs.io/local":             v1alpha1.MediumNodeLocal,
	"local.csi.openebs.io":         v1alpha1.MediumNodeLocal,
	"zfs.csi.openebs.io":           v1alpha1.MediumNodeLocal,
	"topolvm.io":                   v1alpha1.MediumNodeLocal,
	"topolvm.cybozu.com":           v1alpha1.MediumNodeLocal,
	"kubernetes.io/no-provisioner": v1alpha1.MediumNodeLocal,
	"local.csi.alibaba.com":        v1alpha1.MediumNodeLocal,
	"k8s.io/minikube-hostpath":     v1alpha1.MediumNodeLocal,
	"docker.io/hostpath":           v1alpha1.MediumNodeLocal,
	"hostpath.csi.k8s.io":          v1alpha1.MediumNodeLocal,
}

// suffixes and prefixes tell the medium of provisioners that carry an operator's namespace or a
// release name: Rook and OpenShift put the namespace before .rbd.csi.ceph.com (D1, D6).
var (
	suffixes = map[string]v1alpha1.Medium{
		".rbd.csi.ceph.com":    v1alpha1.MediumCephRBD,
		".cephfs.csi.ceph.com": v1alpha1.MediumNetworkFile,
		".nfs.csi.ceph.com":    v1alpha1.MediumNetworkFile,
	}
	prefixes = map[string]v1alpha1.Medium{
		"cluster.local/nfs-":  v1alpha1.MediumNetworkFile,
		"org.democratic-csi.": v1alpha1.MediumNetworkBlock,
	}
)

// Medium that a provisioner's or CSI driver's name hints at; Unknown where the name does not tell.
func Medium(provisioner string) v1alpha1.Medium {
	if medium, ok := provisioners[provisioner]; ok {
		return medium
	}
	for suffix, medium := range suffixes {
		if strings.HasSuffix(provisioner, suffix) {
			return medium
		}
	}
	for prefix, medium := range prefixes {
		if strings.HasPrefix(provisioner, prefix) {
			return medium
		}
	}
	return v1alpha1.MediumUnknown
}

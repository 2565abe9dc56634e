package storage

import (
	"strings"
	"testing"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/part"
)

var (
	rook    = facts.StorageClass{Name: "ceph-block", Provisioner: "rook-ceph.rbd.csi.ceph.com"}
	plain   = facts.StorageClass{Name: "ceph-hdd", Provisioner: "rbd.csi.ceph.com"}
	local   = facts.StorageClass{Name: "local-path", Provisioner: "rancher.io/local-path", WaitForFirstConsumer: true}
	eager   = facts.StorageClass{Name: "hostpath", Provisioner: "k8s.io/minikube-hostpath"}
	nfs     = facts.StorageClass{Name: "nfs", Provisioner: "nfs.csi.k8s.io"}
	proxmox = facts.StorageClass{Name: "pve", Provisioner: "csi.proxmox.sinextra.dev"}
)

func asDefault(class facts.StorageClass) facts.StorageClass {
	class.Default = true
	return class
}

func TestResolve(t *testing.T) {
	ceph := &v1alpha1.StorageSpec{CephRBD: &v1alpha1.CephRBDStorage{}}
	nvme := &v1alpha1.StorageSpec{LocalNVMe: &v1alpha1.LocalNVMeStorage{}}
	named := func(name string) *v1alpha1.StorageSpec { return &v1alpha1.StorageSpec{StorageClassName: name} }
	for sentence, test := range map[string]struct {
		spec    *v1alpha1.StorageSpec
		classes []facts.StorageClass
		volumes []facts.Volume
		class   string
		medium  v1alpha1.Medium
		reason  string
		says    []string
	}{
		"nothing given takes the default class":                 {nil, []facts.StorageClass{rook, asDefault(local)}, nil, "local-path", v1alpha1.MediumNodeLocal, v1alpha1.ReasonReady, nil},
		"without a default class the message lists them":        {nil, []facts.StorageClass{rook, local}, nil, "", "", v1alpha1.ReasonStorageClassMissing, []string{"ceph-block (rook-ceph.rbd.csi.ceph.com)", "local-path (rancher.io/local-path)"}},
		"two defaults are ambiguous":                            {nil, []facts.StorageClass{asDefault(rook), asDefault(local)}, nil, "", "", v1alpha1.ReasonStorageClassAmbiguous, []string{"ceph-block", "local-path"}},
		"an empty cluster says so":                              {nil, nil, nil, "", "", v1alpha1.ReasonStorageClassMissing, []string{"there are none"}},
		"cephRBD finds Rook's class by its provisioner":         {ceph, []facts.StorageClass{local, rook}, nil, "ceph-block", v1alpha1.MediumCephRBD, v1alpha1.ReasonReady, nil},
		"cephRBD finds none":                                    {ceph, []facts.StorageClass{local}, nil, "", "", v1alpha1.ReasonStorageClassMissing, []string{"Ceph RBD", "local-path (rancher.io/local-path)"}},
		"several Ceph classes are ambiguous":                    {ceph, []facts.StorageClass{rook, plain}, nil, "", "", v1alpha1.ReasonStorageClassAmbiguous, []string{"ceph-block", "ceph-hdd"}},
		"several Ceph classes, one of them the default":         {ceph, []facts.StorageClass{rook, asDefault(plain)}, nil, "ceph-hdd", v1alpha1.MediumCephRBD, v1alpha1.ReasonReady, nil},
		"localNVMe wants WaitForFirstConsumer":                  {nvme, []facts.StorageClass{eager}, nil, "", "", v1alpha1.ReasonStorageClassUnsuitable, []string{"WaitForFirstConsumer", "hostpath"}},
		"localNVMe passes over a class that binds at once":      {nvme, []facts.StorageClass{eager, local}, nil, "local-path", v1alpha1.MediumNodeLocal, v1alpha1.ReasonReady, nil},
		"localNVMe finds none":                                  {nvme, []facts.StorageClass{rook}, nil, "", "", v1alpha1.ReasonStorageClassMissing, []string{"TopoLVM"}},
		"a class by name":                                       {named("pve"), []facts.StorageClass{proxmox, asDefault(local)}, nil, "pve", v1alpha1.MediumUnknown, v1alpha1.ReasonReady, nil},
		"a class by a name that does not exist":                 {named("fast"), []facts.StorageClass{local}, nil, "", "", v1alpha1.ReasonStorageClassMissing, []string{"fast", "local-path"}},
		"NFS cannot carry a database":                           {named("nfs"), []facts.StorageClass{nfs}, nil, "nfs", v1alpha1.MediumNetworkFile, v1alpha1.ReasonStorageClassUnsuitable, []string{"network file system"}},
		"NFS as the default class cannot either":                {nil, []facts.StorageClass{asDefault(nfs)}, nil, "nfs", v1alpha1.MediumNetworkFile, v1alpha1.ReasonStorageClassUnsuitable, nil},
		"the bound volume's driver beats the class's name":      {named("pve"), []facts.StorageClass{{Name: "pve", Provisioner: "rancher.io/local-path"}}, []facts.Volume{{Claim: "data-0", StorageClass: "pve", Driver: "rbd.csi.ceph.com"}}, "pve", v1alpha1.MediumCephRBD, v1alpha1.ReasonReady, nil},
		"a bound volume keeps its class when the default moves": {nil, []facts.StorageClass{asDefault(local), rook}, []facts.Volume{{Claim: "data-0", StorageClass: "ceph-block", Driver: "rook-ceph.rbd.csi.ceph.com"}}, "ceph-block", v1alpha1.MediumCephRBD, v1alpha1.ReasonReady, nil},
		"a bound local volume is the node's":                    {named("pve"), []facts.StorageClass{proxmox}, []facts.Volume{{Claim: "data-0", StorageClass: "pve", Local: true}}, "pve", v1alpha1.MediumNodeLocal, v1alpha1.ReasonReady, []string{"virtual machine"}},
		"a volume of one node is the node's":                    {named("pve"), []facts.StorageClass{proxmox}, []facts.Volume{{Claim: "data-0", StorageClass: "pve", Driver: "csi.proxmox.sinextra.dev", SingleNode: true}}, "pve", v1alpha1.MediumNodeLocal, v1alpha1.ReasonReady, nil},
		"a volume that does not tell is unknown":                {named("pve"), []facts.StorageClass{proxmox}, []facts.Volume{{Claim: "data-0", StorageClass: "pve", Driver: "csi.proxmox.sinextra.dev"}}, "pve", v1alpha1.MediumUnknown, v1alpha1.ReasonReady, nil},
		"other claims' volumes say nothing":                     {nil, []facts.StorageClass{asDefault(local)}, []facts.Volume{{Claim: "data-9", StorageClass: "ceph-block", Driver: "rbd.csi.ceph.com"}}, "local-path", v1alpha1.MediumNodeLocal, v1alpha1.ReasonReady, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := part.Input{Facts: facts.Stack{StorageClasses: test.classes, Volumes: test.volumes}}
			got := Resolve(in, test.spec, []string{"data-0"})
			if got.ClassName != test.class || got.State.Reason != test.reason {
				t.Errorf("class %q, state %+v; want %q, %s", got.ClassName, got.State, test.class, test.reason)
			}
			if test.medium != "" && (got.Status == nil || got.Status.Medium != test.medium) {
				t.Errorf("status %+v, want medium %s", got.Status, test.medium)
			}
			if got.State.Ready == got.State.Stalled {
				t.Errorf("what is wrong with storage only a person can put right: %+v", got.State)
			}
			for _, words := range test.says {
				if !strings.Contains(got.State.Message, words) {
					t.Errorf("the message lacks %q: %s", words, got.State.Message)
				}
			}
		})
	}
}

func TestMediumOfProvisioner(t *testing.T) {
	for provisioner, want := range map[string]v1alpha1.Medium{
		"openshift-storage.rbd.csi.ceph.com": v1alpha1.MediumCephRBD, "rook-ceph.cephfs.csi.ceph.com": v1alpha1.MediumNetworkFile,
		"cluster.local/nfs-client-provisioner": v1alpha1.MediumNetworkFile, "org.democratic-csi.iscsi": v1alpha1.MediumNetworkBlock,
		"csi.hetzner.cloud": v1alpha1.MediumCloudBlock, "topolvm.io": v1alpha1.MediumNodeLocal, "csi.example.com": v1alpha1.MediumUnknown, "": v1alpha1.MediumUnknown,
	} {
		if got := Medium(provisioner); got != want {
			t.Errorf("%q is %s, want %s", provisioner, got, want)
		}
	}
}

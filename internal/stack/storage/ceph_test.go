package storage

import (
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/part"
)

var (
	healthy = facts.CephCluster{Namespace: "rook-ceph", Name: "rook-ceph", Phase: "Ready", Health: "HEALTH_OK"}
	warned  = facts.CephCluster{Namespace: "rook-ceph", Name: "rook-ceph", Phase: "Ready", Health: "HEALTH_WARN", Problems: map[string]string{"OSD_DOWN": "1 osds down"}}
	broken  = facts.CephCluster{Namespace: "rook-ceph", Name: "rook-ceph", Phase: "Ready", Health: "HEALTH_ERR", Problems: map[string]string{"OSD_FULL": "2 full osd(s)"}}
	hanging = facts.CephCluster{Namespace: "rook-ceph", Name: "rook-ceph", Phase: "Ready", Health: "HEALTH_WARN",
		Problems: map[string]string{"PG_AVAILABILITY": "Reduced data availability: 33 pgs inactive"}}
	external = facts.CephCluster{Namespace: "rook-ceph", Name: "far", Phase: "Connected", Health: "HEALTH_OK"}
	rookPool = facts.StorageClass{Name: "ceph-block", Provisioner: "rook-ceph.rbd.csi.ceph.com", Parameters: map[string]string{"clusterID": "rook-ceph", "pool": "replicapool"}}
)

func poolIn(phase string) facts.CephPool {
	return facts.CephPool{Namespace: "rook-ceph", Name: "replicapool", Phase: phase}
}

func TestCephBelowAClass(t *testing.T) {
	byFSID := rookPool
	byFSID.Parameters = map[string]string{"clusterID": "b9127830-b0cc-4e34-aa47-9d1a2e9949a8", "pool": "kubernetes"}
	bound := []facts.Volume{{Claim: "data-0", StorageClass: "gone", Driver: "rook-ceph.rbd.csi.ceph.com",
		Attributes: map[string]string{"clusterID": "rook-ceph", "pool": "replicapool"}}}
	for sentence, test := range map[string]struct {
		class   facts.StorageClass
		ceph    *facts.Ceph
		volumes []facts.Volume
		reason  string
		stalled bool
		says    string
	}{
		"without Rook's resources nothing is checked": {rookPool, nil, nil, v1alpha1.ReasonReady, false, "were not checked"},
		"a pool that is Ready":                        {rookPool, &facts.Ceph{Clusters: []facts.CephCluster{healthy}, Pools: []facts.CephPool{poolIn("Ready")}}, nil, v1alpha1.ReasonReady, false, "replicapool is Ready"},
		"a warning is no reason":                      {rookPool, &facts.Ceph{Clusters: []facts.CephCluster{warned}, Pools: []facts.CephPool{poolIn("Ready")}}, nil, v1alpha1.ReasonReady, false, "HEALTH_WARN"},
		"a pool in Failure is refused":                {rookPool, &facts.Ceph{Clusters: []facts.CephCluster{healthy}, Pools: []facts.CephPool{poolIn("Failure")}}, nil, v1alpha1.ReasonCephPoolNotReady, true, "choose another class"},
		"a pool that is deleted is refused":           {rookPool, &facts.Ceph{Clusters: []facts.CephCluster{healthy}, Pools: []facts.CephPool{poolIn("Deleting")}}, nil, v1alpha1.ReasonCephPoolNotReady, true, "Deleting"},
		"a pool on its way is waited for":             {rookPool, &facts.Ceph{Clusters: []facts.CephCluster{healthy}, Pools: []facts.CephPool{poolIn("Progressing")}}, nil, v1alpha1.ReasonCephPoolNotReady, false, "Progressing"},
		"a pool that Rook has not seen is waited for": {rookPool, &facts.Ceph{Clusters: []facts.CephCluster{healthy}, Pools: []facts.CephPool{poolIn("")}}, nil, v1alpha1.ReasonCephPoolNotReady, false, "waiting for Rook"},
		"HEALTH_ERR is waited for":                    {rookPool, &facts.Ceph{Clusters: []facts.CephCluster{broken}, Pools: []facts.CephPool{poolIn("Ready")}}, nil, v1alpha1.ReasonCephUnhealthy, false, "2 full osd(s)"},
		"data that is not available is waited for, though it is a warning": {rookPool, &facts.Ceph{Clusters: []facts.CephCluster{hanging}, Pools: []facts.CephPool{poolIn("Ready")}}, nil,
			v1alpha1.ReasonCephUnhealthy, false, "33 pgs inactive"},
		"a pool that Rook did not make is taken": {rookPool, &facts.Ceph{Clusters: []facts.CephCluster{external}}, nil, v1alpha1.ReasonReady, false, "was not made through Rook"},
		"Ceph beside Rook is taken":              {byFSID, &facts.Ceph{Clusters: []facts.CephCluster{broken}}, nil, v1alpha1.ReasonReady, false, "were not checked"},
		"the bound volume names the pool, not a class": {facts.StorageClass{}, &facts.Ceph{Clusters: []facts.CephCluster{hanging}}, bound,
			v1alpha1.ReasonCephUnhealthy, false, "33 pgs inactive"},
		"what a live database is on is never refused": {rookPool, &facts.Ceph{Clusters: []facts.CephCluster{healthy}, Pools: []facts.CephPool{poolIn("Failure")}}, bound,
			v1alpha1.ReasonCephPoolNotReady, false, "Failure"},
		"Rook looking at the pool of a live database is no reason": {rookPool, &facts.Ceph{Clusters: []facts.CephCluster{healthy}, Pools: []facts.CephPool{poolIn("Progressing")}}, bound,
			v1alpha1.ReasonReady, false, "Ready"},
	} {
		t.Run(sentence, func(t *testing.T) {
			classes := []facts.StorageClass{}
			if test.class.Name != "" {
				classes = append(classes, test.class)
			}
			in := part.Input{Facts: facts.Stack{StorageClasses: classes, Ceph: test.ceph, Volumes: test.volumes}}
			got := Resolve(in, &v1alpha1.StorageSpec{CephRBD: &v1alpha1.CephRBDStorage{}}, []string{"data-0"})
			if got.State.Reason != test.reason || got.State.Stalled != test.stalled || got.State.Ready != (test.reason == v1alpha1.ReasonReady) {
				t.Errorf("the state is %+v", got.State)
			}
			if got.Status == nil || !strings.Contains(got.Status.Ceph, test.says) {
				t.Errorf("the status does not say %q: %+v", test.says, got.Status)
			}
			if !got.State.Ready && !strings.Contains(got.State.Message, test.says) {
				t.Errorf("the message does not say %q: %s", test.says, got.State.Message)
			}
		})
	}
}

func TestAPoolOfItsOwn(t *testing.T) {
	st := &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Namespace: "login", Name: "sso"}}
	usual := []string{"rook-ceph.rbd.csi.ceph.com"}
	other := facts.CephCluster{Namespace: "second", Name: "second", Health: "HEALTH_OK"}
	mine := facts.CephPool{Namespace: "rook-ceph", Name: "sso", Phase: "Ready", Owner: "login/sso"}
	for sentence, test := range map[string]struct {
		ceph    *facts.Ceph
		classes []facts.StorageClass
		spec    v1alpha1.CephBlockPoolSpec
		reason  string
		made    bool
		says    string
	}{
		"without Rook it is refused":          {nil, nil, v1alpha1.CephBlockPoolSpec{}, v1alpha1.ReasonRookMissing, false, "remove blockPool"},
		"without a CephCluster it is refused": {&facts.Ceph{Drivers: usual}, nil, v1alpha1.CephBlockPoolSpec{}, v1alpha1.ReasonRookMissing, false, "no CephCluster"},
		"one cluster is taken":                {&facts.Ceph{Clusters: []facts.CephCluster{healthy}, Drivers: usual}, nil, v1alpha1.CephBlockPoolSpec{}, v1alpha1.ReasonCephPoolNotReady, true, "waiting for Rook"},
		"of two clusters one is to be named":  {&facts.Ceph{Clusters: []facts.CephCluster{healthy, other}, Drivers: usual}, nil, v1alpha1.CephBlockPoolSpec{}, v1alpha1.ReasonInvalidSpec, false, "rook-ceph/rook-ceph, second/second"},
		"the named one of two is taken":       {&facts.Ceph{Clusters: []facts.CephCluster{healthy, other}, Drivers: usual}, nil, v1alpha1.CephBlockPoolSpec{Namespace: "rook-ceph"}, v1alpha1.ReasonCephPoolNotReady, true, ""},
		"a cluster that does not exist":       {&facts.Ceph{Clusters: []facts.CephCluster{healthy}, Drivers: usual}, nil, v1alpha1.CephBlockPoolSpec{Namespace: "ceph"}, v1alpha1.ReasonInvalidSpec, false, "in the cluster: rook-ceph/rook-ceph"},
		"the driver is waited for":            {&facts.Ceph{Clusters: []facts.CephCluster{healthy}}, nil, v1alpha1.CephBlockPoolSpec{}, v1alpha1.ReasonRookMissing, false, "rook-ceph.rbd.csi.ceph.com"},
		"in a sick cluster nothing is made":   {&facts.Ceph{Clusters: []facts.CephCluster{broken}, Drivers: usual}, nil, v1alpha1.CephBlockPoolSpec{}, v1alpha1.ReasonCephUnhealthy, false, "HEALTH_ERR"},
		"its own pool is Ready":               {&facts.Ceph{Clusters: []facts.CephCluster{healthy}, Drivers: usual, Pools: []facts.CephPool{mine}}, nil, v1alpha1.CephBlockPoolSpec{}, v1alpha1.ReasonReady, true, "Ready"},
		"somebody's pool is not taken over":   {&facts.Ceph{Clusters: []facts.CephCluster{healthy}, Drivers: usual, Pools: []facts.CephPool{{Namespace: "rook-ceph", Name: "sso", Phase: "Ready"}}}, nil, v1alpha1.CephBlockPoolSpec{}, v1alpha1.ReasonInvalidSpec, false, "was not made by this operator"},
		"a namesake's pool is not taken over": {&facts.Ceph{Clusters: []facts.CephCluster{healthy}, Drivers: usual, Pools: []facts.CephPool{{Namespace: "rook-ceph", Name: "sso", Owner: "other/sso"}}}, nil, v1alpha1.CephBlockPoolSpec{}, v1alpha1.ReasonInvalidSpec, false, "belongs to AuthStack other/sso"},
		"a class of that name is not either":  {&facts.Ceph{Clusters: []facts.CephCluster{healthy}, Drivers: usual}, []facts.StorageClass{{Name: "sso"}}, v1alpha1.CephBlockPoolSpec{}, v1alpha1.ReasonInvalidSpec, false, "StorageClass sso"},
		"a pool of that name elsewhere is":    {&facts.Ceph{Clusters: []facts.CephCluster{healthy}, Drivers: usual, Pools: []facts.CephPool{{Namespace: "second", Name: "sso"}}}, nil, v1alpha1.CephBlockPoolSpec{}, v1alpha1.ReasonCephPoolNotReady, true, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			test.spec.Name = "sso"
			in := part.Input{Stack: st, Facts: facts.Stack{Ceph: test.ceph, StorageClasses: test.classes}}
			got := Resolve(in, &v1alpha1.StorageSpec{CephRBD: &v1alpha1.CephRBDStorage{BlockPool: &test.spec}}, nil)
			if got.State.Reason != test.reason || (len(got.Objects) == 2) != test.made || !strings.Contains(got.State.Message, test.says) {
				t.Errorf("%d objects and the state %+v", len(got.Objects), got.State)
			}
		})
	}
}

func TestObjectsOfAPool(t *testing.T) {
	st := &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Namespace: "login", Name: "sso"}}
	in := part.Input{Stack: st, Facts: facts.Stack{Ceph: &facts.Ceph{Clusters: []facts.CephCluster{healthy}, Drivers: []string{"authn.rbd.csi.ceph.com"}}}}
	got := Resolve(in, &v1alpha1.StorageSpec{CephRBD: &v1alpha1.CephRBDStorage{BlockPool: &v1alpha1.CephBlockPoolSpec{Name: "sso", Replicas: ptr.To(int32(1)), FailureDomain: "osd"}}}, nil)
	pool, class := got.Objects[0].(*unstructured.Unstructured), got.Objects[1].(*storagev1.StorageClass)
	safe, _, _ := unstructured.NestedBool(pool.Object, "spec", "replicated", "requireSafeReplicaSize")
	size, _, _ := unstructured.NestedInt64(pool.Object, "spec", "replicated", "size")
	domain, _, _ := unstructured.NestedString(pool.Object, "spec", "failureDomain")
	if safe || size != 1 || domain != "osd" || pool.GetNamespace() != "rook-ceph" || pool.GetAnnotations()[OwnerAnnotation] != "login/sso" {
		t.Errorf("the pool is %v", pool.Object)
	}
	if class.Provisioner != "authn.rbd.csi.ceph.com" || class.Parameters["pool"] != "sso" || class.Parameters["clusterID"] != "rook-ceph" ||
		class.Parameters["csi.storage.k8s.io/node-stage-secret-name"] != "rook-csi-rbd-node" || class.Annotations[OwnerAnnotation] != "login/sso" {
		t.Errorf("the class is %+v", class)
	}
	if len(pool.GetOwnerReferences())+len(class.OwnerReferences) != 0 {
		t.Error("an owner reference cannot cross namespaces")
	}
}

package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"authstack.dev/authstack/api/v1alpha1"
)

// town is a world with the namespaces that comparisons make, and with stand-ins for what works on them
// in a cluster: the controller of namespaces, and a provisioner whose class keeps volumes.
type town struct {
	*world
	// stuck volumes are not deleted by the provisioner.
	stuck bool
}

func newTown(t *testing.T) *town {
	t.Helper()
	w := &town{world: newWorld(t)}
	w.create(func(st *v1alpha1.AuthStack) {
		st.Spec.Latency = &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual}
		st.Spec.Suspend = true // The base is only read.
	})
	t.Cleanup(func() {
		for _, namespace := range w.variants() {
			w.at(namespace.Name).forgetTests()
		}
	})
	return w
}

// at is the same world in another namespace.
func (w *town) at(namespace string) *world {
	there := *w.world
	there.namespace = namespace
	return &there
}

// variants are the namespaces that comparisons of this town made.
func (w *town) variants() []corev1.Namespace {
	var namespaces corev1.NamespaceList
	// A clean-up asks when the test's own context is done.
	if err := server.List(context.Background(), &namespaces, client.MatchingLabels{v1alpha1.ComparisonNamespaceLabel: w.namespace}); err != nil {
		w.t.Fatal(err)
	}
	return namespaces.Items
}

func (w *town) step() error {
	ctx := w.t.Context()
	var failed error
	var comparisons v1alpha1.LatencyComparisonList
	w.list(&comparisons)
	for i := range comparisons.Items {
		_, err := w.comparisons.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&comparisons.Items[i])})
		failed = errors.Join(failed, err)
	}
	for _, namespace := range w.variants() {
		there := w.at(namespace.Name)
		failed = errors.Join(failed, there.step())
		w.provision(&namespace)
		w.endNamespace(&namespace)
	}
	w.now = w.now.Add(3 * time.Second)
	time.Sleep(2 * time.Millisecond) // ANALYZE runs aside.
	return failed
}

func (w *town) until(what string, holds func() bool) {
	w.t.Helper()
	var last error
	for range 300 {
		if holds() {
			return
		}
		last = w.step()
	}
	w.t.Fatalf("it never came about: %s; the last error was %v\n%s", what, last, w.describe())
}

func (w *town) describe() string {
	var out strings.Builder
	var comparisons v1alpha1.LatencyComparisonList
	w.list(&comparisons)
	for _, c := range comparisons.Items {
		for _, condition := range c.Status.Conditions {
			fmt.Fprintf(&out, "LatencyComparison %s %s=%s %s: %s\n", c.Name, condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	for _, namespace := range w.variants() {
		fmt.Fprintf(&out, "namespace %s, deleted %v\n%s", namespace.Name, namespace.DeletionTimestamp, w.at(namespace.Name).describe())
	}
	return out.String()
}

// provision gives each StatefulSet of a variant its claims, and each claim a volume that its class
// would keep; a released volume that may go is deleted.
func (w *town) provision(namespace *corev1.Namespace) {
	ctx := w.t.Context()
	var sets appsv1.StatefulSetList
	w.must(server.List(ctx, &sets, client.InNamespace(namespace.Name)))
	for i := range sets.Items {
		if !namespace.DeletionTimestamp.IsZero() {
			break
		}
		for _, template := range sets.Items[i].Spec.VolumeClaimTemplates {
			name := fmt.Sprintf("%s-%s-0", template.Name, sets.Items[i].Name)
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: name, Labels: template.Labels}, Spec: template.Spec}
			claim.Spec.VolumeName = "pv-" + namespace.Name + "-" + name
			if err := server.Create(ctx, claim); apierrors.IsAlreadyExists(err) {
				continue
			} else {
				w.must(err)
			}
			volume := &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName, Annotations: map[string]string{provisionedBy: "example.com/keeps"}},
				Spec: corev1.PersistentVolumeSpec{
					Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: claim.Spec.AccessModes,
					PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: "local-path",
					PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp/nowhere"}},
					ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: namespace.Name, Name: name},
				},
			}
			w.must(server.Create(ctx, volume))
		}
	}
	for _, volume := range w.volumes(namespace.Name) {
		ref := volume.Spec.ClaimRef
		err := server.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, &corev1.PersistentVolumeClaim{})
		if apierrors.IsNotFound(err) && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && !w.stuck {
			w.discard(&volume)
		}
	}
}

// volumes of the claims of a namespace; of any variant of this town where it is empty.
func (w *town) volumes(namespace string) []corev1.PersistentVolume {
	var volumes corev1.PersistentVolumeList
	w.must(server.List(w.t.Context(), &volumes))
	var found []corev1.PersistentVolume
	for _, volume := range volumes.Items {
		if ref := volume.Spec.ClaimRef; ref != nil && ref.Namespace == namespace {
			found = append(found, volume)
		}
	}
	return found
}

// discard deletes an object whatever finalizers it has, as the controllers do that own them.
func (w *town) discard(obj client.Object) {
	ctx := w.t.Context()
	if len(obj.GetFinalizers()) > 0 {
		before := obj.DeepCopyObject().(client.Object)
		obj.SetFinalizers(nil)
		w.must(client.IgnoreNotFound(server.Patch(ctx, obj, client.MergeFrom(before))))
	}
	w.must(client.IgnoreNotFound(server.Delete(ctx, obj, client.GracePeriodSeconds(0))))
}

// endNamespace is the controller of namespaces, and the garbage collector of what a deleted stack owned.
func (w *town) endNamespace(namespace *corev1.Namespace) {
	ctx := w.t.Context()
	var stacks v1alpha1.AuthStackList
	w.must(server.List(ctx, &stacks, client.InNamespace(namespace.Name)))
	ending := &corev1.Namespace{}
	if err := server.Get(ctx, client.ObjectKeyFromObject(namespace), ending); err != nil || ending.DeletionTimestamp.IsZero() {
		w.must(client.IgnoreNotFound(err))
		return
	}
	var tests v1alpha1.LatencyTestList
	w.must(server.List(ctx, &tests, client.InNamespace(namespace.Name)))
	if len(stacks.Items)+len(tests.Items) > 0 {
		w.t.Errorf("namespace %s was deleted over a stack or a test, which then cannot clean up", namespace.Name)
	}
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.PodList{},
		&policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}, &batchv1.JobList{}, &corev1.PersistentVolumeClaimList{},
	} {
		w.must(server.List(ctx, list, client.InNamespace(namespace.Name)))
		w.must(meta.EachListItem(list, func(item runtime.Object) error {
			w.discard(item.(client.Object))
			return nil
		}))
	}
	w.provision(ending)
	ending.Spec.Finalizers = nil
	w.must(client.IgnoreNotFound(server.SubResource("finalize").Update(ctx, ending)))
}

// compare makes a comparison of two durabilities, in two rounds.
func (w *town) compare(change ...func(*v1alpha1.LatencyComparison)) {
	w.t.Helper()
	c := &v1alpha1.LatencyComparison{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "media"}}
	c.Spec.StackRef.Name = "sso"
	c.Spec.Variants = []v1alpha1.ComparisonVariant{{Name: "strict"}, {Name: "relaxed", Patch: &runtime.RawExtension{Raw: []byte(`{"postgres":{"durability":"Relaxed"}}`)}}}
	c.Spec.Rounds, c.Spec.WarmUpRounds, c.Spec.SettleSeconds = new(int32(2)), new(int32(0)), new(int32(0))
	for _, f := range change {
		f(c)
	}
	w.must(server.Create(w.t.Context(), c))
}

func (w *town) comparison() *v1alpha1.LatencyComparison {
	w.t.Helper()
	c := &v1alpha1.LatencyComparison{}
	w.must(server.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "media"}, c))
	return c
}

// over is whether the comparison has its verdict and nothing of it is left.
func (w *town) over() bool {
	c := w.comparison()
	return c.Status.Verdict != "" && !controllerutil.ContainsFinalizer(c, v1alpha1.Finalizer) && c.Status.Progress == "done"
}

func (w *town) nothingLeft(known []string) {
	w.t.Helper()
	if left := w.variants(); len(left) > 0 {
		w.t.Errorf("%d namespaces are left, the first is %s", len(left), left[0].Name)
	}
	for _, namespace := range known {
		if left := w.volumes(namespace); len(left) > 0 {
			w.t.Errorf("%d volumes of namespace %s are left", len(left), namespace)
		}
	}
	if len(w.users.held) > 0 {
		w.t.Errorf("test users are left: %v", w.users.held)
	}
}

func requestFor(namespace, name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

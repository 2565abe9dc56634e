package controllers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/stack"
)

// world is a namespace of a real API server with an operator that is stepped by hand, a clock, and a
// stand-in for the controllers and the kubelet that an API server alone does not have.
type world struct {
	t         testing.TB
	namespace string
	now       time.Time
	client    client.Client
	writes    int
	// written are the last writes.
	written []string
	// fault is asked before and after each write; an error takes the place of the answer.
	fault     func(write int, verb string, done bool) error
	readFault func() error
	database  *fakeDatabases
	users     *fakeUsers
	logs      *fakeLogs
	events    *recordedEvents
	stacks    *AuthStackReconciler
	tests     *LatencyTestReconciler
	// comparisons are looked at by a town only; see there.
	comparisons *LatencyComparisonReconciler
	// idle stops the kubelet.
	idle bool
	// k6 says how the Pod of a Job ends, prober how that of a storage probe.
	k6, prober func(*corev1.Pod)
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, namespace: newNamespace(t), now: time.Now().UTC().Truncate(time.Second), events: &recordedEvents{}}
	w.database, w.users, w.logs = newFakeDatabases(server), &fakeUsers{held: map[string]string{}}, &fakeLogs{each: 300 * time.Millisecond}
	ensureStorageClass(t)
	w.client = interceptor.NewClient(server, w.funcs())
	w.restart()
	t.Cleanup(w.forgetTests)
	return w
}

// forgetTests takes the tests away that are left, since one at a time runs on a cluster and all worlds
// share one.
func (w *world) forgetTests() {
	ctx := context.Background()
	var tests v1alpha1.LatencyTestList
	if err := server.List(ctx, &tests, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	for i := range tests.Items {
		test := &tests.Items[i]
		before := test.DeepCopy()
		test.Finalizers = nil
		if err := errors.Join(client.IgnoreNotFound(server.Patch(ctx, test, client.MergeFrom(before))), client.IgnoreNotFound(server.Delete(ctx, test))); err != nil {
			w.t.Error(err)
		}
	}
}

var storageClassOnce sync.Once

func ensureStorageClass(t testing.TB) {
	storageClassOnce.Do(func() {
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local-path", Annotations: map[string]string{defaultClassAnnotation: "true"}},
			Provisioner: "rancher.io/local-path", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
		if err := server.Create(context.Background(), class); err != nil {
			t.Fatal(err)
		}
	})
}

// restart is a new operator that remembers nothing.
func (w *world) restart() {
	w.stacks = &AuthStackReconciler{Images: stack.Images{Probe: "authstack.dev/probe:dev"}, Client: w.client, Reader: w.client, Recorder: w.events, Database: w.database, Logs: w.logs,
		Now: func() time.Time { return w.now }, Random: rand.Reader}
	w.stacks.applier, w.stacks.analyses, w.stacks.commits = kube.NewApplier(w.client), newAnalyses(w.t.Context()), newCommits(w.t.Context())
	w.tests = &LatencyTestReconciler{Client: w.client, Reader: w.client, Recorder: w.events, Logs: w.logs, Users: w.users, Database: w.database,
		Now: func() time.Time { return w.now }, Random: rand.Reader}
	w.tests.applier = kube.NewApplier(w.client)
	w.comparisons = &LatencyComparisonReconciler{Client: w.client, Reader: w.client, Recorder: w.events, Now: func() time.Time { return w.now }}
	w.comparisons.applier = kube.NewApplier(w.client)
}

// write passes a write on, between the two chances of a fault.
func (w *world) write(verb string, do func() error) error {
	w.writes++
	n := w.writes
	w.written = append(w.written, verb)
	if w.fault != nil {
		if err := w.fault(n, verb, false); err != nil {
			return err
		}
	}
	err := do()
	if w.fault != nil && err == nil {
		if late := w.fault(n, verb, true); late != nil {
			return late
		}
	}
	return err
}

func (w *world) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if w.readFault != nil {
				if err := w.readFault(); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, obj, opts...)
		},
		// An API server without the manager's cache has no index over a test's stack.
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if w.readFault != nil {
				if err := w.readFault(); err != nil {
					return err
				}
			}
			var plain []client.ListOption
			var stackName string
			for _, opt := range opts {
				if fields, ok := opt.(client.MatchingFields); ok {
					stackName = fields[stackIndex]
					continue
				}
				plain = append(plain, opt)
			}
			switch list.(type) {
			case *v1alpha1.AuthStackList, *batchv1.JobList:
				// The other namespaces of this API server are other tests' clusters.
				plain = append([]client.ListOption{client.InNamespace(w.namespace)}, plain...)
			}
			err := c.List(ctx, list, plain...)
			if tests, ok := list.(*v1alpha1.LatencyTestList); ok && stackName != "" {
				kept := tests.Items[:0]
				for _, test := range tests.Items {
					if test.Spec.StackRef.Name == stackName {
						kept = append(kept, test)
					}
				}
				tests.Items = kept
			}
			return err
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return w.write("create "+obj.GetName(), func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return w.write("update "+obj.GetName(), func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return w.write("patch "+obj.GetName(), func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			applied := obj.(interface{ GetName() string })
			return w.write("apply "+applied.GetName(), func() error { return c.Apply(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return w.write("delete "+obj.GetName(), func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.write("patch "+sub+" "+obj.GetName(), func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	}
}

// step is one look of the operator at everything, one of the kubelet, and three seconds.
func (w *world) step() error {
	ctx := w.t.Context()
	var stacks v1alpha1.AuthStackList
	w.must(server.List(ctx, &stacks, client.InNamespace(w.namespace)))
	var failed error
	for i := range stacks.Items {
		if _, err := w.stacks.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&stacks.Items[i])}); err != nil {
			failed = err
		}
	}
	var tests v1alpha1.LatencyTestList
	w.must(server.List(ctx, &tests, client.InNamespace(w.namespace)))
	for i := range tests.Items {
		if _, err := w.tests.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&tests.Items[i])}); err != nil {
			failed = err
		}
	}
	if !w.idle {
		w.kubelet()
	}
	w.now = w.now.Add(3 * time.Second)
	return failed
}

// until steps until the condition holds.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	var last error
	for range 120 {
		if holds() {
			return
		}
		last = w.step()
		time.Sleep(2 * time.Millisecond) // ANALYZE runs aside.
	}
	w.t.Fatalf("it never came about: %s; the last error was %v\n%s", what, last, w.describe())
}

// settle steps until three looks in a row write nothing.
func (w *world) settle() {
	w.t.Helper()
	quiet := 0
	for range 150 {
		before := w.writes
		err := w.step()
		time.Sleep(2 * time.Millisecond)
		if w.writes == before && err == nil {
			quiet++
		} else {
			quiet = 0
		}
		if quiet == 3 {
			return
		}
	}
	w.t.Fatalf("the operator goes on writing %v\n%s", w.written[max(0, len(w.written)-20):], w.describe())
}

func (w *world) describe() string {
	var out strings.Builder
	var stacks v1alpha1.AuthStackList
	w.must(server.List(w.t.Context(), &stacks, client.InNamespace(w.namespace)))
	for _, st := range stacks.Items {
		for _, c := range st.Status.Conditions {
			fmt.Fprintf(&out, "AuthStack %s %s=%s %s: %s\n", st.Name, c.Type, c.Status, c.Reason, c.Message)
		}
	}
	var tests v1alpha1.LatencyTestList
	w.must(server.List(w.t.Context(), &tests, client.InNamespace(w.namespace)))
	for _, test := range tests.Items {
		for _, c := range test.Status.Conditions {
			fmt.Fprintf(&out, "LatencyTest %s %s=%s %s: %s\n", test.Name, c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return out.String()
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// create makes a stack; the smallest one where nothing is changed.
func (w *world) create(change ...func(*v1alpha1.AuthStack)) *v1alpha1.AuthStack {
	w.t.Helper()
	st := &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sso"},
		Spec: v1alpha1.AuthStackSpec{Host: "sso.example.com", Authentik: &v1alpha1.AuthentikSpec{Version: "2025.12.4"}}}
	for _, f := range change {
		f(st)
	}
	w.must(server.Create(w.t.Context(), st))
	return st
}

func (w *world) stack() *v1alpha1.AuthStack {
	w.t.Helper()
	st := &v1alpha1.AuthStack{}
	w.must(server.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "sso"}, st))
	return st
}

func (w *world) list(into client.ObjectList) {
	w.t.Helper()
	w.must(server.List(w.t.Context(), into, client.InNamespace(w.namespace)))
}

func (w *world) latencyTests() []v1alpha1.LatencyTest {
	var tests v1alpha1.LatencyTestList
	w.list(&tests)
	return tests.Items
}

func (w *world) ready() bool {
	st := w.stack()
	return st.Status.ObservedGeneration == st.Generation && meta.IsStatusConditionTrue(st.Status.Conditions, v1alpha1.ConditionReady)
}

// change the stack as a user does.
func (w *world) change(f func(*v1alpha1.AuthStack)) {
	w.t.Helper()
	st := w.stack()
	before := st.DeepCopy()
	f(st)
	w.must(server.Patch(w.t.Context(), st, client.MergeFrom(before)))
}

// recordedEvents are the events that the operator emitted.
type recordedEvents struct {
	mu   sync.Mutex
	list []string
}

func (r *recordedEvents) Eventf(_ runtime.Object, _ runtime.Object, kind, reason, action, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, kind+" "+reason+" "+action+" "+fmt.Sprintf(note, args...))
}

func (r *recordedEvents) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.list...)
}

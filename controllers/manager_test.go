package controllers

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack"
)

// counted counts the requests of an operator on their way to the API server.
type counted struct {
	next          http.RoundTripper
	reads, writes *atomic.Int64
	mu            *sync.Mutex
	last          *[]string
}

func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		c.reads.Add(1)
	} else {
		c.writes.Add(1)
		c.mu.Lock()
		*c.last = append(*c.last, request.Method+" "+request.URL.Path)
		c.mu.Unlock()
	}
	return c.next.RoundTrip(request)
}

// operator is a whole manager with its cache, as cmd/manager starts it.
type operator struct {
	manager       ctrl.Manager
	reads, writes *atomic.Int64
	mu            sync.Mutex
	requests      []string
}

func startOperator(t testing.TB, database databases, users Users, logs Logs, concurrency int, namespaces ...string) *operator {
	t.Helper()
	o := &operator{reads: &atomic.Int64{}, writes: &atomic.Int64{}}
	own := rest.CopyConfig(config)
	own.Impersonate.UserName = grantedUser(t)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counted{next: next, reads: o.reads, writes: o.writes, mu: &o.mu, last: &o.requests}
	})
	mgr, err := ctrl.NewManager(own, ctrl.Options{Scheme: NewScheme(), Cache: CacheOptions(namespaces),
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: crconfig.Controller{SkipNameValidation: ptr.To(true)}})
	if err != nil {
		t.Fatal(err)
	}
	stacks := &AuthStackReconciler{Images: stack.Images{Probe: "authstack.dev/probe:dev"}, Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("authstack"),
		Database: database, Now: time.Now, Random: rand.Reader, Concurrency: concurrency, Namespaces: namespaces}
	tests := &LatencyTestReconciler{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("authstack"),
		Logs: logs, Users: users, Database: database, Now: time.Now, Random: rand.Reader, Concurrency: concurrency, Namespaces: namespaces}
	if err := stacks.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	if err := tests.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	o.manager = mgr
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return o
}

var grantOnce sync.Once

// grantedUser may do what config/rbac gives the operator, and nothing else.
func grantedUser(t testing.TB) string {
	t.Helper()
	const name = "authstack-operator"
	grantOnce.Do(func() {
		text, err := os.ReadFile(filepath.Join("..", "config", "rbac", "role.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(text, role); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}}
		for _, obj := range []client.Object{role, binding} {
			if err := server.Create(context.Background(), obj); err != nil {
				t.Fatal(err)
			}
		}
	})
	return name
}

func TestUnchangedStackWritesNothing(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	o := startOperator(t, w.database, w.users, w.logs, 2, w.namespace)
	w.create()
	g.Eventually(func() bool {
		w.kubelet()
		st := w.stack()
		return st.Status.Latency != nil && st.Status.Latency.Verdict == v1alpha1.VerdictPassed && w.ready()
	}, "60s", "200ms").Should(BeTrue(), w.describe())
	var events eventsv1.EventList
	w.list(&events)
	g.Expect(events.Items).NotTo(BeEmpty())
	// The clean-up after the test and the events that are still on their way.
	var writes int64
	quiet := 0
	g.Eventually(func() bool {
		before := writes
		if writes = o.writes.Load(); writes == before {
			quiet++
		} else {
			quiet = 0
		}
		return quiet >= 3
	}, "120s", "2s").Should(BeTrue())

	// A kubelet's heartbeat has the stack looked at ten times.
	reads := o.reads.Load()
	for i := range 10 {
		deployment := &appsv1.Deployment{}
		w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "sso-authentik-server"}, deployment))
		deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: "True", Reason: "beat", Message: string(rune('a' + i))}}
		w.must(w.client.Status().Update(t.Context(), deployment))
		time.Sleep(150 * time.Millisecond)
	}
	g.Expect(o.reads.Load()).To(BeNumerically(">", reads), "the stack was looked at")
	o.mu.Lock()
	defer o.mu.Unlock()
	g.Expect(o.writes.Load()-writes).To(BeZero(), "requests: %v", o.requests[writes:])
}

func TestDriftIsTakenBack(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	startOperator(t, w.database, w.users, w.logs, 2, w.namespace)
	w.create(func(st *v1alpha1.AuthStack) { st.Spec.Latency = &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual} })
	g.Eventually(func() bool { w.kubelet(); return w.ready() }, "60s", "200ms").Should(BeTrue(), w.describe())
	key := client.ObjectKey{Namespace: w.namespace, Name: "sso-authentik-server"}
	deployment := &appsv1.Deployment{}
	w.must(w.client.Get(t.Context(), key, deployment))
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = ptr.To(int32(0))
	w.must(w.client.Patch(t.Context(), deployment, client.MergeFrom(before)))
	g.Eventually(func() int32 {
		w.must(w.client.Get(t.Context(), key, deployment))
		return *deployment.Spec.Replicas
	}, "60s", "100ms").Should(Equal(int32(2)))
	w.must(w.client.Delete(t.Context(), deployment))
	g.Eventually(func() error { return w.client.Get(t.Context(), key, deployment) }, "60s", "100ms").Should(Succeed())
}

func TestReferences(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	startOperator(t, w.database, w.users, w.logs, 2, w.namespace)
	w.create(func(st *v1alpha1.AuthStack) {
		st.Spec.Latency = &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual}
		st.Spec.Authentik.Blueprints = []v1alpha1.LocalReference{{Name: "mine"}}
	})
	g.Eventually(func() string {
		w.kubelet()
		c := conditionIn(w.stack().Status.Conditions, v1alpha1.ConditionIdentityProviderReady)
		if c == nil {
			return ""
		}
		return c.Reason
	}, "30s", "200ms").Should(Equal(v1alpha1.ReasonSecretMissing), w.describe())
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mine"}, Data: map[string]string{"a.yaml": "version: 1"}}
	w.must(w.client.Create(t.Context(), config))
	g.Eventually(func() bool { w.kubelet(); return w.ready() }, "60s", "200ms").Should(BeTrue(), w.describe())
	key := client.ObjectKey{Namespace: w.namespace, Name: "sso-authentik-worker"}
	worker := &appsv1.Deployment{}
	w.must(w.client.Get(t.Context(), key, worker))
	before := worker.Generation
	config.Data["a.yaml"] = "version: 2"
	w.must(w.client.Update(t.Context(), config))
	g.Eventually(func() int64 {
		w.must(w.client.Get(t.Context(), key, worker))
		return worker.Generation
	}, "60s", "100ms").Should(BeNumerically(">", before), "a changed blueprint reaches the worker at once")
}

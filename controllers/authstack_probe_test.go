package controllers

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/probe"
	"authstack.dev/authstack/internal/stack/storage"
)

// probing sets the mode of the probe.
func probing(mode v1alpha1.StorageProbeMode) func(*v1alpha1.AuthStack) {
	return func(st *v1alpha1.AuthStack) {
		st.Spec.Postgres = &v1alpha1.PostgresSpec{Storage: &v1alpha1.StorageSpec{Probe: &v1alpha1.StorageProbeSpec{Mode: mode}}}
	}
}

func manualLatency(st *v1alpha1.AuthStack) {
	st.Spec.Latency = &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual}
}

func (w *world) probeStatus() v1alpha1.StorageProbeStatus {
	if st := w.stack(); st.Status.Storage != nil && st.Status.Storage.Probe != nil {
		return *st.Status.Storage.Probe
	}
	return v1alpha1.StorageProbeStatus{}
}

func (w *world) probeDone() bool {
	p := w.probeStatus()
	return p.Running == "" && (p.CompletedAt != nil || p.Problem != "")
}

func (w *world) probeJobs() []batchv1.Job {
	var jobs batchv1.JobList
	w.must(server.List(w.t.Context(), &jobs, client.InNamespace(w.namespace), client.HasLabels{storage.ProbeLabel}))
	return jobs.Items
}

// claims of probes that nobody has deleted; without the controller that protects claims in use they
// stay behind as deleted.
func (w *world) probeClaims() (left []string) {
	var claims corev1.PersistentVolumeClaimList
	w.must(server.List(w.t.Context(), &claims, client.InNamespace(w.namespace)))
	for _, claim := range claims.Items {
		if claim.DeletionTimestamp == nil && strings.Contains(claim.Name, "storage-probe") {
			left = append(left, claim.Name)
		}
	}
	return left
}

func (w *world) condition(kind string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(w.stack().Status.Conditions, kind), metav1.Condition{})
}

// askProbe asks for another probe.
func askProbe(st *v1alpha1.AuthStack) {
	st.Annotations = map[string]string{v1alpha1.ProbeRequestedAtAnnotation: st.Annotations[v1alpha1.ProbeRequestedAtAnnotation] + "again"}
}

func TestStorageProbe(t *testing.T) {
	t.Run("a stack that is Ready is measured first and probed then, and nothing is left behind", func(t *testing.T) {
		w := newWorld(t)
		w.create()
		w.until("the stack is measured", func() bool {
			if len(w.probeJobs()) > 0 && w.stack().Status.Latency.Verdict == "" {
				t.Fatal("the probe ran before the verdict")
			}
			return w.stack().Status.Latency != nil && w.stack().Status.Latency.Verdict != ""
		})
		w.until("the storage is probed", w.probeDone)
		p := w.probeStatus()
		if len(p.Syncs) != 2 || p.Syncs[1].P50Micros != 125 || p.StorageClassName != "local-path" || p.VolumeSize != "10Gi" || p.Run != 1 || len(p.Findings) != 0 {
			t.Errorf("the status is %+v", p)
		}
		if c := w.condition(v1alpha1.ConditionStorageProbed); c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonProbed || !strings.Contains(c.Message, "p50 125µs") {
			t.Errorf("the condition is %+v", c)
		}
		w.settle()
		if jobs := w.probeJobs(); len(jobs) != 0 || len(w.probeClaims()) != 0 || w.probeStatus().Run != 1 {
			t.Errorf("%d Jobs and the claims %v are left after run %d", len(jobs), w.probeClaims(), w.probeStatus().Run)
		}
	})
	t.Run("bad figures leave the stack Ready and are said", func(t *testing.T) {
		w := newWorld(t)
		w.logs.probe = func(r *probe.Result) {
			for i := range r.Syncs {
				r.Syncs[i].P50Micros, r.Syncs[i].P99Micros, r.Syncs[i].P999Micros = 3, 4, 5
			}
		}
		w.create(manualLatency)
		w.until("the storage is probed", w.probeDone)
		if c := w.condition(v1alpha1.ConditionStorageProbed); c.Status != metav1.ConditionTrue || c.Reason != string(v1alpha1.FindingTooFast) || !strings.Contains(c.Message, "flushes are ignored") {
			t.Errorf("the condition is %+v", c)
		}
		if !w.ready() {
			t.Error("the stack is not Ready")
		}
	})
	t.Run("storage that hangs is said, whether or not the stack is Ready", func(t *testing.T) {
		w := newWorld(t)
		w.logs.probe = func(r *probe.Result) {
			*r = probe.Result{PlanID: r.PlanID, Hung: &probe.Hang{During: "Fill", AfterSeconds: 316}}
		}
		w.idle = true
		w.create(manualLatency, probing(v1alpha1.StorageProbeManual))
		w.change(func(st *v1alpha1.AuthStack) {
			st.Annotations = map[string]string{v1alpha1.ProbeRequestedAtAnnotation: "now"}
		})
		w.until("the probe runs", func() bool { return w.probeStatus().Running != "" })
		w.idle = false
		w.until("the storage is probed", w.probeDone)
		if c := w.condition(v1alpha1.ConditionStorageProbed); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonStorageHangs || !strings.Contains(c.Message, "316 s") {
			t.Errorf("the condition is %+v", c)
		}
	})
	t.Run("a probe asked for while a commit hangs is answered at once, and none is begun", func(t *testing.T) {
		w := newWorld(t)
		w.create(manualLatency, probing(v1alpha1.StorageProbeManual))
		w.until("Ready", w.ready)
		hang := make(chan struct{})
		w.database.set(func(f *fakeDatabases) { f.hang = hang })
		w.change(askProbe)
		w.until("it is said", func() bool {
			if len(w.probeJobs()) > 0 {
				t.Fatal("a probe was begun")
			}
			return w.condition(v1alpha1.ConditionStorageProbed).Reason == v1alpha1.ReasonStorageHangs
		})
		if c := w.condition(v1alpha1.ConditionStorageProbed); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "a commit of the database has been waiting since 20") {
			t.Errorf("the condition is %+v", c)
		}
		w.settle()
		w.database.set(func(f *fakeDatabases) { f.hang = nil })
		close(hang)
		w.until("Ready again", w.ready)
		w.change(askProbe)
		w.until("the storage is probed", func() bool { return len(w.probeStatus().Syncs) == 2 })
	})
	t.Run("the result of a probe that hangs is read though its Pod does not end", func(t *testing.T) {
		w := newWorld(t)
		w.logs.probe = func(r *probe.Result) {
			*r = probe.Result{PlanID: r.PlanID, Hung: &probe.Hang{During: "Long", AfterSeconds: 65}}
		}
		w.prober = func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }
		w.create(manualLatency, probing(v1alpha1.StorageProbeManual))
		w.until("Ready", w.ready)
		w.change(askProbe)
		w.until("the probe runs", func() bool { return w.probeStatus().Running != "" })
		hang := make(chan struct{})
		w.database.set(func(f *fakeDatabases) { f.hang = hang })
		w.until("it is said", func() bool {
			return w.condition(v1alpha1.ConditionStorageProbed).Reason == v1alpha1.ReasonStorageHangs
		})
		if c := w.condition(v1alpha1.ConditionStorageProbed); !strings.Contains(c.Message, "in step Long nothing came back for 65 s") {
			t.Errorf("the condition is %+v", c)
		}
		close(hang)
	})
	t.Run("the result of a probe that hangs names why a database answers nobody", func(t *testing.T) {
		w := newWorld(t)
		w.logs.probe = func(r *probe.Result) {
			*r = probe.Result{PlanID: r.PlanID, Hung: &probe.Hang{During: "Long", AfterSeconds: 65}}
		}
		w.prober = func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }
		w.create(manualLatency, probing(v1alpha1.StorageProbeManual))
		w.until("Ready", w.ready)
		w.change(askProbe)
		w.until("the probe runs", func() bool { return w.probeStatus().Running != "" })
		w.database.set(func(f *fakeDatabases) { f.err = facts.ErrStandsStill })
		w.until("the stack says it", func() bool { return w.condition(v1alpha1.ConditionReady).Reason == v1alpha1.ReasonStorageHangs })
		if c := w.condition(v1alpha1.ConditionReady); !strings.Contains(c.Message, "PostgreSQL takes connections and gives no answer, and the storage probe found it hanging at 20") {
			t.Errorf("the condition is %+v", c)
		}
		w.database.set(func(f *fakeDatabases) { f.err = nil })
		w.until("Ready again", w.ready)
	})
	t.Run("Manual waits for the annotation, and each new value probes once", func(t *testing.T) {
		w := newWorld(t)
		w.create(manualLatency, probing(v1alpha1.StorageProbeManual))
		w.until("Ready", w.ready)
		w.settle()
		if w.probeStatus().Run != 0 {
			t.Fatal("it was probed unasked")
		}
		for run, value := range []string{"first", "second"} {
			w.change(func(st *v1alpha1.AuthStack) {
				st.Annotations = map[string]string{v1alpha1.ProbeRequestedAtAnnotation: value}
			})
			w.until("it is probed", func() bool { return w.probeDone() && w.probeStatus().LastHandledRequestAt == value })
			w.settle()
			if p := w.probeStatus(); p.Run != int64(run+1) || len(p.Syncs) != 2 {
				t.Errorf("the status is %+v", p)
			}
		}
	})
	t.Run("Off is never probed, not even when asked", func(t *testing.T) {
		w := newWorld(t)
		w.create(manualLatency, probing(v1alpha1.StorageProbeOff))
		w.change(func(st *v1alpha1.AuthStack) {
			st.Annotations = map[string]string{v1alpha1.ProbeRequestedAtAnnotation: "now"}
		})
		w.until("Ready", w.ready)
		w.settle()
		if w.probeStatus().Run != 0 || len(w.probeJobs()) != 0 {
			t.Errorf("the status is %+v", w.probeStatus())
		}
	})
	t.Run("a second stack on the same class, node and size copies the figures", func(t *testing.T) {
		w := newWorld(t)
		w.create(manualLatency)
		w.until("the storage is probed", w.probeDone)
		second := w.stack().DeepCopy()
		second.ObjectMeta = metav1.ObjectMeta{Namespace: w.namespace, Name: "second"}
		second.Status = v1alpha1.AuthStackStatus{}
		w.must(server.Create(t.Context(), second))
		w.until("the second has figures", func() bool {
			w.must(server.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "second"}, second))
			return second.Status.Storage != nil && second.Status.Storage.Probe != nil
		})
		if p := second.Status.Storage.Probe; p.CopiedFrom != w.namespace+"/sso" || p.Run != 0 || len(p.Syncs) != 2 {
			t.Errorf("the status is %+v", p)
		}
	})
	t.Run("a claim of that name that was not made for the probe is not touched", func(t *testing.T) {
		w := newWorld(t)
		w.must(server.Create(t.Context(), &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sso-storage-probe-1"},
			Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
		}))
		w.create(manualLatency)
		w.until("it says so", w.probeDone)
		if c := w.condition(v1alpha1.ConditionStorageProbed); c.Reason != v1alpha1.ReasonProbeFailed || !strings.Contains(c.Message, "was not made for the probe") {
			t.Errorf("the condition is %+v", c)
		}
		if len(w.probeJobs()) != 0 || len(w.probeClaims()) != 1 {
			t.Errorf("%d Jobs, claims %v", len(w.probeJobs()), w.probeClaims())
		}
	})
	t.Run("a Pod that cannot start is given up and said", func(t *testing.T) {
		w := newWorld(t)
		w.prober = func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodPending
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: probe.Container, State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
		}
		w.create(manualLatency)
		w.until("it is given up", w.probeDone)
		if c := w.condition(v1alpha1.ConditionStorageProbed); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "ImagePullBackOff") {
			t.Errorf("the condition is %+v", c)
		}
		w.settle()
		if len(w.probeJobs()) != 0 || len(w.probeClaims()) != 0 || w.probeStatus().Run != 1 {
			t.Errorf("the status is %+v", w.probeStatus())
		}
	})
	t.Run("without an image nothing is probed, and who asks is told", func(t *testing.T) {
		w := newWorld(t)
		w.stacks.Images.Probe = ""
		w.create(manualLatency)
		w.until("Ready", w.ready)
		w.settle()
		if p := w.probeStatus(); len(w.probeJobs()) != 0 || p.Problem != "" {
			t.Errorf("the status is %+v", p)
		}
		w.change(func(st *v1alpha1.AuthStack) {
			st.Annotations = map[string]string{v1alpha1.ProbeRequestedAtAnnotation: "now"}
		})
		w.until("it is said", func() bool { return strings.Contains(w.probeStatus().Problem, "set images.probe") })
	})
	t.Run("a probe whose Pod is taken away is begun again, and given up after three", func(t *testing.T) {
		w := newWorld(t)
		w.prober = func(pod *corev1.Pod) {
			w.must(server.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
		}
		w.create(manualLatency)
		w.until("the probe is given up", w.probeDone)
		if p := w.probeStatus(); p.Run != 3 || !strings.Contains(p.Problem, "the Pod of the probe is gone") {
			t.Errorf("the status is %+v", p)
		}
	})
	t.Run("a probe gives way to a LatencyTest that waits for its turn, and goes on after it", func(t *testing.T) {
		w := newWorld(t)
		w.prober = func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending }
		w.create(manualLatency)
		w.until("the probe runs", func() bool { return w.probeStatus().Running != "" })
		test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "evening"},
			Spec: v1alpha1.LatencyTestSpec{StackRef: v1alpha1.StackReference{Name: "sso"}}}
		w.must(server.Create(t.Context(), test))
		w.until("the probe has given way", func() bool { return w.probeStatus().Running == "" && len(w.probeJobs()) == 0 })
		w.prober = nil
		w.until("the test has a verdict", func() bool { return w.latencyTests()[0].Status.Verdict != "" })
		w.until("the storage is probed after it", w.probeDone)
		if len(w.probeStatus().Syncs) != 2 {
			t.Errorf("the status is %+v", w.probeStatus())
		}
	})
}

func TestProbeJob(t *testing.T) {
	st := &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(t), Name: strings.Repeat("a", 40)}}
	probing(v1alpha1.StorageProbeAutomatic)(st)
	st.Spec.Postgres.Storage.Probe.Long = &metav1.Duration{Duration: 3 * time.Minute}
	claim, job := storage.ProbeJob{Stack: st, Run: 9_999_999, Class: "local-path", Size: storage.ProbeSize(resource.MustParse("1Ti")), Node: "node-1", Image: "probe:1"}.Objects()
	// The API server takes both, and Pod Security's restricted profile the Pod.
	namespace := &corev1.Namespace{}
	if err := server.Get(t.Context(), client.ObjectKey{Name: st.Namespace}, namespace); err != nil {
		t.Fatal(err)
	}
	namespace.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if err := server.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	for _, obj := range []client.Object{claim, job} {
		if err := server.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: st.Namespace, Name: "pod", Labels: job.Spec.Template.Labels}, Spec: job.Spec.Template.Spec}
	if err := server.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if size := claim.Spec.Resources.Requests.Storage(); size.Cmp(resource.MustParse("32Gi")) != 0 {
		t.Errorf("the claim of a terabyte has %s", size)
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName != claim.Name || volume.HostPath != nil || volume.Secret != nil {
			t.Errorf("the Pod has the volume %+v", volume)
		}
	}
	plan, err := probe.Parse(pod.Spec.Containers[0].Env[0].Value)
	if err != nil || plan.LongSeconds != 180 || plan.FileBytes != 256<<20 || plan.ID != job.Name {
		t.Errorf("the plan is %+v (%v)", plan, err)
	}
}

package storage

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/probe"
	"authstack.dev/authstack/internal/stack/part"
)

// ProbeLabel on the Job, Pod and claim of a storage probe is the name of its AuthStack.
const ProbeLabel = "authstack.dev/storage-probe"

// probeUserID that the probe runs as; also the group of its volume.
const probeUserID = 12345

// largestProbe bounds the probe's claim. Some clouds give a volume more operations a second the larger
// it is, so it is as large as the database's up to here.
var largestProbe = resource.MustParse("32Gi")

// ProbeSize of the claim for a database of this size.
func ProbeSize(database resource.Quantity) resource.Quantity {
	if database.Cmp(largestProbe) > 0 {
		return largestProbe
	}
	return database
}

// ProbeName of the Job and the claim of a probe. Of a stack's name of 40 characters and a run below
// ten million it stays a label value.
func ProbeName(stack string, run int64) string { return fmt.Sprintf("%s-storage-probe-%d", stack, run) }

// ProbeJob is what the objects of a probe are made from.
type ProbeJob struct {
	Stack *v1alpha1.AuthStack
	Run   int64
	// Class and Size of the claim, Node where the database is, or empty where that is not known.
	Class string
	Size  resource.Quantity
	Node  string
	// Tolerations of the database's Pod.
	Tolerations     []corev1.Toleration
	Image           string
	ImagePullPolicy corev1.PullPolicy
}

// spec of the probe, never nil.
func probeSpec(st *v1alpha1.AuthStack) v1alpha1.StorageProbeSpec {
	if st.Spec.Postgres == nil || st.Spec.Postgres.Storage == nil || st.Spec.Postgres.Storage.Probe == nil {
		return v1alpha1.StorageProbeSpec{}
	}
	return *st.Spec.Postgres.Storage.Probe
}

// ProbePlan of a stack's probe.
func ProbePlan(st *v1alpha1.AuthStack, run int64, size resource.Quantity) probe.Plan {
	length := func(given *metav1.Duration, fallback time.Duration) time.Duration {
		if given != nil {
			return given.Duration
		}
		return fallback
	}
	spec := probeSpec(st)
	return probe.NewPlan(ProbeName(st.Name, run), size.Value(), length(spec.Short, probe.DefaultShort), length(spec.Long, probe.DefaultLong))
}

// Objects of the probe: its claim and its Job, without owner references, which are the caller's. The
// Pod has no other volume of the cluster than that claim, no token and no Secret.
func (p ProbeJob) Objects() (*corev1.PersistentVolumeClaim, *batchv1.Job) {
	plan := ProbePlan(p.Stack, p.Run, p.Size)
	labels := part.Labels(p.Stack, "authstack-storage-probe", "storage-probe", "")
	labels[ProbeLabel] = p.Stack.Name
	meta := part.Meta(p.Stack, plan.ID, labels)
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: *meta.DeepCopy(),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: ptr.To(p.Class),
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: p.Size}},
		},
	}
	template := part.Pod{
		UserID: probeUserID, GracePeriodSeconds: 10, Labels: maps.Clone(labels), Selector: labels,
		Container: corev1.Container{
			Name: probe.Container, Image: p.Image, ImagePullPolicy: p.ImagePullPolicy,
			Command: []string{probe.Binary},
			Env:     []corev1.EnvVar{part.EnvVar(probe.PlanVariable, plan.JSON()), part.EnvVar("TMPDIR", "/tmp")},
			// No CPU limit: a throttled probe would measure itself.
			Resources: part.Resources(nil, part.Needs{CPU: "100m", Memory: "64Mi", MemoryLimit: "512Mi"}),
			VolumeMounts: []corev1.VolumeMount{
				part.Mount("volume", probe.Directory, false),
				part.Mount("tmp", "/tmp", false),
			},
		},
		Volumes: []corev1.Volume{
			{Name: "volume", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: plan.ID}}},
			part.Scratch("tmp", "64Mi"),
		},
	}.Template()
	template.Annotations = nil
	template.Spec.TopologySpreadConstraints = nil
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	template.Spec.Tolerations = p.Tolerations
	if p.Node != "" {
		template.Spec.Affinity = onNode(p.Node)
	}
	return claim, &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: *meta.DeepCopy(),
		Spec: batchv1.JobSpec{
			// A second attempt would find a volume that is not fresh any more.
			BackoffLimit:          ptr.To(int32(0)),
			ActiveDeadlineSeconds: ptr.To(int64(plan.Limit().Seconds())),
			Template:              template,
		},
	}
}

// onNode asks the scheduler for a node by its name, so that the volume is still made for that node by
// the class's own rules; spec.nodeName would pass the scheduler by, and a class that waits for the
// first consumer would wait for ever.
func onNode(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
		}}},
	}}}
}

// ProbeSubject is what a probe's figures are judged against.
func ProbeSubject(st *v1alpha1.AuthStack) probe.Subject {
	subject := probe.Subject{Medium: v1alpha1.MediumUnknown}
	if stored := st.Status.Storage; stored != nil {
		subject.Medium, subject.Provisioner, subject.Evidence = stored.Medium, stored.Provisioner, stored.Evidence
	}
	if idp := st.Status.IdentityProvider; idp != nil {
		subject.Product = idp.Name
	}
	return subject
}

// probeMode with its default.
func probeMode(st *v1alpha1.AuthStack) v1alpha1.StorageProbeMode {
	return cmp.Or(probeSpec(st).Mode, v1alpha1.StorageProbeAutomatic)
}

package latency

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/loadtests/scenarios"
)

// The contract with the k6 image: k6 with the output extension at K6Binary, and nothing else; it
// runs as any user.
const (
	K6Binary = "/usr/bin/k6"
	// K6Container is the container of the Job's Pod whose log holds the result.
	K6Container = "k6"
	// K6UserID is the user that the Job runs as.
	K6UserID int64 = 12345
	// TestLabel on the Job and its Pod is the name of the LatencyTest.
	TestLabel = "authstack.dev/latency-test"
)

const (
	scriptsPath     = "/scripts"
	credentialsPath = "/credentials"
)

// JobInput is what the objects of one Job are made from.
type JobInput struct {
	Test   *v1alpha1.LatencyTest
	Plan   *Plan
	Target Target
	// Script is the user's own script that the plan runs; nil for a plan of this project's scenarios.
	Script      *Script
	Credentials Credentials
	// Image of k6 with the output extension.
	Image           string
	ImagePullPolicy corev1.PullPolicy
	// Run counts the runs of the test (status.run), Repeat its repeats from 1.
	Run    int64
	Repeat int32
}

// JobName is the name of the Job of a repeat, and of its ConfigMap and Secret. Of a test's name of
// 52 characters and a run below a million it stays a label value.
func JobName(test string, run int64, repeat int32) string {
	return fmt.Sprintf("%s-%d-%d", test, run, repeat)
}

// Objects are the ConfigMap, the Secret, for a user's own script the NetworkPolicy, and last the Job of one
// repeat, in the order of their creation and without owner references: those are the caller's. The Job and its Pod template never change
// once made. The Secret is to be deleted as soon as the Job has ended.
func Objects(in JobInput) []client.Object {
	name := JobName(in.Test.Name, in.Run, in.Repeat)
	meta := metav1.ObjectMeta{
		Name: name, Namespace: in.Test.Namespace,
		Labels: map[string]string{
			v1alpha1.StackLabel:            in.Test.Spec.StackRef.Name,
			TestLabel:                      in.Test.Name,
			"app.kubernetes.io/name":       "authstack-k6",
			"app.kubernetes.io/component":  "load-generator",
			"app.kubernetes.io/managed-by": "authstack",
		},
	}
	data := map[string]string{"plan.json": planJSON(name, in.Plan, in.Target.confined(in.Script))}
	for path, text := range scenarios.Scripts() {
		data[scriptKey(path)] = text
	}
	if in.Script != nil {
		data[scenarios.User] = in.Script.Text
	}
	objects := []client.Object{
		&corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: *meta.DeepCopy(),
			// The script that was looked at is the one that runs.
			Immutable: ptr(true),
			Data:      data,
		},
		&corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: *meta.DeepCopy(),
			Type:       corev1.SecretTypeOpaque,
			Data:       map[string][]byte{"credentials.json": []byte(mustJSON(in.Credentials))},
		},
	}
	if in.Script != nil {
		objects = append(objects, egressPolicy(in, *meta.DeepCopy()))
	}
	return append(objects, &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: *meta.DeepCopy(),
		Spec: batchv1.JobSpec{
			// A run is one thing: a second attempt would measure another moment.
			BackoffLimit:          ptr(int32(0)),
			CompletionMode:        ptr(batchv1.IndexedCompletion),
			Completions:           ptr(in.Plan.Pods),
			Parallelism:           ptr(in.Plan.Pods),
			ActiveDeadlineSeconds: ptr(int64(in.Plan.Timeout.Seconds())),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(meta.Labels)},
				Spec:       podSpec(in, name),
			},
		},
	})
}

// scriptKey is the key of a script in the ConfigMap, where a slash may not stand.
func scriptKey(path string) string { return strings.ReplaceAll(path, "/", ".") }

func podSpec(in JobInput, name string) corev1.PodSpec {
	items := []corev1.KeyToPath{{Key: "plan.json", Path: "plan.json"}}
	for _, path := range slices.Sorted(maps.Keys(scenarios.Scripts())) {
		items = append(items, corev1.KeyToPath{Key: scriptKey(path), Path: path})
	}
	if in.Script != nil {
		items = append(items, corev1.KeyToPath{Key: scenarios.User, Path: scenarios.User})
	}
	entry, flags := in.entry()
	resources := generatorResources(in.Plan, in.Test.Spec.Generator.Resources)
	return corev1.PodSpec{
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: ptr(false),
		// Variables of every Service of the namespace would otherwise be in the process.
		EnableServiceLinks:            ptr(false),
		TerminationGracePeriodSeconds: ptr(int64(30)),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr(true), RunAsUser: ptr(K6UserID), RunAsGroup: ptr(K6UserID), FSGroup: ptr(K6UserID),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: K6Container, Image: in.Image, ImagePullPolicy: in.ImagePullPolicy,
			Command:   []string{K6Binary},
			Args:      append(append([]string{"run", "--quiet", "--no-color", "--out", "authstack"}, flags...), entry),
			Env:       append(generatorEnv(in.Plan, resources), in.scriptEnv()...),
			Resources: resources,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "scripts", MountPath: scriptsPath, ReadOnly: true},
				{Name: "credentials", MountPath: credentialsPath, ReadOnly: true},
				{Name: "tmp", MountPath: "/tmp"},
			},
		}},
		Volumes: []corev1.Volume{
			{Name: "scripts", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items,
			}}},
			{Name: "credentials", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: name, DefaultMode: ptr(int32(0o440)),
			}}},
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
				SizeLimit: ptr(resource.MustParse("16Mi")),
			}}},
		},
	}
}

func generatorEnv(plan *Plan, resources corev1.ResourceRequirements) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "AUTHSTACK_PLAN", Value: scriptsPath + "/plan.json"},
		// With JOB_COMPLETION_INDEX, which an Indexed Job sets, it says which part is this Pod's.
		{Name: "AUTHSTACK_PODS", Value: strconv.Itoa(int(plan.Pods))},
		{Name: "AUTHSTACK_CREDENTIALS", Value: credentialsPath + "/credentials.json"},
		{Name: "GOMAXPROCS", Value: strconv.Itoa(gomaxprocs(plan, resources))},
		{Name: "HOME", Value: "/tmp"},
	}
	// k6 collects its garbage rather than be killed.
	if limit := resources.Limits.Memory(); !limit.IsZero() {
		env = append(env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: strconv.FormatInt(limit.Value()/10*9, 10)})
	}
	return append(env, quietEnv()...)
}

// quietEnv keeps k6 to its work.
func quietEnv() []corev1.EnvVar {
	return []corev1.EnvVar{
		// k6 keeps every sample for its own summary and thresholds, which nobody reads here.
		{Name: "K6_SUMMARY_MODE", Value: "disabled"},
		{Name: "K6_NO_THRESHOLDS", Value: "true"},
		// Nothing may leave the cluster: no usage report, no other binary for an unknown import.
		{Name: "K6_NO_USAGE_REPORT", Value: "true"},
		{Name: "K6_AUTO_EXTENSION_RESOLUTION", Value: "false"},
	}
}

// gomaxprocs is how many cores the generator may use: those of its limit, or else a few for its
// virtual users. On a node of many cores more would only make garbage collection louder.
func gomaxprocs(plan *Plan, resources corev1.ResourceRequirements) int {
	if limit := resources.Limits.Cpu(); !limit.IsZero() {
		return int(max(1, limit.Value()))
	}
	var users int32
	for _, s := range plan.Scenarios {
		ready, _ := virtualUsers(s)
		users = max(users, ready/plan.Pods)
	}
	return int(min(8, 2+users/16))
}

func ptr[T any](v T) *T { return &v }

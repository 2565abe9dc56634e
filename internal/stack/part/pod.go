package part

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Pod is what differs between the Pods of a stack; everything else is the same for all of them.
type Pod struct {
	// UserID that the processes run as; also the group of the volumes.
	UserID int64
	// GracePeriodSeconds before the Pod is killed.
	GracePeriodSeconds int64
	Labels             map[string]string
	// Selector of the Pods of the same component, to be kept apart from each other.
	Selector map[string]string
	// ChecksumOfConfig rolls the Pods when it changes.
	ChecksumOfConfig string
	Container        corev1.Container
	Volumes          []corev1.Volume
	// OneNode are labels of Pods, these among them, that must all be on one node, since they share a
	// volume that only one node can have; nil where they need not.
	OneNode map[string]string
}

// ChecksumAnnotation on a Pod template is the checksum of what the Pod reads at start.
const ChecksumAnnotation = "authstack.dev/config-checksum"

// Template of the Pod. It passes the Pod Security Standard "restricted", mounts no API token, takes
// no service links (their environment variables collide with AUTHELIA_*, facts/authelia.md 1.1), and
// prefers other nodes than those of its likes.
func (p Pod) Template() corev1.PodTemplateSpec {
	container := p.Container
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	container.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      p.Labels,
			Annotations: map[string]string{ChecksumAnnotation: p.ChecksumOfConfig},
		},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			TerminationGracePeriodSeconds: new(p.GracePeriodSeconds),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:        new(true),
				RunAsUser:           new(p.UserID),
				RunAsGroup:          new(p.UserID),
				FSGroup:             new(p.UserID),
				FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
				SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew:           1,
				TopologyKey:       "kubernetes.io/hostname",
				WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector:     &metav1.LabelSelector{MatchLabels: p.Selector},
			}},
			Affinity:   onOneNode(p.OneNode),
			Containers: []corev1.Container{container},
			Volumes:    p.Volumes,
		},
	}
}

// onOneNode binds Pods to the node of those with these labels. The scheduler lets the first of them
// go anywhere.
func onOneNode(labels map[string]string) *corev1.Affinity {
	if labels == nil {
		return nil
	}
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
		TopologyKey:   "kubernetes.io/hostname",
	}}}}
}

// Needs are the requests and the memory limit that a container has where the user gives none.
type Needs struct{ CPU, Memory, MemoryLimit string }

// Resources of a container: what the user gives, over the defaults. No CPU limit is set unless given,
// since throttling shows as latency; a memory limit always is.
func Resources(given *corev1.ResourceRequirements, needs Needs) corev1.ResourceRequirements {
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(needs.CPU),
		corev1.ResourceMemory: resource.MustParse(needs.Memory),
	}
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(needs.MemoryLimit)}
	if given != nil {
		for name, quantity := range given.Limits {
			limits[name] = quantity
			if request, ok := requests[name]; ok && request.Cmp(quantity) > 0 {
				requests[name] = quantity
			}
		}
		for name, quantity := range given.Requests {
			requests[name] = quantity
			if _, asked := given.Limits[name]; asked {
				continue
			}
			if limit, ok := limits[name]; ok && limit.Cmp(quantity) < 0 {
				limits[name] = quantity
			}
		}
	}
	out := corev1.ResourceRequirements{Requests: requests, Limits: limits}
	if given != nil {
		out.Claims = given.Claims
	}
	return out
}

// HTTPProbe asks a path of a named port.
func HTTPProbe(path, port string) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(port)}}
}

// ExecProbe runs a command.
func ExecProbe(command ...string) corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}}
}

// Probe with its times in seconds.
func Probe(handler corev1.ProbeHandler, period, timeout, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: handler, PeriodSeconds: period, TimeoutSeconds: timeout, FailureThreshold: failures,
	}
}

// EnvVar with a plain value.
func EnvVar(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

// EnvFrom takes a variable from a Secret.
func EnvFrom(name, secret, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key,
	}}}
}

// Scratch is a writable directory that goes with the Pod; size limits what it may hold.
func Scratch(name, size string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse(size))},
	}}
}

// SharedMemory is a writable directory in memory; it counts towards the memory limit.
func SharedMemory(name string, bytes int64) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
		Medium: corev1.StorageMediumMemory, SizeLimit: resource.NewQuantity(bytes, resource.BinarySI),
	}}}
}

// FromClaim is a volume that outlives the Pod.
func FromClaim(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}
}

// FromSecret is a volume with all keys of a Secret, or the named ones.
func FromSecret(name, secret string, keys ...string) corev1.Volume {
	source := &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(int32(0o440))}
	for _, key := range keys {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: source}}
}

// FromConfigMap is a volume with all keys of a ConfigMap, or the named ones.
func FromConfigMap(name, configMap string, keys ...string) corev1.Volume {
	source := &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, DefaultMode: new(int32(0o444)),
	}
	for _, key := range keys {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: source}}
}

// Mount of a volume, read-only or writable.
func Mount(name, path string, readOnly bool) corev1.VolumeMount {
	return corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly}
}

// Port of a container.
func Port(name string, number int32) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}
}

// Itoa of a number for environment variables.
func Itoa[T int | int32 | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

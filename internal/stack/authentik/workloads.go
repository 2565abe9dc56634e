package authentik

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

// planner holds what server and worker have in common.
type planner struct {
	in       part.Input
	st       *v1alpha1.AuthStack
	spec     *v1alpha1.AuthentikSpec
	release  release
	database part.Database
	redis    *part.Redis
	// checksum of the Secrets that both read.
	checksum string
}

const (
	// authentikUID is the user of the image (facts/authentik.md 4).
	authentikUID = 1000
	// sharedMemory is the size of /dev/shm, where gunicorn's socket and temporary files are; the
	// compose file of the project gives as much.
	sharedMemory = 512 << 20
)

// Needs where the user gives none: measured Django processes of 200 to 350 MB, two of them in a
// server, and /dev/shm counts towards the limit.
var (
	serverNeeds = part.Needs{CPU: "250m", Memory: "768Mi", MemoryLimit: "2Gi"}
	workerNeeds = part.Needs{CPU: "100m", Memory: "512Mi", MemoryLimit: "1536Mi"}
)

// probes as in the project's own chart (facts/authentik.md 4.1): 3 s to answer, and 60 failures at
// the start, since migrations of a release run then. 2026.8 asks for at least 120 s.
func probes(container *corev1.Container, startup, ready, live corev1.ProbeHandler) {
	container.StartupProbe = part.Probe(startup, 10, 3, 60)
	container.StartupProbe.InitialDelaySeconds = 5
	container.ReadinessProbe = part.Probe(ready, 10, 3, 3)
	container.LivenessProbe = part.Probe(live, 10, 3, 3)
}

func (p planner) server() *appsv1.Deployment {
	live, ready := part.HTTPProbe("/-/health/live/", "http"), part.HTTPProbe("/-/health/ready/", "http")
	pod := p.pod("server", part.ComponentServer, p.spec.Server, serverNeeds)
	probes(&pod.Container, live, ready, live)
	return p.deployment(serverName(p.st), part.ComponentServer, serverReplicas(p.spec), pod)
}

func (p planner) worker() *appsv1.Deployment {
	// The image's own check: it knows where this release's worker answers.
	healthy := part.ExecProbe("ak", "healthcheck")
	pod := p.pod("worker", part.ComponentWorker, p.spec.Worker, workerNeeds)
	probes(&pod.Container, healthy, healthy, healthy)
	pod.Container.StartupProbe.InitialDelaySeconds = 30
	contents := [][]byte{[]byte(p.checksum)}
	for _, blueprint := range p.spec.Blueprints {
		volume := "blueprint-" + part.Checksum([]byte(blueprint.Name))[:12]
		pod.Volumes = append(pod.Volumes, part.FromConfigMap(volume, blueprint.Name))
		pod.Container.VolumeMounts = append(pod.Container.VolumeMounts, part.Mount(volume, "/blueprints/mounted/cm-"+blueprint.Name, true))
		contents = append(contents, []byte(blueprint.Name))
		contents = append(contents, part.Flatten(p.in.Facts.ConfigMaps[blueprint.Name])...)
	}
	pod.ChecksumOfConfig = part.Checksum(contents...)
	return p.deployment(workerName(p.st), part.ComponentWorker, workerReplicas(p.spec), pod)
}

func (p planner) deployment(name, component string, replicas int32, pod part.Pod) *appsv1.Deployment {
	return part.Deployment(part.Meta(p.st, name, part.Labels(p.st, Name, component, p.spec.Version)), replicas,
		part.Selector(p.st, Name, component), pod.Template())
}

func (p planner) pod(mode, component string, spec v1alpha1.WorkloadSpec, needs part.Needs) part.Pod {
	from, _ := p.extraEnvironment()
	pod := part.Pod{
		UserID:             authentikUID,
		GracePeriodSeconds: 60,
		Labels:             part.Labels(p.st, Name, component, p.spec.Version),
		Selector:           part.Selector(p.st, Name, component),
		ChecksumOfConfig:   p.checksum,
		Container: corev1.Container{
			Name:      mode,
			Image:     Image(p.in),
			Args:      []string{mode},
			Ports:     []corev1.ContainerPort{part.Port("http", httpPort), part.Port("metrics", metricsPort)},
			Env:       p.environment(mode),
			EnvFrom:   from,
			Resources: part.Resources(spec.Resources, needs),
			VolumeMounts: []corev1.VolumeMount{
				part.Mount("certs", "/certs", false),
				part.Mount("shm", "/dev/shm", false),
				part.Mount("tmp", "/tmp", false),
			},
		},
		Volumes: []corev1.Volume{
			part.Scratch("certs", "16Mi"),
			part.SharedMemory("shm", sharedMemory),
			part.Scratch("tmp", "256Mi"),
		},
	}
	p.mountUploads(&pod)
	return pod
}

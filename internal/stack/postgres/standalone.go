package postgres

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

// standalone is one PostgreSQL in a StatefulSet: no other operator, no failover.
type standalone struct {
	st   *v1alpha1.AuthStack
	spec v1alpha1.StandalonePostgres
}

const (
	// postgresUID is the uid of postgres in the official Debian images. The start script brings its own
	// /etc/passwd, so images with another one work too.
	postgresUID = 999
	// dataMount is a path of our own: the images' own paths changed with PostgreSQL 18.
	dataMount   = "/var/lib/authstack/postgres"
	configMount = "/etc/authstack"
	secretMount = "/run/secrets/authstack"
	socketMount = "/run/postgresql"
)

func (standalone) name() string       { return "standalone" }
func (s standalone) major() int       { return majorOf(s.spec.Version) }
func (s standalone) claims() []string { return []string{part.ClaimName(StandaloneName(s.st))} }

// StandaloneName of the StatefulSet, Service, ConfigMap and Secret.
func StandaloneName(st *v1alpha1.AuthStack) string { return part.Name(st, "postgres") }

func (s standalone) secret(string) string { return StandaloneName(s.st) }

func (s standalone) plan(in part.Input, order order) (Result, error) {
	name, version := StandaloneName(s.st), cmp.Or(s.spec.Version, defaultMajor)
	labels := part.Labels(s.st, "postgres", part.ComponentDatabase, version)
	selector := part.Selector(s.st, "postgres", part.ComponentDatabase)

	secret, err := part.GeneratedSecret(in, part.Retained(s.st, part.Meta(s.st, name, labels)),
		part.Fixed("username", order.role), part.Random("password", 40))
	if err != nil {
		return Result{}, err
	}
	config := part.NewConfigMap(part.Meta(s.st, name, labels), configuration(order.settings))
	template, grown := part.Claims(in, name, part.ClaimLabels(s.st, "postgres", part.ComponentDatabase), order.className, order.size)

	set := part.StatefulSet(s.st, part.Meta(s.st, name, labels), selector,
		s.pod(in, order, labels, selector, secret, config).Template(), template)
	result := Result{Objects: []client.Object{
		secret,
		config,
		part.Service(part.Meta(s.st, name, labels), selector, part.ServicePort("postgresql", Port)),
		part.AllowIngress(part.Meta(s.st, name, labels), selector, "postgresql", part.StackPeer(s.st), part.OperatorPeer(in)),
		set,
	}}
	if grown != nil {
		result.Objects = append(result.Objects, grown)
	}
	result.Database = &part.Database{
		Target: part.DatabaseTarget{
			Host: name + "." + s.st.Namespace + ".svc", Port: Port, Database: order.database,
			User: string(secret.Data["username"]), Password: string(secret.Data["password"]), SSLMode: "disable",
		},
		ProductHost: name,
		SecretName:  name, UsernameKey: "username", PasswordKey: "password",
	}
	result.State = part.WorkloadState(in.Facts.Workloads, set)
	return result, nil
}

func (s standalone) pod(in part.Input, order order, labels, selector map[string]string, secret *corev1.Secret, config *corev1.ConfigMap) part.Pod {
	version := cmp.Or(s.spec.Version, defaultMajor)
	ready := part.ExecProbe("/bin/sh", configMount+"/ready.sh")
	// Parallel queries keep their memory in /dev/shm; the runtime's default is 64 MiB, however large the Pod.
	sharedMemory := min(order.resources.Limits.Memory().Value()/8, 1<<30)
	return part.Pod{
		UserID:             postgresUID,
		GracePeriodSeconds: 120,
		Labels:             labels,
		Selector:           selector,
		ChecksumOfConfig:   part.Checksum(append(part.Flatten(config.Data), part.Flatten(secret.Data)...)...),
		Container: corev1.Container{
			Name:      "postgres",
			Image:     cmp.Or(s.spec.Image, in.Images.OrDefault().Postgres+":"+version),
			Command:   []string{"/bin/sh", configMount + "/start.sh"},
			Ports:     []corev1.ContainerPort{part.Port("postgresql", Port)},
			Resources: order.resources,
			Env: []corev1.EnvVar{
				part.EnvVar("AUTHSTACK_PG_MAJOR", version),
				part.EnvVar("AUTHSTACK_DATA", dataMount),
				part.EnvVar("AUTHSTACK_CONFIG", configMount),
				part.EnvVar("AUTHSTACK_SOCKETS", socketMount),
				part.EnvVar("AUTHSTACK_PASSWORD_FILE", secretMount+"/password"),
				part.EnvVar("AUTHSTACK_ROLE", order.role),
				part.EnvVar("AUTHSTACK_DATABASE", order.database),
			},
			VolumeMounts: []corev1.VolumeMount{
				part.Mount(part.ClaimVolume, dataMount, false),
				part.Mount("config", configMount, true),
				{Name: "config", MountPath: "/etc/passwd", SubPath: "passwd", ReadOnly: true},
				part.Mount("password", secretMount, true),
				part.Mount("sockets", socketMount, false),
				part.Mount("shm", "/dev/shm", false),
				part.Mount("tmp", "/tmp", false),
			},
			// Recovery after a crash may take minutes on a slow disk, and a restart would begin it anew.
			StartupProbe:   part.Probe(ready, 5, 5, 240),
			ReadinessProbe: part.Probe(ready, 5, 5, 3),
			LivenessProbe:  part.Probe(ready, 10, 5, 6),
			// SIGTERM is a smart shutdown, which waits for clients that never go (PostgreSQL docs, Shutting
			// Down the Server); a fast one before it leaves a clean data directory.
			Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{
				Command: []string{"/bin/sh", configMount + "/stop.sh"},
			}}},
		},
		Volumes: []corev1.Volume{
			part.FromConfigMap("config", config.Name),
			part.FromSecret("password", secret.Name, "password"),
			part.Scratch("sockets", "16Mi"),
			part.SharedMemory("shm", sharedMemory),
			part.Scratch("tmp", "256Mi"),
		},
	}
}

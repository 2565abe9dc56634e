package authelia

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

// autheliaUID: any uid but root runs Authelia directly (facts/authelia.md 1.9).
const autheliaUID = 1000

// needs: an argon2id check takes 64 MiB, and nothing bounds how many run at once (1.7).
var needs = part.Needs{CPU: "100m", Memory: "256Mi", MemoryLimit: "512Mi"}

// planner holds what the objects of one plan have in common.
type planner struct {
	in       part.Input
	st       *v1alpha1.AuthStack
	spec     *v1alpha1.AutheliaSpec
	release  release
	database part.Database
	redis    *part.Redis
}

func (p planner) labels() map[string]string {
	return part.Labels(p.st, Name, part.ComponentServer, p.spec.Version)
}

func (p planner) objects() ([]client.Object, error) {
	selector := part.Selector(p.st, Name, part.ComponentServer)
	own, err := part.GeneratedSecret(p.in, part.Retained(p.st, part.Meta(p.st, SecretName(p.st), p.labels())),
		part.Random("session-secret", 64), part.Random("storage-encryption-key", 64))
	if err != nil {
		return nil, err
	}
	objects := []client.Object{own}
	latency := latencyAccess{}
	contents := part.Flatten(own.Data)
	if p.spec.LDAP == nil {
		secrets, users, err := p.users()
		if err != nil {
			return nil, err
		}
		objects = append(objects, secrets...)
		latency = latencyAccess{name: LatencyUser, confined: true}
		contents = append(contents, users)
	} else {
		contents = append(contents, part.Flatten(p.in.Facts.Secrets[p.spec.LDAP.PasswordSecretRef.Name])...)
		if name := givenLatencyUser(p.st); name != "" {
			latency.name = string(p.in.Facts.Secrets[name]["username"])
		}
	}
	rendered, err := configuration(p.st, p.release, p.database, p.redis, latency, bringsSMTP(p.in))
	if err != nil {
		return nil, err
	}
	config := part.NewConfigMap(part.Meta(p.st, ServiceName(p.st), p.labels()), map[string]string{configKey: rendered})
	contents = append(contents, []byte(rendered))
	contents = append(contents, part.Flatten(p.in.Facts.Secrets[p.database.SecretName])...)
	if p.redis != nil {
		contents = append(contents, part.Flatten(p.in.Facts.Secrets[p.redis.SecretName])...)
	}
	for _, extra := range p.spec.ExtraConfig {
		contents = append(contents, extraContent(p.in, extra))
	}
	if ref := p.smtpPassword(); ref != nil {
		contents = append(contents, p.in.Facts.Secrets[ref.Name][ref.Key])
	}
	pod := p.pod(part.Checksum(contents...))
	objects = append(objects, config,
		part.Service(part.Meta(p.st, ServiceName(p.st), p.labels()), selector,
			part.ServicePort("http", ServicePort), part.ServicePort("metrics", metricsPort)),
		part.Deployment(part.Meta(p.st, ServiceName(p.st), p.labels()), p.replicas(), selector, pod.Template()))
	if p.replicas() > 1 {
		objects = append(objects, part.DisruptionBudget(part.Meta(p.st, ServiceName(p.st), p.labels()), selector))
	}
	return objects, nil
}

// replicas that run now: one with sessions in memory, and one until the storage's first migrations
// are done, which lock the migrations table (facts/authelia.md 1.6). What has run with more before is
// not scaled down because the database does not answer for a moment.
func (p planner) replicas() int32 {
	replicas := wanted(p.spec)
	if p.redis == nil {
		return min(replicas, 1)
	}
	migrated := p.in.Facts.MigratedVersion != "" || p.in.Facts.Workloads[ServiceName(p.st)].Desired > 1 ||
		(p.in.Facts.Database != nil && p.in.Facts.Database.Migrated)
	if !migrated {
		return min(replicas, 1)
	}
	return replicas
}

// users makes the Secrets of the users file: the first administrator's where nobody brings users, the
// latency user's, and the file in effect, which is the one or the other with the latency user added.
func (p planner) users() (objects []client.Object, file []byte, err error) {
	labels := p.labels()
	var own []byte
	if makesAdmin(p.spec) {
		admin, err := part.GeneratedSecret(p.in, part.Retained(p.st, part.Meta(p.st, adminSecret(p.st), labels)),
			part.Fixed("username", "admin"), part.Random("password", 32), digestOf("password"))
		if err != nil {
			return nil, nil, err
		}
		if own, err = adminUsersFile(string(admin.Data["username"]), string(admin.Data["digest"]), CookieDomain(p.st.Spec.Host)); err != nil {
			return nil, nil, fmt.Errorf("rendering the users file: %w", err)
		}
		objects = append(objects, admin)
	} else {
		own = p.in.Facts.Secrets[p.spec.Users.SecretName][usersKey]
	}
	tester, err := part.GeneratedSecret(p.in, part.Meta(p.st, LatencyUserSecretName(p.st), labels),
		part.Fixed("username", LatencyUser), part.Random("password", 32), digestOf("password"))
	if err != nil {
		return nil, nil, err
	}
	file, err = usersFile(own, LatencyUser, user{
		DisplayName: "Latency test of authstack", Password: string(tester.Data["digest"]),
		Email: LatencyUser + "@" + CookieDomain(p.st.Spec.Host), Groups: []string{},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("the users file cannot be used: %w", err)
	}
	effective := part.NewSecret(part.Meta(p.st, UsersSecretName(p.st), labels), map[string][]byte{usersKey: file})
	return append(objects, tester, effective), file, nil
}

func (p planner) pod(checksum string) part.Pod {
	health := part.HTTPProbe("/api/health", "http")
	resources := part.Resources(p.spec.Resources, needs)
	pod := part.Pod{
		UserID: autheliaUID, GracePeriodSeconds: 30, Labels: p.labels(),
		Selector:         part.Selector(p.st, Name, part.ComponentServer),
		ChecksumOfConfig: checksum,
		Container: corev1.Container{
			Name:           "authelia",
			Image:          Image(p.in),
			Ports:          []corev1.ContainerPort{part.Port("http", httpPort), part.Port("metrics", metricsPort)},
			Resources:      resources,
			StartupProbe:   part.Probe(health, 5, 3, 60),
			ReadinessProbe: part.Probe(health, 5, 3, 3),
			LivenessProbe:  part.Probe(health, 30, 5, 5),
			VolumeMounts: []corev1.VolumeMount{
				part.Mount("config", configMount, true),
				part.Mount("secrets", secretMount+"/own", true),
				part.Mount("database", secretMount+"/database", true),
				part.Mount("state", stateMount, false),
				part.Mount("tmp", "/tmp", false),
			},
		},
		Volumes: []corev1.Volume{
			part.FromConfigMap("config", ServiceName(p.st), configKey),
			part.FromSecret("secrets", SecretName(p.st), "session-secret", "storage-encryption-key"),
			part.FromSecret("database", p.database.SecretName, p.database.PasswordKey),
			part.Scratch("state", "16Mi"),
			part.Scratch("tmp", "64Mi"),
		},
	}
	mount := func(volume corev1.Volume, path string) {
		pod.Volumes = append(pod.Volumes, volume)
		pod.Container.VolumeMounts = append(pod.Container.VolumeMounts, part.Mount(volume.Name, path, true))
	}
	configs := []string{configMount + "/" + configKey}
	env := []corev1.EnvVar{
		part.EnvVar("AUTHELIA_SESSION_SECRET_FILE", secretMount+"/own/session-secret"),
		part.EnvVar("AUTHELIA_STORAGE_ENCRYPTION_KEY_FILE", secretMount+"/own/storage-encryption-key"),
		part.EnvVar("AUTHELIA_STORAGE_POSTGRES_PASSWORD_FILE", secretMount+"/database/"+p.database.PasswordKey),
	}
	if p.redis != nil {
		mount(part.FromSecret("redis", p.redis.SecretName, p.redis.PasswordKey), secretMount+"/redis")
		env = append(env, part.EnvVar("AUTHELIA_SESSION_REDIS_PASSWORD_FILE", secretMount+"/redis/"+p.redis.PasswordKey))
	}
	if ldap := p.spec.LDAP; ldap != nil {
		mount(part.FromSecret("ldap", ldap.PasswordSecretRef.Name, ldap.PasswordSecretRef.Key), secretMount+"/ldap")
		env = append(env, part.EnvVar("AUTHELIA_AUTHENTICATION_BACKEND_LDAP_PASSWORD_FILE", secretMount+"/ldap/"+ldap.PasswordSecretRef.Key))
	} else {
		mount(part.FromSecret("users", UsersSecretName(p.st), usersKey), usersMount)
	}
	if ref := p.smtpPassword(); ref != nil {
		mount(part.FromSecret("smtp", ref.Name, ref.Key), secretMount+"/smtp")
		env = append(env, part.EnvVar("AUTHELIA_NOTIFIER_SMTP_PASSWORD_FILE", secretMount+"/smtp/"+ref.Key))
	}
	for i, extra := range p.spec.ExtraConfig {
		name := fmt.Sprintf("extra-%d", i)
		volume := part.FromConfigMap(name, extra.Name, configKey)
		if extra.Kind == v1alpha1.ExtraConfigSecret {
			volume = part.FromSecret(name, extra.Name, configKey)
		}
		mount(volume, configMount+"-"+name)
		configs = append(configs, configMount+"-"+name+"/"+configKey)
	}
	env = append(env, part.EnvVar("X_AUTHELIA_CONFIG", strings.Join(configs, ",")))
	pod.Container.Env = append(env, runtime(p.spec.Version, resources)...)
	return pod
}

// runtime settings of Go: a soft memory limit below the hard one, since hashes of 64 MiB come and go
// faster than the collector looks by itself; and the CPUs, for tags that would count the node's.
func runtime(version string, resources corev1.ResourceRequirements) []corev1.EnvVar {
	env := []corev1.EnvVar{part.EnvVar("GOMEMLIMIT", part.Itoa(resources.Limits.Memory().Value()/10*9))}
	if cpus, limited := resources.Limits[corev1.ResourceCPU]; limited && needsGOMAXPROCS(version) {
		env = append(env, part.EnvVar("GOMAXPROCS", part.Itoa(max(1, (cpus.MilliValue()+999)/1000))))
	}
	return env
}

// smtpPassword names the password of the mail server; nil where it asks for none.
func (p planner) smtpPassword() *v1alpha1.SecretKeyReference {
	if p.spec.SMTP == nil {
		return nil
	}
	return p.spec.SMTP.PasswordSecretRef
}

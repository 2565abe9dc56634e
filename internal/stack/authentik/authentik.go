package authentik

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

// Ports of authentik and of its Service.
const (
	ServicePort = 80
	httpPort    = 9000
	metricsPort = 9300
)

// Name of the product, its database and its role.
const Name = "authentik"

// Objects of a stack.
func serverName(st *v1alpha1.AuthStack) string { return part.Name(st, "authentik-server") }
func workerName(st *v1alpha1.AuthStack) string { return part.Name(st, "authentik-worker") }

// ServiceName of the server.
func ServiceName(st *v1alpha1.AuthStack) string { return part.Name(st, "authentik") }

// SecretName with the secret key, which signs and encrypts and is never changed.
func SecretName(st *v1alpha1.AuthStack) string { return part.Name(st, "authentik") }

// AdminSecretName with the first administrator: username, password, email and an API token.
func AdminSecretName(st *v1alpha1.AuthStack) string { return part.Name(st, "authentik-admin") }

// Keys of the Secret of the first administrator.
const (
	KeyUsername = "username"
	KeyPassword = "password"
	KeyToken    = "token"
	KeyEmail    = "email"
)

// Product says what the other parts need to know.
func Product(st *v1alpha1.AuthStack) (part.Product, error) {
	spec := st.Spec.Authentik
	release, _, err := find(spec.Version)
	if err != nil {
		return part.Product{}, err
	}
	product := part.Product{
		Name: Name, Version: spec.Version, DeepJoins: true, NeedsUTF8: release.utf8,
		// One Pod more of each during a rolling update.
		Connections: int(serverReplicas(spec)+1)*release.server + int(workerReplicas(spec)+1)*release.worker,
		Cache:       part.CachePostgres,
		CacheReason: "authentik from 2025.10 has no Redis: cache, sessions, tasks and websockets are in PostgreSQL",
	}
	if release.redis() {
		product.Cache = part.CacheRedis
		product.CacheReason = "authentik " + release.name + " needs Redis for its cache and websockets; from 2025.10 everything is in PostgreSQL"
		product.CacheMustSurvive = release.sessions == inRedis || release.tasks == inRedis
	}
	return product, nil
}

func serverReplicas(spec *v1alpha1.AuthentikSpec) int32 { return ptr.Deref(spec.Server.Replicas, 2) }
func workerReplicas(spec *v1alpha1.AuthentikSpec) int32 { return ptr.Deref(spec.Worker.Replicas, 1) }

// Image of server and worker.
func Image(in part.Input) string {
	spec := in.Stack.Spec.Authentik
	return cmp.Or(spec.Image, in.Images.OrDefault().Authentik+":"+spec.Version)
}

// Check what can be known to be wrong before anything is planned.
func Check(in part.Input) part.State {
	spec := in.Stack.Spec.Authentik
	if problem := upgradePath(in.Facts.RunningVersion, spec.Version); problem != "" {
		return part.Stalled(v1alpha1.ReasonUpgradePath, problem)
	}
	for i, blueprint := range spec.Blueprints {
		if state := part.RequireConfigMap(in, fmt.Sprintf("spec.authentik.blueprints[%d]", i), blueprint.Name); !state.Ready {
			return state
		}
	}
	if state := checkExtraEnvironment(in); !state.Ready {
		return state
	}
	return checkUploads(in)
}

// Plan of authentik over its database and, before 2025.10, its Redis.
func Plan(in part.Input, database part.Database, redis *part.Redis) ([]client.Object, part.State, error) {
	st, spec := in.Stack, in.Stack.Spec.Authentik
	release, _, err := find(spec.Version)
	if err != nil {
		return nil, part.State{}, err
	}
	labels := part.Labels(st, Name, part.ComponentServer, spec.Version)
	key, err := part.GeneratedSecret(in, part.Retained(st, part.Meta(st, SecretName(st), labels)), part.Random("secret-key", 64))
	if err != nil {
		return nil, part.State{}, err
	}
	admin, err := part.GeneratedSecret(in, part.Retained(st, part.Meta(st, AdminSecretName(st), labels)),
		part.Fixed(KeyUsername, "akadmin"), part.Random(KeyPassword, 32), part.Random(KeyToken, 60),
		part.Fixed(KeyEmail, "root@"+st.Spec.Host))
	if err != nil {
		return nil, part.State{}, err
	}
	p := planner{in: in, st: st, spec: spec, release: release, database: database, redis: redis}
	p.checksum = part.Checksum(append(append(part.Flatten(key.Data), part.Flatten(admin.Data)...), p.foreignSecrets()...)...)
	objects := []client.Object{key, admin, p.service(), p.server(), p.worker()}
	if serverReplicas(spec) > 1 {
		objects = append(objects, part.DisruptionBudget(part.Meta(st, serverName(st), labels), part.Selector(st, Name, part.ComponentServer)))
	}
	if workerReplicas(spec) > 1 {
		objects = append(objects, part.DisruptionBudget(
			part.Meta(st, workerName(st), part.Labels(st, Name, part.ComponentWorker, spec.Version)), part.Selector(st, Name, part.ComponentWorker)))
	}
	return objects, part.WorkloadsState(in, objects), nil
}

// Workloads of the stack.
func Workloads(st *v1alpha1.AuthStack) []string { return []string{serverName(st), workerName(st)} }

// Secrets that a plan reads: its own, and those that the spec names.
func Secrets(st *v1alpha1.AuthStack) []string {
	names := []string{SecretName(st), AdminSecretName(st)}
	for _, ref := range st.Spec.Authentik.EnvFromSecrets {
		names = append(names, ref.Name)
	}
	return names
}

// Claims that the spec names.
func Claims(st *v1alpha1.AuthStack) []string {
	if st.Spec.Authentik.Uploads == nil {
		return nil
	}
	return []string{st.Spec.Authentik.Uploads.ClaimName}
}

// ConfigMaps that the spec names.
func ConfigMaps(st *v1alpha1.AuthStack) []string {
	var names []string
	for _, blueprint := range st.Spec.Authentik.Blueprints {
		names = append(names, blueprint.Name)
	}
	return names
}

func (p planner) foreignSecrets() [][]byte {
	contents := part.Flatten(p.in.Facts.Secrets[p.database.SecretName])
	if p.redis != nil {
		contents = append(contents, part.Flatten(p.in.Facts.Secrets[p.redis.SecretName])...)
	}
	for _, ref := range p.spec.EnvFromSecrets {
		contents = append(contents, part.Flatten(p.in.Facts.Secrets[ref.Name])...)
	}
	return contents
}

func (p planner) service() *corev1.Service {
	service := part.Service(
		part.Meta(p.st, ServiceName(p.st), part.Labels(p.st, Name, part.ComponentServer, p.spec.Version)),
		part.Selector(p.st, Name, part.ComponentServer),
		part.ServicePort("http", ServicePort), part.ServicePort("metrics", metricsPort))
	return service
}

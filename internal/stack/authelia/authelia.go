package authelia

import (
	"cmp"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

// Name of the product, its database and its role.
const Name = "authelia"

// Ports of Authelia and of its Service.
const (
	ServicePort = 80
	httpPort    = 9091
	metricsPort = 9959
)

// connectionsPerPod: Authelia has no pool setting, logins come in bursts of a few statements each
// (facts/authelia.md 1.6).
const connectionsPerPod = 25

// ServiceName of Authelia; its Deployment has the same name.
func ServiceName(st *v1alpha1.AuthStack) string { return part.Name(st, "authelia") }

// SecretName with the session secret and the storage encryption key, which never change.
func SecretName(st *v1alpha1.AuthStack) string { return part.Name(st, "authelia") }

// UsersSecretName with the users file in effect.
func UsersSecretName(st *v1alpha1.AuthStack) string { return part.Name(st, "authelia-users") }

// LatencyUserSecretName with the latency user's name, password and digest.
func LatencyUserSecretName(st *v1alpha1.AuthStack) string { return part.Name(st, "latency-user") }

func adminSecret(st *v1alpha1.AuthStack) string { return part.Name(st, "authelia-admin") }

// AdminSecretName with the first user's name and password; empty where the users are somebody else's.
func AdminSecretName(st *v1alpha1.AuthStack) string {
	if !makesAdmin(st.Spec.Authelia) {
		return ""
	}
	return adminSecret(st)
}

func makesAdmin(spec *v1alpha1.AutheliaSpec) bool {
	return spec.LDAP == nil && (spec.Users == nil || spec.Users.SecretName == "")
}

// Product says what the other parts need to know.
func Product(st *v1alpha1.AuthStack) (part.Product, error) {
	spec := st.Spec.Authelia
	if _, _, err := find(spec.Version); err != nil {
		return part.Product{}, err
	}
	product := part.Product{Name: Name, Version: spec.Version, CacheMustSurvive: true}
	switch cached := st.Spec.Cache; {
	case cached != nil && cached.Postgres != nil:
		return part.Product{}, fmt.Errorf("Authelia never keeps sessions in PostgreSQL; write cache: {redis: {}} or cache: {memory: {}}")
	case cached != nil && cached.Redis != nil:
		product.Cache, product.CacheReason = part.CacheRedis, "spec.cache.redis: sessions survive a restart of Authelia and are shared by its replicas"
	case cached != nil && cached.Memory != nil:
		product.Cache, product.CacheReason = part.CacheMemory, "spec.cache.memory: sessions are in Authelia's own memory, which allows one replica and logs everybody out at a restart"
	case wanted(spec) > 1:
		product.Cache, product.CacheReason = part.CacheRedis, "more than one replica share their sessions, and Authelia shares them by Redis alone"
	default:
		product.Cache, product.CacheReason = part.CacheMemory, "one replica keeps its sessions in memory, 13 times faster than Redis for an authorised check; a restart logs everybody out"
	}
	replicas := wanted(spec)
	if product.Cache == part.CacheMemory {
		replicas = min(replicas, 1)
	}
	// One Pod more during a rolling update.
	product.Connections = int(replicas+1) * connectionsPerPod
	return product, nil
}

func wanted(spec *v1alpha1.AutheliaSpec) int32 { return ptr.Deref(spec.Replicas, 1) }

// Image of Authelia.
func Image(in part.Input) string {
	spec := in.Stack.Spec.Authelia
	return cmp.Or(spec.Image, in.Images.OrDefault().Authelia+":"+spec.Version)
}

// Check what can be known to be wrong before anything is planned.
func Check(in part.Input) part.State {
	spec := in.Stack.Spec.Authelia
	if problem := upgradePath(in.Facts.RunningVersion, spec.Version); problem != "" {
		return part.Stalled(v1alpha1.ReasonUpgradePath, problem)
	}
	if problem := checkAccess(spec.AccessControl); problem != "" {
		return part.Stalled(v1alpha1.ReasonInvalidSpec, problem)
	}
	if state := checkExtraConfig(in); !state.Ready {
		return state
	}
	if state := checkSMTP(in); !state.Ready {
		return state
	}
	if spec.LDAP != nil {
		ref := spec.LDAP.PasswordSecretRef
		if state := part.RequireSecret(in, "spec.authelia.ldap.passwordSecretRef", ref.Name, ref.Key); !state.Ready {
			return state
		}
		if name := givenLatencyUser(in.Stack); name != "" {
			return part.RequireSecret(in, "spec.latency.userSecretName", name, "username", "password")
		}
		return part.Ready("")
	}
	if makesAdmin(spec) {
		return part.Ready("")
	}
	if spec.Users.SecretName == UsersSecretName(in.Stack) {
		return part.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("the Secret %s is the operator's own; give yours in spec.authelia.users.secretName another name", spec.Users.SecretName))
	}
	if state := part.RequireSecret(in, "spec.authelia.users.secretName", spec.Users.SecretName, usersKey); !state.Ready {
		return state
	}
	if _, err := usersFile(in.Facts.Secrets[spec.Users.SecretName][usersKey], LatencyUser, user{}); err != nil {
		return part.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("the users file in Secret %s, key %s, cannot be used: %s", spec.Users.SecretName, usersKey, err))
	}
	return part.Ready("")
}

func givenLatencyUser(st *v1alpha1.AuthStack) string {
	if st.Spec.Latency == nil {
		return ""
	}
	return st.Spec.Latency.UserSecretName
}

// LatencyUserSecret that tests log in with; empty where there is none.
func LatencyUserSecret(st *v1alpha1.AuthStack) string {
	if st.Spec.Authelia.LDAP != nil {
		return givenLatencyUser(st)
	}
	return LatencyUserSecretName(st)
}

// Plan of Authelia over its database and, with more than one replica, its Redis.
func Plan(in part.Input, database part.Database, redis *part.Redis) ([]client.Object, part.State, error) {
	if redis != nil && (redis.IP == "" || redis.IP == "None") {
		return nil, part.Progressing(fmt.Sprintf("waiting for the Service %s to have an address: Authelia reaches Redis by it", redis.Host)), nil
	}
	st, spec := in.Stack, in.Stack.Spec.Authelia
	release, _, err := find(spec.Version)
	if err != nil {
		return nil, part.State{}, err
	}
	p := planner{in: in, st: st, spec: spec, release: release, database: database, redis: redis}
	objects, err := p.objects()
	if err != nil {
		return nil, part.State{}, err
	}
	return objects, part.WorkloadsState(in, objects), nil
}

// Workloads of the stack.
func Workloads(st *v1alpha1.AuthStack) []string { return []string{ServiceName(st)} }

// Secrets that a plan reads: its own, and those that the spec names.
func Secrets(st *v1alpha1.AuthStack) []string {
	spec := st.Spec.Authelia
	names := []string{SecretName(st), LatencyUserSecret(st)}
	switch {
	case spec.LDAP != nil:
		names = append(names, spec.LDAP.PasswordSecretRef.Name)
	case makesAdmin(spec):
		names = append(names, adminSecret(st))
	default:
		names = append(names, spec.Users.SecretName)
	}
	if spec.SMTP != nil && spec.SMTP.PasswordSecretRef != nil {
		names = append(names, spec.SMTP.PasswordSecretRef.Name)
	}
	return append(names, extraNames(spec, v1alpha1.ExtraConfigSecret)...)
}

// ConfigMaps that the spec names.
func ConfigMaps(st *v1alpha1.AuthStack) []string {
	return extraNames(st.Spec.Authelia, v1alpha1.ExtraConfigMap)
}

func extraNames(spec *v1alpha1.AutheliaSpec, kind v1alpha1.ExtraConfigKind) []string {
	var names []string
	for _, extra := range spec.ExtraConfig {
		if kindOf(extra) == kind {
			names = append(names, extra.Name)
		}
	}
	return names
}

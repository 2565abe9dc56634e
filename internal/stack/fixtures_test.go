package stack_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/durability"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack"
)

// stream is randomness that is the same in every run of the tests.
type stream struct {
	seed    string
	counter uint64
}

func (s *stream) Read(p []byte) (int, error) {
	for n := 0; n < len(p); {
		var block [8]byte
		binary.BigEndian.PutUint64(block[:], s.counter)
		s.counter++
		sum := sha256.Sum256(append([]byte(s.seed), block[:]...))
		n += copy(p[n:], sum[:])
	}
	return len(p), nil
}

func random(seed string) io.Reader { return &stream{seed: seed} }

var classes = []facts.StorageClass{
	{Name: "ceph-rbd", Provisioner: "rook-ceph.rbd.csi.ceph.com"},
	{Name: "local-path", Provisioner: "rancher.io/local-path", WaitForFirstConsumer: true, Default: true},
	{Name: "nfs", Provisioner: "nfs.csi.k8s.io"},
}

func newStack(change func(*v1alpha1.AuthStackSpec)) *v1alpha1.AuthStack {
	st := &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Name: "sso", Namespace: "auth", Generation: 1}}
	st.Spec.Host = "sso.example.com"
	change(&st.Spec)
	return st
}

func secret(pairs ...string) map[string][]byte {
	data := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = []byte(pairs[i+1])
	}
	return data
}

const zalandoSecret = "authentik.sso-postgres.credentials.postgresql.acid.zalan.do"

// usersYAML has the digest of somebody's own file; the canary must not leave the Secret.
const usersYAML = `users:
  jane: {displayname: Jane, password: "$argon2id$v=19$canary-digest", email: jane@example.com, groups: [staff]}
`

// cases of stacks, as people write them, with what has to be in the cluster for them.
var cases = map[string]func() stack.Input{
	"authentik with nothing but a version": func() stack.Input {
		return input(newStack(func(s *v1alpha1.AuthStackSpec) { s.Authentik = &v1alpha1.AuthentikSpec{Version: "2026.8.3"} }))
	},
	"authentik 2025.8 with Redis and a blueprint": func() stack.Input {
		in := input(newStack(func(s *v1alpha1.AuthStackSpec) {
			s.Authentik = &v1alpha1.AuthentikSpec{
				Version: "2025.8.6", Blueprints: []v1alpha1.LocalReference{{Name: "company"}},
				Uploads: &v1alpha1.AuthentikUploads{ClaimName: "uploads"},
				Server:  v1alpha1.WorkloadSpec{Replicas: new(int32(1))},
			}
			s.Cache = &v1alpha1.CacheSpec{Redis: &v1alpha1.RedisCache{}}
			s.DeletionPolicy = v1alpha1.DeletionDelete
		}))
		in.Facts.ConfigMaps = map[string]map[string]string{"company": {"company.yaml": "version: 1\n"}}
		in.Facts.Claims = map[string]facts.Claim{"uploads": {AccessModes: []string{"ReadWriteOnce"}}}
		return in
	},
	"authentik 2025.6 with its tasks in Redis": func() stack.Input {
		return input(newStack(func(s *v1alpha1.AuthStackSpec) { s.Authentik = &v1alpha1.AuthentikSpec{Version: "2025.6.4"} }))
	},
	"authentik on Zalando's PostgreSQL and Ceph, relaxed": func() stack.Input {
		in := input(newStack(func(s *v1alpha1.AuthStackSpec) {
			s.Authentik = &v1alpha1.AuthentikSpec{Version: "2025.12.4"}
			s.Postgres = &v1alpha1.PostgresSpec{
				Zalando: &v1alpha1.ZalandoPostgres{}, Durability: v1alpha1.DurabilityRelaxed,
				Storage:    &v1alpha1.StorageSpec{CephRBD: &v1alpha1.CephRBDStorage{}, Size: new(resource.MustParse("20Gi"))},
				Parameters: map[string]string{"work_mem": "8MB", "log_min_duration_statement": "250ms"},
			}
		}))
		in.Facts.ZalandoInstalled, in.Facts.Zalando = true, "Running"
		in.Facts.Secrets = map[string]map[string][]byte{zalandoSecret: secret("username", "authentik", "password", "canary-zalando")}
		return in
	},
	"authentik on an external database": func() stack.Input {
		in := input(newStack(func(s *v1alpha1.AuthStackSpec) {
			s.Authentik = &v1alpha1.AuthentikSpec{
				Version: "2026.2.2", Uploads: &v1alpha1.AuthentikUploads{ClaimName: "uploads"},
				EnvFromSecrets: []v1alpha1.LocalReference{{Name: "mail"}, {Name: "blueprint-values"}},
			}
			s.Postgres = &v1alpha1.PostgresSpec{External: &v1alpha1.ExternalPostgres{Host: "db.example.com", Database: "sso", SecretName: "db"}}
		}))
		in.Facts.Secrets = map[string]map[string][]byte{
			"db":               secret("username", "sso", "password", "canary-external"),
			"mail":             secret("AUTHENTIK_EMAIL__HOST", "canary-mail.example.com", "AUTHENTIK_EMAIL__PASSWORD", "canary-mail", "AUTHENTIK_LOG_LEVEL", "canary-warning"),
			"blueprint-values": secret("GITHUB_CLIENT_SECRET", "canary-github"),
		}
		in.Facts.Claims = map[string]facts.Claim{"uploads": {AccessModes: []string{"ReadWriteMany"}}}
		return in
	},
	"Authelia with its own users and sessions in memory": func() stack.Input {
		return input(newStack(func(s *v1alpha1.AuthStackSpec) {
			s.Authelia = &v1alpha1.AutheliaSpec{Version: "4.39.20", Users: &v1alpha1.AutheliaUsers{}}
		}))
	},
	"Authelia 4.38 with three replicas, Redis, a users file and rules": func() stack.Input {
		in := input(newStack(func(s *v1alpha1.AuthStackSpec) {
			s.Authelia = &v1alpha1.AutheliaSpec{
				Version: "4.38.19", Replicas: new(int32(3)), Users: &v1alpha1.AutheliaUsers{SecretName: "people"},
				ExtraConfig: []v1alpha1.AutheliaExtraConfig{{Name: "oidc"}},
				AccessControl: &v1alpha1.AutheliaAccessControl{DefaultPolicy: "two_factor", Rules: []v1alpha1.AutheliaAccessRule{
					{Domain: []string{"public.example.com"}, Policy: "bypass"},
					{Domain: []string{"admin.example.com"}, Policy: "two_factor", Subject: []string{"group:admins"}},
					{Domain: []string{"admin.example.com"}, Policy: "deny"},
				}},
				Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
				}},
			}
		}))
		in.Facts.Secrets = map[string]map[string][]byte{"people": secret("users_database.yml", usersYAML)}
		in.Facts.ConfigMaps = map[string]map[string]string{"oidc": {"configuration.yml": "theme: dark\n"}}
		return in
	},
	"Authelia with LDAP on Zalando's PostgreSQL": func() stack.Input {
		in := input(newStack(func(s *v1alpha1.AuthStackSpec) {
			s.Authelia = &v1alpha1.AutheliaSpec{Version: "4.39.20", LDAP: &v1alpha1.AutheliaLDAP{
				Address: "ldaps://ldap.example.com", BaseDN: "dc=example,dc=com", User: "cn=authelia,dc=example,dc=com",
				PasswordSecretRef: v1alpha1.SecretKeyReference{Name: "ldap", Key: "password"},
			}, SMTP: &v1alpha1.AutheliaSMTP{
				Address: "submissions://mail.example.com:465", Sender: "Authelia <authelia@example.com>", Username: "authelia",
				PasswordSecretRef: &v1alpha1.SecretKeyReference{Name: "mail", Key: "password"},
			}, ExtraConfig: []v1alpha1.AutheliaExtraConfig{{Kind: v1alpha1.ExtraConfigSecret, Name: "oidc"}}}
			s.Cache = &v1alpha1.CacheSpec{Redis: &v1alpha1.RedisCache{AppendOnly: v1alpha1.RedisAppendDisabled}}
			s.Postgres = &v1alpha1.PostgresSpec{Zalando: &v1alpha1.ZalandoPostgres{Version: "16", Instances: new(int32(1))}}
			s.Latency = &v1alpha1.LatencySpec{UserSecretName: "tester"}
		}))
		in.Facts.ZalandoInstalled, in.Facts.Zalando = true, "Running"
		in.Facts.Secrets = map[string]map[string][]byte{
			"mail": secret("password", "canary-mail"), "oidc": secret("configuration.yml", "identity_providers: {oidc: {hmac_secret: canary-hmac}}\n"),
			"ldap": secret("password", "canary-ldap"), "tester": secret("username", "probe", "password", "canary-tester"),
			"authelia.sso-postgres.credentials.postgresql.acid.zalan.do": secret("username", "authelia", "password", "canary-zalando"),
		}
		return in
	},
}

func input(st *v1alpha1.AuthStack) stack.Input {
	return stack.Input{
		Stack: st, Random: random("tests"), OperatorNamespace: "authstack-system",
		Facts: facts.Stack{StorageClasses: classes},
	}
}

func build(t *testing.T, in stack.Input) *stack.Plan {
	t.Helper()
	plan, err := stack.Build(in)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	return plan
}

func objects(plan *stack.Plan) []client.Object {
	var all []client.Object
	for _, phase := range plan.Phases() {
		all = append(all, phase.Objects...)
	}
	return all
}

// observe does to the facts what a cluster does with a plan's objects: Secrets are stored, Services
// get addresses, Pods become ready, and PostgreSQL takes its settings.
func observe(in *stack.Input, plan *stack.Plan) {
	f := &in.Facts
	if f.Secrets == nil {
		f.Secrets = map[string]map[string][]byte{}
	}
	f.Workloads, f.ServiceIPs = map[string]facts.Workload{}, map[string]string{}
	for _, object := range objects(plan) {
		switch object := object.(type) {
		case *corev1.Secret:
			f.Secrets[object.Name] = object.Data
		case *corev1.Service:
			f.ServiceIPs[object.Name] = fmt.Sprintf("10.96.0.%d", 10+len(f.ServiceIPs))
		case *appsv1.StatefulSet:
			made := workload(*object.Spec.Replicas, object.Annotations)
			for _, template := range object.Spec.VolumeClaimTemplates {
				made.ClaimSize = template.Spec.Resources.Requests.Storage().String()
				if class := template.Spec.StorageClassName; class != nil {
					made.ClaimClass = *class
				}
			}
			f.Workloads[object.Name] = made
		case *appsv1.Deployment:
			f.Workloads[object.Name] = workload(*object.Spec.Replicas, object.Annotations)
		}
	}
	settings := map[string]facts.Setting{}
	for _, setting := range plan.Status.Database.Settings {
		settings[setting.Name] = facts.Setting{Value: setting.Desired, Source: "configuration file", VarType: "string"}
	}
	var triggers facts.Durability
	switch {
	case len(plan.Durability.Install) > 0:
		triggers = durability.Intact(plan.Durability.Install)
	case len(plan.Durability.Remove) == 0 && f.Database != nil:
		triggers = f.Database.Durability
	}
	f.Database = &facts.Database{Version: "17.5", Encoding: "UTF8", Settings: settings, RoleSettings: plan.RoleSettings, Migrated: true, Durability: triggers}
	if plan.AnalyzeNeeded {
		f.MigratedVersion = plan.Status.IdentityProvider.Version
		f.RunningVersion = f.MigratedVersion
	}
	in.Stack.Status = plan.Status
}

func workload(replicas int32, annotations map[string]string) facts.Workload {
	return facts.Workload{
		Desired: replicas, Updated: replicas, Ready: replicas, Available: replicas, Observed: true,
		SpecHash: annotations["authstack.dev/spec-hash"],
	}
}

// settle plans and observes until nothing changes any more.
func settle(t *testing.T, in stack.Input) (stack.Input, *stack.Plan) {
	t.Helper()
	plan := build(t, in)
	for range 6 {
		observe(&in, plan)
		plan = build(t, in)
	}
	return in, plan
}

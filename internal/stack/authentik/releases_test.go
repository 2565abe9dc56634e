package authentik

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/part"
)

// planned Deployments of a version, by component.
func planned(t *testing.T, version string) (server, worker *appsv1.Deployment, product part.Product) {
	t.Helper()
	st := &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Name: "sso", Namespace: "auth"}}
	st.Spec.Host, st.Spec.Authentik = "sso.example.com", &v1alpha1.AuthentikSpec{Version: version}
	product, err := Product(st)
	if err != nil {
		t.Fatal(err)
	}
	var redis *part.Redis
	if product.Cache == part.CacheRedis {
		redis = &part.Redis{Host: "sso-redis", Port: 6379, SecretName: "sso-redis", PasswordKey: "password"}
	}
	objects, _, err := Plan(part.Input{Stack: st, Facts: facts.Stack{}, Random: strings.NewReader(strings.Repeat("0123456789abcdef", 64))},
		part.Database{Target: part.DatabaseTarget{Port: 5432, Database: "authentik", SSLMode: "require"}, ProductHost: "db", SecretName: "db", UsernameKey: "username", PasswordKey: "password"}, redis)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if deployment, is := object.(*appsv1.Deployment); is {
			if deployment.Name == "sso-authentik-server" {
				server = deployment
			} else {
				worker = deployment
			}
		}
	}
	return server, worker, product
}

func TestEachReleaseGetsItsOwnSettings(t *testing.T) {
	for version, want := range map[string]struct {
		redis, mustSurvive, ipv6, baseURL bool
		threads, data                     string
	}{
		"2025.2.4":  {true, true, false, false, "CONCURRENCY", "/media"},
		"2025.4.1":  {true, true, false, false, "CONCURRENCY", "/media"},
		"2025.6.4":  {true, true, false, false, "CONCURRENCY", "/media"},
		"2025.8.6":  {true, false, false, false, "THREADS", "/media"},
		"2025.10.4": {false, false, false, false, "THREADS", "/media"},
		"2025.12.4": {false, false, false, false, "THREADS", "/data"},
		"2026.2.2":  {false, false, false, false, "THREADS", "/data"},
		"2026.5.8":  {false, false, true, false, "THREADS", "/data"},
		"2026.8.3":  {false, false, true, true, "THREADS", "/data"},
	} {
		t.Run(version, func(t *testing.T) {
			server, worker, product := planned(t, version)
			if (product.Cache == part.CacheRedis) != want.redis || product.CacheMustSurvive != want.mustSurvive {
				t.Errorf("cache %s, must survive: %v", product.Cache, product.CacheMustSurvive)
			}
			for _, deployment := range []*appsv1.Deployment{server, worker} {
				container := deployment.Spec.Template.Spec.Containers[0]
				env := map[string]string{}
				for _, variable := range container.Env {
					env[variable.Name] = variable.Value
				}
				isWorker := container.Args[0] == "worker"
				for name, expected := range map[string]bool{
					"AUTHENTIK_REDIS__HOST":              want.redis,
					"AUTHENTIK_LISTEN__HTTP":             want.ipv6,
					"AUTHENTIK_WEB__BASE_URL":            want.baseURL,
					"AUTHENTIK_WORKER__" + want.threads:  isWorker,
					"AUTHENTIK_BOOTSTRAP_TOKEN":          isWorker,
					"AUTHENTIK_POSTGRESQL__CONN_MAX_AGE": false,
					"AUTHENTIK_POSTGRESQL__CONN_OPTIONS": false,
					"AUTHENTIK_POSTGRESQL__PASSWORD":     true,
					"AUTHENTIK_SECRET_KEY":               true,
					"AUTHENTIK_DISABLE_UPDATE_CHECK":     true,
				} {
					if _, set := env[name]; set != expected {
						t.Errorf("%s: %s set: %v, want %v", container.Name, name, set, expected)
					}
				}
				if env["AUTHENTIK_POSTGRESQL__SSLMODE"] != "require" {
					t.Errorf("sslmode %q", env["AUTHENTIK_POSTGRESQL__SSLMODE"])
				}
				mounted := map[string]bool{}
				for _, mount := range container.VolumeMounts {
					mounted[mount.MountPath] = true
				}
				if !mounted[want.data] || !mounted["/dev/shm"] || !mounted["/tmp"] {
					t.Errorf("mounts %v, want %s among them", mounted, want.data)
				}
			}
		})
	}
}

func TestMoreConnectionsAreNeededWithoutRedis(t *testing.T) {
	_, _, before := planned(t, "2025.8.6")
	_, _, after := planned(t, "2025.10.4")
	if ratio := float64(after.Connections) / float64(before.Connections); ratio < 1.4 || ratio > 1.7 {
		t.Errorf("%d after %d; the release notes say about 50 %% more", after.Connections, before.Connections)
	}
}

func TestUpgradePath(t *testing.T) {
	for sentence, test := range map[string]struct{ running, wanted, says string }{
		"a first installation":  {"", "2026.8.3", ""},
		"a patch release":       {"2026.8.1", "2026.8.3", ""},
		"the next release":      {"2025.12.4", "2026.2.2", ""},
		"two releases at once":  {"2025.12.4", "2026.5.8", "write a version of 2026.2 first"},
		"back":                  {"2026.2.2", "2025.12.4", "only go forward"},
		"from an unknown one":   {"2024.12.1", "2025.2.1", ""},
		"to an unknown release": {"2026.8.3", "2027.1.0", "known are"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := upgradePath(test.running, test.wanted)
			if (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
				t.Errorf("%q, want %q", got, test.says)
			}
		})
	}
}

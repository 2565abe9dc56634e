package authentik

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/part"
)

// given is the input of a stack with this variable in a Secret, and the planner of it.
func given(t *testing.T, version, variable, value string) planner {
	t.Helper()
	st := &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Name: "sso", Namespace: "auth"}}
	st.Spec.Host = "sso.example.com"
	st.Spec.Authentik = &v1alpha1.AuthentikSpec{Version: version, EnvFromSecrets: []v1alpha1.LocalReference{{Name: "extra"}}}
	release, _, err := find(version)
	if err != nil {
		t.Fatal(err)
	}
	in := part.Input{Stack: st, Facts: facts.Stack{Secrets: map[string]map[string][]byte{"extra": {variable: []byte(value)}}}}
	return planner{in: in, st: st, spec: st.Spec.Authentik, release: release}
}

func TestWhatTheOperatorSetsIsRefusedFromSecrets(t *testing.T) {
	for variable, says := range map[string]string{
		"AUTHENTIK_POSTGRESQL__HOST":                    "spec.postgres",
		"AUTHENTIK_POSTGRESQL__READ_REPLICAS__0__HOST":  "spec.postgres",
		"AUTHENTIK_postgresql__host":                    "spec.postgres",
		"AUTHENTIK_POSTGRESQL.HOST":                     "spec.postgres",
		"AUTHENTIK_REDIS__HOST":                         "spec.cache.redis",
		"AUTHENTIK_SECRET_KEY":                          "generates it",
		"AUTHENTIK_BOOTSTRAP_PASSWORD":                  "first administrator",
		"AUTHENTIK_BOOTSTRAP_PASSWORD_HASH":             "first administrator",
		"AUTHENTIK_LISTEN__HTTP":                        "Services and probes",
		"AUTHENTIK_WEB__BASE_URL":                       "spec.host",
		"AUTHENTIK_WEB__PATH":                           "at /",
		"AUTHENTIK_BLUEPRINTS_DIR":                      "spec.authentik.blueprints",
		"AUTHENTIK_SKIP_MIGRATIONS":                     "migrations",
		"AUTHENTIK_LISTEN__TRUSTED_PROXY_CIDRS":         "",
		"AUTHENTIK_EMAIL__HOST":                         "",
		"AUTHENTIK_STORAGE__S3__SECRET_KEY":             "",
		"AUTHENTIK_WEB__WORKERS":                        "",
		"AUTHENTIK_LOG_LEVEL":                           "",
		"AUTHENTIK_SECRET_KEY_OF_SOMETHING_ELSE":        "",
		"GITHUB_CLIENT_SECRET":                          "",
		"AWS_ACCESS_KEY_ID":                             "",
		"AUTHENTIK_WORKER__THREADS":                     "",
		"AUTHENTIK_AVATARS":                             "",
		"AUTHENTIK_DISABLE_UPDATE_CHECK":                "",
		"AUTHENTIK_WEB__BASE_URL_OF_SOMETHING_ELSE":     "",
		"AUTHENTIK_COOKIE_DOMAIN":                       "",
		"AUTHENTIK_SESSIONS__UNAUTHENTICATED_AGE":       "",
		"AUTHENTIK_OUTPOSTS__DISABLE_EMBEDDED_OUTPOST":  "",
		"AUTHENTIK_CACHE__TIMEOUT_POLICIES":             "",
		"AUTHENTIK_REPUTATION__EXPIRY":                  "",
		"AUTHENTIK_ERROR_REPORTING__ENABLED":            "",
		"AUTHENTIK_STORAGE__MEDIA__S3__ACCESS_KEY":      "",
		"AUTHENTIK_STORAGE__MEDIA__S3__SESSION_PROFILE": "",
	} {
		t.Run(variable, func(t *testing.T) {
			state := checkExtraEnvironment(given(t, "2026.8.3", variable, "canary-value").in)
			if state.Ready != (says == "") || !strings.Contains(state.Message, says) || strings.Contains(state.Message, "canary") {
				t.Errorf("%+v", state)
			}
			if says != "" && (!state.Stalled || state.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(state.Message, "Secret extra of spec.authentik.envFromSecrets[0] has the key "+variable)) {
				t.Errorf("%+v", state)
			}
		})
	}
}

// Kubernetes has env win over envFrom without a word, so what a user may change must not be in env.
func TestASuggestionYieldsToASecret(t *testing.T) {
	for _, variable := range []string{"AUTHENTIK_LOG_LEVEL", "AUTHENTIK_AVATARS", "AUTHENTIK_WORKER__THREADS", "AUTHENTIK_ERROR_REPORTING__ENABLED"} {
		p := given(t, "2026.8.3", variable, "theirs")
		for _, env := range p.environment("worker") {
			if env.Name == variable {
				t.Errorf("%s is set though a Secret has it", variable)
			}
		}
		if from, _ := p.extraEnvironment(); len(from) != 1 || from[0].SecretRef.Name != "extra" {
			t.Errorf("envFrom: %+v", from)
		}
	}
}

// Each variable that is set without asking is refused from Secrets, so that none is ignored silently.
func TestNoVariableIsSetByBoth(t *testing.T) {
	for _, release := range releases {
		p := given(t, release.name+".0", "UNRELATED", "x")
		p.redis = &part.Redis{}
		suggested := map[string]bool{}
		for _, mode := range []string{"server", "worker"} {
			for _, env := range p.suggestions(mode) {
				suggested[env.Name] = true
			}
		}
		for _, mode := range []string{"server", "worker"} {
			for _, env := range p.environment(mode) {
				if !suggested[env.Name] && ownedBecause(env.Name) == "" {
					t.Errorf("%s: %s of a Secret would be ignored", release.name, env.Name)
				}
			}
		}
	}
}

func TestFreshStacksDoNotAskGravatar(t *testing.T) {
	for _, release := range releases {
		for _, mode := range []string{"server", "worker"} {
			found := ""
			for _, env := range given(t, release.name+".0", "UNRELATED", "x").environment(mode) {
				if env.Name == "AUTHENTIK_AVATARS" {
					found = env.Value
				}
			}
			if found != "initials" {
				t.Errorf("%s %s: avatars %q", release.name, mode, found)
			}
		}
	}
}

func TestUploads(t *testing.T) {
	for sentence, test := range map[string]struct {
		version string
		claim   *v1alpha1.AuthentikUploads
		modes   []string
		setting string
		mount   string
		folder  string
		oneNode bool
		says    string
	}{
		"nothing given":                         {version: "2025.10.4", mount: "/media", says: "lost at the next rollout"},
		"nothing given, later":                  {version: "2025.12.4", mount: "/data", says: "lost at the next rollout"},
		"S3 before 2025.12":                     {version: "2025.10.4", setting: "AUTHENTIK_STORAGE__MEDIA__BACKEND", mount: "/media", says: "in S3"},
		"S3 from 2025.12":                       {version: "2025.12.4", setting: "AUTHENTIK_STORAGE__BACKEND", mount: "/data", says: "in S3"},
		"a claim for all nodes":                 {version: "2026.8.3", claim: &v1alpha1.AuthentikUploads{ClaimName: "files"}, modes: []string{"ReadWriteMany"}, mount: "/data", says: "PersistentVolumeClaim files at /data"},
		"a claim for one node":                  {version: "2026.8.3", claim: &v1alpha1.AuthentikUploads{ClaimName: "files"}, modes: []string{"ReadWriteOnce"}, mount: "/data", oneNode: true, says: "outlive Pods"},
		"the same folder before the path moved": {version: "2025.10.4", claim: &v1alpha1.AuthentikUploads{ClaimName: "files"}, modes: []string{"ReadWriteMany"}, mount: "/media", folder: "media", says: "PersistentVolumeClaim files at /media"},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := given(t, test.version, "UNRELATED", "x")
			if test.setting != "" {
				p = given(t, test.version, test.setting, "s3")
			}
			p.spec.Uploads = test.claim
			if test.claim != nil {
				p.in.Facts.Claims = map[string]facts.Claim{"files": {AccessModes: test.modes}}
			}
			if state := checkUploads(p.in); !state.Ready {
				t.Fatalf("%+v", state)
			}
			if got := Uploads(p.in); !strings.Contains(got, test.says) {
				t.Errorf("%s", got)
			}
			for _, mode := range []string{"server", "worker"} {
				spec := p.pod(mode, mode, v1alpha1.WorkloadSpec{}, serverNeeds).Template().Spec
				var mount corev1.VolumeMount
				for _, found := range spec.Containers[0].VolumeMounts {
					if found.Name == uploadsVolume {
						mount = found
					}
				}
				if mount.MountPath != test.mount || mount.SubPath != test.folder || mount.ReadOnly {
					t.Errorf("%s: %+v", mode, mount)
				}
				if (spec.Affinity != nil) != test.oneNode {
					t.Errorf("%s: affinity %+v", mode, spec.Affinity)
				}
				for _, volume := range spec.Volumes {
					if volume.Name == uploadsVolume && (volume.PersistentVolumeClaim != nil) != (test.claim != nil) {
						t.Errorf("%s: %+v", mode, volume)
					}
				}
			}
		})
	}
}

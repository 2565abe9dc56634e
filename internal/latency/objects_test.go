package latency

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/loadtests/scenarios"
)

func input(t *testing.T) JobInput {
	t.Helper()
	test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "sso", Name: strings.Repeat("x", 52)}}
	test.Spec.StackRef.Name = "demo"
	plan, err := Resolve(test, authentik())
	if err != nil {
		t.Fatal(err)
	}
	return JobInput{Test: test, Plan: plan, Image: "authstack.dev/k6:dev", Run: 123456, Repeat: 20,
		Target: Target{Provider: Authentik, Version: "2025.12.4", BaseURL: "http://demo.sso.svc:9000", Host: "sso.example.com"},
		Credentials: Credentials{Users: []User{{Username: "canary-user", Password: "canary-password"}},
			OIDC: &OIDCClient{ClientID: "probe", ClientSecret: "canary-client-secret", RedirectURI: "https://probe.example.com/callback", Application: "probe"}}}
}

func made(t *testing.T, in JobInput) (*corev1.ConfigMap, *corev1.Secret, *batchv1.Job) {
	t.Helper()
	objects := Objects(in)
	return objects[0].(*corev1.ConfigMap), objects[1].(*corev1.Secret), objects[2].(*batchv1.Job)
}

func TestCredentialsAreInTheSecretAlone(t *testing.T) {
	config, secret, job := made(t, input(t))
	for _, object := range []any{config, job} {
		text, _ := json.Marshal(object)
		if strings.Contains(string(text), "canary") {
			t.Errorf("%T holds a credential", object)
		}
	}
	var credentials Credentials
	if err := json.Unmarshal(secret.Data["credentials.json"], &credentials); err != nil || credentials.Users[0].Password != "canary-password" || credentials.OIDC.ClientSecret != "canary-client-secret" {
		t.Errorf("credentials.json: %v, %v", credentials, err)
	}
}

func TestThePodIsRestricted(t *testing.T) {
	_, _, job := made(t, input(t))
	pod, c := job.Spec.Template.Spec, job.Spec.Template.Spec.Containers[0]
	switch {
	case *pod.AutomountServiceAccountToken, *pod.EnableServiceLinks, !*pod.SecurityContext.RunAsNonRoot, *pod.SecurityContext.RunAsUser == 0,
		pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault,
		*c.SecurityContext.AllowPrivilegeEscalation, !*c.SecurityContext.ReadOnlyRootFilesystem,
		c.SecurityContext.Capabilities.Drop[0] != "ALL", pod.RestartPolicy != corev1.RestartPolicyNever, *job.Spec.BackoffLimit != 0:
		t.Errorf("the Pod is not restricted: %+v", pod)
	}
	if !c.Resources.Limits.Cpu().IsZero() || c.Resources.Limits.Memory().String() != "512Mi" || c.Resources.Requests.Cpu().String() != "500m" {
		t.Errorf("resources: %+v", c.Resources)
	}
	for _, label := range []string{v1alpha1.StackLabel, TestLabel} {
		if value := job.Spec.Template.Labels[label]; value == "" || len(validation.IsValidLabelValue(value)) > 0 {
			t.Errorf("label %s is %q", label, value)
		}
	}
	if errs := validation.IsDNS1123Label(job.Name); len(errs) > 0 {
		t.Errorf("the name %s is no label: %v", job.Name, errs)
	}
}

func TestEveryScriptIsWhereItsImportsLook(t *testing.T) {
	config, _, job := made(t, input(t))
	at := map[string]string{}
	for _, volume := range job.Spec.Template.Spec.Volumes {
		if volume.ConfigMap != nil {
			for _, item := range volume.ConfigMap.Items {
				at[item.Path] = config.Data[item.Key]
				if errs := validation.IsConfigMapKey(item.Key); len(errs) > 0 {
					t.Errorf("key %s: %v", item.Key, errs)
				}
			}
		}
	}
	for path, text := range scenarios.Scripts() {
		if text == "" || at[path] != text {
			t.Errorf("%s is not mounted", path)
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, " from '") && (strings.Contains(line, "http") && strings.Contains(line, "://") || strings.Contains(line, "k6/x/")) {
				t.Errorf("%s imports from elsewhere: %s", path, line)
			}
		}
	}
	if at["plan.json"] == "" || at[scenarios.Main] == "" {
		t.Error("the plan or the main script is not mounted")
	}
}

func TestK6StopsBeforeItsJobIsStopped(t *testing.T) {
	for _, timeout := range []time.Duration{30 * time.Second, 900 * time.Second} {
		in := input(t)
		in.Plan.Timeout = timeout
		config, _, job := made(t, in)
		var plan planFile
		if err := json.Unmarshal([]byte(config.Data["plan.json"]), &plan); err != nil {
			t.Fatal(err)
		}
		if plan.MaxDurationSeconds <= 0 || plan.MaxDurationSeconds >= *job.Spec.ActiveDeadlineSeconds || plan.ID != job.Name {
			t.Errorf("k6 stops after %d s, the Job after %d, id %s", plan.MaxDurationSeconds, *job.Spec.ActiveDeadlineSeconds, plan.ID)
		}
	}
}

func TestGOMAXPROCSFollowsTheLimit(t *testing.T) {
	for limit, want := range map[string]int{"": 2, "100m": 1, "1": 1, "1500m": 2, "4": 4} {
		resources := corev1.ResourceRequirements{Limits: corev1.ResourceList{}}
		if limit != "" {
			resources.Limits[corev1.ResourceCPU] = resource.MustParse(limit)
		}
		if got := gomaxprocs(input(t).Plan, resources); got != want {
			t.Errorf("limit %q gives %d, want %d", limit, got, want)
		}
	}
}

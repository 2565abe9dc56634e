package stack_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	psaapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"authstack.dev/authstack/internal/stack"
)

func eachCase(t *testing.T, check func(t *testing.T, in stack.Input)) {
	for name, in := range cases {
		t.Run(name, func(t *testing.T) { check(t, in()) })
	}
}

func TestEachStackBecomesReady(t *testing.T) {
	eachCase(t, func(t *testing.T, in stack.Input) {
		_, plan := settle(t, in)
		for _, phase := range plan.Phases() {
			if !phase.State.Ready {
				t.Errorf("%s is not ready: %s: %s", phase.Condition, phase.State.Reason, phase.State.Message)
			}
			if phase.State.Reason == "" || phase.State.Message == "" {
				t.Errorf("%s has no reason or no message: %+v", phase.Condition, phase.State)
			}
		}
		if plan.AnalyzeNeeded {
			t.Error("ANALYZE is wanted though it has followed this version")
		}
	})
}

func TestTheSameInputGivesTheSamePlan(t *testing.T) {
	eachCase(t, func(t *testing.T, in stack.Input) {
		in.Random = random("same")
		first := build(t, in)
		in.Random = random("same")
		if diff := cmp.Diff(objects(first), objects(build(t, in))); diff != "" {
			t.Errorf("two builds of one input differ:\n%s", diff)
		}
	})
}

func TestSecretsAreGeneratedOnceAndNeverChanged(t *testing.T) {
	eachCase(t, func(t *testing.T, in stack.Input) {
		settled, first := settle(t, in)
		settled.Random = random("another stream, as after a restart")
		if diff := cmp.Diff(objects(first), objects(build(t, settled))); diff != "" {
			t.Errorf("a later build with other randomness differs:\n%s", diff)
		}
	})
}

func TestGeneratedSecretsAreImmutable(t *testing.T) {
	eachCase(t, func(t *testing.T, in stack.Input) {
		_, plan := settle(t, in)
		for _, object := range objects(plan) {
			secret, is := object.(*corev1.Secret)
			if !is || secret.Name == "sso-authelia-users" {
				continue
			}
			if secret.Immutable == nil || !*secret.Immutable {
				t.Errorf("Secret %s could be overwritten by a plan from stale facts", secret.Name)
			}
		}
	})
}

func TestNothingSecretLeavesSecrets(t *testing.T) {
	eachCase(t, func(t *testing.T, in stack.Input) {
		settled, plan := settle(t, in)
		var canaries []string
		for name, data := range settled.Facts.Secrets {
			for key, value := range data {
				switch key {
				case "username", "email", "users_database.yml":
				default:
					canaries = append(canaries, string(value))
				}
				_ = name
			}
		}
		canaries = append(canaries, "canary-")
		var open []any
		for _, object := range objects(plan) {
			if _, is := object.(*corev1.Secret); !is {
				open = append(open, object)
			}
		}
		open = append(open, plan.Status, plan.RoleSettings)
		for _, phase := range plan.Phases() {
			open = append(open, phase.State)
		}
		for _, thing := range open {
			content, err := json.Marshal(thing)
			if err != nil {
				t.Fatal(err)
			}
			for _, canary := range canaries {
				if strings.Contains(string(content), canary) {
					t.Errorf("a secret is in %T: %.60s…", thing, content)
				}
			}
		}
	})
}

func TestPodsPassTheRestrictedStandard(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := psaapi.LevelVersion{Level: psaapi.LevelRestricted, Version: psaapi.LatestVersion()}
	eachTemplate(t, func(t *testing.T, name string, template corev1.PodTemplateSpec) {
		for _, result := range evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec) {
			if !result.Allowed {
				t.Errorf("%s: %s: %s", name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
	})
}

func TestPodsAskForWhatTheyNeed(t *testing.T) {
	eachTemplate(t, func(t *testing.T, name string, template corev1.PodTemplateSpec) {
		spec := template.Spec
		if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
			t.Errorf("%s mounts an API token", name)
		}
		if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
			t.Errorf("%s takes service links, which collide with AUTHELIA_* variables", name)
		}
		mounted := map[string]bool{}
		for _, container := range spec.Containers {
			if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() {
				t.Errorf("%s requests no CPU or memory", name)
			}
			if container.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s has no memory limit", name)
			}
			if container.StartupProbe == nil || container.ReadinessProbe == nil || container.LivenessProbe == nil {
				t.Errorf("%s lacks a probe", name)
			}
			if container.SecurityContext.ReadOnlyRootFilesystem == nil || !*container.SecurityContext.ReadOnlyRootFilesystem {
				t.Errorf("%s may write to its image", name)
			}
			for _, mount := range container.VolumeMounts {
				mounted[mount.Name] = true
			}
			seen := map[string]bool{}
			for _, env := range container.Env {
				if seen[env.Name] {
					t.Errorf("%s sets %s twice", name, env.Name)
				}
				seen[env.Name] = true
			}
		}
		for _, volume := range spec.Volumes {
			if !mounted[volume.Name] {
				t.Errorf("%s does not mount its volume %s", name, volume.Name)
			}
		}
	})
}

func eachTemplate(t *testing.T, check func(*testing.T, string, corev1.PodTemplateSpec)) {
	eachCase(t, func(t *testing.T, in stack.Input) {
		_, plan := settle(t, in)
		count := 0
		for _, object := range objects(plan) {
			var template corev1.PodTemplateSpec
			var selector *metav1.LabelSelector
			switch object := object.(type) {
			case *appsv1.Deployment:
				template, selector = object.Spec.Template, object.Spec.Selector
			case *appsv1.StatefulSet:
				template, selector = object.Spec.Template, object.Spec.Selector
			default:
				continue
			}
			count++
			for key, value := range selector.MatchLabels {
				if template.Labels[key] != value {
					t.Errorf("%s does not select its own Pods by %s", object.GetName(), key)
				}
			}
			check(t, object.GetName(), template)
		}
		if count == 0 {
			t.Error("no Pods at all")
		}
	})
}

func TestObjectsCanBeApplied(t *testing.T) {
	eachCase(t, func(t *testing.T, in stack.Input) {
		settled, plan := settle(t, in)
		seen := map[string]bool{}
		for _, object := range objects(plan) {
			kind := object.GetObjectKind().GroupVersionKind()
			id := fmt.Sprintf("%s/%s", kind.Kind, object.GetName())
			if kind.Kind == "" || kind.Version == "" {
				t.Errorf("%s has no type", id)
			}
			if object.GetNamespace() != settled.Stack.Namespace || object.GetLabels()["authstack.dev/stack"] != "sso" {
				t.Errorf("%s is not in the stack's namespace or lacks its label", id)
			}
			if seen[id] {
				t.Errorf("%s is planned twice", id)
			}
			seen[id] = true
		}
		for _, name := range stack.WorkloadNames(settled.Stack) {
			if !seen["Deployment/"+name] && !seen["StatefulSet/"+name] && !seen["postgresql/"+name] {
				t.Errorf("WorkloadNames has %s, which the plan does not make", name)
			}
		}
		for id := range seen {
			if kind, name, _ := strings.Cut(id, "/"); kind == "Deployment" || kind == "StatefulSet" {
				if !strings.Contains(" "+strings.Join(stack.WorkloadNames(settled.Stack), " ")+" ", " "+name+" ") {
					t.Errorf("WorkloadNames lacks %s", name)
				}
			}
		}
	})
}

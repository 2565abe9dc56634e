package controllers

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

const oneScript = "export default function () { /* one */ }"

// script is the ConfigMap with the user's own script.
func (w *world) script(text string) {
	w.t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mine"}, Data: map[string]string{"script.js": text}}
	if err := server.Create(w.t.Context(), config); apierrors.IsAlreadyExists(err) {
		w.must(server.Update(w.t.Context(), config))
	} else {
		w.must(err)
	}
}

func ownScript(test *v1alpha1.LatencyTest) {
	test.Spec.Scenarios = []v1alpha1.Scenario{{Name: v1alpha1.ScenarioScript, Iterations: ptr.To(int32(60)), Script: &v1alpha1.ScriptSource{
		ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "mine", Key: "script.js"}}}}
}

// scriptLog is the log of a good run of 60 iterations of a script.
func scriptLog(job, script string) string {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := &result.Run{
		Format: result.Format, PlanID: job, ScriptDigest: result.Digest([]byte(script)), StartedAt: began, EndedAt: began.Add(time.Minute),
		Scenarios: []result.Scenario{{Name: "Script", Iterations: 60, WarmUpIterations: 6}},
		Generator: result.Generator{K6Version: "v1", GoVersion: "go1", GOMAXPROCS: 2, WallMicros: 60_000_000, CPUMicros: 5_000_000, MaxRSSBytes: 1 << 26},
	}
	// As long and as odd as a writer makes their names.
	for _, name := range []string{"items", "[redacted]", strings.Repeat("x", 125) + "…"} {
		run.Scenarios[0].Metric(name, result.MetricTrend).Record(1.5)
		run.Scenarios[0].Metric(name, result.MetricGauge).Record(-2)
	}
	for i, name := range []string{"script", "config", "renderTime", strings.Repeat("x", 52) + "…" + result.TrendMark} {
		histogram := result.NewHistogram()
		for range 60 {
			histogram.Record(20_000)
		}
		run.Series = append(run.Series, result.Series{Scenario: "Script", Endpoint: name, Whole: i == 0, Own: i > 1, Requests: 60, WarmUpRequests: 6, LastMicros: 59_000_000, Total: histogram})
	}
	var text bytes.Buffer
	if err := result.Write(&text, run); err != nil {
		panic(err)
	}
	return text.String()
}

// ranScript answers for each Pod with the script that its Job holds.
func (w *world) ranScript() {
	w.k6 = func(pod *corev1.Pod) {
		job := strings.TrimSuffix(pod.Name, podSuffix)
		config := &corev1.ConfigMap{}
		w.must(server.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: job}, config))
		w.logs.text = scriptLog(job, config.Data["user.js"])
	}
}

func TestScript(t *testing.T) {
	t.Run("it runs confined to the stack's Service, is measured by endpoint and leaves nothing behind", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.script(oneScript)
		w.ranScript()
		w.idle = true
		w.measure(ownScript, func(test *v1alpha1.LatencyTest) {
			test.Spec.Objectives = []v1alpha1.Objective{{Scenario: v1alpha1.ScenarioScript, Endpoint: "renderTime", Percentile: 95, Below: metav1.Duration{Duration: time.Second}}}
		})
		w.until("a Job", func() bool { return len(w.jobs()) == 1 })
		service, config, job, policy := &corev1.Service{}, &corev1.ConfigMap{}, &batchv1.Job{}, &networkingv1.NetworkPolicy{}
		for obj, name := range map[client.Object]string{service: "sso-authentik", config: "run-1-1", job: "run-1-1", policy: "run-1-1"} {
			w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: name}, obj))
		}
		g.Expect(service.Spec.ClusterIP).NotTo(BeEmpty())
		g.Expect(config.Data["user.js"]).To(Equal(oneScript))
		g.Expect(config.Data["plan.json"]).To(ContainSubstring(`"baseURL": "http://` + service.Spec.ClusterIP + ":80\""))
		arguments := strings.Join(job.Spec.Template.Spec.Containers[0].Args, " ")
		g.Expect(arguments).To(And(HaveSuffix(" /scripts/script.js"), ContainSubstring("--block-hostnames=*"), ContainSubstring("--blacklist-ip=")))
		g.Expect(arguments).NotTo(ContainSubstring(service.Spec.ClusterIP + "/32"))
		for name, value := range policy.Spec.PodSelector.MatchLabels {
			g.Expect(job.Spec.Template.Labels).To(HaveKeyWithValue(name, value))
		}
		w.idle = false
		w.settle()
		test := w.test()
		g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictPassed), w.describe())
		g.Expect(test.Status.Scenarios).To(HaveLen(1))
		g.Expect(test.Status.Scenarios[0].ScriptDigest).To(Equal(result.Digest([]byte(oneScript))))
		g.Expect(test.Status.Scenarios[0].Endpoints[1].Name).To(Equal("config"))
		g.Expect(test.Status.Objectives).To(ConsistOf(And(HaveField("Endpoint", "renderTime"), HaveField("Met", true))))
		g.Expect(test.Status.Scenarios[0].Metrics).To(HaveLen(6))
		g.Expect(test.Status.Scenarios[0].Metrics).To(ContainElement(And(HaveField("Name", "items"), HaveField("P50Milli", int64(1500)))))
		g.Expect(test.Status.Guards).To(ContainElement(And(HaveField("Name", "script-unchanged"), HaveField("OK", true))))
		conformant(t, test.Generation, test.Status.ObservedGeneration, test.Status.Conditions)
		var policies networkingv1.NetworkPolicyList
		w.list(&policies)
		for _, p := range policies.Items {
			g.Expect(p.Name).NotTo(HavePrefix("run-"))
		}
		mine := &corev1.ConfigMap{}
		w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "mine"}, mine))
		g.Expect(w.users.held).To(BeEmpty())
	})
	t.Run("a ConfigMap that is missing, or its key, is a condition that says what to write, and is waited for", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.ranScript()
		w.now = time.Now()
		w.measure(ownScript)
		g.Expect(w.step()).To(Succeed())
		says := func() *metav1.Condition { return conditionIn(w.test().Status.Conditions, v1alpha1.ConditionReady) }
		g.Expect(says().Reason).To(Equal(v1alpha1.ReasonScriptNotFound))
		g.Expect(says().Message).To(ContainSubstring("kubectl create configmap mine --from-file=script.js"))
		g.Expect(conditionIn(w.test().Status.Conditions, v1alpha1.ConditionReconciling)).NotTo(BeNil())
		w.now = w.now.Add(time.Minute)
		w.must(server.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mine"}, Data: map[string]string{"other.js": oneScript}}))
		g.Expect(w.step()).To(Succeed())
		g.Expect(says().Message).To(ContainSubstring("has no key script.js"))
		test := w.test()
		g.Expect(conditionIn(test.Status.Conditions, v1alpha1.ConditionStalled)).NotTo(BeNil())
		conformant(t, test.Generation, test.Status.ObservedGeneration, test.Status.Conditions)
		g.Expect(w.jobs()).To(BeEmpty())
		w.script(oneScript)
		w.until("Passed", func() bool { return w.verdict() == v1alpha1.VerdictPassed })
	})
	t.Run("a script that changes between two repeats voids the run, and the next one is of the new script", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.script(oneScript)
		w.ranScript()
		w.measure(ownScript, func(test *v1alpha1.LatencyTest) { test.Spec.Repeats = ptr.To(int32(2)) })
		w.until("the second repeat", func() bool { return w.test().Status.CompletedRepeats == 1 })
		w.script(oneScript + " // two")
		w.settle()
		test := w.test()
		g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictPassed), w.describe())
		g.Expect(test.Status.Voided).To(HaveLen(1))
		g.Expect(test.Status.Voided[0]).To(ContainSubstring("script-unchanged: "))
		g.Expect(test.Status.Scenarios[0].ScriptDigest).To(Equal(result.Digest([]byte(oneScript + " // two"))))
	})
	t.Run("a script with a syntax error is an Error in k6's words, without a password that they quote", func(t *testing.T) {
		g, w := NewWithT(t), newReadyWorld(t)
		w.script(oneScript)
		w.k6 = func(pod *corev1.Pod) {
			secret := &corev1.Secret{}
			w.must(server.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "run-1-1"}, secret))
			_, password, _ := strings.Cut(string(secret.Data["credentials.json"]), `"password": "`)
			password, _, _ = strings.Cut(password, `"`)
			g.Expect(len(password)).To(BeNumerically(">", 20))
			w.logs.text = fmt.Sprintf(`time="x" level=error msg="SyntaxError: file:///scripts/user.js: Line 2:9 Unexpected token %s\n\tat x" hint="script exception"`+"\n", password)
			pod.Status.Phase = corev1.PodFailed
			pod.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 107, Reason: "Error"}
		}
		w.measure(ownScript)
		w.now = w.now.Add(time.Hour) // The log is not asked for again.
		w.until("a verdict", func() bool { w.now = w.now.Add(time.Minute); return w.verdict() != "" })
		w.settle()
		test := w.test()
		g.Expect(test.Status.Verdict).To(Equal(v1alpha1.VerdictError))
		message := conditionIn(test.Status.Conditions, v1alpha1.ConditionReady).Message
		g.Expect(message).To(HavePrefix("A script of k6 is broken (exit code 107): SyntaxError: file:///scripts/user.js: Line 2:9 Unexpected token "))
		g.Expect(len(message)).To(BeNumerically("<", 130), "the password would not fit: %s", message)
		g.Expect(w.users.held).To(BeEmpty())
	})
}

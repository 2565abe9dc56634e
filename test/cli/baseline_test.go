package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/baseline"
	"authstack.dev/authstack/internal/cli"
	"authstack.dev/authstack/internal/report"
	"authstack.dev/authstack/internal/result"
)

// measured is a finished LatencyTest with a result of so many repeats, of which one is a little slower than
// the other.
func (w *world) measured(name string, verdict v1alpha1.Verdict, p95 ...int64) {
	w.t.Helper()
	test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: v1alpha1.LatencyTestSpec{StackRef: v1alpha1.StackReference{Name: "sso"}}}
	must(w.t, server.Create(w.t.Context(), test))
	must(w.t, w.finish(w.t.Context(), test, verdict, 600_000))
	config := &corev1.ConfigMap{}
	must(w.t, server.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name + "-result"}, config))
	r, err := report.ReadJSON(strings.NewReader(config.Data["report.json"]))
	must(w.t, err)
	r.Generator = &result.Generator{K6Version: "v2.2.0"}
	r.Sizes = []baseline.Size{{Scenario: "Login", Iterations: 60, WarmUpIterations: 12, VirtualUsers: 1, Connections: "Reuse", Pods: 1}}
	for _, micros := range p95 {
		r.Repeats = append(r.Repeats, baseline.Repeat{Figures: []baseline.Figures{{Scenario: "Login", Endpoint: "login", Count: 60,
			P50Micros: micros * 9 / 10, P90Micros: micros * 95 / 100, P95Micros: micros, P99Micros: micros * 11 / 10}}})
	}
	var text bytes.Buffer
	must(w.t, report.WriteJSON(&text, r))
	config.Data["report.json"] = text.String()
	must(w.t, server.Update(w.t.Context(), config))
}

func TestBaselineAndCompare(t *testing.T) {
	w := newWorld(t)
	w.stack()
	w.measured("before", v1alpha1.VerdictPassed, 700_000, 705_000, 695_000)
	w.measured("slower", v1alpha1.VerdictPassed, 900_000, 905_000, 895_000)
	w.measured("scattered", v1alpha1.VerdictPassed, 600_000, 900_000, 750_000)
	w.measured("voided", v1alpha1.VerdictInconclusive, 700_000, 705_000)
	w.measured("once", v1alpha1.VerdictPassed, 700_000)
	file := filepath.Join(t.TempDir(), "git", "baseline.json")
	for _, args := range []string{"baseline save before -o " + file, "baseline save before --configmap sso-baseline", "baseline save before --configmap sso-baseline"} {
		if got := w.call(t.Context(), strings.Fields(args)...); got.code != cli.ExitPassed || !strings.Contains(got.out, "3 repeats of LatencyTest before") {
			t.Fatalf("%s: %+v", args, got)
		}
	}
	table := w.call(t.Context(), "compare", "before", "slower")
	golden(t, "compare.txt", table.out)
	for name, row := range map[string]struct {
		args string
		code int
		says string
	}{
		"slower, by names":            {"compare before slower", 1, "Regressed by more than 10 %: Login/login p95 is 1.29"},
		"slower, and that is allowed": {"compare before slower --not-worse-than 40", 0, "Not slower by more than 40 %"},
		"the other way round":         {"compare test/slower test/before", 0, "p95 is 0.78"},
		"not settled":                 {"compare before scattered", 2, "repeats of each of the two would settle it"},
		"one repeat":                  {"compare before once", 2, "in one repeat, and an interval needs at least two repeats"},
		"a voided baseline":           {"compare voided slower", 2, "so its figures prove nothing"},
		"a file":                      {"compare " + file + " slower -o markdown", 1, "| Login/login p95 | Regressed | 1.29"},
		"a ConfigMap":                 {"compare configmap/sso-baseline slower", 1, "Regressed"},
		"the gate with a file":        {"gate --test slower --baseline " + file, 1, "Against the baseline"},
		"the gate with a test":        {"gate --test slower --baseline test/before --not-worse-than 40", 0, "NotWorse"},
		"the gate, not settled":       {"gate --test scattered --baseline configmap/sso-baseline", 2, "Inconclusive"},
		"the gate over a voided run":  {"gate --test voided --baseline " + file, 2, "INCONCLUSIVE"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := w.call(t.Context(), strings.Fields(row.args)...); got.code != row.code || !strings.Contains(got.out, row.says) {
				t.Errorf("exit code %d, not %d: %s%s", got.code, row.code, got.out, got.err)
			}
		})
	}
}

func TestABaselineThatCannotBeIsAnError(t *testing.T) {
	w := newWorld(t)
	w.stack()
	w.measured("voided", v1alpha1.VerdictInconclusive, 700_000, 705_000)
	w.measured("once", v1alpha1.VerdictPassed, 700_000)
	w.measured("good", v1alpha1.VerdictPassed, 700_000, 705_000)
	must(t, server.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "settings"}, Data: map[string]string{"report.json": "{}"}}))
	for args, says := range map[string]string{
		"gate sso --baseline /nowhere.json":           "there is no file /nowhere.json; write test/NAME",
		"gate sso --baseline test/nobody":             "there is no latencytest nobody",
		"gate sso --baseline configmap/nobody":        "there is no configmap nobody",
		"gate sso --baseline configmap/settings":      "not a report",
		"gate sso --baseline good --not-worse-than 0": "write 1 to 1000 per cent",
		"compare good":                            "accepts 2 arg(s)",
		"compare good good -o xml":                "-o xml is not known",
		"baseline save good":                      "write one of -o FILE and --configmap NAME",
		"baseline save voided --configmap x":      "proves nothing that could be a baseline",
		"baseline save once --configmap x":        "has the figures of 1 repeats, and a comparison needs at least two",
		"baseline save good --configmap settings": "exists and is no baseline",
		"baseline save good -o /proc/x/y":         "/proc/x",
	} {
		t.Run(args, func(t *testing.T) {
			if got := w.call(t.Context(), strings.Fields(args)...); got.code != cli.ExitError || !strings.Contains(got.err, says) {
				t.Errorf("exit code %d: %s", got.code, got.err)
			}
		})
	}
	if left := w.tests(); len(left) != 3 {
		t.Errorf("%d LatencyTests; a baseline that is not there must not cost a measurement", len(left))
	}
}

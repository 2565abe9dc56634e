package latency

import (
	"strings"
	"testing"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

func TestPodsOfTheGeneratorBeginTogether(t *testing.T) {
	for name, c := range map[string]struct {
		pods  int32
		apart int64
		want  v1alpha1.Verdict
	}{
		"one after the other":      {2, 40_000_000, v1alpha1.VerdictInconclusive},
		"nearly at once":           {2, 1_900_000, v1alpha1.VerdictPassed},
		"within a tenth of a run":  {2, 5_900_000, v1alpha1.VerdictPassed},
		"and one Pod is not asked": {1, 0, v1alpha1.VerdictPassed},
	} {
		t.Run(name, func(t *testing.T) {
			plan, _ := Resolve(&v1alpha1.LatencyTest{}, authentik())
			plan.Pods = c.pods
			run := goodRun()
			run.PodsApartMicros = c.apart
			out := Judge(plan, []*result.Run{run}, goodEvidence())
			if out.Verdict != c.want || (c.want == v1alpha1.VerdictInconclusive) != strings.Contains(out.Message, "generator-pods-together: 2 Pods began within 40.00s of 1m0s") {
				t.Errorf("%s: %s", out.Verdict, out.Message)
			}
			if named := guardNamed(out.Guards, GuardPodsTogether).Name != ""; named != (c.pods > 1) {
				t.Errorf("the guard is listed: %v", named)
			}
		})
	}
}

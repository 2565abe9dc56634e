//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/report"
)

const (
	measuredNamespace = "e2e-measured"
	measuredStack     = "sso"
)

// measuredManifest is a small stack that nothing measures unasked; limit is of the server's CPU.
func measuredManifest(limit string) string {
	if limit != "" {
		limit = "cpu: " + limit + ", "
	}
	return fmt.Sprintf(`
apiVersion: authstack.dev/v1alpha1
kind: AuthStack
metadata: {name: %s, namespace: %s}
spec:
  host: sso.example.com
  authentik:
    version: "2026.8.3"
    server: {replicas: 1, resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {%smemory: 512Mi}}}
    worker: {replicas: 1, resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 512Mi}}}
  postgres:
    resources: {requests: {cpu: 20m, memory: 256Mi}, limits: {memory: 512Mi}}
    storage: {probe: {mode: "Off"}} # It would begin between two tests, and the next one wait for it.
  deletionPolicy: Delete
  latency: {mode: Manual}
`, measuredStack, measuredNamespace, limit)
}

// A generator needs little here.
const generator = "generator: {resources: {requests: {cpu: 20m, memory: 128Mi}, limits: {memory: 128Mi}}}"

// applyTest has one scenario measured; how is further lines of its spec.
func applyTest(t *testing.T, name, scenario, how string) {
	t.Helper()
	apply(t, fmt.Sprintf(`
apiVersion: authstack.dev/v1alpha1
kind: LatencyTest
metadata: {name: %s, namespace: %s}
spec:
  stackRef: {name: %s}
  scenarios: [{%s}]
  %s
`, name, measuredNamespace, measuredStack, scenario, how))
}

// verdictOf waits for the verdict of a LatencyTest, and for its message.
func verdictOf(t *testing.T, name string) (v1alpha1.Verdict, string) {
	t.Helper()
	test := &v1alpha1.LatencyTest{}
	eventually(t, "a verdict on LatencyTest "+name, 5*time.Minute, func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKey{Namespace: measuredNamespace, Name: name}, test); err != nil {
			return err
		}
		if test.Status.Verdict == "" {
			return errorf("none yet: %+v", test.Status.Conditions)
		}
		return nil
	})
	ready := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		t.Fatalf("LatencyTest %s has a verdict and no condition", name)
	}
	return test.Status.Verdict, ready.Message
}

// One stack for all of them, since it takes longer to make than to measure.
func TestMeasurementsEndInTheRightVerdict(t *testing.T) {
	makeNamespace(t, measuredNamespace)
	apply(t, measuredManifest(""))
	waitReady(t, measuredNamespace, measuredStack)
	t.Run("a generator that is taken away", generatorIsTakenAway)
	t.Run("a log that is full", logIsFull)
	t.Run("a target or a script that is broken", targetIsBroken)
	t.Run("what the demo does not measure", everyOtherScenario)
	t.Run("a generator that is held back", generatorIsHeldBack)
	t.Run("what a login costs", sizingCountsWrites)
	t.Run("a pipeline whose change makes the login slower", slowerLoginFailsTheBuild)
}

// sizingCountsWrites: a login's cost comes from what the kubelet counts, the writes of the database among it.
func sizingCountsWrites(t *testing.T) {
	cmd := exec.Command("kubectl", "authstack", "sizing", measuredStack, "-n", measuredNamespace, "--iterations", "40", "-o", "json")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, problems.String())
	}
	var sizing report.Sizing
	if err := json.Unmarshal(out, &sizing); err != nil {
		t.Fatal(err)
	}
	t.Logf("sizing: %s", out)
	var parts []string
	for _, part := range sizing.Parts {
		parts = append(parts, part.Name)
		if part.CPUMicrosPerLogin <= 0 || part.LoginsPerSecondPerCoreMilli <= 0 {
			t.Errorf("the %s has no CPU time: %+v", part.Name, part)
		}
		// Under IdentityDurable a login of this version waits for a commit, which is a write at least. Where the cluster's state
		// lies on no disk, in memory, "not counted" is right, and this test is no use.
		if part.Name == "database" && (part.Writes == nil || *part.Writes < sizing.Logins || *part.WriteIOPSPer100Logins < 100) {
			t.Errorf("%d logins and these writes of the database: %+v", sizing.Logins, part)
		}
	}
	if want := []string{"identity provider", "database"}; !slices.Equal(parts, want) {
		t.Errorf("the parts are %q, not %q", parts, want)
	}
}

// slowerLoginFailsTheBuild is the gate in a real pipeline: a change that gives the server too little CPU makes the login
// slower in earnest, fails the build against the baseline, and is taken back.
func slowerLoginFailsTheBuild(t *testing.T) {
	folder := t.TempDir()
	run := func(name string, args ...string) (string, int) {
		t.Helper()
		var out bytes.Buffer
		cmd := exec.Command(name, args...)
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "REPORTS="+folder)
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return out.String(), cmd.ProcessState.ExitCode()
	}
	manifest := func(name, limit string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(measuredManifest(limit)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// An objective that every login meets, so that nothing but the baseline decides.
	load := []string{"--scenario", "Login=8", "--objective", "Login:p50<60s", "--repeats", "3", "--timeout", "15m"}
	if out, code := run("kubectl", append([]string{"authstack", "test", measuredStack, "-n", measuredNamespace, "--name", "release-7"}, load...)...); code != 0 {
		t.Fatalf("the baseline ends with %d:\n%s", code, out)
	}
	baseline := filepath.Join(folder, "baseline.json")
	if out, code := run("kubectl", "authstack", "baseline", "save", "release-7", "-n", measuredNamespace, "-o", baseline); code != 0 {
		t.Fatalf("saving the baseline ends with %d:\n%s", code, out)
	}
	out, code := run("hack/ci/pipeline.sh", append([]string{measuredNamespace, measuredStack, manifest("good.yaml", ""), manifest("change.yaml", "200m"),
		"--baseline", baseline, "--not-worse-than", "10"}, load...)...)
	if code != 1 || !strings.Contains(out, "taking the change back") {
		t.Errorf("the build of a slower login ends with %d:\n%s", code, out)
	}
	stack, err := getStack(context.Background(), measuredNamespace, measuredStack)
	if err != nil {
		t.Fatal(err)
	}
	if resources := stack.Spec.Authentik.Server.Resources; resources != nil && !resources.Limits.Cpu().IsZero() {
		t.Errorf("the change was not taken back: %+v", resources)
	}
	t.Logf("the gate's words:\n%s", out)
}

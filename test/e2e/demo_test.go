//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/test/prometheus"
)

const demoOut = "../../out/demo"

// What others read from report.json; field names are a promise.
type reportFile struct {
	APIVersion string `json:"apiVersion"`
	Subject    struct {
		Stack            string `json:"stack"`
		IdentityProvider string `json:"identityProvider"`
		Version          string `json:"version"`
		Double           *bool  `json:"double"`
		Database         string `json:"database"`
		DatabaseVersion  string `json:"databaseVersion"`
		StorageClass     string `json:"storageClass"`
		Medium           string `json:"medium"`
		Durability       string `json:"durability"`
		Cache            string `json:"cache"`
	} `json:"subject"`
	Verdict   string `json:"verdict"`
	Scenarios []struct {
		Name      string `json:"name"`
		Endpoint  string `json:"endpoint"`
		Requests  int64  `json:"requests"`
		Failed    int64  `json:"failed"`
		P50Micros int64  `json:"p50Micros"`
		P90Micros int64  `json:"p90Micros"`
		P95Micros int64  `json:"p95Micros"`
		P99Micros int64  `json:"p99Micros"`
		MaxMicros int64  `json:"maxMicros"`
	} `json:"scenarios"`
	Guards []struct {
		Name   string `json:"name"`
		OK     *bool  `json:"ok"`
		Detail string `json:"detail"`
	} `json:"guards"`
}

func readReport(t *testing.T, name string) reportFile {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(demoOut, name))
	if err != nil {
		t.Fatalf("run the demo first: %v", err)
	}
	var report reportFile
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	return report
}

func TestTheDemosReportsHoldWhatOthersRead(t *testing.T) {
	for file, want := range map[string]struct {
		provider, database, cache, durability string
		endpoints                             []string
	}{
		"report.json": {"authentik", "zalando", "postgres", "IdentityDurable", []string{"Login/login", "Login/identification-get", "Login/identification-post",
			"Login/password-get", "Login/password-post", "Login/mfa-get", "Login/login-get",
			"Dashboard/dashboard-sequential", "Dashboard/dashboard-parallel", "Dashboard/applications-sequential", "Dashboard/applications-parallel"}},
		"report-authelia.json": {"authelia", "standalone", "redis", "Strict", []string{"Login/login", "ForwardAuth/authorised", "ForwardAuth/unauthorised", "ForwardAuth/first-sight"}},
	} {
		r := readReport(t, file)
		if r.APIVersion != "authstack.dev/report/v1" {
			t.Errorf("%s: apiVersion is %q", file, r.APIVersion)
		}
		s := r.Subject
		if s.IdentityProvider != want.provider || s.Database != want.database || s.Cache != want.cache {
			t.Errorf("%s: subject is %+v, want %+v", file, s, want)
		}
		if s.Double == nil || s.Stack == "" || s.Version == "" || s.DatabaseVersion == "" || s.StorageClass == "" || s.Medium != "NodeLocal" || s.Durability != want.durability {
			t.Errorf("%s: subject is not whole: %+v", file, s)
		}
		if r.Verdict != "Passed" && r.Verdict != "Failed" {
			t.Errorf("%s: verdict is %q; a demo that proves nothing must not exit 0", file, r.Verdict)
		}
		found := map[string]bool{}
		for _, row := range r.Scenarios {
			found[row.Name+"/"+row.Endpoint] = true
			if row.Requests <= 0 || row.Failed < 0 || row.Failed > row.Requests {
				t.Errorf("%s: %s/%s: %d requests, %d failed", file, row.Name, row.Endpoint, row.Requests, row.Failed)
			}
			if row.P50Micros <= 0 || row.P50Micros > row.P90Micros || row.P90Micros > row.P95Micros || row.P95Micros > row.P99Micros || row.P99Micros > row.MaxMicros {
				t.Errorf("%s: %s/%s: percentiles are not in order: %+v", file, row.Name, row.Endpoint, row)
			}
		}
		for _, endpoint := range want.endpoints {
			if !found[endpoint] {
				t.Errorf("%s: no row for %s", file, endpoint)
			}
		}
		if len(r.Guards) == 0 {
			t.Errorf("%s: no guards", file)
		}
		for _, guard := range r.Guards {
			if guard.OK == nil || guard.Name == "" || guard.Detail == "" {
				t.Errorf("%s: guard without name, ok or detail: %+v", file, guard)
			}
		}
		html, err := os.ReadFile(filepath.Join(demoOut, strings.TrimSuffix(file, ".json")+".html"))
		if err != nil {
			t.Error(err)
		}
		for _, forbidden := range []string{"src=\"http", "href=\"http", "@import", "url(http"} {
			if strings.Contains(string(html), forbidden) {
				t.Errorf("the HTML report loads something from a network: %s", forbidden)
			}
		}
		if !strings.Contains(string(html), "<svg") {
			t.Errorf("the HTML report draws nothing")
		}
	}
}

func TestTheDemosDatabaseIsMadeByZalandosOperatorAndPatroni(t *testing.T) {
	ctx := context.Background()
	clusters := &unstructured.UnstructuredList{}
	clusters.SetGroupVersionKind(schema.GroupVersionKind{Group: "acid.zalan.do", Version: "v1", Kind: "postgresqlList"})
	if err := kube.List(ctx, clusters, client.InNamespace(authentikNamespace)); err != nil {
		t.Fatal(err)
	}
	if len(clusters.Items) != 1 {
		t.Fatalf("%d postgresql resources in %s, want 1", len(clusters.Items), authentikNamespace)
	}
	status, _, _ := unstructured.NestedString(clusters.Items[0].Object, "status", "PostgresClusterStatus")
	if status != "Running" {
		t.Errorf("Zalando's status is %q", status)
	}
	pods := &corev1.PodList{}
	if err := kube.List(ctx, pods, client.InNamespace(authentikNamespace), client.MatchingLabels{"spilo-role": "master"}); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 {
		t.Fatalf("%d Pods with spilo-role=master, want 1", len(pods.Items))
	}
	resp, err := http.Get("http://" + pods.Items[0].Status.PodIP + ":8008/patroni")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	var patroni struct {
		State   string `json:"state"`
		Patroni struct {
			Version string `json:"version"`
		} `json:"patroni"`
	}
	if err := json.Unmarshal(body, &patroni); err != nil || patroni.State != "running" || patroni.Patroni.Version == "" {
		t.Errorf("Patroni says %s", body)
	}
}

func TestBothStacksAreReadyAndShowWhatWasMeasured(t *testing.T) {
	for namespace, name := range map[string]string{authentikNamespace: authentikStack, autheliaNamespace: autheliaStack} {
		waitReady(t, namespace, name)
		stack, err := getStack(context.Background(), namespace, name)
		if err != nil {
			t.Fatal(err)
		}
		if l := stack.Status.Latency; l == nil || l.Verdict == "" || l.LoginP95 == "" || l.TestedGeneration != stack.Generation || l.CompletedAt == nil {
			t.Errorf("%s/%s: status.latency is %+v", namespace, name, l)
		}
		if !meta.IsStatusConditionTrue(stack.Status.Conditions, v1alpha1.ConditionTuningApplied) {
			t.Errorf("%s/%s: TuningApplied is not True", namespace, name)
		}
		for _, setting := range stack.Status.Database.Settings {
			if setting.Reason == "" || setting.InForce == "" || setting.PendingRestart {
				t.Errorf("%s/%s: setting without reason or not in force: %+v", namespace, name, setting)
			}
		}
		line := kubectl(t, "get", "authstack", name, "-n", namespace)
		for _, want := range []string{stack.Status.Latency.LoginP95, string(stack.Status.Latency.Verdict), stack.Status.IdentityProvider.Version, "NodeLocal"} {
			if !strings.Contains(line, want) {
				t.Errorf("kubectl get authstack does not show %q:\n%s", want, line)
			}
		}
	}
}

func TestNothingOfAMeasurementIsLeftBehind(t *testing.T) {
	eventually(t, "Jobs, credentials and test users of finished tests are gone", 2*time.Minute, func(ctx context.Context) error {
		for _, namespace := range []string{authentikNamespace, autheliaNamespace} {
			out, err := tryKubectl("get", "jobs,pods", "-n", namespace, "-l", "authstack.dev/latency-test", "-o", "name")
			if err != nil {
				return err
			}
			if strings.TrimSpace(out) != "" && !strings.Contains(out, "No resources") {
				return errorf("left behind in %s: %s", namespace, out)
			}
		}
		return nil
	})
}

func TestAPrometheusThatScrapesTheOperatorHasTheFiguresOfTheStatus(t *testing.T) {
	var pods corev1.PodList
	if err := kube.List(context.Background(), &pods, client.InNamespace(operatorNamespace), client.MatchingLabels{"app.kubernetes.io/name": "authstack"}); err != nil {
		t.Fatal(err)
	}
	running := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp == nil && pod.Status.PodIP != "" })
	if running < 0 {
		t.Fatalf("none of %d Pods of the operator runs", len(pods.Items))
	}
	stack, err := getStack(context.Background(), authentikNamespace, authentikStack)
	if err != nil {
		t.Fatal(err)
	}
	server := prometheus.Start(t, pods.Items[running].Status.PodIP+":8080", "../../config/prometheus/alerts.yaml")
	value := func(query string) (got float64) {
		server.Eventually(query, func() (bool, error) {
			samples, err := server.Query(query)
			if err != nil || len(samples) != 1 {
				return false, errorf("%v, %v", samples, err)
			}
			got, err = strconv.ParseFloat(samples[0].Value[1].(string), 64)
			return err == nil, err
		})
		return got
	}
	var login v1alpha1.EndpointResult
	if l := stack.Status.Latency; l != nil {
		for _, scenario := range l.Scenarios {
			for _, endpoint := range scenario.Endpoints {
				if scenario.Name == v1alpha1.ScenarioLogin && endpoint.Name == "login" {
					login = endpoint
				}
			}
		}
	}
	if login.Requests == 0 {
		t.Fatalf("the status has no logins: %+v", stack.Status.Latency)
	}
	labels := fmt.Sprintf(`namespace=%q,stack=%q,scenario="Login",endpoint=%q`, authentikNamespace, authentikStack, login.Name)
	if got, want := value(fmt.Sprintf(`authstack_latency_percentile_seconds{%s,percentile="50"}`, labels)), float64(login.P50Micros)/1e6; math.Abs(got-want) > 1e-6 {
		t.Errorf("the p50 of %s is %g s in Prometheus and %g s in the status", login.Name, got, want)
	}
	if got, want := value(fmt.Sprintf(`histogram_count(authstack_latency_seconds{%s})`, labels)), float64(login.Requests-login.Failed); got != want {
		t.Errorf("the native histogram of %s holds %g answers, the status %g", login.Name, got, want)
	}
}

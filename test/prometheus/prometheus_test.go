// Package prometheus has a real Prometheus scrape what the operator shows, load the alert rules and
// answer the queries of the dashboard.
package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/metrics"
	"authstack.dev/authstack/internal/result"
)

const (
	rules     = "../../config/prometheus/alerts.yaml"
	dashboard = "../../config/grafana/dashboard.json"
)

func stacks(context.Context) ([]v1alpha1.AuthStack, error) {
	at := metav1.Now()
	st := v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Namespace: "sso", Name: "home"}}
	st.Status.IdentityProvider = &v1alpha1.IdentityProviderStatus{Name: "authentik", Version: "2026.8.3"}
	st.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"}}
	st.Spec.Latency = &v1alpha1.LatencySpec{Objectives: []v1alpha1.Objective{{Scenario: "Login", Percentile: 95, Below: metav1.Duration{Duration: time.Second}}}}
	st.Status.Latency = &v1alpha1.LatencyStatus{TestName: "home-1", Verdict: v1alpha1.VerdictFailed, CompletedAt: &at,
		Scenarios: []v1alpha1.ScenarioResult{{Name: "Login", Endpoints: []v1alpha1.EndpointResult{
			{Name: "login", Requests: 60, P95Micros: 912_000}, {Name: "password-post", Requests: 60, P95Micros: 212_000}}}}}
	return []v1alpha1.AuthStack{st}, nil
}

// full is the result of a thousand logins of 1 to 1000 ms, each once.
func full(context.Context, string, string) (*result.Run, error) {
	h := result.NewHistogram()
	for i := range int64(1000) {
		h.Record((i + 1) * 1000)
	}
	return &result.Run{StartedAt: time.Now(), Series: []result.Series{{Scenario: "Login", Endpoint: "login", Requests: 1000, Total: h}}}, nil
}

// server is a running Prometheus.
type server struct {
	t   *testing.T
	url string
}

func start(t *testing.T) *server {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("these tests need Prometheus: hack/install-packages.sh prometheus")
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&metrics.Collector{List: stacks, Load: full})
	operator := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(operator.Close)

	alerts, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n- job_name: authstack\n  static_configs: [{targets: [%q]}]\n",
		alerts, strings.TrimPrefix(operator.URL, "http://"))
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), binary, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--enable-feature=native-histograms")
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("Prometheus:\n%s", text)
		}
	})
	return &server{t, "http://" + address}
}

type sample struct {
	Metric map[string]string
	Value  [2]any
}

// get asks the HTTP API and decodes data.
func (s *server) get(path string, query url.Values, data any) error {
	response, err := http.Get(s.url + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%s %s: %w", path, query, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s %s: %s", path, query, answer.Error)
	}
	return json.Unmarshal(answer.Data, data)
}

func (s *server) query(expr string) ([]sample, error) {
	var data struct{ Result []sample }
	err := s.get("/api/v1/query", url.Values{"query": {expr}}, &data)
	return data.Result, err
}

// eventually asks until the answer holds.
func (s *server) eventually(what string, holds func() (bool, error)) {
	s.t.Helper()
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		var ok bool
		if ok, err = holds(); ok {
			return
		}
	}
	s.t.Fatalf("%s: not in two minutes (%v)", what, err)
}

func TestARealPrometheus(t *testing.T) {
	s := start(t)
	s.eventually("the native histogram is there", func() (bool, error) {
		samples, err := s.query(`histogram_quantile(0.95, authstack_latency_seconds{scenario="Login"})`)
		return len(samples) == 1, err
	})
	t.Run("its percentiles are ours", func(t *testing.T) {
		for _, p := range []float64{0.5, 0.95, 0.99} {
			samples, err := s.query(fmt.Sprintf(`histogram_quantile(%g, authstack_latency_seconds{scenario="Login"})`, p))
			if err != nil || len(samples) != 1 {
				t.Fatalf("%v %v", samples, err)
			}
			got, err := strconv.ParseFloat(samples[0].Value[1].(string), 64)
			if err != nil {
				t.Fatal(err)
			}
			// A bucket is 4.4 % wide.
			if math.Abs(got/p-1) > 0.045 {
				t.Errorf("quantile %g is %g s, the truth is %g", p, got, p)
			}
		}
	})
	t.Run("an objective that is missed fires its alert, and nothing else does", func(t *testing.T) {
		var firing []string
		s.eventually("an alert", func() (bool, error) {
			samples, err := s.query(`ALERTS{alertstate="firing"}`)
			firing = nil
			for _, a := range samples {
				firing = append(firing, a.Metric["alertname"]+" of "+a.Metric["namespace"]+"/"+a.Metric["stack"])
			}
			return len(firing) > 0, err
		})
		if len(firing) != 1 || firing[0] != "AuthStackLatencyFailed of sso/home" {
			t.Errorf("firing: %q", firing)
		}
	})
	t.Run("every rule was loaded and evaluated", func(t *testing.T) {
		s.eventually("all rules are healthy", func() (bool, error) {
			var data struct {
				Groups []struct {
					Rules []struct{ Name, Health, LastError string }
				}
			}
			err := s.get("/api/v1/rules", nil, &data)
			n := 0
			for _, g := range data.Groups {
				for _, r := range g.Rules {
					if r.Health == "ok" {
						n++
					} else {
						err = fmt.Errorf("%s: %s %s", r.Name, r.Health, r.LastError)
					}
				}
			}
			return err == nil && n >= 7, err
		})
	})
	t.Run("every panel of the dashboard has an answer", func(t *testing.T) {
		text, err := os.ReadFile(dashboard)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil || len(board.Panels) == 0 {
			t.Fatal(len(board.Panels), err)
		}
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				expr := strings.NewReplacer("$namespace", ".*", "$stack", ".*").Replace(target.Expr)
				samples, err := s.query(expr)
				if err != nil || len(samples) == 0 {
					t.Errorf("%s: %s gives %d series, %v", panel.Title, expr, len(samples), err)
				}
			}
		}
	})
}

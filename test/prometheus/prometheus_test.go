package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
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

func TestARealPrometheus(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&metrics.Collector{List: stacks, Load: full})
	operator := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer operator.Close()
	s := Start(t, strings.TrimPrefix(operator.URL, "http://"), rules)
	s.Eventually("the native histogram is there", func() (bool, error) {
		samples, err := s.Query(`histogram_quantile(0.95, authstack_latency_seconds{scenario="Login"})`)
		return len(samples) == 1, err
	})
	t.Run("its percentiles are ours", func(t *testing.T) {
		for _, p := range []float64{0.5, 0.95, 0.99} {
			samples, err := s.Query(fmt.Sprintf(`histogram_quantile(%g, authstack_latency_seconds{scenario="Login"})`, p))
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
		s.Eventually("an alert", func() (bool, error) {
			samples, err := s.Query(`ALERTS{alertstate="firing"}`)
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
		s.Eventually("all rules are healthy", func() (bool, error) {
			var data struct {
				Groups []struct {
					Rules []struct{ Name, Health, LastError string }
				}
			}
			err := s.Get("/api/v1/rules", nil, &data)
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
				samples, err := s.Query(expr)
				if err != nil || len(samples) == 0 {
					t.Errorf("%s: %s gives %d series, %v", panel.Title, expr, len(samples), err)
				}
			}
		}
	})
}

package metrics

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// measured is a stack whose last test missed its objective.
func measured(name, test string) v1alpha1.AuthStack {
	at := metav1.NewTime(time.Unix(1_700_000_000, 0))
	st := v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Namespace: "sso", Name: name}}
	st.Spec.Latency = &v1alpha1.LatencySpec{Objectives: []v1alpha1.Objective{
		{Scenario: "Login", Percentile: 95, Below: metav1.Duration{Duration: 800 * time.Millisecond}},
		{Scenario: "Login", Percentile: 95, Below: metav1.Duration{Duration: 700 * time.Millisecond}}}}
	st.Status.IdentityProvider = &v1alpha1.IdentityProviderStatus{Name: "authentik", Version: "2026.8.3", Double: true}
	st.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"}}
	st.Status.Latency = &v1alpha1.LatencyStatus{TestName: test, Verdict: v1alpha1.VerdictFailed, CompletedAt: &at,
		Scenarios: []v1alpha1.ScenarioResult{{Name: "Login", Endpoints: []v1alpha1.EndpointResult{{Name: "login", Requests: 60, Failed: 1, P95Micros: 912_000}}}}}
	return st
}

func run() *result.Run {
	h := result.NewHistogram()
	for i := range int64(1000) {
		h.Record((i + 1) * 1000)
	}
	h.Record(0)
	return &result.Run{Series: []result.Series{{Scenario: "Login", Endpoint: "login", Requests: 1001, Total: h}}}
}

func TestWhatIsShown(t *testing.T) {
	c := &Collector{
		List: func(context.Context) ([]v1alpha1.AuthStack, error) {
			return []v1alpha1.AuthStack{measured("home", "home-1"), {ObjectMeta: metav1.ObjectMeta{Namespace: "sso", Name: "new"}}}, nil
		},
		Load: func(context.Context, string, string) (*result.Run, error) { return nil, nil },
	}
	want := `
# HELP authstack_condition 1 where the condition is True, 0 where it is not.
# TYPE authstack_condition gauge
authstack_condition{condition="Ready",namespace="sso",reason="Ready",stack="home"} 1
# HELP authstack_latency_objective_seconds What the percentile must stay below.
# TYPE authstack_latency_objective_seconds gauge
authstack_latency_objective_seconds{endpoint="",namespace="sso",percentile="95",scenario="Login",stack="home"} 0.8
# HELP authstack_latency_verdict 1 for the verdict of the last LatencyTest, 0 for the others.
# TYPE authstack_latency_verdict gauge
authstack_latency_verdict{namespace="sso",stack="home",verdict="Error"} 0
authstack_latency_verdict{namespace="sso",stack="home",verdict="Failed"} 1
authstack_latency_verdict{namespace="sso",stack="home",verdict="Inconclusive"} 0
authstack_latency_verdict{namespace="sso",stack="home",verdict="Passed"} 0
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "authstack_condition", "authstack_latency_objective_seconds", "authstack_latency_verdict"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

func TestAResultIsReadOnceForEachMeasurement(t *testing.T) {
	loads, test, broken := 0, "home-1", false
	c := &Collector{
		List: func(context.Context) ([]v1alpha1.AuthStack, error) {
			return []v1alpha1.AuthStack{measured("home", test)}, nil
		},
		Load: func(context.Context, string, string) (*result.Run, error) {
			if loads++; broken {
				return nil, errors.New("not now")
			}
			return run(), nil
		},
	}
	scrape := func() int { return testutil.CollectAndCount(c, "authstack_latency_seconds") }
	if n := scrape() + scrape(); n != 2 || loads != 1 {
		t.Errorf("%d histograms in two scrapes, %d reads", n, loads)
	}
	test, broken = "home-2", true
	if n := scrape(); n != 0 || loads != 2 {
		t.Errorf("%d histograms of a result that cannot be read, %d reads", n, loads)
	}
	broken = false
	if n := scrape(); n != 1 || loads != 3 {
		t.Errorf("%d histograms, %d reads: the next scrape should have tried again", n, loads)
	}
}

func TestNativeBucketsHoldEveryDuration(t *testing.T) {
	h := run().Series[0].Total
	buckets, zero := nativeBuckets(h)
	n := int64(zero)
	for index, count := range buckets {
		n += count
		if upper := math.Pow(2, float64(index)/(1<<schema)); upper > 1.05 {
			t.Errorf("a bucket ends at %g s", upper)
		}
	}
	if n != h.Count() || zero != 1 {
		t.Errorf("%d of %d durations, %d of no length", n, h.Count(), zero)
	}
}

var _ prometheus.Collector = &Collector{}

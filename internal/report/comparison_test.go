package report

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"authstack.dev/authstack/api/v1alpha1"
)

// probes are what the storage of each medium was measured to do; both variants on Ceph have the same.
var probes = map[v1alpha1.Medium]*v1alpha1.StorageProbeStatus{
	v1alpha1.MediumNodeLocal: {StorageClassName: "local-path", CompletedAt: &metav1.Time{Time: noon},
		Syncs: []v1alpha1.SyncFigures{{Phase: "Short", SyncsPerSecond: 9000, P50Micros: 100}, {Phase: "Long", DurationSeconds: 30, SyncsPerSecond: 7000, P50Micros: 130, P99Micros: 400, P999Micros: 900, MaxMicros: 5000}}},
	v1alpha1.MediumCephRBD: {StorageClassName: "ceph-block", CompletedAt: &metav1.Time{Time: noon},
		Syncs:    []v1alpha1.SyncFigures{{Phase: "Long", DurationSeconds: 30, SyncsPerSecond: 280, P50Micros: 3250, P99Micros: 9000, P999Micros: 19000, MaxMicros: 50000}},
		Findings: []v1alpha1.StorageFinding{{Kind: v1alpha1.FindingSlow, Message: "a sync takes 3.25 ms"}}},
}

// compared is the report of a comparison of three variants.
func compared() *Report {
	c := &v1alpha1.LatencyComparison{ObjectMeta: metav1.ObjectMeta{Namespace: "sso", Name: "media"}}
	c.Spec.StackRef.Name = "demo"
	c.Status = v1alpha1.LatencyComparisonStatus{Verdict: v1alpha1.VerdictPassed, Message: "ceph-strict login p50 is 1.90 (1.82–1.98) of local-strict (Slower).",
		StartedAt: &metav1.Time{Time: noon}, CompletedAt: &metav1.Time{Time: noon.Add(40 * 60e9)}}
	in := ComparisonInput{Comparison: c, Now: noon}
	for _, v := range []struct {
		name, patch string
		median      float64
		medium      v1alpha1.Medium
		durability  v1alpha1.Durability
		note        string
	}{
		{"local-strict", "", 540, v1alpha1.MediumNodeLocal, v1alpha1.DurabilityStrict, "a crash takes no acknowledged commit"},
		{"ceph-strict", `{"postgres":{"storage":{"cephRBD":{},"localNVMe":null}}}`, 1020, v1alpha1.MediumCephRBD, v1alpha1.DurabilityStrict, "a crash takes no acknowledged commit"},
		{"ceph-relaxed", `{"postgres":{"durability":"Relaxed","storage":{"cephRBD":{},"localNVMe":null}}}`, 550, v1alpha1.MediumCephRBD, v1alpha1.DurabilityRelaxed, "acknowledged commits of up to 0.6 s <b>"},
	} {
		of := sample(v.median, true)
		subject := *of.Test.Status.Subject
		subject.Medium, subject.Durability = v.medium, v.durability
		status := v1alpha1.VariantStatus{Name: v.name, Rounds: 4, Subject: &subject, DurabilityNote: v.note}
		var patch *runtime.RawExtension
		if v.patch != "" {
			patch = &runtime.RawExtension{Raw: []byte(v.patch)}
		}
		st := &v1alpha1.AuthStack{Status: v1alpha1.AuthStackStatus{Storage: &v1alpha1.StorageStatus{Probe: probes[v.medium]}}}
		in.Variants = append(in.Variants, NewVariant(status, patch, of.Test.Status.Scenarios, of.Run, st))
	}
	pair := func(variant, against, endpoint string, percentile int32, ratio, low, high int64, verdict v1alpha1.PairVerdict) {
		scenario := v1alpha1.ScenarioDashboard
		if endpoint == "login" {
			scenario = v1alpha1.ScenarioLogin
		}
		c.Status.Pairs = append(c.Status.Pairs, v1alpha1.PairResult{Variant: variant, Against: against, Scenario: scenario, Endpoint: endpoint, Percentile: percentile,
			Rounds: 4, RatioPermille: ratio, CILowPermille: low, CIHighPermille: high, SmallestEffectPermille: 62, Verdict: verdict})
	}
	pair("ceph-strict", "local-strict", "login", 50, 1900, 1820, 1984, v1alpha1.PairSlower)
	pair("ceph-strict", "local-strict", "login", 95, 1700, 900, 3211, v1alpha1.PairInconclusive)
	pair("ceph-strict", "local-strict", "dashboard-parallel", 50, 1010, 980, 1041, v1alpha1.PairNoDifference)
	pair("ceph-relaxed", "local-strict", "login", 50, 1020, 990, 1049, v1alpha1.PairNoDifference)
	pair("ceph-relaxed", "ceph-strict", "login", 50, 537, 510, 565, v1alpha1.PairFaster)
	c.Status.Pairs = append(c.Status.Pairs, v1alpha1.PairResult{Variant: "ceph-relaxed", Against: "local-strict", Scenario: v1alpha1.ScenarioDashboard,
		Endpoint: "dashboard-sequential", Percentile: 50, Rounds: 1, Verdict: v1alpha1.PairInconclusive})
	r := NewComparison(in)
	r.WaitingCommits = []WaitingCommits{
		{Product: "authentik", Version: "2025.12.4", Double: true, Database: "PostgreSQL 15.18", Durability: "Strict", Logins: 10,
			Requests: []RequestCommits{{"1 GET identification", 2, []string{"INSERT authentik_core_session"}}, {"6 GET user_login", 11, nil}}},
		{Product: "authentik", Version: "2025.12.4", Double: true, Database: "PostgreSQL 15.18", Durability: "IdentityDurable", Logins: 10,
			Requests: []RequestCommits{{"1 GET identification", 0, nil}, {"6 GET user_login", 6.1, []string{"DELETE authentik_core_session", "UPDATE authentik_core_user"}}}},
	}
	return r
}

func TestComparisonSaysWhatTheStorageDoesAndWhichCommitsWait(t *testing.T) {
	r := compared()
	var text strings.Builder
	compareTable(&text, r)
	var markdown, page bytes.Buffer
	compareMarkdown(&markdown, r)
	if err := WriteHTML(&page, r); err != nil {
		t.Fatal(err)
	}
	for form, got := range map[string]string{"text": text.String(), "Markdown": markdown.String(), "HTML": page.String()} {
		for _, want := range []string{
			"ceph-strict, ceph-relaxed", "3.25", "A sync of ceph-block (ceph-strict) takes 25.0 times as long as one of local-path (local-strict).", "a sync takes 3.25 ms",
			"13.0", "6.1", "the DOUBLE of authentik 2025.12.4 on PostgreSQL 15.18", "DELETE authentik_core_session, UPDATE authentik_core_user",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s does not say %q", form, want)
			}
		}
	}
}

func TestFileOfWaitingCommitsIsReadBack(t *testing.T) {
	for name, c := range map[string]struct{ file, refused string }{
		"as it was written":        {`[{"durability":"Strict","requests":[{"request":"1","waits":2}]},{"durability":"Relaxed","requests":[{"request":"1","waits":0}]}]`, ""},
		"other requests in one":    {`[{"durability":"Strict","requests":[{"request":"1","waits":2}]},{"durability":"Relaxed","requests":[]}]`, "make bench-durability wrote"},
		"a report, which it isn't": {`{"apiVersion":"authstack.dev/report/v1"}`, "make bench-durability wrote"},
	} {
		t.Run(name, func(t *testing.T) {
			counted, err := ReadWaitingCommits(strings.NewReader(c.file))
			if c.refused == "" && (err != nil || len(counted) != 2 || counted[0].sum() != 2) {
				t.Errorf("read are %+v, %v", counted, err)
			}
			if c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestComparisonNamesEveryVariant(t *testing.T) {
	r := compared()
	if len(r.Scenarios) != 9 || r.Scenarios[0].Variant != "local-strict" || r.Scenarios[8].Variant != "ceph-relaxed" {
		t.Errorf("the rows are not the three wholes of three variants: %+v", r.Scenarios)
	}
	if p := r.Pairs[0]; p.Ratio != 1.9 || p.CILow != 1.82 || p.CIHigh != 1.984 || p.Verdict != v1alpha1.PairSlower {
		t.Errorf("the first pair is %+v", p)
	}
	var page bytes.Buffer
	if err := WriteHTML(&page, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DOUBLE: a stand-in ran", "1.82–1.98", "&lt;b&gt;", "&#34;durability&#34;:&#34;Relaxed&#34;", "ceph-relaxed: Dashboard ×8 parallel"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, sign := range []string{"http://", "https://", "<script", "src=", "ZgotmplZ", "<no value>", "NaN", "%!", "Inf"} {
		if strings.Contains(page.String(), sign) {
			t.Errorf("the page holds %q", sign)
		}
	}
	r.DropPlots()
	var small bytes.Buffer
	if err := WriteJSON(&small, r); err != nil || strings.Contains(small.String(), "spectrum") {
		t.Errorf("plots are left: %v", err)
	}
}

func TestJoinedComparisonsAreOneTable(t *testing.T) {
	one, other := compared(), compared()
	other.Name, other.Verdict = "slowed", v1alpha1.VerdictInconclusive
	for i := range other.Variants {
		other.Variants[i].Name = "slowed-" + other.Variants[i].Name
	}
	for i := range other.Pairs {
		other.Pairs[i].Variant, other.Pairs[i].Against = "slowed-"+other.Pairs[i].Variant, "slowed-"+other.Pairs[i].Against
	}
	joined := JoinComparisons(one, other)
	if len(joined.Variants) != 6 || len(joined.Pairs) != 12 || len(joined.Scenarios) != 18 || joined.Verdict != v1alpha1.VerdictInconclusive || joined.Name != "media+slowed" {
		t.Errorf("joined are %d variants, %d pairs, %d rows, %s, %s", len(joined.Variants), len(joined.Pairs), len(joined.Scenarios), joined.Verdict, joined.Name)
	}
	if len(one.Variants) != 3 {
		t.Error("the first report was changed")
	}
	// Against the first of each comparison: five of the six pairs of each.
	if shown := joined.againstFirst(); len(shown) != 10 {
		t.Errorf("a table shows %d pairs", len(shown))
	}
	if JoinComparisons() != nil {
		t.Error("nothing joined is something")
	}
}

package comparison

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// variants of a base, as name and patch by turns.
func variants(namesAndPatches ...string) *v1alpha1.LatencyComparison {
	c := &v1alpha1.LatencyComparison{ObjectMeta: metav1.ObjectMeta{Namespace: "sso", Name: "media", UID: "2f7e"}}
	c.Spec.StackRef.Name = "base"
	for i := 0; i < len(namesAndPatches); i += 2 {
		v := v1alpha1.ComparisonVariant{Name: namesAndPatches[i]}
		if patch := namesAndPatches[i+1]; patch != "" {
			v.Patch = &runtime.RawExtension{Raw: []byte(patch)}
		}
		c.Spec.Variants = append(c.Spec.Variants, v)
	}
	return c
}

func base() *v1alpha1.AuthStack {
	return &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Namespace: "sso", Name: "base"}, Spec: v1alpha1.AuthStackSpec{
		Host: "sso.example.com", Authentik: &v1alpha1.AuthentikSpec{Version: "2025.12.4"},
		Postgres: &v1alpha1.PostgresSpec{Storage: &v1alpha1.StorageSpec{LocalNVMe: &v1alpha1.LocalNVMeStorage{}}},
		Latency:  &v1alpha1.LatencySpec{Schedule: "@daily"}, Suspend: true,
	}}
}

const relaxed = `{"postgres":{"durability":"Relaxed"}}`

func TestAVariantIsTheBaseWithItsPatch(t *testing.T) {
	of := base()
	plan, err := Resolve(variants("strict", "", "ceph-relaxed", `{"postgres":{"durability":"Relaxed","storage":{"localNVMe":null,"cephRBD":{}}}}`), of)
	if err != nil {
		t.Fatal(err)
	}
	strict, ceph := plan.Variants[0].Stack, plan.Variants[1].Stack
	for _, st := range []*v1alpha1.AuthStack{strict, ceph} {
		if st.Spec.DeletionPolicy != v1alpha1.DeletionDelete || st.Spec.Suspend || st.Spec.Latency.Mode != v1alpha1.LatencyManual || st.Spec.Latency.Schedule != "" {
			t.Errorf("%+v would keep its data, stand still or be measured by others", st.Spec)
		}
		if st.Name != "base" || st.Spec.Host != "sso.example.com" || st.Labels[v1alpha1.ComparisonUIDLabel] != "2f7e" {
			t.Errorf("%+v is not the base", st)
		}
	}
	if s := ceph.Spec.Postgres; s.Durability != v1alpha1.DurabilityRelaxed || s.Storage.CephRBD == nil || s.Storage.LocalNVMe != nil {
		t.Errorf("the patch gave %+v", s)
	}
	if strict.Namespace == ceph.Namespace || !strings.HasPrefix(ceph.Namespace, "media-ceph-relaxed-") || len(ceph.Namespace) > 63 {
		t.Errorf("the namespaces are %s and %s", strict.Namespace, ceph.Namespace)
	}
	if of.Spec.Latency.Schedule != "@daily" || !of.Spec.Suspend {
		t.Error("the base was changed")
	}
	another := variants("strict", "")
	another.UID = "later"
	if NamespaceOf(another, "strict") == strict.Namespace {
		t.Error("a comparison of the same name would meet what an earlier one left behind")
	}
	longest := variants(strings.Repeat("v", 20), "")
	longest.Name = strings.Repeat("c", 30)
	if n := len(NamespaceOf(longest, longest.Spec.Variants[0].Name)); n > 63 {
		t.Errorf("the longest namespace has %d characters", n)
	}
}

func TestWhatCannotBeComparedIsRefused(t *testing.T) {
	external := `{"postgres":{"storage":null,"external":{"host":"db","database":"a","secretName":"s"}}}`
	for name, row := range map[string]struct {
		patches []string
		scene   v1alpha1.ScenarioName
		says    string
	}{
		"two equal patches":                     {[]string{relaxed, `{"postgres": {"durability": "Relaxed"}}`}, "", "are the same stack"},
		"a patch that changes nothing":          {[]string{"", `{"host":"sso.example.com"}`}, "", "are the same stack"},
		"patches that only differ in nothing":   {[]string{`{"postgres":{"durability":null}}`, `{}`}, "", "are the same stack"},
		"a misspelt field":                      {[]string{"", `{"postgres":{"duribility":"Relaxed"}}`}, "", `unknown field "duribility"`},
		"the spec once more":                    {[]string{"", `{"spec":{"postgres":{}}}`}, "", "the fields are those below spec"},
		"a value of another type":               {[]string{"", `{"postgres":"fast"}`}, "", "variant v1"},
		"a list for a patch":                    {[]string{"", `[]`}, "", "no object"},
		"an external database":                  {[]string{"", external}, "", "write postgres: {external: null}"},
		"a directory":                           {[]string{"", `{"authentik":null,"authelia":{"version":"4.39.20","ldap":{"address":"ldap://x","baseDN":"d","user":"u","passwordSecretRef":{"name":"n","key":"k"}}}}`}, "", "ldap: null"},
		"a users file of somebody's own":        {[]string{"", `{"authentik":null,"authelia":{"version":"4.39.20","users":{"secretName":"mine"}}}`}, "", "secretName: null"},
		"a schedule":                            {[]string{"", `{"latency":{"schedule":"@daily"}}`}, "", "remove latency from the patch"},
		"a deletion policy":                     {[]string{"", `{"deletionPolicy":"Retain"}`}, "", "remove deletionPolicy"},
		"a suspended variant":                   {[]string{"", `{"suspend":true}`}, "", "remove suspend"},
		"a scenario that a variant cannot have": {[]string{"", `{"authentik":null,"authelia":{"version":"4.39.20","users":{}}}`}, v1alpha1.ScenarioDashboard, "variant v1: scenario Dashboard"},
		"OIDC of Authelia":                      {[]string{"", `{"authentik":null,"authelia":{"version":"4.39.20","users":{}}}`}, v1alpha1.ScenarioOIDC, "variant v1: scenario OIDC needs a client"},
	} {
		t.Run(name, func(t *testing.T) {
			c := variants("v0", row.patches[0], "v1", row.patches[1])
			if row.scene != "" {
				c.Spec.Scenarios = []v1alpha1.Scenario{{Name: row.scene}}
			}
			if _, err := Resolve(c, base()); err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("the refusal does not say %q: %v", row.says, err)
			}
		})
	}
}

func TestHashChangesWithWhatIsCompared(t *testing.T) {
	of := func(change func(*v1alpha1.LatencyComparison)) string {
		c := variants("a", "", "b", `{"host":"x","postgres":{"durability":"Relaxed"}}`)
		change(c)
		return Hash(c)
	}
	same := of(func(*v1alpha1.LatencyComparison) {})
	for name, row := range map[string]struct {
		changes bool
		change  func(*v1alpha1.LatencyComparison)
	}{
		"keep": {false, func(c *v1alpha1.LatencyComparison) { c.Spec.Keep = true }},
		"the order of keys": {false, func(c *v1alpha1.LatencyComparison) {
			c.Spec.Variants[1].Patch.Raw = []byte(`{"postgres": {"durability":"Relaxed"}, "host":"x"}`)
		}},
		"another annotation": {false, func(c *v1alpha1.LatencyComparison) { c.Annotations = map[string]string{"a": "b"} }},
		"a patch":            {true, func(c *v1alpha1.LatencyComparison) { c.Spec.Variants[1].Patch.Raw = []byte(relaxed) }},
		"the rounds":         {true, func(c *v1alpha1.LatencyComparison) { c.Spec.Rounds = ptr.To(int32(6)) }},
		"the request": {true, func(c *v1alpha1.LatencyComparison) {
			c.Annotations = map[string]string{v1alpha1.RequestedAtAnnotation: "now"}
		}},
	} {
		if got := of(row.change); (got != same) != row.changes {
			t.Errorf("%s: changed is %v", name, got != same)
		}
	}
}

func TestOrder(t *testing.T) {
	c := variants("a", "", "b", relaxed, "c", `{"host":"c.example.com"}`)
	c.Spec.WarmUpRounds, c.Spec.Rounds = ptr.To(int32(2)), ptr.To(int32(4))
	plan, err := Resolve(c, base())
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, slot := range plan.Slots() {
		order = append(order, slot.Name()+plan.Variants[slot.Variant].Name)
	}
	want := "warm-up-2a warm-up-2b warm-up-2c warm-up-1c warm-up-1b warm-up-1a " +
		"round-1a round-1b round-1c round-2c round-2b round-2a round-3a round-3b round-3c round-4c round-4b round-4a"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("the order is\n%s, not\n%s", got, want)
	}
}

// run is what k6 measured of a login and a dashboard, each that many milliseconds.
func run(login, dashboard float64) *result.Run {
	r := &result.Run{Format: result.Format}
	for _, s := range []struct {
		scenario, endpoint string
		ms                 float64
	}{{"Login", "login", login}, {"Dashboard", "dashboard-parallel", dashboard}, {"Dashboard", "dashboard-sequential", 2 * dashboard}} {
		series := result.Series{Scenario: s.scenario, Endpoint: s.endpoint, Whole: true, Requests: 20, Total: result.NewHistogram()}
		for i := range 20 {
			series.Total.Record(int64(s.ms * 1000 * (1 + float64(i)/100)))
		}
		r.Series = append(r.Series, series)
	}
	r.Sort()
	return r
}

func TestJudge(t *testing.T) {
	c := variants("strict", "", "relaxed", relaxed, "named", `{"host":"x.example.com"}`)
	c.Spec.Scenarios = []v1alpha1.Scenario{{Name: v1alpha1.ScenarioLogin}, {Name: v1alpha1.ScenarioDashboard}}
	plan, err := Resolve(c, base())
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	measured := make([]*Measured, 3)
	for i := range measured {
		measured[i] = NewMeasured(plan.Variants[i])
	}
	for round := int32(1); round <= plan.Rounds; round++ {
		weather := math.Exp(0.3 * random.NormFloat64())
		noise := func() float64 { return weather * math.Exp(0.01*random.NormFloat64()) }
		measured[0].Add(round, run(1000*noise(), 300*noise()))
		measured[1].Add(round, run(600*noise(), 300*noise()))
		measured[2].Add(round, run(1000*noise(), []float64{150, 500, 260, 420}[round-1]))
	}
	out := plan.Judge(measured)
	if out.Verdict != v1alpha1.VerdictPassed {
		t.Errorf("the verdict is %s: %s", out.Verdict, out.Message)
	}
	// Three pairs, three wholes, two percentiles.
	if len(out.Pairs) != 18 {
		t.Errorf("there are %d pairs", len(out.Pairs))
	}
	for _, want := range []string{
		"relaxed/strict login 50 Faster", "relaxed/strict login 95 Faster", "relaxed/strict dashboard-parallel 50 NoDifference",
		"named/strict login 50 NoDifference", "named/relaxed login 50 Slower", "named/strict dashboard-sequential 95 Inconclusive",
	} {
		found := false
		for _, pair := range out.Pairs {
			found = found || fmt.Sprintf("%s/%s %s %d %s", pair.Variant, pair.Against, pair.Endpoint, pair.Percentile, pair.Verdict) == want
			if pair.CILowPermille > pair.RatioPermille || pair.CIHighPermille < pair.RatioPermille || pair.Rounds != 4 {
				t.Errorf("%+v contradicts itself", pair)
			}
		}
		if !found {
			text, _ := json.Marshal(out.Pairs)
			t.Errorf("no pair is %s: %s", want, text)
		}
	}
	if !strings.Contains(out.Message, "relaxed login p50 is 0.59 (") || strings.Contains(out.Message, "of relaxed") {
		t.Errorf("the message is %s", out.Message)
	}

	thin := NewMeasured(plan.Variants[1])
	thin.Add(2, run(600, 300))
	out = plan.Judge([]*Measured{measured[0], thin})
	if out.Verdict != v1alpha1.VerdictInconclusive || !strings.Contains(out.Message, "relaxed was measured in 1 of 4 rounds") {
		t.Errorf("one round of four gives %s: %s", out.Verdict, out.Message)
	}
	for _, pair := range out.Pairs {
		if pair.Verdict != v1alpha1.PairInconclusive || pair.RatioPermille != 0 || Words(pair) != "not known" {
			t.Errorf("one round gives %+v", pair)
		}
	}
}

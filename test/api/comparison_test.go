package api

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const comparison = `{apiVersion: authstack.dev/v1alpha1, kind: LatencyComparison, metadata: {name: media},
  spec: {stackRef: {name: sso}, variants: [{name: strict}, {name: relaxed, patch: {postgres: {durability: Relaxed}}}]}}`

func TestComparisons(t *testing.T) {
	variants := func(list string) string { return `{spec: {variants: ` + list + `}}` }
	patch := `patch: {host: x}`
	try(t, map[string]row{
		"as it is":                       {comparison, "", "", ""},
		"a script of one's own":          {comparison, `{spec: {scenarios: [{name: Script, script: {configMapRef: {name: a, key: b}}}]}}`, "", "measure a script by LatencyTests"},
		"a time beside another":          {comparison, `{spec: {scenarios: [{name: Login}, {name: Throughput, duration: 1m}]}}`, "", "runs by the clock and needs a LatencyComparison of its own"},
		"a time alone":                   {comparison, `{spec: {scenarios: [{name: Throughput, duration: 1m}]}}`, "", ""},
		"one variant":                    {comparison, variants(`[{name: strict}]`), "", "a comparison needs at least two variants; to measure one stack make a LatencyTest"},
		"no variant":                     {comparison, variants(`[]`), "", "a comparison needs at least two variants"},
		"nine variants":                  {comparison, variants(`[{name: a, ` + patch + `}, {name: b, ` + patch + `}, {name: c, ` + patch + `}, {name: d, ` + patch + `}, {name: e, ` + patch + `}, {name: f, ` + patch + `}, {name: g, ` + patch + `}, {name: h, ` + patch + `}, {name: i, ` + patch + `}]`), "", "Too many"},
		"two variants without a patch":   {comparison, variants(`[{name: a}, {name: b}]`), "", "two variants without a patch are the same stack"},
		"a name twice":                   {comparison, variants(`[{name: a}, {name: a, ` + patch + `}]`), "", "Duplicate value"},
		"a name with a dot":              {comparison, variants(`[{name: a.b}, {name: b, ` + patch + `}]`), "", "a namespace is named after it, for example ceph-strict"},
		"a name in upper case":           {comparison, variants(`[{name: Ceph}, {name: b, ` + patch + `}]`), "", "a namespace is named after it"},
		"a name that ends in a dash":     {comparison, variants(`[{name: a-}, {name: b, ` + patch + `}]`), "", "a namespace is named after it"},
		"no name":                        {comparison, variants(`[{name: ""}, {name: b, ` + patch + `}]`), "", "name"},
		"a name of 21":                   {comparison, variants(`[{name: ` + strings.Repeat("a", 21) + `}, {name: b, ` + patch + `}]`), "", "Too long"},
		"a name of 20":                   {comparison, variants(`[{name: ` + strings.Repeat("a", 20) + `}, {name: b, ` + patch + `}]`), "", ""},
		"a patch that is a list":         {comparison, variants(`[{name: a}, {name: b, patch: []}]`), "", "must be of type object"},
		"a patch that is text":           {comparison, variants(`[{name: a}, {name: b, patch: "x"}]`), "", "must be of type object"},
		"three rounds":                   {comparison, `{spec: {rounds: 3}}`, "", "with an odd number the order A B B A does not balance"},
		"fourteen rounds":                {comparison, `{spec: {rounds: 14}}`, "", "rounds must be 2, 4, 6, 8, 10 or 12"},
		"two rounds":                     {comparison, `{spec: {rounds: 2}}`, "", ""},
		"an equivalence of nothing":      {comparison, `{spec: {equivalencePercent: 0}}`, "", "greater than or equal to 1"},
		"a comparison's name of 31":      {comparison, `{metadata: {name: ` + strings.Repeat("a", 31) + `}}`, "", "at most 30 characters"},
		"a comparison's name with a dot": {comparison, `{metadata: {name: a.b}}`, "", "namespaces are named after it"},
		"an unknown scenario":            {comparison, `{spec: {scenarios: [{name: Signup}]}}`, "", "supported values"},
	})
}

// A merge patch removes a field by null, and the API server has a habit of dropping those.
func TestAPatchKeepsItsNulls(t *testing.T) {
	wanted := map[string]any{"postgres": map[string]any{"storage": map[string]any{"localNVMe": nil, "cephRBD": map[string]any{}}}}
	made, err := created(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authstack.dev/v1alpha1", "kind": "LatencyComparison", "metadata": map[string]any{"namespace": namespace, "name": "nulls"},
		"spec": map[string]any{"stackRef": map[string]any{"name": "sso"}, "variants": []any{
			map[string]any{"name": "a"}, map[string]any{"name": "b", "patch": wanted},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(made), made); err != nil {
		t.Fatal(err)
	}
	variants, _, err := unstructured.NestedSlice(made.Object, "spec", "variants")
	if err != nil {
		t.Fatal(err)
	}
	if got := variants[1].(map[string]any)["patch"]; !reflect.DeepEqual(got, wanted) {
		t.Errorf("the patch was stored as %v", got)
	}
}

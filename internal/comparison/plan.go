// Package comparison says how variants of a stack are compared: which stacks they are (Resolve), what
// is measured next (Next), and what the measurements show (Judge). It is pure: no client, no clock.
package comparison

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/latency"
)

// The defaults of a comparison; api/v1alpha1 documents them.
const (
	defaultRounds       = 4
	defaultWarmUpRounds = 1
	defaultSettle       = 10
	defaultEquivalence  = 5
	defaultTimeout      = 900
)

// Plan is what a comparison comes to once every default is filled in.
type Plan struct {
	// Variants in the order of the spec.
	Variants []Variant
	// Rounds that count, WarmUpRounds before them that do not.
	Rounds, WarmUpRounds int32
	// Settle is the pause between two measurements.
	Settle time.Duration
	// Timeout of one measurement.
	Timeout time.Duration
	// Probes is whether the operator probes storage; then each variant's is probed before the first round.
	Probes bool
	// Margin within which two variants count as equal; 0.05 is 5 %.
	Margin float64

	comparison *v1alpha1.LatencyComparison
}

// Variant is a stack that is measured.
type Variant struct {
	Name string
	// Namespace that is made for it; the variant is all that is in there.
	Namespace string
	// Stack as it should be made.
	Stack *v1alpha1.AuthStack
	// Measurement is the plan of each of its LatencyTests.
	Measurement *latency.Plan
}

// Hash of what is compared: everything in the spec but keep, and the request. A comparison whose hash
// changes is made anew.
func Hash(comparison *v1alpha1.LatencyComparison) string {
	spec := comparison.Spec.DeepCopy()
	spec.Keep = false
	// The API server hands a patch out with its keys in any order.
	for i := range spec.Variants {
		if patch := spec.Variants[i].Patch; patch != nil {
			patch.Raw = canonical(patch.Raw)
		}
	}
	data, err := json.Marshal(spec)
	if err != nil {
		// Unreachable: what came from the API server is JSON.
		panic(err)
	}
	sum := sha256.Sum256(append(data, comparison.Annotations[v1alpha1.RequestedAtAnnotation]...))
	return hex.EncodeToString(sum[:16])
}

func canonical(raw []byte) []byte {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return raw
	}
	data, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return data
}

// NamespaceOf a variant. It holds a hash of the comparison's uid, so that a comparison never meets what
// another of the same name left behind.
func NamespaceOf(comparison *v1alpha1.LatencyComparison, variant string) string {
	sum := sha256.Sum256([]byte(string(comparison.UID) + "/" + variant))
	return fmt.Sprintf("%s-%s-%s", comparison.Name, variant, hex.EncodeToString(sum[:3]))
}

// Labels of whatever is made for a comparison.
func Labels(comparison *v1alpha1.LatencyComparison, variant string) map[string]string {
	return map[string]string{
		v1alpha1.ComparisonLabel: comparison.Name, v1alpha1.ComparisonNamespaceLabel: comparison.Namespace,
		v1alpha1.ComparisonUIDLabel: string(comparison.UID), v1alpha1.VariantLabel: variant,
		"app.kubernetes.io/managed-by": "authstack",
	}
}

// Resolve fills in the defaults and makes the variants out of the base. Its error is a sentence that says
// what to write instead.
func Resolve(comparison *v1alpha1.LatencyComparison, base *v1alpha1.AuthStack) (*Plan, error) {
	spec := &comparison.Spec
	plan := &Plan{
		Rounds: orDefault(spec.Rounds, defaultRounds), WarmUpRounds: orDefault(spec.WarmUpRounds, defaultWarmUpRounds),
		Settle:     time.Duration(orDefault(spec.SettleSeconds, defaultSettle)) * time.Second,
		Timeout:    time.Duration(orDefault(spec.TimeoutSeconds, defaultTimeout)) * time.Second,
		Margin:     float64(orDefault(spec.EquivalencePercent, defaultEquivalence)) / 100,
		comparison: comparison,
	}
	for i := range spec.Variants {
		variant, err := plan.variant(&spec.Variants[i], base)
		if err != nil {
			return nil, fmt.Errorf("variant %s: %w", spec.Variants[i].Name, err)
		}
		for _, other := range plan.Variants {
			if equality.Semantic.DeepEqual(other.Stack.Spec, variant.Stack.Spec) {
				return nil, fmt.Errorf("the variants %s and %s are the same stack; write into the patch of one of them what should differ, for example {postgres: {durability: Relaxed}}", other.Name, variant.Name)
			}
		}
		plan.Variants = append(plan.Variants, variant)
	}
	return plan, nil
}

func (p *Plan) variant(given *v1alpha1.ComparisonVariant, base *v1alpha1.AuthStack) (Variant, error) {
	spec, err := patched(&base.Spec, given)
	if err != nil {
		return Variant{}, err
	}
	if err := isolated(spec); err != nil {
		return Variant{}, err
	}
	spec.DeletionPolicy, spec.Suspend = v1alpha1.DeletionDelete, false
	// Nothing but the comparison measures it, and a comparison has no objectives.
	spec.Latency = &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual}

	variant := Variant{Name: given.Name, Namespace: NamespaceOf(p.comparison, given.Name)}
	variant.Stack = &v1alpha1.AuthStack{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AuthStack"},
		ObjectMeta: metav1.ObjectMeta{Namespace: variant.Namespace, Name: base.Name, Labels: Labels(p.comparison, given.Name)},
		Spec:       *spec,
	}
	if variant.Measurement, err = latency.Resolve(p.test(variant, Slot{}), variant.Stack); err != nil {
		return variant, err
	}
	if spec.Authelia != nil && variant.Measurement.Asks(v1alpha1.ScenarioOIDC) {
		return variant, errors.New("scenario OIDC needs a client in Authelia's configuration, and its Secret is not copied to other namespaces; measure it by a LatencyTest, or write Login or ForwardAuth")
	}
	_, err = variant.Measurement.Client()
	return variant, err
}

// ours are the fields that a comparison sets by itself.
var ours = map[string]string{
	"latency":        "a comparison measures its variants itself; write spec.scenarios of the comparison",
	"deletionPolicy": "the data of a variant always goes with it",
	"suspend":        "a suspended variant would never be made",
}

// patched is the base's spec with the variant's patch.
func patched(base *v1alpha1.AuthStackSpec, variant *v1alpha1.ComparisonVariant) (*v1alpha1.AuthStackSpec, error) {
	if variant.Patch == nil || len(variant.Patch.Raw) == 0 {
		return base.DeepCopy(), nil
	}
	var fields map[string]any
	if err := json.Unmarshal(variant.Patch.Raw, &fields); err != nil {
		return nil, fmt.Errorf("the patch is no object: %w", err)
	}
	for name, why := range ours {
		if _, set := fields[name]; set {
			return nil, fmt.Errorf("remove %s from the patch: %s", name, why)
		}
	}
	original, err := json.Marshal(base)
	if err != nil {
		return nil, err
	}
	merged, err := jsonpatch.MergePatch(original, variant.Patch.Raw)
	if err != nil {
		return nil, fmt.Errorf("the patch cannot be merged: %w", err)
	}
	// The API server would drop a misspelt field in silence, and two variants would be one.
	decoder := json.NewDecoder(bytes.NewReader(merged))
	decoder.DisallowUnknownFields()
	spec := &v1alpha1.AuthStackSpec{}
	if err := decoder.Decode(spec); err != nil {
		return nil, fmt.Errorf("the patch gives no spec of an AuthStack (%s); the fields are those below spec, for example {postgres: {durability: Relaxed}}",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	return spec, nil
}

// isolated refuses what two stacks in two namespaces would share, or could not have at all.
func isolated(spec *v1alpha1.AuthStackSpec) error {
	switch {
	case spec.Postgres != nil && spec.Postgres.External != nil:
		return errors.New("an external database would be shared by the variants and by the base itself; write postgres: {external: null} into the patch, with standalone: {} or zalando: {} beside it")
	case spec.Authelia != nil && spec.Authelia.LDAP != nil:
		return errors.New("a directory would be loaded by every variant, and its password is not copied to other namespaces; write authelia: {ldap: null, users: {}} into the patch")
	case spec.Authelia != nil && spec.Authelia.Users != nil && spec.Authelia.Users.SecretName != "":
		return errors.New("a Secret is not copied to other namespaces; write authelia: {users: {secretName: null}} into the patch, and the variant gets users of its own")
	}
	return nil
}

// test is the LatencyTest of a slot.
func (p *Plan) test(variant Variant, slot Slot) *v1alpha1.LatencyTest {
	spec := &p.comparison.Spec
	scenarios := slices.Clone(spec.Scenarios)
	if len(scenarios) == 0 {
		scenarios = []v1alpha1.Scenario{{Name: v1alpha1.ScenarioLogin}}
	}
	timeout := int32(p.Timeout / time.Second)
	return &v1alpha1.LatencyTest{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "LatencyTest"},
		ObjectMeta: metav1.ObjectMeta{Namespace: variant.Namespace, Name: slot.Name(), Labels: Labels(p.comparison, variant.Name)},
		Spec: v1alpha1.LatencyTestSpec{
			StackRef: v1alpha1.StackReference{Name: variant.Stack.Name}, Scenarios: scenarios,
			TimeoutSeconds: &timeout, Generator: *spec.Generator.DeepCopy(),
		},
	}
}

// Test is the LatencyTest that measures a slot.
func (p *Plan) Test(slot Slot) *v1alpha1.LatencyTest { return p.test(p.Variants[slot.Variant], slot) }

func orDefault(value *int32, def int32) int32 {
	if value == nil {
		return def
	}
	return *value
}

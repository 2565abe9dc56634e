package report

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
)

// Variant is one of the stacks of a LatencyComparison, as it was measured.
type Variant struct {
	Name string `json:"name"`
	// Patch that makes it of the base; absent where it is the base itself.
	Patch   json.RawMessage `json:"patch,omitempty"`
	Subject Subject         `json:"subject"`
	// Rounds in which it was measured and every guard held.
	Rounds int32 `json:"rounds"`
	// DurabilityNote says what a crash can take from it.
	DurabilityNote string `json:"durabilityNote,omitempty"`
	// Storage is what the probe of its storage found, of this variant or of another on the same class, node and size.
	Storage *v1alpha1.StorageProbeStatus `json:"storage,omitempty"`
	// Scenarios over all rounds, one row for each endpoint.
	Scenarios []Row `json:"scenarios"`
	// Sustained are the scenarios whose rate rose in steps.
	Sustained []Sustained `json:"sustained,omitempty"`
	Plots     []Plot      `json:"plots,omitempty"`
	Details   []Details   `json:"details,omitempty"`
}

// Pair is the ratio of a percentile of one variant to that of another, with its 95 % confidence interval.
// Ratio is 0 where there were too few rounds for any.
type Pair struct {
	Variant    string  `json:"variant"`
	Against    string  `json:"against"`
	Scenario   string  `json:"scenario"`
	Endpoint   string  `json:"endpoint"`
	Percentile int32   `json:"percentile"`
	Rounds     int32   `json:"rounds"`
	Ratio      float64 `json:"ratio"`
	CILow      float64 `json:"ciLow"`
	CIHigh     float64 `json:"ciHigh"`
	// SmallestEffect that would have been found in 80 of 100 such comparisons; 0.05 is 5 % slower.
	SmallestEffect float64              `json:"smallestEffect"`
	Verdict        v1alpha1.PairVerdict `json:"verdict"`
}

// ComparisonInput is what the report of a comparison is made from.
type ComparisonInput struct {
	// Comparison with its status.
	Comparison *v1alpha1.LatencyComparison
	// Variants in the order of the spec.
	Variants []Variant
	Now      time.Time
}

// NewVariant makes the report of a variant. The run is all its rounds merged, or nil, and then there are
// no plots. The stack is the variant's, or nil, and then nothing is known of its storage.
func NewVariant(status v1alpha1.VariantStatus, patch *runtime.RawExtension, scenarios []v1alpha1.ScenarioResult, run *result.Run, st *v1alpha1.AuthStack) Variant {
	v := Variant{Name: status.Name, Rounds: status.Rounds, DurabilityNote: status.DurabilityNote, Scenarios: rowsOf(scenarios), Sustained: sustainedOf(scenarios), Storage: probed(st)}
	if patch != nil && json.Valid(patch.Raw) {
		v.Patch = patch.Raw
	}
	if status.Subject != nil {
		v.Subject = subjectOf(status.Subject)
	}
	if run != nil {
		v.Plots, v.Details = plots(scenarios, run), detailsOf(run)
	}
	return v
}

// NewComparison makes the report of a comparison. Its subject is the product, its scenarios are the wholes
// of every variant, each with the name of the variant.
func NewComparison(in ComparisonInput) *Report {
	status := in.Comparison.Status
	r := &Report{
		APIVersion: APIVersion, GeneratedAt: in.Now.UTC().Truncate(time.Second),
		Namespace: in.Comparison.Namespace, Name: in.Comparison.Name,
		Verdict: status.Verdict, Message: status.Message,
		Scenarios: []Row{}, Objectives: []Objective{}, Guards: []v1alpha1.Guard{},
		Subject:  Subject{Stack: in.Comparison.Spec.StackRef.Name},
		Variants: in.Variants, Pairs: []Pair{},
	}
	if status.StartedAt != nil {
		r.StartedAt = &status.StartedAt.Time
	}
	if status.CompletedAt != nil {
		r.CompletedAt = &status.CompletedAt.Time
	}
	for _, v := range in.Variants {
		if r.Subject.IdentityProvider == "" {
			// What the variants have in common; the rest is theirs.
			r.Subject = Subject{Stack: r.Subject.Stack, StackGeneration: status.BaseGeneration, IdentityProvider: v.Subject.IdentityProvider,
				Version: v.Subject.Version, Double: v.Subject.Double}
		}
		for i, row := range v.Scenarios {
			if row.Phases == nil || i == 0 || v.Scenarios[i-1].Scenario != row.Scenario {
				row.Variant, row.Phases = v.Name, nil
				r.Scenarios = append(r.Scenarios, row)
			}
		}
		for _, d := range v.Details {
			d.Variant = v.Name
			r.Details = append(r.Details, d)
		}
		for _, s := range v.Sustained {
			s.Variant = v.Name
			r.Sustained = append(r.Sustained, s)
		}
	}
	for _, p := range status.Pairs {
		r.Pairs = append(r.Pairs, Pair{
			Variant: p.Variant, Against: p.Against, Scenario: string(p.Scenario), Endpoint: p.Endpoint, Percentile: p.Percentile, Rounds: p.Rounds,
			Ratio: thousandths(p.RatioPermille), CILow: thousandths(p.CILowPermille), CIHigh: thousandths(p.CIHighPermille),
			SmallestEffect: thousandths(p.SmallestEffectPermille), Verdict: p.Verdict,
		})
	}
	return r
}

func thousandths(permille int64) float64 { return float64(permille) / 1000 }

// DropPlots makes the report small.
func (r *Report) DropPlots() {
	r.Plots = nil
	for i := range r.Variants {
		r.Variants[i].Plots = nil
	}
}

// JoinComparisons makes one report of comparisons that belong together, because what differs between them
// could not be measured by turns: their variants and pairs after each other. Only variants of the same
// comparison are compared. Nil for none.
func JoinComparisons(reports ...*Report) *Report {
	if len(reports) == 0 {
		return nil
	}
	joined := *reports[0]
	for _, r := range reports[1:] {
		joined.Name += "+" + r.Name
		joined.Message = strings.TrimSpace(joined.Message + " " + r.Message)
		joined.Variants = append(slices.Clone(joined.Variants), r.Variants...)
		joined.Pairs = append(slices.Clone(joined.Pairs), r.Pairs...)
		joined.Scenarios = append(slices.Clone(joined.Scenarios), r.Scenarios...)
		joined.Sustained = append(slices.Clone(joined.Sustained), r.Sustained...)
		joined.Details = append(slices.Clone(joined.Details), r.Details...)
		joined.Subject.Double = joined.Subject.Double || r.Subject.Double
		if slices.Index(worst, r.Verdict) > slices.Index(worst, joined.Verdict) {
			joined.Verdict = r.Verdict
		}
		if r.CompletedAt != nil && joined.CompletedAt != nil && r.CompletedAt.After(*joined.CompletedAt) {
			joined.CompletedAt = r.CompletedAt
		}
		if r.StartedAt != nil && joined.StartedAt != nil && r.StartedAt.Before(*joined.StartedAt) {
			joined.StartedAt = r.StartedAt
		}
	}
	return &joined
}

// worst are the verdicts from the best to the worst; a comparison without one is not over.
var worst = []v1alpha1.Verdict{v1alpha1.VerdictPassed, v1alpha1.VerdictFailed, v1alpha1.VerdictInconclusive, "", v1alpha1.VerdictError}

// againstFirst are the pairs with the first variant of each comparison, which are those that a table shows.
func (r *Report) againstFirst() []Pair {
	var list []Pair
	for _, p := range r.Pairs {
		first := !slices.ContainsFunc(r.Pairs, func(other Pair) bool { return other.Variant == p.Against })
		if first {
			list = append(list, p)
		}
	}
	return list
}

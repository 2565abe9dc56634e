package latency

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/internal/statistics"
)

// The defaults of a test. They are here and not in the stored objects, so that a better one reaches
// everybody; api/v1alpha1 documents them.
const (
	defaultTimeout = 900 * time.Second
	// delayHistory is the number of successful logins that Authelia's login delay averages over; its
	// history starts at one second each, so that many logins per replica are slow after each start.
	delayHistory = 10
)

// BaselineRepeats is the default number of repeats of a test with a baseline: with so many, of a hundred
// logins each, a median that is 10 % slower is called regressed in at least 95 of 100 gates with the
// margin 5 % (internal/statistics, TestPower).
const BaselineRepeats = 12

// BaselinePercentiles are the ones that are kept of each repeat, and so can be compared with a baseline.
var BaselinePercentiles = []int32{50, 90, 95, 99}

type size struct{ iterations, warmUp int32 }

var defaultSizes = map[v1alpha1.ScenarioName]size{
	v1alpha1.ScenarioLogin:       {60, 12},
	v1alpha1.ScenarioDashboard:   {30, 4},
	v1alpha1.ScenarioForwardAuth: {600, 30},
	v1alpha1.ScenarioOIDC:        {120, 12},
	v1alpha1.ScenarioThroughput:  {600, 50},
	v1alpha1.ScenarioScript:      {60, 6},
}

// defaultDuration is that of Throughput and of one step of a rising rate.
const defaultDuration = 30 * time.Second

// order in which scenarios run: Login first, since its warm-up warms what the others need too.
var order = []v1alpha1.ScenarioName{v1alpha1.ScenarioLogin, v1alpha1.ScenarioDashboard, v1alpha1.ScenarioForwardAuth,
	v1alpha1.ScenarioOIDC, v1alpha1.ScenarioThroughput, v1alpha1.ScenarioScript}

// Resolve fills in the defaults of a test of this stack. Its error is a sentence for the status that
// says what to write instead; only a change of the test or of the stack helps.
func Resolve(test *v1alpha1.LatencyTest, stack *v1alpha1.AuthStack) (*Plan, error) {
	plan := &Plan{
		Provider:   Authentik,
		Repeats:    orDefault(test.Spec.Repeats, 1),
		Pods:       orDefault(test.Spec.Generator.Pods, 1),
		Timeout:    defaultTimeout,
		CPULimited: test.Spec.Generator.Resources != nil && !test.Spec.Generator.Resources.Limits.Cpu().IsZero(),
	}
	if stack.Spec.Authelia != nil {
		plan.Provider = Authelia
	}
	if test.Spec.Baseline != nil {
		plan.Repeats = orDefault(test.Spec.Repeats, BaselineRepeats)
	}
	if s := test.Spec.TimeoutSeconds; s != nil {
		plan.Timeout = time.Duration(*s) * time.Second
	}

	objectives, scenarios := asked(test, stack)
	for _, o := range objectives {
		resolved, err := resolveObjective(plan.Provider, scenarios, o)
		if err != nil {
			return nil, err
		}
		if test.Spec.Baseline != nil && !slices.Contains(BaselinePercentiles, o.Percentile) {
			return nil, fmt.Errorf("the p%d of an objective cannot be compared with a baseline, which keeps p50, p90, p95 and p99 of each repeat; write one of these, or remove spec.baseline", o.Percentile)
		}
		plan.Objectives = append(plan.Objectives, resolved)
	}
	for _, s := range scenarios {
		if err := runnable(plan.Provider, s); err != nil {
			return nil, err
		}
		if len(scenarios) > 1 && (s.Duration != nil || s.RatePerMinute != nil || len(s.RateStepsPerMinute) > 0) {
			return nil, fmt.Errorf("scenario %s runs by the clock, which would run while the others do; measure it alone, or give it a number of iterations", s.Name)
		}
		resolved, err := plan.resolveScenario(stack, s, len(scenarios) == 1)
		if err != nil {
			return nil, err
		}
		plan.Scenarios = append(plan.Scenarios, resolved)
	}
	if err := enoughMemory(plan, test.Spec.Generator.Resources); err != nil {
		return nil, err
	}
	slices.SortStableFunc(plan.Scenarios, func(a, b v1alpha1.Scenario) int {
		return slices.Index(order, a.Name) - slices.Index(order, b.Name)
	})
	return plan, nil
}

// asked are the objectives and the scenarios of a test: its own, or else those of the stack, or else what the objectives name.
func asked(test *v1alpha1.LatencyTest, stack *v1alpha1.AuthStack) ([]v1alpha1.Objective, []v1alpha1.Scenario) {
	objectives, scenarios := test.Spec.Objectives, test.Spec.Scenarios
	if latency := stack.Spec.Latency; latency != nil {
		if len(objectives) == 0 {
			objectives = latency.Objectives
		}
		if len(scenarios) == 0 {
			scenarios = latency.Scenarios
		}
	}
	given := len(scenarios) > 0
	if !given {
		scenarios = []v1alpha1.Scenario{{Name: v1alpha1.ScenarioLogin}}
		for _, o := range objectives {
			if !slices.ContainsFunc(scenarios, func(s v1alpha1.Scenario) bool { return s.Name == o.Scenario }) {
				scenarios = append(scenarios, v1alpha1.Scenario{Name: o.Scenario})
			}
		}
	}
	if given && len(test.Spec.Objectives) == 0 {
		// The stack's objectives also speak of scenarios that this test leaves out on purpose, and not of rates that this test raises
		// until the stack breaks.
		own := len(test.Spec.Scenarios) > 0
		objectives = slices.DeleteFunc(slices.Clone(objectives), func(o v1alpha1.Objective) bool {
			i := slices.IndexFunc(scenarios, func(s v1alpha1.Scenario) bool { return s.Name == o.Scenario })
			return i < 0 || own && len(scenarios[i].RateStepsPerMinute) > 0
		})
	}
	return objectives, scenarios
}

// supported refuses what the product cannot do.
func supported(provider string, name v1alpha1.ScenarioName) error {
	switch {
	case len(endpoints(provider, name)) == 0:
		return fmt.Errorf("scenario %s is not known; write Login, Dashboard, ForwardAuth, OIDC, Throughput or Script", name)
	case provider == Authelia && name == v1alpha1.ScenarioDashboard:
		return errors.New("scenario Dashboard lists authentik's applications, which Authelia does not have; write Login or ForwardAuth for a stack with Authelia")
	}
	return nil
}

// runnable refuses what the product cannot do, and what nobody could.
func runnable(provider string, s v1alpha1.Scenario) error {
	if s.Name == v1alpha1.ScenarioScript && s.Script == nil {
		return errors.New("scenario Script needs the ConfigMap that the script is in; write it into spec.scenarios with script: {configMapRef: {name: NAME, key: KEY}}")
	}
	return supported(provider, s.Name)
}

// resolveObjective names the endpoint that an objective is about.
func resolveObjective(provider string, scenarios []v1alpha1.Scenario, o v1alpha1.Objective) (v1alpha1.Objective, error) {
	if err := supported(provider, o.Scenario); err != nil {
		return o, fmt.Errorf("an objective cannot be judged: %w", err)
	}
	i := slices.IndexFunc(scenarios, func(s v1alpha1.Scenario) bool { return s.Name == o.Scenario })
	if i < 0 {
		return o, fmt.Errorf("an objective names the scenario %s, which this test does not run; add it to spec.scenarios or remove the objective", o.Scenario)
	}
	known := endpoints(provider, o.Scenario)
	if o.Endpoint == "" {
		o.Endpoint = known[0].name
	}
	if step, _, ok := stepOfObjective(provider, scenarios[i], o.Endpoint); ok {
		o.Endpoint = step
		return o, nil
	}
	if mixesSteps(provider, scenarios[i], o.Endpoint) {
		return o, fmt.Errorf("an objective of %s/%s would be over all steps of the rate, of which the last ones are to break; write endpoint: %s",
			o.Scenario, o.Endpoint, stepEndpoint(known[0].name, scenarios[i].RateStepsPerMinute[0]))
	}
	if o.Scenario == v1alpha1.ScenarioScript {
		return o, nil
	}
	var names []string
	for _, e := range known {
		if e.name == o.Endpoint {
			return o, nil
		}
		names = append(names, e.name)
	}
	return o, fmt.Errorf("an objective names the endpoint %s, which %s on %s does not have; write one of %s",
		o.Endpoint, o.Scenario, provider, strings.Join(names, ", "))
}

// resolveScenario fills in a scenario's size. A percentile needs a number of samples to mean
// anything: the default grows to it, and a given number that is too small is refused, since such a
// test could only ever end Inconclusive.
//
// Throughput runs by the clock, but not beside other scenarios: k6 starts them all at once, and each waits for its turn.
func (p *Plan) resolveScenario(stack *v1alpha1.AuthStack, s v1alpha1.Scenario, alone bool) (v1alpha1.Scenario, error) {
	def, users := p.defaults(stack, s)
	if p.Pods > 1 && users%p.Pods != 0 {
		return s, fmt.Errorf("scenario %s has %d virtual users for %d Pods of the generator; write a multiple of %d", s.Name, users, p.Pods, p.Pods)
	}
	out := v1alpha1.Scenario{Name: s.Name, VirtualUsers: &users, Connections: s.Connections, OIDC: s.OIDC,
		RatePerMinute: s.RatePerMinute, RateStepsPerMinute: s.RateStepsPerMinute, Duration: s.Duration, Script: s.Script}
	if out.Connections == "" {
		out.Connections = v1alpha1.ConnectionsReuse
	}
	warmUp := p.share(orDefault(s.WarmUpIterations, def.warmUp))
	out.WarmUpIterations = &warmUp

	byClock := s.Duration != nil || len(s.RateStepsPerMinute) > 0 || alone && s.Name == v1alpha1.ScenarioThroughput && s.Iterations == nil && s.RatePerMinute == nil
	if byClock && out.Duration == nil {
		out.Duration = &metav1.Duration{Duration: defaultDuration}
	}
	if s.Duration != nil && len(s.RateStepsPerMinute) == 0 {
		p.Soaks = append(p.Soaks, s.Name)
	}
	if byClock && s.RatePerMinute == nil {
		if err := p.enoughInSteps(out); err != nil {
			return s, err
		}
		return out, p.fitsTimeout(out)
	}
	iterations, given := orDefault(s.Iterations, def.iterations), s.Iterations != nil
	if s.RatePerMinute != nil && s.Duration != nil {
		var err error
		if iterations, err = p.iterationsInTime(s, warmUp); err != nil {
			return s, err
		}
		given, out.Duration = true, nil
	}
	return p.counted(s, out, iterations, given)
}

// counted gives a scenario its iterations: those that were given, or as many as its objectives need.
func (p *Plan) counted(s, out v1alpha1.Scenario, iterations int32, given bool) (v1alpha1.Scenario, error) {
	// Where there is no time for an interval there may be for a verdict.
	for _, samples := range []func(int32) int64{p.samplesForInterval, sampleFloor} {
		enough, err := p.enoughFor(s, iterations, given, samples)
		if err != nil {
			return s, err
		}
		if s.RatePerMinute == nil && *out.VirtualUsers > enough {
			return s, fmt.Errorf("scenario %s has %d virtual users for %d iterations; write at least as many iterations as virtual users", s.Name, *out.VirtualUsers, enough)
		}
		out.Iterations = ptr(p.share(enough))
		if p.fitsTimeout(out) == nil {
			break
		}
	}
	return out, p.fitsTimeout(out)
}

// defaults of a scenario's size, and its virtual users.
func (p *Plan) defaults(stack *v1alpha1.AuthStack, s v1alpha1.Scenario) (size, int32) {
	def, users := defaultSizes[s.Name], orDefault(s.VirtualUsers, 1)
	if s.Name == v1alpha1.ScenarioThroughput {
		users = orDefault(s.VirtualUsers, 50)
	}
	if p.Provider == Authelia {
		def.warmUp = max(def.warmUp, (delayHistory+2)*autheliaReplicas(stack))
	}
	// Each virtual user's first iteration opens its connections.
	def.warmUp = max(def.warmUp, users)
	return def, users
}

// iterationsInTime is how many iterations of an open model begin in its duration after the warm-up.
func (p *Plan) iterationsInTime(s v1alpha1.Scenario, warmUp int32) (int32, error) {
	begun, least := int32(float64(*s.RatePerMinute)*s.Duration.Minutes()), int32(ceilDiv(minSamples, int64(p.Repeats)))
	if begun-warmUp < least {
		return 0, fmt.Errorf("scenario %s begins %d iterations in %s at %d a minute, of which %d are the warm-up and at least %d must be measured; write a longer duration or fewer warmUpIterations",
			s.Name, begun, s.Duration.Duration, *s.RatePerMinute, warmUp, least)
	}
	return begun - warmUp, nil
}

// enoughFor is the number of iterations that gives every objective of the scenario so many samples as its percentile asks for;
// one that was given is kept, and refused where the percentile cannot even be read from it.
func (p *Plan) enoughFor(s v1alpha1.Scenario, iterations int32, given bool, samples func(percentile int32) int64) (int32, error) {
	for _, o := range p.Objectives {
		if o.Scenario != s.Name {
			continue
		}
		needed := iterationsFor(p.Provider, o, p.Repeats, sampleFloor(o.Percentile))
		switch {
		case !given:
			if wanted := iterationsFor(p.Provider, o, p.Repeats, samples(o.Percentile)); int64(iterations) < wanted {
				// A twentieth more, so that a few failed requests do not make the run worthless.
				iterations = int32(min(wanted+wanted/20, 1_000_000))
			}
		case int64(iterations) < needed && s.Duration != nil:
			return 0, fmt.Errorf("p%d of %s/%s needs at least %d measured iterations in each repeat, and %s at %d a minute has %d; write a longer duration or a lower percentile",
				o.Percentile, o.Scenario, o.Endpoint, needed, s.Duration.Duration, *s.RatePerMinute, iterations)
		case int64(iterations) < needed:
			return 0, fmt.Errorf("p%d of %s/%s needs at least %d measured iterations in each repeat, and spec.scenarios has %d; write iterations: %d or a lower percentile",
				o.Percentile, o.Scenario, o.Endpoint, needed, iterations, needed)
		}
	}
	return iterations, nil
}

// share rounds a number up to one that the Pods of the generator can share equally.
func (p *Plan) share(n int32) int32 { return int32(ceilDiv(int64(n), int64(p.Pods))) * p.Pods }

// fitsTimeout refuses what the clock says cannot end in time: such a run would be cut off.
func (p *Plan) fitsTimeout(s v1alpha1.Scenario) error {
	var takes time.Duration
	switch {
	case len(s.RateStepsPerMinute) > 0:
		takes = time.Duration(len(s.RateStepsPerMinute)) * s.Duration.Duration
	case s.RatePerMinute != nil:
		takes = time.Duration(int64(*s.Iterations)+int64(*s.WarmUpIterations)) * time.Minute / time.Duration(*s.RatePerMinute)
	case s.Duration != nil:
		takes = s.Duration.Duration
	}
	if limit := p.Timeout - stopMargin - 10*time.Second; takes > 0 && takes > limit {
		return fmt.Errorf("scenario %s takes %s and spec.timeoutSeconds leaves it %s; write timeoutSeconds: %d or more",
			s.Name, takes.Round(time.Second), limit, int64((takes+stopMargin+10*time.Second).Seconds())+1)
	}
	return nil
}

// iterationsFor is how many iterations of each repeat give an objective so many samples over all repeats.
func iterationsFor(provider string, o v1alpha1.Objective, repeats int32, samples int64) int64 {
	perTen := int64(10)
	for _, e := range endpoints(provider, o.Scenario) {
		if e.name == o.Endpoint {
			perTen = e.perTen
		}
	}
	perRepeat := ceilDiv(samples, int64(repeats))
	return ceilDiv(perRepeat*10, perTen)
}

// sampleFloor is the least number of samples that a percentile may be read from.
func sampleFloor(percentile int32) int64 { return result.SamplesFor(int(percentile) * 10) }

// samplesForInterval is the least number of samples that a gated percentile has a 95 % confidence interval with equal tails from: 72 for
// p95, 368 for p99. An interval over repeats has no such bound, nor has the slowest request (p100) an interval.
func (p *Plan) samplesForInterval(percentile int32) int64 {
	n := sampleFloor(percentile)
	if p.Repeats >= enoughRepeats || percentile >= 100 {
		return n
	}
	for {
		if statistics.HasEqualTails(n, int(percentile)*10) {
			return n
		}
		n++
	}
}

func autheliaReplicas(stack *v1alpha1.AuthStack) int32 {
	if stack.Spec.Authelia == nil || stack.Spec.Authelia.Replicas == nil {
		return 1
	}
	return *stack.Spec.Authelia.Replicas
}

func orDefault(value *int32, def int32) int32 {
	if value == nil {
		return def
	}
	return *value
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

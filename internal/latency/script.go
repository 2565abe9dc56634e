package latency

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/confinement"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/loadtests/scenarios"
)

// MaxScriptBytes bounds a user's own script. It is copied beside the scripts of this project, about
// 50 KiB, into a ConfigMap, which takes 1 MiB.
const MaxScriptBytes = 256 << 10

// Script is a user's own script and where it may go.
type Script struct {
	Text string
	// Addresses of the stack's Service, all of its families. The first is the one that is asked.
	Addresses []netip.Addr
}

// Script is where the plan's own script comes from, or nil for a plan of this project's scenarios.
func (p *Plan) Script() *v1alpha1.ScriptSource {
	for _, s := range p.Scenarios {
		if s.Name == v1alpha1.ScenarioScript {
			return s.Script
		}
	}
	return nil
}

// ReadScript is the script in a ConfigMap, nil where there is none; else a sentence that says what to
// write.
func ReadScript(source *v1alpha1.ScriptSource, config *corev1.ConfigMap) (text, problem string) {
	ref := source.ConfigMapRef
	if config == nil {
		return "", fmt.Sprintf("there is no ConfigMap %s in the namespace of the LatencyTest; make it with the k6 script under the key %s, for example: kubectl create configmap %s --from-file=%s",
			ref.Name, ref.Key, ref.Name, ref.Key)
	}
	text, found := config.Data[ref.Key]
	switch {
	case !found:
		return "", fmt.Sprintf("ConfigMap %s has no key %s in its data; put the k6 script there, or name its key in script.configMapRef.key", ref.Name, ref.Key)
	case strings.TrimSpace(text) == "":
		return "", fmt.Sprintf("the key %s of ConfigMap %s is empty; put the k6 script there", ref.Key, ref.Name)
	case len(text) > MaxScriptBytes:
		return "", fmt.Sprintf("the script in ConfigMap %s has %d bytes and may have %d; take out of it what one iteration does not need", ref.Name, len(text), MaxScriptBytes)
	}
	return text, ""
}

// confined is the target by its address: names are not looked up by a script of a user's own, since the
// question itself would leave the Pod.
func (t Target) confined(script *Script) Target {
	parsed, err := url.Parse(t.BaseURL)
	if script == nil || err != nil || len(script.Addresses) == 0 {
		return t
	}
	port := parsed.Port()
	parsed.Host = script.Addresses[0].String()
	if script.Addresses[0].Is6() {
		parsed.Host = "[" + parsed.Host + "]"
	}
	if port != "" {
		parsed.Host += ":" + port
	}
	t.BaseURL = parsed.String()
	return t
}

// entry is the script that k6 is given, with the flags that belong to it.
func (in JobInput) entry() (path string, flags []string) {
	if in.Script == nil {
		return scriptsPath + "/" + scenarios.Main, nil
	}
	return scriptsPath + "/" + scenarios.Own, confinement.Flags(in.Script.Addresses...)
}

// scriptEnv tells a script that imports none of ours where the stack is, and the binary that it is to
// confine itself.
func (in JobInput) scriptEnv() []corev1.EnvVar {
	if in.Script == nil {
		return nil
	}
	return []corev1.EnvVar{
		{Name: "AUTHSTACK_SCRIPT", Value: scriptsPath + "/" + scenarios.User},
		{Name: "AUTHSTACK_BASE_URL", Value: in.Target.confined(in.Script).BaseURL},
		{Name: "AUTHSTACK_HOST", Value: in.Target.Host},
	}
}

// egressPolicy lets the Pod of a user's own script reach the stack's identity provider and nothing else,
// not even a name server, where the network of the cluster minds policies. k6's own confinement does
// not depend on it.
func egressPolicy(in JobInput, meta metav1.ObjectMeta) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: meta,
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: maps.Clone(meta.Labels)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
					v1alpha1.StackLabel: in.Test.Spec.StackRef.Name, "app.kubernetes.io/name": in.Plan.Provider,
				}},
			}}}},
		},
	}
}

// scriptGuard compares the script that each repeat ran with the one that the ConfigMap holds at the end.
func scriptGuard(runs []*result.Run, ev Evidence) v1alpha1.Guard {
	g := v1alpha1.Guard{Name: GuardScriptUnchanged}
	first := ""
	for i, run := range runs {
		switch {
		case run.ScriptDigest == "":
			g.Detail = fmt.Sprintf("repeat %d does not say which script it ran; take the image of k6 of the operator's release", i+1)
			return g
		case first == "":
			first = run.ScriptDigest
		case run.ScriptDigest != first:
			g.Detail = fmt.Sprintf("repeat 1 ran the script %s, repeat %d another, %s", shortDigest(first), i+1, shortDigest(run.ScriptDigest))
			return g
		}
	}
	switch ev.ScriptDigest {
	case first:
		g.OK = true
		g.Detail = first + " in every repeat and in the ConfigMap at the end"
	case "":
		g.Detail = "the script was taken out of the ConfigMap during the run"
	default:
		g.Detail = fmt.Sprintf("the script in the ConfigMap changed during the run, from %s to %s", shortDigest(first), shortDigest(ev.ScriptDigest))
	}
	return g
}

func shortDigest(digest string) string { return clip(digest, len("sha256:")+12+len("…")) }

// scriptProblem is a sentence on why a user's own script measured nothing that could be judged, or empty.
func scriptProblem(run *result.Run) string {
	requests, unanswered := int64(0), (*result.Series)(nil)
	answered := false
	for i := range run.Series {
		s := &run.Series[i]
		for _, f := range s.Failures {
			if f.Kind == result.FailureElsewhere {
				return fmt.Sprintf("The script asked for %s: %d requests of endpoint %s. A LatencyTest reaches only the stack that it names; take baseURL from ./lib/stack.js, "+
					"and follow no redirect to a name.", result.FailureElsewhere, f.Count, s.Endpoint)
			}
		}
		if !s.OfRequests() {
			continue
		}
		requests += s.Requests
		answered = answered || !unreachable(s)
		if unreachable(s) {
			unanswered = s
		}
	}
	switch {
	case requests == 0:
		return "The script made no request that was measured; its default function must ask the stack for something, by k6/http or by ./lib/stack.js."
	case !answered:
		return unreachableMessage(unanswered)
	}
	return ""
}

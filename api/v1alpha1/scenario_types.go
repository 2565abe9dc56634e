package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ScenarioName is a thing that people do with a stack and that a k6 script repeats.
// +kubebuilder:validation:Enum=Login;Dashboard;ForwardAuth;OIDC;Throughput;Script
type ScenarioName string

// The scenarios.
const (
	// ScenarioLogin is a login with user name and password without a browser: authentik's flow
	// executor in six requests, Authelia's first factor in one.
	ScenarioLogin ScenarioName = "Login"
	// ScenarioDashboard is the story's two streams: the list of applications eight times in
	// sequence and eight times in parallel. authentik only.
	ScenarioDashboard ScenarioName = "Dashboard"
	// ScenarioForwardAuth is the question a reverse proxy asks for each request: with a session,
	// without one, and at first sight of a session. For authentik the test makes an application with
	// a proxy provider on the embedded outpost, and removes it afterwards; an outpost that was never
	// told where people reach authentik is told https://HOST, and that stays.
	ScenarioForwardAuth ScenarioName = "ForwardAuth"
	// ScenarioOIDC is OpenID Connect's code flow by a person with a session (authorization, token,
	// userinfo; together the endpoint code-flow), the published keys (jwks) and the renewal of an
	// application's tokens (refresh). For authentik the test makes a provider and an application, and
	// removes them afterwards; Authelia has its clients in its configuration, and oidc names one.
	ScenarioOIDC ScenarioName = "OIDC"
	// ScenarioThroughput asks for the login page over a number of connections (virtualUsers) for a
	// time, as hey and wrk do: how many answers and bytes a second, and how long each took.
	ScenarioThroughput ScenarioName = "Throughput"
	// ScenarioScript is a k6 script of the user's own, from a ConfigMap, under the same load models and
	// guards as the others. It can reach the stack and nothing else.
	ScenarioScript ScenarioName = "Script"
)

// Scenario is one scenario of a test with its size and its load model.
//
// Closed model (the default): virtualUsers each begin the next iteration when the last one has ended,
// until iterations are done or duration is over. Open model (ratePerMinute): iterations begin on a
// schedule, whether the earlier ones have ended or not, as people come; a stall then weighs as much as
// it would in life. Steps (rateStepsPerMinute): an open model whose rate rises, to find the knee.
// A duration of three minutes to hours makes it a soak: its drift over time is judged.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.ratePerMinute) && has(self.rateStepsPerMinute))",message="set one of ratePerMinute (one rate) and rateStepsPerMinute (a rate that rises)"
// +kubebuilder:validation:XValidation:rule="!(has(self.iterations) && has(self.duration))",message="set one of iterations (a number) and duration (a time)"
// +kubebuilder:validation:XValidation:rule="has(self.script) || self.name != 'Script'",message="scenario Script needs the ConfigMap that the script is in; write script: {configMapRef: {name: NAME, key: KEY}}"
// +kubebuilder:validation:XValidation:rule="!has(self.script) || self.name == 'Script'",message="only scenario Script has a script of its own; write name: Script, or remove script"
// +kubebuilder:validation:XValidation:rule="!has(self.oidc) || self.name == 'OIDC'",message="oidc names the client of the scenario OIDC; remove it, or write name: OIDC"
// +kubebuilder:validation:XValidation:rule="!(has(self.rateStepsPerMinute) && has(self.iterations))",message="the steps of rateStepsPerMinute last for a time each; write duration (of one step) in place of iterations"
type Scenario struct {
	// Name of the scenario.
	// +required
	Name ScenarioName `json:"name"`

	// Iterations that are measured, over all virtual users, after the warm-up. Default: 60 for
	// Login and Script, 30 for Dashboard (each sixteen requests), 600 for ForwardAuth and for Throughput beside others, 120 for OIDC; more where
	// an objective's percentile or its 95 % confidence interval needs more (p95 75, p99 386, over one repeat).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Iterations *int32 `json:"iterations,omitempty"`

	// WarmUpIterations that are run first and left out. Default: 12 for Login (Authelia's login
	// delay needs ten per replica to settle) and OIDC, 4 for Dashboard, 30 for ForwardAuth, 6 for Script.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	WarmUpIterations *int32 `json:"warmUpIterations,omitempty"`

	// VirtualUsers that work at once; each has connections of its own. In an open model at least so many
	// are ready, or as many as begin in five seconds of the highest rate (at most 500); up to as many as
	// begin in thirty (at most 2000) are added when they are all busy. Default: 1, 50 for Throughput.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	VirtualUsers *int32 `json:"virtualUsers,omitempty"`

	// Duration for which the scenario runs, warm-up included, in place of a number of iterations; of
	// rateStepsPerMinute the duration of one step. Default: 30s for Throughput (alone in its test) and for steps, else
	// iterations count.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('24h')",message="duration must be 5s to 24h, for example 10m"
	Duration *metav1.Duration `json:"duration,omitempty"`

	// RatePerMinute is how many iterations begin each minute: an open model. Default: a closed model.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600000
	RatePerMinute *int32 `json:"ratePerMinute,omitempty"`

	// RateStepsPerMinute are the rates of an open model in steps, each for the duration; the result
	// has the scenario's whole once for each step, and the highest rate that was kept up.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=600000
	// +kubebuilder:validation:XValidation:rule="self.isSorted() && self.all(rate, self.exists_one(other, other == rate))",message="the rates must rise; write each higher than the one before, for example [60, 120, 240]"
	RateStepsPerMinute []int32 `json:"rateStepsPerMinute,omitempty"`

	// Script is what the scenario Script runs.
	// +optional
	Script *ScriptSource `json:"script,omitempty"`

	// Connections says whether requests of a virtual user share connections (Reuse) or each opens one
	// (New: DNS, TCP and TLS are then in every figure). Default: Reuse.
	// +optional
	Connections ConnectionMode `json:"connections,omitempty"`

	// OIDC is the client of the scenario OIDC on Authelia, whose clients stand in its configuration. On
	// authentik the test makes its own.
	// +optional
	OIDC *OIDCClient `json:"oidc,omitempty"`
}

// OIDCClient is a client of OpenID Connect.
type OIDCClient struct {
	// ClientSecretRef names a Secret of this namespace with the keys client_id, client_secret and
	// redirect_uri. The client has the scopes openid, profile, email and offline_access, the grant types
	// authorization_code and refresh_token, consent_mode implicit, and shows its secret by
	// client_secret_basic. The redirect URI is never asked for.
	// +required
	ClientSecretRef LocalReference `json:"clientSecretRef"`
}

// ConnectionMode says whether requests share connections.
// +kubebuilder:validation:Enum=Reuse;New
type ConnectionMode string

// The connection modes.
const (
	// ConnectionsReuse keeps connections open, as browsers and proxies do.
	ConnectionsReuse ConnectionMode = "Reuse"
	// ConnectionsNew opens a connection for each request.
	ConnectionsNew ConnectionMode = "New"
)

// ScriptSource is where a k6 script of the user's own comes from.
type ScriptSource struct {
	// ConfigMapRef names a key of a ConfigMap of the namespace of the LatencyTest, at most 256 KiB. The
	// script's default function is one iteration; its options for the load are not used, since the
	// scenario says them. It is read when the run begins; a run during which it changes proves nothing.
	// +required
	ConfigMapRef ConfigMapKeyReference `json:"configMapRef"`
}

// ConfigMapKeyReference names a key of a ConfigMap of the same namespace.
type ConfigMapKeyReference struct {
	// Name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key of its data, for example script.js.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AuthStackStatus is what was observed of a stack.
type AuthStackStatus struct {
	// ObservedGeneration is the generation that this status is of; -1 until first reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the stack; the types and reasons are documented constants of this package.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastHandledReconcileAt is the value of the annotation authstack.dev/requestedAt that was last acted on.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// IdentityProvider as it runs.
	// +optional
	IdentityProvider *IdentityProviderStatus `json:"identityProvider,omitempty"`

	// Database as it runs.
	// +optional
	Database *DatabaseStatus `json:"database,omitempty"`

	// Storage that the database is on.
	// +optional
	Storage *StorageStatus `json:"storage,omitempty"`

	// Cache as it runs.
	// +optional
	Cache *CacheStatus `json:"cache,omitempty"`

	// Latency as last measured.
	// +optional
	Latency *LatencyStatus `json:"latency,omitempty"`
}

// IdentityProviderStatus is the identity provider as it runs.
type IdentityProviderStatus struct {
	// Name is authentik or authelia.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Version that is deployed.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`
	// Image that is deployed.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`
	// Double is true where a double runs instead of the product.
	// +required
	Double bool `json:"double"`
	// ServiceName names the Service that answers people inside the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ServiceName string `json:"serviceName,omitempty"`
	// AdminSecretName names the Secret with the first administrator's credentials.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	AdminSecretName string `json:"adminSecretName,omitempty"`
	// MigratedVersion is the version whose migrations are done and followed by ANALYZE.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	MigratedVersion string `json:"migratedVersion,omitempty"`
	// Uploads says where authentik keeps uploaded files, and whether they outlive its Pods.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Uploads string `json:"uploads,omitempty"`
}

// DatabaseStatus is the database as it runs.
type DatabaseStatus struct {
	// Provider is zalando, standalone or external.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Provider string `json:"provider"`
	// Version as the server reports it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`
	// Host under which the product reaches it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host,omitempty"`
	// Port under which the product reaches it.
	// +optional
	Port int32 `json:"port,omitempty"`
	// Name of the database.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// SecretName names the Secret with the product's username and password.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
	// Durability in force, which may differ from the one that is asked for: durabilityNote says why.
	// +optional
	Durability Durability `json:"durability,omitempty"`
	// DurabilityNote says what a crash can take, in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	DurabilityNote string `json:"durabilityNote,omitempty"`
	// RelaxedTables are those whose new and changed rows do not wait for the WAL.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	RelaxedTables []RelaxedTable `json:"relaxedTables,omitempty"`
	// Settings that were computed or given, each with its reason and what is in force.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Settings []SettingStatus `json:"settings,omitempty"`
}

// RelaxedTable is a table of which a crash can take the newest rows.
type RelaxedTable struct {
	// Name of the table.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Lost says what that means for a person.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Lost string `json:"lost"`
}

// SettingStatus is one PostgreSQL setting: what should be, why, and what is in force.
type SettingStatus struct {
	// Name of the parameter; a setting of the product's role in its database, not of the server, has
	// scope Role.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// Scope: Server or Role.
	// +required
	// +kubebuilder:validation:Enum=Server;Role
	Scope string `json:"scope"`
	// Desired value in postgresql.conf's notation.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Desired string `json:"desired"`
	// InForce is the value that PostgreSQL uses.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	InForce string `json:"inForce,omitempty"`
	// Source that PostgreSQL names for it (pg_settings.source).
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Source string `json:"source,omitempty"`
	// PendingRestart is true where PostgreSQL waits for a restart to use it.
	// +optional
	PendingRestart bool `json:"pendingRestart,omitempty"`
	// Reason for the value.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// CacheStatus is the cache as it runs.
type CacheStatus struct {
	// Kind is redis, postgres or memory.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Reason for the choice, in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason,omitempty"`
	// Address of Redis.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Address string `json:"address,omitempty"`
}

// LatencyStatus is the last measurement of the stack.
type LatencyStatus struct {
	// TestName names the last LatencyTest.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TestName string `json:"testName,omitempty"`
	// TestedGeneration is the generation of the stack that it measured.
	// +optional
	TestedGeneration int64 `json:"testedGeneration,omitempty"`
	// Running names the LatencyTest that is under way.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Running string `json:"running,omitempty"`
	// Verdict of the last test.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
	// CompletedAt is when it was reached.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// LoginP95 is the 95th percentile of the whole login, for people, for example 612ms.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	LoginP95 string `json:"loginP95,omitempty"`
	// Scenarios with their figures.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Scenarios []ScenarioResult `json:"scenarios,omitempty"`
	// NextScheduledAt is when the schedule measures again.
	// +optional
	NextScheduledAt *metav1.Time `json:"nextScheduledAt,omitempty"`
	// LastScheduledAt is the last time of the schedule that was acted on.
	// +optional
	LastScheduledAt *metav1.Time `json:"lastScheduledAt,omitempty"`
}

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AuthStack is a single sign-on stack: an identity provider, its PostgreSQL, its cache and their
// storage, set up together and measured from inside the cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ast,categories=all
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.status.identityProvider.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.identityProvider.version`
// +kubebuilder:printcolumn:name="Database",type=string,JSONPath=`.status.database.provider`
// +kubebuilder:printcolumn:name="Medium",type=string,JSONPath=`.status.storage.medium`
// +kubebuilder:printcolumn:name="Login p95",type=string,JSONPath=`.status.latency.loginP95`
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.latency.verdict`
// +kubebuilder:printcolumn:name="Measured",type=date,JSONPath=`.status.latency.completedAt`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Durability",type=string,JSONPath=`.status.database.durability`,priority=1
// +kubebuilder:printcolumn:name="Cache",type=string,JSONPath=`.status.cache.kind`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="the name of an AuthStack may have at most 40 characters, because the names of its Pods, Services and PostgreSQL cluster are made from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name of an AuthStack must start with a letter and hold only a-z, 0-9 and -, because Services and the PostgreSQL cluster are named after it"
type AuthStack struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the stack that should exist.
	// +required
	Spec AuthStackSpec `json:"spec"`

	// Status is what was observed.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status AuthStackStatus `json:"status,omitempty"`
}

// AuthStackList is a list of AuthStacks.
//
// +kubebuilder:object:root=true
type AuthStackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AuthStack `json:"items"`
}

// AuthStackSpec says which stack should exist. `{host, authentik: {version}}` alone gives a good one.
//
// Rules about what was there before stand here and not at their fields: a rule at a field does not see
// that the field is added or removed.
//
// +kubebuilder:validation:XValidation:rule="has(self.authentik) != has(self.authelia)",message="set exactly one of spec.authentik and spec.authelia; a stack has one identity provider"
// +kubebuilder:validation:XValidation:rule="has(self.authentik) == has(oldSelf.authentik)",message="the identity provider of a stack cannot be exchanged; make a second AuthStack and move the users to it"
// +kubebuilder:validation:XValidation:rule="!has(self.authentik) || !has(self.cache) || !has(self.cache.redis) || self.authentik.version.matches('^2025[.][2468][.]')",message="authentik from 2025.10 has no Redis: its cache is in PostgreSQL; remove spec.cache or write cache: {postgres: {}}"
// +kubebuilder:validation:XValidation:rule="!has(self.authentik) || !has(self.cache) || has(self.cache.redis) || !self.authentik.version.matches('^2025[.][2468][.]')",message="authentik before 2025.10 needs Redis; remove spec.cache or write cache: {redis: {}}"
// +kubebuilder:validation:XValidation:rule="!has(self.authentik) || !has(self.cache) || !has(self.cache.memory)",message="authentik keeps no cache in memory; remove spec.cache to take what its version supports"
// +kubebuilder:validation:XValidation:rule="!has(self.authelia) || !has(self.cache) || !has(self.cache.postgres)",message="Authelia never keeps sessions in PostgreSQL; write cache: {redis: {}} or cache: {memory: {}}"
// +kubebuilder:validation:XValidation:rule="!has(self.authelia) || !has(self.cache) || !has(self.cache.memory) || !has(self.authelia.replicas) || self.authelia.replicas <= 1",message="Authelia with sessions in memory can only have one replica, since each replica would know only its own logins; write cache: {redis: {}} or authelia: {replicas: 1}"
// +kubebuilder:validation:XValidation:rule="!has(self.authelia) || !has(self.latency) || !has(self.latency.scenarios) || self.latency.scenarios.all(s, s.name != 'OIDC' || has(s.oidc))",message="Authelia has its OpenID Connect clients in its configuration; name one for the scenario OIDC, for example oidc: {clientSecretRef: {name: latency-client}}, and declare it in spec.authelia.extraConfig as docs/scenarios.md says",fieldPath=".latency.scenarios"
// +kubebuilder:validation:XValidation:rule="!has(self.authentik) || !has(self.latency) || !has(self.latency.scenarios) || self.latency.scenarios.all(s, !has(s.oidc))",message="the scenario OIDC makes its own client in authentik; remove oidc",fieldPath=".latency.scenarios"
// +kubebuilder:validation:XValidation:rule="!has(self.authelia) || self.host.contains('.')",message="Authelia needs a host with a parent domain for its session cookie; write for example host: sso.example.com"
// +kubebuilder:validation:XValidation:rule="!has(self.postgres) || !has(self.postgres.external) || !has(self.postgres.database) || self.postgres.database == self.postgres.external.database",message="an external database is named in spec.postgres.external.database; remove spec.postgres.database"
// +kubebuilder:validation:XValidation:rule="self.?postgres.?zalando.hasValue() == oldSelf.?postgres.?zalando.hasValue() && self.?postgres.?external.hasValue() == oldSelf.?postgres.?external.hasValue()",message="the database provider of a stack cannot be exchanged, the data would stay behind; make a second AuthStack and restore a dump into it",fieldPath=".postgres"
// +kubebuilder:validation:XValidation:rule="self.?postgres.?external.hasValue() || (has(self.postgres) && has(self.postgres.database) ? self.postgres.database : has(self.authentik) ? 'authentik' : 'authelia') == (has(oldSelf.postgres) && has(oldSelf.postgres.database) ? oldSelf.postgres.database : has(oldSelf.authentik) ? 'authentik' : 'authelia')",message="the name of the database cannot be changed, the data would stay behind; write the old name or make a second AuthStack",fieldPath=".postgres.database"
// +kubebuilder:validation:XValidation:rule="!(has(self.postgres) && has(self.postgres.zalando) && has(self.postgres.zalando.version) ? self.postgres.zalando.version : '17').matches('^[0-9]+$') || int((has(self.postgres) && has(self.postgres.zalando) && has(self.postgres.zalando.version) ? self.postgres.zalando.version : '17')) >= int((has(oldSelf.postgres) && has(oldSelf.postgres.zalando) && has(oldSelf.postgres.zalando.version) ? oldSelf.postgres.zalando.version : '17'))",message="PostgreSQL cannot be downgraded; restore a dump into a new AuthStack",fieldPath=".postgres.zalando.version"
// +kubebuilder:validation:XValidation:rule="(has(self.postgres) && has(self.postgres.standalone) && has(self.postgres.standalone.version) ? self.postgres.standalone.version : '17') == (has(oldSelf.postgres) && has(oldSelf.postgres.standalone) && has(oldSelf.postgres.standalone.version) ? oldSelf.postgres.standalone.version : '17')",message="the major version of a standalone PostgreSQL cannot be changed in place (17 where none is given); restore a dump into a new AuthStack",fieldPath=".postgres.standalone.version"
// +kubebuilder:validation:XValidation:rule="self.?postgres.?storage.?cephRBD.hasValue() == oldSelf.?postgres.?storage.?cephRBD.hasValue() && self.?postgres.?storage.?localNVMe.hasValue() == oldSelf.?postgres.?storage.?localNVMe.hasValue() && (has(self.postgres) && has(self.postgres.storage) && has(self.postgres.storage.storageClassName) ? self.postgres.storage.storageClassName : '-') == (has(oldSelf.postgres) && has(oldSelf.postgres.storage) && has(oldSelf.postgres.storage.storageClassName) ? oldSelf.postgres.storage.storageClassName : '-')",message="the medium of a live database cannot be changed in place, bound volumes keep their class; make a second AuthStack on the new medium and move the data as docs/moving-storage.md says: with Zalando by a standby cluster and a switchover, or a clone, otherwise by a dump",fieldPath=".postgres.storage"
// +kubebuilder:validation:XValidation:rule="quantity(string((has(self.postgres) && has(self.postgres.storage) && has(self.postgres.storage.size) ? self.postgres.storage.size : '10Gi'))).compareTo(quantity(string((has(oldSelf.postgres) && has(oldSelf.postgres.storage) && has(oldSelf.postgres.storage.size) ? oldSelf.postgres.storage.size : '10Gi')))) >= 0",message="a volume can grow but not shrink (10Gi where no size is given); write the old size or a larger one",fieldPath=".postgres.storage.size"
type AuthStackSpec struct {
	// Host is the name under which people reach the stack, for example sso.example.com. It becomes
	// the product's base URL and cookie domain. No scheme, no port, no path.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$')",message="host must be a DNS name in lower case, without scheme, port or path, for example sso.example.com"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9.]+$')",message="host must be a name, not an IP address, because browsers keep the session cookie by name; for example sso.example.com"
	Host string `json:"host"`

	// Authentik makes authentik the identity provider. Exactly one of authentik and authelia.
	// +optional
	Authentik *AuthentikSpec `json:"authentik,omitempty"`

	// Authelia makes Authelia the identity provider. Exactly one of authentik and authelia.
	// +optional
	Authelia *AutheliaSpec `json:"authelia,omitempty"`

	// Postgres says where the database comes from. Nothing given: one PostgreSQL of our own
	// (standalone), which needs no other operator.
	// +optional
	Postgres *PostgresSpec `json:"postgres,omitempty"`

	// Cache says where cache and sessions are kept. Nothing given: what this product at this
	// version supports; for Authelia memory with one replica and Redis with more.
	// +optional
	Cache *CacheSpec `json:"cache,omitempty"`

	// Latency says what is measured, when, and what is fast enough. Nothing given: Login is
	// measured when the stack has become Ready and after each change of its spec.
	// +optional
	Latency *LatencySpec `json:"latency,omitempty"`

	// DeletionPolicy says what happens to the data (database volumes, Redis volumes and the
	// Secrets that open them) when the AuthStack is deleted. Default: Retain.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Suspend stops the operator from changing this stack; what runs goes on running. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// DeletionPolicy says what happens to the data of a deleted stack.
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

// The deletion policies.
const (
	// DeletionRetain keeps volumes and the Secrets that open them.
	DeletionRetain DeletionPolicy = "Retain"
	// DeletionDelete removes volumes and Secrets with the stack.
	DeletionDelete DeletionPolicy = "Delete"
)

// WorkloadSpec is a set of equal Pods.
type WorkloadSpec struct {
	// Replicas is the number of Pods.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	Replicas *int32 `json:"replicas,omitempty"`

	// Resources are the requests and limits of each Pod.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// LocalReference names an object of the same namespace.
type LocalReference struct {
	// Name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SecretKeyReference names a key of a Secret of the same namespace.
type SecretKeyReference struct {
	// Name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key inside the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

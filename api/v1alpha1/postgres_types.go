package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PostgresSpec says where the database comes from and how it is kept. At most one of zalando,
// standalone and external; nothing given means standalone.
//
// +kubebuilder:validation:XValidation:rule="(has(self.zalando) ? 1 : 0) + (has(self.standalone) ? 1 : 0) + (has(self.external) ? 1 : 0) <= 1",message="set at most one of postgres.zalando, postgres.standalone and postgres.external; none means standalone"
// +kubebuilder:validation:XValidation:rule="!has(self.external) || !has(self.storage)",message="an external database has its own storage; remove postgres.storage"
// +kubebuilder:validation:XValidation:rule="!has(self.external) || !has(self.resources)",message="an external database has its own resources; remove postgres.resources"
// +kubebuilder:validation:XValidation:rule="!has(self.external) || !has(self.parameters)",message="the parameters of an external database are set where it runs; remove postgres.parameters"
type PostgresSpec struct {
	// Zalando has Zalando's postgres-operator make the database (a postgresql resource).
	// +optional
	Zalando *ZalandoPostgres `json:"zalando,omitempty"`

	// Standalone is one PostgreSQL in a StatefulSet; it needs no other operator and has no failover.
	// +optional
	Standalone *StandalonePostgres `json:"standalone,omitempty"`

	// External is a database that exists; nothing is created.
	// +optional
	External *ExternalPostgres `json:"external,omitempty"`

	// Database is the name of the database. Default: authentik or authelia.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z_][a-z0-9_]*$')",message="a database name holds a-z, 0-9 and _ and starts with a letter or _; dots and dashes are not allowed"
	// +kubebuilder:validation:XValidation:rule="!(self in ['postgres','template0','template1'])",message="postgres, template0 and template1 belong to PostgreSQL itself; choose another name, for example authentik"
	Database string `json:"database,omitempty"`

	// Storage of the database.
	// +optional
	Storage *StorageSpec `json:"storage,omitempty"`

	// Resources are the requests and limits of the PostgreSQL container; memory parameters are
	// computed from the limits. Default: 250m CPU, 1Gi memory requested and as limit.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// Durability says which acknowledged writes a crash may take. Strict: none. IdentityDurable: new and
	// changed sessions, cache entries, times of logins, reputation scores and how far background tasks are,
	// of the last moments, so that a person logs in again and a task is done twice; no user, credential,
	// token, event, logout, revocation or task in the queue. Relaxed: all of the last three rounds of
	// the WAL writer, about 0.6 s on a fast disk. Default: IdentityDurable where the product's version
	// keeps such rows in PostgreSQL and it was looked into, or else Strict; status says what is in force.
	// +optional
	Durability Durability `json:"durability,omitempty"`

	// Parameters are PostgreSQL parameters over the computed ones; the values are in
	// postgresql.conf's notation.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-z_][a-z0-9_]*([.][a-z_][a-z0-9_]*)?$') && size(name) <= 63)",message="PostgreSQL parameter names are written in lower case with _, for example work_mem"
	// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['fsync', 'full_page_writes']) || self[name] == 'on')",message="fsync and full_page_writes stay on: without them a crash corrupts the database; remove them, and write durability: Relaxed for a faster commit that cannot corrupt"
	// +kubebuilder:validation:XValidation:rule="!('synchronous_commit' in self)",message="synchronous_commit is set by postgres.durability; write durability: Strict, IdentityDurable or Relaxed"
	// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['listen_addresses', 'port', 'data_directory', 'config_file', 'hba_file', 'ident_file', 'external_pid_file', 'unix_socket_directories', 'archive_command', 'restore_command', 'archive_library', 'ssl_passphrase_command', 'zero_damaged_pages', 'ignore_checksum_failure']))",message="this parameter belongs to the operator or runs a command in the database Pod; remove it from postgres.parameters"
	Parameters map[string]ParameterValue `json:"parameters,omitempty"`
}

// ParameterValue is the value of a PostgreSQL parameter in postgresql.conf's notation. It is an alias
// so that code sees a plain string and the API server an upper bound of its length, without which
// the rules over all parameters would exceed CEL's cost budget.
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="!self.contains('\\n') && !self.contains('\\r')",message="a parameter value has no line break"
type ParameterValue = string

// Durability says which acknowledged writes a crash may take.
// +kubebuilder:validation:Enum=Strict;IdentityDurable;Relaxed
type Durability string

// The durability levels.
const (
	// DurabilityStrict relaxes nothing: every acknowledged commit survives a crash.
	DurabilityStrict Durability = "Strict"
	// DurabilityIdentity lets only those commits go without waiting for the WAL that touched nothing
	// but rows which can be made again: sessions, cache entries, times of logins, reputation scores, the
	// progress of background tasks. A logout, and everything else, waits. Triggers in the database decide it at each
	// commit (docs/durability.md).
	DurabilityIdentity Durability = "IdentityDurable"
	// DurabilityRelaxed is synchronous_commit=off: a crash can take the acknowledged commits of up
	// to three rounds of the WAL writer, each wal_writer_delay (PostgreSQL docs, "Asynchronous Commit")
	// and a flush; nothing is corrupted.
	DurabilityRelaxed Durability = "Relaxed"
)

// ZalandoPostgres is a cluster of Zalando's postgres-operator.
type ZalandoPostgres struct {
	// Version is the PostgreSQL major version. Default: 17.
	// +optional
	// +kubebuilder:validation:MaxLength=2
	// +kubebuilder:validation:XValidation:rule="self in ['14','15','16','17']",message="version must be 14, 15, 16 or 17: Zalando's operator 1.15 runs 13 to 17 and the identity providers support 14 and later"
	Version string `json:"version,omitempty"`

	// Instances is the number of PostgreSQL Pods; Patroni keeps one primary. Default: 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=15
	Instances *int32 `json:"instances,omitempty"`

	// TeamID is the team of the postgresql resource. Default: authstack.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	TeamID string `json:"teamID,omitempty"`
}

// StandalonePostgres is one PostgreSQL in a StatefulSet.
type StandalonePostgres struct {
	// Version is the PostgreSQL major version. Default: 17.
	// +optional
	// +kubebuilder:validation:MaxLength=2
	// +kubebuilder:validation:XValidation:rule="self in ['14','15','16','17','18']",message="version must be 14, 15, 16, 17 or 18: the identity providers support 14 and later"
	Version string `json:"version,omitempty"`

	// Image replaces the image. Default: the operator's PostgreSQL repository with the version as tag.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
}

// ExternalPostgres is a database that exists.
type ExternalPostgres struct {
	// Host is the name or address of the server.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?$')",message="host must be a DNS name or an IPv4 address, without scheme, port or path"
	Host string `json:"host"`

	// Port of the server. Default: 5432.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// Database that the product uses. It must exist, with encoding UTF8.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_][a-zA-Z0-9_]*$')",message="a database name holds letters, 0-9 and _ and starts with a letter or _; dots and dashes are not allowed"
	Database string `json:"database"`

	// SecretName names a Secret of this namespace with the keys username and password.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// SSLMode of the connection. Default: require.
	// +optional
	// +kubebuilder:validation:Enum=disable;require
	SSLMode string `json:"sslMode,omitempty"`
}

// CacheSpec says where cache and sessions are kept. Exactly one.
//
// +kubebuilder:validation:XValidation:rule="(has(self.redis) ? 1 : 0) + (has(self.postgres) ? 1 : 0) + (has(self.memory) ? 1 : 0) == 1",message="set exactly one of cache.redis, cache.postgres and cache.memory, or remove spec.cache"
type CacheSpec struct {
	// Redis runs a Redis beside the product.
	// +optional
	Redis *RedisCache `json:"redis,omitempty"`

	// Postgres keeps the cache in the stack's database, as authentik does from 2025.10.
	// +optional
	Postgres *PostgresCache `json:"postgres,omitempty"`

	// Memory keeps sessions in the product's own memory, as Authelia can with one replica.
	// +optional
	Memory *MemoryCache `json:"memory,omitempty"`
}

// RedisCache is a Redis of the stack's own.
type RedisCache struct {
	// AppendOnly says how Redis keeps its data over a restart. Default: EverySecond where it holds
	// sessions (Authelia), Disabled where it holds only a cache (authentik).
	// +optional
	AppendOnly RedisAppendOnly `json:"appendOnly,omitempty"`

	// Size of the volume of the append-only file. Default: 1Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="size must be more than 0, for example 1Gi"
	Size *resource.Quantity `json:"size,omitempty"`

	// Resources are the requests and limits; maxmemory is computed from the memory limit.
	// Default: 50m CPU, 128Mi requested, 256Mi limit.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// Image replaces the image. Default: the operator's Redis image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
}

// RedisAppendOnly says when Redis writes its append-only file to disk.
// +kubebuilder:validation:Enum=Always;EverySecond;Disabled
type RedisAppendOnly string

// The append-only settings of Redis.
const (
	// RedisAppendAlways waits for the disk at each write.
	RedisAppendAlways RedisAppendOnly = "Always"
	// RedisAppendEverySecond loses at most about the last second.
	RedisAppendEverySecond RedisAppendOnly = "EverySecond"
	// RedisAppendDisabled keeps nothing over a restart and needs no volume.
	RedisAppendDisabled RedisAppendOnly = "Disabled"
)

// PostgresCache keeps the cache in the stack's database.
type PostgresCache struct{}

// MemoryCache keeps sessions in the product's memory.
type MemoryCache struct{}

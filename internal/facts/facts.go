// Package facts holds what is known of a stack and its surroundings, as plain structs. Controllers
// fill them in one place; the pure rooms read them. Nothing here talks to a cluster.
package facts

import (
	"errors"
	"time"
)

// ErrStandsStill is what asking a database fails with that takes a connection and says nothing on it: its processes stand
// still. One that is starting or overloaded by clients answers, with an error.
var ErrStandsStill = errors.New("it takes connections and gives no answer in time")

// ServerError is an answer of PostgreSQL that says no: whoever gives it does not stand still.
type ServerError struct {
	Message string
	// Code is the SQLSTATE.
	Code string
}

func (e *ServerError) Error() string { return e.Message + " (SQLSTATE " + e.Code + ")" }

// Stack is everything that is known about one AuthStack at one moment.
type Stack struct {
	// StorageClasses of the cluster.
	StorageClasses []StorageClass
	// Ceph is what Rook says; nil where its resources are not served or were not asked.
	Ceph *Ceph
	// ZalandoInstalled is whether the CRD postgresqls.acid.zalan.do is served.
	ZalandoInstalled bool
	// Zalando is what Zalando's operator says of the stack's cluster; empty where there is none.
	Zalando string
	// Secrets of the stack's namespace that a plan may read, by name, with their data.
	Secrets map[string]map[string][]byte
	// ConfigMaps of the stack's namespace that the spec names, by name, with their data.
	ConfigMaps map[string]map[string]string
	// Volumes that the database's claims are bound to.
	Volumes []Volume
	// Claims are the PersistentVolumeClaims of the stack's namespace that the spec names, by name.
	Claims map[string]Claim
	// Workloads of the stack (Deployments and StatefulSets), by name.
	Workloads map[string]Workload
	// ServiceIPs are the ClusterIPs of the stack's Services, by name.
	ServiceIPs map[string]string
	// Database as it answered; nil where it was not asked or did not answer.
	Database *Database
	// DatabaseError is why it did not answer, without anything secret.
	DatabaseError string
	// DatabaseRefuses is whether it answered with an error (ServerError).
	DatabaseRefuses bool
	// DatabaseStandsStill is whether it took a connection and said nothing (ErrStandsStill).
	DatabaseStandsStill bool
	// CommitHangsSince is when a commit began that has not come back yet, though its time is over; zero
	// where commits come back. The database is not asked then.
	CommitHangsSince time.Time
	// RunningVersion of the identity provider according to status; empty before the first.
	RunningVersion string
	// MigratedVersion of the identity provider according to status: migrations done, ANALYZE run.
	MigratedVersion string
	// LDAPSecretPresent and the like are answered by Secrets: a name without an entry is missing.
	// Now is the time of the observation.
	Now time.Time
}

// StorageClass of the cluster.
type StorageClass struct {
	Name        string
	Provisioner string
	// WaitForFirstConsumer is whether volumes are bound only when a Pod needs them.
	WaitForFirstConsumer bool
	// Default is whether it carries the default-class annotation.
	Default    bool
	Parameters map[string]string
	// RetainsVolumes is whether a volume stays when its claim is deleted (reclaimPolicy Retain).
	RetainsVolumes bool
	// Owner is the AuthStack that it was made for, as namespace/name, or empty.
	Owner string
}

// Ceph is what Rook's resources say.
type Ceph struct {
	Clusters []CephCluster
	Pools    []CephPool
	// Drivers are the names of the CSI drivers for RBD that are installed.
	Drivers []string
}

// CephCluster is a CephCluster of Rook; its namespace is the clusterID of StorageClasses.
type CephCluster struct {
	Namespace, Name string
	// Phase is Ready, or Connected for one outside of Kubernetes, or on its way there.
	Phase string
	// Health is HEALTH_OK, HEALTH_WARN or HEALTH_ERR.
	Health string
	// Problems are the health checks that do not hold, by Ceph's code, for example PG_AVAILABILITY,
	// with Ceph's words.
	Problems map[string]string
}

// CephPool is a CephBlockPool of Rook.
type CephPool struct {
	Namespace, Name string
	// Phase is Progressing, Ready, Failure or Deleting; empty before Rook has seen it.
	Phase string
	// Owner is the AuthStack that it was made for, as namespace/name, or empty.
	Owner string
}

// Volume is a persistent volume that a claim is bound to.
type Volume struct {
	Claim        string
	StorageClass string
	// Driver is the CSI driver, or empty.
	Driver string
	// Local is whether it is a local or hostPath volume.
	Local bool
	// SingleNode is whether its node affinity names a single host.
	SingleNode bool
	// Attributes that its CSI driver gave it; of a Ceph RBD volume clusterID and pool.
	Attributes map[string]string
}

// Claim is a PersistentVolumeClaim that somebody else made.
type Claim struct {
	// AccessModes that it asks for, for example ReadWriteMany.
	AccessModes []string
}

// Workload is a Deployment or StatefulSet as observed.
type Workload struct {
	// Desired, Updated, Ready and Available are counts of Pods; Observed is whether its controller has
	// seen the newest spec.
	Desired, Updated, Ready, Available int32
	Observed                           bool
	// Problem says why Pods do not come up, in words without secrets, or is empty.
	Problem string
	// ClaimSize is the storage request of a StatefulSet's first volumeClaimTemplate, for example 10Gi,
	// and ClaimClass its StorageClass; empty where there is none. Templates cannot be changed, so a
	// plan keeps them and lets the claims grow instead.
	ClaimSize, ClaimClass string
	// SpecHash is the annotation authstack.dev/spec-hash, by which a plan sees whether what runs is of
	// this plan or of an older one. Empty where it is not known, which passes.
	SpecHash string
}

// Complete is whether every Pod is of the newest spec and available.
func (w Workload) Complete() bool {
	return w.Observed && w.Updated == w.Desired && w.Available == w.Desired && w.Ready == w.Desired
}

// Database is PostgreSQL as it answered.
type Database struct {
	// Version is server_version, for example 17.5.
	Version string
	// Encoding of the product's database, for example UTF8.
	Encoding string
	// Settings of the server as pg_settings shows them to the product's role, by name; with settings
	// of the role in its database already in effect.
	Settings map[string]Setting
	// RoleSettings are what ALTER ROLE … IN DATABASE … SET holds for the product's role, by name.
	RoleSettings map[string]string
	// Migrated is whether the product's migrations have run (its migration table has rows).
	Migrated bool
	// NeverAnalyzed is the number of the product's tables that no ANALYZE has seen.
	NeverAnalyzed int
	// Tables is the number of the product's tables.
	Tables int
	// Durability is what decides there which commits wait for the WAL.
	Durability Durability
}

// Durability is what is found in a database of the triggers by which a commit need not wait.
type Durability struct {
	// Functions are the md5 sums of the functions' texts, by name.
	Functions map[string]string
	// Triggers that call those functions, and the other deferrable ones of people on the same tables.
	Triggers []Trigger
}

// Trigger of a table, as PostgreSQL shows it.
type Trigger struct {
	Schema, Table, Name string
	// Function that it calls, without its schema, and the comment on the trigger.
	Function, Comment string
	// Enabled is pg_trigger.tgenabled: O for the origin alone, A always, D never, R for replicas.
	Enabled string
}

// Setting is a row of pg_settings.
type Setting struct {
	// Value in the unit of pg_settings, and Unit, for example 16384 and 8kB.
	Value, Unit string
	// Source of the value, for example configuration file.
	Source string
	// PendingRestart is whether a changed value waits for a restart.
	PendingRestart bool
	// VarType is bool, integer, real, enum or string; Context is who may change it and when.
	VarType, Context string
	// BootValue is pg_settings.boot_val: what PostgreSQL takes where nothing is set, in Unit. Zalando's
	// operator never unsets a parameter, so this is what is written back for one that was removed.
	BootValue string
}

// Package tuning recommends PostgreSQL settings for an identity provider's database, each with its
// reason, and compares them with what PostgreSQL has in force. One topic a file: memory, wal,
// connections, planner, durability. It is pure.
package tuning

import (
	"cmp"
	"fmt"
	"slices"

	"authstack.dev/authstack/api/v1alpha1"
)

// Scope is where a setting is made.
type Scope string

// The scopes, as in status.
const (
	// ScopeServer settings are in the server's configuration.
	ScopeServer Scope = "Server"
	// ScopeRole settings are made with ALTER ROLE … IN DATABASE … SET for the product's role, which no
	// database operator reads or resets (facts/postgres-ceph.md A4).
	ScopeRole Scope = "Role"
)

// Setting is one recommended or given setting.
type Setting struct {
	Name, Value string
	Scope       Scope
	// Reason with its source, for people.
	Reason string
	// NeedsRestart is whether PostgreSQL takes it only at its start (context postmaster).
	NeedsRestart bool
}

// Input is what settings are computed from.
type Input struct {
	// Major version of PostgreSQL.
	Major int
	// MemoryBytes is the memory limit of the container, VolumeBytes the size of its volume.
	MemoryBytes, VolumeBytes int64
	// Medium of the volume.
	Medium v1alpha1.Medium
	// Product, Connections it may hold at once, and whether its queries join dozens of tables.
	Product     string
	Connections int
	DeepJoins   bool
	Durability  v1alpha1.Durability
	// External is whether the server's configuration is not ours: only role settings are computed.
	External bool
	// Parameters of the user, over the computed ones.
	Parameters map[string]string
}

// Result of a recommendation.
type Result struct {
	// Settings by scope and name.
	Settings []Setting
	// Refused says what of the user's parameters was left out, and why, in a sentence each.
	Refused []string
}

// topic is one file of this package.
type topic func(Input) []Setting

var topics = []topic{memory, wal, connections, planner, maintenance, observation}

// Recommend computes the settings: the topics, under the user's layer.
func Recommend(in Input) Result {
	var settings []Setting
	if !in.External {
		for _, topic := range topics {
			settings = append(settings, topic(in)...)
		}
	}
	settings = append(settings, roleSettings(in)...)
	settings, refused := overlay(in, settings)
	slices.SortFunc(settings, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Name, b.Name))
	})
	return Result{Settings: settings, Refused: refused}
}

// Server settings by name.
func (r Result) Server() map[string]string { return r.values(ScopeServer) }

// Role settings by name.
func (r Result) Role() map[string]string { return r.values(ScopeRole) }

func (r Result) values(scope Scope) map[string]string {
	values := map[string]string{}
	for _, setting := range r.Settings {
		if setting.Scope == scope {
			values[setting.Name] = setting.Value
		}
	}
	return values
}

func server(name, value, reason string) Setting {
	return Setting{Name: name, Value: value, Scope: ScopeServer, Reason: reason, NeedsRestart: restart[name]}
}

// restart are the settings of this package with context postmaster (facts/postgres-ceph.md C3).
var restart = map[string]bool{
	"shared_buffers": true, "max_connections": true, "wal_buffers": true, "wal_level": true,
	"huge_pages": true, "max_wal_senders": true, "shared_preload_libraries": true,
	"max_worker_processes": true, "max_locks_per_transaction": true, "max_prepared_transactions": true,
	"autovacuum_max_workers": true, "max_replication_slots": true,
}

const (
	kB = int64(1) << 10
	mB = int64(1) << 20
	gB = int64(1) << 30
)

func inMB(bytes int64) string { return fmt.Sprintf("%dMB", bytes/mB) }
func inKB(bytes int64) string { return fmt.Sprintf("%dkB", bytes/kB) }

func clamp(value, low, high int64) int64 { return max(low, min(value, high)) }

package postgres

import (
	"cmp"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/durability"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/part"
	"authstack.dev/authstack/internal/tuning"
)

// Durability of a stack's database: what is asked for, what can be had and what is in force.
type Durability struct {
	// Level that is brought about: the one of the spec, or Strict where the product's version has no rows that can be
	// made again.
	Level v1alpha1.Durability
	// Given is whether the spec asks for a level; the default is given up without a complaint where it cannot be had.
	Given bool
	// tables of the level; none says why there are none.
	tables []durability.Table
	none   string
}

// Durability that the spec asks for, as far as the product's version can have it.
func (p *Plan) Durability() Durability {
	d := Durability{Level: cmp.Or(p.spec.Durability, v1alpha1.DurabilityIdentity), Given: p.spec.Durability != ""}
	if d.Level != v1alpha1.DurabilityIdentity {
		return d
	}
	d.tables, d.none = durability.Tables(p.product.Name, p.product.Version)
	if d.none != "" {
		d.Level = v1alpha1.DurabilityStrict
	}
	return d
}

// Upgrading is whether another version or image than the one that runs is about to start, whose migrations may change
// the tables: a migration that writes rows and then alters their table fails on the deferred triggers of those rows
// ("pending trigger events"). Until the new one's migrations are done the triggers stay off.
func Upgrading(in part.Input, product part.Product, image string) bool {
	running := in.Stack.Status.IdentityProvider
	return in.Facts.MigratedVersion != product.Version || running != nil && running.Image != image
}

// Judge the triggers that were found. settled is whether the product runs as planned, its migrations done; upgrading,
// whether they must be off now. In between they are left as they are.
func (d Durability) Judge(db *facts.Database, settled, upgrading bool) durability.Finding {
	switch {
	case db == nil:
		return durability.Finding{}
	case d.Level == v1alpha1.DurabilityIdentity && !upgrading:
		finding := durability.Judge(d.tables, db.Durability)
		if !settled {
			finding.Change, finding.Problems = durability.Change{}, nil
		}
		return finding
	}
	return durability.Judge(nil, db.Durability)
}

// inForce is the level that holds for a new connection of the product, or empty while nobody could ask.
func inForce(db *facts.Database, finding durability.Finding) v1alpha1.Durability {
	if db == nil {
		return ""
	}
	commit := cmp.Or(db.RoleSettings["synchronous_commit"], db.Settings["synchronous_commit"].Value)
	switch {
	case commit == "off":
		return v1alpha1.DurabilityRelaxed
	case len(finding.Relaxed) > 0:
		return v1alpha1.DurabilityIdentity
	}
	return v1alpha1.DurabilityStrict
}

// DescribeDurability writes into the status what is in force and what it means.
func (p *Plan) DescribeDurability(in part.Input, status *v1alpha1.DatabaseStatus, finding durability.Finding) {
	asked := p.Durability()
	status.Durability = inForce(in.Facts.Database, finding)
	if before := in.Stack.Status.Database; in.Facts.Database == nil && before != nil {
		// It does not answer; what was in force still is.
		status.Durability, status.RelaxedTables = before.Durability, before.RelaxedTables
	}
	for _, table := range finding.Relaxed {
		if status.Durability == v1alpha1.DurabilityIdentity {
			status.RelaxedTables = append(status.RelaxedTables, v1alpha1.RelaxedTable{Name: table.Name, Lost: table.Lost})
		}
	}
	var notes []string
	if note := tuning.DurabilityNote(status.Durability); note != "" {
		notes = append(notes, note)
	}
	switch {
	case asked.none != "":
		notes = append(notes, asked.none)
	case status.Durability != "" && status.Durability != asked.Level:
		notes = append(notes, string(asked.Level)+" comes into force when the migrations are done and PostgreSQL has taken it")
	}
	if p.spec.Zalando != nil && instances(*p.spec.Zalando) > 1 {
		notes = append(notes, "standbys follow asynchronously, so a failover can take the commits of the last moments")
	}
	status.DurabilityNote = strings.Join(notes, "; ")
}

package schema

import (
	"fmt"
	"strings"
)

// Joins is how many joins each of the two big queries of the application list has, as counted on the real product
// (facts/authentik-measured.md §4). Their planning, not their execution, is what GETs spend in PostgreSQL.
const Joins = 63

// builder writes one SELECT over many outer joins. Every joined table's columns are selected, as Django's
// select_related does: an outer join whose columns nobody reads would be removed by the planner.
type builder struct {
	m    *Model
	sel  []string
	from strings.Builder
	n    int
	max  int
}

func newBuilder(m *Model, table string, max int) *builder {
	b := &builder{m: m, max: max, sel: []string{"t0.*"}}
	b.from.WriteString(table + " t0")
	return b
}

func (b *builder) full() bool { return b.n >= b.max }

// left joins table where table.column = parent.parentColumn and returns its alias; nothing once the query is full.
func (b *builder) left(table, column, parent, parentColumn string) string {
	if b.full() || parent == "" {
		return ""
	}
	b.n++
	a := fmt.Sprintf("t%d", b.n)
	b.sel = append(b.sel, a+".*")
	fmt.Fprintf(&b.from, " LEFT OUTER JOIN %s %s ON (%s.%s = %s.%s)", table, a, parent, parentColumn, a, column)
	return a
}

// descend joins every sub-class of table, and theirs, then what each of them refers to.
func (b *builder) descend(table, alias string, refs bool) {
	for _, c := range b.m.children[table] {
		a := b.left(c, b.m.keys[c].column, alias, b.m.keys[table].column)
		b.descend(c, a, refs)
		if refs {
			b.refer(c, a)
		}
	}
}

// refer joins the tables that table refers to.
func (b *builder) refer(table, alias string) {
	for i, r := range b.m.byName[table].Refs {
		b.left(r, b.m.keys[r].column, alias, fmt.Sprintf("ref_%02d_id", i+1))
	}
}

func (b *builder) sql(where string) string {
	return "SELECT " + strings.Join(b.sel, ", ") + " FROM " + b.from.String() + " WHERE " + where
}

// Applications is the first big query of GET /core/applications/: applications with their provider in every
// sub-class, and what each sub-class refers to.
func (m *Model) Applications() string {
	b := newBuilder(m, "authentik_core_application", Joins)
	b.left("authentik_policies_policybindingmodel", "pbm_uuid", "t0", "policybindingmodel_ptr_id")
	p := b.left("authentik_core_provider", "id", "t0", "provider_id")
	b.descend("authentik_core_provider", p, false)
	bind := b.left("authentik_policies_policybinding", "target_id", "t0", "policybindingmodel_ptr_id")
	pol := b.left("authentik_policies_policy", "policy_uuid", bind, "policy_id")
	b.descend("authentik_policies_policy", pol, false)
	// Several rows to one each: what makes the estimate run away while the tables have no statistics.
	b.left("authentik_core_applicationentitlement", "ref_02_id", "t0", "policybindingmodel_ptr_id")
	for _, c := range []string{"authentication_flow_id", "authorization_flow_id", "invalidation_flow_id"} {
		b.left("authentik_flows_flow", "flow_uuid", p, c)
	}
	mm := b.left("authentik_core_provider_property_mappings", "provider_id", p, "id")
	pm := b.left("authentik_core_propertymapping", "propertymapping_uuid", mm, "propertymapping_id")
	b.descend("authentik_core_propertymapping", pm, false)
	for b.n < Joins {
		before := b.n
		for _, c := range m.children["authentik_core_provider"] {
			a := b.left(c, m.keys[c].column, p, "id")
			b.refer(c, a)
		}
		if b.n == before {
			break
		}
	}
	return b.sql(`t0."group" IS NOT NULL ORDER BY t0.name ASC`)
}

// Bindings is the second one: the policy bindings of the listed applications, with the policy in every sub-class.
func (m *Model) Bindings() string {
	b := newBuilder(m, "authentik_policies_policybinding", Joins)
	for !b.full() {
		pol := b.left("authentik_policies_policy", "policy_uuid", "t0", "policy_id")
		b.descend("authentik_policies_policy", pol, true)
		b.left("authentik_core_group", "group_uuid", "t0", "group_id")
		b.left("authentik_core_user", "id", "t0", "user_id")
		pbm := b.left("authentik_policies_policybindingmodel", "pbm_uuid", "t0", "target_id")
		src := b.left("authentik_core_source", "ref_01_id", pbm, "pbm_uuid")
		b.descend("authentik_core_source", src, true)
		b.left("authentik_core_application", "policybindingmodel_ptr_id", pbm, "pbm_uuid")
		b.left("authentik_flows_flow", "policybindingmodel_ptr_id", pbm, "pbm_uuid")
	}
	return b.sql(`t0.target_id = ANY($1::uuid[]) ORDER BY t0."order" ASC`)
}

// Stage is the sub-class selection of one flow stage, which every request to the flow executor makes once: a login
// spends about 75 ms planning over its six requests (facts/authentik-measured.md §4).
func (m *Model) Stage() string {
	b := newBuilder(m, "authentik_flows_stage", Joins)
	b.descend("authentik_flows_stage", "t0", false)
	return b.sql("t0.stage_uuid = $1")
}

// Sources is the identification stage's list of login sources in every sub-class. Over tables that were never
// analysed its estimate can cross jit_above_cost (facts/authentik-measured.md §5).
func (m *Model) Sources() string {
	b := newBuilder(m, "authentik_stages_identification_identificationstage_sources", Joins)
	s := b.left("authentik_core_source", "source_uuid", "t0", "source_id")
	b.descend("authentik_core_source", s, true)
	for _, side := range []string{"user", "group"} {
		mm := b.left("authentik_core_source_"+side+"_property_mappings", "source_id", s, "source_uuid")
		pm := b.left("authentik_core_propertymapping", "propertymapping_uuid", mm, "propertymapping_id")
		b.descend("authentik_core_propertymapping", pm, false)
	}
	b.left("authentik_core_usersourceconnection", "ref_02_id", s, "source_uuid")
	b.left("authentik_core_groupsourceconnection", "ref_02_id", s, "source_uuid")
	return b.sql("t0.identificationstage_id = $1")
}

package durability

import (
	"fmt"
	"slices"
	"strings"

	"authstack.dev/authstack/internal/facts"
)

// Finding is what the triggers in a database amount to, compared with the tables that should have them.
type Finding struct {
	// Relaxed are the tables whose triggers are all there and fire, so that their commits need not wait. The
	// function in the database goes by the same rule.
	Relaxed []Table
	// Problems say in a sentence each what is missing or in the way.
	Problems []string
	// Change brings about what should be; it is empty where that is so.
	Change Change
}

// Change of the triggers in a database.
type Change struct {
	// Install puts the triggers on these tables, anew where they have them.
	Install []Table
	// Remove takes them off these tables; with nothing to install the functions go too.
	Remove []string
}

// Empty is whether there is nothing to do.
func (c Change) Empty() bool { return len(c.Install) == 0 && len(c.Remove) == 0 }

// Statements of the change, for one transaction.
func (c Change) Statements() []string {
	if c.Empty() {
		return nil
	}
	if len(c.Install) == 0 {
		return Remove(c.Remove)
	}
	var commands []string
	for _, table := range c.Remove {
		commands = append(commands, dropAll(table)...)
	}
	return append(commands, Install(c.Install)...)
}

// Judge what was found against the tables that should have triggers; none where none should.
func Judge(tables []Table, found facts.Durability) Finding {
	var finding Finding
	functions := functionsIntact(found)
	carrying := map[string]bool{}
	for _, trigger := range found.Triggers {
		if ours(trigger) && trigger.Schema == Schema {
			carrying[trigger.Table] = true
		}
	}
	stale := false
	for _, table := range tables {
		missing, relaxes := missing(table, found)
		if relaxes && len(missing) > 0 {
			finding.Relaxed = append(finding.Relaxed, table) // By older triggers, until these are there.
		}
		strangers := strangers(table, found)
		delete(carrying, table.Name)
		switch {
		case len(missing) > 0:
			stale = true
			finding.Problems = append(finding.Problems, fmt.Sprintf("%s lacks %s", table.Name, strings.Join(missing, ", ")))
		case len(strangers) > 0:
			finding.Problems = append(finding.Problems, fmt.Sprintf(
				"%s has the deferred trigger %s, which is not ours, so its commits wait; remove that trigger, or write durability: Strict", table.Name, strings.Join(strangers, ", ")))
		default:
			finding.Relaxed = append(finding.Relaxed, table)
		}
	}
	if len(tables) > 0 && !functions {
		stale = true
		finding.Problems = append(finding.Problems, "the functions are missing or not this release's")
	}
	if stale {
		finding.Change.Install = tables
		if len(found.Triggers) == 0 {
			finding.Problems = []string{"its triggers are not there yet"}
		}
	}
	for table := range carrying {
		finding.Change.Remove = append(finding.Change.Remove, table)
		if len(tables) > 0 {
			finding.Problems = append(finding.Problems, table+" has triggers that it should not have")
		}
	}
	slices.Sort(finding.Change.Remove)
	slices.Sort(finding.Problems)
	if len(tables) == 0 || !functions {
		finding.Relaxed = relaxedAnyway(found)
	}
	return finding
}

// relaxedAnyway are the tables whose commits may not wait though that is not asked for: until the triggers are off, or
// where another release of the operator made the function. Rather one too many than one too few.
func relaxedAnyway(found facts.Durability) []Table {
	var tables []Table
	if found.Functions[DecideName] == "" {
		return nil
	}
	for _, table := range cacheInPostgreSQL {
		if slices.ContainsFunc(found.Triggers, func(t facts.Trigger) bool {
			return t.Schema == Schema && t.Table == table.Name && t.Name == DecideName && t.Enabled != "D"
		}) {
			tables = append(tables, table)
		}
	}
	return tables
}

func functionsIntact(found facts.Durability) bool {
	for name, sum := range Sources() {
		if found.Functions[name] != sum {
			return false
		}
	}
	return true
}

// ours is whether a trigger calls one of our functions.
func ours(trigger facts.Trigger) bool {
	return trigger.Function == DecideName || trigger.Function == WaitName
}

// missing triggers of a table, or such as are not as they were made, and such as should not be there. relaxes is whether
// the function takes them for complete all the same, since it goes by their names and number.
func missing(table Table, found facts.Durability) (names []string, relaxes bool) {
	relaxes = true
	for _, want := range table.triggers() {
		enabled := "O"
		if want.always {
			enabled = "A"
		}
		i := slices.IndexFunc(found.Triggers, func(t facts.Trigger) bool {
			return t.Schema == Schema && t.Table == table.Name && t.Name == want.name && t.Enabled == enabled
		})
		relaxes = relaxes && i >= 0
		if i < 0 || !ours(found.Triggers[i]) || found.Triggers[i].Comment != want.digest() {
			names = append(names, want.name)
		}
	}
	for _, t := range found.Triggers {
		if t.Schema == Schema && t.Table == table.Name && ours(t) && !slices.ContainsFunc(table.triggers(), func(want trigger) bool { return want.name == t.Name }) {
			names, relaxes = append(names, "a set of triggers without "+t.Name), false
		}
	}
	return names, relaxes
}

// strangers are other people's deferred triggers on a table: they could write when the decision has fallen.
func strangers(table Table, found facts.Durability) []string {
	var names []string
	for _, trigger := range found.Triggers {
		notifies := table.notifies != "" && strings.HasPrefix(trigger.Name, table.notifies)
		if trigger.Schema == Schema && trigger.Table == table.Name && !ours(trigger) && !notifies {
			names = append(names, trigger.Name)
		}
	}
	return names
}

// Intact is what is found where a change of these tables was just brought about.
func Intact(tables []Table) facts.Durability {
	found := facts.Durability{Functions: Sources()}
	for _, table := range tables {
		for _, trigger := range table.triggers() {
			fact := facts.Trigger{Schema: Schema, Table: table.Name, Name: trigger.name, Function: DecideName, Comment: trigger.digest(), Enabled: "O"}
			if trigger.always {
				fact.Function, fact.Enabled = WaitName, "A"
			}
			found.Triggers = append(found.Triggers, fact)
		}
	}
	return found
}

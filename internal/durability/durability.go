// Package durability decides which commits of an identity provider need not wait for the WAL: those that touched
// nothing but rows which can be made again. It knows the tables of each product and version, makes the SQL of the
// triggers that decide inside PostgreSQL, and judges what is found there. It is pure; docs/durability.md says why
// each test is as it is and which experiment showed it.
package durability

import (
	"crypto/md5" //nolint:gosec // pg_proc's text is compared, PostgreSQL has md5 in every version
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// Schema that the product's tables, the functions and the triggers are in. A table of the same name elsewhere
// carries no trigger and keeps its wait.
const Schema = "public"

// The names of what is made in the product's database.
const (
	// DecideName is the function, and on each table the deferred constraint trigger, that decides at commit.
	DecideName = "authstack_durability"
	// WaitName is the function that makes a transaction wait; the triggers that call it have names that begin with
	// guardPrefix: before every statement that always waits, and after a row that makes its statement wait.
	WaitName    = "authstack_durability_wait"
	guardPrefix = "authstack_durability_"
	// AlwaysName is the trigger before statements; those after rows are named for their statement by RowName.
	AlwaysName = guardPrefix + "always"
)

// RowName is the trigger after the rows of a statement (INSERT, UPDATE or DELETE) that make it wait.
func RowName(statement string) string { return guardPrefix + strings.ToLower(statement) }

//go:embed functions.sql
var functionsTemplate string

// catalogs are the system tables of PostgreSQL 15 and 17, the same 64 in both (pg_class, relnamespace pg_catalog,
// relkind r); a number that another version does not have counts as not written. Numbers below 16384 are never given
// to a user's table, so the list survives dump and restore.
const catalogs = "826,1213,1214,1247,1249,1255,1259,1260,1261,1262,1417,1418,2224,2328,2396,2600,2601,2602,2603,2604,2605,2606,2607,2608,2609," +
	"2610,2611,2612,2613,2615,2616,2617,2618,2619,2620,2753,2964,2995,3079,3118,3256,3350,3381,3394,3429,3456,3466,3501,3541,3576,3592,3596,3600,3601," +
	"3602,3603,3764,6000,6100,6102,6104,6106,6237,6243"

// Functions is the statements that make the two functions.
func Functions() string { return strings.Replace(functionsTemplate, "CATALOGS", catalogs, 1) }

var body = regexp.MustCompile(`(?s)FUNCTION public\.(\w+)\(\).*?\$(\w+)\$(.*?)\$\w+\$;`)

// Sources are the md5 sums of the functions' texts by name, as md5(pg_proc.prosrc) shows them.
func Sources() map[string]string {
	sums := map[string]string{}
	for _, found := range body.FindAllStringSubmatch(Functions(), -1) {
		sum := md5.Sum([]byte(found[3])) //nolint:gosec // see the import
		sums[found[1]] = hex.EncodeToString(sum[:])
	}
	return sums
}

// Install is the statements that put the triggers on the tables, to be run in one transaction by the tables' owner.
// They replace what is there of an older release of the operator.
func Install(tables []Table) []string {
	commands := []string{
		Functions(),
		fmt.Sprintf("REVOKE ALL ON FUNCTION %s.%s(), %s.%s() FROM PUBLIC", Schema, DecideName, Schema, WaitName),
	}
	for _, table := range tables {
		commands = append(commands, dropAll(table.Name)...)
		for _, trigger := range table.triggers() {
			commands = append(commands, trigger.create()...)
		}
	}
	return commands
}

// Remove is the statements that take the triggers of these tables off, and the functions where nothing else calls them.
func Remove(tables []string) []string {
	var statements []string
	for _, table := range tables {
		statements = append(statements, dropAll(table)...)
	}
	return append(statements,
		fmt.Sprintf("DROP FUNCTION IF EXISTS %s.%s()", Schema, DecideName),
		fmt.Sprintf("DROP FUNCTION IF EXISTS %s.%s()", Schema, WaitName))
}

func dropAll(table string) []string {
	var drops []string
	// The last is of a release of the operator that had one for all rows.
	for _, name := range []string{DecideName, AlwaysName, RowName("INSERT"), RowName("UPDATE"), RowName("DELETE"), guardPrefix + "row"} {
		drops = append(drops, fmt.Sprintf("DROP TRIGGER IF EXISTS %s ON %s.%s", name, Schema, quote(table)))
	}
	return drops
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// trigger of a table, as it is to be.
type trigger struct {
	table, name, definition string
	// always is whether it fires for whatever session_replication_role says.
	always bool
}

// triggers of the table, the deciding one last: while they are made nothing is relaxed. Its arguments are the names of the
// others; the function compares their number with what is there.
func (t Table) triggers() []trigger {
	on := fmt.Sprintf("ON %s.%s", Schema, quote(t.Name))
	var always, relaxed, names []string
	var guards []trigger
	guard := func(name, when, each string) {
		names = append(names, "'"+name+"'")
		guards = append(guards, trigger{t.Name, name, fmt.Sprintf("CREATE TRIGGER %s %s %s FOR EACH %s EXECUTE FUNCTION %s.%s()", name, when, on, each, Schema, WaitName), true})
	}
	for _, statement := range statements {
		condition, ok := t.relaxed[statement]
		switch {
		case !ok:
			always = append(always, statement)
			continue
		case condition == everyRow:
			guard(RowName(statement), "AFTER "+statement, "ROW")
			continue
		case condition != "":
			// A condition that is not known, since a column is NULL, makes it wait too.
			guard(RowName(statement), "AFTER "+statement, "ROW WHEN (("+condition+") IS NOT FALSE)")
		}
		relaxed = append(relaxed, statement)
	}
	if len(always) > 0 {
		guard(AlwaysName, "BEFORE "+strings.Join(always, " OR "), "STATEMENT")
	}
	return append(guards, trigger{t.Name, DecideName, fmt.Sprintf("CREATE CONSTRAINT TRIGGER %s AFTER %s %s DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION %s.%s(%s)",
		DecideName, strings.Join(relaxed, " OR "), on, Schema, DecideName, strings.Join(names, ", ")), false})
}

func (t trigger) create() []string {
	statements := []string{t.definition}
	if t.always {
		statements = append(statements, fmt.Sprintf("ALTER TABLE %s.%s ENABLE ALWAYS TRIGGER %s", Schema, quote(t.table), t.name))
	}
	return append(statements, fmt.Sprintf("COMMENT ON TRIGGER %s ON %s.%s IS '%s'", t.name, Schema, quote(t.table), t.digest()))
}

// digest of the definition stands in the trigger's comment, which is gone when somebody replaces the trigger.
func (t trigger) digest() string {
	sum := sha256.Sum256([]byte(t.definition))
	return "AuthStack " + hex.EncodeToString(sum[:8])
}

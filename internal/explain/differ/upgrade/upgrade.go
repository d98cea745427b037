// Package upgrade says what of a server a newer version, or another flavour, would refuse or do otherwise. Pure: a description and facts in,
// problems out. Package trial tries them on a server of that version.
//
// The list follows what the manuals say of upgrades ("Preparing Your Installation for Upgrade", "Changes in MySQL 8.0", "What Is New in MySQL
// 8.4", "… 9.x", MariaDB's "Incompatible Changes") and what util.checkForServerUpgrade of MySQL Shell looks for.
package upgrade

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/fleet"
)

// Severity is how bad a problem is.
type Severity string

// The severities, the worst first.
const (
	Error   Severity = "error"   // it is refused: the server does not start, the object cannot be made, the client cannot log in
	Warning Severity = "warning" // it goes on, and gives other results, or fails for some
	Note    Severity = "note"    // it still works, and will not for good; or it is another default
)

// Severities are all of them, the worst first.
func Severities() []Severity { return []Severity{Error, Warning, Note} }

// Problem is one thing that an upgrade breaks or changes.
type Problem struct {
	ID       string   `json:"id"` // variable.removed, name.reserved …
	Severity Severity `json:"severity"`
	Object   string   `json:"object"` // `s`.`t`, sql_mode, 'app'@'%'
	fleet.Trouble
	// Statements are run on the old server before the upgrade; they end the problem.
	Statements []string `json:"statements,omitempty"`
	// Tried: it was seen on a server of the target version. Else it is known of that version, and was not tried.
	Tried bool   `json:"tried"`
	Said  string `json:"said,omitempty"` // the server's words

	// Refused: the new server does not take the object's definition. Package trial drops what it takes after all.
	Refused bool `json:"-"`
}

// Facts are what the rules need besides a description, asked of the old server. Nil slices were not asked.
type Facts struct {
	ZeroDates []string // columns with a date of zeros in a row: `s`.`t`.`c`
	Temporal  []string // columns of the form of times from before 5.6: `s`.`t`.`c`
	Own       []string // users' tables in the schema mysql
	Stray     []string // routines and events of schemas that do not exist: procedure `s`.`p`
	Orphans   []string // tables that InnoDB has and the server has not, or the other way round
	NotAsked  []fleet.Trouble
}

// rules is one look at a description.
type rules struct {
	d    *differ.Description
	to   fleet.Server
	f    Facts
	list []Problem
}

// Find says what is known to break or change on the way to a server.
func Find(d *differ.Description, f Facts, to fleet.Server) []Problem {
	r := &rules{d: d, to: to, f: f}
	r.variables()
	r.accounts()
	r.plugins()
	r.facts()
	r.schemas()
	Sort(r.list)
	return r.list
}

// Sort puts the worst first.
func Sort(list []Problem) {
	order := Severities()
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(slices.Index(order, a.Severity)-slices.Index(order, b.Severity), strings.Compare(a.ID, b.ID), strings.Compare(a.Object, b.Object))
	})
}

// crosses reports whether the way from the old server to the new one goes through a version: mysql of MySQL and Percona Server, mariadb of
// MariaDB. A way to the other flavour goes through all of the other's versions.
func (r *rules) crosses(mysql, mariadb fleet.Version) bool {
	if !r.to.AtLeast(mysql, mariadb) {
		return false
	}
	return !r.d.Server.SameKind(r.to) || !r.d.Server.AtLeast(mysql, mariadb)
}

func (r *rules) add(p Problem) { r.list = append(r.list, p) }

// set reports whether a variable was set, and whether that is known.
func (r *rules) set(name string) (set, known bool) { return differ.WasSet(r.d, name) }

func (r *rules) facts() {
	if r.to.AtLeast(50700, fleet.Never) {
		for _, c := range r.f.ZeroDates {
			r.add(Problem{ID: "data.zero_date", Severity: Warning, Object: c,
				Trouble: fleet.Trouble{What: "it has rows with a date of zeros",
					Why:    "under the default sql_mode (NO_ZERO_DATE, NO_ZERO_IN_DATE and strict) such a row cannot be written again, and ALTER TABLE of the table fails",
					Remedy: "set the rows to NULL or to a real date, or keep sql_mode without these modes"}})
		}
	}
	if r.crosses(80000, fleet.Never) {
		for _, c := range r.f.Temporal {
			table := c[:strings.LastIndex(c, ".`")]
			r.add(Problem{ID: "column.old_temporal", Severity: Error, Object: c,
				Trouble: fleet.Trouble{What: "it has the form that times had before 5.6.4",
					Why: "MySQL 8.0 does not open the table", Remedy: "rebuild the table"}, Statements: []string{"ALTER TABLE " + table + " FORCE"}})
		}
		for _, t := range r.f.Own {
			if newSystemTables[strings.ToLower(t)] {
				r.add(Problem{ID: "name.system", Severity: Error, Object: "`mysql`.`" + t + "`",
					Trouble: fleet.Trouble{What: "a table of yours has the name of one of the new data dictionary",
						Why:    "the upgrade fails",
						Remedy: "move it to a schema of yours"}, Statements: []string{"RENAME TABLE `mysql`.`" + t + "` TO `mysql`.`" + t + "_old`"}})
			}
		}
		for _, o := range r.f.Stray {
			r.add(Problem{ID: "object.orphan", Severity: Error, Object: o, Trouble: fleet.Trouble{What: "its schema does not exist", Why: "the upgrade of a data directory stops at it",
				Remedy: "make the schema, drop the object, and drop the schema"}})
		}
		for _, t := range r.f.Orphans {
			r.add(Problem{ID: "table.orphan", Severity: Error, Object: t,
				Trouble: fleet.Trouble{What: "InnoDB and the server do not agree on whether this table exists",
					Why: "the upgrade of a data directory stops at it", Remedy: "drop it, or restore what is missing"}})
		}
	}
}

// newSystemTables are names in the schema mysql that MySQL 8.0's data dictionary takes. Source: MySQL manual, "Data Dictionary Tables".
var newSystemTables = setOf("catalogs", "character_sets", "check_constraints", "collations", "column_statistics", "column_type_elements", "columns", "dd_properties",
	"events", "foreign_key_column_usage", "foreign_keys", "index_column_usage", "index_partitions", "index_stats", "indexes", "parameter_type_elements", "parameters",
	"resource_groups", "routines", "schemata", "st_spatial_reference_systems", "table_partition_values", "table_partitions", "table_stats", "tables", "tablespace_files",
	"tablespaces", "triggers", "view_routine_usage", "view_table_usage", "component", "default_roles", "global_grants", "innodb_ddl_log", "innodb_dynamic_metadata", "password_history", "role_edges")

func setOf(list ...string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, w := range list {
		m[w] = true
	}
	return m
}

// Package advise says what is wrong with a server before it hurts: facts in, the time passed in, findings out. It is pure; package gather
// reads the facts. Whatever it advises can be applied together: no statement takes away what another finding, a foreign key, a unique
// rule or a hint relies on.
package advise

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Finding is something that costs, or will, with the statement that mends it.
type Finding = fleet.Advice

// Proof is what was measured of a finding's statement on a copy of its tables.
type Proof = fleet.Proof

// ProvenClass is a class of statements, or the INSERT of rows, before and after.
type ProvenClass = fleet.ProvenClass

// CopiedTable is a table of the copy.
type CopiedTable = fleet.CopiedTable

// Cost is what a finding costs now.
type Cost = fleet.AdviceCost

// How sure a finding can be.
const (
	Certain = fleet.Certain
	Likely  = fleet.Likely
)

// Check is one of the things that are looked for.
type Check struct {
	ID    string // as the field calls it: schema.no_pk
	Title string // what it detects, in a few words
	Like  string // which other tools know it, and what they call it
}

// tableCheck looks at one table.
type tableCheck struct {
	Check
	look func(s *Server, t *Table) []Finding
}

// serverCheck looks at the server as a whole.
type serverCheck struct {
	Check
	look func(s *Server) []Finding
}

// Checks are all that this package looks for, by ID.
func Checks() []Check {
	var list []Check
	for _, c := range tableChecks() {
		list = append(list, c.Check)
	}
	for _, c := range serverChecks() {
		list = append(list, c.Check)
	}
	list = slices.Concat(list, LoadChecks(), GeometryChecks(), TogetherChecks())
	for _, c := range schemaChecks() {
		list = append(list, c.Check)
	}
	slices.SortStableFunc(list, func(a, b Check) int { return strings.Compare(a.ID, b.ID) })
	var out []Check // one ID may have several looks
	for _, c := range list {
		if n := len(out); n > 0 && out[n-1].ID == c.ID {
			out[n-1].Like = cmp.Or(out[n-1].Like, c.Like)
			continue
		}
		out = append(out, c)
	}
	return out
}

func tableChecks() []tableCheck {
	return []tableCheck{
		{Check{"schema.no_pk", "tables without a primary key", "MySQL Shell; sql_require_primary_key"}, noPrimaryKey},
		{Check{"schema.autoinc", "AUTO_INCREMENT columns that are nearly used up", "sys.schema_auto_increment_columns"}, autoIncrement},
		{Check{"schema.engine", "tables without transactions", "pt-mysql-summary"}, engine},
		{Check{"schema.row_format", "tables in a format of MySQL 5.0", ""}, rowFormat},
		{Check{"schema.types", "columns of types that are going to be removed, or do not keep what they are given", "MySQL Shell: oldTemporal, zerofill, deprecated types"}, oldTypes},
		{Check{"schema.charset", "text that cannot keep characters of four bytes", "MySQL Shell: utf8mb3"}, oldCharset},
		{Check{"schema.stats", "tables without statistics that stay", ""}, unmeasured},
		{Check{"schema.partitions", "partitions that are about to run out", ""}, runningOut},
		{Check{"fk.unindexed", "foreign keys without an index, on either side", ""}, unindexed},
		{Check{"fk.not_unique", "foreign keys that refer to columns that are not unique", "MySQL Shell: foreignKeyReferences"}, notUnique},
		{Check{"index.redundant", "indexes that another one of the table makes unnecessary", "pt-duplicate-key-checker; sys.schema_redundant_indexes"}, redundantIndexes},
		{Check{"index.hidden", "indexes that are kept and not used", ""}, hiddenIndexes},
		{Check{unusedID, "indexes that nothing used, on any server that was asked", "sys.schema_unused_indexes; pt-index-usage"}, unusedIndexes},
		{Check{"index.many", "tables with very many indexes", ""}, manyIndexes},
		{Check{"index.unselective", "indexes by which a look-up finds a large part of the table", ""}, unselective},
	}
}

func serverChecks() []serverCheck {
	list := []serverCheck{
		{Check{"durability.weak", durabilityRules().Title, ""}, redoDisabled},
		{Check{driftID, "settings that the next start takes back", ""}, undoneByRestart},
		{Check{"repl.writable", "replicas that accept writes", ""}, writable},
		{Check{"binlog.retention", "binary logs that stay for ever, or not long enough", "pt-variable-advisor: expire_logs_days"}, retention},
		{Check{"galera.flow_control", "a cluster whose writes pause", ""}, flowControl},
		{Check{"conn.saturation", "connections near their limit", ""}, saturation},
		{Check{"mem.overcommit", "more memory than there is", ""}, overcommit},
		{Check{"bp.starved", "a buffer pool too small for what is read", "pt-variable-advisor: innodb_buffer_pool_size"}, starved},
		{Check{"redo.small", "a redo log that is written over too often", "pt-variable-advisor: innodb_log_file_size"}, redoSmall},
		{Check{"tmp.disk", "temporary tables of statements on disk", ""}, diskTables},
		{Check{"cache.tables", "tables that are closed to make room for others", ""}, tableCache},
		{Check{"cache.keys", "indexes of MyISAM tables that are read from disk", "pt-variable-advisor: key_buffer_size"}, keyCache},
		{Check{"qcache.verdict", "a query cache: keep, shrink, off", "pt-variable-advisor: query_cache_size"}, queryCache},
		{Check{"sec.tls", "connections that can be read on the way", ""}, certificate},
		{Check{"ver.eol", "a version that is not maintained any more", "pt-variable-advisor: end-of-life mysql version"}, endOfLife},
		{Check{"ver.debug", "a server built for its developers", "pt-variable-advisor: debug"}, debugBuild},
		{Check{"time.zones", "names of time zones that the server does not know", ""}, timeZones},
		{Check{"event.disabled", "events that do not run", ""}, scheduler},
		{Check{"view.broken", "views that cannot be read", ""}, brokenViews},
		{Check{"definer.missing", "objects that run with the rights of an account that does not exist", ""}, missingDefiners},
		{Check{"object.orphaned", "stored programs of schemas that do not exist", "MySQL Shell: orphaned objects"}, orphans},
	}
	for _, c := range settingsRules() {
		list = append(list, serverCheck{c.Check, c.look})
	}
	return list
}

// settingsRules are all rules about settings.
func settingsRules() []settings {
	all := []settings{durabilityRules(), replicationRules(), galeraRules(), memoryRules()}
	return slices.Concat(all, sessionRules(), securityRules(), logRules(), innodbRules(), connectionRules())
}

// OfTable looks at one table. Of a server with very many they come one by one, so that nobody needs room for all.
func OfTable(s *Server, t *Table) (list []Finding) {
	for _, c := range tableChecks() {
		found := named(c.ID, c.look(s, t))
		for i := range found {
			applies(s, t, &found[i])
		}
		list = append(list, found...)
	}
	return list
}

// OfServer looks at the server as a whole.
func OfServer(s *Server) (list []Finding) {
	for _, c := range serverChecks() {
		list = append(list, named(c.ID, c.look(s))...)
	}
	return withoutContradiction(list)
}

// Schema is what OfSchema keeps of tables that are looked at one by one.
type Schema struct {
	columns map[string]map[string]joined // by the column's name in small letters, then by its collation
}

// joined is a column that begins an index, so that joins probably use it.
type joined struct {
	object string
	tables int
}

// schemaCheck looks at what the tables of a schema have together.
type schemaCheck struct {
	Check
	look func(s *Server, name string, of *Schema) []Finding
}

func schemaChecks() []schemaCheck {
	return []schemaCheck{
		{Check{"schema.collations", "columns of one name whose collations differ, so that joins cannot use an index", ""}, collations},
		{Check{"fk.orphan", "foreign keys that refer to tables that do not exist", ""}, nil},
	}
}

// OfSchema looks at what the tables of a schema have together; each was added to it.
func OfSchema(s *Server, name string, of *Schema) (list []Finding) {
	for _, c := range schemaChecks() {
		if c.look != nil {
			list = append(list, named(c.ID, c.look(s, name, of))...)
		}
	}
	return list
}

// OfReferences looks at foreign keys of all schemas; exists tells which tables there are.
func OfReferences(s *Server, exists func(mysql.TableName) bool) []Finding {
	return named("fk.orphan", lostParents(s, exists))
}

// named gives findings the ID of their check.
func named(id string, list []Finding) []Finding {
	for i := range list {
		list[i].ID = id
		if list[i].Sure == "" {
			list[i].Sure = Certain
		}
	}
	return list
}

// Rank sorts findings: the worst first, among equals what costs most, then by ID and object.
func Rank(list []Finding) { slices.SortStableFunc(list, Compare) }

// Compare orders findings as Rank does.
func Compare(a, b Finding) int {
	return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(b.Cost.Seconds, a.Cost.Seconds), cmp.Compare(b.Cost.Bytes, a.Cost.Bytes),
		strings.Compare(a.ID, b.ID), strings.Compare(a.Object, b.Object))
}

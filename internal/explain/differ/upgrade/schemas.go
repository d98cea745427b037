package upgrade

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sqltext"
)

// schemas looks at all definitions.
func (r *rules) schemas() {
	for _, name := range slices.Sorted(maps.Keys(r.d.Schemas)) {
		s := r.d.Schemas[name]
		r.name(name, mysql.Quote(name), "a schema")
		parsed := map[string]define.Table{}
		for t, create := range s.Tables {
			if p, err := define.ParseTable(name, create); err == nil {
				parsed[t] = p
			}
		}
		for _, t := range slices.Sorted(maps.Keys(s.Tables)) {
			p, ok := parsed[t]
			if !ok {
				continue
			}
			at := table{r, mysql.TableName{Schema: name, Name: t}, p, parsed}
			at.look()
		}
		for _, key := range slices.Sorted(maps.Keys(s.Objects)) {
			r.object(s.Objects[key])
		}
	}
}

// name looks at the name of something.
func (r *rules) name(name, object, what string) {
	if r.newlyReserved(name) {
		r.add(Problem{ID: "name.reserved", Severity: Warning, Object: object,
			Trouble: fleet.Trouble{What: what + " is called " + name + ", a word that the new version reserves",
				Why:    "statements in which it stands without backticks fail with a syntax error",
				Remedy: "write it as " + mysql.Quote(name) + " in every statement of the application, or give it another name"}})
	}
	if strings.HasPrefix(name, "$") && r.crosses(80032, fleet.Never) {
		r.add(Problem{ID: "name.dollar", Severity: Note, Object: object,
			Trouble: fleet.Trouble{What: what + " has a name that begins with a dollar sign",
				Why: "it is deprecated without backticks, and will be refused", Remedy: "write it as " + mysql.Quote(name)}})
	}
}

// table looks at one table.
type table struct {
	*rules
	name   mysql.TableName
	def    define.Table
	others map[string]define.Table // of the schema
}

func (t table) look() {
	full := t.name.String()
	t.rules.name(t.name.Name, full, "a table")
	for _, c := range t.def.Columns {
		t.rules.name(c.Name, full+"."+mysql.Quote(c.Name), "a column")
	}
	if strings.HasPrefix(t.name.Name, "FTS_") && t.crosses(80000, fleet.Never) {
		t.add(Problem{ID: "name.fts", Severity: Warning, Object: full,
			Trouble: fleet.Trouble{What: "its name begins with FTS_, as those of the server's own full-text tables do",
				Why:    "an upgrade of a data directory can take it for one of them and stop",
				Remedy: "rename it"}, Statements: []string{"RENAME TABLE " + full + " TO " + mysql.TableName{Schema: t.name.Schema, Name: "x_" + t.name.Name}.String()}})
	}
	if t.crosses(fleet.Never, 110500) && strings.Contains(t.def.Create, "WITH SYSTEM VERSIONING") {
		t.add(Problem{ID: "table.versioned", Severity: Warning, Object: full,
			Trouble: fleet.Trouble{What: "it keeps rows of the past", Why: "11.5 and later end times later, in 2106: mariadb-upgrade writes all rows and indexes anew, which takes long for many rows, and older versions cannot read them",
				Remedy: "plan the time, and take a backup first"}})
	}
	t.charsets()
	t.zeroDefaults()
	t.columns()
	t.elements()
	t.generated()
	t.partitions()
	t.foreignKeys()
	for _, call := range calls(sqltext.Tokens(t.def.Create)) {
		t.rules.call(full, call, "a generated column, default or check")
	}
}

func (t table) charsets() {
	var old, named []string
	for _, c := range t.def.Columns {
		switch charset := c.Charset; {
		case charset == "utf8" || charset == "utf8mb3":
			old = append(old, mysql.Quote(c.Name))
		case charset == "utf8mb4" && c.Collation == "":
			named = append(named, mysql.Quote(c.Name))
		}
	}
	if len(old) > 0 && t.to.AtLeast(80000, fleet.Never) {
		t.add(Problem{ID: "column.utf8mb3", Severity: Note, Object: t.name.String(),
			Trouble: fleet.Trouble{What: "text in utf8mb3: " + strings.Join(old, ", "),
				Why:    "it cannot hold four-byte characters such as emoji, is deprecated, and joined with utf8mb4 columns costs conversions",
				Remedy: "convert it; indexes of long columns may have to get shorter"}, Statements: []string{"ALTER TABLE " + t.name.String() + " CONVERT TO CHARACTER SET utf8mb4"}})
	}
	if len(named) > 0 && t.crosses(80000, fleet.Never) {
		t.add(Problem{ID: "collation.default", Severity: Note, Object: t.name.String(),
			Trouble: fleet.Trouble{What: "utf8mb4 columns with the old default collation: " + strings.Join(named, ", "),
				Why:    "new tables get utf8mb4_0900_ai_ci, which compares otherwise; a join of an old with a new column cannot use an index, or fails with a mix of collations",
				Remedy: "set collation_server=utf8mb4_general_ci on the new server, or convert all tables"}})
	}
}

// zeroDefaults finds dates of zeros as defaults: under strict NO_ZERO_DATE their CREATE TABLE is refused.
func (t table) zeroDefaults() {
	if !t.to.AtLeast(50700, fleet.Never) {
		return
	}
	var found, drops []string
	code := sqltext.Tokens(t.def.Create)
	column, depth := "", 0
	for i, x := range code {
		switch {
		case x.Kind == sqltext.TokenSign && x.Text == "(":
			depth++
		case x.Kind == sqltext.TokenSign && x.Text == ")":
			depth--
		case x.Kind == sqltext.TokenName && depth == 1 && i > 0 && (code[i-1].Text == "(" || code[i-1].Text == ","):
			column = x.Text
		case x.Kind == sqltext.TokenWord && strings.EqualFold(x.Text, "DEFAULT") && i+1 < len(code) && code[i+1].Kind == sqltext.TokenString && strings.HasPrefix(strings.Trim(code[i+1].Text, "'"), "0000-00-00"):
			found = append(found, mysql.Quote(column))
			drops = append(drops, "ALTER COLUMN "+mysql.Quote(column)+" DROP DEFAULT")
		}
	}
	if len(found) > 0 {
		t.add(Problem{ID: "default.zero_date", Severity: Warning, Object: t.name.String(),
			Trouble: fleet.Trouble{What: "a default of zeros: " + strings.Join(found, ", "),
				Why:    "under the default sql_mode of the new version (strict, NO_ZERO_DATE) the table cannot be made, altered or loaded from a dump",
				Remedy: "give the columns another default, or none"}, Statements: []string{"ALTER TABLE " + t.name.String() + " " + strings.Join(drops, ", ")}, Refused: true})
	}
}

// columns looks at types.
func (t table) columns() {
	create := strings.ToLower(t.def.Create)
	for _, c := range t.def.Columns {
		object, full := t.name.String()+"."+mysql.Quote(c.Name), strings.ToLower(c.FullType)
		real := c.Type == "float" || c.Type == "double"
		if real && strings.Contains(full, ",") && t.to.AtLeast(80017, fleet.Never) {
			t.add(Problem{ID: "column.float_digits", Severity: Note, Object: object,
				Trouble: fleet.Trouble{What: "its type is " + c.FullType,
					Why: "numbers of digits for FLOAT and DOUBLE are deprecated and will be refused", Remedy: "use DECIMAL, or the type without digits"}})
		}
		if real && c.Auto && t.crosses(80400, fleet.Never) {
			t.add(Problem{ID: "column.float_auto", Severity: Error, Object: object,
				Trouble: fleet.Trouble{What: "AUTO_INCREMENT of type " + c.FullType,
					Why:    "8.4 and later refuse the table",
					Remedy: "make it an integer"}, Refused: true, Statements: []string{"ALTER TABLE " + t.name.String() + " MODIFY " + mysql.Quote(c.Name) + " BIGINT NOT NULL AUTO_INCREMENT"}})
		}
		if strings.Contains(create, "`"+strings.ToLower(c.Name)+"` "+full) && strings.Contains(full, "zerofill") && t.to.AtLeast(80017, fleet.Never) {
			t.add(Problem{ID: "column.zerofill", Severity: Note, Object: object,
				Trouble: fleet.Trouble{What: "its type is " + c.FullType, Why: "ZEROFILL is deprecated", Remedy: "use LPAD() where the zeros are shown"}})
		}
		if spatialTypes[c.Type] && t.to.AtLeast(80000, fleet.Never) && !strings.Contains(t.def.Create, "SRID") && t.spatialKey(c.Name) {
			t.add(Problem{ID: "column.srid", Severity: Warning, Object: object,
				Trouble: fleet.Trouble{What: "a spatial index over a column without SRID",
					Why:    "MySQL 8.0 and later do not use such an index: searches read the whole table",
					Remedy: "on the new server: ALTER TABLE " + t.name.String() + " MODIFY " + mysql.Quote(c.Name) + " " + c.FullType + " NOT NULL SRID 0 (or the SRID of the data)"}})
		}
	}
}

var spatialTypes = setOf("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection")

func (t table) spatialKey(column string) bool {
	for _, k := range t.def.Keys {
		if k.Special && len(k.Parts) == 1 && strings.EqualFold(k.Parts[0].Column, column) && strings.Contains(t.def.Create, "SPATIAL KEY "+mysql.Quote(k.Name)) {
			return true
		}
	}
	return false
}

// elements finds members of ENUM and SET that are too long for 8.0: 255 characters. Source: MySQL manual, "Changes in MySQL 8.0".
func (t table) elements() {
	if !t.crosses(80000, fleet.Never) {
		return
	}
	const most = 255
	for _, c := range t.def.Columns {
		if c.Type != "enum" && c.Type != "set" {
			continue
		}
		for _, x := range sqltext.Tokens(c.FullType) {
			if x.Kind == sqltext.TokenString && utf8.RuneCountInString(sqltext.Dialect{}.Value(x)) > most {
				t.add(Problem{ID: "column.enum_length", Severity: Error, Object: t.name.String() + "." + mysql.Quote(c.Name), Refused: true,
					Trouble: fleet.Trouble{What: fmt.Sprintf("an element of its %s has more than %d characters", strings.ToUpper(c.Type), most),
						Why: "the new version refuses the table", Remedy: "make the element shorter, or the column a VARCHAR"}})
				break
			}
		}
	}
}

// generated finds columns whose value is made by CAST or CONVERT, which 8.0.28 changed for some types. Source: MySQL manual, "Cast Functions and
// Operators"; MySQL Shell's check of changed functions.
func (t table) generated() {
	if !t.crosses(80028, fleet.Never) {
		return
	}
	for _, e := range elementsOf(t.def.Create) {
		if len(e) == 0 || e[0].Kind != sqltext.TokenName || !slices.ContainsFunc(e, func(x sqltext.Token) bool {
			return x.Kind == sqltext.TokenWord && strings.EqualFold(x.Text, "GENERATED")
		}) {
			continue
		}
		if c := calls(e); slices.Contains(c, "cast") || slices.Contains(c, "convert") {
			t.add(Problem{ID: "column.generated_cast", Severity: Note, Object: t.name.String() + "." + mysql.Quote(e[0].Text),
				Trouble: fleet.Trouble{What: "it is generated by CAST() or CONVERT()", Why: "for some types and character sets the new version makes other values; stored ones, and indexes of them, stay as they were",
					Remedy: "after the upgrade rebuild the table: ALTER TABLE " + t.name.String() + " FORCE"}})
		}
	}
}

// partitions looks at engines and places of partitioned tables.
func (t table) partitions() {
	if !t.def.Partitioned {
		return
	}
	engine := strings.ToUpper(t.def.Engine)
	if engine != "INNODB" && engine != "NDBCLUSTER" && t.crosses(80000, fleet.Never) {
		t.add(Problem{ID: "partition.engine", Severity: Error, Object: t.name.String(),
			Trouble: fleet.Trouble{What: "a partitioned table of engine " + t.def.Engine,
				Why:    "only InnoDB has partitions in the new version; an upgrade of the data directory stops",
				Remedy: "move it to InnoDB"}, Refused: true, Statements: []string{"ALTER TABLE " + t.name.String() + " ENGINE = InnoDB"}})
	}
	at := strings.Index(t.def.Create, "PARTITION BY")
	rest := t.def.Create[max(at, 0):]
	for _, place := range []string{" TABLESPACE = ", " TABLESPACE `", " TABLESPACE "} {
		name, ok := wordAfter(t.def.Create, place)
		if ok && !strings.HasPrefix(name, "innodb_file_per_table") && t.crosses(80013, fleet.Never) {
			t.add(Problem{ID: "partition.tablespace", Severity: Error, Object: t.name.String(),
				Trouble: fleet.Trouble{What: "partitions in the shared tablespace " + name,
					Why:    "the new version refuses partitions in shared tablespaces",
					Remedy: "before the upgrade move each partition to its own file: ALTER TABLE … REORGANIZE PARTITION p INTO (… TABLESPACE = innodb_file_per_table)"}, Refused: true})
			break
		}
	}
	t.prefixParts(rest)
}

func wordAfter(text, mark string) (string, bool) {
	_, rest, ok := strings.Cut(text, mark)
	if !ok {
		return "", false
	}
	code := sqltext.Tokens(rest)
	if len(code) == 0 {
		return "", false
	}
	return code[0].Text, true
}

// prefixParts finds columns of PARTITION BY KEY that the key has by their beginning only: 8.4 refuses them.
func (t table) prefixParts(by string) {
	if !t.crosses(80400, fleet.Never) || !strings.HasPrefix(by, "PARTITION BY KEY") && !strings.HasPrefix(by, "PARTITION BY LINEAR KEY") {
		return
	}
	code := sqltext.Tokens(by)
	open := slices.IndexFunc(code, func(x sqltext.Token) bool { return x.Text == "(" })
	if open < 0 {
		return
	}
	inside, _, _ := sqltext.Group(code[open:])
	for _, k := range t.def.Keys {
		for _, p := range k.Parts {
			over := len(inside) == 0 && k.Name == "PRIMARY" || slices.ContainsFunc(inside, func(x sqltext.Token) bool { return strings.EqualFold(x.Text, p.Column) })
			if p.Prefix > 0 && over {
				t.add(Problem{ID: "partition.prefix", Severity: Error, Object: t.name.String(),
					Trouble: fleet.Trouble{What: "it is partitioned by key over " + mysql.Quote(p.Column) + ", which the key " + mysql.Quote(k.Name) + " has by its beginning only",
						Why:    "8.0 left the column out silently; 8.4 and later refuse the table",
						Remedy: "index the whole column, or partition by another"}, Refused: true})
				return
			}
		}
	}
}

// foreignKeys looks at names that are too long and at keys that are not unique.
func (t table) foreignKeys() {
	for _, e := range elementsOf(t.def.Create) {
		if len(e) < 5 || !strings.EqualFold(e[0].Text, "CONSTRAINT") || !strings.EqualFold(e[2].Text, "FOREIGN") {
			continue
		}
		const most = 64
		if n := utf8.RuneCountInString(e[1].Text); n > most && t.crosses(80000, fleet.Never) {
			t.add(Problem{ID: "foreign_key.name", Severity: Error, Object: t.name.String(),
				Trouble: fleet.Trouble{What: fmt.Sprintf("its foreign key %s has a name of %d characters", mysql.Quote(e[1].Text), n),
					Why:    "the new version takes 64, and an upgrade of the data directory stops",
					Remedy: "the server made it of the table's name: give the table a shorter one"}, Refused: true})
		}
		t.parentKey(e)
	}
}

// parentKey: 8.4 wants the referenced columns to be a unique key. Source: MySQL manual, restrict_fk_on_non_standard_key.
func (t table) parentKey(e []sqltext.Token) {
	at := slices.IndexFunc(e, func(x sqltext.Token) bool { return strings.EqualFold(x.Text, "REFERENCES") })
	if at < 0 || at+2 >= len(e) || !t.crosses(80400, fleet.Never) || e[at+2].Text != "(" { // another schema's table has a dot there
		return
	}
	parent, ok := t.others[e[at+1].Text]
	inside, _, grouped := sqltext.Group(e[at+2:])
	if !ok || !grouped {
		return
	}
	var columns []string
	for _, x := range inside {
		if x.Kind == sqltext.TokenName {
			columns = append(columns, x.Text)
		}
	}
	if !slices.ContainsFunc(parent.Keys, func(k define.TableKey) bool { return k.Unique && sameColumns(k, columns) }) {
		quoted := make([]string, len(columns))
		for i, c := range columns {
			quoted[i] = mysql.Quote(c)
		}
		t.add(Problem{ID: "foreign_key.not_unique", Severity: Error, Object: t.name.String(),
			Trouble: fleet.Trouble{What: "its foreign key " + mysql.Quote(e[1].Text) + " refers to columns of " + mysql.Quote(parent.Name) + " that are no unique key",
				Why:    "since 8.4 the server refuses such a key (restrict_fk_on_non_standard_key)",
				Remedy: "make the columns unique, if they are; or set restrict_fk_on_non_standard_key=OFF on the new server"}, Refused: true, Statements: []string{"ALTER TABLE " + mysql.TableName{Schema: t.name.Schema, Name: parent.Name}.String() + " ADD UNIQUE KEY (" + strings.Join(quoted, ", ") + ")"}})
	}
}

func sameColumns(k define.TableKey, columns []string) bool {
	if len(k.Parts) != len(columns) {
		return false
	}
	for i, p := range k.Parts {
		if p.Prefix != 0 || !strings.EqualFold(p.Column, columns[i]) {
			return false
		}
	}
	return true
}

// elementsOf are what stands between the parentheses of a CREATE TABLE.
func elementsOf(create string) [][]sqltext.Token {
	code := sqltext.Tokens(create)
	for i, x := range code {
		if x.Kind == sqltext.TokenSign && x.Text == "(" {
			inside, _, _ := sqltext.Group(code[i:])
			return sqltext.Elements(inside)
		}
	}
	return nil
}

// object looks at a view, routine, trigger or event.
func (r *rules) object(d differ.Object) {
	full := string(d.Kind) + " " + mysql.TableName{Schema: d.Schema, Name: d.Name}.String()
	r.name(d.Name, full, "a "+string(d.Kind))
	if gone := r.goneModes(d.SQLMode); len(gone) > 0 && r.crosses(80011, fleet.Never) {
		r.add(Problem{ID: "object.sql_mode", Severity: Warning, Object: full,
			Trouble: fleet.Trouble{What: "it was made under sql_mode " + strings.Join(gone, ", "),
				Why:    "the new version does not know the mode: a dump of it is refused",
				Remedy: "make it again in a session with SET sql_mode = " + mysql.Literal(without(d.SQLMode, gone))}})
	}
	code := sqltext.Dialect{}.WithMode(d.SQLMode).Tokens(d.Create)
	for _, call := range calls(code) {
		r.call(full, call, "its text")
	}
	r.syntax(full, code)
}

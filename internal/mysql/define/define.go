// Package define reads what defines a server's objects: CREATE statements with the circumstances that give them their meaning, tables
// parsed from theirs, accounts with their grants, and what of all that an account may not see. It reads; it changes nothing.
package define

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sqltext"
)

// ObjectKind is what a definition defines. The values are those of repo.ObjectKind.
type ObjectKind string

// The kinds of objects besides schemas and tables.
const (
	KindSequence    ObjectKind = "sequence"
	KindView        ObjectKind = "view"
	KindFunction    ObjectKind = "function"
	KindProcedure   ObjectKind = "procedure"
	KindPackage     ObjectKind = "package"
	KindPackageBody ObjectKind = "package body"
	KindTrigger     ObjectKind = "trigger"
	KindEvent       ObjectKind = "event"
	KindAccount     ObjectKind = "account"
)

// Definition is an object's CREATE statement with the circumstances that give it its meaning.
type Definition struct {
	Kind         ObjectKind
	Schema, Name string
	Table        string   // of a trigger
	Create       string   // as the server shows it
	After        []string // further statements: an account's grants, a sequence's state
	Columns      []string // of a view
	Broken       bool     // a view that selects from what is not there, or not for its definer
	SQLMode      string
	Charset      string // character_set_client
	Collation    string // collation_connection
	Database     string // the schema's collation when it was made
	TimeZone     string // of an event
	Definer      string
}

// TableInfo is a line of the list of tables.
type TableInfo struct {
	mysql.TableName
	View, Sequence bool
	Engine         string // "" for a view
	Rows           int64  // estimated
	Bytes          int64  // of data, without secondary indexes; estimated
	Created        Moment // when it was made or altered last
}

// Moment is a time by a server's clock and in the session's time zone, as a number that compares: 20261121183700. 0 is none.
// There may be 650,000 tables with one each.
type Moment int64

// momentOf reads 2026-11-21 18:37:00.
func momentOf(text []byte) (m Moment) {
	for _, c := range text {
		switch {
		case c == '.':
			return m
		case c >= '0' && c <= '9':
			m = m*10 + Moment(c-'0')
		}
	}
	return m
}

// Schemas lists the schemas of users.
func Schemas(ctx context.Context, s *mysql.Stream) ([]string, error) {
	var out []string
	err := s.Query(ctx, "SELECT /* risso: schemas */ SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME", func(row [][]byte) error {
		if name := string(row[0]); !mysql.SystemSchema(name) {
			out = append(out, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the schemas: %w", err)
	}
	return out, nil
}

// Now is the server's clock, to be compared with TableInfo.Created, in a session prepared by ForRows.
func Now(ctx context.Context, s *mysql.Stream) (now Moment, err error) {
	err = s.Query(ctx, "SELECT /* risso: when is it? */ NOW()", func(row [][]byte) error { now = momentOf(row[0]); return nil })
	if err != nil {
		return 0, fmt.Errorf("ask what time it is: %w", err)
	}
	return now, nil
}

// TablesAtMost is how many tables and views there are, those of the server itself among them: what has to be made room for. It
// needs no table opened.
func TablesAtMost(ctx context.Context, s *mysql.Stream) (n int, err error) {
	err = s.Query(ctx, "SELECT /* risso: how many tables? */ COUNT(*) FROM information_schema.TABLES", func(row [][]byte) (err error) {
		n, err = strconv.Atoi(string(row[0]))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count the tables: %w", err)
	}
	return n, nil
}

// CreateSchema returns a schema's definition.
func CreateSchema(ctx context.Context, s *mysql.Stream, name string) (create string, err error) {
	err = s.Query(ctx, "SHOW /* risso: backup */ CREATE DATABASE "+mysql.Quote(name), func(row [][]byte) error { create = string(row[1]); return nil })
	if err != nil {
		return "", fmt.Errorf("read the definition of schema %s: %w", mysql.Quote(name), err)
	}
	return create, nil
}

// Tables lists the tables, views and sequences of a schema with their sizes as the server estimates them.
func Tables(ctx context.Context, s *mysql.Stream, schema string) ([]TableInfo, error) {
	var out []TableInfo
	engine := "" // one text for all tables
	err := s.Query(ctx, "SELECT /* risso: tables */ "+tableColumns+" FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+mysql.Literal(schema)+" ORDER BY TABLE_NAME",
		func(row [][]byte) error {
			if string(row[2]) != engine {
				engine = string(row[2])
			}
			out = append(out, tableOf(schema, engine, row))
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("list the tables of %s: %w", mysql.Quote(schema), err)
	}
	return out, nil
}

// tableColumns are what tableOf reads.
const tableColumns = "TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_ROWS, DATA_LENGTH, CREATE_TIME"

func tableOf(schema, engine string, row [][]byte) TableInfo {
	t := TableInfo{TableName: mysql.TableName{Schema: schema, Name: string(row[0])}, Engine: engine}
	kind := string(row[1])
	t.View, t.Sequence = strings.Contains(kind, "VIEW"), kind == "SEQUENCE"
	t.Rows, _ = strconv.ParseInt(string(row[3]), 10, 64)
	t.Bytes, _ = strconv.ParseInt(string(row[4]), 10, 64)
	t.Created = momentOf(row[5])
	return t
}

// Table returns one table, nil if there is none; comment is why the server cannot open it, if it names no engine.
func FindTable(ctx context.Context, s *mysql.Stream, name mysql.TableName) (t *TableInfo, comment string, err error) {
	err = s.Query(ctx, "SELECT /* risso: can the server open it? */ "+tableColumns+", TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+mysql.Literal(name.Schema)+" AND TABLE_NAME = "+mysql.Literal(name.Name),
		func(row [][]byte) error {
			info := tableOf(name.Schema, string(row[2]), row)
			t, comment = &info, string(row[6])
			return nil
		})
	if err != nil {
		return nil, "", fmt.Errorf("look at %s: %w", name, err)
	}
	return t, comment, nil
}

// CreateTable returns a table's definition.
func CreateTable(ctx context.Context, s *mysql.Stream, name mysql.TableName) (create string, err error) {
	err = s.Query(ctx, "SHOW /* risso: backup */ CREATE TABLE "+name.String(), func(row [][]byte) error { create = definitionText(string(row[1])); return nil })
	if err != nil {
		return "", fmt.Errorf("read the definition of %s: %w", name, err)
	}
	return create, nil
}

// definitionText is the definition of a table or view as UTF-8. Servers show the default of a BINARY column, and strings with a character
// set before them, as the bytes that they are (seen on MySQL 5.7 and MariaDB): where that is none, they are written in hexadecimal digits.
func definitionText(create string) string {
	if utf8.ValidString(create) {
		return create
	}
	var b strings.Builder
	at := 0
	for _, t := range sqltext.Tokens(create) {
		if quote := strings.IndexByte(t.Text, '\''); t.Kind == sqltext.TokenString && quote >= 0 && !utf8.ValidString(t.Text) {
			b.WriteString(create[at:t.Begin] + strings.TrimSpace(t.Text[:quote]) + " x'" + hex.EncodeToString([]byte(sqltext.Dialect{}.Value(t))) + "'")
			at = t.End
		}
	}
	return b.String() + create[at:]
}

// CreateTables returns the definitions of several tables at the cost of one query. The first that the server refuses ends it.
func CreateTables(ctx context.Context, s *mysql.Stream, names []mysql.TableName) ([]string, error) {
	statements, creates := make([]string, len(names)), make([]string, len(names))
	for i, n := range names {
		statements[i] = "SHOW /* risso: backup */ CREATE TABLE " + n.String()
	}
	err := s.QuerySeveral(ctx, statements, func(i int, row [][]byte) error { creates[i] = definitionText(string(row[1])); return nil })
	if err != nil {
		return nil, fmt.Errorf("read the definitions of %d tables from %s on: %w", len(names), names[0], err)
	}
	return creates, nil
}

// show asks for one definition and returns its row by the names of its columns, which differ in the first letters' case only.
func show(ctx context.Context, s *mysql.Stream, statement string) (map[string]string, error) {
	rows, err := s.QueryMaps(ctx, statement)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// View returns a view's definition with its columns.
func View(ctx context.Context, s *mysql.Stream, name mysql.TableName) (Definition, error) {
	d := Definition{Kind: KindView, Schema: name.Schema, Name: name.Name}
	row, fault, err := createView(ctx, s, name)
	if d.Broken = fault != nil; d.Broken && row == nil {
		row, err = hiddenView(ctx, s, name, fault)
	}
	if err != nil {
		return d, fmt.Errorf("read the definition of view %s: %w", name, err)
	}
	d.Create, d.Charset, d.Collation = definitionText(row["Create View"]), row["character_set_client"], row["collation_connection"]
	d.Definer = definerOf(d.Create, "")
	err = s.Query(ctx, "SELECT /* risso: backup */ COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "+mysql.Literal(name.Schema)+" AND TABLE_NAME = "+mysql.Literal(name.Name)+" ORDER BY ORDINAL_POSITION",
		func(row [][]byte) error { d.Columns = append(d.Columns, string(row[0])); return nil })
	if err != nil {
		return d, fmt.Errorf("read the columns of view %s: %w", name, err)
	}
	return d, nil
}

// ViewFault says why a view does not work, in the server's words: it selects from what does not exist, its definer does not exist or may not read
// it. nil: it works, as far as the server knows without reading a row.
func ViewFault(ctx context.Context, s *mysql.Stream, name mysql.TableName) (fault, err error) {
	_, fault, err = createView(ctx, s, name)
	if err != nil {
		return nil, fmt.Errorf("look at view %s: %w", name, err)
	}
	return fault, nil
}

// createView is what SHOW CREATE VIEW says; nil if the server does not open the view, for that fault.
func createView(ctx context.Context, s *mysql.Stream, name mysql.TableName) (row map[string]string, fault, err error) {
	row, err = show(ctx, s, "SHOW /* risso: backup */ CREATE VIEW "+name.String())
	if unopened[mysql.ErrorNumber(err)] {
		return nil, err, nil
	}
	if err != nil {
		return nil, nil, err
	}
	err = s.Query(ctx, "SHOW /* risso: is the view whole? */ WARNINGS", func(row [][]byte) error {
		if n, _ := strconv.Atoi(string(row[1])); n == errno.ViewInvalid || unopened[n] {
			fault = errors.New(string(row[2]))
		}
		return nil
	})
	if err != nil || fault != nil {
		return row, fault, err
	}
	if c, _ := (sqltext.Dialect{}).ReadCreate(row["Create View"]); c == nil || c.Definer.End == 0 || c.Invoker {
		return row, nil, nil // what it may read depends on the account
	}
	// Whether its definer may read what is below it is checked when it is used: preparing it checks that, and runs nothing.
	switch err := s.Exec(ctx, "PREPARE risso_view FROM "+mysql.Literal("SELECT /* risso: does the view work? */ * FROM "+name.String())); {
	case err == nil:
		return row, nil, s.Exec(ctx, "DEALLOCATE PREPARE risso_view")
	case s.Broken() != nil:
		return nil, nil, err
	case mysql.ErrorNumber(err) == errno.ViewInvalid || unopened[mysql.ErrorNumber(err)]:
		return row, err, nil
	}
	return row, nil, nil
}

// unopened are numbers of errors with which servers refuse SHOW CREATE of a view that they cannot open: over a function whose definer is
// gone (seen on MySQL 5.7, 8.0 and MariaDB), or of columns whose collations were changed (seen on MySQL 5.7). Source: MySQL manual,
// "Server Error Message Reference".
var unopened = map[int]bool{1449: true, 1267: true, 1270: true, 1271: true}

// hiddenView is what SHOW CREATE VIEW would say about a view, put together of what information_schema has of it; refused where that has not
// its text either.
func hiddenView(ctx context.Context, s *mysql.Stream, name mysql.TableName, refused error) (map[string]string, error) {
	rows, err := s.QueryMaps(ctx, "SELECT /* risso: backup */ * FROM information_schema.VIEWS WHERE TABLE_SCHEMA = "+mysql.Literal(name.Schema)+" AND TABLE_NAME = "+mysql.Literal(name.Name))
	if err != nil || len(rows) != 1 || rows[0]["VIEW_DEFINITION"] == "" {
		return nil, errors.Join(refused, err)
	}
	v := rows[0]
	at := strings.LastIndexByte(v["DEFINER"], '@')
	if at < 0 {
		return nil, refused
	}
	create := "CREATE ALGORITHM=" + cmp.Or(v["ALGORITHM"], "UNDEFINED") + " DEFINER=" + mysql.Quote(v["DEFINER"][:at]) + "@" + mysql.Quote(v["DEFINER"][at+1:]) + " SQL SECURITY " + v["SECURITY_TYPE"] + " VIEW " + name.String() + " AS " + v["VIEW_DEFINITION"]
	if check := v["CHECK_OPTION"]; check == "LOCAL" || check == "CASCADED" {
		create += " WITH " + check + " CHECK OPTION"
	}
	return map[string]string{"Create View": create, "character_set_client": v["CHARACTER_SET_CLIENT"], "collation_connection": v["COLLATION_CONNECTION"]}, nil
}

// definerOf reads the account after DEFINER= of a CREATE statement.
func definerOf(create, mode string) string {
	c, _ := sqltext.Dialect{}.WithMode(mode).ReadCreate(create) // an error is about what follows
	if c == nil || c.Definer.End == 0 {
		return ""
	}
	return c.Definer.String()
}

// Sequence returns a sequence's definition and state (https://mariadb.com/kb/en/setval/).
func Sequence(ctx context.Context, s *mysql.Stream, name mysql.TableName) (Definition, error) {
	d := Definition{Kind: KindSequence, Schema: name.Schema, Name: name.Name}
	row, err := show(ctx, s, "SHOW /* risso: backup */ CREATE SEQUENCE "+name.String())
	if err != nil {
		return d, fmt.Errorf("read the definition of sequence %s: %w", name, err)
	}
	d.Create = row["Create Table"]
	state, err := show(ctx, s, "SELECT /* risso: backup */ next_not_cached_value, cycle_count FROM "+name.String())
	if err != nil {
		return d, fmt.Errorf("read the state of sequence %s: %w", name, err)
	}
	d.After = []string{fmt.Sprintf("DO SETVAL(%s, %s, 0, %s)", name, state["next_not_cached_value"], state["cycle_count"])}
	return d, nil
}

// Triggers returns a schema's triggers in the order in which they fire.
func Triggers(ctx context.Context, s *mysql.Stream, schema string) ([]Definition, error) {
	return TriggersOf(ctx, s, schema, func(string) bool { return true })
}

// TriggersOf returns those of the wanted tables.
func TriggersOf(ctx context.Context, s *mysql.Stream, schema string, wants func(table string) bool) ([]Definition, error) {
	rows, err := s.QueryMaps(ctx, `SELECT /* risso: backup */ TRIGGER_NAME AS n, EVENT_OBJECT_TABLE AS t, DEFINER AS d FROM information_schema.TRIGGERS
 WHERE TRIGGER_SCHEMA = `+mysql.Literal(schema)+` ORDER BY EVENT_OBJECT_TABLE, EVENT_MANIPULATION, ACTION_TIMING, ACTION_ORDER`)
	if err != nil {
		return nil, fmt.Errorf("list the triggers of %s: %w", mysql.Quote(schema), err)
	}
	var out []Definition
	for _, r := range rows {
		if !wants(r["t"]) {
			continue
		}
		row, err := show(ctx, s, "SHOW /* risso: backup */ CREATE TRIGGER "+mysql.Quote(schema)+"."+mysql.Quote(r["n"]))
		if err != nil {
			return nil, fmt.Errorf("read the definition of trigger %s: %w", mysql.Quote(r["n"]), err)
		}
		d := circumstances(Definition{Kind: KindTrigger, Schema: schema, Name: r["n"], Table: r["t"], Create: row["SQL Original Statement"]}, row, "", r["d"])
		out = append(out, d)
	}
	return out, nil
}

// circumstances reads what SHOW CREATE shows besides the statement.
func circumstances(d Definition, row map[string]string, comment, definer string) Definition {
	d.SQLMode, d.Charset, d.Collation, d.Database = row["sql_mode"], row["character_set_client"], row["collation_connection"], row["Database Collation"]
	d.TimeZone = row["time_zone"]
	d.Create = asNamed(d, comment, definer)
	d.Definer = definerOf(d.Create, d.SQLMode)
	return d
}

// asNamed is a program's definition with its names, its comment and its definer as they are. Of a program that was made in a session
// with another character set than UTF-8 the servers take these, which are UTF-8, for text in that set, and convert them once more (seen on MySQL
// 5.7, 8.0 and 9.7; on MariaDB comments, and names of events). Source: their sql/sp.cc and sql/events.cc.
func asNamed(d Definition, comment, definer string) string {
	if strings.HasPrefix(d.Charset, "utf8") || isASCII(d.Create) {
		return d.Create
	}
	dialect := sqltext.Dialect{}.WithMode(d.SQLMode)
	c, _ := dialect.ReadCreate(d.Create) // an error is about what follows
	if c == nil {
		return d.Create
	}
	var edits []sqltext.Edit
	for _, n := range []struct {
		at   sqltext.Ident
		name string
	}{{c.Name, d.Name}, {c.On, d.Table}} {
		if n.at.End > 0 && n.at.Name != n.name && n.name != "" {
			name := mysql.Quote(n.name)
			if n.at.Schema != "" {
				name = mysql.Quote(d.Schema) + "." + name
			}
			edits = append(edits, sqltext.Edit{Begin: n.at.Begin, End: n.at.End, Text: name})
		}
	}
	if at := strings.LastIndexByte(definer, '@'); at > 0 && c.Definer.End > 0 && !isASCII(definer) {
		edits = append(edits, sqltext.Edit{Begin: c.Definer.Begin, End: c.Definer.End, Text: "DEFINER=" + mysql.Quote(definer[:at]) + "@" + mysql.Quote(definer[at+1:])})
	}
	if _, end := dialect.Find(d.Create[c.Name.End:], "COMMENT"); end >= 0 && !isASCII(comment) {
		if t := dialect.Tokens(d.Create[c.Name.End+end:]); len(t) > 0 && t[0].Kind == sqltext.TokenString {
			text := strings.ReplaceAll(comment, "'", "''")
			if !dialect.NoBackslash {
				text = strings.ReplaceAll(text, `\`, `\\`)
			}
			at := c.Name.End + end
			edits = append(edits, sqltext.Edit{Begin: at + t[0].Begin, End: at + t[0].End, Text: "'" + text + "'"})
		}
	}
	return sqltext.Apply(d.Create, edits)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// ErrHidden says that the server shows a definition to others only.
var ErrHidden = errors.New("it needs SELECT on mysql.proc (MySQL 8 and later: SHOW_ROUTINE), or to be its definer")

func hidden(what, name string) error {
	return fmt.Errorf("the account may not see the definition of %s %s: %w", what, name, ErrHidden)
}

// Routines returns a schema's functions, procedures and packages.
func Routines(ctx context.Context, s *mysql.Stream, schema string) ([]Definition, error) {
	rows, err := s.QueryMaps(ctx, "SELECT /* risso: backup */ ROUTINE_NAME AS n, ROUTINE_TYPE AS k, ROUTINE_COMMENT AS c, DEFINER AS d FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = "+mysql.Literal(schema)+" ORDER BY ROUTINE_TYPE, ROUTINE_NAME")
	if err != nil {
		return nil, fmt.Errorf("list the routines of %s: %w", mysql.Quote(schema), err)
	}
	var out []Definition
	for _, r := range rows {
		kind := strings.ToUpper(r["k"])
		name := mysql.Quote(schema) + "." + mysql.Quote(r["n"])
		row, err := show(ctx, s, "SHOW /* risso: backup */ CREATE "+kind+" "+name)
		if err != nil {
			return nil, fmt.Errorf("read the definition of %s %s: %w", strings.ToLower(kind), name, err)
		}
		d := Definition{Kind: ObjectKind(strings.ToLower(kind)), Schema: schema, Name: r["n"]}
		for column, text := range row { // "Create Function", "Create Package Body"
			if strings.EqualFold(column, "create "+kind) {
				d.Create = text
			}
		}
		if d.Create == "" {
			return nil, hidden(strings.ToLower(kind), name)
		}
		out = append(out, circumstances(d, row, r["c"], r["d"]))
	}
	return out, nil
}

// Events returns a schema's events.
func Events(ctx context.Context, s *mysql.Stream, schema string) ([]Definition, error) {
	rows, err := s.QueryMaps(ctx, "SELECT /* risso: backup */ EVENT_NAME AS n, EVENT_COMMENT AS c, DEFINER AS d FROM information_schema.EVENTS WHERE EVENT_SCHEMA = "+mysql.Literal(schema)+" ORDER BY EVENT_NAME")
	if err != nil {
		return nil, fmt.Errorf("list the events of %s: %w", mysql.Quote(schema), err)
	}
	var out []Definition
	for _, r := range rows {
		row, err := show(ctx, s, "SHOW /* risso: backup */ CREATE EVENT "+mysql.Quote(schema)+"."+mysql.Quote(r["n"]))
		if err != nil {
			return nil, fmt.Errorf("read the definition of event %s: %w", mysql.Quote(r["n"]), err)
		}
		out = append(out, circumstances(Definition{Kind: KindEvent, Schema: schema, Name: r["n"], Create: row["Create Event"]}, row, r["c"], r["d"]))
	}
	return out, nil
}

// Holds counts what a schema has besides tables, so that 10,000 schemas without any need no query each: it returns for each
// schema the kinds that it has.
func Holds(ctx context.Context, s *mysql.Stream) (map[string][]ObjectKind, error) {
	out := map[string][]ObjectKind{}
	for kind, statement := range map[ObjectKind]string{
		KindTrigger:   "SELECT /* risso: backup */ DISTINCT TRIGGER_SCHEMA FROM information_schema.TRIGGERS",
		KindProcedure: "SELECT /* risso: backup */ DISTINCT ROUTINE_SCHEMA FROM information_schema.ROUTINES",
		KindEvent:     "SELECT /* risso: backup */ DISTINCT EVENT_SCHEMA FROM information_schema.EVENTS",
	} {
		err := s.Query(ctx, statement, func(row [][]byte) error {
			out[string(row[0])] = append(out[string(row[0])], kind)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("look for a %s: %w", kind, err)
		}
	}
	return out, nil
}

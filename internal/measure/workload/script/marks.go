package script

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// Tables that setup makes get the mark as their comment, so that cleanup knows what it may drop. Names of tables are handled
// as SQL, the way the file writes them.

// quoted writes a table of a statement as SQL.
func quoted(t sqltext.Table, statement string, d drive.Dialect) string {
	part := func(name string) string {
		switch {
		case name == "":
			return ""
		case d == drive.MySQL:
			return mysql.Quote(name)
		case !strings.Contains(statement, `"`+name+`"`): // PostgreSQL folds unquoted names
			name = strings.ToLower(name)
		}
		return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	if t.Schema == "" {
		return part(t.Name)
	}
	return part(t.Schema) + "." + part(t.Name)
}

// words are the first words of a statement, in lower case.
func words(sql string, n int) []string {
	var out []string
	for _, t := range sqltext.Tokens(sql) {
		if t.Kind != sqltext.TokenWord || len(out) == n {
			break
		}
		out = append(out, strings.ToLower(t.Text))
	}
	return out
}

// createdBy returns the table that a statement makes permanently; "" if it makes none.
func createdBy(st statement, d drive.Dialect) string {
	list := words(st.sql, 4)
	at := slices.Index(list, "table")
	if len(list) == 0 || list[0] != "create" || at < 0 || slices.Contains(list[:at], "temporary") || slices.Contains(list[:at], "temp") {
		return ""
	}
	tables := sqltext.Tables([]byte(st.parameters(d)))
	if len(tables) == 0 {
		return ""
	}
	return quoted(tables[0], st.sql, d)
}

// changing are the verbs of statements that take something away from a table.
var changing = []string{"DROP", "TRUNCATE", "DELETE", "UPDATE", "ALTER", "REPLACE", "RENAME"}

// state is what the catalogue says about a table.
type state struct{ there, marked bool }

// lookAt asks for a base table by its name in SQL.
func lookAt(s drive.Session, name string) (state, error) {
	var rows [][]drive.Value
	var err error
	if s.Dialect() == drive.Postgres {
		rows, err = workload.Ask(s, "SELECT /* risso: whose is the table? */ COALESCE(obj_description(oid, 'pg_class'), '') FROM pg_class WHERE oid = to_regclass($1) AND relkind IN ('r', 'p')", drive.Text([]byte(name)))
	} else {
		t := sqltext.Tables([]byte("TABLE " + name))
		if len(t) != 1 {
			return state{}, fmt.Errorf("%s is not a name of a table", name)
		}
		rows, err = workload.Ask(s, "SELECT /* risso: whose is the table? */ table_comment FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_name = ? AND table_schema = COALESCE(NULLIF(?, ''), DATABASE())",
			drive.Text([]byte(t[0].Name)), drive.Text([]byte(t[0].Schema)))
	}
	if err != nil || len(rows) == 0 {
		return state{}, err
	}
	return state{there: true, marked: string(rows[0][0].Text) == workload.Mark}, nil
}

// mark marks a table.
func (w *script) mark(s drive.Session, st statement, name string) error {
	sql := "ALTER /* risso: made by a benchmark */ TABLE " + name + " COMMENT = '" + workload.Mark + "'"
	if s.Dialect() == drive.Postgres {
		sql = "COMMENT /* risso: made by a benchmark */ ON TABLE " + name + " IS '" + workload.Mark + "'"
	}
	if _, err := s.Exec(drive.Other, sql); err != nil {
		return w.at(st, fmt.Errorf("mark the table: %w", err))
	}
	return nil
}

// mayChange refuses statements that would take something away from a table that no prepare made, or drop a schema with such
// tables.
func (w *script) mayChange(s drive.Session, list []statement) error {
	for _, st := range list {
		verb := sqltext.Verb([]byte(st.sql))
		if !slices.Contains(changing, verb) {
			continue
		}
		first := words(st.sql, 5)
		if len(first) > 1 && (first[1] == "database" || first[1] == "schema") {
			if err := w.mayDropSchema(s, st, verb); err != nil {
				return err
			}
			continue
		}
		for _, t := range sqltext.Tables([]byte(st.parameters(s.Dialect()))) {
			name := quoted(t, st.sql, s.Dialect())
			is, err := lookAt(s, name)
			if err != nil {
				return w.at(st, err)
			}
			if is.there && !is.marked {
				return w.at(st, fmt.Errorf("%w: %s may change the table %s, which prepare did not make: its comment is not %q; nothing was done", workload.ErrUsage, verb, t.Name, workload.Mark))
			}
		}
	}
	return nil
}

// mayDropSchema looks at all tables of the schema that a DROP names.
func (w *script) mayDropSchema(s drive.Session, st statement, verb string) error {
	var name string
	for _, t := range sqltext.Tokens(st.sql) {
		word := strings.ToLower(t.Text)
		if t.Kind == sqltext.TokenSign || t.Kind == sqltext.TokenWord && slices.Contains([]string{"drop", "alter", "database", "schema", "if", "exists", "cascade", "restrict"}, word) {
			continue
		}
		name = strings.Trim(t.Text, `"`)
		if s.Dialect() == drive.Postgres && t.Kind == sqltext.TokenWord {
			name = word
		}
		break
	}
	sql := "SELECT /* risso: whose are the tables? */ COUNT(*) FROM information_schema.tables WHERE table_schema = ? AND table_type = 'BASE TABLE' AND table_comment <> '" + workload.Mark + "'"
	if s.Dialect() == drive.Postgres {
		sql = "SELECT /* risso: whose are the tables? */ COUNT(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND COALESCE(obj_description(c.oid, 'pg_class'), '') <> '" + workload.Mark + "'"
	}
	rows, err := workload.Ask(s, sql, drive.Text([]byte(name)))
	if err != nil {
		return w.at(st, err)
	}
	if n := rows[0][0].Int; n > 0 {
		return w.at(st, fmt.Errorf("%w: %s of %s, which has %s that prepare did not create; nothing was done", workload.ErrUsage, verb, name, digits.Plural(n, "table", "tables")))
	}
	return nil
}

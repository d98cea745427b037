package alter

import (
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sqltext"
)

// Undo is the ALTER TABLE that gives the table the definition back that it had, and what it cannot give back. The statement is "" where this is
// not known.
func Undo(f *Facts, st Statement, after string) (statement string, lost []string) {
	now, err := define.ParseTable(st.Table.Schema, after)
	c, _ := f.Server.Dialect().ReadChange(st.With(Mark, "", ""))
	if err != nil || c.Moves {
		return "", []string{"the change is about partitions, files or rows: there is no statement that takes it back"}
	}
	was, is := elements(f.Table.Create), elements(after)
	var parts []string
	table := st.Table
	if st.RenamedTo != nil {
		table = *st.RenamedTo
		parts = append(parts, "RENAME TO "+st.Table.String())
	}
	parts = append(parts, undoKeys(f, &now, was, is)...)
	columns, lost := undoColumns(f, st, &now, was, is)
	parts = append(parts, columns...)
	if a, b := options(f.Table.Create), options(after); a != b {
		parts = append(parts, a)
	}
	if len(parts) == 0 {
		return "", lost
	}
	return "ALTER TABLE " + table.String() + " " + strings.Join(parts, ", "), lost
}

// undoKeys drops indexes and constraints that are new, and adds those that are gone.
func undoKeys(f *Facts, now *define.Table, was, is map[string]string) (parts []string) {
	drop := func(key string) string {
		kind, name, _ := strings.Cut(key, " ")
		switch {
		case kind == "key" && name == "PRIMARY":
			return "DROP PRIMARY KEY"
		case kind == "key":
			return "DROP INDEX " + mysql.Quote(name)
		case strings.Contains(strings.ToUpper(is[key]), "FOREIGN KEY"):
			return "DROP FOREIGN KEY " + mysql.Quote(name)
		}
		return "DROP CONSTRAINT " + mysql.Quote(name)
	}
	for _, key := range order(is) {
		if kind, _, _ := strings.Cut(key, " "); kind != "column" && was[key] != is[key] {
			parts = append(parts, drop(key))
		}
	}
	for _, key := range order(was) {
		if kind, _, _ := strings.Cut(key, " "); kind != "column" && was[key] != is[key] {
			parts = append(parts, "ADD "+was[key])
		}
	}
	return parts
}

// undoColumns drops columns that are new, adds those that are gone, and gives the others their definition back.
func undoColumns(f *Facts, st Statement, now *define.Table, was, is map[string]string) (parts, lost []string) {
	before := map[string]bool{}
	place := " FIRST"
	for i, c := range f.Table.Columns {
		before[strings.ToLower(c.Name)] = true
		old, name := was["column "+c.Name], c.Name
		if to, ok := st.Renamed[strings.ToLower(c.Name)]; ok {
			name = to
		}
		n, there := now.Column(name)
		moved := there && (i >= len(now.Columns) || !strings.EqualFold(now.Columns[i].Name, n.Name))
		switch {
		case !there:
			parts = append(parts, "ADD COLUMN "+old+place)
			lost = append(lost, "the values of the column "+c.Name)
		case n.Name != c.Name:
			parts = append(parts, "CHANGE COLUMN "+mysql.Quote(n.Name)+" "+old+place)
		case is["column "+n.Name] != old:
			parts = append(parts, "MODIFY COLUMN "+old+place)
			lost = append(lost, "values of the column "+c.Name+" that do not fit both its types")
		case moved && len(now.Columns) == len(f.Table.Columns):
			parts = append(parts, "MODIFY COLUMN "+old+place)
		}
		place = " AFTER " + mysql.Quote(c.Name)
	}
	for _, c := range now.Columns {
		old := c.Name
		for from, to := range st.Renamed {
			if strings.EqualFold(to, c.Name) {
				old = from
			}
		}
		if !before[strings.ToLower(old)] {
			parts = append(parts, "DROP COLUMN "+mysql.Quote(c.Name))
		}
	}
	return parts, lost
}

// elements are the texts of a table's columns, keys and constraints by "column a", "key k", "constraint c".
func elements(create string) map[string]string {
	list := map[string]string{}
	t := sqltext.Tokens(create)
	for i, x := range t {
		if x.Kind != sqltext.TokenSign || x.Text != "(" {
			continue
		}
		inside, _, _ := sqltext.Group(t[i:])
		for _, e := range sqltext.Elements(inside) {
			if len(e) == 0 {
				continue
			}
			begin, end := sqltext.Span(e)
			text := create[begin:end]
			switch word := strings.ToUpper(e[0].Text); {
			case e[0].Kind == sqltext.TokenName:
				list["column "+e[0].Text] = text
			case word == "CONSTRAINT" || word == "CHECK" || word == "FOREIGN":
				list["constraint "+firstName(e)] = text
			case word == "PRIMARY":
				list["key PRIMARY"] = text
			case word == "PERIOD":
			default:
				list["key "+firstName(e)] = text
			}
		}
		break
	}
	return list
}

func firstName(e []sqltext.Token) string {
	for _, t := range e {
		if t.Kind == sqltext.TokenName {
			return t.Text
		}
	}
	return ""
}

// options are what follows a table's columns, without where AUTO_INCREMENT is.
func options(create string) string {
	t := sqltext.Tokens(create)
	for i, x := range t {
		if x.Kind == sqltext.TokenSign && x.Text == "(" {
			if _, rest, ok := sqltext.Group(t[i:]); ok && len(rest) > 0 {
				var words []string
				for k := 0; k < len(rest); k++ {
					if strings.EqualFold(rest[k].Text, "AUTO_INCREMENT") && k+2 < len(rest) && rest[k+1].Text == "=" {
						k += 2
						continue
					}
					words = append(words, create[rest[k].Begin:rest[k].End])
				}
				return strings.ReplaceAll(strings.Join(words, " "), " = ", "=")
			}
			break
		}
	}
	return ""
}

// order are the keys in order.
func order(m map[string]string) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// SameTable reports whether two definitions are one, apart from where AUTO_INCREMENT is.
func SameTable(a, b string) bool {
	x, y := elements(a), elements(b)
	if len(x) != len(y) || options(a) != options(b) {
		return false
	}
	for k, v := range x {
		if y[k] != v {
			return false
		}
	}
	ta, erra := define.ParseTable("", a)
	tb, errb := define.ParseTable("", b)
	if erra != nil || errb != nil {
		return a == b
	}
	for i := range ta.Columns {
		if i >= len(tb.Columns) || ta.Columns[i].Name != tb.Columns[i].Name {
			return false
		}
	}
	return true
}

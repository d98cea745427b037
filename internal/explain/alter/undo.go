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
	parts = append(parts, undoKeys(f, st, &now, was, is)...)
	columns, lost := undoColumns(f, st, &now, was, is)
	parts = append(parts, columns...)
	if a, b := options(f.Table.Create), options(after); a != b {
		back, stay := withoutOptions(a, b)
		parts, lost = append(parts, a+back), append(lost, stay...)
	}
	if len(parts) == 0 {
		return "", lost
	}
	return "ALTER TABLE " + table.String() + " " + strings.Join(parts, ", "), lost
}

// undoKeys drops indexes and constraints that are new, and adds those that are gone.
func undoKeys(f *Facts, st Statement, now *define.Table, was, is map[string]string) (parts []string) {
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
	shown := map[string]bool{} // dropped and added in one statement they would stay hidden
	for _, k := range f.Table.Keys {
		i := slices.IndexFunc(now.Keys, func(n define.TableKey) bool { return n.Name == k.Name })
		if i < 0 || now.Keys[i].Hidden == k.Hidden || !slices.Equal(now.Keys[i].Parts, k.Parts) || now.Keys[i].Unique != k.Unique {
			continue
		}
		if clause := f.Server.HideIndex(k.Name, k.Hidden); clause != "" {
			shown["key "+k.Name] = true
			parts = append(parts, clause)
		}
	}
	other := func(key string) bool { return was[key] != is[key] && !shown[key] }
	for _, k := range now.Keys { // over a column that is dropped it goes, too
		if slices.ContainsFunc(k.Parts, func(p define.KeyPart) bool { return p.Column != "" && st.was(p.Column) == "" }) {
			delete(shown, "key "+k.Name)
			is["key "+k.Name] += " "
		}
	}
	for _, key := range order(is) {
		if kind, _, _ := strings.Cut(key, " "); kind != "column" && other(key) {
			parts = append(parts, drop(key))
		}
	}
	for _, key := range order(was) {
		if kind, _, _ := strings.Cut(key, " "); kind != "column" && other(key) {
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
		to, renamed := st.Renamed[strings.ToLower(c.Name)]
		if renamed {
			name = to
		}
		n, there := now.Column(name)
		there = there && (renamed || strings.EqualFold(st.was(name), name)) // else it is another one, which got its name
		moved := there && (i >= len(now.Columns) || !strings.EqualFold(now.Columns[i].Name, n.Name))
		switch {
		case !there:
			parts = append(parts, "ADD COLUMN "+old+place)
			lost = append(lost, "the values of the column "+c.Name)
		case n.Name != c.Name:
			parts = append(parts, "CHANGE COLUMN "+mysql.Quote(n.Name)+" "+old+place)
		case is["column "+n.Name] != old || n.Charset != c.Charset: // what a definition leaves open is the table's
			parts = append(parts, "MODIFY COLUMN "+old+place)
			lost = append(lost, "values of the column "+c.Name+" that do not fit both its types")
		case moved && len(now.Columns) == len(f.Table.Columns):
			parts = append(parts, "MODIFY COLUMN "+old+place)
		}
		place = " AFTER " + mysql.Quote(c.Name)
	}
	for _, c := range now.Columns {
		if !before[strings.ToLower(st.was(c.Name))] {
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

// plainOption is what an option of a table is where its definition does not have it. Source: MySQL manual, "CREATE TABLE Statement"; MariaDB
// documentation, "CREATE TABLE", table options.
var plainOption = map[string]string{"ROW_FORMAT": "DEFAULT", "KEY_BLOCK_SIZE": "0", "COMMENT": "''", "STATS_PERSISTENT": "DEFAULT", "STATS_AUTO_RECALC": "DEFAULT", "STATS_SAMPLE_PAGES": "DEFAULT", "PACK_KEYS": "DEFAULT",
	"MAX_ROWS": "0", "MIN_ROWS": "0", "AVG_ROW_LENGTH": "0", "CHECKSUM": "0", "DELAY_KEY_WRITE": "0", "PAGE_COMPRESSED": "DEFAULT", "PAGE_COMPRESSION_LEVEL": "DEFAULT", "ENCRYPTED": "DEFAULT", "ENCRYPTION_KEY_ID": "DEFAULT"}

// withoutOptions takes options back that the first does not have, and says which stay because nothing is known that does.
func withoutOptions(was, is string) (back string, stay []string) {
	names := func(options string) (list []string) {
		t := sqltext.Tokens(options)
		for i := 0; i+1 < len(t); i++ {
			if t[i+1].Kind == sqltext.TokenSign && t[i+1].Text == "=" {
				list = append(list, strings.ToUpper(t[i].Text))
			}
		}
		return list
	}
	had := names(was)
	for _, name := range names(is) {
		switch plain, known := plainOption[name]; {
		case slices.Contains(had, name) || name == "COLLATE" || name == "CHARSET": // a character set brings its collation
		case known:
			back += " " + name + "=" + plain
			if name == "KEY_BLOCK_SIZE" { // seen on MariaDB 10.11
				stay = append(stay, "KEY_BLOCK_SIZE, which definitions of indexes may keep, where InnoDB makes nothing of it")
			}
		default:
			stay = append(stay, "the table's option "+name+", which stays")
		}
	}
	return back, stay
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

package alter

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sqltext"
)

// DataTest is a SELECT that tells beforehand whether the rows let the change through. It reads the whole table, or an index of it.
type DataTest struct {
	Says   string `json:"says"`   // what may make it fail
	Select string `json:"select"` // returns no row if they do; "" if no SELECT tells it
}

// dataTests compares the definitions before and after: what holds afterwards that did not hold before.
func dataTests(f *Facts, st Statement, after string) (list []DataTest) {
	if after == "" {
		return nil
	}
	now, err := define.ParseTable(st.Table.Schema, after)
	if err != nil {
		return nil
	}
	was := st.was
	for _, k := range now.Keys {
		if t, ok := uniqueTest(&f.Table, st, k, was); ok {
			list = append(list, t)
		}
	}
	for _, c := range now.Columns {
		old, ok := f.Table.Column(was(c.Name))
		if !ok || c.Generated || old.Generated {
			continue
		}
		list = append(list, columnTests(st, old, c)...)
	}
	return append(append(list, ruleTests(f, st, after, was)...), exchangeTests(st)...)
}

// exchangeTests are about the rows of a table that becomes a partition.
func exchangeTests(st Statement) []DataTest {
	words := sqltext.Words(sqltext.Tokens(st.Body))
	switch {
	case len(words) == 0 || !strings.EqualFold(words[0], "EXCHANGE") || len(st.Others) == 0:
		return nil
	case slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, "WITHOUT") }):
		return []DataTest{{Says: "rows of " + st.Others[0].String() + " that do not belong into the partition are not looked for: statements that ask for them by the partition's columns do not find them then"}}
	}
	return []DataTest{{Says: "a row of " + st.Others[0].String() + " that does not belong into the partition makes it fail: the server reads them all first"}}
}

// was is what a column was called before; "" if it is new, under the name that another one had.
func (s Statement) was(name string) string {
	for old, to := range s.Renamed {
		if strings.EqualFold(to, name) {
			return old
		}
	}
	if _, gone := s.Renamed[strings.ToLower(name)]; gone || slices.Contains(s.Dropped, strings.ToLower(name)) {
		return ""
	}
	return name
}

// uniqueTest is about a key that was not there before.
func uniqueTest(before *define.Table, st Statement, k define.TableKey, was func(string) string) (t DataTest, ok bool) {
	if !k.Unique {
		return t, false
	}
	var columns []string
	for _, p := range k.Parts {
		c := was(p.Column)
		if _, there := before.Column(c); !there {
			return t, false // a new column, or an expression
		}
		e := mysql.Quote(c)
		if p.Prefix > 0 {
			e = "LEFT(" + e + ", " + strconv.Itoa(p.Prefix) + ")"
		}
		columns = append(columns, e)
	}
	for _, o := range before.Keys {
		if o.Unique && len(o.Parts) <= len(k.Parts) && slices.IndexFunc(o.Parts, func(p define.KeyPart) bool {
			return p.Prefix > 0 || !slices.ContainsFunc(k.Parts, func(q define.KeyPart) bool { return strings.EqualFold(was(q.Column), p.Column) && q.Prefix == 0 })
		}) < 0 {
			return t, false // it was unique already
		}
	}
	if st.Ignore || len(columns) == 0 {
		return t, false
	}
	where := ""
	if k.Name != "PRIMARY" {
		where = " WHERE " + strings.Join(columns, " IS NOT NULL AND ") + " IS NOT NULL"
	}
	list := strings.Join(columns, ", ")
	return DataTest{
		Says:   "the key " + k.Name + " is unique: if two rows have the same values, it fails, at the end of its work",
		Select: "SELECT " + list + ", COUNT(*) FROM " + st.Table.String() + where + " GROUP BY " + list + " HAVING COUNT(*) > 1 LIMIT 10",
	}, true
}

// columnTests are about a column that takes less than before.
func columnTests(st Statement, old, now define.TableColumn) (list []DataTest) {
	name := mysql.Quote(old.Name)
	from := " FROM " + st.Table.String() + " WHERE "
	if old.Nullable && !now.Nullable && !now.Auto {
		list = append(list, DataTest{
			Says:   "column " + old.Name + " becomes NOT NULL: a NULL in it makes it fail under a strict sql_mode, and is changed without one",
			Select: "SELECT COUNT(*) AS nulls" + from + name + " IS NULL HAVING COUNT(*) > 0",
		})
	}
	if strings.EqualFold(old.FullType, now.FullType) && old.Charset == now.Charset {
		return list
	}
	if low, high, ok := intRange(now); ok && isInt(old.Type) {
		if olow, ohigh, _ := intRange(old); compareInts(olow, low) >= 0 && compareInts(ohigh, high) <= 0 {
			return list
		}
		return append(list, DataTest{Says: "column " + old.Name + " becomes " + now.FullType + ": a number that does not fit makes it fail under a strict sql_mode, and is cut without one",
			Select: "SELECT " + name + from + name + " NOT BETWEEN " + low + " AND " + high + " LIMIT 10"})
	}
	if n, ok := charLength(now); ok {
		if o, was := charLength(old); was && o <= n && old.Charset == now.Charset {
			return list
		} else if was && o > n {
			list = append(list, DataTest{Says: "column " + old.Name + " becomes " + now.FullType + ": a longer value makes it fail under a strict sql_mode, and is cut without one",
				Select: "SELECT " + name + from + "CHAR_LENGTH(" + name + ") > " + strconv.Itoa(n) + " LIMIT 10"})
		}
	}
	if old.Charset != now.Charset && old.Charset != "" && now.Charset != "" && old.Charset != "binary" && now.Charset != "binary" {
		return append(list, DataTest{Says: "column " + old.Name + " becomes " + now.Charset + ": a character that it does not have makes it fail under a strict sql_mode, and becomes ? without one",
			Select: "SELECT " + name + from + "CONVERT(CONVERT(" + name + " USING " + now.Charset + ") USING " + old.Charset + ") <> BINARY " + name + " LIMIT 10"})
	}
	if len(list) == 0 || old.Type != now.Type {
		if old.Type == now.Type && (now.Type == "enum" || now.Type == "set") && strings.HasPrefix(now.FullType, strings.TrimSuffix(old.FullType, ")")) {
			return list // members were added at the end
		}
		if _, ok := charLength(now); ok && old.Type == now.Type {
			return list
		}
		list = append(list, DataTest{Says: "column " + old.Name + " goes from " + old.FullType + " to " + now.FullType + ": whether each value fits is known only when it runs"})
	}
	return list
}

// charLength is how many characters or bytes a column takes.
func charLength(c define.TableColumn) (n int, ok bool) {
	switch c.Type {
	case "char", "varchar", "binary", "varbinary":
	default:
		return 0, false
	}
	_, inside, _ := strings.Cut(c.FullType, "(")
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(inside), ")"))
	if err != nil {
		return 1, !strings.HasPrefix(c.Type, "var")
	}
	return n, true
}

func isInt(kind string) bool { return intBits[kind] > 0 }

var intBits = map[string]int{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}

// intRange is the least and the greatest number of a column.
func intRange(c define.TableColumn) (low, high string, ok bool) {
	bits := intBits[c.Type]
	if bits == 0 {
		return "", "", false
	}
	if c.Unsigned {
		return "0", strconv.FormatUint(1<<bits-1, 10), true
	}
	return strconv.FormatInt(-1<<(bits-1), 10), strconv.FormatUint(1<<(bits-1)-1, 10), true
}

// compareInts compares whole numbers as they are written.
func compareInts(a, b string) int {
	an, bn := strings.HasPrefix(a, "-"), strings.HasPrefix(b, "-")
	switch {
	case an != bn && an:
		return -1
	case an != bn:
		return 1
	}
	c := cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	if an {
		return -c
	}
	return c
}

// ruleTests are about foreign keys and checks that were not there before.
func ruleTests(f *Facts, st Statement, after string, was func(string) string) (list []DataTest) {
	old := map[string]bool{}
	for _, c := range constraints(f.Table.Create) {
		old[ruleText(f.Table.Create, c)] = true
	}
	for _, c := range constraints(after) {
		if old[ruleText(after, c)] {
			continue
		}
		if t, ok := foreignTest(&f.Table, st, c, was); ok {
			list = append(list, t)
			continue
		}
		if i := slices.IndexFunc(c, func(t sqltext.Token) bool { return t.Kind == sqltext.TokenWord && strings.EqualFold(t.Text, "CHECK") }); i >= 0 && !slices.ContainsFunc(c[i:], func(t sqltext.Token) bool { return strings.EqualFold(t.Text, "ENFORCED") }) {
			if inside, _, ok := sqltext.Group(c[i+1:]); ok && len(inside) > 0 {
				begin, end := sqltext.Span(inside)
				d := DataTest{Says: "a CHECK is added: a row that breaks it makes it fail", Select: "SELECT * FROM " + st.Table.String() + " WHERE NOT (" + after[begin:end] + ") LIMIT 10"}
				if slices.ContainsFunc(inside, func(t sqltext.Token) bool { // a column that is new, or has another name now
					_, there := f.Table.Column(t.Text)
					return t.Kind == sqltext.TokenName && (!there || !strings.EqualFold(was(t.Text), t.Text))
				}) {
					d.Select = ""
				}
				list = append(list, d)
			}
		}
	}
	return list
}

// ruleText is a constraint without its name.
func ruleText(create string, c []sqltext.Token) string {
	if len(c) > 2 && strings.EqualFold(c[0].Text, "CONSTRAINT") && c[1].Kind == sqltext.TokenName {
		c = c[2:]
	}
	begin, end := sqltext.Span(c)
	return create[begin:end]
}

// constraints are the elements of a CREATE TABLE that are neither columns nor keys.
func constraints(create string) (list [][]sqltext.Token) {
	t := sqltext.Tokens(create)
	open := slices.IndexFunc(t, func(x sqltext.Token) bool { return x.Kind == sqltext.TokenSign && x.Text == "(" })
	if open < 0 {
		return nil
	}
	inside, _, ok := sqltext.Group(t[open:])
	if !ok {
		return nil
	}
	for _, e := range sqltext.Elements(inside) {
		if len(e) > 0 && e[0].Kind == sqltext.TokenWord && (strings.EqualFold(e[0].Text, "CONSTRAINT") || strings.EqualFold(e[0].Text, "FOREIGN") || strings.EqualFold(e[0].Text, "CHECK")) {
			list = append(list, e)
		}
	}
	return list
}

// foreignTest looks for rows without a parent.
func foreignTest(before *define.Table, st Statement, c []sqltext.Token, was func(string) string) (t DataTest, ok bool) {
	at := slices.IndexFunc(c, func(x sqltext.Token) bool { return x.Kind == sqltext.TokenWord && strings.EqualFold(x.Text, "FOREIGN") })
	refs := slices.IndexFunc(c, func(x sqltext.Token) bool {
		return x.Kind == sqltext.TokenWord && strings.EqualFold(x.Text, "REFERENCES")
	})
	if at < 0 || refs < at+3 {
		return t, false
	}
	mine, _, ok := sqltext.Group(c[at+2:])
	if !ok {
		return t, false
	}
	r := cursor{t: c, i: refs + 1}
	parent, ok := r.name()
	if !ok {
		return t, false
	}
	theirs, _, ok := sqltext.Group(c[r.i:])
	if !ok || len(mine) != len(theirs) {
		return t, false
	}
	if parent.Schema == "" {
		parent.Schema = st.Table.Schema
	}
	var columns, on []string
	for i := range mine {
		if mine[i].Kind != sqltext.TokenName {
			continue
		}
		if _, there := before.Column(was(mine[i].Text)); !there {
			return DataTest{Says: "a foreign key to " + parent.String() + " is added over a new column: its default must be NULL, or a row of that table"}, true
		}
		name := mysql.Quote(was(mine[i].Text))
		columns = append(columns, "t."+name)
		on = append(on, "p."+mysql.Quote(theirs[i].Text)+" = t."+name)
	}
	list := strings.Join(columns, ", ")
	return DataTest{Says: "a foreign key to " + parent.String() + " is added: a row without its parent makes it fail (with foreign_key_checks on)",
		Select: fmt.Sprintf("SELECT %s FROM %s t WHERE %s IS NOT NULL AND NOT EXISTS (SELECT 1 FROM %s p WHERE %s) LIMIT 10", list, st.Table, strings.Join(columns, " IS NOT NULL AND "), parent, strings.Join(on, " AND "))}, true
}

// changesColumns reports whether there are other columns afterwards, or in another order: such an instant change makes a new version of the rows.
func changesColumns(f *Facts, st Statement, after string) bool {
	now, err := define.ParseTable(f.Table.Schema, after)
	if err != nil || len(now.Columns) != len(f.Table.Columns) {
		return true
	}
	for i, c := range now.Columns {
		old := f.Table.Columns[i].Name
		if to, ok := st.Renamed[strings.ToLower(old)]; ok {
			old = to
		}
		if !strings.EqualFold(c.Name, old) {
			return true
		}
	}
	return false
}

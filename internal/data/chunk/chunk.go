// Package chunk splits a table at key boundaries: by which key, where, the statement that reads a range, and the checksum of
// its rows that shows whether two servers, or a server and a backup, have the same rows.
package chunk

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/wire"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sqltext"
)

// Key is the index by which a table's rows are ordered and cut.
type Key struct {
	Name  string               // of the index
	Order []define.TableColumn // all its columns: ORDER BY
	Desc  []bool               // which of them the index has in descending order
	Cuts  int                  // how many of the first columns a cut may name; 0: it can order rows, but not be cut
}

// KeyOf chooses the key: the primary key, else the first unique index without NULL, by which InnoDB orders the rows too, else
// none. Source: MySQL manual, "Clustered and Secondary Indexes".
func KeyOf(t define.Table) (Key, bool) {
	for _, primary := range []bool{true, false} {
		for _, k := range t.Keys {
			if !k.Unique || k.Hidden || k.Special || primary != (k.Name == "PRIMARY") {
				continue
			}
			if key, ok := keyFrom(t, k); ok {
				return key, true
			}
		}
	}
	return Key{}, false
}

func keyFrom(t define.Table, k define.TableKey) (Key, bool) {
	key := Key{Name: k.Name}
	for _, p := range k.Parts {
		c, ok := t.Column(p.Column)
		if !ok || p.Prefix > 0 || c.Nullable && k.Name != "PRIMARY" {
			return Key{}, false
		}
		key.Order, key.Desc = append(key.Order, c), append(key.Desc, p.Descending)
	}
	for i, c := range key.Order {
		if key.Desc[i] || literalOf(c) == nil {
			break
		}
		key.Cuts++
	}
	if key.Cuts == len(key.Order) {
		return key, true
	}
	// Rows that are equal in the first columns must not fall on both sides of a cut: where a collation decides what is equal
	// their bytes do not show.
	for i, c := range key.Order[:key.Cuts] {
		if c.Charset != "" {
			key.Cuts = i
			break
		}
	}
	return key, true
}

// Whole reports whether cuts name all columns of the key, so that no two rows share a boundary.
func (k Key) Whole() bool { return k.Cuts == len(k.Order) }

// Bound is where a table is cut: the values of the key's first columns as SQL literals. One with fewer values comes after all
// rows that have them. nil is no bound.
type Bound []string

// Range is the rows after a bound and up to another: Lower < key <= Upper.
type Range struct {
	Lower Bound
	Upper Bound
}

// ErrBound says that a bound is not one that this package made: it is not put into a statement.
var ErrBound = errors.New("not a bound of this key")

// literalOf returns how values of a column are written in SQL so that the index is used, or nil if they cannot be: a FLOAT's
// text is not its value, and ENUM and SET are ordered by number but compared as text.
func literalOf(c define.TableColumn) func(v []byte) string {
	switch c.Type {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year":
		return func(v []byte) string { return string(v) }
	case "date", "datetime", "timestamp", "time", "uuid", "inet6", "inet4":
		return func(v []byte) string { return "'" + string(v) + "'" }
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		return func(v []byte) string { return "_binary " + hexOf(v) }
	case "bit":
		return func(v []byte) string { return "CAST(" + hexOf(v) + " AS UNSIGNED)" }
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		if c.Charset == "" {
			return nil
		}
		return func(v []byte) string { return "_" + c.Charset + " " + hexOf(v) }
	}
	return nil
}

// literalForm is what literalOf makes.
var literalForm = pattern.Lazy(`^(-?[0-9]+(\.[0-9]+)?|'[0-9a-fA-F:. -]*'|_[a-z0-9]+ (0x[0-9a-f]+|'')|CAST\(0x[0-9a-f]+ AS UNSIGNED\))$`)

func hexOf(v []byte) string {
	if len(v) == 0 {
		return "''"
	}
	return "0x" + hex.EncodeToString(v)
}

// Check refuses what is no bound of this key, such as one from a manifest of another table's definition.
func (k Key) Check(b Bound) error {
	if len(b) > k.Cuts {
		return fmt.Errorf("%w: %s for %s", ErrBound, digits.Counted(len(b), "value"), digits.Counted(k.Cuts, "column"))
	}
	for _, v := range b {
		if !literalForm().MatchString(v) {
			return fmt.Errorf("%w: %.40q", ErrBound, v)
		}
	}
	return nil
}

// Where is the condition for the rows of a range, as intervals of the index that do not overlap: a server reads nothing
// besides them. It is "" where the range has no bound. The bounds have passed Check.
func (k Key) Where(r Range) string {
	if len(r.Lower) == 1 && len(r.Upper) == 1 && isInteger(k.Order[0].Type) {
		// One comparison instead of two: a server spends a twentieth of its time for a row on each.
		if first, ok := new(big.Int).SetString(r.Lower[0], 10); ok {
			return mysql.Quote(k.Order[0].Name) + " BETWEEN " + first.Add(first, big.NewInt(1)).String() + " AND " + r.Upper[0]
		}
	}
	n := 0
	for n < len(r.Lower) && n < len(r.Upper) && r.Lower[n] == r.Upper[n] {
		n++
	}
	var or []string
	switch lower, upper := len(r.Lower) > n, len(r.Upper) > n; {
	case lower && upper: // the rest of the first value, all values between, the beginning of the last
		or = append(or, k.after(n, r.Lower)...)
		if n+1 == len(r.Upper) {
			or = append(or, k.compare(n, ">", r.Lower[n])+" AND "+k.compare(n, "<=", r.Upper[n]))
			break
		}
		or = append(or, k.compare(n, ">", r.Lower[n])+" AND "+k.compare(n, "<", r.Upper[n]))
		or = append(or, k.before(n, r.Upper)...)
	case lower:
		or = append(k.after(n, r.Lower), k.compare(n, ">", r.Lower[n]))
	case upper && n+1 == len(r.Upper):
		or = append(or, k.compare(n, "<=", r.Upper[n]))
	case upper:
		or = append([]string{k.compare(n, "<", r.Upper[n])}, k.before(n, r.Upper)...)
	case n > 0:
		return "FALSE" // from a row to itself
	default:
		return ""
	}
	var and []string
	for i := range n {
		and = append(and, k.compare(i, "=", r.Lower[i]))
	}
	if len(or) > 1 {
		for i := range or {
			or[i] = "(" + or[i] + ")"
		}
		or = []string{"(" + strings.Join(or, " OR ") + ")"}
	}
	return strings.Join(append(and, or...), " AND ")
}

// after returns the intervals that share the bound's value n and come after the bound, the nearest first.
func (k Key) after(n int, bound Bound) (or []string) {
	for depth := len(bound) - 1; depth > n; depth-- {
		or = append(or, k.chain(n, depth, bound, ">"))
	}
	return or
}

// before returns the intervals that share the bound's value n and come up to the bound, the farthest first.
func (k Key) before(n int, bound Bound) (or []string) {
	for depth := n + 1; depth < len(bound); depth++ {
		op := "<"
		if depth == len(bound)-1 {
			op = "<="
		}
		or = append(or, k.chain(n, depth, bound, op))
	}
	return or
}

// chain is equality in columns n to depth-1 and the comparison in column depth.
func (k Key) chain(n, depth int, bound Bound, op string) string {
	var and []string
	for i := n; i < depth; i++ {
		and = append(and, k.compare(i, "=", bound[i]))
	}
	return strings.Join(append(and, k.compare(depth, op, bound[depth])), " AND ")
}

func (k Key) compare(i int, op, literal string) string {
	return mysql.Quote(k.Order[i].Name) + " " + op + " " + literal
}

// OrderBy is the key's order.
func (k Key) OrderBy() string {
	names := make([]string, len(k.Order))
	for i, c := range k.Order {
		names[i] = mysql.Quote(c.Name)
		if k.Desc[i] {
			names[i] += " DESC"
		}
	}
	return strings.Join(names, ", ")
}

// Columns are those whose values are read and loaded: all but generated ones.
func Columns(t define.Table) []define.TableColumn {
	var out []define.TableColumn
	for _, c := range t.Columns {
		if !c.Generated {
			out = append(out, c)
		}
	}
	return out
}

// Expression is how a column is read: a FLOAT as the DOUBLE that it is, because its own text has six digits of it. Source: MySQL
// manual, "Problems with Floating-Point Values"; FLT_DIG in the servers' my_gcvt. Where an ENUM or SET has the empty string as a
// member, it and no member at all have the same text: then a SET is read by its number, and the ENUM's value 0 as zeros, with so
// many digits that they are no member. A server that loads them takes them for what they are.
func Expression(c define.TableColumn) string {
	name := mysql.Quote(c.Name)
	if (c.Type == "enum" || c.Type == "set") && emptyMember(c.FullType) {
		number := "CAST(CONVERT(LPAD(CAST(" + name + " AS UNSIGNED), 21, '0') USING " + c.Charset + ") AS BINARY)"
		if c.Type == "enum" {
			return "IF(" + name + " + 0 = 0, " + number + ", " + name + ")"
		}
		return number
	}
	if c.Type == "float" && !strings.Contains(c.FullType, "(") {
		return mysql.Quote(c.Name) + " * 1e0"
	}
	return mysql.Quote(c.Name)
}

// emptyMember reports whether an ENUM or SET has the empty string among its members.
func emptyMember(fullType string) bool {
	return slices.ContainsFunc(sqltext.Tokens(fullType), func(t sqltext.Token) bool {
		return t.Kind == sqltext.TokenString && sqltext.Dialect{}.Value(t) == ""
	})
}

// Select is the statement that reads the rows of a range in the order of the key, in a session prepared by
// mysql.Stream.ForRows. Without a key (ok of KeyOf false, the zero Key) it reads the whole table as the server has it.
func Select(t define.Table, k Key, r Range, purpose string) string {
	return selectOf(t, k, r, purpose, Expression)
}

func selectOf(t define.Table, k Key, r Range, purpose string, expression func(define.TableColumn) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "SELECT /* risso: %s */ SQL_NO_CACHE ", purpose)
	for i, c := range Columns(t) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(expression(c))
	}
	b.WriteString(source(t, k))
	if len(k.Order) == 0 {
		return b.String()
	}
	if where := k.Where(r); where != "" {
		b.WriteString(" WHERE " + where)
	}
	b.WriteString(" ORDER BY " + k.OrderBy())
	return b.String()
}

func source(t define.Table, k Key) string {
	from := " FROM " + mysql.Quote(t.Schema) + "." + mysql.Quote(t.Name)
	if t.Past {
		from += " FOR SYSTEM_TIME ALL"
	}
	if k.Name != "" {
		from += " FORCE INDEX (" + mysql.Quote(k.Name) + ")"
	}
	return from
}

// Source is a table with the key by which it is read.
type Source struct {
	Table define.Table
	Key   Key
}

// NotEmpty is the statement that returns, of some tables, the places of those that have rows, in the index that Select reads. It
// costs a server half of what a Select of each costs. A server takes some 60 tables at most.
func NotEmpty(list []Source, purpose string) string {
	var b strings.Builder
	for i, s := range list {
		noCache := "SQL_NO_CACHE " // servers want it in the first only
		if i > 0 {
			noCache = ""
			b.WriteString(" UNION ALL ")
		}
		fmt.Fprintf(&b, "(SELECT /* risso: %s */ %s%d%s LIMIT 1)", purpose, noCache, i, source(s.Table, s.Key))
	}
	return b.String()
}

// Next is the statement that finds the bound that ends the first rows of a range: it returns one row for Key.Literals, or none
// if the range has fewer rows. Its cost is that of walking the index over that many rows.
func Next(t define.Table, k Key, r Range, rows int64, purpose string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "SELECT /* risso: %s */ ", purpose)
	for i := range k.Cuts {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(mysql.Quote(k.Order[i].Name))
	}
	b.WriteString(source(t, k))
	if where := k.Where(r); where != "" {
		b.WriteString(" WHERE " + where)
	}
	fmt.Fprintf(&b, " ORDER BY %s LIMIT 1 OFFSET %d", k.OrderBy(), rows-1)
	return b.String()
}

// Bound takes the values that a cut needs from a row of Select, whose columns are Columns(t).
func (k Key) Bound(t define.Table, row []byte) (Bound, error) {
	values, err := wire.SplitRow(nil, row)
	if err != nil {
		return nil, err
	}
	columns := Columns(t)
	if len(values) != len(columns) {
		return nil, fmt.Errorf("a row of %s has %s for %s", mysql.Quote(t.Name), digits.Counted(len(values), "value"), digits.Counted(len(columns), "column"))
	}
	first := make([][]byte, k.Cuts)
	for i := range first {
		for j, c := range columns {
			if c.Name == k.Order[i].Name {
				first[i] = values[j]
			}
		}
	}
	return k.Literals(first)
}

// Literals makes a bound of a row of Next.
func (k Key) Literals(values [][]byte) (Bound, error) {
	if len(values) != k.Cuts {
		return nil, fmt.Errorf("%w: %s for %s", ErrBound, digits.Counted(len(values), "value"), digits.Counted(k.Cuts, "column"))
	}
	b := make(Bound, k.Cuts)
	for i, v := range values {
		if v == nil {
			return nil, fmt.Errorf("%w: NULL in a key", ErrBound)
		}
		b[i] = literalOf(k.Order[i])(v)
	}
	return b, k.Check(b)
}

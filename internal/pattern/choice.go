package pattern

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Name splits schema.table, as all commands write names of tables: a name with dots, or one that begins with a backtick, is in
// backticks. Without a dot the table is empty.
func Name(s string) (schema, table string, err error) {
	first, rest, ok := unquote(s)
	if !ok && strings.HasPrefix(s, "`") {
		return "", "", fmt.Errorf("%q is no name: its quote is not closed", s)
	}
	if !ok {
		if i := strings.IndexByte(s, '.'); i >= 0 {
			first, rest = s[:i], s[i:]
		} else {
			first, rest = s, ""
		}
	}
	if rest == "" {
		return first, "", nil
	}
	second, ok := strings.CutPrefix(rest, ".")
	if ok && strings.HasPrefix(second, "`") {
		second, rest, ok = unquote(second)
		ok = ok && rest == ""
	}
	if !ok || first == "" || second == "" {
		return "", "", fmt.Errorf("%q is no name of a table: write schema.table, and a name with dots in backticks", s)
	}
	return first, second, nil
}

// Cut is strings.Cut at the first sep that is not in backticks. Other quotes are characters of a name.
func Cut(s string, sep byte) (before, after string, found bool) {
	quoted := false
	for i := range len(s) {
		switch {
		case s[i] == '`':
			quoted = !quoted
		case s[i] == sep && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// unquote reads the name in backticks at the beginning of s.
func unquote(s string) (name, rest string, ok bool) {
	if !strings.HasPrefix(s, "`") {
		return "", s, false
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '`' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 == len(s) || s[i+1] != '`' {
			return b.String(), s[i+1:], true
		}
		b.WriteByte('`')
		i++
	}
	return "", s, false
}

// Schema is the name of a schema as a person wrote it, possibly quoted.
func Schema(s string) string {
	if name, rest, ok := unquote(s); ok && rest == "" {
		return name
	}
	return s
}

// Table is a pattern of tables: schema.table, with stars in either. Where nothing of it is quoted any of its dots may be the one between.
type Table struct {
	text, schema, name string
	quoted             bool
}

// ParseTable reads one.
func ParseTable(s string) (Table, error) {
	schema, name, err := Name(s)
	if err != nil {
		return Table{}, err
	}
	if name == "" {
		return Table{}, fmt.Errorf("%q names no schema: write schema.table, and a name with dots in backticks", s)
	}
	return Table{s, schema, name, s != schema+"."+name}, nil
}

// Names are the two names, and whether there can be no others.
func (t Table) Names() (schema, name string, exact bool) {
	return t.schema, t.name, !strings.Contains(t.schema+t.name, "*") && (t.quoted || !strings.Contains(t.name, "."))
}

// Match reports whether a table matches.
func (t Table) Match(schema, name string) bool {
	if t.quoted {
		return Stars(t.schema, schema) && Stars(t.name, name)
	}
	return Stars(t.text, schema+"."+name)
}

// MatchSchema reports whether a schema may have tables that match.
func (t Table) MatchSchema(schema string) bool {
	if t.quoted {
		return Stars(t.schema, schema)
	}
	for i := range len(t.text) + 1 { // names may have dots, but after a star none is looked for in a table's
		if Stars(t.text[:i], schema+".") && !(strings.Contains(t.text[:i], "*") && strings.Contains(t.text[i:], ".")) {
			return true
		}
	}
	return false
}

// Choice is which schemas and tables are asked for, and which of the patterns matched a name. The zero value is everything. Its methods
// may be called by several goroutines.
type Choice struct {
	schemas, texts []string
	tables         []Table

	mu   sync.Mutex
	met  []bool
	near []string // the name that was most like one that was not met
}

// NewChoice reads what was asked for.
func NewChoice(schemas, tables []string) (*Choice, error) {
	c := &Choice{}
	for _, s := range schemas {
		c.schemas = append(c.schemas, Schema(s))
	}
	for _, s := range tables {
		t, err := ParseTable(s)
		if err != nil {
			return nil, err
		}
		c.tables = append(c.tables, t)
	}
	c.texts = slices.Concat(schemas, tables)
	c.met, c.near = make([]bool, len(c.texts)), make([]string, len(c.texts))
	return c, nil
}

// All reports whether everything is chosen.
func (c *Choice) All() bool { return len(c.texts) == 0 }

// look notes whether a pattern was met by a name, or nearly.
func (c *Choice) look(i int, name string, is bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.met[i] = c.met[i] || is
	if !c.met[i] && c.near[i] == "" && Near(c.texts[i], name) {
		c.near[i] = name
	}
	return is
}

// Schema reports whether a whole schema is chosen.
func (c *Choice) Schema(name string) bool {
	is := c.All()
	for i, p := range c.schemas {
		is = c.look(i, name, Stars(p, name)) || is
	}
	return is
}

// Table reports whether a table is chosen, by its own name or by its schema's.
func (c *Choice) Table(schema, name string) bool {
	is := c.Schema(schema)
	return c.listed(schema, name) || is
}

func (c *Choice) listed(schema, name string) (is bool) {
	for i, t := range c.tables {
		is = c.look(len(c.schemas)+i, schema+"."+name, t.Match(schema, name)) || is
	}
	return is
}

// Both reports whether a table is chosen if schemas and tables narrow each other.
func (c *Choice) Both(schema, name string) bool {
	is := len(c.schemas) == 0 || c.Schema(schema)
	return is && (c.listed(schema, name) || len(c.tables) == 0)
}

// May reports whether a schema may have tables that are chosen; both: if schemas and tables narrow each other.
func (c *Choice) May(schema string, both bool) bool {
	whole := len(c.schemas) > 0 && slices.ContainsFunc(c.schemas, func(p string) bool { return Stars(p, schema) })
	some := slices.ContainsFunc(c.tables, func(t Table) bool { return t.MatchSchema(schema) })
	if both {
		return (whole || len(c.schemas) == 0) && (some || len(c.tables) == 0)
	}
	return c.All() || whole || some
}

// Tables are the patterns of tables.
func (c *Choice) Tables() []Table { return c.tables }

// Schemas are the patterns of schemas.
func (c *Choice) Schemas() []string { return c.schemas }

// Unmet is an error that names what no name met until now; nil where all was met.
func (c *Choice) Unmet() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := &UnmetError{}
	for i, met := range c.met {
		if met {
			continue
		}
		u.Names = append(u.Names, c.texts[i])
		if near := c.near[i]; near != "" && !slices.Contains(u.Near, near) {
			u.Near = append(u.Near, near)
		}
	}
	if len(u.Names) == 0 {
		return nil
	}
	return u
}

// UnmetError says that some names that were asked for do not exist.
type UnmetError struct {
	Names []string
	Near  []string // what is there and is called nearly so
}

func (u *UnmetError) Error() string { return strings.Join(u.Names, ", no ") }

// Exact is the same without the patterns, which may be there for what comes and goes; nil where only they are unmet.
func (u *UnmetError) Exact() *UnmetError {
	e := &UnmetError{Near: u.Near}
	for _, n := range u.Names {
		if !strings.Contains(n, "*") {
			e.Names = append(e.Names, n)
		}
	}
	if len(e.Names) == 0 {
		return nil
	}
	return e
}

// Remedy is a guess at what was meant; may be empty.
func (u *UnmetError) Remedy() string {
	if len(u.Near) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(u.Near, " or ") + "?"
}

// Near reports whether two names are at most two characters apart, or differ in case.
func Near(a, b string) bool {
	const most = 2
	return strings.EqualFold(a, b) || min(len(a), len(b)) > most && Distance(a, b, most) <= most
}

// Distance is how many characters have to be put in, left out or changed, as far as limit.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit || len(a) > 64 {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			d := diagonal
			if a[i-1] != b[j-1] {
				d++
			}
			diagonal = row[j]
			row[j] = min(d, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

package chunk

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/mysql/define"
)

// Order says in which order a table's rows are by the first columns of its key, so far as that can change: bounds that were found
// under another order would cut it into ranges that overlap, and leave none out. series is what servers with the same default
// collations have in common. "" if the table does not have one of the columns.
func Order(t define.Table, columns []string, series string) string {
	var b strings.Builder
	for _, name := range columns {
		c, ok := t.Column(name)
		if !ok {
			return ""
		}
		kind := c.Type
		switch kind {
		case "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year", "bit":
			kind = "number"
		}
		collation := c.Collation
		if collation == "" && c.Charset == t.Charset {
			collation = t.Collation
		}
		if collation == "" && c.Charset != "" { // the character set's default, which is the server's to say
			collation = series
		}
		fmt.Fprintf(&b, "%q %s %s %s\n", name, kind, c.Charset, collation)
	}
	return b.String()
}

// Columns are the names of those by which a table is cut; nil if it is not.
func (k Key) Columns() []string {
	var out []string
	for _, c := range k.Order[:k.Cuts] {
		out = append(out, c.Name)
	}
	return out
}

package alike

import (
	"strings"

	"github.com/rissodb/risso/internal/mysql/define"
)

// Collations are the default collation of each character set on a server.
type Collations map[string]string

// Of is a column's collation, or the default of its character set.
func (d Collations) Of(c define.TableColumn) string {
	if c.Collation != "" || c.Charset == "" {
		return CharsetName(c.Collation)
	}
	return CharsetName(d[c.Charset])
}

// CharsetOf is a column's character set: JSON's is always utf8mb4.
func CharsetOf(c define.TableColumn) string {
	if c.Type == "json" {
		return "utf8mb4"
	}
	return CharsetName(c.Charset)
}

// CharsetName makes utf8 and utf8mb3 one, also in names of collations: MySQL 8.0.30 and MariaDB 10.6 renamed it.
func CharsetName(s string) string {
	if s == "utf8" || strings.HasPrefix(s, "utf8_") {
		return "utf8mb3" + strings.TrimPrefix(s, "utf8")
	}
	return s
}

package report

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sqltext"
)

// showCommands are the statements that describe a class's tables, ready to be run.
func showCommands(c *digest.Class) []string {
	db := ""
	if len(c.Samples) > 0 {
		db = c.Samples[0].DB
	} else if all := names(c, "db"); len(all) == 1 {
		db = all[0]
	}
	var out []string
	for _, t := range c.Tables {
		schema := t.Schema
		if schema == "" {
			schema = db
		}
		if strings.EqualFold(schema, "information_schema") || strings.EqualFold(schema, "performance_schema") || strings.EqualFold(t.Name, "dual") {
			continue // the server's own
		}
		from, table := "", identifier(t.Name)
		if schema != "" {
			from, table = " FROM "+identifier(schema), identifier(schema)+"."+table
		}
		out = append(out, "SHOW TABLE STATUS"+from+" LIKE "+likePattern(t.Name)+`\G`, "SHOW CREATE TABLE "+table+`\G`)
	}
	return out
}

func identifier(s string) string { return mysql.Quote(plain(s)) }

// likePattern is a name as LIKE takes it literally.
func likePattern(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\\\`, `'`, `''`, `_`, `\_`, `%`, `\%`).Replace(plain(s)) + "'"
}

var versionNumber = pattern.Lazy(`\d+\.\d+\.\d+`)

// serverOf is what the log's header said about the server.
func serverOf(p *digest.Profile) mysql.Server {
	for _, s := range p.Sources {
		if at := versionNumber().FindStringIndex(s.Server); at != nil {
			return mysql.Of(fleet.ServerOf(s.Server[at[0]:], s.Server))
		}
	}
	return mysql.Server{}
}

// explainable returns the statements that show a sample's plan, or says why there are none. It executes nothing:
// EXPLAIN without ANALYZE only plans.
func explainable(x digest.Sample, verb string, s mysql.Server, redacted bool) (statements, why string) {
	query := strings.TrimSpace(x.Query)
	switch {
	case redacted:
		return "", "no EXPLAIN: the literals are redacted"
	case x.Cut > 0:
		return "", fmt.Sprintf("no EXPLAIN: the sample is cut by %s bytes", digits.Thousands(x.Cut))
	case x.Cut < 0:
		return "", "no EXPLAIN: the server kept only the beginning of the sample"
	case len(query) > maxSample:
		return "", "no EXPLAIN: the sample is long; --output json has all of it"
	case plain(query) != query:
		return "", "no EXPLAIN: the sample contains bytes that are not text"
	case several(query):
		return "", "no EXPLAIN: more than one statement was sent at once, and the others would be run"
	}
	use := ""
	if x.DB != "" {
		use = "USE " + identifier(x.DB) + "; "
	}
	switch verb {
	case "SELECT", "WITH", "TABLE", "VALUES":
		return use + "EXPLAIN " + query + `\G`, ""
	case "INSERT", "REPLACE":
		inner := asSelect(query, verb)
		if inner == "" {
			return "", "" // a plain INSERT has no plan
		}
		if !s.ExplainsWrites() {
			return use + "EXPLAIN " + inner + `\G`, ""
		}
		return use + "EXPLAIN " + query + `\G`, ""
	case "UPDATE", "DELETE":
		if s.ExplainsWrites() {
			return use + "EXPLAIN " + query + `\G`, ""
		}
		if inner := asSelect(query, verb); inner != "" {
			return use + "EXPLAIN " + inner + `\G`, ""
		}
		return "", "no EXPLAIN: this server explains no writes, and the statement has no simple SELECT form"
	}
	return "", ""
}

// asSelect returns the SELECT that reads what a write has to read; "" if there is no simple one.
func asSelect(query, verb string) string {
	words := topWords(query)
	find := func(from int, name string) int {
		for i := from; i < len(words); i++ {
			if words[i].is(query, name) {
				return i
			}
		}
		return -1
	}
	start := find(0, verb)
	if start < 0 || start > 0 { // WITH … UPDATE
		return ""
	}
	switch verb {
	case "INSERT", "REPLACE":
		i := find(1, "SELECT")
		if i < 0 || find(1, "SET") >= 0 && find(1, "SET") < i {
			return ""
		}
		end := len(query)
		if j := find(i, "DUPLICATE"); j > 0 && words[j-1].is(query, "ON") {
			end = words[j-1].at
		}
		return strings.TrimSpace(query[words[i].at:end])
	case "UPDATE":
		set := find(1, "SET")
		if set < 0 {
			return ""
		}
		first := 1
		for first < set && (words[first].is(query, "LOW_PRIORITY") || words[first].is(query, "IGNORE")) {
			first++
		}
		tables, rest := query[words[first].at:words[set].at], ""
		for _, w := range []string{"WHERE", "ORDER", "LIMIT"} {
			if i := find(set, w); i > 0 {
				rest = query[words[i].at:]
				break
			}
		}
		return strings.TrimSpace("SELECT * FROM " + strings.TrimSpace(tables) + " " + rest)
	default: // DELETE FROM t …; of several tables it is not simple
		from := find(1, "FROM")
		if from < 0 || find(from, "USING") >= 0 {
			return ""
		}
		for i := 1; i < from; i++ {
			if !words[i].is(query, "LOW_PRIORITY") && !words[i].is(query, "QUICK") && !words[i].is(query, "IGNORE") {
				return ""
			}
		}
		return "SELECT * " + strings.TrimSpace(query[words[from].at:])
	}
}

// word is a bare word of a statement, outside of parentheses, quotes and comments; a quoted name is a word that is no keyword.
type word struct{ at, end int }

func (w word) is(query, name string) bool { return strings.EqualFold(query[w.at:w.end], name) }

// several reports whether there is anything after a semicolon.
func several(q string) bool {
	ended := false
	for _, t := range sqltext.Tokens(q) {
		if ended = ended || t.Kind == sqltext.TokenSign && t.Text == ";"; ended && t.Text != ";" {
			return true
		}
	}
	return false
}

// topWords walks over a statement once.
func topWords(q string) (out []word) {
	depth := 0
	for _, t := range sqltext.Tokens(q) {
		switch {
		case t.Kind == sqltext.TokenSign && t.Text == "(":
			depth++
		case t.Kind == sqltext.TokenSign && t.Text == ")":
			depth--
		case depth == 0 && t.Kind == sqltext.TokenName:
			out = append(out, word{t.Begin, t.Begin})
		case depth == 0 && (t.Kind == sqltext.TokenWord || t.Kind == sqltext.TokenNumber):
			out = append(out, word{t.Begin, t.End})
		}
	}
	return out
}

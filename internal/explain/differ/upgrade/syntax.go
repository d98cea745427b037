package upgrade

import (
	"strings"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sqltext"
)

// goneFunctions are built-in functions that were removed. Sources: MySQL manual, "Changes in MySQL 8.0", "What Is New in MySQL 8.4" and "…
// 9.x": Removed.
var goneFunctions = []struct {
	mysql   fleet.Version
	names   string
	instead string
}{
	{80000, "encode decode encrypt des_encrypt des_decrypt", "AES_ENCRYPT() and AES_DECRYPT(), or SHA2(); what was encrypted has to be decrypted before the upgrade"},
	{80011, "password", "ALTER USER … IDENTIFIED BY for accounts, SHA2() for an application's own passwords"},
	{80000, "area astext aswkb asbinary astextn aswkt buffer centroid contains convexhull crosses dimension disjoint distance endpoint envelope equals exteriorring geomcollfromtext geomcollfromwkb geometryfromtext geometryfromwkb geometryn geometrytype geomfromtext geomfromwkb glength interiorringn intersects isclosed isempty issimple linefromtext linefromwkb linestringfromtext linestringfromwkb mlinefromtext mlinefromwkb mpointfromtext mpointfromwkb mpolyfromtext mpolyfromwkb multilinestringfromtext multipointfromtext multipolygonfromtext numgeometries numinteriorrings numpoints overlaps pointfromtext pointfromwkb pointn polyfromtext polyfromwkb polygonfromtext polygonfromwkb srid startpoint touches within x y", "the same with ST_ in front (MBR… for some)"},
	{80400, "wait_until_sql_thread_after_gtids", "WAIT_FOR_EXECUTED_GTID_SET()"},
	{80000, "json_append", "JSON_ARRAY_APPEND()"},
}

// calls are the names of functions called without backticks and without a schema, in small letters.
func calls(code []sqltext.Token) (list []string) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(code); i++ {
		if code[i].Kind != sqltext.TokenWord && code[i].Kind != sqltext.TokenName || code[i+1].Text != "(" || i > 0 && code[i-1].Text == "." {
			continue
		}
		if i > 0 && notCall[strings.ToUpper(code[i-1].Text)] {
			continue
		}
		if w := strings.ToLower(code[i].Text); !seen[w] {
			seen[w] = true
			list = append(list, w)
		}
	}
	return list
}

// notCall are words after which a name before a parenthesis is no function.
var notCall = setOf("PROCEDURE", "FUNCTION", "TABLE", "INTO", "KEY", "INDEX", "CALL", "REFERENCES", "UNIQUE", "JOIN", "VIEW")

// call looks at a function that something calls.
func (r *rules) call(object, name, where string) {
	for _, g := range goneFunctions {
		if r.crosses(g.mysql, fleet.Never) && containsWord(g.names, name) {
			r.add(Problem{ID: "function.removed", Severity: Error, Object: object,
				Trouble: fleet.Trouble{What: where + " calls " + strings.ToUpper(name) + "()",
					Why: "the new version has no such function: what uses it fails, at the first call at the latest", Remedy: "in its place: " + g.instead}})
		}
	}
	if name == "found_rows" && r.to.AtLeast(80017, fleet.Never) {
		r.add(Problem{ID: "syntax.found_rows", Severity: Note, Object: object,
			Trouble: fleet.Trouble{What: where + " uses FOUND_ROWS()", Why: "it and SQL_CALC_FOUND_ROWS are deprecated and will be removed", Remedy: "a second statement with COUNT(*)"}})
	}
}

// Statement looks at a statement of an application.
func Statement(from *differ.Description, to fleet.Server, object, sql string) []Problem {
	r := &rules{d: from, to: to}
	code := sqltext.Tokens(sql)
	for _, c := range calls(code) {
		r.call(object, c, "it")
	}
	r.syntax(object, code)
	return r.list
}

// syntax finds words that are no longer read.
func (r *rules) syntax(object string, code []sqltext.Token) {
	upper := func(i int) string {
		if i < 0 || i >= len(code) || code[i].Kind != sqltext.TokenWord {
			return ""
		}
		return strings.ToUpper(code[i].Text)
	}
	group := false
	for i := range code {
		w := upper(i)
		switch {
		case w == "GROUP" && upper(i+1) == "BY":
			group = true
		case group && (w == "ORDER" || w == "HAVING" || w == "LIMIT" || w == "UNION" || w == "SELECT" || w == "INTO" || w == "FOR" || code[i].Text == ";"):
			group = false
		case group && (w == "ASC" || w == "DESC") && r.crosses(80013, fleet.Never):
			group = false
			r.add(Problem{ID: "syntax.group_by", Severity: Error, Object: object,
				Trouble: fleet.Trouble{What: "GROUP BY … " + w,
					Why: "the new version refuses it with a syntax error, and GROUP BY alone no longer sorts", Remedy: "GROUP BY … ORDER BY … " + w}, Refused: true})
		case w == "SQL_CALC_FOUND_ROWS" && r.to.AtLeast(80017, fleet.Never):
			r.add(Problem{ID: "syntax.found_rows", Severity: Note, Object: object,
				Trouble: fleet.Trouble{What: "it uses SQL_CALC_FOUND_ROWS", Why: "it is deprecated and will be removed", Remedy: "a second statement with COUNT(*)"}})
		case w == "SQL_CACHE" && r.crosses(80003, fleet.Never):
			r.add(Problem{ID: "syntax.sql_cache", Severity: Error, Object: object,
				Trouble: fleet.Trouble{What: "it uses SQL_CACHE", Why: "the query cache and its words are gone: a syntax error", Remedy: "leave the word out"}, Refused: true})
		case oldReplication[w+" "+upper(i+1)] != "" && r.crosses(80400, fleet.Never):
			old := w + " " + upper(i+1)
			r.add(Problem{ID: "syntax.replication", Severity: Error, Object: object,
				Trouble: fleet.Trouble{What: "it uses " + old, Why: "8.4 and later refuse the old words for replication: a syntax error", Remedy: "in its place: " + oldReplication[old]}, Refused: true})
		case w == "PROCEDURE" && upper(i+1) == "ANALYSE" && r.crosses(80000, fleet.Never):
			r.add(Problem{ID: "syntax.analyse", Severity: Error, Object: object,
				Trouble: fleet.Trouble{What: "it uses PROCEDURE ANALYSE()", Why: "it was removed: a syntax error", Remedy: "leave it out"}, Refused: true})
		case w == "IDENTIFIED" && i > 0 && r.grants(code[:i]) && r.crosses(80011, fleet.Never):
			r.add(Problem{ID: "syntax.grant", Severity: Error, Object: object,
				Trouble: fleet.Trouble{What: "GRANT … IDENTIFIED BY",
					Why: "GRANT no longer makes accounts or sets passwords: a syntax error", Remedy: "CREATE USER or ALTER USER first, then GRANT"}, Refused: true})
		}
	}
}

// oldReplication are beginnings of statements that 8.4 no longer reads, and what stands in their place. Source: MySQL manual, "What Is New in MySQL
// 8.4", Features Removed.
var oldReplication = map[string]string{"CHANGE MASTER": "CHANGE REPLICATION SOURCE TO", "RESET MASTER": "RESET BINARY LOGS AND GTIDS", "SHOW MASTER": "SHOW BINARY LOG STATUS, or SHOW BINARY LOGS", "PURGE MASTER": "PURGE BINARY LOGS",
	"START SLAVE": "START REPLICA", "STOP SLAVE": "STOP REPLICA", "RESET SLAVE": "RESET REPLICA", "SHOW SLAVE": "SHOW REPLICA STATUS, or SHOW REPLICAS"}

// grants reports whether the statement in which code ends is a GRANT.
func (r *rules) grants(code []sqltext.Token) bool {
	for i := len(code) - 1; i >= 0 && code[i].Text != ";"; i-- {
		switch {
		case code[i].Kind != sqltext.TokenWord:
		case strings.EqualFold(code[i].Text, "GRANT"):
			return true
		case strings.EqualFold(code[i].Text, "USER"):
			return false
		}
	}
	return false
}

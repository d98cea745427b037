package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"strings"
)

// Rights are what the grants of a session's account allow it, those of its active roles among them. Privileges are named in
// capital letters, as the server names them.
type Rights struct {
	granted []grant
	revoked []grant  // MySQL, partial_revokes: of what stands for all schemas, not for these
	Roles   []string // that the account was granted, quoted as the server writes them; those that are not active give nothing
	all     bool     // the server runs without privileges
}

// grant is a line of SHOW GRANTS.
type grant struct {
	schema     string // a pattern as GRANT has it; "*": all
	table      string // "*": the whole schema
	privileges []string
	literal    bool // the name of the schema is no pattern
}

// Rights reads the grants of the session's account.
func (s *Stream) Rights(ctx context.Context) (Rights, error) {
	return readRights(func(statement string, row func(line string)) error {
		return s.Query(ctx, statement, func(r [][]byte) error { row(string(r[0])); return nil })
	})
}

// Rights reads the grants of the connection's account.
func (c *Conn) Rights(ctx context.Context) (Rights, error) {
	return readRights(func(statement string, row func(line string)) error {
		return c.Query(ctx, statement, func(r []sqldriver.Value) error { row(text(r[0])); return nil })
	})
}

func readRights(query func(statement string, row func(line string)) error) (r Rights, err error) {
	err = query("SHOW /* risso: what may this account do? */ GRANTS", r.add)
	if ErrorNumber(err) == erOptionPrevents {
		return Rights{all: true}, nil // --skip-grant-tables
	}
	if err != nil {
		return r, fmt.Errorf("read the grants of the account: %w", err)
	}
	return r, nil
}

// erOptionPrevents is ER_OPTION_PREVENTS_STATEMENT; SHOW GRANTS gives it with --skip-grant-tables only.
const erOptionPrevents = 1290

// FollowGrants is the statement that gives the account what the mirror of binary logs needs.
func (s Server) FollowGrants() string { return s.Grants(s.QuotedAccount(), "", JobFollow)[0] }

// add reads a line of SHOW GRANTS. Lines that give no privilege on tables (roles, proxies, single routines) are passed over.
func (r *Rights) add(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	list, rest := cutOutside(rest, " ON ")
	if rest == "" && verb == "GRANT" {
		roles, _ := cutOutside(list, " TO ")
		for roles != "" {
			var role string
			role, roles = cutOutside(roles, ",")
			r.Roles = append(r.Roles, strings.TrimSpace(role))
		}
	}
	if rest == "" || verb != "GRANT" && verb != "REVOKE" {
		return
	}
	schema, rest := cutName(rest)
	if !strings.HasPrefix(rest, ".") {
		return // PROCEDURE `a`.`b`, a user that is stood in for
	}
	table, rest := cutName(rest[1:])
	g := grant{schema: schema, table: table, literal: verb == "REVOKE"}
	for list != "" {
		var one string
		one, list = cutOutside(list, ",")
		if name, columns, _ := strings.Cut(strings.TrimSpace(one), " ("); columns == "" { // of some columns is not of the table
			g.privileges = append(g.privileges, canonicalPrivilege(strings.ToUpper(name)))
		}
	}
	if strings.HasSuffix(rest, " WITH "+grantOption) {
		g.privileges = append(g.privileges, grantOption)
	}
	if verb == "REVOKE" {
		r.revoked = append(r.revoked, g)
	} else {
		r.granted = append(r.granted, g)
	}
}

// cutOutside cuts at the first separator that stands neither in quotes nor in parentheses.
func cutOutside(s, separator string) (before, after string) {
	quote, depth := byte(0), 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0 // a doubled one opens again at once
			}
		case c == '`' || c == '"' || c == '\'':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0 && strings.HasPrefix(s[i:], separator):
			return s[:i], s[i+len(separator):]
		}
	}
	return s, ""
}

// cutName cuts a name, quoted or not, off the beginning.
func cutName(s string) (name, rest string) {
	if s == "" {
		return "", ""
	}
	quote := s[0]
	if quote != '`' && quote != '"' {
		end := strings.IndexAny(s, ". ")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] == quote {
			if i+1 == len(s) || s[i+1] != quote {
				return b.String(), s[i+1:]
			}
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

// Have says whether the account has any of some privileges on a table; "" for table: on all tables of the schema; "" for
// schema: on all schemas, also those that are yet to be made.
func (r Rights) Have(schema, table string, any ...string) bool {
	has := func(g grant) bool {
		return slices.ContainsFunc(g.privileges, func(p string) bool {
			return slices.Contains(any, p) || p == allPrivileges && !slices.Equal(any, []string{grantOption})
		})
	}
	if r.all {
		return true
	}
	revoked := slices.ContainsFunc(r.revoked, func(g grant) bool { return has(g) && (g.schema == schema || schema == "" && !SystemSchema(g.schema)) })
	return slices.ContainsFunc(r.granted, func(g grant) bool {
		switch {
		case !has(g):
			return false
		case g.schema == "*" && g.table == "*":
			return !revoked
		case schema == "" || !g.of(schema):
			return false
		}
		return g.table == "*" || table != "" && g.table == table
	})
}

// of says whether a grant is for a schema. Its name is a pattern where it is for the whole schema.
func (g grant) of(schema string) bool {
	if g.literal || g.table != "*" {
		return g.schema == schema
	}
	return g.schema == schema || like(g.schema, schema)
}

// like compares as LIKE does, with \ before what is meant as it is.
func like(pattern, text string) bool {
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '%':
			for j := len(text); j >= 0; j-- {
				if like(pattern[i+1:], text[j:]) {
					return true
				}
			}
			return false
		case text == "":
			return false
		case c == '\\' && i+1 < len(pattern):
			i++
			if pattern[i] != text[0] {
				return false
			}
		case c != '_' && c != text[0]:
			return false
		}
		text = text[1:]
	}
	return text == ""
}

// BackupGrants is the statement that gives the account all that a backup of the whole server needs.
func (s Server) BackupGrants() string { return s.Grants(s.QuotedAccount(), "", JobBackup)[0] }

// SchemaGrants are the statements that let the account see all of one schema, the definitions of routines among it.
func (s Server) SchemaGrants(schema string) []string {
	account, routines := s.QuotedAccount(), "SELECT ON mysql.proc"
	switch {
	case s.MariaDB() && s.Number >= 110301: // https://mariadb.com/kb/en/grant/#show-create-routine
		routines = "SHOW CREATE ROUTINE ON " + grantName(schema) + ".*"
	case !s.MariaDB() && s.Number >= 80020: // https://dev.mysql.com/doc/relnotes/mysql/8.0/en/news-8-0-20.html
		routines = "SHOW_ROUTINE ON *.*"
	case !s.MariaDB() && s.Number >= 80000:
		routines = "SELECT ON *.*"
	}
	return []string{"GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON " + grantName(schema) + ".* TO " + account, "GRANT " + routines + " TO " + account}
}

// grantName is the name of a schema as GRANT takes it for all of the schema: there it is a pattern.
func grantName(schema string) string {
	return Quote(strings.NewReplacer(`\`, `\\`, "_", `\_`, "%", `\%`).Replace(schema))
}

// InnoDBTables counts the InnoDB tables of users and their schemas that the server has, whoever asks; known is false for an
// account without PROCESS.
func (s *Stream) InnoDBTables(ctx context.Context, server Server) (tables, schemas int, known bool, err error) {
	from := "INNODB_SYS_TABLES"
	if !server.MariaDB() && server.Number >= 80000 {
		from = "INNODB_TABLES"
	}
	// One line for each partition (t#P#p0), each index of words (FTS_…) and each table that is being altered (#sql…).
	rows, err := s.QueryMaps(ctx, "SELECT /* risso: how many tables are there, seen or not? */ COUNT(DISTINCT SUBSTRING_INDEX(LOWER(NAME), '#p#', 1)) AS t, COUNT(DISTINCT SUBSTRING_INDEX(NAME, '/', 1)) AS s FROM information_schema."+from+
		` WHERE NAME LIKE '%/%' AND NAME NOT LIKE 'mysql/%' AND NAME NOT LIKE 'sys/%' AND NAME NOT LIKE '%/FTS\_%' AND NAME NOT LIKE '%/#sql%'`)
	if ClassOf(err) == ClassPrivilege {
		return 0, 0, false, nil
	}
	if err != nil || len(rows) != 1 {
		return 0, 0, false, fmt.Errorf("count the InnoDB tables: %w", err)
	}
	_, err = fmt.Sscan(rows[0]["t"]+" "+rows[0]["s"], &tables, &schemas)
	return tables, schemas, true, err
}

package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sqltext"
)

// Rights are what the grants of a session's account allow it, those of its active roles among them. Privileges are named in
// capital letters, as the server names them.
type Rights struct {
	granted []grant
	revoked []grant  // MySQL, partial_revokes: of what is for all schemas, not for these
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
		return c.Query(ctx, statement, func(r []sqldriver.Value) error { row(Text(r[0])); return nil })
	})
}

func readRights(query func(statement string, row func(line string)) error) (r Rights, err error) {
	err = query("SHOW /* risso: what may this account do? */ GRANTS", r.add)
	if ErrorNumber(err) == errno.OptionPrevents {
		return Rights{all: true}, nil // --skip-grant-tables
	}
	if err != nil {
		return r, fmt.Errorf("read the grants of the account: %w", err)
	}
	return r, nil
}

// FollowGrants is the statement that gives the account what the mirror of binary logs needs.
func (s Server) FollowGrants() string { return s.Grants(s.QuotedAccount(), "", JobFollow)[0] }

// WithGrantOption ends lines of SHOW GRANTS.
const WithGrantOption = " WITH GRANT OPTION"

// add reads a line of SHOW GRANTS. Lines that give no privilege on tables (proxies, single routines) are skipped.
func (r *Rights) add(line string) {
	dialect := sqltext.Dialect{ANSIQuotes: true} // strings have single quotes there, names either of the others
	read, err := dialect.ReadGrant(line)
	if i := strings.LastIndex(line, " TO '"); err != nil && i > 0 { // MySQL 5.7 writes the account as it is, with its quotes
		end := ""
		if strings.HasSuffix(line, WithGrantOption) {
			end = WithGrantOption
		}
		read, err = dialect.ReadGrant(line[:i] + " TO 'x'@'%'" + end)
	}
	switch {
	case err != nil:
		return
	case read.Verb == "GRANT" && read.On == 0:
		for _, role := range read.Privileges {
			r.Roles = append(r.Roles, role.Name)
		}
		return
	case read.Object.End == 0: // PROCEDURE `a`.`b`, a user that is proxied, a default role
		return
	}
	g := grant{schema: read.Object.Schema, table: read.Object.Name, literal: read.Verb == "REVOKE"}
	for _, p := range read.Privileges {
		if !strings.Contains(p.Name, "(") { // of some columns is not of the table
			g.privileges = append(g.privileges, canonicalPrivilege(strings.ToUpper(p.Name)))
		}
	}
	if read.Grantable {
		g.privileges = append(g.privileges, grantOption)
	}
	if read.Verb == "REVOKE" {
		r.revoked = append(r.revoked, g)
	} else {
		r.granted = append(r.granted, g)
	}
}

// Have reports whether the account has any of some privileges on a table; "" for table: on all tables of the schema; "" for
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

// of reports whether a grant is for a schema. Its name is a pattern if it is for the whole schema.
func (g grant) of(schema string) bool {
	if g.literal || g.table != "*" {
		return g.schema == schema
	}
	return g.schema == schema || sqltext.Like(g.schema, schema)
}

// BackupGrants is the statement that gives the account all that a backup of the whole server needs.
func (s Server) BackupGrants() string { return s.Grants(s.QuotedAccount(), "", JobBackup)[0] }

// SchemaGrants are the statements that let the account back up all of one schema: see it, the definitions of routines among it, and lock its
// tables without transactions.
func (s Server) SchemaGrants(schema string) []string {
	account, routines := s.QuotedAccount(), "SELECT ON mysql.proc"
	switch {
	case s.MariaDB() && s.Number >= 110301: // https://mariadb.com/kb/en/grant/#show-create-routine
		routines = "SHOW CREATE ROUTINE ON " + QuoteGrantSchema(schema) + ".*"
	case !s.MariaDB() && s.Number >= 80020: // https://dev.mysql.com/doc/relnotes/mysql/8.0/en/news-8-0-20.html
		routines = "SHOW_ROUTINE ON *.*"
	case !s.MariaDB() && s.Number >= 80000:
		routines = "SELECT ON *.*"
	}
	return []string{"GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, LOCK TABLES ON " + QuoteGrantSchema(schema) + ".* TO " + account, "GRANT " + routines + " TO " + account}
}

// QuoteGrantSchema is the name of a schema as GRANT takes it for all of the schema: there it is a pattern.
func QuoteGrantSchema(schema string) string {
	return Quote(sqltext.SchemaPattern(schema))
}

// InnoDBTables counts all InnoDB tables of users and their schemas, even those that the account may not see; known is false for an
// account without PROCESS.
func (s *Stream) InnoDBTables(ctx context.Context, server Server) (tables, schemas int, known bool, err error) {
	return readInnoDBTables(s.QueryMaps(ctx, server.innoDBTables()))
}

// innoDBTables is the question of InnoDBTables. The table that answers it was given another name in MySQL 8.0.
func (s Server) innoDBTables() string {
	from := "INNODB_SYS_TABLES"
	if !s.MariaDB() && s.Number >= 80000 {
		from = "INNODB_TABLES"
	}
	// One line for each partition (t#P#p0), each index of words (FTS_…) and each table that is being altered (#sql…).
	return "SELECT /* risso: how many tables are there, seen or not? */ COUNT(DISTINCT SUBSTRING_INDEX(LOWER(NAME), '#p#', 1)) AS t, COUNT(DISTINCT SUBSTRING_INDEX(NAME, '/', 1)) AS s FROM information_schema." + from +
		` WHERE NAME LIKE '%/%' AND NAME NOT LIKE 'mysql/%' AND NAME NOT LIKE 'sys/%' AND NAME NOT LIKE '%/FTS\_%' AND NAME NOT LIKE '%/#sql%'`
}

func readInnoDBTables(rows []map[string]string, err error) (tables, schemas int, known bool, _ error) {
	if ClassOf(err) == ClassPrivilege {
		return 0, 0, false, nil
	}
	if err == nil && len(rows) != 1 {
		err = fmt.Errorf("%d rows", len(rows))
	}
	if err != nil {
		return 0, 0, false, fmt.Errorf("count the InnoDB tables: %w", err)
	}
	_, err = fmt.Sscan(rows[0]["t"]+" "+rows[0]["s"], &tables, &schemas)
	return tables, schemas, true, err
}

// SeesAllTables reports whether the account may read every table, so that information_schema shows it all of them.
func (c *Conn) SeesAllTables(ctx context.Context) (bool, error) {
	r, err := c.Rights(ctx)
	return r.Have("", "", "SELECT"), err
}

// RightsOf reads lines of SHOW GRANTS of an account, those of its roles among them if they are to count.
func RightsOf(lines []string) (r Rights) {
	for _, line := range lines {
		r.add(line)
	}
	return r
}

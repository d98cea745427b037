package mysql

import (
	"errors"
	"slices"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// TestReadRights: the lines that a server returns, a server without privileges, and one that does not answer.
func TestReadRights(t *testing.T) {
	asks := func(lines []string, err error) func(string, func(string)) error {
		return func(statement string, row func(string)) error {
			if !strings.HasPrefix(statement, "SHOW ") || !strings.HasSuffix(statement, " GRANTS") {
				t.Errorf("got asked %s; want \"SHOW \" at its beginning, \" GRANTS\" at its end", statement)
			}
			for _, l := range lines {
				row(l)
			}
			return err
		}
	}
	r, err := readRights(asks([]string{"GRANT SELECT ON *.* TO `r`@`%`", "GRANT `a`@`%`,`b`@`%` TO `r`@`%`"}, nil))
	if err != nil || !r.Have("", "", "SELECT") || r.Have("", "", "INSERT") || len(r.Roles) != 2 {
		t.Errorf("got %+v, %v; want SELECT and two roles", r, err)
	}
	r, err = readRights(asks(nil, &driver.MySQLError{Number: errno.OptionPrevents}))
	if err != nil || !r.Have("any", "table", "SUPER") || !r.Have("", "", "GRANT OPTION") {
		t.Errorf("without privileges: got %+v, %v; want all", r, err)
	}
	gone := errors.New("gone")
	if r, err = readRights(asks(nil, gone)); !errors.Is(err, gone) || r.Have("", "", "SELECT") {
		t.Errorf("got %+v, %v; want nothing and the error", r, err)
	}
}

// TestSchemaGrants: who may see routines, by version: https://mariadb.com/kb/en/grant/#show-create-routine, and the release notes of
// MySQL 8.0.20.
func TestSchemaGrants(t *testing.T) {
	for version, want := range map[string]string{
		"5.7.44": "GRANT SELECT ON mysql.proc TO", "8.0.0": "GRANT SELECT ON *.* TO", "8.0.19": "GRANT SELECT ON *.* TO", "8.0.20": "GRANT SHOW_ROUTINE ON *.* TO", "9.7.0": "GRANT SHOW_ROUTINE ON *.* TO",
		"10.11.6-MariaDB": "GRANT SELECT ON mysql.proc TO", "11.3.0-MariaDB": "GRANT SELECT ON mysql.proc TO", "11.3.1-MariaDB": "GRANT SHOW CREATE ROUTINE ON `sh\\_op`.* TO", "11.8.2-MariaDB": "GRANT SHOW CREATE ROUTINE ON `sh\\_op`.* TO",
	} {
		got := Server{Server: fleet.ServerOf(version, ""), Account: "r@%"}.SchemaGrants("sh_op")
		if len(got) != 2 || !strings.HasPrefix(got[0], "GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, LOCK TABLES ON `sh\\_op`.* TO 'r'@'%'") || !strings.HasPrefix(got[1], want+" 'r'@'%'") {
			t.Errorf("%s: got %q, want %s", version, got, want)
		}
	}
	s := Server{Server: fleet.ServerOf("8.0.36", ""), Account: "r@%"}
	for what, got := range map[string]string{"SELECT": s.BackupGrants(), "REPLICATION SLAVE": s.FollowGrants()} {
		if !strings.HasPrefix(got, "GRANT ") || !strings.Contains(got, what) || !strings.HasSuffix(got, "TO 'r'@'%'") {
			t.Errorf("got %s, want %s", got, what)
		}
	}
}

// TestInnoDBTables: the table that is asked, by version (MySQL 8.0's manual: INNODB_SYS_TABLES became INNODB_TABLES), and what is read of
// the answer: an account without PROCESS gets error 1227.
func TestInnoDBTables(t *testing.T) {
	for version, want := range map[string]string{"5.7.44": "INNODB_SYS_TABLES", "8.0.0": "INNODB_TABLES", "9.7.0": "INNODB_TABLES", "10.6.1-MariaDB": "INNODB_SYS_TABLES", "11.8.2-MariaDB": "INNODB_SYS_TABLES"} {
		if got := (Server{Server: fleet.ServerOf(version, "")}).innoDBTables(); !strings.Contains(got, " FROM information_schema."+want+" WHERE ") {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
	}
	row := map[string]string{"t": "12", "s": "3"}
	gone := errors.New("gone")
	for _, c := range []struct {
		rows            []map[string]string
		err             error
		tables, schemas int
		known, fails    bool
	}{
		{[]map[string]string{row}, nil, 12, 3, true, false}, {nil, &driver.MySQLError{Number: 1227}, 0, 0, false, false}, {nil, gone, 0, 0, false, true}, {nil, nil, 0, 0, false, true}, {[]map[string]string{row, row}, nil, 0, 0, false, true}, {[]map[string]string{{"t": "many"}}, nil, 0, 0, true, true},
	} {
		tables, schemas, known, err := readInnoDBTables(c.rows, c.err)
		if tables != c.tables || schemas != c.schemas || known != c.known || (err != nil) != c.fails || c.err == gone && !errors.Is(err, gone) {
			t.Errorf("%v, %v: got %d, %d, %t, %v; want %d, %d, %t", c.rows, c.err, tables, schemas, known, err, c.tables, c.schemas, c.known)
		}
	}
}

// TestGTIDsOfMany: numbers of more than one digit, equal sets, and sets that hold one another.
func TestGTIDsOfMany(t *testing.T) {
	for _, text := range []string{uuidA + ":12", uuidA + ":1234567890123"} {
		if g, err := ParseGTID(text); err != nil || g.String() != text {
			t.Errorf("%s: got %s, %v", text, g, err)
		}
	}
	if g, err := ParseGTID(uuidA + ":12"); err != nil || g.Number != 12 {
		t.Errorf("got %d, %v; want 12", g.Number, err)
	}
	var s GTIDSet
	for _, n := range []uint64{10, 11, 20} {
		s.Add(GTID{Source: uuidA, Number: n})
	}
	if got := s.String(); got != uuidA+":10-11:20" {
		t.Errorf("got %s, want 10-11 and 20", got)
	}
	for _, c := range []struct {
		a, b  string
		equal bool
	}{{"A:1-5", "A:1-5", true}, {"A:1-5", "A:1-4", false}, {"A:1-4", "A:1-5", false}, {"", "A:1", false}, {"A:1", "", false}, {"", "", true}, {"0-1-5", "0-1-5", true}, {"0-1-5", "0-1-6", false}, {"0-1-6", "0-1-5", false}} {
		if got := set(t, c.a).Equal(set(t, c.b)); got != c.equal {
			t.Errorf("%s and %s: got equal %v, want %v", c.a, c.b, got, c.equal)
		}
	}
	if got := set(t, "0-1-5,1-1-1,2-2-2").String(); got != "0-1-5,1-1-1,2-2-2" {
		t.Errorf("got %s, want \"0-1-5,1-1-1,2-2-2\"", got)
	}
	g := GTID{Source: uuidA, Number: 1}
	if err := g.UnmarshalText(nil); err != nil || !g.IsZero() {
		t.Errorf("no text: got %v, %v; want none", g, err)
	}
	if list := set(t, "A:1").Domains(); !slices.Equal(list, nil) {
		t.Errorf("got %v, want no domains", list)
	}
}

package cli

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/face/cli/doctor"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestDoctorAccounts: what doctor says about an account is what the account can do, on every server: with roles that are active and
// with those that are not, revoked in parts, with odd names, by SUPER instead of the narrow privilege, with no privileges checked.
func TestDoctorAccounts(t *testing.T) {
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec, "performance_schema=ON")
			db := openNode(t, n)
			maria := strings.HasPrefix(spec, "mariadb")
			serve, replicas := "PROCESS, REPLICATION CLIENT", "REPLICATION SLAVE"
			if maria {
				serve, replicas = "PROCESS, REPLICA MONITOR", "REPLICATION MASTER ADMIN"
			}
			all := fmt.Sprintf("GRANT %s ON *.* TO %%[1]s; GRANT SELECT ON performance_schema.* TO %%[1]s", serve)
			cases := []struct {
				what, user, job, sql string
				may                  bool
			}{
				{"odd name", "o'dd@na`me\"", "serve", all, true},
				{"blanks and a percent sign", "x %_ y", "serve", all, true},
				{"a schema's privilege is not everybody's", "own", "explain", "CREATE DATABASE IF NOT EXISTS shop; GRANT SELECT, SHOW VIEW ON shop.* TO %[1]s", false},
				{"nothing", "nothing", "serve", "DO 0", false},
				{"all but the right to give", "nogrant", "restore", "GRANT ALL PRIVILEGES ON *.* TO %[1]s", false},
				{"all", "everything", "restore", "GRANT ALL PRIVILEGES ON *.* TO %[1]s WITH GRANT OPTION", true},
				{"who makes users may not restore", "maker", "restore", "GRANT CREATE USER ON *.* TO %[1]s WITH GRANT OPTION", false},
				{"one schema as a pattern", "pattern", "bench", "GRANT PROCESS ON *.* TO %[1]s; GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER ON `sbt%%`.* TO %[1]s", true},
				{"replication client by SUPER", "super", "serve", "GRANT PROCESS, SUPER ON *.* TO %[1]s; GRANT SELECT ON performance_schema.* TO %[1]s", spec != "mariadb-11.8"},
				{"logs by SUPER", "super2", "follow", "GRANT REPLICATION SLAVE, SUPER ON *.* TO %[1]s", spec != "mariadb-11.8"},
				{"logs, replication and their format by SUPER", "super3", "mend", "GRANT SELECT, SHOW VIEW, PROCESS, INSERT, DELETE, SUPER, " + replicas + " ON *.* TO %[1]s", spec != "mariadb-11.8"},
				{"replicas are not SUPER's", "super4", "mend", "GRANT SELECT, SHOW VIEW, PROCESS, INSERT, DELETE, SUPER ON *.* TO %[1]s", false},
				{"no logs", "nologs", "follow", "GRANT REPLICATION SLAVE ON *.* TO %[1]s", false},
			}
			type one = struct {
				what, user, job, sql string
				may                  bool
			}
			if spec != "mysql-5.7" {
				active, idle := "SET DEFAULT ROLE watchers TO %[1]s", "DO 0"
				if maria {
					active = "SET DEFAULT ROLE watchers FOR %[1]s"
				}
				role := "CREATE ROLE IF NOT EXISTS watchers; " + strings.ReplaceAll(all, "%[1]s", "watchers") + "; GRANT watchers TO %[1]s; "
				cases = append(cases, one{"an active role", "actor", "serve", role + active, true}, one{"a role that is not active", "sleeper", "serve", role + idle, false})
			}
			if spec == "mysql-9.7" {
				cases = append(cases, one{"revoked in part", "partly", "explain", "SET GLOBAL partial_revokes = ON; GRANT SELECT, SHOW VIEW, PROCESS ON *.* TO %[1]s; CREATE DATABASE IF NOT EXISTS secret; REVOKE SELECT ON secret.* FROM %[1]s", false})
			}
			for _, c := range cases {
				account := literalOf(c.user) + "@'localhost'"
				mustExec(t, db, "CREATE USER "+account+" IDENTIFIED BY 'x'")
				for _, q := range strings.Split(fmt.Sprintf(c.sql+"%.0[1]s", account), "; ") {
					mustExec(t, db, q)
				}
				code, list := doctorSays(t, n, c.user, c.job)
				if may := code == fault.OK; may != c.may {
					t.Errorf("%s: doctor ends with %d, may: %t; %v", c.what, code, c.may, list)
				}
				checkDoctor(t, db, n, c.what, c.user, c.job, list)
			}
		})
	}
}

// checkDoctor does what the account is said to be able to do, and grants it what is said to be missing.
func checkDoctor(t *testing.T, db *sql.DB, n *sandbox.Node, what, user, job string, list []doctor.Finding) {
	t.Helper()
	for _, f := range list {
		if f.Level != doctor.FindBad || !strings.Contains(f.Text, "is missing privileges") {
			continue
		}
		if statements := asked(n, job); len(statements) > 0 && len(refused(t, n, user, statements)) == 0 {
			t.Errorf("%s: doctor says that the account may not %s, and it may: %s", what, job, f.Remedy)
		}
		for _, q := range strings.Split(f.Remedy, "; ") {
			mustExec(t, db, q)
		}
		if code, list := doctorSays(t, n, user, job); code != fault.OK {
			t.Errorf("%s: with the remedy doctor ends with %d: %v, want fault.OK", what, code, list)
		}
	}
	for _, err := range refused(t, n, user, asked(n, job)) {
		t.Errorf("%s: doctor says that the account may %s: %v", what, job, err)
	}
}

// asked are statements that a job asks a server.
func asked(n *sandbox.Node, job string) []string {
	status, replicas := "SHOW REPLICA STATUS", "SHOW REPLICAS"
	switch {
	case n.Program.Family == sandbox.FamilyMariaDB:
		replicas = "SHOW REPLICA HOSTS"
	case strings.HasPrefix(n.Version, "5.") || n.Version < "8.0.22":
		status, replicas = "SHOW SLAVE STATUS", "SHOW SLAVE HOSTS"
	}
	return map[string][]string{
		"serve":  {status, "SELECT 1 FROM performance_schema.threads LIMIT 1", "SELECT 1 FROM information_schema.INNODB_METRICS LIMIT 1"},
		"follow": {"SHOW BINARY LOGS"},
		"mend":   {status, replicas, "SHOW BINARY LOGS", "SET SESSION binlog_format = ROW"},
	}[job]
}

// refused runs statements as an account, and returns the errors.
func refused(t *testing.T, n *sandbox.Node, user string, statements []string) (list []error) {
	t.Helper()
	own, err := sql.Open("mysql", fmt.Sprintf("%s:x@unix(%s)/", user, n.Socket))
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for _, q := range statements {
		if _, err := own.Exec(q); err != nil {
			list = append(list, fmt.Errorf("%s: %w", q, err))
		}
	}
	return list
}

func doctorSays(t *testing.T, n *sandbox.Node, user, job string) (int, []doctor.Finding) {
	t.Helper()
	code, out, said := call(t, "doctor", "--no-host", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--dsn", "db="+fmt.Sprintf("%s:x@unix(%s)/", user, n.Socket), "--for", job, "-o", "json")
	var a doctor.DoctorAnswer
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("doctor: %d %s %s: %v", code, out, said, err)
	}
	return code, a.Findings
}

// literalOf quotes a name for CREATE USER.
func literalOf(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// TestDoctorNoGrants: a server that checks no privileges lets everybody do everything, and doctor and grants say nothing else.
func TestDoctorNoGrants(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec)
			if err := n.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := n.Start(t.Context(), "--skip-grant-tables"); err != nil {
				t.Fatal(err)
			}
			for _, user := range []string{"root", "nobody"} {
				if code, list := doctorSays(t, n, user, "restore"); code != fault.OK {
					t.Errorf("%s: got %d %v, want fault.OK", user, code, list)
				}
			}
		})
	}
}

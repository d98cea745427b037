package gather_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestLeavesNoClasses: a look at many tables, each of whose SHOW CREATE TABLE is a class of statements of its own, does not fill the server's
// table of classes.
func TestLeavesNoClasses(t *testing.T) {
	const tables = 100
	for _, kind := range []string{"mysql-9.7", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind, "performance_schema=ON")
			c := sandboxtest.Connect(t, node)
			exec := func(s string) {
				t.Helper()
				if err := c.Exec(t.Context(), s); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			exec("CREATE DATABASE d")
			for i := range tables {
				exec(fmt.Sprintf("CREATE TABLE d.t%d (a INT, KEY ka (a), KEY kb (a)) ENGINE=InnoDB", i))
			}
			exec("CREATE USER eye@'%' IDENTIFIED BY 'Eye-1-see'")
			exec("GRANT SELECT, PROCESS ON *.* TO eye@'%'")
			eye, err := mysql.ParseTarget("eye:Eye-1-see@unix(" + node.Socket + ")/")
			if err != nil {
				t.Fatal(err)
			}
			left := func(target mysql.Target) (all, creates int) {
				t.Helper()
				exec("TRUNCATE performance_schema.events_statements_summary_by_digest")
				a, err := gather.Look(t.Context(), target, gather.Options{})
				if err != nil || len(a.Findings) < tables {
					t.Fatalf("got %d findings, %v", len(a.Findings), err)
				}
				for _, x := range []struct {
					where string
					n     *int
				}{{"", &all}, {" WHERE DIGEST_TEXT LIKE 'SHOW CREATE TABLE%'", &creates}} {
					text, err := c.Text(t.Context(), "SELECT COUNT(*) FROM performance_schema.events_statements_summary_by_digest"+x.where)
					if err != nil {
						t.Fatal(err)
					}
					if *x.n, err = strconv.Atoi(text); err != nil {
						t.Fatal(err)
					}
				}
				return all, creates
			}
			if all, creates := left(sandboxtest.Target(t, node)); creates > 0 || all > 60 {
				t.Errorf("a look at %d tables left %d classes, %d of them SHOW CREATE TABLE; want none of these", tables, all, creates)
			}
			all, creates := left(eye)
			t.Logf("by an account that may not say so: %d classes, %d of them SHOW CREATE TABLE", all, creates)
			exec("GRANT UPDATE ON performance_schema.threads TO eye@'%'")
			if _, creates = left(eye); creates > 0 {
				t.Errorf("an account that may leave its sessions out left %d SHOW CREATE TABLE", creates)
			}
		})
	}
}

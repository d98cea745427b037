package fence

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// restart kills a server and starts it again.
func restart(t *testing.T, n *sandbox.Node, args ...string) *mysql.Conn {
	t.Helper()
	if err := n.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-n.Ended()
	if err := n.Start(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
	return sandboxtest.Connect(t, n)
}

// TestBoots: what is said of how a server would come up is so, and what is said to mend it does.
func TestBoots(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec)
			c := sandboxtest.Connect(t, n)
			boots := func(want string) Boot {
				t.Helper()
				b, err := Boots(t.Context(), c)
				if err != nil || b.Writable != want {
					t.Errorf("got %+v, %v, want %s", b, err, want)
				}
				return b
			}
			tells := c.Server.KeepsSettings() || len(c.Server.TailLines()) > 0 // MySQL 5.7 does not
			first := map[bool]string{true: "yes", false: "unknown"}[tells]
			b := boots(first)
			run(t, c, "SET GLOBAL read_only = ON")                                          // this hides it, where nothing is kept
			boots(map[bool]string{true: "yes", false: "unknown"}[c.Server.KeepsSettings()]) // administrators can write: super_read_only is OFF
			run(t, c, "SET GLOBAL read_only = OFF")
			if c.Server.KeepsSettings() {
				run(t, c, b.Statements...)
				boots("no")
			} else {
				file := filepath.Join(filepath.Dir(n.Datadir), "my.cnf")
				text, err := os.ReadFile(file)
				if err == nil {
					err = os.WriteFile(file, append(text, "\n[mysqld]\n"+strings.Join(b.Lines, "\n")+"\n"...), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			c = restart(t, n)
			state, err := stateOf(t.Context(), c, Options{})
			if err != nil || !c.Server.Closed(state.ReadOnly) || state.Super == "OFF" {
				t.Errorf("it came up with %+v, %v", state, err)
			}
			boots(map[bool]string{true: "no", false: "unknown"}[tells])
			if is, err := CameUp(t.Context(), c); err != nil || is != tells {
				t.Errorf("it came up read-only: %t, %v", is, err)
			}
			if err := Back(t.Context(), c, AsPrimary(c.Server)); err != nil {
				t.Error(err)
			}
			run(t, c, c.Server.CloseWrites()[0])
			if is, err := CameUp(t.Context(), c); err != nil || is {
				t.Errorf("somebody closed it: %t, %v", is, err)
			}
		})
	}
}

// TestTail: a MariaDB that crashed as a primary commits what no replica acknowledged when it is started, unless it is told that it is a replica now.
func TestTail(t *testing.T) {
	for _, told := range []bool{false, true} {
		n := sandboxtest.Up(t, "mariadb")
		c := sandboxtest.Connect(t, n)
		accounts(t, c)
		run(t, c, "SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC, GLOBAL rpl_semi_sync_master_timeout = 600000", "SET GLOBAL rpl_semi_sync_master_enabled = ON")
		done := begin(t, client(t, n, "app"), "INSERT INTO test.t VALUES (1)")
		in(t, c, "app", "semi-sync ACK")
		var args []string
		if told {
			for _, line := range c.Server.TailLines() {
				args = append(args, "--"+strings.ReplaceAll(line, " = ", "="))
			}
		}
		c = restart(t, n, args...)
		if err := <-done; err == nil {
			t.Error("a client was told that its transaction is committed")
		}
		if got, want := rows(t, c), map[bool]string{false: "1", true: ""}[told]; got != want {
			t.Errorf("told %t: rows %q, want %q", told, got, want)
		}
	}
}

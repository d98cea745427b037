package mysql_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// drawSet writes a set as nobody would: intervals in any order that overlap and touch, sources twice, large letters; for servers that know tags also
// those, blanks between intervals, and UUIDs in other forms, which older ones take in some places or not at all.
func drawSet(r *rand.Rand, tags bool) string {
	sources := []string{uuidOf, "3E11FA47-71CA-11E1-9E33-C80AA9429563", "0e11fa47-71ca-11e1-9e33-c80aa9429562"}
	if tags {
		sources = append(sources, "4e11fa4771ca11e19e33c80aa9429562", "{5e11fa47-71ca-11e1-9e33-c80aa9429562}")
	}
	var parts []string
	for range r.IntN(6) {
		part := sources[r.IntN(len(sources))]
		for i := range 1 + r.IntN(6) {
			if tags && r.IntN(4) == 0 {
				part += ":" + []string{"a", "B", "_x1"}[r.IntN(3)]
			} else if tags && i > 0 && r.IntN(5) == 0 {
				part += " "
			}
			from := 1 + r.IntN(30)
			part += ":" + strconv.Itoa(from)
			if r.IntN(2) == 0 {
				part += "-" + strconv.Itoa(from+r.IntN(8))
			}
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, []string{",", " ,\n", ","}[r.IntN(3)])
}

// TestGTIDServers: sets are read, written, subtracted and compared as servers do it, whatever they look like.
func TestGTIDServers(t *testing.T) {
	for _, spec := range []string{"mysql-5.7", "mysql-8.0", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			c := sandboxtest.Connect(t, sandboxtest.Lend(t, spec))
			r := rand.New(rand.NewPCG(15, 1))
			parse := func(s string) mysql.GTIDSet {
				t.Helper()
				set, err := mysql.ParseGTIDSet(s)
				if err != nil {
					t.Fatalf("%q: %v", s, err)
				}
				return set
			}
			for range 200 {
				x, y := drawSet(r, spec == "mysql-9.7"), drawSet(r, spec == "mysql-9.7")
				a, b := parse(x), parse(y)
				for _, q := range []struct{ what, ask, got string }{
					{"normal form", fmt.Sprintf("GTID_SUBTRACT(%s, '')", mysql.Literal(x)), a.String()},
					{"subtract", fmt.Sprintf("GTID_SUBTRACT(%s, %s)", mysql.Literal(x), mysql.Literal(y)), a.Subtract(b).String()},
					{"intersect", fmt.Sprintf("GTID_SUBTRACT(%[1]s, GTID_SUBTRACT(%[1]s, %[2]s))", mysql.Literal(x), mysql.Literal(y)), a.Intersect(b).String()},
					{"union", fmt.Sprintf("GTID_SUBTRACT(CONCAT(%[1]s, ',', %[2]s), '')", mysql.Literal(x), mysql.Literal(y)), a.Union(b).String()},
					{"subset", fmt.Sprintf("GTID_SUBSET(%s, %s)", mysql.Literal(x), mysql.Literal(y)), map[bool]string{true: "1", false: "0"}[b.ContainsSet(a)]},
				} {
					want, err := c.Text(t.Context(), "SELECT "+q.ask)
					if err != nil {
						t.Fatalf("%s: %v", q.ask, err)
					}
					if want = strings.ReplaceAll(want, "\n", ""); q.got != want {
						t.Fatalf("%s of %q and %q: got %s, the server says %s", q.what, x, y, q.got, want)
					}
				}
			}
		})
	}
}

// half are sets that servers take for what is left of them: without intervals, or with one that ends before it begins. Here they are refused, for somebody
// has lost something. A sign is what old servers take.
var half = map[string]bool{uuidOf: true, uuidOf + ":1-0": true, uuidOf + ":5-3": true, uuidOf + ":1-": true, uuidOf + ":x": true, uuidOf + ":+1": true}

const uuidOf = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

// TestGTIDRefused: what servers do not take for a set is not taken here, and the other way round.
func TestGTIDRefused(t *testing.T) {
	const a = uuidOf
	for _, spec := range []string{"mysql-5.7", "mysql-8.0", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			c := sandboxtest.Connect(t, sandboxtest.Lend(t, spec))
			for _, s := range []string{"", ",", " , ", a, a + ":", a + ":0", a + ":1-0", a + ":5-3", a + ":1:", a + "::1", a + ":1-", a + ":-1", a + ":1-2-3", a + ":x", a + ":1 2", a + " :1", a + ": 1", a + ":1 -2", a + ":1- 2",
				a + ":9223372036854775806", a + ":9223372036854775807", a + ":9223372036854775808", a + ":1-9223372036854775807", a + ":01", a + ":+1", a[1:] + ":1", "g" + a[1:] + ":1", "{" + a + ":1", a + ":1," + a + ":2", a + ":1;", "0-1-5", a + ":1\n", "\t" + a + ":1"} {
				_, err := mysql.ParseGTIDSet(s)
				_, asked := c.Text(t.Context(), "SELECT GTID_SUBTRACT("+mysql.Literal(s)+", '')")
				if half[s] {
					if err == nil {
						t.Errorf("%q: taken, want an error", s)
					}
					continue
				}
				if (err == nil) != (asked == nil) && s != "0-1-5" {
					t.Errorf("%q: got %v, the server says %v", s, err, asked)
				}
			}
		})
	}
}

// TestWaitApplied: what a MariaDB wrote itself, as the primary that it was, is applied there; it waits for what another one wrote.
func TestWaitApplied(t *testing.T) {
	t.Parallel()
	c := sandboxtest.Connect(t, sandboxtest.Up(t, "mariadb", "log_bin=binlog", "log_slave_updates=ON"))
	for _, s := range []string{"CREATE DATABASE w", "SET SESSION gtid_domain_id = 3", "CREATE TABLE w.t (id INT)", "SET SESSION server_id = 77", "CREATE TABLE w.u (id INT)"} {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	own, err := c.Text(t.Context(), "SELECT @@GLOBAL.server_id")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"0-OWN-1": true, "0-OWN-1,3-OWN-1": true, "3-77-2": false, "0-OWN-1,3-77-2": false, "0-OWN-1000": false} {
		set, err := mysql.ParseGTIDSet(strings.ReplaceAll(text, "OWN", own))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := mysql.WaitApplied(t.Context(), c, set, 100*time.Millisecond); err != nil || got != want {
			t.Errorf("%s: %t, %v, want %t", text, got, err, want)
		}
	}
}

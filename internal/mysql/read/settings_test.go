package read_test

import (
	"fmt"
	"testing"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestSettingsAtOnce: what is set is known at the next reading, as a number and as text; while nothing is set, settings are
// queried at one of ten readings.
func TestSettingsAtOnce(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec)
			db, err := n.DB()
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var traffic mysql.Traffic
			conn, err := mysql.Connect(t.Context(), sandboxtest.Target(t, n), &traffic)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			r := read.NewReader(&traffic)
			r.Connected()
			at := int64(1_790_000_050) // nothing that is read once a minute falls due in the readings to come
			read := func() {
				t.Helper()
				at++
				if err := r.Read(t.Context(), conn, at); err != nil {
					t.Fatal(err)
				}
			}
			read()
			for _, c := range []struct{ set, name, text string }{
				{"max_connections = 77", "max_connections", "77"}, {"max_connections = 78", "max_connections", "78"}, {"read_only = ON", "read_only", "ON"}, {"read_only = OFF", "read_only", "OFF"},
			} {
				if _, err := db.ExecContext(t.Context(), "SET GLOBAL "+c.set); err != nil {
					t.Fatal(err)
				}
				read()
				if !r.Fresh || r.Variables[c.name] != c.text {
					t.Errorf("SET GLOBAL %s: the next reading says %s, read anew %t; want r.Fresh true, r.Variables[c.name] %s",
						c.set, r.Variables[c.name], r.Fresh, c.text)
				}
				if v, _ := r.Sample.Value("mysql_global_variables_" + c.name); c.name == "max_connections" && fmt.Sprintf("%.0f", v) != c.text {
					t.Errorf("SET GLOBAL %s: the next reading says %v", c.set, v)
				}
			}
			asked := 0
			for range 10 {
				before := traffic.Queries.Load()
				read()
				if r.Fresh {
					t.Error("all variables were read, and none was changed")
				}
				if _, ok := r.Sample.Value(`risso_collect_seconds{group="settings"}`); ok {
					asked++
				}
				if traffic.Queries.Load() == before {
					t.Error("nothing was asked")
				}
			}
			if asked > 1 {
				t.Errorf("got %d of 10 readings asked for settings that nobody set, want at most 1", asked)
			}
		})
	}
}

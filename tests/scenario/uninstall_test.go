package scenario_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
)

// TestUninstall uses Risso for all that keeps something, and removes what docs/operate.md names: nothing is left, neither here nor
// on the servers.
func TestUninstall(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "## Uninstall")
	named := regexp.MustCompile(`~/\S+`).FindAllString(regexp.MustCompile(`(?m)^rm .*$`).FindString(part[strings.LastIndex(part, "rm -rf"):]), -1)
	if len(named) < 3 {
		t.Fatalf("docs/operate.md names %q, want at least 3", named)
	}
	n := single(t, "mariadb", "performance_schema=ON")
	execSQL(t, n, "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, a INT); INSERT INTO shop.orders VALUES (1, 1); CREATE DATABASE sbtest")
	before := stateOf(t, n)
	home := tempDir(t)
	place, temp := filepath.Join(tempDir(t), "place"), filepath.Join(home, "tmp")
	if err := os.MkdirAll(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	env := environment(home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME="+cacheHome(t), "TMPDIR="+temp)
	t.Cleanup(func() { // if the test ends before that
		down := exec.Command(binary, "sandbox", "down", "--all")
		down.Env = env
		if out, err := down.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	bench := "root@unix(" + n.Socket + ")/sbtest"
	for _, args := range [][]string{
		{"backup", "--dsn", n.DSN, "--to", place},
		{"binlog", "follow", "--dsn", n.DSN, "--to", place, "--once"},
		{"verify", "--from", place},
		{"drill", "--from", place},
		{"restore", "--from", place, "--sandbox=look"},
		{"restore", "--from", place, "--schema", "shop", "--rename", "shop=shop2", "--into", n.DSN},
		{"bench", "prepare", "point_select", "--dsn", bench, "--tables", "1", "--table-size", "10", "--yes"},
		{"bench", "compare", "point_select", "--dsn", bench, "--tables", "1", "--table-size", "10", "--yes", "--runs", "2", "--for", "200ms", "--warmup", "0s", "--set-b", "innodb_flush_log_at_trx_commit=2"},
		{"bench", "cleanup", "point_select", "--dsn", bench, "--tables", "1"},
		{"token", "create", "ann"},
		{"sandbox", "down", "--all"},
	} {
		r := launch(t, env, args...)
		if code := r.code(t); code != 0 {
			t.Fatalf("%s: exit code %d: %s, want 0", strings.Join(args, " "), code, r.err)
		}
	}
	execSQL(t, n, "DROP DATABASE shop2")
	// The default data folder, as a person has it that says nothing.
	r := launch(t, env, "serve", "--listen", "127.0.0.1:0", "--no-host", "--dsn", "db="+n.DSN)
	r.awaitReady(t)
	r.stop(t, syscall.SIGTERM)

	if after := stateOf(t, n); !slices.Equal(after, before) {
		t.Errorf("on the server is now: want after %v\n%s\nthere was\n%s", before, strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	for _, name := range named {
		if err := os.RemoveAll(filepath.Join(home, strings.TrimPrefix(name, "~/"))); err != nil {
			t.Fatal(err)
		}
	}
	err = filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			t.Errorf("left: %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(temp); err != nil || len(list) > 0 {
		t.Errorf("left among temporary files: got %v %v; want none", list, err)
	}
}

// stateOf is what of a server a person would call his: schemas, tables, accounts, settings, plug-ins.
func stateOf(t *testing.T, n *sandbox.Node) (list []string) {
	t.Helper()
	for _, q := range []string{
		"SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables WHERE table_schema NOT IN ('information_schema', 'performance_schema') ORDER BY 1",
		"SELECT schema_name FROM information_schema.schemata ORDER BY 1",
		"SELECT CONCAT(user, '@', host) FROM mysql.user ORDER BY 1",
		"SELECT plugin_name FROM information_schema.plugins WHERE plugin_status = 'ACTIVE' ORDER BY 1",
		"SELECT CONCAT(variable_name, '=', variable_value) FROM information_schema.global_variables WHERE variable_name NOT LIKE 'gtid%' AND variable_name NOT LIKE '%timestamp%' ORDER BY 1",
		"SELECT CONCAT(name, enabled) FROM performance_schema.setup_consumers ORDER BY 1",
	} {
		r := execSQL(t, n, q)
		for _, row := range r[len(r)-1].Rows {
			list = append(list, fmt.Sprint(*row[0]))
		}
	}
	return list
}

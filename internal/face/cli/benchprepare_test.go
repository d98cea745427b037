package cli

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// benchmark runs one `risso bench` command as main does.
func benchmark(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	return call(t, append([]string{"bench"}, args...)...)
}

// TestBenchWrongUse: every mistake is one line and exit code 2, before any server is asked.
func TestBenchWrongUse(t *testing.T) {
	dsn := []string{"--dsn", "root@unix(/nowhere/mysqld.sock)/sbtest"}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"run", "point_selekt"}, "point_select, "},
		{[]string{"prepare", "nothing"}, `no workload "nothing"`},
		{[]string{"prepare", "read_write", "--distribution", "normal"}, "uniform, special, pareto, zipfian, gaussian"},
		{[]string{"run", "read_write", "--distribution", "pareto", "--distribution-param", "pareto-h=2"}, "between 0 and 1"},
		{[]string{"run", "read_write", "--distribution-param", "pareto-h=0.2"}, "the distribution special does not use pareto-h"},
		{[]string{"run", "read_write", "--distribution-param", "pareto"}, "name=number"},
		{[]string{"run", "read_write", "--tables", "-1"}, "--tables is -1"},
		{[]string{"prepare", "read_write", "--table-size", "0"}, "--table-size is 0"},
		{[]string{"prepare", "read_write", "--threads", "-4"}, "--threads is -4"},
		{[]string{"run", "read_write", "--point-selects=-1"}, "--point-selects is -1"},
		{[]string{"cleanup", "read_write", "--output", "xml"}, "there are text, json"},
		{[]string{"prepare", "read_write", "--engine", "inno db"}, "--engine"},
		{[]string{"prepare", "schemas", "--schemas", "0"}, "--schemas is 0"},
		{[]string{"run", "select_random_points", "--tables", "2"}, "works on one table"},
		{[]string{"prepare"}, "accepts 1 arg"},
		{[]string{"scale", "point_select", "--runs", "0"}, "from 1 to 500"},
		{[]string{"scale", "point_select", "--runs", "1000000000"}, "from 1 to 500"},
		{[]string{"compare", "point_select", "--set-a", "x=1", "--runs", "0"}, "from 1 to 500"},
		{[]string{"run", "point_select", "--rate", "1e12"}, "from 1e-08 to 10000000"},
		{[]string{"compare", "point_select", "--set-a", "x=1", "--rate", "1e12"}, "from 1e-08 to 10000000"},
		{[]string{"compare", "point_select", "--set-a", "x=1", "--runs", "501"}, "from 1 to 500"},
		{[]string{"compare", "point_select", "--set-a", "x=1", "--same", "-1"}, "from 0 to 500"},
		{[]string{"compare", "point_select", "--set-a", "x=1", "--precise", "3"}, "write it as 3%"},
		{[]string{"compare", "point_select", "--set-a", "x=1", "--precise", "0%"}, "from 0.1% to 50%"},
		{[]string{"compare", "point_select", "--set-a", "x=1", "--fail-if", "worse"}, "slower, faster, different or unclear"},
		{[]string{"compare", "--from", "a.txt", "--from", "b.txt", "--from", "c.txt"}, "--from is for existing results"},
		{[]string{"prepare", "point_select", "--threads", "9000"}, "from 1 to 8000"},
		{[]string{"run", "point_select", "--time", "292y", "--warmup", "2y"}, "at most 365d"},
		{[]string{"run", "point_select", "--time", "1y", "--warmup", "291y"}, "from 0 to 365d"},
		{[]string{"prepare", "read_write", "--dsn", "postgres://risso:hush@db1:port/x"}, "PostgreSQL"},
	} {
		code, out, errs := benchmark(t, append(append([]string{}, c.args[:1]...), append(append([]string{}, dsn...), c.args[1:]...)...)...)
		if code != fault.Usage || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, c.says) || strings.Contains(errs, "hush") {
			t.Errorf("%v: code %d, %q, %q; want code fault.Usage, out \"\", strings.Count(errs, \"\\n\") 1, %q in it, no \"hush\" in it",
				c.args, code, out, errs, c.says)
		}
	}
}

func TestBenchList(t *testing.T) {
	if code, out, errs := benchmark(t, "prepair"); code != fault.Usage || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "prepair") {
		t.Errorf("an unknown command: code %d, %q, %q; want code fault.Usage, out \"\", strings.Count(errs, \"\\n\") 1, \"prepair\" in it",
			code, out, errs)
	}
	code, out, _ := benchmark(t, "list")
	if code != fault.OK {
		t.Fatalf("code %d, want fault.OK", code)
	}
	for _, name := range []string{"read_only", "read_write", "write_only", "point_select", "update_index", "update_non_index", "insert", "delete", "select_random_points", "select_random_ranges", "bulk_insert", "schemas"} {
		if !strings.Contains(out, "\n"+name+" ") && !strings.HasPrefix(out, name+" ") {
			t.Errorf("no %s in\n%s", name, out)
		}
	}
	var list []map[string]string
	if code, out, _ := benchmark(t, "list", "--output", "json"); code != fault.OK || json.Unmarshal([]byte(out), &list) != nil || len(list) < 12 || list[0]["summary"] == "" {
		t.Errorf("as JSON: got %d, %s; want code fault.OK, json.Unmarshal nil, len(list) at least 12, list[0][\"summary\"] not \"\"", code, out)
	}
}

// TestBenchPrepare goes the way of a user: prepare, run, refusals, cleanup.
func TestBenchPrepare(t *testing.T) {
	sandboxtest.Need(t, "mariadb")
	dir, err := os.MkdirTemp("", "rb-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	sb, err := sandbox.Up(t.Context(), sandbox.Options{Dir: dir, Name: "b", Servers: []string{"mariadb"}, StartTimeout: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	sql := func(s string) {
		t.Helper()
		if _, err := sb.Primary().Query(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	dsn := sb.Primary().DSN + "sbtest"
	step := func(want int, says string, args ...string) string {
		t.Helper()
		code, out, errs := benchmark(t, append(args, "--dsn", dsn)...)
		if code != want || !strings.Contains(out+errs, says) || want == fault.OK && errs != "" || strings.Count(errs, "\n") > 1 {
			t.Fatalf("%v: code %d, %q, %q", args, code, out, errs)
		}
		return out
	}
	step(fault.Failed, "CREATE DATABASE", "prepare", "read_write")
	sql("CREATE DATABASE sbtest; CREATE DATABASE shop; CREATE TABLE shop.orders (id INT); CREATE TABLE shop.parts (id INT)")
	step(fault.Usage, "2 tables that do not belong to a benchmark, the first is shop.orders (--yes", "prepare", "read_write")
	step(fault.OK, "2000 rows written", "prepare", "read_write", "--tables", "2", "--table-size", "1000", "--threads", "2", "--yes")
	step(fault.Failed, "sbtest1, sbtest2 are there already", "prepare", "read_write", "--tables", "2", "--yes")
	step(fault.Usage, "shop.orders", "run", "point_select", "--tables", "2", "--table-size", "1000", "--time", "1s")
	sql("DROP DATABASE shop")
	var result struct {
		Transactions int64 `json:"transactions"`
	}
	out := step(fault.OK, "", "run", "point_select", "--tables", "2", "--table-size", "1000", "--time", "1s", "--output", "json")
	if err := json.Unmarshal([]byte(out), &result); err != nil || result.Transactions == 0 {
		t.Errorf("run: got %v, %s; want result.Transactions not 0", err, out)
	}
	step(fault.OK, "2 tables dropped", "cleanup", "read_write")
	step(fault.OK, "nothing to drop", "cleanup", "read_write")
	sql("CREATE TABLE sbtest.sbtest1 (id INT)")
	step(fault.Failed, "sbtest1 is not risso's", "cleanup", "read_write")
	sql("DROP TABLE sbtest.sbtest1")

	step(fault.OK, "make a table", "prepare", "schemas", "--schemas", "3", "--schema-tables", "4", "--threads", "2")
	step(fault.Failed, "risso_tenant_1 already exists", "prepare", "schemas", "--schemas", "2")
	step(fault.OK, "first access of a table", "run", "schemas", "--schemas", "3", "--schema-tables", "4", "--time", "1s", "--output", "json")
	sql("CREATE TABLE risso_tenant_2.mine (id INT)")
	step(fault.Failed, "risso_tenant_2 contains objects that risso did not create", "cleanup", "schemas")
	sql("DROP TABLE risso_tenant_2.mine")
	step(fault.OK, "4 tables dropped", "cleanup", "schemas")
}

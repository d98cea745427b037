package matrix

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/postgres"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

const shop = `values:
  id: {range: [1, 100]}
  n: {sequence: 1}
setup:
  - CREATE TABLE item (id INT PRIMARY KEY, stock INT)
  - {sql: "INSERT INTO item VALUES (:n, 5)", repeat: 100}
transactions:
  - name: look
    statements: [SELECT stock FROM item WHERE id = :id]
  - name: sell
    statements: [UPDATE item SET stock = stock - 1 WHERE id = :id]
`

// parsed reads a file with others next to it.
func parsed(t *testing.T, text string, beside map[string]string) *File {
	t.Helper()
	dir := t.TempDir()
	for name, content := range beside {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Parse([]byte(text), dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestPostgresBesideMariaDB measures both with tables of two sizes and with the user's own transactions.
func TestPostgresBesideMariaDB(t *testing.T) {
	sandboxtest.Need(t, "mariadb")
	if _, err := postgres.Find(""); errors.Is(err, sandbox.ErrNoServer) {
		lack.Of(t, "PostgreSQL is not installed: run script/setup")
	}
	f := parsed(t, `servers: [mariadb, postgres]
common: [innodb_buffer_pool_size=32M, postgres.shared_buffers=24MB]
workloads: [point_select, update_index, "script:shop.yaml"]
tables: 2
table_size: [300, 600]
threads: [1, 3]
time: 250ms
warmup: 50ms
settle: 0s
runs: 1
`, map[string]string{"shop.yaml": shop})
	dir, b := t.TempDir(), &boxes{dir: t.TempDir()}
	r, err := Run(t.Context(), f, Options{Dir: dir, Servers: b})
	if err != nil || r.Missing != 0 || len(r.Cells) != 24 {
		t.Fatalf("got %+v, %v; want Missing 0, len(Cells) 24", r, err)
	}
	nothingLeft(t, b, dir)
	for _, c := range r.Cells {
		if c.Median <= 0 || c.Errors > 0 {
			t.Errorf("got %+v; want Median more than 0, Errors at most 0", c)
		}
	}
	var axes []string
	for _, q := range r.Questions {
		axes = append(axes, q.Axis)
	}
	if !slices.Equal(axes, []string{AxisServer, AxisSize, AxisWorkload, AxisThreads}) {
		t.Errorf("questions %v, want []string{AxisServer, AxisSize, AxisWorkload, AxisThreads}", axes)
	}
	if v := strings.Join(r.Versions, "\n"); len(r.Versions) != 2 || !strings.Contains(v, "mariadb 10.") || !strings.Contains(v, "postgres PostgreSQL ") {
		t.Errorf("versions %q; want len(r.Versions) 2, \"mariadb 10.\" in it, \"postgres PostgreSQL \" in it", v)
	}
	if up := strings.Join(b.up, "\n"); strings.Count(up, "innodb_buffer_pool_size=32M") != 2 || strings.Count(up, " shared_buffers=24MB") != 2 || strings.Contains(up, "postgres.") {
		t.Errorf("options %s; want strings.Count(up, \"innodb_buffer_pool_size=32M\") 2, strings.Count(up, \" shared_buffers=24MB\") 2, no \"postgres.\" in it",
			up)
	}
	forms(t, r)
	for _, c := range f.Cells() {
		runs, err := readRuns(dir, c, 1)
		if err != nil || runs[0] == nil {
			t.Fatalf("%s: got %v; want runs[0] not nil", c.ID, err)
		}
		p := runs[0].Parameters
		if own := c.Workload == "script:shop.yaml"; own && (p["file"] != "shop.yaml" || p["table_size"] != nil) || !own && (p["table_size"] != float64(c.TableSize) || p["tables"] != 2.) {
			t.Errorf("%s: parameters %v", c.ID, p)
		}
	}
	// Another script of the same name is another workload.
	before := f.Cells()
	if err := os.WriteFile(filepath.Join(f.dir, "shop.yaml"), []byte(shop+"# changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.readFiles(); err != nil {
		t.Fatal(err)
	}
	for i, c := range f.Cells() {
		if same := c.ID == before[i].ID; same == (c.Workload == "script:shop.yaml") {
			t.Errorf("%s after its file was changed: the same folder: %v, want not %v", c.Workload, same, c.Workload == "script:shop.yaml")
		}
	}
}

// TestReplayOnLoadedServers runs a recording on servers that were given its tables.
func TestReplayOnLoadedServers(t *testing.T) {
	sandboxtest.Need(t, "mariadb")
	const text = `workloads: ["replay:slow.log", "script:read.yaml"]
load: data.sql
threads: 2
time: 250ms
warmup: 0s
settle: 0s
runs: 1
`
	f := parsed(t, text, map[string]string{"slow.log": "not read here", "data.sql": "CREATE DATABASE old; CREATE TABLE old.t (a INT); INSERT INTO old.t VALUES (1), (2)",
		"read.yaml": "transactions: [{statements: [SELECT a FROM old.t]}]"})
	logs := f.Recordings()
	if len(logs) != 1 || filepath.Base(logs[0]) != "slow.log" {
		t.Fatalf("recordings %q; want len(logs) 1, filepath.Base(logs[0]) \"slow.log\"", logs)
	}
	if err := f.SetRecording(logs[0], &workload.Recording{}); !errors.Is(err, workload.ErrUsage) {
		t.Errorf("an empty recording: got %v, want workload.ErrUsage", err)
	}
	class := workload.RecordedClass{Before: workload.Before{Class: "A", Fingerprint: "select a from t", Calls: 5, Avg: 1}, Samples: []workload.RecordedStatement{{SQL: "SELECT a FROM t", Schema: "old"}}}
	if err := f.SetRecording(logs[0], &workload.Recording{Classes: []workload.RecordedClass{class}}); err != nil {
		t.Fatal(err)
	}
	dir, b := t.TempDir(), &boxes{dir: t.TempDir()}
	r, err := Run(t.Context(), f, Options{Dir: dir, Servers: b})
	if err != nil || r.Missing != 0 || len(r.Cells) != 2 {
		t.Fatalf("got %+v, %v; want Missing 0, len(Cells) 2", r, err)
	}
	for _, c := range r.Cells {
		if c.Median <= 0 || c.Errors > 0 {
			t.Errorf("got %+v; want Median more than 0, Errors at most 0", c)
		}
	}
	runs, err := readRuns(dir, f.Cells()[0], 1)
	if err != nil || len(runs[0].Kinds) != 1 || runs[0].Kinds[0].Recorded.Calls != 5 {
		t.Errorf("got %+v, %v; want len(Kinds) 1, Kinds[0].Recorded.Calls 5", runs[0], err)
	}
	nothingLeft(t, b, dir)
	// PostgreSQL does not understand it: one line, before anything is started.
	_, err = Parse([]byte("servers: postgres\n"+text), f.dir)
	if !errors.Is(err, workload.ErrUsage) || !strings.Contains(err.Error(), "PostgreSQL does not understand") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a recording for PostgreSQL: got %v; want workload.ErrUsage, \"PostgreSQL does not understand\" in the error, no \"\\n\" in the error",
			err)
	}
}

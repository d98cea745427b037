package page_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// TestBenchmarksInBrowser makes two benchmarks of a real server, sends them to a real Risso that watches it, and looks at
// them in the browser.
func TestBenchmarksInBrowser(t *testing.T) {
	needBrowser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dir := t.TempDir()
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(dir, "sandboxes"), Name: "bench", Servers: []string{"mariadb"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Down(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	socket := sb.Primary().Socket
	sbtest(ctx, t, socket)
	bin := binary(t, dir, "RISSO_BIN", "1")
	url := serve(t, bin, filepath.Join(dir, "data"), "watched=root@unix("+socket+")/")
	run := func(args ...string) string {
		cmd := exec.CommandContext(ctx, bin, append([]string{"bench", "run", "point_select", "--dsn", "root@unix(" + socket + ")/sbtest", "--table-size", "1000", "--record-to", url, "-o", "json"}, args...)...)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, said.String())
		}
		var result struct {
			Environment struct {
				Server struct{ Flavour string }
			}
		}
		if err := json.Unmarshal(out, &result); err != nil || result.Environment.Server.Flavour != "MariaDB" {
			t.Errorf("the result does not hold its environment: got %v %.300s; want result.Environment.Server.Flavour \"MariaDB\"", err, out)
		}
		id := regexp.MustCompile(`kept as \S+/benchmarks/(\d+)`).FindStringSubmatch(said.String())
		if id == nil {
			t.Fatalf("it does not say where the result is kept: %s, want id not nil", said.String())
		}
		if strings.Contains(said.String(), "does not watch") {
			t.Errorf("the watched server was not recognised: %s, want no \"does not watch\" in it", said.String())
		}
		return id[1]
	}
	first := run("--threads", "2", "--time", "10s", "--warmup", "2s")
	second := run("--threads", "2", "--time", "6s", "--rate", "200")
	playwright(ctx, t, []string{"benchmarks.spec.ts"}, "RISSO_URL="+url, "RISSO_INSTANCE=watched", "RISSO_BENCHMARKS="+first+","+second)
}

// sbtest makes the table that point_select reads.
func sbtest(ctx context.Context, t *testing.T, socket string) {
	t.Helper()
	db, err := sql.Open("mysql", "root@unix("+socket+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range []string{
		"CREATE DATABASE sbtest",
		"CREATE TABLE sbtest.sbtest1 (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k))",
		"INSERT INTO sbtest.sbtest1 (k, c) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, REPEAT('x', 119) FROM n",
	} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReportInBrowser opens the page that risso bench report writes in the browser: it must be self-contained and complain of
// nothing, in light and dark and on paper.
func TestReportInBrowser(t *testing.T) {
	needBrowser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dir := t.TempDir()
	bin := binary(t, dir, "RISSO_BIN", "1")
	for i, n := range []string{"one", "several", "sweep"} {
		files, err := filepath.Glob(fmt.Sprintf("../../internal/measure/report/testdata/%s*.json", n))
		if err != nil || len(files) == 0 {
			t.Fatalf("no results %d to report: got %v; want len(files) not 0", i, err)
		}
		out, err := exec.CommandContext(ctx, bin, append([]string{"bench", "report"}, files...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, n+".html"), out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	playwright(ctx, t, []string{"report.spec.ts"}, "RISSO_REPORTS="+dir)
}

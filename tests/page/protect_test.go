package page_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/store/blob"
	"github.com/rissodb/risso/internal/store/state"
)

// TestProtectHistoryInBrowser looks at what takes weeks to come about: servers with a month of backups and drills, made by
// the repository's own writer.
func TestProtectHistoryInBrowser(t *testing.T) {
	needBrowser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	rememberBackups(ctx, t, dir, data)
	act, look := tokens(ctx, t, data)
	url := serveWith(t, binary(t, dir, "RISSO_BIN", "1"), "--data", data, "--config", filepath.Join(dir, "risso.yaml"), "--no-host")
	playwright(ctx, t, []string{"protect.spec.ts"}, "RISSO_URL="+url, "RISSO_PROTECT_HISTORY=1", "RISSO_ACT="+act, "RISSO_LOOK="+look)
}

// tokens makes one that may act and one that may look.
func tokens(ctx context.Context, t *testing.T, data string) (act, look string) {
	t.Helper()
	facts, err := state.Open(ctx, filepath.Join(data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	for role, text := range map[state.Role]*string{state.RoleChange: &act, state.RoleLook: &look} {
		if _, *text, err = facts.CreateToken(ctx, "who may "+string(role), role); err != nil {
			t.Fatal(err)
		}
	}
	return act, look
}

// month is how long the backups of a server go back.
const month = 33

// rememberBackups makes the places of four servers and what Risso knows of them: shop is well, crm's backups ended and its
// last drill failed, blog's were never proven, and of idle there is nothing.
func rememberBackups(ctx context.Context, t *testing.T, dir, data string) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Second)
	facts, err := state.Open(ctx, filepath.Join(data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	config := "servers:\n"
	for _, s := range []struct {
		name    string
		last    int // days ago
		protect string
	}{
		{"shop", 0, "schedule: daily at 02:00\n      retention: {keep_daily: 7, keep_weekly: 4, keep_monthly: 12}\n      drill: weekly on sunday at 04:00\n      mirror: true\n"},
		{"crm", 4, "schedule: daily at 02:00\n      drill: weekly on sunday at 04:00\n"},
		{"blog", 0, "schedule: daily at 02:00\n"},
		{"idle", -1, ""},
	} {
		config += fmt.Sprintf("  - name: %s\n    dsn: root@tcp(127.0.0.1:1)/\n", s.name)
		if s.protect == "" {
			continue
		}
		place := filepath.Join(dir, s.name)
		config += fmt.Sprintf("    protect:\n      place: %s\n      %s", place, s.protect)
		job, err := facts.SaveJob(ctx, state.Job{Name: s.name + "/backup", Kind: state.JobBackup, Instance: s.name, Place: place, Schedule: "daily at 02:00", Enabled: true, Created: now.AddDate(0, -2, 0),
			Options: json.RawMessage(`{"by":"serve"}`)})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for day := month; day >= s.last; day-- {
			began := now.Add(-time.Duration(day)*24*time.Hour - 3*time.Hour)
			ids = append(ids, keepBackup(ctx, t, place, s.name, began, int64(month-day)))
			note(ctx, t, facts, state.Run{Job: job.ID, Kind: state.JobBackup, Instance: s.name, Place: place, Began: began, Ended: began.Add(4 * time.Minute), Outcome: state.OutcomeOK,
				Backup: ids[len(ids)-1], Text: "412 tables with 96 M rows, 48 GiB in 4 min"})
		}
		if s.name == "blog" {
			continue
		}
		for week := 4; week >= 0; week-- {
			at := len(ids) - 1 - 7*week
			d := state.Drill{Place: place, Backup: ids[at], Instance: s.name, Began: now.Add(-time.Duration(7*week+s.last)*24*time.Hour - 2*time.Hour), Passed: s.name == "shop" || week > 0, Recovery: 812 + float64(week),
				Text: "restored in 13m32s, rolled forward by 18231 transactions, 412 tables with 96 M rows are as they were"}
			d.Ended = d.Began.Add(31 * time.Minute)
			d.Reached = d.Began
			if !d.Passed {
				d.Text, d.Recovery = "backup "+d.Backup+" is not proven: crm.invoices is not as it was: 3 rows less", 0
			}
			d.Proof = proofOf(t, d)
			if _, err := facts.AddDrill(ctx, d); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := facts.SaveMirror(ctx, state.Mirror{Place: filepath.Join(dir, "shop"), Instance: "shop", First: now.AddDate(0, 0, -15), Last: now.Add(time.Hour), Checked: now}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "risso.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

func note(ctx context.Context, t *testing.T, facts *state.Store, r state.Run) {
	t.Helper()
	id, err := facts.BeginRun(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if err := facts.NoteRun(ctx, state.RunProgress{Run: id, Stage: "write the manifest", Done: 412, Total: 412, Unit: "tables"},
		state.RunLine{Time: r.Began, Text: "global lock held for 12 ms"}, state.RunLine{Time: r.Ended, Text: "2 tables without transactions: <i>not</i> of the same moment"}); err != nil {
		t.Fatal(err)
	}
	r.ID = id
	if err := facts.EndRun(ctx, r); err != nil {
		t.Fatal(err)
	}
}

// keepBackup writes a whole backup without tables into a repository; only the header tells of more.
func keepBackup(ctx context.Context, t *testing.T, place, server string, began time.Time, n int64) string {
	t.Helper()
	store, err := blob.Open(ctx, place, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	config, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := repo.SigningKey(filepath.Join(config, "risso"), true) // this account's: unsigned backups count for nothing
	if err != nil {
		t.Fatal(err)
	}
	r, err := repo.CreateWith(ctx, repo.On(store), repo.Keys{Signer: signer})
	if err != nil {
		t.Fatal(err)
	}
	h := repo.Header{Format: repo.Format, ID: repo.NewID(began), Kind: repo.Logical, Began: began, Snapshot: began, Ended: began.Add(4 * time.Minute), Server: repo.Server{Identity: server, Name: server},
		Position: repo.Position{GTIDSet: fmt.Sprintf("0-1-%d", 71234567+n*18231)}, Schemas: 12, Tables: 412, Rows: 96_000_000 + n*90_000, Bytes: 48<<30 + n<<25, Stored: 300<<20 + n<<20}
	if n == 0 {
		h.Stored = 9 << 30
	}
	if err := r.Begin(ctx, h, nil); err != nil {
		t.Fatal(err)
	}
	d := repo.NewDraft()
	defer d.Close()
	if err := r.Finish(ctx, h, d); err != nil {
		t.Fatal(err)
	}
	return h.ID
}

// proofOf is the proof of a drill in the form of data/drill.
func proofOf(t *testing.T, d state.Drill) json.RawMessage {
	t.Helper()
	failures := []string{}
	if !d.Passed {
		failures = append(failures, "crm.invoices is not as it was: 3 rows less")
	}
	b, err := json.Marshal(map[string]any{"format": 1, "backup": d.Backup, "passed": d.Passed, "failures": failures, "notes": []string{"events did not run"}, "on": "mariadb 10.11.19", "of": "MariaDB 10.11.19",
		"stages":   []map[string]any{{"name": "start", "seconds": 3.1}, {"name": "load", "seconds": 655.2}, {"name": "roll forward", "seconds": 154.0}, {"name": "check tables", "seconds": 1020.5}},
		"recovery": d.Recovery, "compare": map[string]any{"tables": 412, "rows": 96_000_000, "different": []string{}}, "check_table": map[string]any{"tables": 412, "problems": []string{}},
		"queries": []map[string]any{{"sql": "SELECT COUNT(*) FROM shop.orders", "expect": "> 1000", "got": "812311", "passed": true}}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestProtectInBrowser protects a real MariaDB from the page: backup, copy, prune, drill, verify and mirror.
func TestProtectInBrowser(t *testing.T) {
	needBrowser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dir := t.TempDir()
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(dir, "sandboxes"), Name: "protect", Servers: []string{"mariadb"}, Settings: []string{"log_bin=binlog"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Down(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	socket := sb.Primary().Socket
	db, err := sql.Open("mysql", "root@unix("+socket+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, v VARBINARY(600))",
		"INSERT INTO shop.orders (v) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT RANDOM_BYTES(600) FROM n, (SELECT 1 FROM n LIMIT 60) m"} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	config := fmt.Sprintf(`servers:
  - name: shop
    dsn: root@unix(%s)/
    protect:
      place: %s
      copy_to: %s
      retention: {keep_daily: 7}
      schedule: daily at 02:00
      mirror: true
      max_rate: 5MB
`, socket, filepath.Join(dir, "backup"), filepath.Join(dir, "copy"))
	if err := os.WriteFile(filepath.Join(dir, "risso.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serveWith(t, binary(t, dir, "RISSO_BIN", "1"), "--data", filepath.Join(dir, "data"), "--config", filepath.Join(dir, "risso.yaml"))
	playwright(ctx, t, []string{"protect.spec.ts"}, "RISSO_URL="+url, "RISSO_PROTECT_REAL=1")
}

package advise

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// TestMoment: a session that another waits for is found within --look, with the statement that ends it; without --look it is not.
func TestMoment(t *testing.T) {
	node := sandboxtest.Lend(t, "mariadb")
	holder, waiter, third := sandboxtest.Connect(t, node), sandboxtest.Connect(t, node), sandboxtest.Connect(t, node)
	for _, s := range []string{"CREATE TABLE test.t (a INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO test.t VALUES (1)", "BEGIN", "UPDATE test.t SET a = 2"} {
		if err := holder.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- waiter.Exec(t.Context(), "UPDATE test.t SET a = 3") }()
	await.Until(t, func() bool {
		n, err := third.Text(t.Context(), "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'INNODB_ROW_LOCK_CURRENT_WAITS'")
		return err == nil && n != "0"
	}, "a session that waits")
	for _, c := range []struct{ look, want string }{{"4s", "KILL"}, {"0", ""}} {
		var out, errs bytes.Buffer
		cmd := New(screen.Streams{Out: &out, Err: &errs})
		cmd.SetArgs([]string{"lock.blocker", "--dsn", node.DSN, "--look", c.look, "--output", "json"})
		begun := time.Now()
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, errs.String())
		}
		var a Answer
		if err := json.Unmarshal(out.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		found := slices.IndexFunc(a.Findings, func(f advise.Finding) bool { return f.ID == "lock.blocker" })
		if found >= 0 != (c.want != "") || found >= 0 && !strings.HasPrefix(a.Findings[found].Statement, c.want) {
			t.Errorf("--look %s, after %s: got %+v", c.look, time.Since(begun), a.Findings)
		}
	}
	if err := holder.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

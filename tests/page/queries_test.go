package page_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/sandbox"
)

// heavy makes most of the load. Its column's name would be an image with a script, were it ever taken for HTML.
const heavy = "SELECT SLEEP(0.25) AS `<img src=x onerror=alert(1)>`, ? AS risso_page_heavy"

// TestQueriesInBrowser looks at the pages of statements: a MySQL with a statement that makes the load, and a Risso
// without a store.
func TestQueriesInBrowser(t *testing.T) {
	needBrowser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dir := t.TempDir()
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(dir, "sandboxes"), Name: "queries", Servers: []string{"mysql-9.7"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Down(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	loadCtx, stopLoad := context.WithCancel(ctx)
	done := make(chan error, 2)
	socket := sb.Primary().Socket
	go func() { done <- sb.Load(loadCtx, sandbox.LoadOptions{Rate: 20}, nil) }()
	go func() { done <- sleep(loadCtx, socket) }()
	defer func() {
		stopLoad()
		for range 2 {
			if err := <-done; err != nil && loadCtx.Err() == nil {
				t.Error(err)
			}
		}
	}()
	dsn := "watched=root@unix(" + socket + ")/"
	url := serve(t, binary(t, dir, "RISSO_BIN", "1"), filepath.Join(dir, "data"), dsn)
	none := serve(t, binary(t, dir, "RISSO_PURE_BIN", "0"), filepath.Join(dir, "none"), dsn)
	playwright(ctx, t, []string{"queries.spec.ts"}, "RISSO_URL="+url, "RISSO_URL_NO_STORE="+none, "RISSO_INSTANCE=watched", "RISSO_HEAVY=risso_page_heavy")
}

// sleep runs the heavy statement until ctx ends, with literals in its text, and one that fails now and then.
func sleep(ctx context.Context, socket string) error {
	db, err := sql.Open("mysql", "root@unix("+socket+")/?interpolateParams=true")
	if err != nil {
		return err
	}
	defer db.Close()
	for n := 0; ctx.Err() == nil; n++ {
		if _, err := db.ExecContext(ctx, heavy, n); err != nil {
			return err
		}
		if n%8 == 0 {
			db.ExecContext(ctx, "SELECT risso_page_wrong FROM mysql.nowhere") // it is to fail: the list counts errors
		}
	}
	return nil
}

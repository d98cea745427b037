package page_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// TestAlertsInBrowser looks at the pages of what rings and what stalled: a primary on which one session keeps others waiting, its replica,
// a receiver that takes messages and one that does not. axe-core looks at every page there is.
func TestAlertsInBrowser(t *testing.T) {
	needBrowser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dir := t.TempDir()
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(dir, "sandboxes"), Name: "alerts", Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Down(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	blockCtx, unblock := context.WithCancel(ctx)
	done := make(chan error, 1)
	ready := make(chan struct{})
	go func() { done <- block(blockCtx, sb.Primary(), ready) }()
	defer func() {
		unblock()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		t.Fatal(err)
	}

	var config strings.Builder
	config.WriteString("servers:\n")
	for i, n := range sb.Nodes {
		fmt.Fprintf(&config, "  - {name: db%d, dsn: root@unix(%s)/}\n", i+1, n.Socket)
	}
	config.WriteString(`alerts:
  thresholds: [{finding: "lock.*", for: 1s}]
  receivers:
    - {name: log, command: {run: ["cat"]}}
    - {name: broken, webhook: {url: "http://127.0.0.1:1/"}}
`)
	file := filepath.Join(dir, "risso.yaml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serveWith(t, binary(t, dir, "RISSO_BIN", "1"), "--data", filepath.Join(dir, "data"), "--config", file)
	playwright(ctx, t, []string{"alerts.spec.ts", "incidents.spec.ts"}, "RISSO_URL="+url, "RISSO_INSTANCE=db1", "RISSO_BLOCKED=1")
}

// block keeps three sessions waiting for a row until ctx ends; ready is closed when the first has the lock.
func block(ctx context.Context, n *sandbox.Node, ready chan<- struct{}) error {
	db, err := n.DB()
	if err != nil {
		return err
	}
	defer db.Close()
	for _, s := range []string{"CREATE DATABASE till", "CREATE TABLE till.stock (id int PRIMARY KEY, n int)", "INSERT INTO till.stock VALUES (1, 1)"} {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "UPDATE till.stock SET n = 2 WHERE id = 1"); err != nil {
		return err
	}
	waited := make(chan error, 3)
	for range cap(waited) {
		go func() {
			_, err := db.ExecContext(ctx, "SET STATEMENT innodb_lock_wait_timeout=600 FOR UPDATE till.stock SET n = n + 1 WHERE id = 1")
			waited <- err
		}()
	}
	close(ready)
	for range cap(waited) {
		if err := <-waited; err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

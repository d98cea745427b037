package live_test

import (
	"context"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestCommitsWait: one commit that nobody acknowledges is critical, as is one that waits for what a replica received before it acknowledged; sessions that would wait for
// the binary log are not begun.
func TestCommitsWait(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Pair(t, "mariadb")
	db, replica := open(t, s.Nodes[0]), open(t, s.Nodes[1])
	w := watch(t, rootDSN(s.Nodes[0]))
	w.awaitTicks(t, 4)
	run(t, db, "CREATE DATABASE IF NOT EXISTS shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "SET GLOBAL rpl_semi_sync_master_timeout = 600000",
		"SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC", "SET GLOBAL rpl_semi_sync_master_enabled = ON")
	done := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(context.WithoutCancel(t.Context()), "INSERT INTO shop.t VALUES (1)")
		done <- err
	}()
	f := w.awaitFinding(t, "commit.semisync", "1 session waits for an acknowledgement that nobody gives", "0 replicas acknowledge, and 1 needed")
	if f.Severity != fleet.SeverityCritical {
		t.Errorf("got %s, want critical", f.Severity)
	}
	run(t, replica, "SET GLOBAL rpl_semi_sync_slave_enabled = ON", "STOP SLAVE IO_THREAD", "START SLAVE IO_THREAD")
	if f = w.awaitFinding(t, "commit.semisync", "and none comes", "though 1 replica acknowledges"); f.Severity != fleet.SeverityCritical {
		t.Errorf("got %s, want critical", f.Severity)
	}
	run(t, db, "INSERT INTO shop.t VALUES (2)") // which is acknowledged, and the one before with it
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.awaitNone(t, "commit.semisync")
}

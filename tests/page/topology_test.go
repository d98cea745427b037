package page_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// TestTopologyInBrowser looks at the page Topology: a chain of four real servers, of which the last cannot apply; then the primary is killed.
func TestTopologyInBrowser(t *testing.T) {
	needBrowser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dir := t.TempDir()
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(dir, "sandboxes"), Name: "chain", Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Down(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	ask := func(node int, statements string) {
		t.Helper()
		if _, err := sb.Nodes[node].Query(ctx, statements); err != nil {
			t.Fatalf("%s on node %d: %v", statements, node, err)
		}
	}
	for i := 2; i < 4; i++ {
		ask(i, "STOP SLAVE; "+fmt.Sprintf("CHANGE MASTER TO MASTER_PORT = %d; START SLAVE", sb.Nodes[i-1].Port))
	}
	ask(0, "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY)")
	// The last is watched by nobody, and gets a row that its source is about to write.
	flags := []string{"--data", filepath.Join(dir, "data"), "--no-host"}
	for i := range 3 {
		c, err := sb.Nodes[i].TCPConfig()
		if err != nil {
			t.Fatal(err)
		}
		flags = append(flags, "--dsn", fmt.Sprintf("db%d=%s", i+1, c.FormatDSN()))
	}
	url := serveWith(t, binary(t, dir, "RISSO_BIN", "1"), flags...)
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		switch r.URL.Path {
		case "/break":
			if _, err = sb.Nodes[3].Query(r.Context(), "SET SESSION sql_log_bin = 0; INSERT INTO shop.orders VALUES (7)"); err == nil {
				_, err = sb.Nodes[0].Query(r.Context(), "INSERT INTO shop.orders VALUES (7)")
			}
		case "/kill":
			err = sb.Nodes[0].Kill(syscall.SIGKILL)
		case "/start":
			err = sb.Nodes[0].Start(r.Context())
		case "/stop":
			_, err = sb.Nodes[1].Query(r.Context(), "STOP SLAVE")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	defer control.Close()
	playwright(ctx, t, []string{"topology.spec.ts"}, "RISSO_URL="+url, "RISSO_TOPOLOGY="+control.URL, "RISSO_TOPOLOGY_OTHER="+fmt.Sprintf("%s:%d", sb.Nodes[3].Host, sb.Nodes[3].Port))
}

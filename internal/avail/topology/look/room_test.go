package look_test

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestNoRoom: a disk without room for relay logs is found though both threads say Yes; and asking does not fill the server with
// sessions that wait for the status of replication. Once there is room the servers go on within a minute, which is too long for a test.
func TestNoRoom(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,mode=777"); err != nil {
				t.Skipf("SKIPPED: mounting a tmpfs needs root with CAP_SYS_ADMIN: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
			box := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 1,
				Settings: []string{"relay_log=" + filepath.Join(dir, "relay"), "max_relay_log_size=1048576"}})
			s := &servers{t: t, box: box}
			for _, n := range box.Nodes {
				s.conns = append(s.conns, sandboxtest.Connect(t, n))
			}
			s.do(0, "CREATE TABLE test.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)")
			s.settled()
			s.replica(1, "STOP", "SQL_THREAD")
			for range 30 {
				s.do(0, "INSERT INTO test.t (v) VALUES (REPEAT(UUID(), 7000))") // 250 KiB
			}
			patient := func(search *topology.Search) { search.Patience = 2 * time.Second }
			code := "server.no_room"
			if spec == "mysql-5.7" { // it does not say so
				code = "server.hung"
			}
			d := s.holds(code, 1, patient)
			if text := d.What + d.Next; !strings.Contains(text, "disk") {
				t.Errorf("got %+v, want the disk in it", d)
			}
			asked := func() int {
				rows, err := s.conns[1].Maps(t.Context(), "SHOW PROCESSLIST")
				if err != nil {
					t.Fatal(err)
				}
				return len(slices.DeleteFunc(rows, func(row map[string]string) bool { return !strings.HasSuffix(row["Info"], " STATUS") }))
			}
			await.Until(t, func() bool { before := asked(); s.diagnosed(patient); return asked() == before }, "no more sessions that wait for the status of replication")
		})
	}
}

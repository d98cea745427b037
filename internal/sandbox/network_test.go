package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
)

// TestFaults: servers with a network, disks and clocks of their own replicate; packets from one to the other are dropped in the one direction that was cut, a disk
// that is full takes nothing, a clock jumps; and after down nothing is left of it.
func TestFaults(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make network namespaces and mount file systems")
	}
	needServer(t, "mariadb")
	s := up(t, Options{Servers: []string{"mariadb"}, Topology: TopologyReplication, Replicas: 1, Network: true, Disk: 500 << 20, Clock: true})
	primary, replica := s.Nodes[0], s.Nodes[1]
	query(t, primary, "CREATE TABLE test.t (a INT PRIMARY KEY)")
	eventually(t, replica, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema='test'", "1")
	clients, err := s.Network.Place(Clients)
	if err != nil {
		t.Fatal(err)
	}
	reaches := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c, err := clients.Dial(ctx, "tcp", primary.Host+":3306")
		if err == nil {
			c.Close()
		}
		return err
	}
	if err := reaches(); err != nil {
		t.Errorf("clients do not reach the primary: %v", err)
	}
	for range 2 {
		if err := s.Network.Cut(t.Context(), primary.Name, Clients); err != nil {
			t.Fatal(err)
		}
	}
	if err := reaches(); err == nil {
		t.Error("clients reach the primary, though its packets to them are dropped")
	}
	if err := s.Network.Cut(t.Context(), primary.Name, replica.Name); err != nil {
		t.Fatal(err)
	}
	query(t, primary, "INSERT INTO test.t VALUES (1)")
	if err := s.Network.MendAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool { return reaches() == nil }, "clients to reach the primary again")
	eventually(t, replica, "SELECT COUNT(*) FROM test.t", "1")

	if err := primary.Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(primary.Datadir, "probe"), make([]byte, 1<<20), 0o600); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("a megabyte was written to a full disk: %v", err)
	}
	_ = os.Remove(filepath.Join(primary.Datadir, "probe"))
	if err := primary.Empty(); err != nil {
		t.Fatal(err)
	}
	query(t, primary, "INSERT INTO test.t VALUES (2)")

	took := func() time.Duration {
		began := time.Now()
		for i := range 5 {
			query(t, primary, fmt.Sprintf("INSERT INTO test.t VALUES (%d)", 100+i))
		}
		query(t, primary, "DELETE FROM test.t WHERE a >= 100")
		return time.Since(began)
	}
	fast := took()
	if err := primary.Slow(5); err != nil {
		t.Fatal(err)
	}
	slow := took()
	if err := primary.Fast(); err != nil {
		t.Fatal(err)
	}
	t.Logf("six commits: %s, on a slow disk %s, then %s", fast, slow, took())
	if slow < time.Second {
		t.Errorf("six commits take %s on a disk that takes five writes a second", slow)
	}

	if err := primary.Jump(2 * time.Hour); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool {
		return query(t, primary, fmt.Sprintf("SELECT UNIX_TIMESTAMP() > %d", time.Now().Add(time.Hour).Unix())) == "1"
	}, "the clock to jump")
	query(t, primary, "INSERT INTO test.t VALUES (3)")
	eventually(t, replica, "SELECT COUNT(*) FROM test.t", "3")

	// The old primary is filled again from the one that was its replica, also with what it once wrote itself.
	query(t, replica, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only=OFF; INSERT INTO test.t VALUES (4)")
	query(t, primary, "INSERT INTO test.t VALUES (5)")
	if err := primary.Reseed(t.Context(), replica); err != nil {
		t.Fatal(err)
	}
	eventually(t, primary, "SELECT GROUP_CONCAT(a ORDER BY a) FROM test.t", "1,2,3,4")
	if got := query(t, primary, "SELECT @@read_only"); got != "1" {
		t.Errorf("read_only is %s after the node was filled again, want 1", got)
	}
}

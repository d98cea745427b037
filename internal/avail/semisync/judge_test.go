package semisync

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// safe is a primary whose commits wait for one of one replica.
func safe() Facts {
	server := mysql.Of(fleet.ServerOf("9.7.0", ""))
	sources, sides := server.SemiSyncSides()
	return Facts{Server: server, Primary: "db1", Unheard: 0,
		Source:   read.SemiSyncSource{Names: sources[0], Loaded: true, Enabled: true, Timeout: Forever, WaitNone: true, WaitPoint: "AFTER_SYNC", Count: 1, InForce: true, Clients: 1},
		Replicas: []Replica{{Name: "db2", Side: read.SemiSyncReplica{Names: sides[0], Loaded: true, Enabled: true, InForce: true}, Receives: true}}}
}

// TestJudge: each state and problem from what the servers tell; all are in docs/semisync.md.
func TestJudge(t *testing.T) {
	page, err := os.ReadFile("../../../docs/semisync.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		make  func(*Facts)
		state State
		codes []string
		words string // in the words, the loss, the cost or a problem
	}{
		{"safe", func(*Facts) {}, InForce, nil, "nothing that was acknowledged"},
		{"not loaded", func(f *Facts) { f.Source = read.SemiSyncSource{Names: f.Source.Names}; f.Unheard = 3 }, Off, []string{"not_loaded"}, "3 transactions are on no replica"},
		{"switched off", func(f *Facts) { f.Source.Enabled, f.Source.InForce = false, false }, Off, []string{"disabled"}, "commits wait for nobody"},
		{"fell back", func(f *Facts) { f.Source.InForce, f.Source.Clients, f.Source.FellBack = false, 0, 2 }, FellBack, []string{"fell_back"}, "2 times"},
		{"nobody there", func(f *Facts) { f.Source.Clients = 0 }, Blocked, []string{"blocked"}, "each commit waits"},
		{"blocked", func(f *Facts) { f.Source.Clients, f.Source.Waiting, f.Replicas[0].Receives = 0, 4, false }, Blocked, []string{"blocked", "replica_not_connected"}, "4 sessions wait for an acknowledgement that nobody can give; no replica connected, 1 needed"},
		{"off on all", func(f *Facts) {
			f.Source.Clients, f.Source.Waiting, f.Replicas[0].Side.Enabled, f.Replicas[0].Side.InForce = 0, 1, false, false
		}, Blocked, []string{"blocked", "replica_off"}, "risso semisync on (they acknowledge then"},
		{"received before", func(f *Facts) { f.Source.Waiting, f.Waited = 1, 7*time.Second }, Blocked, []string{"received_before"}, "risso semisync on (the primary is told"},
		{"one that waits for long enough to see it", func(f *Facts) { f.Source.Waiting, f.Waited = 1, time.Second }, InForce, nil, "1 session waits now"},
		{"MariaDB's defaults", func(f *Facts) { f.Source.WaitPoint, f.Source.Timeout = "AFTER_COMMIT", 10000 }, NotProven, []string{"after_commit", "timeout"}, "after 10 s"},
		{"gives up", func(f *Facts) { f.Source.WaitNone = false }, NotProven, []string{"wait_none"}, "SET PERSIST rpl_semi_sync_source_wait_no_replica = ON"},
		{"one of three", func(f *Facts) { f.Source.Clients = 3 }, InForce, []string{"any_of_several"}, "reach 3 of them"},
		{"replica off", func(f *Facts) { f.Replicas[0].Side.Enabled = false }, InForce, []string{"replica_off"}, "risso semisync on"},
		{"replica not in force", func(f *Facts) { f.Replicas[0].Side.InForce = false }, InForce, []string{"replica_not_in_force"}, "IO_THREAD"},
		{"alone", func(f *Facts) { f.Source = read.SemiSyncSource{Names: f.Source.Names}; f.Replicas, f.Alone = nil, true }, Off, []string{"not_loaded"}, "everything, but for backups"},
		{"a replica", func(f *Facts) {
			f.Source.Enabled, f.Source.InForce = false, false
			f.Replicas, f.Alone, f.Follows = nil, true, "db0:3306"
		}, Off, []string{"is_replica"}, "it replicates from db0:3306"},
		{"counters", func(f *Facts) { f.Source.TxWaits, f.Source.TxMicros = 10, 780000 }, InForce, nil, "78 ms on average: at most 12.8/s"},
		{"measured", func(f *Facts) { f.Measured = &Measured{Commits: 50, Seconds: 0.08, Waited: 0.078, Acked: 50} }, InForce, nil, "12.5/s on one session, 500/s without the wait"},
	} {
		f := safe()
		c.make(&f)
		r := Judge(f)
		var codes []string
		text := r.Words + r.Loss + r.Cost
		for _, p := range r.Problems {
			codes = append(codes, p.Code)
			text += p.Words + p.Next
			if !strings.Contains(string(page), "| `"+p.Code+"` |") {
				t.Errorf("docs/semisync.md lacks %s", p.Code)
			}
		}
		if r.State != c.state || !slices.Equal(codes, c.codes) || !strings.Contains(text, c.words) {
			t.Errorf("%s: got %s, %v, %q, want %s, %v, %q", c.name, r.State, codes, text, c.state, c.codes, c.words)
		}
	}
}

package carry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/semisync/turn"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// semi is a group whose commits wait, with the names that its servers have for that.
type semi struct {
	*trio
	first           *sandbox.Node
	root            *mysql.Conn // to the first
	source, replica string      // beginnings of variables
	waits           int         // how many commits were made that wait
	answers         chan error
}

// TestCommits: replicas that came back do not acknowledge, and commits hang: that is told, by few sessions only; tending, or preparing, lets them go on. A primary that came
// back closed waits for replicas before it takes writes, and one that waits for nobody is told of.
func TestCommits(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{SemiSync: true, Lossless: true})
			s := &semi{trio: u, first: u.box.Nodes[0], root: sandboxtest.Connect(t, u.box.Nodes[0]), answers: make(chan error, 10)}
			now, err := read.SemiSyncNow(t.Context(), s.root)
			if err != nil {
				t.Fatal(err)
			}
			s.source, s.replica = now.Source.Names.Prefix, now.Replica.Names.Prefix

			s.silenced()
			s.told("commits of " + s.first.Name + " hang: 0 replicas acknowledge, and 1 needed; " + s.replica + "_enabled is OFF on " + u.box.Nodes[1].Name)
			s.told("it would not be certain that nothing is lost: no replica acknowledges")
			s.asked()
			did := s.tend()
			for _, n := range u.box.Nodes[1:] {
				if !strings.Contains(did, n.Name+" acknowledges again") {
					t.Errorf("%s was not let acknowledge: %s", n.Name, did)
				}
			}
			s.over()
			s.told("")
			s.applies(u.box.Nodes[2])

			s.silenced()
			if s.root.Server.KeepsSettings() { // with it the next one to be the primary would not apply after a restart
				s.sql(s.first, "SET PERSIST_ONLY "+s.source+"_enabled = ON")
			}
			lines := s.prepared().Lines
			s.over()
			s.moves(lines)

			s.reopened()
		})
	}
}

// silenced lets the replicas be as they are after a restart with semi-sync off, and commits wait.
func (s *semi) silenced() {
	s.Helper()
	for _, n := range s.box.Nodes[1:] {
		c := sandboxtest.Connect(s, n)
		stop, start, _ := strings.Cut(c.Server.RestartReceiver(""), "; ")
		s.sql(n, "SET GLOBAL "+s.replica+"_enabled = OFF", stop, start)
	}
	await.Until(s, func() bool { return s.now().Clients == 0 }, "a primary to which nobody acknowledges")
	for range 4 { // behind the first the others hold the binary log
		s.waits++
		statement := fmt.Sprintf("INSERT INTO test.ledger VALUES (-%d)", s.waits)
		go func() {
			_, err := s.first.Query(context.WithoutCancel(s.Context()), statement)
			s.answers <- err
		}()
		await.Until(s, func() bool {
			return s.sql(s.first, "SELECT COUNT(*) FROM information_schema.processlist WHERE info = '"+statement+"'") == "1"
		}, "a commit that waits")
	}
	await.Until(s, func() bool { return s.held() }, "commits that wait for long")
}

// applies lets commits of a replica wait for replicas that it does not have, as after a restart with both sides in its option file: it applies again.
func (s *semi) applies(n *sandbox.Node) {
	s.Helper()
	s.sql(n, "SET GLOBAL "+s.source+"_enabled = ON")
	if !s.write(s.first, 10*time.Second) {
		s.Fatal("a write is not acknowledged")
	}
	if did := s.tend(); !strings.Contains(did, n.Name+", which replicates in g, applies without waiting") {
		s.Errorf("it waits: %s", did)
	}
	s.arrived(n)
}

// held reports whether a commit waits for longer than one does that is acknowledged.
func (s *semi) held() bool {
	list, err := s.root.Maps(s.Context(), "SHOW PROCESSLIST")
	if err != nil {
		s.Fatal(err)
	}
	return mysql.LogHeld(list)
}

func (s *semi) now() read.SemiSyncSource {
	s.Helper()
	now, err := read.SemiSyncNow(s.Context(), s.root)
	if err != nil {
		s.Fatal(err)
	}
	return now.Source
}

// told holds what a forecast says of commits; "": nothing.
func (s *semi) told(want string) {
	s.Helper()
	f, err := s.carrier().Forecast(s.Context(), Asked{Group: "g"})
	if err != nil {
		s.Fatal(err)
	}
	words := strings.Join(f.Words(), "\n")
	if want == "" && len(f.Commits) > 0 || !strings.Contains(words, want) {
		s.Errorf("the forecast: want %q\n%s", want, words)
	}
	if f.Known.Executed == "" || !strings.Contains(words, "would follow") {
		s.Errorf("nothing is known of a primary whose commits wait: %s", words)
	}
}

// asked looks at the group again and again: no session that asks for the place of the binary log stays.
func (s *semi) asked() {
	s.Helper()
	for range 5 {
		if _, err := s.carrier().Look(s.Context(), s.group()); err != nil {
			s.Fatal(err)
		}
	}
	_, filter := s.root.LogFilter(s.Context())
	_, moment := read.SourceNow(s.Context(), s.root)
	_, logs := mysql.Logs(s.Context(), s.root)
	for _, err := range []error{filter, moment, logs} {
		if !errors.Is(err, mysql.ErrLogHeld) {
			s.Errorf("got %v, want %v", err, mysql.ErrLogHeld)
		}
	}
	if n := s.sql(s.first, "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SHOW%' AND (info LIKE '%MASTER STATUS' OR info LIKE '%BINARY LOG%') AND id <> CONNECTION_ID()"); n != "0" {
		s.Errorf("%s sessions ask how far the binary log is, in vain", n)
	}
}

func (s *semi) group() *group.Group {
	s.Helper()
	g, _ := s.primary()
	return g
}

// tend looks after the group once, and says what was done.
func (s *semi) tend() string {
	s.Helper()
	did, _, err := s.carrier().Tend(s.Context(), "g", Tends)
	if err != nil {
		s.Fatal(err)
	}
	return strings.Join(did, "\n")
}

// prepared does what risso group prepare does.
func (s *semi) prepared() *Prepared {
	s.Helper()
	p, err := s.carrier().Prepare(s.Context(), "g", s.TempDir())
	if err != nil {
		s.Fatal(err)
	}
	defer p.Close()
	for _, step := range p.Plan {
		if err := step.Do(s.Context()); err != nil {
			s.Fatalf("%s: %v", step, err)
		}
	}
	return p
}

// moves holds that what is printed for option files, or kept by servers, is enough for a member that is the primary since: after a restart of all of them its commits wait.
func (s *semi) moves(lines []turn.Lines) {
	s.Helper()
	for _, n := range s.box.Nodes {
		at := slices.IndexFunc(lines, func(l turn.Lines) bool { return l.Server == n.Name })
		if (at < 0) != s.root.Server.KeepsSettings() {
			s.Fatalf("lines for %s: %+v", n.Name, lines)
		}
	}
	next := s.box.Nodes[1]
	if _, err := s.carrier().Switchover(s.Context(), Asked{Group: "g", To: next.Name, By: "test"}); err != nil {
		s.Fatal(err)
	}
	for _, n := range s.box.Nodes {
		args := []string{"--loose-" + s.replica + "_enabled=OFF", "--loose-" + s.source + "_timeout=10000", "--loose-" + s.source + "_wait_point=AFTER_COMMIT"} // as option files without those lines
		for _, l := range lines {
			for _, line := range l.Lines {
				if l.Server == n.Name {
					args = append(args, "--"+strings.ReplaceAll(line, " = ", "="))
				}
			}
		}
		if err := n.Stop(s.Context()); err != nil {
			s.Fatal(err)
		}
		if err := n.Start(s.Context(), args...); err != nil {
			s.Fatal(err)
		}
	}
	s.root.Close()
	s.first, s.root = next, sandboxtest.Connect(s, next)
	await.Until(s, func() bool {
		s.tend()
		return s.sql(next, "SELECT @@GLOBAL.read_only") == "0"
	}, "a primary that takes writes")
	if now := s.now(); !now.Enabled || now.WaitPoint != "AFTER_SYNC" || now.Timeout < 3600000 {
		s.Errorf("after a switchover and a restart commits do not wait: %+v", now)
	}
	s.acknowledged()
	if !s.write(next, 10*time.Second) {
		s.Error("a write is not acknowledged")
	}
	for _, n := range s.box.Nodes { // also the one that was the primary
		s.arrived(n)
	}
}

// arrived waits until a node has the last row.
func (s *semi) arrived(n *sandbox.Node) {
	s.Helper()
	await.Until(s, func() bool {
		return s.sql(n, fmt.Sprintf("SELECT COUNT(*) FROM test.ledger WHERE id = %d", s.trio.last)) == "1"
	}, "%s to apply", n.Name)
}

// over waits until all commits are acknowledged, and those that come are.
func (s *semi) over() {
	s.Helper()
	began := time.Now()
	for range 4 {
		select {
		case err := <-s.answers:
			if err != nil {
				s.Fatal(err)
			}
		case <-time.After(30 * time.Second):
			s.Fatalf("a commit waits on: %+v", s.now())
		}
	}
	await.Until(s, func() bool { now := s.now(); return now.Enabled && now.InForce && now.Clients == 2 }, "a primary that waits for its two replicas")
	s.Logf("all went on after %s", time.Since(began))
	if !s.write(s.first, 10*time.Second) {
		s.Error("a write is not acknowledged")
	}
}

// reopened lets the primary come back closed, and without semi-sync, as after a restart.
func (s *semi) reopened() {
	s.Helper()
	off := []string{"SET GLOBAL " + s.source + "_enabled = OFF", "SET GLOBAL " + s.source + "_timeout = 5000", "SET GLOBAL " + s.source + "_wait_point = AFTER_COMMIT"}
	s.sql(s.first, off...)
	s.told("commits of " + s.first.Name + " can be acknowledged without a replica: " + s.source + "_enabled is OFF")
	s.sql(s.first, "SET GLOBAL "+s.source+"_enabled = ON")
	s.told("can be acknowledged without a replica: they wait for 5 s at most; they wait after others see them (AFTER_COMMIT)")
	if err := s.first.Stop(s.Context()); err != nil {
		s.Fatal(err)
	}
	if err := s.first.Start(s.Context(), "--read-only=ON", "--loose-"+s.source+"_wait_point=AFTER_COMMIT"); err != nil {
		s.Fatal(err)
	}
	s.root.Close()
	s.root = sandboxtest.Connect(s, s.first)
	if now := s.now(); now.Enabled {
		s.Fatalf("after a restart commits wait: %+v", now)
	}
	if did := s.tend(); !strings.Contains(did, "takes writes again") {
		s.Errorf("it was not opened: %s", did)
	}
	if now := s.now(); !now.Enabled || now.WaitPoint != "AFTER_SYNC" || now.Timeout < 3600000 {
		s.Errorf("it takes writes, and its commits do not wait: %+v", now)
	}
	s.acknowledged()
	s.told("")
}

// acknowledged waits until both replicas acknowledge by themselves.
func (s *semi) acknowledged() {
	s.Helper()
	var seen []string
	await.Until(s, func() bool {
		if s.now().Clients == 2 {
			return true
		}
		seen = nil
		for _, n := range s.box.Nodes {
			if n != s.first {
				seen = append(seen, n.Name+": "+s.receiver(n))
			}
		}
		return false
	}, "replicas that acknowledge: %q", &seen)
}

// receiver is how the receiver of a replica is, in the server's words.
func (s *semi) receiver(n *sandbox.Node) string {
	s.Helper()
	c := sandboxtest.Connect(s, n)
	defer c.Close()
	rows, err := c.Maps(s.Context(), c.Server.ReplicaStatusStatement())
	text := fmt.Sprint(len(rows), " channels, ", err)
	for _, r := range rows {
		for _, name := range []string{"Slave_IO_State", "Replica_IO_State", "Slave_IO_Running", "Replica_IO_Running", "Last_IO_Error", "Last_IO_Error_Timestamp"} {
			if v := r[name]; v != "" {
				text += ", " + v
			}
		}
	}
	return text
}

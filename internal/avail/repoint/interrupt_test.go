package repoint_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestInterrupted: a move ends after each of its steps, and in the midst of each; then the replica replicates, from where it is said, and no journal is left.
func TestInterrupted(t *testing.T) {
	for _, name := range []string{"mariadb", "mysql-9.7", "mariadb by position", "mysql-9.7 by position"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, byPosition := strings.CutSuffix(name, " by position")
			s := up(t, 2, spec)
			for i := 1; i < 3 && byPosition; i++ {
				s.byPosition(i)
			}
			s.pace = 20 * time.Millisecond // its replicas are to be level soon, many times
			s.do(0, "CREATE DATABASE d", "CREATE TABLE d.ledger (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB", "CREATE TABLE d.slow (a INT) ENGINE=InnoDB")
			s.level("d.slow")
			l := s.write(0, "d.ledger")
			steps := 1
			for k := 0; k < steps; k++ {
				var what string
				if steps, what = s.interrupt(k, false); strings.Contains(what, "CHANGE") || strings.Contains(what, "START") {
					s.interrupt(k, true)
				}
			}
			if s.end(l); byPosition {
				return
			}
			s.stopping()
			s.theirs()
		})
	}
}

// cut makes a plan, and lets it be interrupted after a step, or in its midst.
func (s *servers) cut(k int, amid bool) (*repoint.Move, error) {
	s.t.Helper()
	m, err := s.prepare(2, 1)
	for range 20 { // a server that answers late, as the machine is busy, was not seen
		if !errors.Is(err, repoint.ErrRefused) {
			break
		}
		time.Sleep(500 * time.Millisecond)
		m, err = s.prepare(2, 1)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	do := m.Plan[k].Do
	m.Plan[k].Do = func(ctx context.Context) error {
		if amid {
			go cancel()
			return do(ctx)
		}
		defer cancel()
		return do(ctx)
	}
	return m, m.Do(ctx)
}

// interrupt does so with one step, puts the replica back if it stays below its new source, and says how many steps there are, and which it was.
func (s *servers) interrupt(k int, amid bool) (steps int, what string) {
	s.t.Helper()
	m, err := s.cut(k, amid)
	ch := s.channel(2).Status
	what = m.Plan[k].String()
	last := k == len(m.Plan)-1
	switch {
	case !amid && (err == nil) != last, err != nil && !errors.Is(err, context.Canceled):
		s.t.Errorf("%s: got %v, want that it was interrupted", what, err)
	case ch.IORunning == "No" || !s.channel(2).SQLRunning:
		s.t.Errorf("%s: got %+v, want that it replicates: %v", what, ch, err)
	case err == nil && ch.Source != s.address(1),
		err != nil && strings.Contains(err.Error(), "as it was before") != (ch.Source == s.address(0)),
		err != nil && strings.Contains(err.Error(), "points at "+s.address(1)+" now") != (ch.Source == s.address(1)):
		s.t.Errorf("%s: got %v, and it replicates from %s", what, err, ch.Source)
	}
	if other := s.channel(1); other.Status.IORunning == "No" || !other.SQLRunning {
		s.t.Errorf("%s: the other replica, which may have stood still: got %+v, want that it replicates", what, other.Status)
	}
	s.nothingLeft()
	if ch.Source != s.address(0) {
		s.move(2, 0)
	}
	return len(m.Plan), what
}

// stopping: a change is interrupted while the applier ends its transaction, as it was told. It applies afterwards, and still does when that is over.
func (s *servers) stopping() {
	const takes = 5 // seconds
	s.do(0, "SET SESSION binlog_format = 'STATEMENT'")
	s.do(0, "INSERT INTO d.slow SELECT SLEEP("+string('0'+rune(takes))+")")
	runs := func(word string) func() bool {
		c := sandboxtest.Connect(s.t, s.box.Nodes[2])
		return func() bool {
			rows, err := c.Maps(s.t.Context(), "SHOW PROCESSLIST")
			for _, row := range rows {
				if err == nil && strings.HasPrefix(row["Info"], word) {
					return true
				}
			}
			return false
		}
	}
	s.awaits(2, "that it applies", runs("INSERT INTO d.slow"))
	top, index := s.look()
	d, err := s.r.Delay(s.t.Context(), top, index[2], nil, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	stops := runs("STOP ")
	ended := make(chan error, 1)
	go func() { ended <- d.Do(ctx) }()
	s.awaits(2, "that it is told to stop", stops)
	cancel()
	err = <-ended
	ch := s.channel(2)
	if err == nil || !strings.Contains(err.Error(), "stays 0 s behind now") || stops() || !ch.SQLRunning || ch.Status.IORunning == "No" {
		s.t.Errorf("interrupted while it stops: got %v, %+v, STOP runs: %t; want that it replicates", err, ch.Status, stops())
	}
	if d.Journal == "" {
		s.t.Error("no file says what was done")
	}
	s.nothingLeft()
	s.level("d.slow")
}

// theirs: what only the new source has was received, and is not applied when the replica goes back.
func (s *servers) theirs() {
	s.writable(1)
	if s.conns[1].Server.GTIDsByDomain() {
		s.do(1, "SET SESSION gtid_domain_id = 9") // its numbers go on in its own
	}
	s.do(1, "CREATE TABLE d.theirs (a INT)")
	m, err := s.prepare(2, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	receive := 0
	for i, step := range m.Plan {
		if strings.Contains(step.What, "START") && strings.Contains(step.What, string(mysql.Receiver)) {
			receive = i
		}
	}
	if _, err := s.cut(receive, false); err == nil || !strings.Contains(err.Error(), "as it was before") || s.channel(2).Status.Source != s.address(0) {
		s.t.Errorf("interrupted when it received: got %v, and it replicates from %s", err, s.channel(2).Status.Source)
	}
	s.do(0, "SET SESSION binlog_format = 'ROW'")
	s.do(0, "INSERT INTO d.slow VALUES (7)")
	s.level("d.slow")
	if _, err := s.conns[2].Text(s.t.Context(), "SELECT COUNT(*) FROM d.theirs"); mysql.ErrorNumber(err) != errno.NoSuchTable {
		s.t.Errorf("the table that only the new source has: got %v, want that the replica lacks it", err)
	}
	s.nothingLeft()
}

//go:build cgo

package history

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/explain/prepared"
)

// session is a separate connection, which prepares statements by the binary protocol.
func (s *scene) session(schema string) *sql.Conn {
	s.t.Helper()
	db, err := s.node.DB()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { db.Close() })
	c, err := db.Conn(s.t.Context())
	if err == nil {
		_, err = c.ExecContext(s.t.Context(), "USE "+schema)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	s.sessions = append(s.sessions, c)
	return c
}

// end ends a session, so that the server knows it.
func end(t *testing.T, s *scene, c *sql.Conn) {
	t.Helper()
	var id int64
	if err := c.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	s.run(1, fmt.Sprintf("KILL %d", id))
	await.Until(t, func() bool {
		n := 0
		if err := s.db.QueryRowContext(t.Context(), fmt.Sprintf("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %d", id)).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	}, "the end of the session")
}

func prepare(t *testing.T, c *sql.Conn, query string) *sql.Stmt {
	t.Helper()
	st, err := c.PrepareContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func execute(t *testing.T, st *sql.Stmt, times int, args func(i int) []any) {
	t.Helper()
	for i := range times {
		rows, err := st.QueryContext(t.Context(), args(i)...)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
}

func oneArg(i int) []any { return []any{i} }

// TestPrepared executes prepared statements by the binary protocol: each execution is stored once on each server, in the class of the
// same statement run as text, with its user and schema; what a session does before it ends is reported as missing, with its share.
func TestPrepared(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		s := newScene(t, kind, func(o *Options) { o.PlanID = planID })
		inDigests := kind == "mysql-9.7" // measured, and what the collector finds out itself
		s.run(1, "CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))")
		conn := s.session("shop")
		sel, ins := prepare(t, conn, "select *  from t where id=?"), prepare(t, conn, "INSERT INTO t (id, a) VALUES (?, ?), (?, ?) ON DUPLICATE KEY UPDATE a = ?")
		execute(t, sel, 17, oneArg) // before the first reading: does not count
		s.mustRead()
		if got := s.c.prepared.Counting; got.Digests != inDigests || got.Instances == inDigests {
			t.Fatalf("counting: got %+v; want Digests %v, Instances not %v", got, inDigests, inDigests)
		}
		execute(t, sel, 1000, oneArg)
		execute(t, ins, 30, func(i int) []any { return []any{i, "x", 1000 + i, "it's", "y"} })
		s.run(25, point)
		s.mustRead()
		s.expect(map[string]int64{point: 1025, insert: 30})
		execute(t, sel, 7, oneArg)
		late := prepare(t, conn, several[:strings.Index(several, "#")]+"?, 2, 3) ORDER BY a DESC LIMIT 5")
		execute(t, late, 12, oneArg)
		s.run(1, "SET @a = 3", "PREPARE s FROM '"+strings.ReplaceAll(point, "#", "?")+"'") // the text protocol counts by itself
		s.run(9, "EXECUTE s USING @a")
		s.mustRead()
		s.mustRead() // a minute in which nothing ran
		text := int64(0)
		if inDigests {
			text = 9
		} else {
			s.expect(map[string]int64{"EXECUTE s USING @a": 9})
		}
		s.expect(map[string]int64{point: 1032 + text, insert: 30, several: 12})
		s.checkPrepared(inDigests)
		s.preparedGone(kind, conn, inDigests, 1032+text)
		s.preparedRestart(inDigests)
		for _, c := range s.top() {
			if strings.Contains(c.Fingerprint, "risso_prepared") || strings.Contains(c.Fingerprint, "performance_schema.") {
				t.Errorf("the observer observes itself: got %d × %s; want no \"risso_prepared\" in it, no \"performance_schema.\" in it", c.Calls, c.Fingerprint)
			}
		}
	})
}

// checkPrepared looks at what else is known of the executions.
func (s *scene) checkPrepared(inDigests bool) {
	s.t.Helper()
	c := s.top()[classOf(insert)]
	if c.RowsAffected != 60 || c.Seconds <= 0 || c.MaxSeconds <= 0 || c.MaxSeconds > c.Seconds || c.Verb != "INSERT" || c.Tables != "t" {
		s.t.Errorf("insert: %+v", c)
	}
	a := s.class(insert)
	if len(a.BySchema) != 1 || a.BySchema[0].Value != "shop" || a.BySchema[0].Calls != 30 {
		s.t.Errorf("by schema %+v", a.BySchema)
	}
	if !inDigests && (a.ByUserFrom != "statements" || len(a.ByUser) != 1 || a.ByUser[0].Value != "root" || a.ByUser[0].Calls != 30) {
		s.t.Errorf("by user from %q: %+v", a.ByUserFrom, a.ByUser)
	}
	if len(a.Samples) != 1 || a.Samples[0].User != "root" || !strings.Contains(a.Samples[0].Text, "VALUES (?, ?)") && !inDigests {
		s.t.Errorf("samples %+v", a.Samples)
	}
	if st := s.c.Status(); len(st.Notes) > 0 {
		s.t.Errorf("notes %+v", st.Notes)
	}
}

// preparedGone ends the session after executions that were not read.
func (s *scene) preparedGone(kind string, conn *sql.Conn, inDigests bool, before int64) {
	s.t.Helper()
	st := prepare(s.t, conn, "select *  from t where id=?")
	execute(s.t, st, 400, oneArg)
	end(s.t, s, conn)
	again := prepare(s.t, s.session("shop"), "SELECT * FROM t WHERE id = ?")
	execute(s.t, again, 5, oneArg)
	s.mustRead()
	missing, all := s.c.prepared.Missing()
	notes := s.c.Status().Notes
	if inDigests {
		s.expect(map[string]int64{point: before + 405})
		if len(notes) != 0 {
			s.t.Errorf("notes %+v", notes)
		}
		return
	}
	s.expect(map[string]int64{point: before + 5})
	// 1,049 were found before, and these 5.
	if missing != 400 || all != 1454 {
		s.t.Errorf("%d of %d are missing; it is 400 of 1,454", missing, all)
	}
	if len(notes) != 1 || !strings.HasPrefix(notes[0].Why, "28 % ") || notes[0].Remedy != prepared.Keep {
		s.t.Errorf("%s: notes %+v", kind, notes)
	}
}

// preparedRestart executes more after a restart than ever before it, by sessions that look the same.
func (s *scene) preparedRestart(inDigests bool) {
	s.t.Helper()
	s.run(3, "SELECT COUNT(*) FROM t")
	before := s.top()[classOf(point)].Calls
	time.Sleep(time.Until(s.began.Add(restartApart))) // only this test restarts a server so soon
	s.db.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	err := s.node.Stop(ctx)
	if err == nil {
		err = s.node.Start(ctx)
	}
	if err == nil {
		s.db, err = s.node.DB()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.db.Close() })
	st := prepare(s.t, s.session("shop"), "SELECT * FROM t WHERE id = ?")
	execute(s.t, st, 1500, oneArg)
	if st := s.read(); !st.Working { // it notices that its connection is gone
		s.mustRead()
	}
	s.expect(map[string]int64{point: before + 1500})
	execute(s.t, st, 3, oneArg)
	s.mustRead()
	s.expect(map[string]int64{point: before + 1503})
}

// restartApart is longer than two times of a server's start may differ without being a restart.
const restartApart = 4 * time.Second

// TestPreparedOff: a server that counts no executions is distinguished from one on which there were none, and the remedy works as printed.
func TestPreparedOff(t *testing.T) {
	for _, kind := range []string{"mysql-8.0", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, kind, nil)
			s.run(1, "CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY)", "UPDATE performance_schema.setup_consumers SET ENABLED = 'NO' WHERE NAME = 'events_statements_current'")
			conn := s.session("shop")
			st := prepare(t, conn, "SELECT id FROM t WHERE id = ?")
			s.mustRead()
			execute(t, st, 5, oneArg)
			s.mustRead()
			notes := s.c.Status().Notes
			if len(notes) != 1 || !strings.Contains(notes[0].Remedy, "events_statements_current") {
				t.Fatalf("notes %+v; want len(notes) 1, \"events_statements_current\" in notes[0].Remedy", notes)
			}
			s.run(1, notes[0].Remedy)
			s.mustRead()
			execute(t, st, 6, oneArg)
			s.mustRead()
			s.expect(map[string]int64{"SELECT id FROM t WHERE id = #": 6})
			if notes := s.c.Status().Notes; len(notes) != 0 {
				t.Errorf("notes %+v, want none", notes)
			}
		})
	}
}

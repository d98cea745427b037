package oltp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// created is a table's definition without what has to differ: the comment and the next number.
func (s *server) created(c drive.Session, table string) string {
	s.t.Helper()
	if s.kind != "postgres" {
		sql := string(s.ask(c, "SHOW CREATE TABLE "+table)[0][1].Text)
		sql = strings.Replace(sql, " COMMENT='"+workload.Mark+"'", "", 1)
		return regexp.MustCompile(` AUTO_INCREMENT=\d+`).ReplaceAllString(sql, "")
	}
	var b strings.Builder
	for _, r := range s.ask(c, "SELECT column_name::text, data_type::text, COALESCE(character_maximum_length, 0)::text, COALESCE(column_default, '')::text, is_nullable::text FROM information_schema.columns WHERE table_name = '"+table+"' ORDER BY ordinal_position") {
		for _, v := range r {
			fmt.Fprintf(&b, "%s|", v.Text)
		}
	}
	for _, r := range s.ask(c, "SELECT indexdef::text FROM pg_indexes WHERE tablename = '"+table+"' ORDER BY 1") {
		fmt.Fprintf(&b, "\n%s", r[0].Text)
	}
	return b.String()
}

// TestSameTables compares tables that sysbench made with ours, and runs each tool on the other's.
func TestSameTables(t *testing.T) {
	needSysbench(t)
	eachServer(t, func(s *server) {
		theirs := s.open(s.theirs)
		for _, c := range []struct {
			flags  []string
			change func(p *workload.Params)
		}{
			{nil, nil},
			{[]string{"--auto_inc=off"}, func(p *workload.Params) { p.NoAutoInc = true }},
			{[]string{"--create_secondary=off"}, func(p *workload.Params) { p.NoIndex = true }},
			{[]string{"--secondary=on"}, func(p *workload.Params) { p.Secondary = true }},
			{[]string{"--mysql_storage_engine=myisam"}, func(p *workload.Params) { p.Engine = "myisam" }},
		} {
			if s.kind == "postgres" && len(c.flags) > 0 && (strings.HasPrefix(c.flags[0], "--sec") || strings.HasPrefix(c.flags[0], "--mysql")) {
				continue // sysbench cannot
			}
			flags := append([]string{"--tables=2", "--table-size=2000"}, c.flags...)
			s.bySysbench("theirs", "oltp_read_write", "prepare", append(flags, "--threads=2")...)
			p := params(func(p *workload.Params) { p.Tables, p.TableSize = 2, 2000 })
			if c.change != nil {
				c.change(&p)
			}
			s.prepare("read_write", p)
			for _, name := range []string{"sbtest1", "sbtest2"} {
				if a, b := s.created(theirs, name), s.created(s.s, name); a != b {
					s.t.Errorf("%v: sysbench made\n%s\nrisso\n%s", c.flags, a, b)
				}
			}
			if n := s.count(s.s, "SELECT COUNT(*) FROM sbtest2 WHERE id BETWEEN 1 AND 2000"); n != 2000 {
				s.t.Errorf("%v: %d rows with the ids from 1 to 2000", c.flags, n)
			}
			// By one thread: without transactions (MyISAM) two may delete and insert the same id.
			s.bySysbench("sbtest", "oltp_read_write", "run", append(flags, "--time=0", "--events=20")...)
			s.run(theirs, "read_write", p, 20)
			s.bySysbench("sbtest", "oltp_insert", "run", append(flags, "--time=0", "--events=20")...)
			s.run(s.s, "insert", p, 20)
			if n := s.count(s.s, "SELECT COUNT(*) FROM sbtest1") + s.count(s.s, "SELECT COUNT(*) FROM sbtest2"); n != 4040 {
				s.t.Errorf("%v: %d rows after 40 inserts", c.flags, n)
			}
			s.bySysbench("theirs", "oltp_read_write", "cleanup", flags...)
			s.cleanup()
		}
	})
}

// TestRows looks at what is in the tables.
func TestRows(t *testing.T) {
	eachServer(t, func(s *server) {
		const rows = 60_000 // more than two units
		s.prepare("read_write", params(func(p *workload.Params) { p.Tables, p.TableSize = 1, rows }))
		if n := s.count(s.s, "SELECT COUNT(*) FROM sbtest1"); n != rows {
			s.t.Fatalf("%d rows", n)
		}
		if n := s.count(s.s, "SELECT MAX(id) FROM sbtest1"); n != rows {
			s.t.Errorf("the largest id is %d", n)
		}
		special := s.count(s.s, fmt.Sprintf("SELECT COUNT(*) FROM sbtest1 WHERE k BETWEEN %d AND %d", rows/2-rows/200, rows/2+rows/200+1))
		if share := float64(special) / rows; math.Abs(share-0.76) > 0.01 { // 75 %, and what the bell has there
			s.t.Errorf("%.3f of the values of k are in the special part", share)
		}
		c, pad := regexp.MustCompile(`^(\d{11}-){9}\d{11} ?$`), regexp.MustCompile(`^(\d{11}-){4}\d{11} ?$`)
		seen := map[string]bool{}
		for _, r := range s.ask(s.s, "SELECT c, pad FROM sbtest1 WHERE id % 50 = 0") {
			if !c.Match(r[0].Text) || !pad.Match(r[1].Text) {
				s.t.Fatalf("c %q, pad %q", r[0].Text, r[1].Text)
			}
			seen[string(r[0].Text)] = true
		}
		if len(seen) != rows/50 {
			s.t.Errorf("%d different texts in %d rows", len(seen), rows/50)
		}
		s.run(s.s, "insert", params(func(p *workload.Params) { p.Tables = 1 }), 3)
		if n := s.count(s.s, "SELECT MAX(id) FROM sbtest1"); n != rows+3 {
			s.t.Errorf("after three inserts the largest id is %d", n)
		}
		s.cleanup()
		s.prepare("insert", params(func(p *workload.Params) { p.Tables, p.NoPrimaryKey = 1, true }))
		s.run(s.s, "insert", params(func(p *workload.Params) { p.Tables, p.NoPrimaryKey = 1, true }), 3)
		if n := s.count(s.s, "SELECT COUNT(DISTINCT id) FROM sbtest1"); n != 1003 {
			s.t.Errorf("without a primary key: %d different ids of 1003", n)
		}
	})
}

// TestGroups holds that all digits come with the same probability at all places.
func TestGroups(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var b [groupSize]byte
	var counts [groupSize][10]int
	const n = 200_000
	for range n {
		group(rng, b[:])
		for i, d := range b {
			counts[i][d-'0']++
		}
	}
	for i := range counts {
		chi := 0.0
		for _, c := range counts[i] {
			chi += math.Pow(float64(c)-n/10, 2) / (n / 10)
		}
		if chi > 33.7 { // 0.9999 quantile with 9 degrees of freedom
			t.Errorf("place %d: chi-square %.1f: got %v, want at most 33.7", i, chi, counts[i])
		}
	}
}

// TestSequence holds that no id comes twice.
func TestSequence(t *testing.T) {
	s, seen := newSequence(), map[int64]bool{}
	for range 1_000_000 {
		id := s.take()
		if seen[id] || id < math.MinInt32 || id > math.MaxInt32 {
			t.Fatalf("id %d", id)
		}
		seen[id] = true
	}
}

// TestRefusals: prepare does not touch what is there, cleanup does not drop what it did not make.
func TestRefusals(t *testing.T) {
	eachServer(t, func(s *server) {
		s.do(s.s, "CREATE TABLE sbtest2 (id INTEGER, precious INTEGER)", "INSERT INTO sbtest2 VALUES (1, 2)", "CREATE TABLE sbtest_mine (id INTEGER)")
		o := workload.PrepareOptions{Target: s.target, Threads: 2}
		w := s.workload("read_write", params(nil))
		if err := w.Prepare(s.t.Context(), o); err == nil || !strings.Contains(err.Error(), "sbtest2 is there already") {
			s.t.Errorf("prepare over a user's table: %v", err)
		}
		if there, err := workload.Tables(s.s, "sbtest"); err != nil || len(there) != 2 {
			s.t.Errorf("tables after a refused prepare: %v, %v", there, err)
		}
		s.prepare("read_write", params(func(p *workload.Params) { p.Tables = 1 }))
		if err := w.Cleanup(s.t.Context(), o); err == nil || !strings.Contains(err.Error(), "sbtest2 is not risso's") {
			s.t.Errorf("cleanup beside a user's table: %v", err)
		}
		there, err := workload.Tables(s.s, "sbtest")
		if _, ours := there["sbtest1"]; err != nil || ours || len(there) != 2 {
			s.t.Errorf("tables after the cleanup: %v, %v", there, err)
		}
		if n := s.count(s.s, "SELECT precious FROM sbtest2"); n != 2 {
			s.t.Errorf("the user's row is %d", n)
		}
	})
}

// TestInterrupted: an end of the context, at any moment, leaves no table and no session.
func TestInterrupted(t *testing.T) {
	eachServer(t, func(s *server) {
		for _, at := range []float64{0, 0.1, 0.6, 1} {
			ctx, cancel := context.WithCancel(s.t.Context())
			p := params(func(p *workload.Params) { p.Tables, p.TableSize = 2, 60_000 })
			began := time.Now()
			err := s.workload("read_write", p).Prepare(ctx, workload.PrepareOptions{Target: s.target, Threads: 2, Progress: func(done, total int64) {
				if float64(done) >= at*float64(total) {
					cancel() // at 1: while the index of the last table is built
				}
			}})
			cancel()
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "has been removed") {
				s.t.Fatalf("interrupted at %v: %v", at, err)
			}
			if took := time.Since(began); took > time.Minute {
				s.t.Errorf("interrupted at %v: it took %v", at, took)
			}
			if there, err := workload.Tables(s.s, "sbtest"); err != nil || len(there) != 0 {
				s.t.Fatalf("interrupted at %v: %v is left (%v)", at, there, err)
			}
		}
		sessions := "SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'sbtest'"
		if s.kind == "postgres" {
			sessions = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = 'sbtest'"
		}
		await.Until(s.t, func() bool { return s.count(s.s, sessions) == 1 }, "the end of all other sessions")
	})
}

// TestOthers: what the guard sees.
func TestOthers(t *testing.T) {
	needSysbench(t)
	eachServer(t, func(s *server) {
		others := func() string {
			n, first, err := workload.Others(s.t.Context(), s.target)
			if err != nil {
				s.t.Fatal(err)
			}
			return fmt.Sprint(n, " ", first)
		}
		if o := others(); o != "0 " {
			s.t.Errorf("an empty server: %s", o)
		}
		s.bySysbench("sbtest", "oltp_read_write", "prepare", "--tables=2", "--table-size=10")
		if o := others(); o != "0 " {
			s.t.Errorf("beside sysbench's tables: %s", o)
		}
		s.bySysbench("sbtest", "oltp_read_write", "cleanup", "--tables=2")
		s.prepare("read_write", params(nil))
		s.bySysbench("theirs", "bulk_insert", "prepare", "--threads=2")
		if o := others(); o != "0 " {
			s.t.Errorf("beside our own tables and those of sysbench's bulk_insert: %s", o)
		}
		s.do(s.s, "CREATE TABLE sbtest77 (id INTEGER, precious INTEGER)", "CREATE TABLE zoo (id INTEGER)")
		schema := map[bool]string{true: "public", false: "sbtest"}[s.kind == "postgres"]
		if o := others(); o != "2 "+schema+".sbtest77" {
			s.t.Errorf("beside a user's: %s", o)
		}
	})
}

// TestErrors: a lock that is not got ends the transaction, which is rolled back; the session goes on.
func TestErrors(t *testing.T) {
	eachServer(t, func(s *server) {
		p := params(func(p *workload.Params) { p.Tables, p.TableSize = 1, 1 })
		s.prepare("write_only", p)
		c := s.open(s.target)
		want := "1205"
		if s.kind == "postgres" {
			s.do(c, "SET lock_timeout = '300ms'")
			want = "55P03"
		} else {
			s.do(c, "SET innodb_lock_wait_timeout=1")
		}
		w, err := s.workload("write_only", p).Client(c, 0, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			s.t.Fatal(err)
		}
		s.do(s.s, "BEGIN", "UPDATE sbtest1 SET pad='mine' WHERE id=1")
		var server *drive.ServerError
		if err := w.Transaction(); !errors.As(err, &server) || server.Label() != want {
			s.t.Fatalf("a locked row: %v", err)
		}
		s.do(s.s, "COMMIT")
		if err := w.Transaction(); err != nil {
			s.t.Errorf("after the lock is gone: %v", err)
		}
		// Nothing of the transaction that failed may be left locked: another session gets the row immediately.
		s.do(s.s, "BEGIN", "UPDATE sbtest1 SET pad='mine' WHERE id=1", "COMMIT")
		if n := s.count(s.s, "SELECT COUNT(*) FROM sbtest1"); n != 1 {
			s.t.Errorf("%d rows", n)
		}
	})
}

// TestNoAllocation: a transaction allocates nothing, be it prepared or text.
func TestNoAllocation(t *testing.T) {
	eachServer(t, func(s *server) {
		p := params(func(p *workload.Params) { p.Tables, p.TableSize = 1, 1000 })
		s.prepare("read_write", p)
		for _, unprepared := range []bool{false, true} {
			p.Unprepared = unprepared
			for _, name := range []string{"read_write", "point_select", "select_random_points", "insert", "delete"} {
				w, err := s.workload(name, p).Client(s.s, 0, rand.New(rand.NewPCG(1, 1)))
				if err != nil {
					s.t.Fatal(err)
				}
				n := testing.AllocsPerRun(50, func() {
					if err := w.Transaction(); err != nil {
						s.t.Fatal(err)
					}
				})
				if n != 0 {
					s.t.Errorf("%s, unprepared %v: %v allocations a transaction", name, unprepared, n)
				}
			}
		}
	})
}

// TestBulkInsert compares the statements of bulk_insert with sysbench's, and looks at the rows.
func TestBulkInsert(t *testing.T) {
	needSysbench(t)
	eachServer(t, func(s *server) {
		const rows = 80_000
		s.bySysbench("theirs", "bulk_insert", "prepare", "--threads=1")
		s.prepare("bulk_insert", params(nil))
		if a, b := s.created(s.open(s.theirs), "sbtest1"), s.created(s.s, "sbtest1"); a != b {
			s.t.Errorf("sysbench made\n%s\nrisso\n%s", a, b)
		}
		s.log()
		s.bySysbench("theirs", "bulk_insert", "run", "--threads=1", "--time=0", fmt.Sprintf("--events=%d", rows))
		theirs := inserts(s.log())
		s.run(s.s, "bulk_insert", params(nil), rows)
		ours := inserts(s.log())
		if len(ours) < 2 || len(theirs) != len(ours)+1 || strings.Join(theirs[:len(ours)], "") != strings.Join(ours, "") {
			s.t.Errorf("sysbench sent %d statements, the first of %d bytes, risso %d of %d", len(theirs), size(theirs), len(ours), size(ours))
		}
		s.run(s.s, "bulk_insert", params(nil), rows) // goes on after the rows that are there
		s.cleanup()
	})
}

func inserts(log []entry) (out []string) {
	for _, e := range log {
		if e.command == "Query" && strings.HasPrefix(e.sql, "INSERT INTO sbtest") {
			out = append(out, e.sql)
		}
	}
	return out
}

func size(list []string) int {
	if len(list) == 0 {
		return 0
	}
	return len(list[0])
}

// TestWrongUse: each mistake is an error of use.
func TestWrongUse(t *testing.T) {
	for what, change := range map[string]func(p *workload.Params){
		"no tables":          func(p *workload.Params) { p.Tables = 0 },
		"negative rows":      func(p *workload.Params) { p.TableSize = -1 },
		"more than INTEGER":  func(p *workload.Params) { p.TableSize = 1 << 31 },
		"negative ranges":    func(p *workload.Params) { p.SimpleRanges = -1 },
		"no such law":        func(p *workload.Params) { p.Distribution = "normal" },
		"law's parameter":    func(p *workload.Params) { p.DistributionParams = map[string]float64{"spec-pct": 101} },
		"injected engine":    func(p *workload.Params) { p.Engine = "x; DROP DATABASE y" },
		"nothing to measure": func(p *workload.Params) { p.PointSelects, p.NoRangeSelects = 0, true },
	} {
		if _, err := New("read_only", params(change)); !errors.Is(err, workload.ErrUsage) {
			t.Errorf("%s: got %v, want workload.ErrUsage", what, err)
		}
	}
	if _, err := New("select_random_points", params(nil)); !errors.Is(err, workload.ErrUsage) {
		t.Errorf("three tables: got %v, want workload.ErrUsage", err)
	}
	if _, err := New("tpcq", params(nil)); !errors.Is(err, workload.ErrUsage) {
		t.Errorf("an unknown name: got %v, want workload.ErrUsage", err)
	}
}

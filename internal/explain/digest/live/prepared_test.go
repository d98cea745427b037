package live

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/digest"
)

// prepare prepares a statement by the binary protocol.
func (s *scene) prepare(t *testing.T, query string) *sql.Stmt {
	t.Helper()
	st, err := s.db.PrepareContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func execute(t *testing.T, st *sql.Stmt, times int) {
	t.Helper()
	for i := range times {
		var a string // no row is no error here
		if err := st.QueryRowContext(t.Context(), i).Scan(&a); err != nil && !errors.Is(err, sql.ErrNoRows) {
			t.Fatal(err)
		}
	}
}

// Executions of prepared statements are counted once on each server, with those of the same statement run as text.
func TestPrepared(t *testing.T) {
	for _, kind := range append([]string{"mysql-8.0"}, kinds...) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := up(t, kind, counting...)
			s.exec(t, "CREATE TABLE test.t (id INT PRIMARY KEY, s VARCHAR(20))", "INSERT INTO test.t VALUES (1,'a'),(2,'b'),(3,'c')", "CREATE DATABASE other", "USE other")
			const query = "SELECT s FROM test.t WHERE id = 7"
			st := s.prepare(t, "select s from test.t where id=?")
			execute(t, st, 40)
			s.exec(t, query)
			p, notes, err := s.read(t, Options{For: window, Samples: 2}, func() {
				execute(t, st, 1000)
				execute(t, s.prepare(t, "SELECT s FROM test.t WHERE id = ?"), 10)
				s.exec(t, query, query)
				gone := s.prepare(t, "SELECT s FROM test.t WHERE id = ?")
				execute(t, gone, 500)
				if err := gone.Close(); err != nil {
					t.Fatal(err)
				}
				s.exec(t, "DO 0") // the server answers no close: when this is answered, it was heard
			})
			if err != nil {
				t.Fatal(err)
			}
			checkPrepared(t, kind, p.Calls, 1012, find(p, query), notes, "33 % of the executions of prepared statements (500 of 1,510)")
			all, notes, err := s.read(t, Options{Samples: 2}, nil)
			if err != nil {
				t.Fatal(err)
			}
			checkPrepared(t, kind, all.Calls, 1053, find(all, query), notes, "% of the executions of prepared statements (50")
		})
	}
}

func checkPrepared(t *testing.T, kind string, total, want int64, c *digest.Class, notes []string, missing string) {
	t.Helper()
	if c == nil {
		t.Fatal("the class is not there")
	}
	told := strings.Contains(strings.Join(notes, " "), missing)
	if kind == "mysql-9.7" { // its digests count them all
		want += 500
		told = !strings.Contains(strings.Join(notes, " "), "prepared")
	}
	if c.Calls != want || total < want || !told {
		t.Errorf("got %d calls, %d ran, of %d; notes %q; want c.Calls %d, total at least %d, told true", c.Calls, want, total, notes, want, want)
	}
	if q := c.Metric("Query_time"); q.Sum <= 0 || q.Count != want || kind == "mysql-8.0" && !math.IsNaN(q.P95) {
		t.Errorf("%+v", q)
	}
	if n := c.Metric("Rows_sent").Sum; n < 6 {
		t.Errorf("%g rows were sent, want at least 6", n)
	}
	if got := fmt.Sprint(c.Values[0].Top); got != fmt.Sprintf("[{other %d}]", want) {
		t.Errorf("databases %s, want %s", got, fmt.Sprintf("[{other %d}]", want))
	}
	if len(c.Samples) == 0 {
		t.Error("no samples")
	}
}

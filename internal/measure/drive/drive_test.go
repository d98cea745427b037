package drive

import (
	"errors"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// startPostgres starts a separate server.
func startPostgres(t *testing.T) Target {
	t.Helper()
	target, err := ForPostgres(sandboxtest.Postgres(t).URL(""))
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestPostgres(t *testing.T) {
	target := startPostgres(t)
	var stop Stop
	s, err := target.Open(t.Context(), &stop)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Exec(Other, "CREATE TABLE t (id INTEGER PRIMARY KEY, big BIGINT, c CHAR(8), n NUMERIC(8,2))"); err != nil {
		t.Fatal(err)
	}
	in, err := s.Prepare(Write, "INSERT INTO t VALUES ($1, $2, $3, $4)")
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		if r, err := s.Do(in, Int(i), Int(i<<40), Text([]byte("abc")), Null()); err != nil || r.Affected != 1 {
			t.Fatalf("got %+v, %v; want Affected 1", r, err)
		}
	}
	out, err := s.Prepare(Read, "SELECT id, big, c, n FROM t WHERE id >= $1 ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	out.Keep = true
	r, err := s.Do(out, Int(1))
	if err != nil || r.Rows != 2 || r.Columns != 4 {
		t.Fatalf("got %+v, %v; want Rows 2, Columns 4", r, err)
	}
	if v := r.Values; v[4].Int != 2 || v[5].Int != 2<<40 || string(v[6].Text) != "abc     " || !v[7].Null {
		t.Errorf("got %+v; want v[4].Int 2, v[5].Int 2 << 40, string(v[6].Text) \"abc     \", v[7].Null true", v)
	}
	var server *ServerError
	if _, err := s.Do(in, Int(1), Int(1), Null(), Null()); !errors.As(err, &server) || server.State != "23505" {
		t.Errorf("a duplicate key: %v", err)
	}
	if _, err := s.Exec(Read, "SELECT * FROM nowhere"); !errors.As(err, &server) || !server.Senseless() {
		t.Errorf("a table that is not there: %v", err)
	}
	if r, err := s.Do(out, Int(2)); err != nil || r.Rows != 1 {
		t.Errorf("after an error: got %+v, %v; want Rows 1", r, err)
	}
	if *s.Counts() != [3]int64{1, 2, 3} {
		t.Errorf("counts %v, want [3]int64{1, 2, 3}", *s.Counts())
	}
	go func() { time.Sleep(50 * time.Millisecond); stop.Set() }()
	if _, err := s.Exec(Read, "SELECT pg_sleep(5)"); !errors.Is(err, ErrStopped) {
		t.Errorf("a stop while waiting: got %v, want ErrStopped", err)
	}
}

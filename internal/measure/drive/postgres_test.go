package drive

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/sandbox/postgres"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestPostgresWays does the same by all ways.
func TestPostgresWays(t *testing.T) {
	cert, key := selfSigned(t)
	pg := sandboxtest.Postgres(t, "ssl=on", "ssl_cert_file="+cert, "ssl_key_file="+key, "listen_addresses=127.0.0.1", "port="+strconv.Itoa(freePort(t)), "max_connections=20", "superuser_reserved_connections=0")
	port := portOf(t, pg)
	ways := map[string]string{
		"socket": fmt.Sprintf("postgres:///postgres?user=postgres&host=%s&port=%s", pg.Dir, port),
		"TCP":    fmt.Sprintf("postgres://postgres@127.0.0.1:%s/postgres", port),
		"TLS":    fmt.Sprintf("postgres://postgres@127.0.0.1:%s/postgres?sslmode=require", port),
	}
	for name, address := range ways {
		t.Run(name, func(t *testing.T) {
			way, err := ForPostgres(address)
			if err != nil {
				t.Fatal(err)
			}
			var stop Stop
			s := opened(t, way, &stop)
			if got := Transport(s); (got == TransportLibrary) != (name == "TLS") {
				t.Errorf("transport %s", got)
			}
			postgresSessionWorks(t, s)
			postgresEnds(t, way)
		})
	}
	t.Run("full", func(t *testing.T) {
		way, err := ForPostgres(ways["socket"])
		if err != nil {
			t.Fatal(err)
		}
		var stop Stop
		for range 25 {
			var s Session
			if s, err = way.Open(t.Context(), &stop); err != nil {
				break
			}
			defer s.Close()
		}
		var server *ServerError
		if !errors.As(err, &server) || server.State != StateTooManyConnections {
			t.Errorf("a full server: %v", err)
		}
	})
	t.Run("dies", func(t *testing.T) { postgresDies(t, pg, ways) })
}

func postgresSessionWorks(t *testing.T, s Session) {
	t.Helper()
	must(t, s, "DROP TABLE IF EXISTS v")
	must(t, s, "CREATE TABLE v (id SERIAL PRIMARY KEY, s SMALLINT, i INT, b BIGINT, n NUMERIC(20,4), f DOUBLE PRECISION, d DATE, at TIMESTAMP, c VARCHAR(80), l TEXT)")
	*s.Counts() = [3]int64{}
	in, err := s.Prepare(Write, "INSERT INTO v (s, i, b, n, f, d, at, c, l) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)")
	if err != nil {
		t.Fatal(err)
	}
	word := func(v string) Arg { return Text([]byte(v)) }
	long := bytes.Repeat([]byte(`0123456789abcdef\'"$1`), 5000)
	for _, args := range [][]Arg{
		{Int(-7), Int(math.MinInt32), Int(math.MinInt64 + 1), word("-12345678901.2345"), word("0.5"), word("2024-02-29"), word("2024-02-29 23:59:58.123456"), word(`a'b\c ü $1`), Text(long)},
		{Null(), Null(), Null(), Null(), Null(), Null(), Null(), Null(), Null()},
	} {
		if r, err := s.Do(in, args...); err != nil || r.Affected != 1 {
			t.Fatalf("got %+v, %v; want Affected 1", r, err)
		}
	}
	out, err := s.Prepare(Read, "SELECT s, i, b, n, f, d, at, c, l FROM v /* $9 */ WHERE id >= $1 AND '$7' <> $2 AND id >= 2 -$1 ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	out.Keep = true
	for range 2 {
		r, err := s.Do(out, Int(-1), word("x"))
		if err != nil || r.Rows != 0 {
			t.Fatalf("got %d rows, %v; want 0", r.Rows, err)
		}
		if r, err = s.Do(out, Int(1), word("x")); err != nil || r.Rows != 2 || r.Columns != 9 || len(r.Values) != 18 {
			t.Fatalf("got %+v, %v; want Rows 2, Columns 9, len(Values) 18", r, err)
		}
		v := r.Values
		if v[0].Int != -7 || v[1].Int != math.MinInt32 || v[2].Int != math.MinInt64+1 || string(v[3].Text) != "-12345678901.2345" || string(v[4].Text) != "0.5" ||
			string(v[5].Text) != "2024-02-29" || string(v[6].Text) != "2024-02-29 23:59:58.123456" || string(v[7].Text) != `a'b\c ü $1` || !bytes.Equal(v[8].Text, long) {
			t.Errorf("%+v", v[:8])
		}
		for _, x := range v[9:] {
			if !x.Null {
				t.Errorf("no NULL: got %+v, want Null true", x)
			}
		}
	}
	var server *ServerError
	same, err := s.Prepare(Write, "INSERT INTO v (id) VALUES ($1)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(same, Int(1)); !errors.As(err, &server) || server.State != "23505" {
		t.Errorf("a duplicate key: %v", err)
	}
	if r, err := s.Exec(Write, "UPDATE v SET i = 7"); err != nil || r.Affected != 2 {
		t.Errorf("got %+v, %v; want Affected 2", r, err)
	}
	if got := *s.Counts(); got != [3]int64{0, 4, 3} {
		t.Errorf("counts %v, want [3]int64{0, 4, 3}", got)
	}
	if r, err := s.Exec(Read, "SELECT repeat('x', 100) FROM generate_series(1, 10000)"); err != nil || r.Rows != 10000 {
		t.Errorf("got %d rows, %v; want 10000", r.Rows, err)
	}
}

func postgresEnds(t *testing.T, way Target) {
	t.Helper()
	var stop, other Stop
	s := opened(t, way, &stop)
	began := time.Now()
	time.AfterFunc(100*time.Millisecond, stop.Set)
	if _, err := s.Exec(Read, "SELECT pg_sleep(20)"); !errors.Is(err, ErrStopped) || time.Since(began) > 15*time.Second {
		t.Errorf("a stop while waiting: got %v after %v; want ErrStopped, time.Since(began) at most 15 * time.Second", err, time.Since(began))
	}
	s = opened(t, way, &other)
	s.SetPatience(300 * time.Millisecond)
	if _, err := s.Exec(Read, "SELECT pg_sleep(20)"); !errors.Is(err, ErrLost) {
		t.Errorf("no answer in time: got %v, want ErrLost", err)
	}
	s = opened(t, way, &other)
	st, err := s.Prepare(Read, "SELECT pg_backend_pid()")
	if err != nil {
		t.Fatal(err)
	}
	st.Keep = true
	r, err := s.Do(st)
	if err != nil {
		t.Fatal(err)
	}
	must(t, opened(t, way, &other), fmt.Sprintf("SELECT pg_terminate_backend(%d)", r.Values[0].Int))
	err = untilError(t, func() error { _, err := s.Do(st); return err })
	var server *ServerError
	if !errors.Is(err, ErrLost) && !(errors.As(err, &server) && server.Gone()) {
		t.Errorf("after pg_terminate_backend: %v", err)
	}
}

// postgresDies stops and kills the server processes of sessions.
func postgresDies(t *testing.T, pg *postgres.Server, ways map[string]string) {
	var stop Stop
	for name, address := range ways {
		way, err := ForPostgres(address)
		if err != nil {
			t.Fatal(err)
		}
		s := opened(t, way, &stop)
		s.SetPatience(time.Minute) // the server recovers from the way before, which takes long on a machine that is busy
		st, err := s.Prepare(Read, "SELECT pg_backend_pid()")
		if err != nil {
			t.Fatal(err)
		}
		st.Keep = true
		r, err := s.Do(st)
		if err != nil {
			t.Fatal(err)
		}
		pid := int(r.Values[0].Int)
		s.SetPatience(500 * time.Millisecond)
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if err := untilError(t, func() error { _, err := s.Do(st); return err }); !errors.Is(err, ErrLost) {
			t.Errorf("%s: a server that hangs: %v, want ErrLost", name, err)
		}
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
	way, err := ForPostgres(ways["socket"])
	if err != nil {
		t.Fatal(err)
	}
	s := opened(t, way, &stop)
	text, err := os.ReadFile(filepath.Join(pg.Data, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil { // an immediate shutdown, as by a crash
		t.Fatal(err)
	}
	err = untilError(t, func() error { _, err := s.Exec(Read, "SELECT 1"); return err })
	var server *ServerError
	if !errors.Is(err, ErrLost) && !(errors.As(err, &server) && server.Gone()) {
		t.Errorf("a server that was killed: %v", err)
	}
	_ = untilError(t, func() error { _, err := way.Open(t.Context(), &stop); return err })
}

// untilError repeats f until it fails: what ends a server or a session takes a moment.
func untilError(t *testing.T, f func() error) (err error) {
	t.Helper()
	await.Until(t, func() bool {
		err = f()
		return err != nil
	}, "an error")
	return err
}

// selfSigned makes a certificate that user postgres may read.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "risso-tls")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cert, key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for _, args := range [][]string{
		{"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2", "-keyout", key, "-out", cert},
		{"chmod", "600", key}, {"chown", "-R", "postgres", dir},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v: %s", args, err, out)
		}
	}
	return cert, key
}

func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// portOf reads the port from the file that the server wrote.
func portOf(t *testing.T, pg *postgres.Server) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(pg.Data, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 4 {
		t.Fatalf("postmaster.pid: got %s, want len(lines) at least 4", text)
	}
	return lines[3]
}

package drive

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// up starts a server with a schema d.
func up(t *testing.T, server string, settings ...string) *sandbox.Node {
	t.Helper()
	n := sandboxtest.Up(t, server, settings...)
	if _, err := n.Query(t.Context(), "CREATE DATABASE d"); err != nil {
		t.Fatal(err)
	}
	return n
}

// at is the node by a DSN; change may be nil.
func at(t *testing.T, c *driver.Config, change func(*driver.Config)) Target {
	t.Helper()
	c.DBName = "d"
	if change != nil {
		change(c)
	}
	m, err := mysql.ParseTarget(c.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	return ForMySQL(m)
}

func tcp(t *testing.T, n *sandbox.Node, change func(*driver.Config)) Target {
	t.Helper()
	c, err := n.TCPConfig()
	if err != nil {
		t.Fatal(err)
	}
	return at(t, c, change)
}

func opened(t *testing.T, target Target, stop *Stop) Session {
	t.Helper()
	s, err := target.Open(t.Context(), stop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func must(t *testing.T, s Session, sql string) Result {
	t.Helper()
	r, err := s.Exec(Other, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return r
}

// TestMySQL does the same by all ways on all servers.
func TestMySQL(t *testing.T) {
	for _, server := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(server, func(t *testing.T) {
			settings, anyTLS := sandboxtest.TLS(t)
			n := up(t, server, append(settings, "max_allowed_packet=64M")...)
			if _, err := n.Query(t.Context(), "CREATE USER secure@'127.0.0.1' IDENTIFIED BY 'x' REQUIRE SSL; GRANT ALL ON *.* TO secure@'127.0.0.1'"); err != nil {
				t.Fatal(err)
			}
			ways := map[string]Target{"socket": at(t, n.Config(), nil), "TCP": tcp(t, n, nil)}
			ways["TLS"] = tcp(t, n, func(c *driver.Config) { c.User, c.Passwd, c.TLSConfig = "secure", "x", anyTLS })
			for name, way := range ways {
				t.Run(name, func(t *testing.T) {
					var stop Stop
					s := opened(t, way, &stop)
					if got := Transport(s); (got == TransportLibrary) != (name == "TLS") {
						t.Errorf("transport %s", got)
					}
					if name == "TLS" {
						must(t, s, "SET @x = 1")
						if st, err := s.Prepare(Read, "SHOW SESSION STATUS LIKE 'Ssl_version'"); err != nil {
							t.Error(err)
						} else {
							st.Keep = true
							if r, err := s.Do(st); err != nil || !strings.HasPrefix(string(r.Values[1].Text), "TLS") {
								t.Errorf("got %+v, %v; want \"TLS\" at its beginning", r, err)
							}
						}
					}
					mysqlSessionWorks(t, way, s)
					stopsAndLoses(t, way)
				})
			}
		})
	}
}

// mysqlSessionWorks looks at values, counts and errors.
func mysqlSessionWorks(t *testing.T, way Target, s Session) {
	t.Helper()
	must(t, s, "DROP TABLE IF EXISTS v")
	must(t, s, "CREATE TABLE v (id BIGINT PRIMARY KEY AUTO_INCREMENT, i INT, t TINYINT UNSIGNED, u BIGINT UNSIGNED, d DECIMAL(20,4), f DOUBLE, day DATE, at DATETIME(6), time TIME, c VARCHAR(80) CHARACTER SET utf8mb4, b LONGBLOB) ENGINE=InnoDB")
	*s.Counts() = [3]int64{}
	in, err := s.Prepare(Write, "INSERT INTO v (i, t, u, d, f, day, at, time, c, b) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		t.Fatal(err)
	}
	blob := bytes.Repeat([]byte("0123456789abcdef\\'\"\x00"), 5000) // above 64 kB and above the buffer
	put := func(args ...Arg) {
		t.Helper()
		if r, err := s.Do(in, args...); err != nil || r.Affected != 1 || r.InsertID == 0 {
			t.Fatalf("got %+v, %v; want Affected 1, InsertID not 0", r, err)
		}
	}
	word := func(v string) Arg { return Text([]byte(v)) }
	put(Int(-5), Int(255), word("18446744073709551615"), word("-12345678901.2345"), word("0.5"), word("2024-02-29"), word("2024-02-29 23:59:58.123456"), word("-11:22:33"), word(`a'b\c "ü" ?`), Text(blob))
	put(Null(), Null(), Null(), Null(), Null(), Null(), Null(), Null(), Null(), Null())
	put(Int(math.MinInt32), Int(0), Int(1), Int(2), Int(3), word("1000-01-01"), word("2000-01-01 00:00:00"), word("00:00:00"), word(""), word(""))
	out, err := s.Prepare(Read, "SELECT i, t, u, d, f, day, at, time, c, b FROM v /* ? */ WHERE id >= ? AND 'no ? here' <> ? ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	out.Keep = true
	for range 3 { // from the second time on definitions of columns may be left out
		r, err := s.Do(out, Int(1), word("x"))
		if err != nil || r.Rows != 3 || r.Columns != 10 || len(r.Values) != 30 {
			t.Fatalf("got %d rows, %d columns, %d values, %v; want r.Rows 3, r.Columns 10, len(r.Values) 30", r.Rows, r.Columns, len(r.Values), err)
		}
		v := r.Values
		if v[0].Int != -5 || v[1].Int != 255 || uint64(v[2].Int) != math.MaxUint64 || string(v[3].Text) != "-12345678901.2345" || string(v[4].Text) != "0.5" {
			t.Errorf("numbers: got %+v; want v[0].Int -5, v[1].Int 255, uint64(v[2].Int) math.MaxUint64, string(v[3].Text) \"-12345678901.2345\", string(v[4].Text) \"0.5\"",
				v[:5])
		}
		if string(v[5].Text) != "2024-02-29" || string(v[6].Text) != "2024-02-29 23:59:58.123456" || string(v[7].Text) != "-11:22:33" {
			t.Errorf("times: got %s %s %s; want string(v[5].Text) \"2024-02-29\", string(v[6].Text) \"2024-02-29 23:59:58.123456\", string(v[7].Text) \"-11:22:33\"",
				v[5].Text, v[6].Text, v[7].Text)
		}
		if string(v[8].Text) != `a'b\c "ü" ?` || !bytes.Equal(v[9].Text, blob) {
			t.Errorf("texts: got %s, %d bytes of %d; want string(v[8].Text) \"a'b\\\\c \\\"ü\\\" ?\", v[9].Text %v",
				v[8].Text, len(v[9].Text), len(blob), blob)
		}
		for i, x := range v[10:20] {
			if !x.Null {
				t.Errorf("column %d of the row of NULLs: %+v", i, x)
			}
		}
		if v[20].Int != math.MinInt32 || v[29].Null || len(v[29].Text) != 0 || !strings.HasPrefix(string(v[26].Text), "2000-01-01 00:00:00") {
			t.Errorf("got %+v; want v[20].Int math.MinInt32, v[29].Null false, no v[29].Text, \"2000-01-01 00:00:00\" at the beginning of string(v[26].Text)",
				v[20:])
		}
	}
	// An error keeps the session.
	var server *ServerError
	same, err := s.Prepare(Write, "INSERT INTO v (id) VALUES (?)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(same, Int(1)); !errors.As(err, &server) || server.Code != 1062 || server.State != "23000" || !strings.Contains(server.Message, "Duplicate") {
		t.Errorf("a duplicate key: %v", err)
	}
	if _, err := s.Exec(Read, "SELECT * FROM nowhere"); !errors.As(err, &server) || server.Code != 1146 || !server.Senseless() {
		t.Errorf("a table that is not there: %v", err)
	}
	if r, err := s.Exec(Write, "UPDATE v SET i = 7"); err != nil || r.Affected != 3 {
		t.Errorf("got %+v, %v; want Affected 3", r, err)
	}
	if got := *s.Counts(); got != [3]int64{0, 3, 4} {
		t.Errorf("counts %v, want [3]int64{0, 3, 4}", got)
	}
	// Many rows: more than any buffer.
	must(t, s, "INSERT INTO v (c) SELECT REPEAT('x', 80) FROM v a, v b, v c, v d, v e, v f, v g") // 3^7
	if r, err := s.Do(out, Int(0), word("x")); err != nil || r.Rows < 2000 || len(r.Values) != int(r.Rows)*10 || string(r.Values[len(r.Values)-2].Text) != strings.Repeat("x", 80) {
		t.Errorf("got %d rows, %d values, %v; want r.Rows at least 2000, len(r.Values) %d, string(r.Values[len(r.Values)-2].Text) %v",
			r.Rows, len(r.Values), err, int(r.Rows)*10, strings.Repeat("x", 80))
	}
	deadlocks(t, way, s)
}

// deadlocks makes two sessions wait for each other.
func deadlocks(t *testing.T, way Target, a Session) {
	t.Helper()
	var stop Stop
	b := opened(t, way, &stop)
	must(t, a, "BEGIN")
	must(t, b, "BEGIN")
	must(t, a, "UPDATE v SET i = 1 WHERE id = 1")
	must(t, b, "UPDATE v SET i = 1 WHERE id = 2")
	var wg sync.WaitGroup
	var first, second error
	wg.Add(1)
	go func() { defer wg.Done(); _, first = a.Exec(Write, "UPDATE v SET i = 2 WHERE id = 2") }()
	_, second = b.Exec(Write, "UPDATE v SET i = 2 WHERE id = 1")
	wg.Wait()
	var server *ServerError
	if err := errors.Join(first, second); !errors.As(err, &server) || server.Code != 1213 || first != nil && second != nil {
		t.Errorf("no deadlock: %v, %v", first, second)
	}
	must(t, a, "ROLLBACK")
	must(t, b, "ROLLBACK")
}

// stopsAndLoses ends sessions from outside.
func stopsAndLoses(t *testing.T, way Target) {
	t.Helper()
	var stop, other Stop
	s := opened(t, way, &stop)
	began := time.Now()
	time.AfterFunc(100*time.Millisecond, stop.Set)
	if _, err := s.Exec(Read, "SELECT SLEEP(20)"); !errors.Is(err, ErrStopped) || time.Since(began) > 15*time.Second {
		t.Errorf("a stop while waiting: got %v after %v; want ErrStopped, time.Since(began) at most 15 * time.Second", err, time.Since(began))
	}
	s = opened(t, way, &other)
	s.SetPatience(300 * time.Millisecond)
	began = time.Now()
	if _, err := s.Exec(Read, "SELECT SLEEP(20)"); !errors.Is(err, ErrLost) || time.Since(began) > 15*time.Second {
		t.Errorf("no answer in time: got %v after %v; want ErrLost, time.Since(began) at most 15 * time.Second", err, time.Since(began))
	}
	s = opened(t, way, &other)
	st, err := s.Prepare(Read, "SELECT CONNECTION_ID()")
	if err != nil {
		t.Fatal(err)
	}
	st.Keep = true
	r, err := s.Do(st)
	if err != nil {
		t.Fatal(err)
	}
	must(t, opened(t, way, &other), fmt.Sprintf("KILL %d", r.Values[0].Int))
	_, err = s.Do(st)
	var server *ServerError
	if errors.As(err, &server) && server.Gone() {
		_, err = s.Do(st) // the server's last words came first
	}
	if !errors.Is(err, ErrLost) {
		t.Errorf("after KILL: got %v, want ErrLost", err)
	}
}

// TestServerDies kills and stops a server under sessions.
func TestServerDies(t *testing.T) {
	for _, server := range []string{"mariadb", "mysql-9.7"} {
		t.Run(server, func(t *testing.T) {
			n := up(t, server)
			ways := []Target{at(t, n.Config(), nil), tcp(t, n, nil)}
			if server != "mariadb" {
				ways = append(ways, tcp(t, n, func(c *driver.Config) { c.TLSConfig = "skip-verify" }))
			}
			var sessions []Session
			var stop Stop
			for _, w := range ways {
				s := opened(t, w, &stop)
				s.SetPatience(time.Second)
				sessions = append(sessions, s)
			}
			goOn := sandboxtest.Pause(t, n)
			for i, s := range sessions {
				var err error
				began := time.Now()
				for stopped := began; err == nil && time.Since(stopped) < 5*time.Second; { // the kernel takes a moment to stop all threads
					began = time.Now()
					_, err = s.Exec(Read, "SELECT 1")
				}
				if !errors.Is(err, ErrLost) || time.Since(began) > 20*time.Second {
					t.Errorf("session %d of a server that hangs: got %v after %v; want ErrLost, time.Since(began) at most 20 * time.Second",
						i, err, time.Since(began))
				}
			}
			goOn()
			sessions = sessions[:0]
			for _, w := range ways {
				sessions = append(sessions, opened(t, w, &stop))
			}
			if err := n.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			for i, s := range sessions {
				if _, err := s.Exec(Read, "SELECT 1"); !errors.Is(err, ErrLost) {
					t.Errorf("session %d of a server that was killed: %v, want ErrLost", i, err)
				}
			}
		})
	}
}

// TestLogin tries accounts of all kinds, wrong passwords, and a server that is full.
func TestLogin(t *testing.T) {
	for server, plugins := range map[string][]string{
		"mariadb":   {"IDENTIFIED VIA mysql_native_password USING PASSWORD('geheim')", "IDENTIFIED VIA ed25519 USING PASSWORD('geheim')"},
		"mysql-9.7": {"IDENTIFIED WITH caching_sha2_password BY 'geheim'"},
		"mysql-8.0": {"IDENTIFIED WITH caching_sha2_password BY 'geheim'", "IDENTIFIED WITH mysql_native_password BY 'geheim'"},
		"mysql-5.7": {"IDENTIFIED WITH mysql_native_password BY 'geheim'"},
	} {
		t.Run(server, func(t *testing.T) {
			n := up(t, server, "max_connections=12")
			var stop Stop
			if server == "mariadb" {
				if _, err := n.Query(t.Context(), "INSTALL SONAME 'auth_ed25519'"); err != nil {
					lack.Of(t, "MariaDB comes without auth_ed25519: install mariadb-server: "+err.Error())
				}
			}
			for i, plugin := range plugins {
				user := fmt.Sprintf("u%d", i)
				if _, err := n.Query(t.Context(), fmt.Sprintf("CREATE USER %s@'127.0.0.1' %s; GRANT ALL ON d.* TO %s@'127.0.0.1'", user, plugin, user)); err != nil {
					t.Fatal(err)
				}
				account := func(password string) Target {
					return tcp(t, n, func(c *driver.Config) { c.User, c.Passwd = user, password })
				}
				s := opened(t, account("geheim"), &stop)
				if r, err := s.Exec(Read, "SELECT 1"); err != nil || r.Rows != 1 {
					t.Errorf("%s: got %+v, %v; want Rows 1", plugin, r, err)
				}
				_, err := account("falsch-4711").Open(t.Context(), &stop)
				if err == nil || strings.Contains(err.Error(), "falsch-4711") || !strings.Contains(err.Error(), "denied") {
					t.Errorf("%s: a wrong password: %v; want an error, no \"falsch-4711\" in the error, \"denied\" in the error", plugin, err)
				}
			}
			full := at(t, n.Config(), nil)
			var err error
			for range 20 {
				var s Session
				if s, err = full.Open(t.Context(), &stop); err != nil {
					break
				}
				defer s.Close()
			}
			if err == nil || mysql.ErrorNumber(err) != errno.TooManyConnections {
				t.Errorf("a full server: got %v; want an error, mysql.ErrorNumber(err) errno.TooManyConnections", err)
			}
		})
	}
}

// TestDescriptors sees that sessions leave nothing open, not even failed ones.
func TestDescriptors(t *testing.T) {
	n := up(t, "mariadb")
	var stop Stop
	way := at(t, n.Config(), nil)
	wrong := tcp(t, n, func(c *driver.Config) { c.Passwd = "wrong" })
	count := func() int {
		list, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := count()
	for range 20 {
		s, err := way.Open(t.Context(), &stop)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		if _, err := wrong.Open(t.Context(), &stop); err == nil {
			t.Error("a wrong password opens")
		}
	}
	if after := count(); after > before+2 {
		t.Errorf("got %d descriptors before, %d after; want at most %d", before, after, before+2)
	}
}

// TestDoAllocatesNothing: garbage would be collected, which stops all sessions.
func TestDoAllocatesNothing(t *testing.T) {
	n := up(t, "mariadb")
	var stop Stop
	for name, way := range map[string]Target{"mariadb": at(t, n.Config(), nil), "postgres": startPostgres(t)} {
		s := opened(t, way, &stop)
		sql := "SELECT 'x' FROM (SELECT 1 AS a) t WHERE a = ?"
		if way.Dialect() == Postgres {
			sql = "SELECT 'x' FROM (SELECT 1 AS a) t WHERE a = $1"
		}
		st, err := s.Prepare(Read, sql)
		if err != nil {
			t.Fatal(err)
		}
		if got := testing.AllocsPerRun(200, func() {
			if _, err := s.Exec(Other, "BEGIN"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Exec(Other, "COMMIT"); err != nil {
				t.Fatal(err)
			}
		}); got > 0 {
			t.Errorf("%s: got %v allocations for BEGIN and COMMIT, want at most 0", name, got)
		}
		var args [1]Arg
		if got := testing.AllocsPerRun(200, func() {
			args[0] = Int(1)
			if r, err := s.Do(st, args[:]...); err != nil || r.Rows != 1 {
				t.Fatalf("got %+v, %v; want Rows 1", r, err)
			}
		}); got > 0 {
			t.Errorf("%s: got %v allocations for a statement, want at most 0", name, got)
		}
	}
}

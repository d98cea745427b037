package mysql_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/wire"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

var flavours = []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"}

func target(t *testing.T, dsn string) mysql.Target {
	t.Helper()
	target, err := mysql.ParseTarget(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func stream(t *testing.T, to mysql.Target, o mysql.StreamOptions) *mysql.Stream {
	t.Helper()
	s, err := to.ConnectStream(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func exec(t *testing.T, s *mysql.Stream, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if err := s.Exec(t.Context(), q); err != nil {
			t.Fatalf("%.100s: %v", q, err)
		}
	}
}

// collect keeps what it gets, and how.
type collect struct {
	rows    [][]byte
	row     []byte
	pieces  int
	largest int
	fail    error
}

func (c *collect) Piece(b []byte, last bool) error {
	c.pieces++
	c.largest = max(c.largest, len(b))
	if len(c.row)+len(b) > cap(c.row) { // append would copy a row of 40 MB some twenty times, each time into fresh memory
		c.row = slices.Grow(c.row, max(len(b), cap(c.row)))
	}
	c.row = append(c.row, b...)
	if last {
		c.rows, c.row = append(c.rows, c.row), nil
	}
	return c.fail
}

// TestStream reads rows of all sizes over every kind of connection, from every server.
func TestStream(t *testing.T) {
	for _, flavour := range flavours {
		t.Run(flavour, func(t *testing.T) {
			settings, anyTLS := sandboxtest.TLS(t)
			node := sandboxtest.Up(t, flavour, append(settings, "max_allowed_packet=128M")...)
			root := stream(t, target(t, node.DSN), mysql.StreamOptions{})
			exec(t, root, "SET GLOBAL local_infile = 1", "CREATE DATABASE s", "CREATE TABLE s.t (id INT PRIMARY KEY, a LONGBLOB, b VARCHAR(20))",
				"CREATE USER u@'127.0.0.1' IDENTIFIED BY 'p:w'", "GRANT ALL ON *.* TO u@'127.0.0.1'",
				"CREATE USER secure@'127.0.0.1' IDENTIFIED BY 'p:w' REQUIRE SSL", "GRANT ALL ON *.* TO secure@'127.0.0.1'",
				"INSERT INTO s.t VALUES (1, 'x', NULL), (2, '', ''), (3, REPEAT('m', 200000), 'mid'), (4, NULL, 'end')")
			// A row whose bytes are id (2), length (1, 3 or 4, 9), blob and end: full packets are the cases to get right.
			for i, size := range []int{1<<24 - 1 - 2 - 4 - 1, 1<<24 - 2 - 2 - 4 - 1, 40 << 20, 2*(1<<24-1) - 2 - 9 - 1} {
				exec(t, root, fmt.Sprintf("INSERT INTO s.t VALUES (%d, REPEAT('%c', %d), '')", i+5, 'a'+i, size))
			}
			ways := map[string]string{
				"socket": node.DSN, "tcp": fmt.Sprintf("u:p:w@tcp(127.0.0.1:%d)/", node.Port),
				"compressed": fmt.Sprintf("u:p:w@tcp(127.0.0.1:%d)/?compress=true", node.Port),
			}
			ways["tls"] = fmt.Sprintf("secure:p:w@tcp(127.0.0.1:%d)/s?tls=%s", node.Port, anyTLS)
			ways["tls compressed"] = ways["tls"] + "&compress=true&time_zone=%27%2B03%3A00%27"
			for name, dsn := range ways {
				t.Run(name, func(t *testing.T) {
					readAll(t, stream(t, target(t, dsn), mysql.StreamOptions{Buffer: 64 << 10}), strings.HasPrefix(name, "tls"))
				})
			}
			t.Run("login", func(t *testing.T) { wrongLogins(t, node) })
			t.Run("login cut short", func(t *testing.T) { cutLogins(t, ways) })
			t.Run("trouble", func(t *testing.T) { trouble(t, target(t, ways["tcp"])) })
			t.Run("load", func(t *testing.T) { load(t, root) })
			t.Run("bulk", func(t *testing.T) { bulk(t, root, flavour, ways) })
		})
	}
}

// cutLogins ends the context about when a login ends: either there is an error, or a session that is the caller's.
func cutLogins(t *testing.T, ways map[string]string) {
	for _, name := range []string{"socket", "tls"} {
		dsn := ways[name]
		var usual time.Duration
		for i := range 25 {
			ctx, cancel := context.WithCancel(t.Context())
			began := time.Now()
			var stop *time.Timer
			if i > 0 {
				stop = time.AfterFunc(usual*time.Duration(15+i)/25, cancel)
			}
			s, err := target(t, dsn).ConnectStream(ctx, mysql.StreamOptions{})
			if err == nil {
				usual = time.Since(began)
				s.Close()
			} else if ctx.Err() == nil {
				t.Errorf("%s: got %v, want ctx.Err() not nil", name, err)
			}
			if stop != nil {
				stop.Stop()
			}
			cancel()
		}
	}
}

// readAll reads table s.t and compares it with what was put there.
func readAll(t *testing.T, s *mysql.Stream, encrypted bool) {
	var cipher string
	if err := s.Query(t.Context(), "SHOW STATUS LIKE 'Ssl_cipher'", func(row [][]byte) error { cipher = string(row[1]); return nil }); err != nil {
		t.Fatal(err)
	}
	if (cipher != "") != encrypted {
		t.Errorf("Ssl_cipher is %q, encrypted %v", cipher, encrypted)
	}
	var got collect
	if err := s.Select(t.Context(), "SELECT * FROM s.t ORDER BY id", &got); err != nil {
		t.Fatal(err)
	}
	if got.largest > 64<<10 {
		t.Errorf("a piece has %d bytes, the buffer 64 KiB; want at most 64 << 10", got.largest)
	}
	if len(got.rows) != 8 || !bytes.Equal(got.rows[0], []byte("\x011\x01x\xfb")) || !bytes.Equal(got.rows[1], []byte("\x012\x00\x00")) || !bytes.Equal(got.rows[3], []byte("\x014\xfb\x03end")) {
		t.Fatalf("%d rows; the first are %q; want len(got.rows) 8, got.rows[0] []byte(\"\\x011\\x01x\\xfb\"), got.rows[1] []byte(\"\\x012\\x00\\x00\"), got.rows[3] []byte(\"\\x014\\xfb\\x03end\")",
			len(got.rows), got.rows[0])
	}
	sizes := []int{0, 0, 200000, 0, 1<<24 - 1 - 2 - 4 - 1, 1<<24 - 2 - 2 - 4 - 1, 40 << 20, 2*(1<<24-1) - 2 - 9 - 1}
	for i, letter := range "xxmxabcd" {
		if sizes[i] == 0 {
			continue
		}
		values, err := wire.SplitRow(nil, got.rows[i])
		if err != nil || len(values) != 3 || len(values[1]) != sizes[i] || bytes.Count(values[1], []byte(string(letter))) != sizes[i] {
			t.Errorf("row %d of %d bytes is not what was put there: %v; want len(values) 3, len(values[1]) sizes[i], bytes.Count(values[1], []byte(string(letter))) sizes[i]",
				i, len(got.rows[i]), err)
		}
	}
	several(t, s)
	if err := s.Exec(t.Context(), "SELECT * FROM s.t"); err != nil {
		t.Fatal(err)
	}
	if c := s.Columns(); len(c) != 3 || c[1].Name != "a" || c[1].Charset != 63 {
		t.Errorf("columns %+v; want len(c) 3, c[1].Name \"a\", c[1].Charset 63", c)
	}
}

// several sends several queries in one packet; a refusal leaves the session as it was.
func several(t *testing.T, s *mysql.Stream) {
	var got string
	note := func(i int, row [][]byte) error { got += fmt.Sprintf("%d:%.9s ", i, row[len(row)-1]); return nil }
	list := []string{"SELECT id, b FROM s.t WHERE id < 3 ORDER BY id", "DO 0", "SHOW /* x */ TABLES FROM s", "SELECT id FROM s.t WHERE id < 0", "SELECT 'end'"}
	for range 2 {
		got = ""
		if err := s.QuerySeveral(t.Context(), list, note); err != nil || got != "0: 0: 2:t 4:end " {
			t.Errorf("got %q, %v; want \"0: 0: 2:t 4:end \"", got, err)
		}
	}
	got = ""
	var refused *driver.MySQLError
	err := s.QuerySeveral(t.Context(), []string{"SELECT 1", "SELECT 2, nonsense", "SELECT 3"}, note)
	if !errors.As(err, &refused) || refused.Number != errno.UnknownColumn || got != "0:1 " || s.Broken() != nil {
		t.Errorf("one was refused: %q, %v", got, err)
	}
	if _, err := define.CreateTables(t.Context(), s, []mysql.TableName{{Schema: "s", Name: "t"}, {Schema: "s", Name: "none"}}); !mysql.Gone(err) {
		t.Errorf("the definition of a table that is not there: %v", err)
	}
	if creates, err := define.CreateTables(t.Context(), s, []mysql.TableName{{Schema: "s", Name: "t"}, {Schema: "s", Name: "t"}}); err != nil || len(creates) != 2 || !strings.HasPrefix(creates[1], "CREATE TABLE `t`") {
		t.Errorf("definitions: got %q, %v; want len(creates) 2, \"CREATE TABLE `t`\" at the beginning of creates[1]", creates, err)
	}
}

func wrongLogins(t *testing.T, node *sandbox.Node) {
	at := fmt.Sprintf("@tcp(127.0.0.1:%d)/", node.Port)
	cases := map[string]mysql.Class{"u:wrong" + at: mysql.ClassLogin, "u:p:w@tcp(127.0.0.1:1)/": mysql.ClassRefused}
	if node.Server == "mariadb" || strings.Contains(node.Version, "9.7") {
		cases["u:wrong"+at+"?tls=skip-verify"] = mysql.ClassLogin
		cases["u:p:w"+at+"?tls=true"] = mysql.ClassTLS
	}
	for dsn, want := range cases {
		s, err := target(t, dsn).ConnectStream(t.Context(), mysql.StreamOptions{})
		if err == nil {
			s.Close()
		}
		var e *mysql.Error
		if !errors.As(err, &e) || e.Class != want || strings.Contains(err.Error(), "p:w") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

// trouble breaks a stream in every way and sees what is left of it.
func trouble(t *testing.T, to mysql.Target) {
	s := stream(t, to, mysql.StreamOptions{})
	var refused *driver.MySQLError
	if err := s.Exec(t.Context(), "SELECT nonsense"); !errors.As(err, &refused) || refused.Number != errno.UnknownColumn {
		t.Errorf("a wrong statement: %v", err)
	}
	// The server finds out after some rows: both are row packets' neighbours.
	var got collect
	err := s.Select(t.Context(), "SELECT id, IF(id < 4, 1, (SELECT 1 UNION ALL SELECT 2)) FROM s.t ORDER BY id", &got)
	if !errors.As(err, &refused) || refused.Number != 1242 {
		t.Errorf("a statement that fails on its way: %v after %d rows", err, len(got.rows))
	}
	if err := s.Exec(t.Context(), "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE s.t"); err == nil {
		t.Error("a server may have files of this machine")
	} else if s.Broken() == nil {
		t.Error("after that it goes on")
	}
	s = stream(t, to, mysql.StreamOptions{})
	full := errors.New("full")
	if err := s.Select(t.Context(), "SELECT * FROM s.t", &collect{fail: full}); err != full {
		t.Errorf("a sink that refuses: got %v, want %v", err, full)
	}
	if err := s.Exec(t.Context(), "SELECT 1"); err != full {
		t.Errorf("a session in the middle of an answer was used again: %v, want %v", err, full)
	}
	s = stream(t, to, mysql.StreamOptions{})
	other := stream(t, to, mysql.StreamOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := s.Exec(ctx, "SELECT SLEEP(600)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a statement whose time is over: %v, want context.DeadlineExceeded", err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s to end, want at most time.Minute", took)
	}
	s.Close()
	await.Until(t, func() bool {
		n := 0
		if err := other.Query(t.Context(), fmt.Sprintf("SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = %d", s.ID()), func([][]byte) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n == 0
	}, "the end of the abandoned statement")
	if err := stream(t, to, mysql.StreamOptions{Patience: 200 * time.Millisecond}).Exec(t.Context(), "SELECT SLEEP(30)"); mysql.ClassOf(err) != mysql.ClassTimeout {
		t.Errorf("a silent server: got %v, want mysql.ClassTimeout", err)
	}
}

// load sends rows to a server.
func load(t *testing.T, root *mysql.Stream) {
	exec(t, root, "CREATE TABLE s.l (id INT PRIMARY KEY, v TEXT)")
	defer exec(t, root, "DROP TABLE s.l")
	data := "1\tx\n" + "2\t" + strings.Repeat("y", 60000) + "\n" + "3\t" + strings.Repeat("z", 60000) + "\n"
	if err := root.Load(t.Context(), "LOAD DATA LOCAL INFILE 'rows' INTO TABLE s.l", strings.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	rows, err := root.QueryMaps(t.Context(), "SELECT COUNT(*) n, SUM(LENGTH(v)) b FROM s.l")
	if err != nil || rows[0]["n"] != "3" || rows[0]["b"] != "120001" {
		t.Errorf("loaded %v, %v; want rows[0][\"n\"] \"3\", rows[0][\"b\"] \"120001\"", rows, err)
	}
	if err := root.Load(t.Context(), "LOAD DATA LOCAL INFILE 'rows' INTO TABLE s.l (id, v, nonsense)", strings.NewReader(data)); err == nil || root.Broken() != nil {
		t.Errorf("a wrong statement: got %v, %v; want an error, root.Broken() nil", err, root.Broken())
	}
}

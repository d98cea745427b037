package dump_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/snapshot"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// digits is a table of ten rows, for joins.
const digits = "(SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)"

// awkward makes a database with things that backups lose.
func awkward(t *testing.T, s *mysql.Stream, flavour string) {
	t.Helper()
	exec(t, s, "SET NAMES utf8mb4", "SET sql_mode = ''", "SET GLOBAL max_allowed_packet = 134217728",
		"CREATE DATABASE `odd ``n.x` CHARACTER SET latin1", "USE `odd ``n.x`",
		"CREATE TABLE n (n INT PRIMARY KEY)", "INSERT INTO n SELECT a.d + b.d * 10 + c.d * 100 FROM "+digits+" a, "+digits+" b, "+digits+" c",
		"CREATE TABLE `t \"1\"` (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, `größe` DECIMAL(30,10), b BIT(7), j JSON, e ENUM('a','ü') CHARACTER SET utf8mb4, d DATETIME(6), z BLOB, v INT AS (b + 1) STORED, w INT AS (b + 2) VIRTUAL, f FLOAT, KEY (`größe`)) PARTITION BY HASH (id) PARTITIONS 64",
		"INSERT INTO `t \"1\"` (`größe`, b, j, e, d, z, f) SELECT n * 1.5, n % 128, JSON_OBJECT('a', n), IF(n % 2, 'a', 'ü'), '2018-07-13 10:00:00.123456' + INTERVAL n SECOND, UNHEX(SHA2(n, 256)), n / 3 FROM n",
		"CREATE TABLE p (id INT PRIMARY KEY, x TEXT CHARACTER SET latin1, ts TIMESTAMP NULL, zero DATE) ENGINE = MyISAM", "INSERT INTO p VALUES (1, 'x', NULL, '0000-00-00'), (2, 'ß', '2000-01-01 00:00:01', '2000-02-00')",
		"CREATE TABLE nokey (a INT, b VARCHAR(20))", "INSERT INTO nokey SELECT n % 7, n FROM n",
		"CREATE TABLE none (a INT)", "CREATE TABLE g (id INT PRIMARY KEY, g POINT NOT NULL, SPATIAL KEY (g))", "INSERT INTO g SELECT n, POINT(n, n / 7) FROM n WHERE n < 50",
		"CREATE TABLE big (z LONGBLOB, id INT, PRIMARY KEY (id))", "INSERT INTO big VALUES (REPEAT('x', 1000), 1)", "INSERT INTO big VALUES (REPEAT('y', 40000000), 2)", "INSERT INTO big VALUES (REPEAT('z', 1000), 3)",
		"CREATE TABLE prefix (a INT, e ENUM('x','y','z'), PRIMARY KEY (a, e))", "INSERT INTO prefix SELECT n DIV 300, 'x' FROM n WHERE n % 300 = 0", "INSERT INTO prefix SELECT n + 10, 'z' FROM n",
		"CREATE VIEW vv AS SELECT id, `größe` FROM `t \"1\"`", "CREATE VIEW vv2 AS SELECT * FROM vv",
		"CREATE TRIGGER tr2 BEFORE INSERT ON p FOR EACH ROW SET new.x = CONCAT(new.x, '!')", "CREATE FUNCTION f(a INT) RETURNS INT DETERMINISTIC RETURN a + 1",
		"CREATE PROCEDURE pr() BEGIN SELECT 1; END", "CREATE EVENT ev ON SCHEDULE EVERY 1 DAY DO SELECT 1", "CREATE USER 'u''x'@'%' IDENTIFIED BY 'secret'", "GRANT SELECT ON *.* TO 'u''x'@'%'")
	if strings.HasPrefix(flavour, "mariadb") {
		exec(t, s, "CREATE SEQUENCE sq START 7", "SELECT NEXTVAL(sq)", "CREATE ROLE rr", "GRANT rr TO 'u''x'@'%'", "SET DEFAULT ROLE rr FOR 'u''x'@'%'",
			"CREATE TABLE inv (id INT PRIMARY KEY, i INT INVISIBLE DEFAULT 5)", "INSERT INTO inv (id) VALUES (1)", "SET sql_mode = ORACLE", "CREATE PACKAGE pk AS PROCEDURE p; END", "CREATE PACKAGE BODY pk AS PROCEDURE p AS BEGIN NULL; END; END", "SET sql_mode = ''")
	}
	if flavour == "mysql-9.7" || flavour == "mysql-8.0" {
		exec(t, s, "CREATE ROLE rr", "GRANT rr TO 'u''x'@'%'", "ALTER USER 'u''x'@'%' DEFAULT ROLE rr")
	}
}

// TestEverything dumps the awkward database, from every server, and compares what the repository has with the server, row by
// row; a second backup stores nothing, and one after a change little.
func TestEverything(t *testing.T) {
	for _, flavour := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(flavour, func(t *testing.T) {
			node := lend(t, flavour)
			to := target(t, node.DSN)
			s := stream(t, to)
			awkward(t, s, flavour)
			r := place(t)
			o := dump.Options{Target: to, Name: "s", Threads: 2, ChunkAim: 2 << 10}
			first, err := dump.Run(t.Context(), r, o)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, r, to)
			objects(t, r, flavour)
			if !slices.ContainsFunc(first.Header.Notes, func(n string) bool { return strings.Contains(n, "`p` (MyISAM)") }) {
				t.Errorf("nothing is said of a table without transactions: %v", first.Header.Notes)
			}
			if first.DDLBlocked != (flavour == "mysql-9.7" || flavour == "mysql-8.0") {
				t.Errorf("schema changes blocked: got %v, want %v", first.DDLBlocked, flavour == "mysql-9.7" || flavour == "mysql-8.0")
			}
			exec(t, s, "UPDATE `odd ``n.x`.`t \"1\"` SET z = 'changed' WHERE id = 500")
			time.Sleep(1100 * time.Millisecond) // names of backups sort by the second
			second, err := dump.Run(t.Context(), r, o)
			if err != nil {
				t.Fatal(err)
			}
			if second.Chunks != first.Chunks || second.NewChunks != 1 || second.Header.Parent != first.Header.ID {
				t.Errorf("%d of %d chunks were stored after one row changed; at first %d; want second.Chunks %d, second.NewChunks 1, second.Header.Parent %v",
					second.NewChunks, second.Chunks, first.Chunks, first.Chunks, first.Header.ID)
			}
			compare(t, r, to)
			manySmall(t, r, to, s)
		})
	}
}

// compare reads all that the newest backup has, and the same from the server.
func compare(t *testing.T, r *repo.Repo, to mysql.Target) {
	t.Helper()
	c, err := mysql.Connect(t.Context(), to, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := c.Server
	c.Close()
	s := stream(t, to)
	if err := s.ForRows(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	m, err := r.Manifest(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	seen := map[string]int{}
	err = m.Each(func(l repo.Line) error {
		if l.Table == nil {
			return nil
		}
		table, err := define.ParseTable(l.Table.Schema, l.Table.Create)
		if err != nil {
			return err
		}
		key, _ := chunk.KeyOf(table)
		var whole, sum chunk.Sum
		var rows int64
		for i, k := range l.Table.Chunks {
			var have chunk.Rows
			raw := readChunk(t, r, l.Table, k)
			for _, row := range splitRows(t, raw, len(l.Table.Columns)) {
				if err := have.Piece(row, true); err != nil {
					return err
				}
			}
			if have.Count != k.Rows || have.Bytes != k.Bytes || have.Sum.String() != k.Sum || int64(len(raw)) != k.Bytes {
				t.Errorf("%s: chunk %d holds %+v, the manifest says %+v; want have.Count %v, have.Bytes %v, have.Sum.String() %v, int64(len(raw)) %v",
					table.Name, i, have, k, k.Rows, k.Bytes, k.Sum, k.Bytes)
			}
			sum.Add(have.Sum)
			rows += have.Count
			if len(l.Table.Key) == 0 {
				continue
			}
			var there chunk.Rows
			if err := s.Select(t.Context(), chunk.Select(table, key, chunk.Range{Lower: k.Lower, Upper: k.Upper}, "test"), &there); err != nil {
				return err
			}
			if there.Sum != have.Sum || there.Count != have.Count {
				t.Errorf("%s: chunk %d (%v, %v] has %d rows, the server %d; want there.Sum %v, there.Count %d",
					table.Name, i, k.Lower, k.Upper, have.Count, there.Count, have.Sum, have.Count)
			}
		}
		var there chunk.Rows
		if err := s.Select(t.Context(), chunk.Select(table, key, chunk.Range{}, "test"), &there); err != nil {
			return err
		}
		whole = there.Sum
		if whole != sum || whole.String() != l.Table.Sum || rows != there.Count || rows != l.Table.Rows {
			t.Errorf("%s: %d rows and sum %s, the server has %d and %s; the manifest says %d and %s", table.Name, rows, sum, there.Count, whole, l.Table.Rows, l.Table.Sum)
		}
		seen[table.Name] = len(l.Table.Chunks)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, least := range map[string]int{"t \"1\"": 5, "p": 1, "nokey": 1, "g": 1, "big": 3, "prefix": 2} {
		if seen[name] < least {
			t.Errorf("%s is in %d chunks, %d were expected", name, seen[name], least)
		}
	}
	if n, ok := seen["none"]; !ok || n != 0 {
		t.Errorf("the empty table is in %d chunks (%v); want ok true, n 0", n, ok)
	}
}

func readChunk(t *testing.T, r *repo.Repo, table *repo.Table, c repo.Chunk) []byte {
	t.Helper()
	rc, err := r.Chunk(t.Context(), table.Schema, table.Name, c.Hash)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	raw, err := io.ReadAll(rc)
	if err != nil {
		t.Fatal(err)
	}
	if c.Big != (table.Name == "big" && len(raw) > 1<<20) {
		t.Errorf("a chunk of %s with %d bytes is big: %v, want %v", table.Name, len(raw), c.Big, table.Name == "big" && len(raw) > 1<<20)
	}
	return raw
}

// splitRows cuts raw bytes into rows.
func splitRows(t *testing.T, raw []byte, columns int) (rows [][]byte) {
	t.Helper()
	values, err := wire.SplitRow(nil, raw)
	if err != nil || len(values)%columns != 0 {
		t.Fatalf("got %d values for rows of %d: %v; want none", len(values), columns, err)
	}
	for i := 0; i < len(values); i += columns {
		size := 0
		for _, v := range values[i : i+columns] {
			switch n := len(v); {
			case v == nil || n < 251:
				size += 1 + n
			case n < 1<<16:
				size += 3 + n
			case n < 1<<24:
				size += 4 + n
			default:
				size += 9 + n
			}
		}
		rows, raw = append(rows, raw[:size]), raw[size:]
	}
	return rows
}

// objects looks for everything except tables.
func objects(t *testing.T, r *repo.Repo, flavour string) {
	t.Helper()
	m, err := r.Manifest(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	found := map[string]repo.Object{}
	err = m.Each(func(l repo.Line) error {
		if l.Object != nil {
			found[string(l.Object.Kind)+" "+l.Object.Name] = *l.Object
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"view vv", "view vv2", "trigger tr2", "function f", "procedure pr", "event ev", "account u'x@%", "account root@localhost"}
	if strings.HasPrefix(flavour, "mariadb") {
		want = append(want, "sequence sq", "account rr", "package pk", "package body pk")
	}
	for _, w := range want {
		o, ok := found[w]
		if !ok || !strings.HasPrefix(o.Create, "CREATE ") {
			t.Errorf("%s is not in the backup: %+v; want ok true, \"CREATE \" at the beginning of Create", w, o)
		}
	}
	if v := found["view vv"]; !slices.Equal(v.Columns, []string{"id", "größe"}) || v.Charset != "utf8mb4" || v.Definer != "root@localhost" {
		t.Errorf("view %+v; want Columns []string{\"id\", \"größe\"}, Charset \"utf8mb4\", Definer \"root@localhost\"", v)
	}
	if tr := found["trigger tr2"]; tr.Table != "p" || tr.Charset != "utf8mb4" || tr.Database == "" || tr.Definer == "" {
		t.Errorf("trigger %+v; want Table \"p\", Charset \"utf8mb4\", Database not \"\", Definer not \"\"", tr)
	}
	u := found["account u'x@%"]
	if len(u.After) == 0 || strings.Contains(u.Create, "DEFAULT ROLE") {
		t.Errorf("account %+v; want len(After) not 0, no \"DEFAULT ROLE\" in Create", u)
	}
	if role := slices.ContainsFunc(u.After, func(s string) bool { return strings.HasPrefix(s, "SET DEFAULT ROLE") }); role != (flavour != "mysql-5.7") {
		t.Errorf("its default role is in %q: %v, want %v", u.After, role, flavour != "mysql-5.7")
	}
	if sq := found["sequence sq"]; strings.HasPrefix(flavour, "mariadb") && (len(sq.After) != 1 || !strings.Contains(sq.After[0], "1007")) {
		t.Errorf("sequence %+v", sq)
	}
}

// TestTrouble breaks backups.
func TestTrouble(t *testing.T) {
	node := lend(t, "mariadb")
	to := target(t, node.DSN)
	s := stream(t, to)
	exec(t, s, "CREATE DATABASE d", "CREATE TABLE d.n (n INT PRIMARY KEY)", "INSERT INTO d.n SELECT a.d + b.d * 10 + c.d * 100 FROM "+digits+" a, "+digits+" b, "+digits+" c",
		"CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(1000))", "INSERT INTO d.t (v) SELECT REPEAT('v', 900) FROM d.n, (SELECT n FROM d.n LIMIT 60) x", "CREATE TABLE d.u LIKE d.t", "INSERT INTO d.u SELECT * FROM d.t", "ANALYZE TABLE d.t, d.u")
	o := dump.Options{Target: to, Name: "s", Threads: 2, ChunkAim: 256 << 10}
	t.Run("a table is changed", func(t *testing.T) {
		// Without PROCESS waiting sessions cannot be seen, so tables are not kept from being altered.
		exec(t, s, "CREATE USER blind@localhost", "GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, RELOAD, LOCK TABLES, BINLOG MONITOR, SLAVE MONITOR ON *.* TO blind@localhost")
		o := o
		o.Target = target(t, strings.Replace(node.DSN, "root", "blind", 1))
		for _, change := range []string{"ALTER TABLE d.n ADD COLUMN c INT", "TRUNCATE TABLE d.n", "RENAME TABLE d.n TO d.m"} {
			gate := &gate{at: 3, do: func() { exec(t, s, change) }}
			o := o
			o.Gate, o.Threads = gate, 1
			if _, err := dump.Run(t.Context(), place(t), o); !errors.Is(err, dump.ErrChanged) || !strings.Contains(err.Error(), "`d`.`n`") {
				t.Errorf("%s: got %v; want dump.ErrChanged, \"`d`.`n`\" in the error", change, err)
			}
		}
		exec(t, s, "RENAME TABLE d.m TO d.n")
		time.Sleep(1100 * time.Millisecond) // a backup cannot know that of what was made in the second of its beginning
		// What is made and emptied in the meantime does not matter.
		o.Gate, o.Threads = &gate{at: 3, do: func() { exec(t, s, "CREATE TABLE d.later (n INT PRIMARY KEY)", "TRUNCATE TABLE d.later") }}, 1
		defer exec(t, s, "DROP TABLE d.later")
		if _, err := dump.Run(t.Context(), place(t), o); err != nil {
			t.Errorf("another table was emptied: %v", err)
		}
	})
	t.Run("a session is lost", func(t *testing.T) {
		gate := &gate{at: 20, do: func() {
			rows, err := s.QueryMaps(t.Context(), "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT%risso: backup%d%' AND INFO NOT LIKE '%information_schema%' AND ID <> CONNECTION_ID() LIMIT 1")
			if err != nil || len(rows) == 0 {
				t.Errorf("nobody reads: got %v; want len(rows) not 0", err)
				return
			}
			exec(t, s, "KILL CONNECTION "+rows[0]["ID"])
		}}
		o := o
		o.Gate = gate
		r := place(t)
		result, err := dump.Run(t.Context(), r, o)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(result.Header.Notes, func(n string) bool { return strings.Contains(n, "session was lost") }) {
			t.Errorf("it is not said: %v", result.Header.Notes)
		}
		compareOnly(t, r, to, 60000)
	})
	t.Run("the server dies", func(t *testing.T) {
		gate := &gate{at: 20, do: func() {
			ids, err := s.QueryMaps(t.Context(), "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND USER = 'root'")
			if err != nil {
				t.Error(err)
			}
			for _, id := range ids {
				_ = s.Exec(t.Context(), "KILL CONNECTION "+id["ID"])
			}
		}}
		o := o
		o.Gate = gate
		r := place(t)
		if _, err := dump.Run(t.Context(), r, o); err == nil {
			t.Error("a backup without a server is whole")
		}
		if list, err := r.Backups(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("backups %v, %v; want none", list, err)
		}
		// What was stored serves the next backup.
		result, err := dump.Run(t.Context(), r, dump.Options{Target: to, Threads: 2, ChunkAim: 256 << 10})
		if err != nil || result.NewChunks > result.Chunks-10 {
			t.Errorf("%d of %d chunks were stored again: %v; want at most %d", result.NewChunks, result.Chunks, err, result.Chunks-10)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := o
		o.Gate = &gate{at: 10, do: cancel}
		r := place(t)
		if _, err := dump.Run(ctx, r, o); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		if list, err := r.Backups(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("backups %v, %v; want none", list, err)
		}
	})
	t.Run("nothing matches", func(t *testing.T) {
		o := o
		o.Select.Tables = []string{"d.nonsense*"}
		if _, err := dump.Run(t.Context(), place(t), o); !errors.Is(err, dump.ErrNothing) {
			t.Errorf("got %v, want dump.ErrNothing", err)
		}
	})
	t.Run("a plan", func(t *testing.T) {
		p, err := dump.MakePlan(t.Context(), o)
		if err != nil || p.Tables != 3 || p.Largest[0].How != "cut by PRIMARY" || p.Methods[0] != string(snapshot.ByBinlog) {
			b, _ := json.Marshal(p)
			t.Errorf("got %s, %v; want p.Tables 3, p.Largest[0].How \"cut by PRIMARY\", p.Methods[0] %v", b, err, string(snapshot.ByBinlog))
		}
	})
}

// compareOnly counts the rows of the newest backup.
func compareOnly(t *testing.T, r *repo.Repo, to mysql.Target, each int64) {
	t.Helper()
	m, err := r.Manifest(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := stream(t, to)
	err = m.Each(func(l repo.Line) error {
		if l.Table == nil || l.Table.Name == "n" {
			return nil
		}
		var there chunk.Rows
		if err := s.Select(t.Context(), "SELECT id, v FROM d."+l.Table.Name, &there); err != nil {
			return err
		}
		if l.Table.Rows != each || l.Table.Sum != there.Sum.String() {
			t.Errorf("%s: %d rows, sum %s; the server has %d, %s; want l.Table.Rows %d, l.Table.Sum %s",
				l.Table.Name, l.Table.Rows, l.Table.Sum, there.Count, there.Sum, each, there.Sum.String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// gate does something once, when work passes for the nth time.
type gate struct {
	mu sync.Mutex
	n  int
	at int
	do func()
}

func (g *gate) Pass(ctx context.Context, _ int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n++; g.n == g.at {
		g.do()
	}
	return ctx.Err()
}

// TestGuard lets the lock run into a long statement: it must be withdrawn before others wait for long, and had with the
// statement ended when that is wished.
func TestGuard(t *testing.T) {
	node := lend(t, "mysql-9.7")
	to := target(t, node.DSN)
	s := stream(t, to)
	exec(t, s, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)")
	long := stream(t, to)
	ended := make(chan error, 1)
	hold := func() {
		go func() {
			ended <- long.Exec(context.WithoutCancel(t.Context()), "UPDATE d.t SET id = id WHERE SLEEP(20) = 0")
		}()
	}
	hold()
	await.Until(t, func() bool { // long enough that it counts as long
		var n int64
		one(t, s, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'UPDATE d.t %' AND TIME >= 1", &n)
		return n == 1
	}, "the long statement")
	var worst time.Duration
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Add(1)
	other := stream(t, to)
	go func() {
		defer wg.Done()
		for ctx.Err() == nil {
			start := time.Now()
			if err := other.Exec(context.WithoutCancel(ctx), "INSERT IGNORE INTO d.t VALUES (2)"); err != nil {
				t.Error(err)
			}
			worst = max(worst, time.Since(start))
		}
	}()
	var events []snapshot.GuardEvent
	o := dump.Options{Target: to, Threads: 2, Snapshot: snapshot.Options{LockWait: 2 * time.Second, Tries: 2, Method: snapshot.ByGlobalLock,
		Guard: snapshot.Guard{Said: func(e snapshot.GuardEvent) { events = append(events, e) }}}}
	_, err := dump.Run(t.Context(), place(t), o)
	if !errors.Is(err, snapshot.ErrLocks) {
		t.Errorf("the lock was had, or: %v; want snapshot.ErrLocks", err)
	}
	words := fmt.Sprintf("%+v", events)
	if !strings.Contains(words, "waits") || !strings.Contains(words, "SLEEP(20)") || strings.Contains(words, "withdrawn") || strings.Contains(words, "killed") {
		t.Errorf("the guardian said: %s; want \"waits\" in it, \"SLEEP(20)\" in it, no \"withdrawn\" in it, no \"killed\" in it", words)
	}
	events = nil
	o.Snapshot.Guard.LongQuery = time.Hour // so the lock is asked for, and others wait for the request
	if _, err := dump.Run(t.Context(), place(t), o); !errors.Is(err, snapshot.ErrLocks) {
		t.Errorf("the lock was had, or: %v; want snapshot.ErrLocks", err)
	}
	if words := fmt.Sprintf("%+v", events); !strings.Contains(words, "withdrawn") || strings.Contains(words, "killed") {
		t.Errorf("the guardian said: %s; want \"withdrawn\" in it, no \"killed\" in it", words)
	}
	events = nil
	o.Snapshot.Guard.LongQuery, o.Snapshot.Guard.KillLong = 0, true
	if _, err := dump.Run(t.Context(), place(t), o); err != nil {
		t.Errorf("with the statement ended: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the long statement came to its end")
	}
	if !strings.Contains(fmt.Sprintf("%+v", events), "killed") {
		t.Errorf("the guardian said: %+v, want \"killed\" in it", events)
	}
	cancel()
	wg.Wait()
	if worst > 10*time.Second {
		t.Errorf("another session waited for %s, want at most 10 * time.Second", worst)
	}
	t.Logf("another session waited for %s at most", worst)
	// LOCK INSTANCE FOR BACKUP needs BACKUP_ADMIN.
	exec(t, s, "CREATE USER less@localhost", "GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, PROCESS, RELOAD, LOCK TABLES, REPLICATION CLIENT, SHOW_ROUTINE ON *.* TO less@localhost")
	holds(t, target(t, strings.Replace(node.DSN, "root", "less", 1)), to)
}

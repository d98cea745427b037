package ask

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sample"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

var both = []string{"mariadb", "mysql-9.7"}

func each(t *testing.T, f func(t *testing.T, spec string, n *sandbox.Node, c *mysql.Conn)) {
	for _, spec := range both {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			f(t, spec, n, sandboxtest.Connect(t, n))
		})
	}
}

func do(t testing.TB, c *mysql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// odd is a table of types that are easily damaged on their way.
const odd = "CREATE TABLE `o``d d` (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, s VARCHAR(100) NULL, l VARCHAR(50) CHARACTER SET latin1 NULL, b VARBINARY(50) NULL, bits BIT(12) NULL, j JSON NULL, g POINT NULL, d DATETIME(6) NULL, ts TIMESTAMP NULL, f DOUBLE NULL, v DOUBLE AS (f + 1) VIRTUAL, KEY (s)) ENGINE=InnoDB"

// TestSample: rows of any type get into the clone as they are, and the change is timed there; the sandbox is gone at the end.
func TestSample(t *testing.T) {
	each(t, func(t *testing.T, spec string, n *sandbox.Node, c *mysql.Conn) {
		do(t, c, "CREATE DATABASE `my shop` DEFAULT CHARACTER SET utf8mb4", "USE `my shop`", odd)
		var rows []string
		for i := range 500 {
			rows = append(rows, fmt.Sprintf(`('tab\t nl\n back\\ %d', 'caf\xE9', x'00090A5C0D%02X', b'101', '{"a": "\\t%d"}', POINT(%d, 2), '2026-11-27 10:11:12.123456', '2026-11-27 10:11:12', 0.1)`, i, i%256, i, i))
		}
		rows = append(rows, "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)")
		do(t, c, "SET NAMES latin1", "INSERT INTO `o``d d` (s, l, b, bits, j, g, d, ts, f) VALUES "+strings.Join(rows, ","), "SET NAMES utf8mb4", "ANALYZE TABLE `o``d d`")
		target := sandboxtest.Target(t, n)
		dir, err := sandboxtest.Folder("ra-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		p, err := Plan(t.Context(), Options{Target: target, Statement: "ALTER TABLE `my shop`.`o``d d` ADD INDEX (d), ALGORITHM=COPY", Sample: 1 << 20, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if !p.Forecast.Known || !strings.Contains(p.Forecast.Basis, "501 rows") {
			t.Errorf("got %+v, want that 501 rows were measured", p.Forecast)
		}
		if list, err := sandbox.List(dir); err != nil || len(list) > 0 {
			t.Errorf("got %v, %v; want no sandbox left", list, err)
		}
		same(t, spec, target, c, p)
		box := boxOf(t, spec)
		bc, err := mysql.Connect(t.Context(), *box, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer bc.Close()
		do(t, bc, "SET GLOBAL local_infile = 1")
		q, err := Plan(t.Context(), Options{Target: target, Statement: "ALTER TABLE `my shop`.`o``d d` ADD UNIQUE (d)", Sample: 1 << 20, Box: box})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(q.Lines, func(l alter.Line) bool {
			return strings.Contains(l.Text, "it will fail") && !strings.Contains(l.Text, "10:11:12")
		}) {
			t.Errorf("got %+v, want that the rows do not let it through, without a value", q.Lines)
		}
	})
}

func boxOf(t *testing.T, spec string) *mysql.Target {
	box := sandboxtest.Target(t, sandboxtest.Lend(t, spec, cheap...))
	return &box
}

// same compares the clone's rows with the table's.
func same(t *testing.T, spec string, target mysql.Target, c *mysql.Conn, p Planned) {
	t.Helper()
	box := boxOf(t, spec)
	b, err := BoxAt(t.Context(), *box, &p.Facts)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	do(t, b.c, "SET GLOBAL local_infile = 1") // as OpenBox sets it
	k := &clone{b: b, f: &p.Facts, st: p.Statement}
	if err := k.reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.take(t.Context(), target, &p.Facts, sample.Options{Rows: 1000, Of: 501, Purpose: taken}); err != nil {
		t.Fatal(err)
	}
	sum := "SELECT CONCAT_WS(' ', COUNT(*), SUM(CRC32(CONCAT_WS('#', id, HEX(s), HEX(l), HEX(b), HEX(bits), HEX(CAST(j AS CHAR)), HEX(ST_AsText(g)), d, UNIX_TIMESTAMP(ts), f, v, s IS NULL)))) FROM `my shop`.`o``d d`"
	want, err := c.Text(t.Context(), sum)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.c.Text(t.Context(), sum); err != nil || got != want {
		t.Errorf("the clone has %s, %v; want %s", got, err, want)
	}
}

// TestInTheWay names who holds the table's lock, and says where the server does not tell.
func TestInTheWay(t *testing.T) {
	each(t, func(t *testing.T, spec string, n *sandbox.Node, c *mysql.Conn) {
		do(t, c, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO shop.t VALUES (1)")
		holder := sandboxtest.Connect(t, n)
		do(t, holder, "BEGIN", "SELECT id FROM shop.t FOR UPDATE")
		time.Sleep(1100 * time.Millisecond) // InnoDB's list of transactions may be as old
		p, err := Plan(t.Context(), Options{Target: sandboxtest.Target(t, n), Statement: "ALTER TABLE shop.t ADD n INT", Box: boxOf(t, spec), Watch: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(p.InTheWay, func(h alter.Holder) bool { return h.Session.ID == holder.Server.ConnectionID })
		if i < 0 || len(p.InTheWay) != 1 {
			t.Fatalf("got %+v, want connection %d alone", p.InTheWay, holder.Server.ConnectionID)
		}
		told := p.Server.PerformanceSchema
		if p.InTheWay[i].Maybe == told {
			t.Errorf("got %+v, performance_schema %t", p.InTheWay[i], told)
		}
		if p.Facts.Traffic.Known != told {
			t.Errorf("traffic: got %+v, performance_schema %t", p.Facts.Traffic, told)
		}
		if unknown := slices.ContainsFunc(p.Unknown, func(u fleet.Trouble) bool { return strings.Contains(u.What, "metadata lock") }); unknown == told {
			t.Errorf("got %+v, performance_schema %t", p.Unknown, told)
		}
		if name := p.Server.MetadataLockPlugin(); name != "" {
			do(t, c, "INSTALL SONAME '"+name+"'")
			defer do(t, c, "UNINSTALL SONAME '"+name+"'")
			if p, err = Plan(t.Context(), Options{Target: sandboxtest.Target(t, n), Statement: "ALTER TABLE shop.t ADD n INT", Box: boxOf(t, spec)}); err != nil || len(p.InTheWay) != 1 || p.InTheWay[0].Maybe {
				t.Errorf("with the plugin: got %+v, %v; want that it is certain", p.InTheWay, err)
			}
		}
	})
}

// TestTraffic counts the statements that use the table, and not those of others.
func TestTraffic(t *testing.T) {
	n := sandboxtest.Lend(t, "mysql-9.7")
	c, other := sandboxtest.Connect(t, n), sandboxtest.Connect(t, n)
	do(t, c, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, a INT) ENGINE=InnoDB", "CREATE TABLE shop.u (id INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO shop.t VALUES (1, 1)")
	stop, ended := make(chan struct{}), make(chan int)
	go func() {
		count := 0
		for {
			select {
			case <-stop:
				ended <- count
				return
			default:
				_ = other.Exec(t.Context(), "UPDATE shop.t SET a = a + 1")
				count++
				time.Sleep(10 * time.Millisecond)
			}
		}
	}()
	began := time.Now()
	busy, err := Plan(t.Context(), Options{Target: sandboxtest.Target(t, n), Statement: "ALTER TABLE shop.t ADD n INT", Box: boxOf(t, "mysql-9.7"), Watch: time.Second})
	took := time.Since(began).Seconds()
	close(stop)
	rate := float64(<-ended) / took
	if err != nil {
		t.Fatal(err)
	}
	if tr := busy.Facts.Traffic; !tr.Known || tr.Uses < rate/3 || tr.Uses > rate*3 || tr.RowEdits < rate/3 {
		t.Errorf("got %+v, want about %.0f statements a second", tr, rate)
	}
	idle, err := Plan(t.Context(), Options{Target: sandboxtest.Target(t, n), Statement: "ALTER TABLE shop.u ADD n INT", Box: boxOf(t, "mysql-9.7"), Watch: 300 * time.Millisecond})
	if err != nil || !idle.Facts.Traffic.Known || idle.Facts.Traffic.Uses != 0 {
		t.Errorf("got %+v, %v; want none", idle.Facts.Traffic, err)
	}
}

// TestFewPrivileges: an account that sees only the table gets a plan, and is told what it could not see.
func TestFewPrivileges(t *testing.T) {
	each(t, func(t *testing.T, spec string, n *sandbox.Node, c *mysql.Conn) {
		do(t, c, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO shop.t VALUES (1)", "CREATE USER few@localhost IDENTIFIED BY 'Pw-12345'", "GRANT SELECT ON shop.t TO few@localhost")
		target, err := mysql.ParseTarget("few:Pw-12345@unix(" + n.Socket + ")/shop")
		if err != nil {
			t.Fatal(err)
		}
		p, err := Plan(t.Context(), Options{Target: target, Statement: "ALTER TABLE t ADD n INT, ALGORITHM=COPY", Box: boxOf(t, spec), Watch: 100 * time.Millisecond, Sample: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if p.Kind != alter.KindCopy || !p.Tried || len(p.Unknown) < 3 {
			t.Errorf("got %s, and %+v as not known; want a copy, and sizes, replicas, locks", p.Kind, p.Unknown)
		}
	})
}

// TestNoBox: without a server of that version the manual's table is used, and it is said.
func TestNoBox(t *testing.T) {
	n := sandboxtest.Lend(t, "mariadb")
	c := sandboxtest.Connect(t, n)
	do(t, c, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY) ENGINE=InnoDB")
	t.Setenv("RISSO_SERVERS", "")
	t.Setenv("PATH", t.TempDir())
	f, err := Plan(t.Context(), Options{Target: sandboxtest.Target(t, n), Statement: "ALTER TABLE shop.t ADD n INT", Dir: t.TempDir(), Sample: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if f.Tried { // the server is in one of the machine's own folders, such as /usr/sbin
		want := f.Facts
		want.Server.Number = 100300
		if _, err := OpenBox(t.Context(), &want, 0, t.TempDir(), func(string) {}); err == nil {
			t.Error("a sandbox for another series was opened")
		}
		a := alter.Documented(&f.Facts, f.Statement)
		p := alter.Make(&f.Facts, f.Statement, a, 0, alter.Sample{Unmeasured: "no sandbox"})
		if p.Tried || p.Kind != alter.KindInstant || !strings.Contains(p.Lines[0].Text, "not tried") {
			t.Errorf("got %+v, want instant, not tried", p.Lines)
		}
	}
}

// TestUsedUp: a table that has had all its instant changes is planned as what the server does then.
func TestUsedUp(t *testing.T) {
	n := sandboxtest.Lend(t, "mysql-9.7", cheap...)
	c := sandboxtest.Connect(t, n)
	do(t, c, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO shop.t VALUES (1)")
	for i := range c.Server.MaxRowVersions() {
		if i%2 == 0 {
			do(t, c, "ALTER TABLE shop.t ADD n INT, ALGORITHM=INSTANT")
		} else {
			do(t, c, "ALTER TABLE shop.t DROP n, ALGORITHM=INSTANT")
		}
	}
	p, err := Plan(t.Context(), Options{Target: sandboxtest.Target(t, n), Statement: "ALTER TABLE shop.t ADD m INT", Box: boxOf(t, "mysql-9.7")})
	if err != nil {
		t.Fatal(err)
	}
	if p.Kind != alter.KindInPlace || !p.Rebuilds || p.Algorithm != "INPLACE" || p.Lock != "NONE" {
		t.Errorf("got %s, rebuilds %t, %s %s; want a rebuild in place", p.Kind, p.Rebuilds, p.Algorithm, p.Lock)
	}
	if err := c.Exec(t.Context(), p.Statement.With("test", "INSTANT", "")); mysql.ErrorNumber(err) == 0 {
		t.Error("the server takes INSTANT, want that it refuses")
	}
	do(t, c, p.Plan.Statement)
}

// TestKilled: the sandbox of a plan that was killed goes with the next plan.
func TestKilled(t *testing.T) {
	server, err := sandboxtest.Find(t.Context(), "mariadb")
	if err != nil {
		lack.Server(t, "mariadb")
	}
	f := alter.Facts{Server: mysql.Of(server.Kind()), Variables: map[string]string{}, Session: map[string]string{}}
	if dir := os.Getenv("RISSO_TEST_ALTER_DIR"); dir != "" {
		if _, err := OpenBox(t.Context(), &f, 0, dir, func(string) {}); err != nil {
			t.Fatal(err)
		}
		list, err := sandbox.List(dir)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		if err := os.WriteFile(list[0].Dir+"/opened", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		t.Fatal("it went on")
	}
	dir, err := sandboxtest.Folder("ra-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "RISSO_TEST_ALTER_DIR="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	left := func() []*sandbox.Sandbox {
		list, err := sandbox.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	await.Until(t, func() bool {
		list := left()
		if len(list) != 1 {
			return false
		}
		_, err := os.Stat(list[0].Dir + "/opened")
		return err == nil
	}, "the sandbox of the other process")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	was := left()[0]
	b, err := OpenBox(t.Context(), &f, 0, dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if list := left(); len(list) != 1 || list[0].Name == was.Name {
		t.Errorf("got %v, want the new one alone", list)
	}
	if _, err := os.Stat(was.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", was.Dir, err)
	}
	if err := b.Close(); err != nil || len(left()) != 0 {
		t.Errorf("closed: %v, %v; want none left", err, left())
	}
}

// TestElsewhere: of a server on another machine the same rows are read on both sides, to tell how fast it is.
func TestElsewhere(t *testing.T) {
	n := sandboxtest.Lend(t, "mariadb")
	c := sandboxtest.Connect(t, n)
	do(t, c, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, a VARCHAR(200)) ENGINE=InnoDB", "INSERT INTO shop.t SELECT seq, REPEAT('x', 150) FROM shop.seq_1_to_20000", "ANALYZE TABLE shop.t")
	box := boxOf(t, "mariadb")
	p, err := Plan(t.Context(), Options{Target: sandboxtest.Target(t, n), Statement: "ALTER TABLE shop.t ENGINE = InnoDB", Box: box})
	if err != nil {
		t.Fatal(err)
	}
	p.Facts.Place.Here = false
	b, err := BoxAt(t.Context(), *box, &p.Facts)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := b.Sample(t.Context(), sandboxtest.Target(t, n), &p.Facts, p.Statement, alter.Answer{Algorithm: p.Algorithm, Lock: p.Lock}, 1<<20, func(string) {})
	if err != nil || s.Unmeasured != "" {
		t.Fatalf("got %+v, %v; want a measurement", s, err)
	}
	if !s.Elsewhere || len(s.Reads) != 2 || s.Reads[0] <= 0 || s.Reads[1] <= 0 || len(s.Parts) != mostParts || s.Parts[0].Rows < 1000 || s.Parts[0].Rows > 15_000 {
		t.Errorf("got %+v, want how long both read, and parts of the rows", s)
	}
}

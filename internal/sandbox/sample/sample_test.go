package sample

import (
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// TestCut: parts have about the same number of rows, wherever in the range they are, and together they are the range.
func TestCut(t *testing.T) {
	for name, c := range map[string]struct {
		high uint64
		keys func(i int) uint64
	}{
		"even":        {100_000, func(i int) uint64 { return uint64(i) + 1 }},
		"a stray key": {1<<64 - 1, func(i int) uint64 { return uint64(i) + 1 }},
		"a gap":       {9_050_000, func(i int) uint64 { return uint64(i) + 1 + uint64(i/50_000)*9_000_000 }},
		"one key":     {1, func(i int) uint64 { return 1 }},
	} {
		var keys []uint64
		for i := range 100_000 {
			keys = append(keys, c.keys(i))
		}
		if keys = slices.Compact(keys); keys[len(keys)-1] < c.high {
			keys = append(keys, c.high)
		}
		asked := 0
		list, err := cut(stratum{low: big.NewInt(1), high: new(big.Int).SetUint64(c.high), rows: 1}, func(r stratum) (float64, error) {
			asked++
			from, _ := slices.BinarySearch(keys, r.low.Uint64())
			to, found := slices.BinarySearch(keys, r.high.Uint64())
			if found {
				to++
			}
			return float64(max(1, to-from)), nil
		})
		if err != nil || asked > asks {
			t.Errorf("%s: asked %d times, %v; want at most %d", name, asked, err, asks)
		}
		total, next := 0.0, big.NewInt(1)
		for _, r := range list {
			total += r.rows
			if r.low.Cmp(next) != 0 {
				t.Errorf("%s: a part begins at %s, want %s", name, r.low, next)
			}
			next = new(big.Int).Add(r.high, big.NewInt(1))
		}
		for _, r := range list {
			if len(keys) > 1 && r.rows*places > total {
				t.Errorf("%s: a part has %.0f of %.0f rows, want at most 1/%d", name, r.rows, total, places)
			}
		}
	}
}

// copied copies a table from one server to another of its kind.
func copied(t *testing.T, from, to *mysql.Stream, server mysql.Server, name string, o Options) (define.Table, Sample) {
	t.Helper()
	o.Purpose = "test"
	d, err := Define(t.Context(), from, to, server.DialectOf(""), mysql.TableName{Schema: "s", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if o.Of == 0 {
		if o.Of, o.OfBytes, err = Count(t.Context(), from, mysql.TableName{Schema: "s", Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Copy(t.Context(), from, to, d, o)
	if err != nil {
		t.Fatal(err)
	}
	return d, s
}

// share is a condition's share of a table's rows.
func share(t *testing.T, s *mysql.Stream, table, condition string) (v float64) {
	t.Helper()
	rows, err := s.QueryMaps(t.Context(), "SELECT COUNT(*) AS a, COALESCE(SUM("+condition+"), 0) AS n FROM s."+table)
	if err != nil {
		t.Fatal(err)
	}
	return number(t, rows[0]["n"]) / number(t, rows[0]["a"])
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	f, ok := new(big.Float).SetString(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	v, _ := f.Float64()
	return v
}

// TestKept: of a tenth of the rows the shares of values are about those of all rows, whatever they depend on, for keys with gaps, strays and
// several columns; what is only the beginning of a table is called that.
func TestKept(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			var streams []*mysql.Stream
			var server mysql.Server
			for range 2 {
				n := sandboxtest.Lend(t, spec, "local_infile=ON")
				s, err := sandboxtest.Target(t, n).ConnectStream(t.Context(), mysql.StreamOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				server = sandboxtest.Connect(t, n).Server
				if err := s.ForRows(t.Context(), server); err != nil {
					t.Fatal(err)
				}
				streams = append(streams, s)
			}
			from, to := streams[0], streams[1]
			const columns = "skew INT NOT NULL, u INT NOT NULL, hole INT, grows INT NOT NULL, pad CHAR(50)"
			for _, q := range []string{"CREATE DATABASE s", "USE s", "CREATE TABLE d (n INT PRIMARY KEY)", "INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
				"CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, " + columns + ", UNIQUE (u)) ENGINE=InnoDB",
				// skew: a third is 0, and so on; hole: nine of ten are NULL; grows: neighbours have the same value; ids have a gap
				"INSERT INTO t SELECT n + 1 + IF(n > 20000, 5000000000, 0), FLOOR(POW(CRC32(n) / 4294967296, 3) * 27), n * 7919 % 40009, IF(CRC32(CONCAT('h', n)) % 10, NULL, n), n DIV 400, 'x' FROM (SELECT a.n + 10*b.n + 100*c.n + 1000*e.n + 10000*f.n AS n FROM d a, d b, d c, d e, d f WHERE f.n < 4) x",
				"INSERT INTO t VALUES (18446744073709551615, 1, 2000000000, NULL, 1, 'stray')",
				"CREATE TABLE several (a INT, b INT, " + columns + ", PRIMARY KEY (a, b)) ENGINE=InnoDB", "INSERT INTO several SELECT id % 50, id % 5000000000, skew, u, hole, id % 50, pad FROM t WHERE id < 5000000001",
				"CREATE TABLE words (w CHAR(32) PRIMARY KEY, n INT) ENGINE=InnoDB", "INSERT INTO words SELECT LEFT(SHA2(id, 256), 32), id % 7 FROM t WHERE id < 5001", "ANALYZE TABLE t, several, words"} {
				if err := from.Exec(t.Context(), q); err != nil {
					t.Fatalf("%s: %v", q, err)
				}
			}
			if spec != "mariadb" { // a server may explain otherwise by default
				if err := from.Exec(t.Context(), "SET SESSION explain_format = 'TREE'"); err != nil {
					t.Fatal(err)
				}
			}
			for _, table := range []string{"t", "several"} {
				_, s := copied(t, from, to, server, table, Options{Rows: 4000})
				t.Logf("%s: %s, %d rows from %d places", table, s.Kind, s.Rows, len(s.Places))
				if s.Kind != Spread || s.Rows != s.Read || s.Rows < 1500 || s.Rows > 4500 || len(s.Places) < 20 || (s.Key == "`id`") != (table == "t") {
					t.Errorf("%s: got %s of %d rows from %d places, key %s; want about 4,000 from all over", table, s.Kind, s.Rows, len(s.Places), s.Key)
				}
				if words := s.Words(mysql.TableName{Schema: "s", Name: table}); !strings.Contains(words, "a sample was copied") {
					t.Errorf("%s: it says %q, want that it is a sample", table, words)
				}
				for condition, off := range map[string]float64{"skew = 0": 0.05, "skew > 10": 0.05, "hole IS NULL": 0.05, "u % 2": 0.05, "grows < 25": 0.08} {
					if was, is := share(t, from, table, condition), share(t, to, table, condition); is < was-off || is > was+off {
						t.Errorf("%s: %s is %.3f of all rows, %.3f of the sample; want them %.2f apart at most", table, condition, was, is, off)
					}
				}
				if double := number(t, one(t, to, "SELECT COUNT(*) - COUNT(DISTINCT u) FROM s."+table)); double != 0 {
					t.Errorf("%s: %.0f values of a unique column are there twice", table, double)
				}
			}
			if _, s := copied(t, from, to, server, "words", Options{Rows: 500}); s.Kind != First || s.Rows != 500 || !strings.Contains(s.Words(mysql.TableName{Name: "words"}), "only the first 500 rows") {
				t.Errorf("without a number as its key: got %s, %d rows; want the first 500, and that it says so", s.Kind, s.Rows)
			}
			drop(t, to)
			if _, s := copied(t, from, to, server, "words", Options{Rows: 5000, Of: 1}); s.Kind != Whole || s.Rows != 5000 || s.Words(mysql.TableName{Name: "words"}) != "" {
				t.Errorf("all: got %s, %d rows, %s; want all", s.Kind, s.Rows, s.Words(mysql.TableName{}))
			}
			drop(t, to)
			if _, s := copied(t, from, to, server, "words", Options{Rows: 500, Of: 1}); s.Kind != First || s.Rows != 2000 || !strings.Contains(s.Words(mysql.TableName{Name: "words"}), "statistics") {
				t.Errorf("by statistics that are wrong: got %s, %d rows, %q; want 2000, and that it says so", s.Kind, s.Rows, s.Words(mysql.TableName{}))
			}
		})
	}
}

func drop(t *testing.T, s *mysql.Stream) {
	t.Helper()
	if err := s.Exec(t.Context(), "DROP TABLE s.words"); err != nil {
		t.Fatal(err)
	}
}

func one(t *testing.T, s *mysql.Stream, query string) (text string) {
	t.Helper()
	if err := s.Query(t.Context(), query, func(row [][]byte) error { text = string(row[0]); return nil }); err != nil {
		t.Fatal(err)
	}
	return text
}

package binlog

import (
	"compress/gzip"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestPast: a server that has more than it would be rolled to is refused, however the point is given: nothing takes that back. So are
// points that no log has.
func TestPast(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, spec)
			n := sandboxtest.Lend(t, spec, fast...)
			c := conn(t, openDB(t, n))
			var at []mysql.GTID
			var places []string
			var from mysql.GTIDSet
			run(t, c, "CREATE TABLE test.past (id INT)")
			for i := range 5 {
				before, file, pos := position(t, n)
				run(t, c, fmt.Sprintf("INSERT INTO test.past VALUES (%d)", i))
				after, _, _ := position(t, n)
				at, places = append(at, only(t, after.Subtract(before))), append(places, fmt.Sprintf("%s:%d", file, pos))
				if i == 2 {
					from = after
				}
			}
			unknown := mysql.GTID{Domain: 77, Server: 1, Number: 5}
			if strings.HasPrefix(spec, "mysql") {
				unknown = mysql.GTID{Source: "3e11fa47-71ca-11e1-9e33-c80aa9429562", Number: 5}
			}
			place := func(i int) Stop {
				file, pos, _ := strings.Cut(places[i], ":")
				s := Stop{File: file}
				fmt.Sscan(pos, &s.Pos)
				return s
			}
			for _, c := range []struct {
				name string
				stop Stop
				want error
				says string
				n    int64 // transactions
			}{
				{"with one that it has, and more", Stop{GTID: at[1]}, ErrPast, at[1].String() + ", and more after it", 0},
				{"before one that it has", Stop{GTID: at[2], Before: true}, ErrPast, at[2].String(), 0},
				{"with the last that it has", Stop{GTID: at[2]}, nil, "at once: the position has " + at[2].String(), 0},
				{"before the next", Stop{GTID: at[3], Before: true}, nil, "before " + at[3].String(), 0},
				{"with the next", Stop{GTID: at[3]}, nil, "with " + at[3].String(), 1},
				{"with one that no log has", Stop{GTID: unknown}, ErrNoStop, unknown.String(), 0},
				{"before one that no log has", Stop{GTID: unknown, Before: true}, ErrNoStop, unknown.String(), 0},
				{"a time before", Stop{Time: time.Unix(1, 0)}, ErrPast, "it has what begins at ", 0},
				{"a time behind the logs", Stop{Time: time.Now().Add(time.Hour)}, nil, "where the logs end, before the time to stop at, ", 2},
				{"a place before", place(1), ErrPast, places[1], 0},
				{"the place", place(3), nil, "before " + places[3], 0},
				{"the next", place(4), nil, "before " + places[4], 1},
				{"a log that is not there", Stop{File: "binlog.999999", Pos: 4}, ErrNoStop, "binlog.999999", 0},
				{"a log before all", Stop{File: "binlog.000000", Pos: 4}, ErrPast, "", 0},
			} {
				res, err := planned(t, RollOptions{Files: logged(t, n), From: repo.Position{GTIDSet: from.String()}, Stop: c.stop})
				if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err, res.Stopped), c.says) || err == nil && res.Transactions != c.n {
					t.Errorf("%s: %+v, %v", c.name, res, err)
				}
			}
			twice(t, n, from)
			if spec != "mariadb" {
				channels(t, n, c, from, at)
			}
		})
	}
}

// channels: where transactions of other servers come by other channels a position may have any of them, in any order.
func channels(t *testing.T, n *sandbox.Node, c *sql.Conn, from mysql.GTIDSet, at []mysql.GTID) {
	t.Helper()
	other := mysql.GTID{Source: "3e11fa47-71ca-11e1-9e33-c80aa9429563", Number: 7}
	run(t, c, "SET SESSION gtid_next = '"+other.String()+"'", "INSERT INTO test.past VALUES (9)", "SET SESSION gtid_next = 'AUTOMATIC'")
	all, _, _ := position(t, n)
	roll := func(from mysql.GTIDSet, s Stop) (RollResult, error) {
		return planned(t, RollOptions{Files: logged(t, n), From: repo.Position{GTIDSet: from.String()}, Stop: s})
	}
	if res, err := roll(all, Stop{GTID: at[4]}); err != nil || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "GTIDs do not say") {
		t.Errorf("with the last of one of two servers: got %+v, %v; want len(Notes) 1, \"GTIDs do not say\" in Notes[0]", res, err)
	}
	if res, err := roll(from, Stop{GTID: other}); err != nil || res.Transactions != 3 {
		t.Errorf("with that of the other server: got %+v, %v; want Transactions 3", res, err)
	}
	from.Add(other) // the later one and not those before
	if res, err := roll(from, Stop{}); err != nil || res.Transactions != 2 || !res.GTIDs.Equal(all) {
		t.Errorf("from a position that has the later one: %+v, %v; want Transactions 2, GTIDs.Equal(all) true", res, err)
	}
	if res, err := roll(from, Stop{GTID: other, Before: true}); !errors.Is(err, ErrPast) {
		t.Errorf("before what it has: %+v, %v; want ErrPast", res, err)
	}
}

// twice: a log that is named twice, as when binlog.0000* also matches its compressed copy, is applied once or not at all.
func twice(t *testing.T, n *sandbox.Node, from mysql.GTIDSet) {
	t.Helper()
	files := logged(t, n)
	res, err := planned(t, RollOptions{Files: append(slices.Clone(files), files[len(files)-1]), From: repo.Position{GTIDSet: from.String()}})
	if !errors.Is(err, ErrContents) || !strings.Contains(err.Error(), files[len(files)-1].Name+" is there twice") {
		t.Errorf("a log that is there twice: %+v, %v; want ErrContents, files[len(files)-1].Name + \" is there twice\" in the error", res, err)
	}
}

// TestDisorder: if several servers write in one domain of MariaDB its numbers do not rise, and do not show what a position has: nothing is
// skipped and nothing is applied twice. The place in the log decides.
func TestDisorder(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", "gtid_strict_mode=OFF")
	c := conn(t, openDB(t, n))
	run(t, c, "CREATE TABLE test.d (id INT)", "INSERT INTO test.d VALUES (1)", "INSERT INTO test.d VALUES (2)", "INSERT INTO test.d VALUES (3)")
	for _, back := range []uint64{1, 0} { // a number below the position's, and the same one
		from, file, pos := position(t, n)
		last := from.Domains()[0]
		run(t, c, fmt.Sprintf("SET SESSION server_id = 4711, gtid_seq_no = %d", last.Number-back), "INSERT INTO test.d VALUES (4)", fmt.Sprintf("SET SESSION server_id = %d", last.Server), "INSERT INTO test.d VALUES (5)")
		for _, from := range []repo.Position{{GTIDSet: from.String()}, {GTIDSet: from.String(), File: file, Offset: pos}} {
			if res, err := planned(t, RollOptions{Files: logged(t, n), From: from, Own: from.File != "", Moment: time.Now().Add(time.Minute)}); !errors.Is(err, ErrContents) || !strings.Contains(err.Error(), "do not rise") {
				t.Errorf("got %d back, from %s: %+v, %v; want ErrContents, \"do not rise\" in the error", back, from.GTIDSet, res, err)
			}
		}
		if res, err := planned(t, RollOptions{Files: logged(t, n), From: repo.Position{File: file, Offset: pos}}); err != nil || res.Transactions != 2 {
			t.Errorf("by place: got %+v, %v; want Transactions 2", res, err)
		}
		// A position after the lower number: what comes before it has higher ones.
		run(t, c, fmt.Sprintf("SET SESSION server_id = 4711, gtid_seq_no = %d", last.Number-back), "INSERT INTO test.d VALUES (6)", fmt.Sprintf("SET SESSION server_id = %d", last.Server))
		low := fmt.Sprintf("%d-4711-%d", last.Domain, last.Number-back)
		if res, err := planned(t, RollOptions{Files: logged(t, n), From: repo.Position{GTIDSet: low}}); !errors.Is(err, ErrContents) && !errors.Is(err, ErrGap) {
			t.Errorf("from %s: %+v, %v", low, res, err)
		}
	}
}

// TestCutLogs: the rest of a log that was cut is not taken for all of it: nothing is applied, and a search says what it did not see.
func TestCutLogs(t *testing.T) {
	n := sandboxtest.Lend(t, "mariadb", fast...)
	c := conn(t, openDB(t, n))
	from, first, _ := position(t, n)
	run(t, c, "FLUSH BINARY LOGS", "CREATE TABLE test.cut (id INT PRIMARY KEY, v VARCHAR(200))", "INSERT INTO test.cut SELECT seq, MD5(seq) FROM test.seq_1_to_200", "DELETE FROM test.cut", "FLUSH BINARY LOGS", "CREATE TABLE test.behind (id INT)")
	_, last, _ := position(t, n)
	var paths []string
	for _, f := range logged(t, n) {
		if CompareNames(f.Name, first) > 0 {
			paths = append(paths, filepath.Join(n.Datadir, f.Name))
		}
	}
	if len(paths) != 2 || filepath.Base(paths[1]) != last {
		t.Fatalf("got %v; want len(paths) 2, filepath.Base(paths[1]) %v", paths, last)
	}
	whole, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	files, err := FromPaths(paths)
	if err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(t.TempDir(), files[0].Name+".gz")
	out, err := os.Create(packed)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(out)
	if _, err := z.Write(whole); err != nil || z.Close() != nil || out.Close() != nil {
		t.Fatalf("got %v; want z.Close() nil, out.Close() nil", err)
	}
	st, err := os.Stat(packed)
	if err != nil || os.Truncate(packed, st.Size()*2/3) != nil {
		t.Fatalf("got %v; want os.Truncate(packed, st.Size()*2/3) nil", err)
	}
	torn := filepath.Join(t.TempDir(), files[0].Name)
	if err := os.WriteFile(torn, whole[:len(whole)-60], 0o600); err != nil {
		t.Fatal(err)
	}
	known := files[1]
	known.Least = 1 << 20
	for _, c := range []struct {
		name       string
		files      []File
		rolls      bool // what is there is taken: it may be being written
		incomplete bool
	}{
		{"whole", files, true, false},
		{"a compressed one that is cut", []File{fileOf(t, packed), files[1]}, false, true},
		{"the same as the last", []File{fileOf(t, packed)}, false, true},
		{"one in the middle", []File{fileOf(t, torn), files[1]}, false, true},
		{"the last one", []File{fileOf(t, torn)}, true, false},
		{"one that was longer", []File{files[0], known}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := planned(t, RollOptions{Files: c.files, From: repo.Position{GTIDSet: from.String()}})
			if (err == nil) != c.rolls || c.rolls && len(c.files) == 1 && !strings.Contains(strings.Join(res.Notes, " "), "ends in the middle of an event") {
				t.Errorf("roll: %+v, %v", res, err)
			}
			found, err := Search(t.Context(), c.files, Damage{})
			if err != nil || found.Incomplete != c.incomplete || c.incomplete && len(found.Notes) == 0 {
				t.Errorf("search: incomplete %t, %q, %v", found.Incomplete, found.Notes, err)
			}
			_, err = Undo(t.Context(), UndoOptions{Files: c.files, GTID: mysql.GTID{Domain: 99, Server: 1, Number: 1}}, &strings.Builder{})
			if !errors.Is(err, ErrNoTransaction) || strings.Contains(err.Error(), "not all of the logs were read") != (c.incomplete || len(c.files) == 1) {
				t.Errorf("undo: %v", err)
			}
		})
	}
}

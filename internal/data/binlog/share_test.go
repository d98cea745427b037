package binlog

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestShare deletes and changes whole tables on servers that log no statements' texts, and expects to find that out.
func TestShare(t *testing.T) {
	for _, spec := range []string{"mysql-9.7", "mariadb"} {
		t.Run(spec, func(t *testing.T) {
			settings := []string{"sync_binlog=0", "innodb_flush_log_at_trx_commit=2"}
			if spec == "mariadb" {
				settings = append(settings, "binlog_annotate_row_events=OFF")
			}
			n := sandboxtest.Up(t, spec, settings...)
			c := conn(t, openDB(t, n))
			insert := func(table string, from, to int) {
				var rows []string
				for i := from; i < to; i++ {
					rows = append(rows, "("+itoa(i)+", 'v')")
				}
				run(t, c, "INSERT INTO test."+table+" VALUES "+strings.Join(rows, ", "))
			}
			run(t, c, "CREATE TABLE test.a (id INT PRIMARY KEY, v VARCHAR(20))", "CREATE INDEX v ON test.a (v)", "CREATE TABLE test.b LIKE test.a")
			insert("a", 0, 100)
			insert("b", 0, 40)
			run(t, c, "FLUSH BINARY LOGS", "DELETE FROM test.a WHERE id < 20", "UPDATE test.b SET v = 'lost' WHERE id >= 0")
			backup, _, _ := position(t, n)
			run(t, c, "BEGIN")
			insert("a", 200, 220)
			run(t, c, "DELETE FROM test.a WHERE id > 0", "COMMIT", "CREATE TABLE IF NOT EXISTS test.b (id INT)", "DELETE FROM test.b WHERE id < 20")
			insert("b", 100, 103)

			files := logged(t, n)
			live, err := mysql.Connect(t.Context(), targetOf(t, n), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer live.Close()
			d := Damage{Tables: func(s, tb string) bool { return s == "test" }, Kinds: []string{"delete", "update"}, Workers: 2}
			search := func(files []File, d Damage) (out []string) {
				t.Helper()
				res, err := Search(t.Context(), files, d)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range res.Found {
					for _, ch := range f.Changes {
						if ch.Share != nil {
							out = append(out, strings.Join([]string{ch.Kind, ch.Table, itoa(int(ch.Rows)), itoa(int(ch.Share.Of)), string(ch.Share.Sure), f.Whole, string(f.Sure)}, "|"))
						}
					}
				}
				return out
			}
			expect := func(name string, got []string, want ...string) {
				t.Helper()
				if strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Errorf("%s:\n%s\nwant:\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
			expect("the logs have the tables from their beginning", search(files, d),
				"delete|test.a|100|100|certain|DELETE of all 100 rows of test.a|certain", "update|test.b|40|40|certain|UPDATE of all 40 rows of test.b|certain",
				"delete|test.a|20|100|certain||", "delete|test.b|20|40|certain||")
			expect("nobody knows", search(files[1:], d))
			hole := files[0]
			hole.Name = "binlog.000009" // as if those between were missing
			expect("a log is missing", search([]File{hole, files[1]}, d))
			res, err := Search(t.Context(), []File{flipped(t, files[0]), files[1]}, d)
			if err != nil || len(res.Found) != 4 || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "wrong checksum") || res.Found[0].Sure == Certain {
				t.Errorf("a damaged log: got %+v, %v; want len(Found) 4, len(Notes) 1, \"wrong checksum\" in Notes[0], Found[0].Sure not Certain", res, err)
			}
			count := func(before mysql.GTIDSet) Counts {
				return func(_ context.Context, schema, table string) []Count {
					return []Count{{Rows: map[string]int64{"a": 80, "b": 40}[table], Exact: true, Source: "backup x", Time: time.Now(), Before: before}}
				}
			}
			d.Counts = count(backup)
			expect("a backup and the logs since", search(files[1:], d),
				"delete|test.a|100|100|certain|DELETE of all 100 rows of test.a|certain", "delete|test.b|20|40|certain||")
			d.Counts = nil
			all, err := Search(t.Context(), files, Damage{Limit: 2, Images: 1})
			if err != nil || len(all.Found) != 2 || all.Fit < 8 || all.Found[0].Rows != 120 || all.Found[1].Rows != 100 {
				t.Errorf("the worst two of %d: got %+v, %v; want len(all.Found) 2, all.Fit at least 8, all.Found[0].Rows 120, all.Found[1].Rows 100",
					all.Fit, all.Found, err)
			}
			d.Now = NewLive(live).Rows
			expect("rows that are left", search(files[1:], d),
				"delete|test.a|100|100|likely|DELETE of all 100 rows of test.a|likely", "update|test.b|40|40|likely|UPDATE of all 40 rows of test.b|likely",
				"delete|test.a|20|100|likely||", "delete|test.b|20|40|likely||")
		})
	}
}

// flipped is a log in which one bit of the first rows is not what it was.
func flipped(t *testing.T, f File) File {
	t.Helper()
	in, err := f.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	b, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.LastIndex(b, []byte{1, 'v'})+1] ^= 1 // of the last row, which is in the rows of a transaction
	f.Open = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	return f
}

package binlogevent

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRecorded reads logs that servers wrote and compares all that is read of them with the files next to them: each event, each
// row, each value as the expression in SQL that it was written with. testdata/README.md says how they were recorded.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.binlog.gz")
	if err != nil || len(files) < 4 {
		t.Fatalf("got %d logs, %v; want some", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			log := unpacked(t, file)
			got := visible(told(t, log, Options{}))
			golden := strings.TrimSuffix(file, ".binlog.gz") + ".txt"
			if os.Getenv("RISSO_WRITE") != "" {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, got, string(want))
			// In parts and with what can be lost it reads the same.
			compare(t, visible(told(t, log, Options{Lost: func(err error, n int64) { t.Errorf("got %v, %d bytes lost; want nothing lost", err, n) }})), got)
		})
	}
}

// visible writes the returns in values so that no editor turns them.
func visible(s string) string { return strings.ReplaceAll(s, "\r", `\r`) }

func compare(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Errorf("line %d: got\n%s\nwant\n%s", i+1, g[i], w[i])
			return
		}
	}
	if len(g) != len(w) {
		t.Errorf("got %d lines, want %d", len(g), len(w))
	}
}

func unpacked(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// told returns all that is read of a log.
func told(t *testing.T, log []byte, o Options) string {
	t.Helper()
	var b strings.Builder
	r, err := NewReader(bytes.NewReader(log), o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tables := Tables[int]{}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		inner := ""
		if e.Inner {
			inner = " inner"
		}
		fmt.Fprintf(&b, "%d-%d type %d server %d length %d end %d flags %x%s\n", e.Pos, e.End, e.Type, e.ServerID, e.Length, e.EndPos, e.Flags, inner)
		if text := body(t, r.Format(), e, &tables); text != "" {
			b.WriteString("  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n")
		}
	}
	fmt.Fprintf(&b, "end at %d of %d\n", r.Pos(), len(log))
	return b.String()
}

// body says what the body of an event holds.
func body(t *testing.T, f Format, e Event, tables *Tables[int]) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("at %d, type %d: %v", e.Pos, e.Type, err)
		}
	}
	switch e.Type {
	case TypeFormatDescription:
		again, err := ParseFormat(e.Raw)
		must(err)
		plain, err := ParseFormat(PlainFormat(e.Raw))
		if err == nil && plain.Checksum {
			t.Error("a plain format has a checksum")
		}
		return fmt.Sprintf("%s, MariaDB %v, server %v, created %v, checksum %v, table IDs of %d bytes; sum right %v", again.Version, again.Server().MariaDB(), again.server, again.Created > 0, again.Checksum, again.tableIDLen, VerifyChecksum(e.Raw))
	case TypeGTID, TypeAnonymousGTID, TypeMariaGTID, TypeGTIDTagged:
		g, err := ParseGTID(e)
		must(err)
		out := fmt.Sprintf("%v, length %d, standalone %v, DDL %v, XA %v, alter %v, thread %v, versions %d %d", g.ID, g.Length, g.Standalone, g.DDL, g.XA, g.AlterPhase, g.Thread, g.ServerVersion, g.OriginalVersion)
		if g.Prepares != nil {
			out += ", prepares " + g.Prepares.SQL()
		}
		if !g.Committed.IsZero() {
			out += fmt.Sprintf(", committed %s, first %s", g.Committed.Format(time.RFC3339Nano), g.Original.Format(time.RFC3339Nano))
		}
		return out
	case TypePreviousGTIDs, TypeMariaGTIDList:
		s, err := ParseGTIDs(e)
		must(err)
		return s.String()
	case TypeRotate:
		r, err := ParseRotate(e.Body)
		must(err)
		return fmt.Sprintf("%+v, artificial %v", r, e.Artificial())
	case TypeQuery, TypeQueryZip:
		return queryText(t, e)
	case TypeIntvar:
		v, err := ParseIntvar(e.Body)
		must(err)
		return fmt.Sprintf("%+v", v)
	case TypeRand:
		x, y, err := ParseRand(e.Body)
		must(err)
		return fmt.Sprintf("seeds %d %d", x, y)
	case TypeUserVar:
		v, err := ParseUserVar(e.Body)
		must(err)
		bare, err := v.Assignment("")
		must(err)
		text, err := v.Assignment("utf8mb4_bin")
		must(err)
		return fmt.Sprintf("@%s = %s = %s, null %v, kind %d, collation %d, unsigned %v", v.Name, bare, text, v.Null, v.Kind, v.Collation, v.Unsigned)
	case TypeXAPrepare:
		x, err := ParseXAPrepare(e.Body)
		must(err)
		return fmt.Sprintf("%s, one phase %v", x.SQL(), x.OnePhase)
	case TypeRowsQuery, TypeAnnotateRows:
		return string(StatementText(e))
	case TypeTableMap:
		m, fresh, err := tables.Map(f, e.Body)
		must(err)
		must(m.Err)
		out := fmt.Sprintf("known %v %s.%s, named %v, fresh %v", m.ID > 0, m.Schema, m.Name, m.Named, fresh)
		for _, c := range m.Columns {
			out += fmt.Sprintf("\n%s type %d (%d,%d) key %v known %v unsigned %v collation %d binary %v fixed %d prefix %d JSON %v temporal %v approximate %v", c.Name, c.typ, c.a, c.b, c.Key, c.Known, c.Unsigned, c.Collation, c.Binary, c.fixed, c.prefix, c.JSON(), c.Temporal(), c.Approximate())
		}
		renamed, err := RenameTable(f, TrimChecksum(bytes.Clone(e.Raw)), "other", "name")
		must(err)
		again, err := ParseTable(f, renamed[HeaderLen:])
		if err != nil || again.Schema != "other" || again.Name != "name" || len(again.Columns) != len(m.Columns) || int(ParseHeader(renamed).Length) != len(renamed) {
			t.Errorf("renamed: got %+v, %v; want Schema \"other\", Name \"name\", len(Columns) %v, int(ParseHeader(renamed).Length) %v",
				again, err, len(m.Columns), len(renamed))
		}
		return out
	}
	if e.Type.IsRows() {
		return rowsText(t, f, e, tables)
	}
	return ""
}

func queryText(t *testing.T, e Event) string {
	t.Helper()
	q, err := ParseQuery(e)
	if err != nil {
		t.Fatal(err)
	}
	short, err := ParseQueryText(e, 1<<20)
	if err != nil || !bytes.Equal(short.Text, q.Text) || short.Moment() != q.Micros%1e6 {
		t.Errorf("got %q, %v beside %q; want short.Text %q, short.Moment() %v", short.Text, err, q.Text, q.Text, q.Micros%1e6)
	}
	show := func(v any) string {
		switch v := v.(type) {
		case *uint64:
			if v != nil {
				return fmt.Sprint(*v)
			}
		case *[2]uint16:
			if v != nil {
				return fmt.Sprint(*v)
			}
		case *[3]uint16:
			if v != nil {
				return fmt.Sprint(*v)
			}
		case *string:
			if v != nil {
				return *v
			}
		}
		return "-"
	}
	return fmt.Sprintf("%s: %s\nerror %d, flags %x, mode %s, increment %s, charset %s, zone %s, names %d, charset %d, micros %d, explicit %d, default %d, key %d, encryption %d, by %q@%q",
		q.Schema, bytes.ReplaceAll(q.Text, []byte("\n"), []byte(" ")), q.ErrorCode, q.Flags2, show(q.SQLMode), show(q.AutoIncrement), show(q.Charset), show(q.TimeZone), q.LCTimeNames, q.CharsetDatabase, q.Micros, q.ExplicitTS, q.DefaultUTF8MB4, q.RequirePK, q.TableEncryption, q.User, q.Host)
}

// rowsText prints rows, and checks that they can be counted, made plain and cut.
func rowsText(t *testing.T, f Format, e Event, tables *Tables[int]) string {
	t.Helper()
	id, flags, err := RowsHead(f, e)
	if err != nil {
		t.Fatal(err)
	}
	m := tables.Get(id)
	if m == nil {
		t.Fatalf("rows of table %d, which was not named; want m not nil", id)
	}
	rows, err := OpenRows(f, e, &m.Table)
	if err != nil {
		t.Fatal(err)
	}
	out := rowsList(t, f, rows)
	head := fmt.Sprintf("%s %s.%s flags %d", rows.Kind, m.Schema, m.Name, flags)
	for i := range m.Columns {
		before, after := rows.Has(i)
		head += fmt.Sprintf(" %s", map[[2]bool]string{{true, true}: "x", {true, false}: "b", {false, true}: "a", {}: "-"}[[2]bool{before, after}])
	}
	n, err := CountRows(f, e, &m.Table, 1<<20)
	if err != nil || int(n) != strings.Count(out, "\nrow") {
		t.Errorf("got %d rows, %v; want %d", n, err, strings.Count(out, "\nrow"))
	}
	plain, err := Plain(f, Event{Header: e.Header, Raw: bytes.Clone(e.Raw), Body: e.Body})
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{0, 150, 1 << 20} {
		parts, err := Split(f, plain, &m.Table, limit)
		if err != nil {
			t.Fatal(err)
		}
		again := ""
		for _, p := range parts {
			x := Event{Header: ParseHeader(p), Raw: p, Body: p[HeaderLen:]}
			if int(x.Length) != len(p) || x.Type.zipped() {
				t.Errorf("a part of %d bytes says %d, type %d; want int(x.Length) %v, zipped() false", len(p), x.Length, x.Type, len(p))
			}
			r, err := OpenRows(f, x, &m.Table)
			if err != nil {
				t.Fatal(err)
			}
			again += rowsList(t, f, r)
			if some, err := CountRows(f, x, &m.Table, 0); limit == 0 && some != 1 || limit == 150 && some > 1 && len(p) > limit || err != nil {
				t.Errorf("got %d rows in %d bytes, %v; want no more than %d bytes", some, len(p), err, limit)
			}
		}
		if again != out || limit == 1<<20 && len(parts) != 1 {
			t.Errorf("cut to %d bytes: got%s\nwant%s", limit, again, out)
		}
	}
	SetRowsFlags(f, plain, RowsNoForeignKeys)
	if _, flags, err := RowsHead(f, Event{Body: plain[HeaderLen:]}); flags != RowsNoForeignKeys || err != nil {
		t.Errorf("got flags %d, %v; want %d", flags, err, RowsNoForeignKeys)
	}
	return head + out
}

func rowsList(t *testing.T, f Format, r *Rows) (out string) {
	t.Helper()
	for {
		before, after, more, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return out
		}
		out += "\nrow"
		for i := range r.Table.Columns {
			c := &r.Table.Columns[i]
			if before != nil && before[i].Present {
				out += "\n  " + c.Name + ": " + valueText(c, f, before[i])
			}
			if after == nil || !after[i].Present {
				continue
			}
			if after[i].Partial {
				patched := "the value before is not there"
				if before != nil && before[i].Present {
					if patched, err = c.Patched(before[i], after[i]); err != nil {
						t.Fatal(err)
					}
				}
				out += "\n  " + c.Name + " patched: " + patched
				continue
			}
			out += "\n  " + c.Name + " = " + valueText(c, f, after[i])
		}
	}
}

func valueText(c *Column, f Format, v Value) string {
	cut := func(s string, err error) string {
		if err != nil {
			return err.Error()
		}
		if len(s) > 300 {
			return fmt.Sprintf("%s… %d", s[:300], len(s))
		}
		return s
	}
	out := cut(c.Literal(v))
	if shown := cut(c.Shown(v)); shown != out {
		out += " shown " + shown
	}
	if equals := cut(c.Equals(v)); !strings.HasSuffix(equals, "= "+out) {
		out += " equals " + equals
	}
	if !c.Exact(f, v) {
		out += " not exact"
	}
	return out
}

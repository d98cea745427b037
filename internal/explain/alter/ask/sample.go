package ask

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// readTime bounds how long rows are read from the server.
const readTime = time.Minute

// segments is at how many places of the table rows are taken, where its key is a number.
const segments = 8

// Sample times the change on a part of the real rows: most bytes of data and indexes, about. The way is that of the answer. Its Unmeasured says why
// there is none; an error is one of the box or the server as a whole.
func (b *Box) Sample(ctx context.Context, target mysql.Target, f *alter.Facts, st alter.Statement, a alter.Answer, most int64, say func(string)) (alter.Sample, error) {
	var s alter.Sample
	if f.Rows == 0 || f.Size() == 0 {
		s.Unmeasured = "the table is empty, as far as the server knows"
		return s, nil
	}
	k := &clone{b: b, f: f, st: st}
	dir, err := os.MkdirTemp(b.dir, "risso-alter-") // what a killed process leaves goes with the sandbox
	if err != nil {
		return s, fmt.Errorf("keep a part of the rows: %w", err)
	}
	defer os.RemoveAll(dir)
	t := taking{f: f, st: st, path: filepath.Join(dir, "rows"), share: min(1, float64(most)/float64(f.Size()))}
	say("read a part of the rows")
	if err := t.take(ctx, target); err != nil {
		s.Unmeasured = "the rows could not be read: " + err.Error()
		return s, ctx.Err()
	}
	if err := k.reset(ctx); err != nil {
		return s, err
	}
	say("put " + strconv.FormatInt(t.rows, 10) + " rows into the clone")
	if err := t.put(ctx, b.Target); err != nil {
		s.Unmeasured = "the rows could not be put into the clone: " + err.Error()
		return s, ctx.Err()
	}
	if s.Rows = t.rows; s.Rows == 0 {
		s.Unmeasured = "there are no rows"
		return s, nil
	}
	if s.Bytes, err = k.size(ctx, st.Table); err != nil {
		return s, err
	}
	if s.Elsewhere = !f.Place.Here; s.Elsewhere {
		s.Reads = t.compare(ctx, target, b.Target)
	}
	say("change the clone")
	if _, _, err := k.alter(ctx, a.Algorithm, a.Lock); err != nil {
		if mysql.ErrorNumber(err) == 0 {
			return s, err
		}
		s.Fails = errno.WithoutValues(err.Error())
		s.Unmeasured = "the change failed on a part of the rows"
		return s, nil
	}
	s.Points = []alter.Point{{Bytes: s.Bytes, Seconds: k.empty.Seconds(), Runs: 1}}
	name := st.Table
	if st.RenamedTo != nil {
		name = *st.RenamedTo
	}
	s.Grown, err = k.size(ctx, name)
	return s, err
}

// size is what the clone's data and indexes have.
func (k *clone) size(ctx context.Context, name mysql.TableName) (n int64, err error) {
	if err := k.b.c.Exec(ctx, "ANALYZE TABLE /* risso: how large is the clone */ "+name.String()); err != nil {
		return 0, err
	}
	if q := k.b.c.Server.FreshStatistics(); q != "" {
		if err := k.b.c.Exec(ctx, q); err != nil {
			return 0, err
		}
	}
	text, err := k.b.c.Text(ctx, "SELECT /* risso: how large is the clone */ DATA_LENGTH + INDEX_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+mysql.Literal(name.Schema)+" AND TABLE_NAME = "+mysql.Literal(name.Name))
	if err != nil {
		return 0, err
	}
	n, err = strconv.ParseInt(text, 10, 64)
	return n, err
}

// taking takes rows from a table, and puts them into another of the same definition.
type taking struct {
	f     *alter.Facts
	st    alter.Statement
	path  string // of a file with the rows, as LOAD DATA reads them
	share float64
	rows  int64
	key   string // the column by which rows are taken; "" none
}

// columns are those that hold values of their own.
func (t *taking) columns() (names []string) {
	for _, c := range t.f.Table.Columns {
		if !c.Generated {
			names = append(names, mysql.Quote(c.Name))
		}
	}
	return names
}

// take reads rows into the file.
func (t *taking) take(ctx context.Context, target mysql.Target) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	s, err := target.ConnectStream(ctx, mysql.StreamOptions{Patience: readTime})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.ForRows(ctx, t.f.Server); err != nil {
		return err
	}
	file, err := os.OpenFile(t.path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	w := bufio.NewWriterSize(file, 1<<20)
	for _, where := range t.pieces(ctx, s) {
		err := s.Query(ctx, "SELECT /* risso: a part of the rows, to try an ALTER TABLE on */ "+strings.Join(t.columns(), ", ")+" FROM "+t.st.Table.String()+where, func(row [][]byte) error {
			t.rows++
			return writeRow(w, row)
		})
		if err != nil {
			return err
		}
	}
	return w.Flush()
}

// pieces are the ends of the SELECTs that take the rows: from several places of the table where its key is a number.
func (t *taking) pieces(ctx context.Context, s *mysql.Stream) []string {
	n := int64(float64(t.f.Rows)*t.share) + 1
	if t.share >= 1 {
		return []string{" LIMIT " + strconv.FormatInt(2*t.f.Rows+1000, 10)}
	}
	key := slices.IndexFunc(t.f.Table.Keys, func(k define.TableKey) bool { return k.Name == "PRIMARY" })
	if key < 0 {
		return []string{" LIMIT " + strconv.FormatInt(n, 10)}
	}
	k := t.f.Table.Keys[key]
	c, _ := t.f.Table.Column(k.Parts[0].Column)
	name := mysql.Quote(c.Name)
	if len(k.Parts) > 1 || !strings.HasSuffix(c.Type, "int") {
		var order []string
		for _, p := range k.Parts {
			order = append(order, mysql.Quote(p.Column))
		}
		return []string{" ORDER BY " + strings.Join(order, ", ") + " LIMIT " + strconv.FormatInt(n, 10)}
	}
	t.key = name
	var low, high int64
	err := s.Query(ctx, "SELECT /* risso: from where to where do keys go */ MIN("+name+"), MAX("+name+") FROM "+t.st.Table.String(), func(row [][]byte) error {
		var bad error
		low, bad = strconv.ParseInt(string(row[0]), 10, 64)
		var worse error
		high, worse = strconv.ParseInt(string(row[1]), 10, 64)
		return errors.Join(bad, worse)
	})
	step := high/segments - low/segments
	if err != nil || step < 1 {
		return []string{" ORDER BY " + name + " LIMIT " + strconv.FormatInt(n, 10)}
	}
	var list []string
	for i := range segments { // a piece ends where the next begins
		from, to := low+int64(i)*step, low+int64(i+1)*step-1
		if i == segments-1 {
			to = high
		}
		list = append(list, fmt.Sprintf(" WHERE %s BETWEEN %d AND %d ORDER BY %s LIMIT %d", name, from, to, name, n/segments+1))
	}
	return list
}

// writeRow writes a row as LOAD DATA reads it by default.
func writeRow(w *bufio.Writer, row [][]byte) error {
	for i, v := range row {
		if i > 0 {
			w.WriteByte('\t')
		}
		if v == nil {
			w.WriteString(`\N`)
			continue
		}
		for _, c := range v {
			switch c {
			case '\\', '\t', '\n':
				w.WriteByte('\\')
				w.WriteByte(c)
			case 0:
				w.WriteString(`\0`)
			default:
				w.WriteByte(c)
			}
		}
	}
	return w.WriteByte('\n')
}

// put loads the file into the clone.
func (t *taking) put(ctx context.Context, box mysql.Target) error {
	s, err := box.ConnectStream(ctx, mysql.StreamOptions{Patience: boxPatience})
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := mysql.Connect(ctx, box, nil)
	if err != nil {
		return err
	}
	server := c.Server
	c.Close()
	if err := s.ForRows(ctx, server); err != nil {
		return err
	}
	if err := s.Exec(ctx, "SET SESSION /* risso: as they are */ sql_mode = 'NO_AUTO_VALUE_ON_ZERO', foreign_key_checks = 0, unique_checks = 1, sql_log_bin = 0"); err != nil {
		return err
	}
	if err := dropTriggers(ctx, s, t.f.Triggers); err != nil {
		return err
	}
	file, err := os.Open(t.path)
	if err != nil {
		return err
	}
	defer file.Close()
	var into, set []string
	for _, c := range t.f.Table.Columns {
		switch {
		case c.Generated:
		case c.Type == "json": // binary text is no JSON
			v := "@v" + strconv.Itoa(len(into))
			into, set = append(into, v), append(set, mysql.Quote(c.Name)+" = CONVERT("+v+" USING utf8mb4)")
		default:
			into = append(into, mysql.Quote(c.Name))
		}
	}
	text := "LOAD DATA LOCAL INFILE 'risso' INTO TABLE " + t.st.Table.String() + " CHARACTER SET binary (" + strings.Join(into, ", ") + ")"
	if len(set) > 0 {
		text += " SET " + strings.Join(set, ", ")
	}
	return s.Load(ctx, text, file)
}

// dropTriggers keeps the clone's triggers from firing: they fire in no ALTER TABLE either.
func dropTriggers(ctx context.Context, s *mysql.Stream, list []define.Definition) error {
	for _, d := range list {
		if err := s.Exec(ctx, "DROP TRIGGER IF EXISTS "+mysql.Quote(d.Schema)+"."+mysql.Quote(d.Name)); err != nil {
			return err
		}
	}
	return nil
}

// compare lets both servers read the same rows: how fast is the one, measured by the other. Nothing where that cannot be asked.
func (t *taking) compare(ctx context.Context, target, box mysql.Target) []float64 {
	if t.key == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	bounds := ""
	err := query(ctx, box, "SELECT /* risso: which rows are there */ MIN("+t.key+"), MAX("+t.key+") FROM (SELECT "+t.key+" FROM "+t.st.Table.String()+" ORDER BY "+t.key+" LIMIT "+strconv.FormatInt(t.rows/segments, 10)+") x", func(row [][]byte) error {
		bounds = t.key + " BETWEEN " + string(row[0]) + " AND " + string(row[1])
		return nil
	})
	if err != nil {
		return nil
	}
	read := "SELECT /* risso: how fast does it read */ COUNT(*), BIT_XOR(CRC32(CONCAT_WS('#', " + strings.Join(t.columns(), ", ") + "))) FROM " + t.st.Table.String() + " WHERE " + bounds
	var out []float64
	for _, at := range []mysql.Target{box, target} {
		best := 0.0
		for range 3 {
			began := time.Now()
			if err := query(ctx, at, read, func([][]byte) error { return nil }); err != nil {
				return nil
			}
			if d := time.Since(began).Seconds(); best == 0 || d < best {
				best = d
			}
		}
		out = append(out, best)
	}
	return out
}

func query(ctx context.Context, target mysql.Target, statement string, f func([][]byte) error) error {
	s, err := target.ConnectStream(ctx, mysql.StreamOptions{Patience: readTime})
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Query(ctx, statement, f)
}

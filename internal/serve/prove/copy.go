package prove

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// blocks is in how many parts the range of a large table's primary key is cut; of each part of the sample all rows are taken, so that
// neighbours stay neighbours.
const blocks = 1000

// copier copies tables, or samples of them.
type copier struct {
	from, to *mysql.Stream
	most     float64 // rows of a table that is copied whole
	notes    []string
}

// tables copies definitions and rows.
func (c *copier) tables(ctx context.Context, names []mysql.TableName, estimate func(mysql.TableName) (float64, error)) (out []advise.CopiedTable, err error) {
	if err := c.to.Exec(ctx, "SET SESSION /* risso: copy */ foreign_key_checks = 0, unique_checks = 0"); err != nil {
		return nil, err
	}
	made := map[string]bool{}
	for _, n := range names {
		if !made[n.Schema] {
			create, err := define.CreateSchema(ctx, c.from, n.Schema)
			if err != nil {
				return nil, fmt.Errorf("schema %s: %w", n.Schema, err)
			}
			create = strings.Replace(create, "CREATE DATABASE ", "CREATE DATABASE IF NOT EXISTS ", 1)
			if err := c.to.Exec(ctx, strings.Replace(create, "IF NOT EXISTS IF NOT EXISTS", "IF NOT EXISTS", 1)); err != nil {
				return nil, fmt.Errorf("schema %s: %w", n.Schema, err)
			}
			made[n.Schema] = true
		}
		rows, err := estimate(n)
		if err != nil {
			return nil, err
		}
		t, err := c.table(ctx, n, rows)
		if err != nil {
			return nil, fmt.Errorf("copy %s: %w", n, err)
		}
		out = append(out, t)
	}
	return out, nil
}

func (c *copier) table(ctx context.Context, n mysql.TableName, rows float64) (advise.CopiedTable, error) {
	out := advise.CopiedTable{Name: n.Schema + "." + n.Name, Of: rows, All: rows <= c.most}
	create, err := define.CreateTable(ctx, c.from, n)
	if err != nil {
		return out, err
	}
	t, err := define.ParseTable(n.Schema, create)
	if err != nil {
		return out, err
	}
	if err := c.to.Exec(ctx, "USE "+mysql.Quote(n.Schema)); err != nil {
		return out, err
	}
	if err := c.to.Exec(ctx, create); err != nil {
		return out, err
	}
	var where []string
	if where, out.All, err = c.parts(ctx, &t, rows, out.All); err != nil {
		return out, err
	}
	for _, w := range where {
		if err := c.rows(ctx, &t, w); err != nil {
			return out, err
		}
	}
	if err := c.to.Query(ctx, "SELECT /* risso: copy */ COUNT(*) FROM "+n.String(), func(row [][]byte) (err error) {
		out.Rows, err = strconv.ParseFloat(string(row[0]), 64)
		return err
	}); err != nil {
		return out, err
	}
	return out, nil
}

// parts are the conditions under which rows are copied: none for all of them. Of a large table whose primary key is one number, blocks of its
// range are taken, chosen by a hash of their numbers; of others the first rows in the order of the primary key, which is said.
func (c *copier) parts(ctx context.Context, t *define.Table, rows float64, all bool) (where []string, entire bool, err error) {
	if all {
		return []string{""}, true, nil
	}
	key := ""
	for _, k := range t.Keys {
		if k.Name == "PRIMARY" && len(k.Parts) == 1 {
			if col, ok := t.Column(k.Parts[0].Column); ok && strings.HasSuffix(col.Type, "int") {
				key = k.Parts[0].Column
			}
		}
	}
	name := mysql.TableName{Schema: t.Schema, Name: t.Name}
	if key == "" {
		c.notes = append(c.notes, fmt.Sprintf("of %s only the first %s in the order of its primary key were copied: it has no key of one number whose range could be sampled, so values may be spread otherwise", name, digits.Counted(int64(c.most), "row")))
		return []string{" LIMIT " + whole(c.most)}, false, nil
	}
	var low, high float64
	err = c.from.Query(ctx, "SELECT /* risso: sample */ MIN("+mysql.Quote(key)+"), MAX("+mysql.Quote(key)+") FROM "+name.String(), func(row [][]byte) error {
		low, _ = strconv.ParseFloat(string(row[0]), 64)
		high, _ = strconv.ParseFloat(string(row[1]), 64)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	share, width := c.most/rows, (high-low+1)/blocks
	for i := range blocks {
		if hash(i) < share {
			where = append(where, " WHERE "+mysql.Quote(key)+" >= "+whole(low+float64(i)*width)+" AND "+mysql.Quote(key)+" < "+whole(low+float64(i+1)*width))
		}
	}
	c.notes = append(c.notes, fmt.Sprintf("of %s a sample was copied, %d of %d blocks of its primary key's range: how many rows a value has is as on the server in proportion, but a join with another sample finds fewer rows than there", name, len(where), blocks))
	return where, false, nil
}

// whole writes a number for SQL, without a point.
func whole(v float64) string { return strconv.FormatFloat(math.Round(v), 'f', -1, 64) }

// hash spreads numbers over 0 to 1 (the finalizer of splitmix64: Steele, Lea and Flood, 2014).
func hash(i int) float64 {
	x := uint64(i+1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// rows copies the rows of one condition, as bytes in the columns' own character sets.
func (c *copier) rows(ctx context.Context, t *define.Table, where string) error {
	var columns, into, sets []string
	for i, col := range t.Columns {
		if col.Generated {
			continue
		}
		columns = append(columns, mysql.Quote(col.Name))
		if col.Type == "json" { // a server takes no document of binary text
			v := "@risso" + strconv.Itoa(i)
			into, sets = append(into, v), append(sets, mysql.Quote(col.Name)+" = CONVERT("+v+" USING utf8mb4)")
			continue
		}
		into = append(into, mysql.Quote(col.Name))
	}
	name := mysql.TableName{Schema: t.Schema, Name: t.Name}.String()
	load := "LOAD DATA /* risso: copy */ LOCAL INFILE 'rows' INTO TABLE " + name + " CHARACTER SET binary (" + strings.Join(into, ", ") + ")"
	if len(sets) > 0 {
		load += " SET " + strings.Join(sets, ", ")
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the query, or when the reader closes the pipe
		b := bufio.NewWriterSize(w, 1<<16)
		err := c.from.Query(ctx, "SELECT /* risso: copy */ "+strings.Join(columns, ", ")+" FROM "+name+where, func(row [][]byte) error { return line(b, row) })
		if err == nil {
			err = b.Flush()
		}
		w.CloseWithError(err)
		done <- err
	}()
	err := c.to.Load(ctx, load, r)
	r.Close()
	if readErr := <-done; err == nil {
		err = readErr
	}
	return err
}

// line writes a row as LOAD DATA reads it by default (MySQL manual, "LOAD DATA Statement").
func line(b *bufio.Writer, row [][]byte) error {
	for i, v := range row {
		if i > 0 {
			b.WriteByte('\t')
		}
		if v == nil {
			b.WriteString(`\N`)
			continue
		}
		for _, x := range v {
			switch x {
			case 0:
				b.WriteString(`\0`)
				continue
			case '\t', '\n', '\\':
				b.WriteByte('\\')
			}
			b.WriteByte(x)
		}
	}
	return b.WriteByte('\n')
}

package sample

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// Columns are those of a table that hold values of their own, quoted.
func Columns(t define.Table) (names []string) {
	for _, c := range t.Columns {
		if !c.Generated {
			names = append(names, mysql.Quote(c.Name))
		}
	}
	return names
}

// textOnly are types that do not take a value's text as bytes: JSON of MySQL refuses it, MariaDB's UUID and addresses take it for their inner form.
var textOnly = map[string]bool{"json": true, "uuid": true, "inet4": true, "inet6": true, "xmltype": true}

// load is the statement that takes rows in: as bytes in the columns' own character sets, but for types that take text only. Beside such a
// one the AUTO_INCREMENT column passes through a variable too, for MySQL (5.7.22, 8.0.15, seen) makes a new value for 0 else.
func load(t define.Table, purpose string) string {
	var into, sets []string
	anyText := false
	for _, c := range t.Columns {
		anyText = anyText || textOnly[c.Type] && !c.Generated
	}
	for i, c := range t.Columns {
		name, v := mysql.Quote(c.Name), "@risso"+strconv.Itoa(i)
		switch {
		case c.Generated:
		case textOnly[c.Type]:
			into, sets = append(into, v), append(sets, name+" = CONVERT("+v+" USING utf8mb4)")
		case anyText && c.Auto:
			into, sets = append(into, v), append(sets, name+" = "+v)
		default:
			into = append(into, name)
		}
	}
	text := "LOAD DATA /* risso: " + purpose + " */ LOCAL INFILE 'risso' INTO TABLE " + mysql.TableName{Schema: t.Schema, Name: t.Name}.String() + " CHARACTER SET binary (" + strings.Join(into, ", ") + ")"
	if len(sets) > 0 {
		text += " SET " + strings.Join(sets, ", ")
	}
	return text
}

// rows copies the rows of the end of a SELECT, until there are so many bytes (0: any); then cut is true. at is the key's place among the columns.
func (c *copier) rows(ctx context.Context, end string, at int, most int64) (p Place, cut bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { // ends with the query, or when the reader closes the pipe
		b := bufio.NewWriterSize(w, 1<<16)
		err := c.from.Query(ctx, "SELECT /* risso: "+c.o.Purpose+" */ "+strings.Join(Columns(c.t), ", ")+" FROM "+c.name.String()+end, func(row [][]byte) error {
			if cut = cut || most > 0 && p.Bytes > most; cut { // the rest goes by: the session stays of use
				return nil
			}
			p.Rows++
			for _, v := range row {
				p.Bytes += int64(len(v))
			}
			if at >= 0 {
				if p.High = string(row[at]); p.Low == "" {
					p.Low = p.High
				}
			}
			return write(b, row)
		})
		if err == nil {
			err = b.Flush()
		}
		w.CloseWithError(err)
		done <- err
	}()
	err = c.to.Load(ctx, load(c.t, c.o.Purpose), r)
	r.Close()
	read := <-done
	switch {
	case read != nil && !errors.Is(read, io.ErrClosedPipe):
		return p, cut, fmt.Errorf("read rows of %s: %w", c.name, read)
	case err != nil:
		return p, cut, fmt.Errorf("put rows of %s into the throw-away server: %w", c.name, err)
	}
	return p, cut, nil
}

// write writes a row as LOAD DATA reads it by default (MySQL manual, "LOAD DATA Statement").
func write(b *bufio.Writer, row [][]byte) error {
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

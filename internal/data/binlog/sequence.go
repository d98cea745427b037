package binlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
)

// setval applies what nextval() and setval() of MariaDB write under binlog_row_image = MINIMAL: of a sequence's eight columns the first, its
// next value, and the last, how often it went round. A replica sets the two (Rows_log_event::update_sequence); a session that
// writes a binary log takes the columns that are not there for the sequence's options, and refuses them with error 4085. So they
// are set by the function, one row after the other: a statement that takes several numbers may log several. An ordinary table may be logged
// the same way: the server is asked which it is. set is false when it is none.
func (a *applier) setval(ctx context.Context, t *binlogevent.Table, e binlogevent.Event) (set bool, err error) {
	if t == nil || e.Type.Kind() != binlogevent.Insert {
		return false, nil
	}
	r, err := binlogevent.OpenRows(a.format, e, t)
	if err != nil {
		return false, err
	}
	for i := range t.Columns {
		if _, has := r.Has(i); has != (i == 0 || i == 7) {
			return false, nil
		}
	}
	schema, name := t.Schema, t.Name
	if a.o.renames(schema, name) {
		schema, name = a.o.Names(schema, name)
	}
	if err := a.flush(ctx); err != nil { // it may make the sequence
		return false, err
	}
	kind, err := a.s.Value(ctx, `SELECT /* risso: is it a sequence, and of which numbers? */ c.COLUMN_TYPE FROM information_schema.TABLES t JOIN information_schema.COLUMNS c USING (TABLE_SCHEMA, TABLE_NAME)
  WHERE t.TABLE_TYPE = 'SEQUENCE' AND c.ORDINAL_POSITION = 1 AND TABLE_SCHEMA = `+mysql.Literal(schema)+" AND TABLE_NAME = "+mysql.Literal(name))
	if err != nil || kind == "" {
		return false, err
	}
	unsigned := strings.Contains(kind, "unsigned") // MariaDB 11.5
	for {
		_, row, more, err := r.Next()
		if err != nil {
			return false, err
		}
		if !more {
			break
		}
		if err := a.begun(ctx); err != nil {
			return false, err
		}
		a.wanted = true
		a.add(fmt.Sprintf("DO SETVAL(%s.%s, %s, 0, %s)", mysql.Quote(schema), mysql.Quote(name), wholeNumber(row[0].Raw, unsigned), wholeNumber(row[7].Raw, false)))
	}
	return true, a.flush(ctx)
}

// wholeNumber writes a number as it is logged, the lowest byte first, in digits.
func wholeNumber(raw []byte, unsigned bool) string {
	var b [8]byte
	if !unsigned && len(raw) > 0 && raw[len(raw)-1] >= 0x80 {
		b = [8]byte(bytes.Repeat([]byte{0xff}, 8))
	}
	copy(b[:], raw)
	n := binary.LittleEndian.Uint64(b[:])
	if unsigned {
		return strconv.FormatUint(n, 10)
	}
	return strconv.FormatInt(int64(n), 10)
}

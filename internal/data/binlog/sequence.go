package binlog

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
)

// setval applies what nextval() and setval() of MariaDB write under binlog_row_image = MINIMAL: of a sequence's eight columns the first, its
// next value, and the last, how often it went round. A replica sets the two (Rows_log_event::update_sequence); a session that
// writes a binary log takes the columns that are not there for the sequence's options, and refuses them with error 4085. So they
// are set by the function. An ordinary table may be logged just so: the server is asked which it is. set is false when it is none.
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
	_, row, more, err := r.Next()
	if err != nil || !more || len(row[0].Raw) != 8 || len(row[7].Raw) != 8 {
		return false, err
	}
	schema, name := t.Schema, t.Name
	if a.o.renames(schema, name) {
		schema, name = a.o.Names(schema, name)
	}
	if err := a.flush(ctx); err != nil { // it may make the sequence
		return false, err
	}
	kind, err := a.s.Value(ctx, "SELECT /* risso: is it a sequence? */ TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+mysql.Literal(schema)+" AND TABLE_NAME = "+mysql.Literal(name))
	if err != nil || kind != "SEQUENCE" {
		return false, err
	}
	if err := a.begun(ctx); err != nil {
		return false, err
	}
	a.wanted = true
	number := func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }
	a.add(fmt.Sprintf("DO SETVAL(%s.%s, %d, 0, %d)", mysql.Quote(schema), mysql.Quote(name), number(row[0].Raw), number(row[7].Raw)))
	return true, a.flush(ctx)
}

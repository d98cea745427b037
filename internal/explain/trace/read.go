package trace

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/mysql"
)

// queryTimeout bounds each question to a server.
const queryTimeout = 10 * time.Second

// ask runs one statement of Risso's with a limit of time.
func ask(ctx context.Context, c *mysql.Conn, query string, f func(row []sqldriver.Value) error) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	return c.Query(ctx, query, f)
}

// source is one table of events.
type source struct {
	kind  Kind
	table string // without the schema
	size  string // the variable that says how many rows it has for all connections; "" for tables of the connection alone
	ring  int    // that number, or the rows kept for each connection
	need  string // the consumer that fills it

	texts   map[string]string // each text once: there are many events and few names
	objects map[Object]*Object
	since   uint64 // END_EVENT_ID up to which its rows have been read
	fresh   int    // rows of the last poll that were new
}

// allSources are the tables about one connection, in the order in which they are read: first what is over, then
// what runs, so that what ends in between is found by one of them.
func allSources() []*source {
	var list []*source
	for _, k := range []struct {
		kind Kind
		name string
	}{{KindStatement, "statements"}, {KindStage, "stages"}, {KindTransaction, "transactions"}, {KindWait, "waits"}} {
		for _, suffix := range []string{"history_long", "history", "current"} {
			s := &source{kind: k.kind, table: "events_" + k.name + "_" + suffix}
			s.need = s.table
			if suffix != "current" {
				s.size = "performance_schema_" + s.table + "_size"
			}
			list = append(list, s)
		}
	}
	return list
}

func (s *source) long() bool    { return strings.HasSuffix(s.table, "_long") }
func (s *source) current() bool { return strings.HasSuffix(s.table, "_current") }

const commonColumns = "EVENT_ID, END_EVENT_ID, EVENT_NAME, TIMER_START, TIMER_END, NESTING_EVENT_ID"

var kindColumns = map[Kind]string{
	KindStatement: ", SQL_TEXT, DIGEST, CURRENT_SCHEMA, OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, NESTING_EVENT_LEVEL, MYSQL_ERRNO, MESSAGE_TEXT," +
		" ROWS_SENT, ROWS_EXAMINED, ROWS_AFFECTED, CREATED_TMP_TABLES, CREATED_TMP_DISK_TABLES, SORT_ROWS, NO_INDEX_USED, LOCK_TIME",
	KindStage:       "",
	KindWait:        ", OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, INDEX_NAME, OPERATION, NUMBER_OF_BYTES",
	KindTransaction: ", STATE",
}

func (s *source) query(thread uint64) string {
	q := fmt.Sprintf("SELECT /* risso: what one connection did */ %s%s FROM performance_schema.%s WHERE THREAD_ID = %d", commonColumns, kindColumns[s.kind], s.table, thread)
	if !s.current() {
		q += fmt.Sprintf(" AND END_EVENT_ID >= %d", s.since)
	}
	return q
}

// read returns the rows that came since the last time; some come twice.
func (s *source) read(ctx context.Context, c *mysql.Conn, thread uint64, add func(Event) bool) error {
	s.fresh = 0
	high := s.since
	err := ask(ctx, c, s.query(thread), func(row []sqldriver.Value) error {
		e := s.event(row)
		if e.ID == 0 || e.Name == "" { // overwritten while it was read
			return nil
		}
		if add(e) {
			s.fresh++
		}
		high = max(high, e.End)
		return nil
	})
	if err == nil {
		s.since = high
	}
	return err
}

// text is a value as a string that is held in memory once.
func (s *source) text(v sqldriver.Value) string {
	b, ok := v.([]byte)
	if !ok {
		return mysql.Text(v)
	}
	if t, ok := s.texts[string(b)]; ok {
		return t
	}
	if s.texts == nil || len(s.texts) > 10_000 { // statements with literals: do not hold them twice for good
		s.texts = map[string]string{}
	}
	t := string(b)
	s.texts[t] = t
	return t
}

func (s *source) object(o Object) *Object {
	if p := s.objects[o]; p != nil {
		return p
	}
	if s.objects == nil {
		s.objects = map[Object]*Object{}
	}
	s.objects[o] = &o
	return &o
}

func (s *source) event(row []sqldriver.Value) Event {
	e := Event{Kind: s.kind, ID: unsigned(row[0]), End: unsigned(row[1]), Name: s.text(row[2]), Start: unsigned(row[3]), Stop: unsigned(row[4]), Nesting: unsigned(row[5])}
	row = row[6:]
	switch s.kind {
	case KindStatement:
		e.SQL, e.Digest, e.Schema = guard(strings.ToValidUTF8(s.text(row[0]), "\uFFFD")), s.text(row[1]), s.text(row[2])
		if name := s.text(row[5]); name != "" {
			e.Program = &Program{Type: s.text(row[3]), Schema: s.text(row[4]), Name: name}
		}
		e.Level, e.Errno, e.Message = int(unsigned(row[6])), int(unsigned(row[7])), mysql.Text(row[8])
		e.RowsSent, e.RowsExamined, e.RowsAffected = signed(row[9]), signed(row[10]), signed(row[11])
		e.TmpTables, e.TmpDisk, e.SortRows = signed(row[12]), signed(row[13]), signed(row[14])
		e.NoIndex, e.LockTime = unsigned(row[15]) != 0, unsigned(row[16])
	case KindWait:
		if name := s.text(row[2]); name != "" {
			e.Object = s.object(Object{Type: s.text(row[0]), Schema: s.text(row[1]), Name: name, Index: s.text(row[3])})
		}
		e.Operation, e.Bytes = s.text(row[4]), signed(row[5])
	case KindTransaction:
		e.State = s.text(row[0])
	}
	return e
}

func unsigned(v sqldriver.Value) uint64 {
	n, err := strconv.ParseUint(mysql.Text(v), 10, 64)
	if err != nil { // NULL, or more than fits
		return 0
	}
	return n
}

func signed(v sqldriver.Value) int64 {
	n, err := strconv.ParseInt(mysql.Text(v), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Total is one of the server's own counters for the traced connection, exact however many events were lost.
type Total struct {
	Name    string  `json:"name"` // the instrument
	Count   uint64  `json:"count"`
	Seconds float64 `json:"seconds"`
}

// totals reads the counters of one connection, by instrument.
func totals(ctx context.Context, c *mysql.Conn, thread uint64) (map[string]Total, error) {
	out := map[string]Total{}
	for _, kind := range []string{"statements", "stages", "waits"} {
		q := fmt.Sprintf("SELECT /* risso: totals of one connection */ EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.events_%s_summary_by_thread_by_event_name"+
			" WHERE THREAD_ID = %d AND COUNT_STAR > 0", kind, thread)
		err := ask(ctx, c, q, func(row []sqldriver.Value) error {
			name := mysql.Text(row[0])
			out[name] = Total{Name: name, Count: unsigned(row[1]), Seconds: float64(unsigned(row[2])) * 1e-12}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the totals of the connection: %w", err)
		}
	}
	return out, nil
}

// Package binlog reads binary logs of MySQL and MariaDB as events of a digest: which statements, or which changes of
// which tables, made the log, how often, how many rows and how many bytes.
//
// A statement that was logged as rows is known by its text if the server logs that (binlog_rows_query_log_events in
// MySQL, binlog_annotate_row_events in MariaDB, which is on by default); otherwise it is "INSERT INTO db.table" and the like.
// Values of rows are skipped, never kept.
//
// Times in the log: a statement's event has the time it began and the whole seconds it took until it was written
// (exec_time of the query event), which is Query_time. Rows have no duration. MySQL 8 logs when a transaction was first
// committed and when on this server: Commit_delay_time is the difference, on a replica the lag at that time.
//
// Format: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html,
// https://mariadb.com/kb/en/replication-protocol/.
package binlog

import (
	"errors"
	"fmt"
	"io"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/mysql"
)

const (
	// maxText is how much is kept of a statement.
	maxText = 8 << 20
	// maxBody is how much of an event is looked at. Longer statements are cut; the rows of longer events are not counted.
	maxBody = 16 << 20
	// maxUnzipped is how much a compressed statement, or compressed rows, may become.
	maxUnzipped = 4 * maxBody
)

// Reasons for what is left out.
const (
	skipChecksum  = digest.SkippedChecksum
	skipDamaged   = digest.SkippedDamaged
	skipTruncated = digest.SkippedTorn
	skipRows      = "row events whose rows could not be counted"
	skipPayload   = "compressed transactions that could not be read"
	skipBody      = "events that could not be understood"
)

// Reader is a digest.Stream over one binary log.
type Reader struct {
	gather
	log    *binlogevent.Reader
	server string
	tables binlogevent.Tables[struct{}]
}

// gather puts the parts of a log together to statements.
type gather struct {
	events  int64
	skipped map[string]int64
	pending []*statement // rows of the statement that is being read, one for each table and kind
	text    []byte       // its text, if the log has it
	textCut int          // bytes left out at its end
	textual bool         // the log has it
	began   int64        // unix microseconds
	size    int64        // bytes of its events that belong to no rows
	thread  int64
	delay   float64      // commit here minus first commit, seconds; -1: unknown
	queue   []*statement // ready to be given out
	attrs   []digest.Attr
}

// statement will become an event.
type statement struct {
	text    []byte
	db      string
	cut     int    // bytes left out at the end of text
	table   string // of rows without a text
	kind    binlogevent.Kind
	began   int64
	seconds float64 // exec_time
	rows    int64
	counted bool // rows is known
	bytes   int64
	thread  int64
	delay   float64
}

// New begins to read a binary log. An encrypted log, or none, is an error.
func New(in io.Reader) (*Reader, error) {
	r := &Reader{gather: gather{skipped: map[string]int64{}, delay: -1}}
	var err error
	r.log, err = binlogevent.NewReader(in, binlogevent.Options{MaxBody: maxBody, Old: true, Skip: unread, Lost: r.lost})
	return r, readable(err, "mysqlbinlog")
}

// readable words the errors that say that nothing can be read; tool is the server's program that decrypts logs.
func readable(err error, tool string) error {
	switch {
	case errors.Is(err, binlogevent.ErrEncrypted):
		return fmt.Errorf("the binary log is encrypted: decrypt it with the server's own tools, %s --read-from-remote-server --raw", tool)
	case errors.Is(err, binlogevent.ErrTorn):
		return errors.New("not a binary log: it does not begin with fe 62 69 6e")
	}
	return err
}

// unread says which events are of no use here.
func unread(h binlogevent.Header) bool {
	switch h.Type {
	case binlogevent.TypeQuery, binlogevent.TypeQueryZip, binlogevent.TypeRowsQuery, binlogevent.TypeAnnotateRows, binlogevent.TypeTableMap, binlogevent.TypeGTID, binlogevent.TypeGTIDTagged:
		return false
	}
	return !h.Type.IsRows()
}

// lost counts what could not be read.
func (r *Reader) lost(err error, bytes int64) {
	switch {
	case errors.Is(err, binlogevent.ErrChecksum):
		r.skipped[skipChecksum]++
	case errors.Is(err, binlogevent.ErrTorn):
		r.skipped[skipTruncated]++
	case errors.Is(err, binlogevent.ErrPayload):
		r.skipped[skipPayload]++
	default:
		r.skipped[skipDamaged] += bytes
	}
}

// Next returns the next statement.
func (r *Reader) Next(e *digest.Event) error {
	for len(r.queue) == 0 {
		if err := r.read(); err != nil {
			return err
		}
	}
	r.give(e)
	return nil
}

// give gives out the first statement of the queue.
func (g *gather) give(e *digest.Event) {
	s := g.queue[0]
	g.queue = g.queue[1:]
	g.events++
	if len(s.text) == 0 {
		s.text = []byte([...]string{"INSERT INTO ", "UPDATE ", "DELETE FROM "}[s.kind] + mysql.Quote(s.db) + "." + mysql.Quote(s.table))
	}
	g.attrs = append(g.attrs[:0], digest.Attr{Name: "Log_bytes", Num: float64(s.bytes)})
	if s.counted {
		g.attrs = append(g.attrs, digest.Attr{Name: "Rows", Num: float64(s.rows)})
	}
	if s.delay >= 0 {
		g.attrs = append(g.attrs, digest.Attr{Name: "Commit_delay_time", Num: s.delay})
	}
	*e = digest.Event{Time: s.began, Query: s.text, Cut: s.cut, DB: []byte(s.db), Thread: s.thread, QueryTime: s.seconds, Attrs: g.attrs}
}

// Info returns what was read.
func (r *Reader) Info() digest.SourceInfo {
	return digest.SourceInfo{Format: digest.FormatBinlog, Server: r.server, Bytes: r.log.Pos(), Events: r.events}
}

// Skipped returns what was left out.
func (g *gather) Skipped() map[string]int64 { return g.skipped }

// Close ends reading; what is read stays open.
func (r *Reader) Close() error {
	r.log.Close()
	return nil
}

// read takes one event. At the end of the log, the statement that was being read is given out.
func (r *Reader) read() error {
	e, err := r.log.Next()
	if errors.Is(err, io.EOF) {
		if r.flush(); len(r.queue) > 0 {
			return nil
		}
		return io.EOF
	}
	if err != nil {
		return readable(err, "mariadb-binlog")
	}
	r.event(&e)
	return nil
}

package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/avail/lag"
	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// source is a channel's source, if it can be asked.
type source struct {
	target        mysql.Target
	c             *mysql.Conn // nil: it cannot
	patience      time.Duration
	trouble       fleet.Trouble
	before, after read.SourceMoment
}

// connect finds a channel's source. Whoever else answers at the address is not asked.
func connect(ctx context.Context, t mysql.Target, m read.ReplicaMoment, patience time.Duration) *source {
	s := &source{target: t.WithPatience(patience), patience: patience, trouble: fleet.Trouble{What: "the source " + m.Channel.Source}}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := mysql.Connect(ctx, s.target, nil)
	if err != nil {
		s.fail(err)
		return s
	}
	id, err := read.ServerID(ctx, c)
	switch {
	case err != nil:
		s.fail(err)
	case m.SourceID != "" && c.Server.ID != m.SourceID, m.SourceServerID != "0" && m.SourceServerID != "" && id != m.SourceServerID:
		s.trouble.Why, s.trouble.Remedy = fmt.Sprintf("another server answers at %s: server_id %s, not %s", t.Address(), id, m.SourceServerID), bySource
	default:
		s.c = c
		return s
	}
	_ = c.Close()
	return s
}

func (s *source) close() {
	if s.c != nil {
		_ = s.c.Close()
	}
}

// bySource is what to do where the source cannot be asked.
const bySource = "name it with --source"

// fail gives the source up.
func (s *source) fail(err error) {
	s.close()
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s", digits.Span(s.patience))
	}
	s.c, s.trouble.Why, s.trouble.Remedy = nil, "it cannot be asked: "+err.Error(), cmp.Or(fleet.RemedyOf(err), bySource)
}

// look reads how far it is.
func (s *source) look(ctx context.Context, into *read.SourceMoment) {
	if s.c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	m, err := read.SourceNow(ctx, s.c)
	if err != nil {
		s.fail(err)
		return
	}
	*into = m
}

// facts compare the replica with it; nil if it could not be asked.
func (s *source) facts(ctx context.Context, before, after read.ReplicaMoment) *lag.Source {
	if s.c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*s.patience)
	defer cancel()
	logs, err := mysql.Logs(ctx, s.c)
	if err != nil {
		s.fail(err)
		return nil
	}
	between := func(log string, pos int64, to read.SourceMoment) int64 {
		if log == "" {
			return -1
		}
		return mysql.LogBytes(logs, log, pos, to.Log, to.Pos)
	}
	f := &lag.Source{
		Missing:   s.after.Missing(after),
		Unapplied: between(after.Log, after.Pos, s.after), UnappliedBefore: between(before.Log, before.Pos, s.before),
		Unreceived: between(after.ReadLog, after.ReadPos, s.after), UnreceivedBefore: between(before.ReadLog, before.ReadPos, s.before),
		Written: between(s.before.Log, s.before.Pos, s.after), FirstAge: -1, FirstRows: -1,
	}
	byGTID := !s.after.Executed.Empty() && !after.Applied.Empty()
	if byGTID {
		f.Level = f.Missing == 0
	} else {
		f.Level = f.Unapplied == 0
	}
	if f.Level {
		f.Unapplied = 0
		return f
	}
	f.Silent = f.UnreceivedBefore > 0 && after.Receives() && before.ReadLog == after.ReadLog && before.ReadPos == after.ReadPos
	if after.Log == "" || after.Pos < int64(len(binlogevent.Magic)) {
		f.FirstUnseen = "the replica does not say where in the source's log it is"
		return f
	}
	first, err := s.first(ctx, after)
	if err != nil {
		f.FirstUnseen = err.Error()
		return f
	}
	f.FirstRows = first.rows
	now, err := s.c.Text(ctx, "SELECT /* risso: what time is it at the source? */ UNIX_TIMESTAMP(NOW(6))")
	clock, perr := strconv.ParseFloat(now, 64)
	if err = errors.Join(err, perr); err != nil {
		f.FirstUnseen = "read the source's clock: " + err.Error()
		return f
	}
	f.FirstAge = max(0, clock-float64(first.at.UnixMicro())/1e6)
	return f
}

// Bounds of what is read of the source's log to find the first transaction that is not applied, and to count its rows: those that several
// appliers have done ahead of the others are passed over.
const (
	firstEvents = 1 << 20
	firstBytes  = 64 << 20
	firstTime   = 2 * time.Second
)

// transaction is the first one that is not applied.
type transaction struct {
	at   time.Time // when it was committed first; where the log does not say that, when its first statement began
	rows int64     // that it changes; -1: not counted
}

// first reads the source's log from where the replica has applied it.
func (s *source) first(ctx context.Context, m read.ReplicaMoment) (*transaction, error) {
	d, err := s.target.Dump(ctx, mysql.DumpOptions{Identity: s.c.Server.ID, File: m.Log, Pos: m.Pos})
	if err != nil {
		return nil, fmt.Errorf("read the source's log: %w", err)
	}
	defer d.Close()
	scan := scanner{applied: m.Applied}
	end, bytes := time.Now().Add(firstTime), 0
	for range firstEvents {
		raw, _, err := d.Next(s.patience)
		if errors.Is(err, wire.ErrEndOfLogs) {
			if scan.found == nil {
				return nil, errors.New("the source's log has nothing behind what is applied")
			}
			return scan.found, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the source's log: %w", err)
		}
		if over, err := scan.take(raw); err != nil {
			return nil, fmt.Errorf("read the source's log: %w", err)
		} else if over {
			return scan.found, nil
		}
		if bytes += len(raw); bytes > firstBytes || time.Now().After(end) {
			break
		}
	}
	if scan.found == nil {
		return nil, errors.New("what is behind the place in the source's log is applied already")
	}
	scan.found.rows = -1 // there are more
	return scan.found, nil
}

// scanner reads events up to the end of the first transaction that is not applied.
type scanner struct {
	applied mysql.GTIDSet
	format  binlogevent.Format
	tables  binlogevent.Tables[struct{}]
	found   *transaction
}

// take reads one event. over: it is the first behind the transaction.
func (s *scanner) take(raw []byte) (over bool, err error) {
	e := binlogevent.Event{Header: binlogevent.ParseHeader(raw), Raw: raw, Body: raw[binlogevent.HeaderLen:], Whole: true}
	if s.format.Checksum {
		e.Body = e.Body[:max(0, len(e.Body)-binlogevent.ChecksumLen)]
	}
	switch e.Type {
	case binlogevent.TypeFormatDescription:
		s.format, err = binlogevent.ParseFormat(raw)
		return false, err
	case binlogevent.TypeGTID, binlogevent.TypeAnonymousGTID, binlogevent.TypeGTIDTagged, binlogevent.TypeMariaGTID:
		if s.found != nil {
			return true, nil
		}
		g, err := binlogevent.ParseGTID(e)
		if err != nil || !g.ID.IsZero() && s.applied.Contains(g.ID) {
			return false, err
		}
		s.found = &transaction{at: time.Unix(int64(e.Seconds), 0)}
		if g.Original.Unix() > 0 {
			s.found.at = g.Original
		}
	case binlogevent.TypeQuery: // begins a transaction in a log without GTIDs
		if s.found == nil && s.applied.Empty() {
			s.found = &transaction{at: time.Unix(int64(e.Seconds), 0)}
		}
	case binlogevent.TypeXid:
		return s.found != nil, nil
	case binlogevent.TypePayload: // compressed
		if s.found != nil {
			s.found.rows = -1
			return true, nil
		}
	case binlogevent.TypeTableMap:
		_, _, err = s.tables.Map(s.format, e.Body)
		return false, err
	default:
		if s.found != nil && e.Type.IsRows() {
			s.count(e)
			return s.found.rows < 0, nil
		}
	}
	return false, nil
}

// maxUnzipped bounds the rows of an event that is compressed.
const maxUnzipped = 64 << 20

// count adds the rows of an event.
func (s *scanner) count(e binlogevent.Event) {
	id, _, err := binlogevent.RowsHead(s.format, e)
	t := s.tables.Get(id)
	if err != nil || t == nil || t.Err != nil {
		s.found.rows = -1
		return
	}
	n, err := binlogevent.CountRows(s.format, e, &t.Table, maxUnzipped)
	if s.found.rows += n; err != nil {
		s.found.rows = -1
	}
}

package ask

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/avail/lag"
	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// source is a channel's source, if it can be asked.
type source struct {
	target        mysql.Target
	c             *mysql.Conn // nil: it cannot
	why           string      // why not
	before, after read.SourceMoment
}

// connect finds a channel's source. Whoever else answers at the address is not asked.
func connect(ctx context.Context, t mysql.Target, m read.ReplicaMoment) *source {
	s := &source{target: t.WithPatience(sourcePatience)}
	ctx, cancel := context.WithTimeout(ctx, sourcePatience)
	defer cancel()
	c, err := mysql.Connect(ctx, s.target, nil)
	if err != nil {
		s.why = "it cannot be asked: " + err.Error()
		return s
	}
	id, err := read.ServerID(ctx, c)
	switch {
	case err != nil:
		s.why = "it cannot be asked: " + err.Error()
	case m.SourceID != "" && c.Server.ID != m.SourceID, m.SourceServerID != "0" && m.SourceServerID != "" && id != m.SourceServerID:
		s.why = fmt.Sprintf("another server answers at %s: server_id %s, not %s", t.Address(), id, m.SourceServerID)
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

// fail gives the source up.
func (s *source) fail(err error) {
	s.close()
	s.c, s.why = nil, "it cannot be asked: "+err.Error()
}

// look reads how far it is.
func (s *source) look(ctx context.Context, into *read.SourceMoment) {
	if s.c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sourcePatience)
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
	ctx, cancel := context.WithTimeout(ctx, 2*sourcePatience)
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
		Missing:   int64(s.after.Executed.Ahead(after.Applied)),
		Unapplied: between(after.Log, after.Pos, s.after), UnappliedBefore: between(before.Log, before.Pos, s.before),
		Unreceived: between(after.ReadLog, after.ReadPos, s.after), UnreceivedBefore: between(before.ReadLog, before.ReadPos, s.before),
		Written: between(s.before.Log, s.before.Pos, s.after), FirstAge: -1,
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
	var at time.Time
	if at, f.FirstTransaction, err = s.first(ctx, after); err != nil {
		f.FirstUnseen = err.Error()
		return f
	}
	now, err := s.c.Text(ctx, "SELECT /* risso: what time is it at the source? */ UNIX_TIMESTAMP(NOW(6))")
	clock, perr := strconv.ParseFloat(now, 64)
	if err = errors.Join(err, perr); err != nil {
		f.FirstUnseen = "read the source's clock: " + err.Error()
		return f
	}
	f.FirstAge = max(0, clock-float64(at.UnixMicro())/1e6)
	return f
}

// firstEvents bounds the search for the first transaction that is not applied: those that several appliers have done ahead of the others are
// passed over.
const firstEvents = 2000

// first reads in the source's log, from where the replica has applied it, when the first transaction was committed that the replica has not;
// where the log does not say that, when its first statement began.
func (s *source) first(ctx context.Context, m read.ReplicaMoment) (at time.Time, id string, err error) {
	d, err := s.target.Dump(ctx, mysql.DumpOptions{Identity: s.c.Server.ID, File: m.Log, Pos: m.Pos})
	if err != nil {
		return at, "", fmt.Errorf("read the source's log: %w", err)
	}
	defer d.Close()
	checksum := false
	for range firstEvents {
		raw, _, err := d.Next(sourcePatience)
		if errors.Is(err, wire.ErrEndOfLogs) {
			return at, "", errors.New("the source's log has nothing behind what is applied")
		} else if err != nil {
			return at, "", fmt.Errorf("read the source's log: %w", err)
		}
		h := binlogevent.ParseHeader(raw)
		switch h.Type {
		case binlogevent.TypeFormatDescription:
			format, err := binlogevent.ParseFormat(raw)
			if err != nil {
				return at, "", err
			}
			checksum = format.Checksum
		case binlogevent.TypeGTID, binlogevent.TypeAnonymousGTID, binlogevent.TypeGTIDTagged, binlogevent.TypeMariaGTID:
			body := raw[binlogevent.HeaderLen:]
			if checksum {
				body = body[:max(0, len(body)-binlogevent.ChecksumLen)]
			}
			g, err := binlogevent.ParseGTID(binlogevent.Event{Header: h, Raw: raw, Body: body, Whole: true})
			switch {
			case err != nil:
				return at, "", fmt.Errorf("read the source's log: %w", err)
			case !g.ID.IsZero() && m.Applied.Contains(g.ID):
				continue
			case !g.Original.IsZero() && g.Original.Unix() > 0:
				return g.Original, g.ID.String(), nil
			}
			return time.Unix(int64(h.Seconds), 0), g.ID.String(), nil
		case binlogevent.TypeQuery: // a log without GTIDs
			if m.Applied.Empty() {
				return time.Unix(int64(h.Seconds), 0), "", nil
			}
		}
	}
	return at, "", errors.New("what is behind the place in the source's log is applied already")
}

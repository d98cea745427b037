package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
)

// Pick says which transactions of which logs are meant, by their GTIDs.
type Pick struct {
	Files  []File
	Among  mysql.GTIDSet // of MySQL's all that can be: logs whose index says that they have none of them are not read; of MariaDB's nothing
	Wanted func(mysql.GTID) bool
}

// picked is an event of a transaction that is wanted, or the format of those that follow.
type picked struct {
	binlogevent.Event
	format       binlogevent.Format
	file         string
	at           binlogevent.Boundaries
	began, ended bool
	cut          bool // there is no event: the log ends in the middle of the transaction
}

// walk hands over the events of the transactions that are wanted, in the order of the logs, and says what could not be read.
func (p Pick) walk(ctx context.Context, take func(picked) error) (missed []string, err error) {
	for _, f := range p.Files {
		if f.Index != nil && !p.Among.Empty() && !f.Index.mayHave(p.Among) {
			continue
		}
		why, err := p.file(ctx, f, take)
		if err != nil {
			return missed, err
		}
		if why != "" {
			missed = append(missed, why)
		}
	}
	return missed, nil
}

// file does that with one log.
func (p Pick) file(ctx context.Context, f File, take func(picked) error) (missed string, err error) {
	in, err := f.Open(ctx)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", f.Name, err)
	}
	defer in.Close()
	inside := false
	skip := func(h binlogevent.Header) bool { // only GTIDs are looked at outside
		return !inside && (h.Type.IsRows() || h.Type == binlogevent.TypeTableMap || h.Type == binlogevent.TypeRowsQuery || h.Type == binlogevent.TypeAnnotateRows)
	}
	r, err := binlogevent.NewReader(in, binlogevent.Options{Skip: skip})
	if errors.Is(err, ErrCut) {
		return f.Name + ": " + err.Error(), nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	var b binlogevent.Boundaries
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, binlogevent.ErrTorn) || errors.Is(err, ErrCut) {
			switch {
			case r.Pos() < f.Least:
				missed = f.short(r.Pos()).Error()
			case !errors.Is(err, io.EOF):
				missed = f.Name + ": " + err.Error()
			}
			if inside && b.Open {
				return missed, take(picked{format: r.Format(), file: f.Name, at: b, cut: true})
			}
			return missed, nil
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.Name, err)
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		x := picked{Event: e, format: r.Format(), file: f.Name}
		if e.Type != binlogevent.TypeFormatDescription {
			if x.began, x.ended = b.Next(e); x.began {
				inside = !b.GTID.ID.IsZero() && p.Wanted(b.GTID.ID)
			}
			if !inside || !b.Open && !x.ended {
				continue
			}
		}
		x.at = b
		if err := take(x); err != nil {
			return "", fmt.Errorf("%s:%d%s: %w", f.Name, e.Pos, gtidIn(b.GTID.ID), err)
		}
		if x.ended {
			inside = false
		}
	}
}

package binlog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/binlogevent"
)

// Messages about logs that do not go on from a position of their own server.
var (
	ErrShort   = errors.New("the binary logs end before the position")
	ErrHistory = errors.New("the binary logs belong to a different history than the position (RESET, or different data)")
)

// history finds out whether logs of the position's server go on from it, or are those of another life of that server: after RESET, or with
// other data, names, places and GTIDs start over, and the same ones mean other transactions.
type history struct {
	o       *RollOptions
	on      bool // the logs are the server's own, and the position has a file
	listed  bool // that file is among the logs
	known   bool // its log was begun before the position was there: then its numbers are not looked at, which a lock on some tables lets run on
	reached bool // the position was passed
}

func newHistory(o *RollOptions) history {
	h := history{o: o, on: o.Own && o.From.File != ""}
	h.listed = h.on && slices.ContainsFunc(o.Files, func(f File) bool { return f.Name == o.From.File })
	return h
}

// absent looks at logs that do not have the position's file: they may begin after it, which GTIDs decide, but not end before it.
func (h *history) absent(ctx context.Context) error {
	last := h.o.Files[len(h.o.Files)-1]
	if !h.on || h.listed || !sameStem(last.Name, h.o.From.File) || CompareNames(last.Name, h.o.From.File) > 0 {
		return nil
	}
	begun, err := begunAt(ctx, last)
	if err != nil {
		return err
	}
	if h.later(begun) {
		return h.other(last.Name, begun)
	}
	return fmt.Errorf("%w: the last one is %s, the position is %s:%d", ErrShort, last.Name, h.o.From.File, h.o.From.Offset)
}

// sameStem reports whether two logs were named by one value of log_bin.
func sameStem(a, b string) bool {
	return strings.TrimSuffix(a, filepath.Ext(a)) == strings.TrimSuffix(b, filepath.Ext(b))
}

// begunAt is when a server began a log.
func begunAt(ctx context.Context, f File) (time.Time, error) {
	if f.Index != nil {
		return f.Index.First, nil
	}
	in, err := f.Open(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("open %s: %w", f.Name, err)
	}
	defer in.Close()
	r, err := binlogevent.NewReader(in, binlogevent.Options{})
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	e, err := r.Next()
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", f.Name, err)
	}
	return time.Unix(int64(e.Seconds), 0).UTC(), nil
}

// later reports whether a log was begun after the moment of the position. Logs have whole seconds.
func (h *history) later(begun time.Time) bool {
	return !h.o.Moment.IsZero() && begun.Unix() > h.o.Moment.Unix()
}

func (h *history) other(file string, begun time.Time) error {
	return fmt.Errorf("%w: %s was begun at %s, the position is from %s, if the server's clock was right", ErrHistory, file, begun.UTC().Format("2006-01-02 15:04:05Z"), h.o.Moment.UTC().Format("2006-01-02 15:04:05Z"))
}

// event looks at an event of a log; open: a transaction is.
func (h *history) event(file string, e binlogevent.Event, open bool) error {
	if !h.on || file != h.o.From.File || h.reached {
		return nil
	}
	if e.Pos == int64(len(binlogevent.Magic)) {
		begun := time.Unix(int64(e.Seconds), 0)
		if h.later(begun) {
			return h.other(file, begun)
		}
		h.known = begun.Unix() < h.o.Moment.Unix()
	}
	h.reached = e.Pos == h.o.From.Offset && !open
	if e.Pos > h.o.From.Offset {
		return fmt.Errorf("%w: no transaction of %s ends at %d, the position", ErrHistory, file, h.o.From.Offset)
	}
	return nil
}

// end is called at the end of a log.
func (h *history) end(file string, pos int64, open bool) error {
	switch {
	case !h.on || file != h.o.From.File || h.reached:
	case pos == h.o.From.Offset && !open:
		h.reached = true
	case pos >= h.o.From.Offset:
		return fmt.Errorf("%w: no transaction of %s ends at %d, the position", ErrHistory, file, h.o.From.Offset)
	default:
		return fmt.Errorf("%w: %s ends at %d, the position is %d", ErrShort, file, pos, h.o.From.Offset)
	}
	return nil
}

// behind reports whether the position was passed. Until then nothing ends the walk: in another history it would end in the wrong place.
func (h *history) behind(file string) bool {
	return !h.listed || h.reached || CompareNames(file, h.o.From.File) > 0
}

// transaction compares the place of a transaction with whether the position has it.
func (h *history) transaction(file string, g binlogevent.GTID, has bool) error {
	if !h.on || h.known || g.ID.IsZero() || !sameStem(file, h.o.From.File) {
		return nil
	}
	behind := h.reached || CompareNames(file, h.o.From.File) > 0
	switch {
	case behind && has:
		return fmt.Errorf("%w: %s is after %s:%d in %s, but the position has it", ErrHistory, g.ID, h.o.From.File, h.o.From.Offset, file)
	case !behind && !has:
		return fmt.Errorf("%w: %s is before %s:%d in %s, but the position does not have it", ErrHistory, g.ID, h.o.From.File, h.o.From.Offset, file)
	}
	return nil
}

package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// start is where a stream begins.
type start struct {
	name string
	pos  int64
}

// begin finds out which server it is, which of the mirrored series is its own, and where to go on. It leaves f.w open when
// that is in the middle of a log.
func (f *follower) begin(ctx context.Context) (start, error) {
	from, err := f.find(ctx)
	if errors.Is(err, fs.ErrNotExist) { // what was listed has been finished since
		return f.find(ctx)
	}
	return from, err
}

func (f *follower) find(ctx context.Context) (start, error) {
	c, err := mysql.Connect(ctx, f.o.Target, nil)
	if err != nil {
		return start{}, err
	}
	defer c.Close()
	f.identity = c.Server.ID
	// An account that may not ask may not read the logs either; that error is reported by what follows.
	if filter, err := c.LogFilter(ctx); err == nil && filter.String() != "" && !f.retrying {
		f.note(true, "%s", filter)
	}
	logs, err := mysql.Logs(ctx, c)
	if err != nil {
		if mysql.ErrorNumber(err) == errno.NoBinlog {
			return start{}, errNoLog
		}
		return start{}, err
	}
	if len(logs) == 0 {
		return start{}, errNoLog
	}
	list, err := List(ctx, f.o.Place, f.o.Dir)
	if err != nil {
		return start{}, err
	}
	for _, s := range Of(list, f.identity) { // the newest first
		from, ok, err := f.resume(ctx, s, logs)
		if err != nil || ok {
			return from, err
		}
	}
	return f.fresh(ctx, c.Server.HasUUID(), list, logs)
}

func latest(s Series) time.Time { return s.Logs[len(s.Logs)-1].Last }

// fresh begins a series with the oldest log that the server has.
func (f *follower) fresh(ctx context.Context, unique bool, list []Series, logs []mysql.Log) (start, error) {
	key := f.identity
	if !unique { // the time at which its oldest log was begun distinguishes a server from a later one with the same number.
		head, err := f.serverHead(ctx, logs[0].Name, 1)
		if err != nil {
			return start{}, err
		}
		key += "-" + time.Unix(int64(head.seconds), 0).UTC().Format("20060102T150405Z")
	}
	base := key
	for n := 2; slices.ContainsFunc(list, func(s Series) bool { return s.Key == key && len(s.Logs) > 0 }); n++ {
		key = fmt.Sprintf("%s.%d", base, n)
	}
	if key != base {
		f.note(true, "the server's logs are not those mirrored before (RESET, or different data): they go to %s", key)
	}
	f.key = key
	f.received = 0
	return start{name: logs[0].Name, pos: int64(len(binlogevent.Magic))}, nil
}

// resume finds where a series goes on. ok is false when the series is not, or no longer, what the server writes.
func (f *follower) resume(ctx context.Context, s Series, logs []mysql.Log) (from start, ok bool, err error) {
	newest := s.Logs[len(s.Logs)-1]
	i := slices.IndexFunc(logs, func(l mysql.Log) bool { return l.Name == newest.Name })
	if i < 0 {
		return f.pastGap(s, newest, logs)
	}
	path := filepath.Join(f.o.Dir, root, s.Key, newest.Name)
	if newest.Finished {
		return f.resumeBehind(ctx, s, newest, logs, i)
	}
	if newest.Size == logs[i].Size && i+1 < len(logs) && !newest.Locked {
		// Complete, but its writer may have been killed before it was on disk, or signed.
		if err := errors.Join(syncPath(path), f.vouchComplete(ctx, path)); errors.Is(err, binlogevent.ErrDamaged) {
			return f.replaceDamaged(ctx, s.Key, path, err)
		} else if err != nil {
			return from, false, err
		}
		return f.resumeBehind(ctx, s, newest, logs, i)
	}
	if !f.take(path) {
		return from, false, fmt.Errorf("%s/%s is being stored", s.Key, newest.Name)
	}
	w, torn, err := reopen(ctx, f.o.Place, path)
	if errors.Is(err, binlogevent.ErrDamaged) {
		return f.replaceDamaged(ctx, s.Key, path, err)
	} else if err != nil {
		return from, false, err
	}
	if torn > 0 && !f.retrying {
		f.note(true, "%s: the last %d bytes belong to a truncated event; it is fetched again", newest.Name, torn)
	}
	same, err := f.sameTail(ctx, w, logs[i])
	if err != nil || !same {
		w.close()
		return from, false, err
	}
	if err := f.vouch(ctx, w); err != nil {
		w.close()
		if errors.Is(err, binlogevent.ErrDamaged) {
			return f.replaceDamaged(ctx, s.Key, path, err)
		}
		return from, false, err
	}
	if w.seal == nil && f.o.Place.encrypted() {
		// The place was encrypted when the log had been begun.
		if w, err = w.encrypt(f.o.Place); err != nil {
			return from, false, err
		}
	}
	f.key = s.Key
	f.setWriter(w)
	return start{name: newest.Name, pos: w.pos}, true, nil
}

// vouchComplete makes sure that a complete log that a process left is signed to its end.
func (f *follower) vouchComplete(ctx context.Context, path string) error {
	if f.o.Place.Signer == nil {
		return nil
	}
	if !f.take(path) {
		return nil // the finisher has it, which says what is not signed
	}
	w, _, err := reopen(ctx, f.o.Place, path)
	if err != nil {
		return err
	}
	return errors.Join(f.vouch(ctx, w), w.close())
}

// resumeBehind goes on with the log after a complete one.
func (f *follower) resumeBehind(ctx context.Context, s Series, newest Log, logs []mysql.Log, i int) (from start, ok bool, err error) {
	if logs[i].Size != newest.Size {
		return from, false, nil
	}
	head, err := f.serverHead(ctx, newest.Name, int(min(2, newest.Events)))
	if err != nil || head.sum != newest.Head {
		return from, false, err
	}
	if i+1 == len(logs) {
		return from, false, fmt.Errorf("%s is complete, but the server has not begun the next log", newest.Name)
	}
	f.key = s.Key
	return start{name: logs[i+1].Name, pos: int64(len(binlogevent.Magic))}, true, nil
}

// pastGap goes on where the server has purged what was not mirrored. A server whose logs count less was reset.
func (f *follower) pastGap(s Series, newest Log, logs []mysql.Log) (from start, ok bool, err error) {
	if binlog.Number(logs[0].Name) <= binlog.Number(newest.Name) || stem(logs[0].Name) != stem(newest.Name) {
		return from, false, nil
	}
	if binlog.Number(logs[0].Name) > binlog.Number(newest.Name)+1 || !newest.Closed {
		f.note(true, "GAP: the server has purged logs that were not mirrored: %s is the last one here, %s the first one there. Take a new backup: none from before can be rolled forward past this gap",
			newest.Name, logs[0].Name)
	}
	f.key = s.Key
	return start{name: logs[0].Name, pos: int64(len(binlogevent.Magic))}, true, nil
}

func stem(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// replaceDamaged sets a log aside that is damaged before its end, and fetches it again.
func (f *follower) replaceDamaged(ctx context.Context, key, path string, why error) (start, bool, error) {
	to := path + setAside + time.Now().UTC().Format("20060102T150405.000Z")
	if err := os.Rename(path, to); err != nil {
		return start{}, false, err
	}
	if err := os.Remove(path + extSigned); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return start{}, false, err
	}
	f.note(true, "%v: set aside as %s and fetched again", why, filepath.Base(to))
	f.key = key
	return start{name: filepath.Base(path), pos: int64(len(binlogevent.Magic))}, true, syncPath(filepath.Dir(path))
}

// sameTail reports whether the last event of a log is the one that the server has there.
func (f *follower) sameTail(ctx context.Context, w *writer, l mysql.Log) (bool, error) {
	if w.last == 0 {
		return true, nil // nothing in it
	}
	if l.Size < w.pos {
		return false, nil
	}
	ours := make([]byte, w.pos-w.last)
	in, err := openLocal(f.o.Place, w.path)
	if err != nil {
		return false, err
	}
	defer in.Close()
	if seek, ok := in.(io.Seeker); ok {
		_, err = seek.Seek(w.last, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, in, w.last)
	}
	if err == nil {
		_, err = io.ReadFull(in, ours)
	}
	if err != nil {
		return false, err
	}
	if w.last == int64(len(binlogevent.Magic)) || binlogevent.Type(ours[4]) == binlogevent.TypeIgnorable { // the format description
		return true, nil
	}
	theirs, err := f.serverEvent(ctx, l.Name, w.last, binlogevent.ParseHeader(ours).Type)
	if err != nil {
		// A position that is no event's beginning there, or a log that is no longer what it was. Any other error means nothing.
		if mysql.LogRefused(err) || errors.Is(err, wire.ErrEndOfLogs) || errors.Is(err, binlogevent.ErrDamaged) {
			return false, nil
		}
		return false, err
	}
	return string(theirs) == string(ours), nil
}

// patienceOfOne is how long a server that has data to send may be silent.
const patienceOfOne = 10 * time.Second

// serverEvent fetches the event that begins at a position.
func (f *follower) serverEvent(ctx context.Context, name string, pos int64, typ binlogevent.Type) ([]byte, error) {
	d, err := f.o.Target.Dump(ctx, mysql.DumpOptions{Identity: f.identity, File: name, Pos: pos})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	for {
		raw, _, err := d.Next(patienceOfOne)
		if err != nil {
			return nil, err
		}
		if len(raw) < binlogevent.HeaderLen {
			return nil, fmt.Errorf("%w: an event of %d bytes", binlogevent.ErrDamaged, len(raw))
		}
		h := binlogevent.ParseHeader(raw)
		if h.Artificial() || (h.Type == binlogevent.TypeFormatDescription || h.Type == binlogevent.TypeStartEncryption) && typ != h.Type {
			continue
		}
		return slices.Clone(raw), nil
	}
}

// head is the first events of a log.
type head struct {
	seconds uint32
	sum     string
}

// serverHead fetches them.
func (f *follower) serverHead(ctx context.Context, name string, events int) (head, error) {
	d, err := f.o.Target.Dump(ctx, mysql.DumpOptions{Identity: f.identity, File: name, Pos: int64(len(binlogevent.Magic))})
	if err != nil {
		return head{}, err
	}
	defer d.Close()
	sum := sha256.New()
	sum.Write(binlogevent.Magic)
	var h head
	sums := false
	for n := 0; n < events; {
		raw, _, err := d.Next(patienceOfOne)
		if err != nil {
			return h, fmt.Errorf("read the beginning of %s: %w", name, err)
		}
		if len(raw) < binlogevent.HeaderLen {
			return h, fmt.Errorf("%w: an event of %d bytes", binlogevent.ErrDamaged, len(raw))
		}
		e := binlogevent.ParseHeader(raw)
		if e.Artificial() {
			continue
		}
		if n == 0 {
			h.seconds = e.Seconds
			format, err := binlogevent.ParseFormat(raw)
			if err != nil {
				return h, fmt.Errorf("read the beginning of %s: %w", name, err)
			}
			sums = format.Checksum
		}
		binlogevent.ClearInUse(raw)
		sum.Write(binlogevent.Readable(raw, sums))
		n++
	}
	h.sum = hex.EncodeToString(sum.Sum(nil))
	return h, nil
}

// Package mirror keeps copies of a server's binary logs: an event is on disk here before it is acknowledged to the
// server, the bytes are exactly the server's, and nothing written is ever overwritten.
package mirror

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
)

// syncPath puts a file or a folder on disk, even if another process wrote it.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

const (
	root      = repo.LogPrefix
	extPacked = repo.LogPacked
	extSealed = repo.LogSealed
	extIndex  = repo.LogIndex
	setAside  = ".damaged-" // in the names of files that were set aside
)

// Place is where mirrored logs are: finished ones for good, next to backups or alone.
type Place struct {
	repo.Store
	Repo *repo.Repo // the repository in the place; nil: there is none. If it is encrypted, so are the logs.

	Signer ed25519.PrivateKey // signs the logs that are mirrored; nil: they are not signed
	Policy repo.Policy        // whose logs Files opens; nil: all, unchecked
	Name   string             // by which the policy knows a place without a repository: 32 hexadecimal digits
	Said   func(string)       // is called with what is left out of a log because it is not signed; may be nil
}

func (p Place) encrypted() bool { return p.Repo != nil && p.Repo.Encrypted() }

// ext ends the names of finished logs.
func (p Place) ext() string {
	if p.encrypted() {
		return extSealed
	}
	return extPacked
}

// Series is the logs of one server since they began to count, as far as they are mirrored.
type Series struct {
	Key  string // server_uuid, or domain-server-time of MariaDB; with .2 and so on after RESET
	Logs []Log
	Lost []string // names of logs that are stored without their index, whose contents are unknown: they are not among Logs
}

// Lacks says which logs of the series are there and are not read; "": all are.
func (s Series) Lacks() string {
	if len(s.Lost) == 0 {
		return ""
	}
	return fmt.Sprintf("of series %s %s without an index and not read: a copy of the place was interrupted, or is still running", s.Key, digits.Plural(len(s.Lost), "log is there", "logs are there")+" ("+strings.Join(s.Lost, ", ")+")")
}

// Log is a mirrored log.
type Log struct {
	binlog.Index
	Finished bool `json:"finished"`         // verified and stored; otherwise it is being written
	Locked   bool `json:"locked,omitempty"` // it is being written, and no identity opens it: only Name, Size and Last are known, and Last is when it last grew
}

// List reads which logs are in a place, and in the folder where they are written (the same folder if the place is one).
// Unfinished logs are scanned.
func List(ctx context.Context, place Place, dir string) ([]Series, error) {
	local, err := localLogs(dir) // first: a log that is finished in the meantime has its index before it is removed
	if err != nil {
		return nil, err
	}
	var indexes, stored []string
	err = place.List(ctx, root, func(key string, _ int64) error {
		ext := path.Ext(key)
		name := strings.TrimSuffix(key, ext)
		switch {
		case path.Dir(path.Dir(name))+"/" != root:
		case ext == extIndex:
			indexes = append(indexes, key)
		case strings.HasSuffix(key, extSealed):
			stored = append(stored, strings.TrimSuffix(key, extSealed))
		case ext == extPacked:
			stored = append(stored, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the mirrored logs: %w", err)
	}
	series := map[string]*Series{}
	get := func(key string) *Series {
		if series[key] == nil {
			series[key] = &Series{Key: key}
		}
		return series[key]
	}
	for _, key := range indexes {
		x, err := readIndex(ctx, place, key)
		if err != nil {
			return nil, err
		}
		s := get(path.Base(path.Dir(key)))
		s.Logs = append(s.Logs, Log{Index: x, Finished: true})
	}
	for _, l := range local {
		s := get(l.key)
		if slices.ContainsFunc(s.Logs, func(x Log) bool { return x.Name == l.name }) {
			continue // finished, and not yet removed
		}
		x, listed, err := unfinished(ctx, place, l)
		if err != nil {
			return nil, err
		}
		if listed {
			s.Logs = append(s.Logs, x)
		}
	}
	for _, key := range stored {
		s, name := get(path.Base(path.Dir(key))), path.Base(key)
		if !slices.ContainsFunc(s.Logs, func(l Log) bool { return l.Name == name }) && isLog(name) {
			s.Lost = append(s.Lost, name)
		}
	}
	var list []Series
	for _, s := range series {
		slices.SortFunc(s.Lost, binlog.CompareNames)
		slices.SortFunc(s.Logs, func(a, b Log) int { return binlog.CompareNames(a.Name, b.Name) })
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b Series) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}

// unfinished is what to list of a log that is being written, if anything is. What is damaged is listed as far as it is good.
func unfinished(ctx context.Context, place Place, l localLog) (log Log, listed bool, err error) {
	x, err := scanFile(ctx, place, l.path)
	locked := errors.Is(err, repo.ErrNoKey)
	if locked {
		if x, err = lockedIndex(l.path); err == nil && x.Size == 0 {
			return log, false, nil
		}
	}
	var unread *fs.PathError
	switch {
	case err != nil && ctx.Err() != nil:
		return log, false, context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist):
		// It has been finished since: its index was written before it went.
		x, err := readIndex(ctx, place, root+l.key+"/"+l.name+extIndex)
		if errors.Is(err, fs.ErrNotExist) {
			return log, false, nil
		}
		return Log{Index: x, Finished: true}, true, err
	case errors.As(err, &unread):
		return log, false, fmt.Errorf("list the mirrored logs: %s/%s: %w", l.key, l.name, err)
	case x.Size == 0 && (errors.Is(err, binlogevent.ErrTorn) || errors.Is(err, io.ErrUnexpectedEOF)):
		if parts, err := place.signedParts(l.key, l.path); err != nil || len(parts) == 0 {
			return log, false, err // nothing in it yet
		}
		// Its signatures are gone: readers are warned.
	}
	x.Name = l.name
	return Log{Index: x, Locked: locked}, true, nil
}

func readIndex(ctx context.Context, place Place, name string) (x binlog.Index, err error) {
	in, err := place.Get(ctx, name)
	if err != nil {
		return x, err
	}
	defer in.Close()
	if err := json.NewDecoder(in).Decode(&x); err != nil {
		return x, fmt.Errorf("read %s: %w", name, err)
	}
	if own := strings.TrimSuffix(path.Base(name), extIndex); x.Name != own { // else one log could replace another
		return x, fmt.Errorf("%s is the index of %q: %w", name, x.Name, repo.ErrDamaged)
	}
	return x, nil
}

type localLog struct{ key, name, path string }

// localLogs are the logs that are not finished.
func localLogs(dir string) ([]localLog, error) {
	keys, err := os.ReadDir(filepath.Join(dir, root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var list []localLog
	for _, k := range keys {
		if !k.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(dir, root, k.Name()))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if isLog(f.Name()) {
				list = append(list, localLog{k.Name(), f.Name(), filepath.Join(dir, root, k.Name(), f.Name())})
			}
		}
	}
	slices.SortFunc(list, func(a, b localLog) int {
		if a.key != b.key {
			return strings.Compare(a.key, b.key)
		}
		return binlog.CompareNames(a.name, b.name)
	})
	return list, nil
}

// isLog reports whether a file's name is that of a log that is being written: it ends in its number.
func isLog(name string) bool {
	return !strings.HasPrefix(name, ".") && !strings.Contains(name, setAside) && binlog.Number(name) > 0
}

func scanFile(ctx context.Context, place Place, p string) (x binlog.Index, err error) {
	f, err := openLocal(place, p)
	if err != nil {
		return x, err
	}
	defer f.Close()
	return scan(ctx, place, filepath.Base(p), f)
}

// scan makes the index of a log.
func scan(ctx context.Context, place Place, name string, in io.Reader) (binlog.Index, error) {
	if !place.encrypted() {
		return binlog.Scan(ctx, name, in)
	}
	sum, err := place.Repo.NewHash()
	if err != nil {
		sum = sha256.New() // it is not compared: a writer has the key of names
	}
	x, err := binlog.ScanSum(ctx, name, in, sum)
	x.HMAC, x.SHA256 = x.SHA256, ""
	return x, err
}

// lockedIndex is what is known of an encrypted log without its key.
func lockedIndex(p string) (x binlog.Index, err error) {
	f, err := os.Open(p)
	if err != nil {
		return x, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return x, err
	}
	x.Name, x.Last = filepath.Base(p), st.ModTime().UTC()
	x.Size, err = repo.GrowingSize(f)
	return x, err
}

// openLocal reads a log that is being written.
func openLocal(place Place, p string) (io.ReadCloser, error) {
	f, err := os.Open(p)
	if err != nil {
		return nil, err
	}
	head := make([]byte, repo.GrowingHead)
	n, err := f.ReadAt(head, 0)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, errors.Join(err, f.Close())
	case !repo.IsGrowing(head[:n]):
		return f, nil
	case place.Repo == nil:
		return nil, errors.Join(fmt.Errorf("%s: %w", logName(p), repo.ErrNoKey), f.Close())
	}
	g, err := place.Repo.Regrow(logName(p), f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return readCloser{g.Reader(f), f}, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// openStored reads what a finished log holds.
func openStored(ctx context.Context, place Place, name string) (io.ReadCloser, error) {
	if place.encrypted() {
		in, err := place.Get(ctx, name+extSealed)
		if err == nil {
			return binlog.Uncompressed(readCloser{place.Repo.Decrypt(in), in})
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		// It may be from before the place was encrypted.
	}
	in, err := place.Get(ctx, name+extPacked)
	if err != nil {
		return nil, err
	}
	return binlog.Uncompressed(in)
}

// Files returns the logs of a series to read. If the place has a policy, each is read only as far as it was signed by a trusted key, to
// the last bit; otherwise with an error before the first byte.
func (s Series) Files(place Place, dir string) []binlog.File {
	list := make([]binlog.File, len(s.Logs))
	for i, l := range s.Logs {
		list[i] = binlog.File{Name: l.Name, Size: l.Size, Least: place.least(s.Key, dir, l), Open: s.opener(place, dir, l)}
		if place.Policy != nil {
			list[i].Open = s.trusted(place, dir, l).Open
		}
		if l.Finished {
			list[i].Index = &l.Index
		}
	}
	return list
}

// least is how many bytes of a log were mirrored, by its index or the newest signature of one that grows: nothing else shows what a disk lost
// before its mirror goes on.
func (p Place) least(key, dir string, l Log) int64 {
	if l.Finished {
		return l.Size
	}
	parts, err := p.signedParts(key, filepath.Join(dir, root, key, l.Name))
	if err != nil || len(parts) == 0 {
		return 0
	}
	return parts[0].Size
}

func (s Series) opener(place Place, dir string, l Log) func(context.Context) (io.ReadCloser, error) {
	return func(ctx context.Context) (io.ReadCloser, error) {
		name := root + s.Key + "/" + l.Name
		in, err := openStored(ctx, place, name)
		if errors.Is(err, fs.ErrNotExist) {
			if l.Encrypted && !place.encrypted() {
				return nil, fmt.Errorf("%s: %w", l.Name, repo.ErrNoKey)
			}
			// It may have been finished since the list was made, or is being written.
			return openLocal(place, filepath.Join(dir, filepath.FromSlash(name)))
		}
		return in, err
	}
}

// trusted is a log of the series as it was signed.
func (s Series) trusted(place Place, dir string, l Log) *trusted {
	open := s.opener(place, dir, l)
	name := root + s.Key + "/" + l.Name
	path := filepath.Join(dir, filepath.FromSlash(name))
	return &trusted{open: open, hash: place.newHash, look: func(ctx context.Context) (int64, string, error) {
		x := &l.Index
		if !l.Finished {
			// It may have been finished since the list was made.
			index, err := readIndex(ctx, place, name+extIndex)
			if errors.Is(err, fs.ErrNotExist) {
				size, sum, err := place.signedUntil(s.Key, path, l)
				if !errors.Is(err, repo.ErrUnsigned) {
					return size, sum, err
				}
				// Or just now: then it was signed in its index before its own signature was removed.
				var ierr error
				if index, ierr = readIndex(ctx, place, name+extIndex); ierr != nil {
					return size, sum, err
				}
			} else if err != nil {
				return 0, "", err
			}
			x = &index
		}
		return x.Size, x.SHA256 + x.HMAC, place.accept(place.complete(s.Key, *x), x.Signature)
	}}
}

// signedUntil says how much of a growing log is signed by a trusted key. What follows is left out, and reported, unless what is
// unsigned may be read.
func (p Place) signedUntil(key, path string, l Log) (size int64, sum string, err error) {
	parts, err := p.signedParts(key, path)
	if err != nil {
		return 0, "", err
	}
	if len(parts) == 0 || parts[0].Size < l.Size {
		if err := p.accept(p.grown(key, l.Name, signedPart{}), nil); err == nil || len(parts) == 0 {
			return l.Size, "", err
		}
	}
	if err := p.accept(p.grown(key, l.Name, parts[0]), parts[0].Signature); err != nil {
		return 0, "", err
	}
	if left := l.Size - parts[0].Size; left > 0 && p.Said != nil {
		p.Said(fmt.Sprintf("mirrored log %s/%s: its last %d bytes are not signed and are left out: they are being written, or the mirror was killed and will sign them when it runs again; --allow-unsigned reads them", key, l.Name, left))
	}
	return parts[0].Size, parts[0].Sum, nil
}

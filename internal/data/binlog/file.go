// Package binlog works on the binary logs of MySQL and MariaDB: it finds the bad statement in them, writes the statements
// that undo a transaction, and applies them to a server up to just before a mistake. Where the logs come from, files, a
// mirror, or a live server, is up to File. Package binlogevent reads the format; package mirror keeps mirrors.
package binlog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// File is one binary log, which can be read from its beginning any number of times.
type File struct {
	Name string // as the server calls it
	Size int64  // uncompressed; 0: not known
	// Least is how many bytes were there when it was mirrored: with fewer it was cut. 0: unknown.
	Least int64
	// Index is what is known about it when it will not grow; else nil.
	Index *Index
	Open  func(ctx context.Context) (io.ReadCloser, error)
}

// ErrCut says that a compressed file ends in its middle.
var ErrCut = errors.New("the compressed file is truncated: its copy was interrupted, or is still running")

// short is the error of a log of which only this many bytes are there.
func (f File) short(pos int64) error {
	return fmt.Errorf("%w: %s ends at byte %d, but %d were mirrored: it has been truncated since", ErrContents, f.Name, pos, f.Least)
}

// FromPaths returns files of this machine in the order of their numbers: plain, gzip or zstd.
func FromPaths(paths []string) ([]File, error) {
	var list []File
	for _, p := range paths {
		st, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		if st.IsDir() {
			return nil, fmt.Errorf("%s is a folder: name the binary logs in it, or a place with mirrored logs by --from", p)
		}
		name := filepath.Base(p)
		size := st.Size()
		for _, ext := range []string{".zst", ".gz"} {
			if cut, ok := strings.CutSuffix(name, ext); ok {
				name, size = cut, 0
			}
		}
		list = append(list, File{Name: name, Size: size, Open: func(context.Context) (io.ReadCloser, error) {
			f, err := os.Open(p)
			if err != nil {
				return nil, err
			}
			return Uncompressed(f)
		}})
	}
	slices.SortStableFunc(list, func(a, b File) int { return CompareNames(a.Name, b.Name) })
	return list, nil
}

// CompareNames orders logs by the number at the end of their names.
func CompareNames(a, b string) int {
	return mysql.CompareLogs(a, b)
}

// Number is the number at the end of a log's name: 17 of binlog.000017; 0 if there is none.
func Number(name string) uint64 {
	return mysql.LogNumber(name)
}

// packed is a compressed file that is read plain.
type packed struct {
	in    io.Reader
	close func() error
}

// Read distinguishes a compressed file that is cut from a log that ends in the middle of an event, as one does that is being written.
func (p packed) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrCut
	}
	return n, err
}

func (p packed) Close() error { return p.close() }

// Uncompressed reads plain, gzip or zstd alike. Closing it closes in.
func Uncompressed(in io.ReadCloser) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(in, 256<<10)
	head, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		in.Close()
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1))
		if err != nil {
			in.Close()
			return nil, err
		}
		return packed{z, func() error { z.Close(); return in.Close() }}, nil
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			in.Close()
			return nil, err
		}
		return packed{z, func() error { return errors.Join(z.Close(), in.Close()) }}, nil
	}
	return packed{b, in.Close}, nil
}

// patience is how long a server that has more to send may be silent.
const patience = time.Minute

// FromServer returns the logs that a server has now. They are read by the replication protocol.
func FromServer(ctx context.Context, t mysql.Target) ([]File, error) {
	c, err := mysql.Connect(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	logs, err := mysql.Logs(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(logs) == 0 {
		return nil, errors.New("the server writes no binary log (log_bin is off)")
	}
	list := make([]File, len(logs))
	for i, l := range logs {
		list[i] = File{Name: l.Name, Size: l.Size, Open: func(ctx context.Context) (io.ReadCloser, error) {
			return openServerLog(ctx, t, l.Name)
		}}
	}
	return list, nil
}

// serverLog reads one log of a server as if it were a file.
type serverLog struct {
	dump *mysql.Dump
	name string
	rest []byte
	sum  bool
	end  bool
}

func openServerLog(ctx context.Context, t mysql.Target, name string) (io.ReadCloser, error) {
	d, err := t.Dump(ctx, mysql.DumpOptions{File: name, Pos: int64(len(binlogevent.Magic))})
	if err != nil {
		return nil, err
	}
	return &serverLog{dump: d, name: name, rest: binlogevent.Magic}, nil
}

// Read returns the bytes of the file until the server goes on to the next one or has no more.
func (s *serverLog) Read(b []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.end {
			return 0, io.EOF
		}
		e, _, err := s.dump.Next(patience)
		if errors.Is(err, wire.ErrEndOfLogs) {
			s.end = true
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("read %s from the server: %w", s.name, err)
		}
		if len(e) < binlogevent.HeaderLen {
			return 0, fmt.Errorf("%w: the server sent %d bytes", binlogevent.ErrDamaged, len(e))
		}
		h := binlogevent.ParseHeader(e)
		if h.Type == binlogevent.TypeRotate && (h.Flags&binlogevent.FlagArtificial != 0 || h.Seconds == 0) {
			r, err := binlogevent.ParseRotate(binlogevent.TrimChecksum(e)[binlogevent.HeaderLen:])
			s.end = err == nil && r.Name != s.name
			continue
		}
		if h.Artificial() {
			continue
		}
		if h.Type == binlogevent.TypeFormatDescription {
			if f, err := binlogevent.ParseFormat(e); err == nil {
				s.sum = f.Checksum
			}
		}
		s.rest = binlogevent.Readable(e, s.sum)
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *serverLog) Close() error {
	s.dump.Close()
	return nil
}

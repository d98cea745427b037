package digest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Formats of text logs, and those that are recognised but read elsewhere.
const (
	FormatSlow    = "slow"
	FormatGeneral = "general"
	FormatBinlog  = "binlog"
)

// sniffLen is how much of a log is looked at to know its format.
const sniffLen = 16 << 10

// File is a log in a file, plain or compressed by gzip or zstd.
func File(path string) (Source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Source{}, err
	}
	if st.IsDir() {
		return Source{}, fmt.Errorf("%s is a directory; name the log files in it", path)
	}
	s := Source{Name: path, path: path, Open: func(context.Context) (io.ReadCloser, error) { return os.Open(path) }}
	if st.Mode().IsRegular() {
		s.Size = st.Size()
	}
	return s, nil
}

// Reader is a log from a stream such as standard input, plain or compressed. Run does not close r; when the
// context ends, one read of r may still be under way.
func Reader(name string, r io.Reader) Source {
	return Source{Name: name, Open: func(ctx context.Context) (io.ReadCloser, error) { return newPatient(ctx, r), nil }}
}

// FormatOf tells what kind of log begins with head (some KiB are enough): FormatSlow, FormatGeneral,
// FormatBinlog, or empty when it looks like none.
func FormatOf(head []byte) string {
	if bytes.HasPrefix(head, []byte("\xfebin")) {
		return FormatBinlog
	}
	for i := 0; i < len(head); {
		end := lineEnd(head, i)
		line := bytes.TrimRight(head[i:end], "\r\n")
		if isHead(head, i) {
			return FormatSlow
		}
		if _, ok := parseGeneralLine(line); ok {
			return FormatGeneral
		}
		i = end
	}
	return ""
}

// meter counts what is read.
type meter struct {
	r    io.Reader
	read func(n int)
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.read(n)
	return n, err
}

// decompress looks at the first bytes and unpacks gzip and zstd.
func decompress(r io.Reader, growing bool) (in *bufio.Reader, closeIn func(), err error) {
	b := bufio.NewReaderSize(r, sniffLen)
	head, err := b.Peek(6)
	for errors.Is(err, errIdle) && len(head) < 4 {
		head, err = b.Peek(6)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errIdle) {
		return nil, nil, err
	}
	isGzip, isZstd := bytes.HasPrefix(head, []byte{0x1f, 0x8b}), bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd})
	if growing && (isGzip || isZstd) {
		return nil, nil, errors.New("a compressed log does not grow; read it without following it")
	}
	switch {
	case isGzip:
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, nil, fmt.Errorf("gzip: %w", err)
		}
		return bufio.NewReaderSize(z, sniffLen), func() { z.Close() }, nil
	case isZstd:
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderMaxWindow(16<<20))
		if err != nil {
			return nil, nil, fmt.Errorf("zstd: %w", err)
		}
		return bufio.NewReaderSize(z, sniffLen), z.Close, nil
	case bytes.HasPrefix(head, []byte("BZh")), bytes.HasPrefix(head, []byte("\xfd7zXZ")):
		return nil, nil, errors.New("compressed by bzip2 or xz, which is not read; unpack it into a pipe and name the log -")
	}
	return b, func() {}, nil
}

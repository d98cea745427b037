package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/explain/digest/binlog"
)

// binlogSource is a binary log, plain or compressed; seen hears of the bytes read.
func binlogSource(name string, size int64, open func() (io.ReadCloser, error), seen func(done, total int64)) digest.Source {
	return digest.Source{Name: name, Size: size, Events: func(context.Context) (digest.Stream, error) {
		in, err := open()
		if err != nil {
			return nil, err
		}
		if seen != nil {
			in = &countedReader{ReadCloser: in, total: size, seen: seen}
		}
		plain, err := unpacked(in)
		if err != nil {
			return nil, errors.Join(err, in.Close())
		}
		r, err := binlog.New(plain)
		if err != nil {
			return nil, errors.Join(err, plain.Close())
		}
		return r, nil
	}}
}

// isBinlog looks whether a file begins as a binary log does, behind gzip or zstd, too.
func isBinlog(f io.Reader) (bool, error) {
	plain, err := unpacked(io.NopCloser(f))
	if err != nil {
		return false, nil // whoever reads it says what is wrong
	}
	defer plain.Close()
	head := make([]byte, 4)
	n, err := io.ReadFull(plain, head)
	var broken *fs.PathError // of the file, not of what is in it
	if errors.As(err, &broken) {
		return false, err
	}
	return digest.FormatOf(head[:n]) == digest.FormatBinlog, nil
}

// unpacked reads what a file holds; gzip and zstd are known by their first bytes. Closing it closes the file.
func unpacked(in io.ReadCloser) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(in, 64<<10)
	head, _ := b.Peek(4)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, err
		}
		return stacked{z, func() error { return errors.Join(z.Close(), in.Close()) }}, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, err
		}
		return stacked{z, func() error { z.Close(); return in.Close() }}, nil
	}
	return stacked{b, in.Close}, nil
}

// stacked is a reader above another.
type stacked struct {
	io.Reader
	close func() error
}

// Close closes both.
func (s stacked) Close() error { return s.close() }

// countedReader tells how far it is.
type countedReader struct {
	io.ReadCloser
	done, total int64
	seen        func(done, total int64)
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.done += int64(n)
	c.seen(c.done, c.total)
	return n, err
}

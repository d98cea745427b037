package cli

import (
	"context"
	"io"

	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/explain/digest/binlog"
)

// binlogSource is a binary log; seen hears of the bytes read.
func binlogSource(name string, size int64, open func() (io.ReadCloser, error), seen func(done, total int64)) digest.Source {
	return digest.Source{Name: name, Size: size, Events: func(context.Context) (digest.Stream, error) {
		in, err := open()
		if err != nil {
			return nil, err
		}
		r, err := binlog.New(&countedReader{ReadCloser: in, total: size, seen: seen})
		if err != nil {
			in.Close()
			return nil, err
		}
		return r, nil
	}}
}

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

package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rissodb/risso/internal/binlogevent"
)

// Since leaves out the logs that ended before a time, by when those after them began: the time of a log's first event. Of each log that is
// asked no more than its beginning is read, the newest first. A log whose beginning cannot be read is kept, with all after it.
func Since(ctx context.Context, files []File, from time.Time) ([]File, error) {
	for i := len(files) - 1; i > 0; i-- {
		began, err := files[i].began(ctx)
		if err != nil {
			return nil, err
		}
		if !began.IsZero() && began.Before(from) {
			return files[i:], nil
		}
	}
	return files, nil
}

// began is when the server began a log; zero if it cannot be read.
func (f File) began(ctx context.Context) (time.Time, error) {
	if f.Index != nil && !f.Index.First.IsZero() {
		return f.Index.First, nil
	}
	in, err := f.Open(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("open %s: %w", f.Name, err)
	}
	defer in.Close()
	r, err := binlogevent.NewReader(in, binlogevent.Options{})
	if err != nil {
		return time.Time{}, nil // what is wrong with it is said when it is read
	}
	defer r.Close()
	e, err := r.Next()
	switch {
	case ctx.Err() != nil:
		return time.Time{}, context.Cause(ctx)
	case err != nil && !errors.Is(err, io.EOF), e.Seconds == 0:
		return time.Time{}, nil
	}
	return time.Unix(int64(e.Seconds), 0), nil
}

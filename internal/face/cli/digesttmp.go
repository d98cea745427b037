package cli

import (
	"context"
	"errors"
	"io"

	"github.com/rissodb/risso/internal/explain/digest"
)

func binlogSource(name string, size int64, open func() (io.ReadCloser, error)) digest.Source {
	return digest.Source{Name: name}
}
func (j *digestJob) live(ctx context.Context) error { return errors.New("not yet") }

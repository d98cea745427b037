package physical

import (
	"context"

	"errors"
)

func (j *job) planClone(ctx context.Context) error { return errors.New("not yet") }

func (j *job) runClone(ctx context.Context, parts *sink) error { return errors.New("not yet") }

package carry

import (
	"context"
	"errors"
	"fmt"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/fault"
)

// ErrUntouched says of a change that failed that nothing was changed yet.
var ErrUntouched = errors.New("nothing was changed")

// untouched adds that.
func untouched(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; %w", err, ErrUntouched)
}

// Interrupted is the error of a change that somebody interrupted, with what became of the group; another one stays as it is. j is nil where it had not begun.
func Interrupted(ctx context.Context, j *failover.Journal, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	switch {
	case j == nil || errors.Is(err, ErrUntouched):
		return fault.New(fault.Interrupted, "", errors.New("interrupted; nothing was changed"))
	case j.Ended.IsZero():
		return fault.New(fault.Interrupted, "risso failover resume --group "+j.Group, errors.New("interrupted; what was begun is neither finished nor taken back"))
	case j.Stage == failover.Undone:
		return fault.New(fault.Interrupted, "", errors.New("interrupted; "+j.Old+" is the primary as before"))
	}
	return err
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestAsked: a stop that was asked for is no failure, whatever was under way; all else stays one.
func TestAsked(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	broken := errors.New("the disk is full")
	for _, c := range []struct {
		ctx       context.Context
		err, want error
	}{{stopped, fmt.Errorf("read the facts: %w", context.Canceled), nil}, {stopped, broken, broken}, {t.Context(), context.Canceled, context.Canceled}, {t.Context(), nil, nil}} {
		if got := asked(c.ctx, c.err); !errors.Is(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

package serve

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestInOrder: a stop that was asked for is no failure, whatever was under way; everything else stays one.
func TestInOrder(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	broken := errors.New("the disk is full")
	for _, c := range []struct {
		ctx       context.Context
		err, want error
	}{{stopped, fmt.Errorf("read the facts: %w", context.Canceled), nil}, {stopped, broken, broken}, {t.Context(), context.Canceled, context.Canceled}, {t.Context(), nil, nil}} {
		if got := inOrder(c.ctx, c.err); !errors.Is(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

package chaos

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// slowOperator is never done with rebuilding a member, and tells how its command was ended, as a process does.
type slowOperator struct{ Operator }

func (slowOperator) Tend(ctx context.Context) ([]string, error) {
	<-ctx.Done()
	return nil, errors.New("signal: killed")
}

// TestRebuildTakesTooLong: a certificate says that a member was not rebuilt in time, and not how the command was ended that was doing it.
func TestRebuildTakesTooLong(t *testing.T) {
	r := &Run{Settle: 10 * time.Millisecond}
	if _, err := r.rebuild(t.Context(), slowOperator{}); err == nil || !strings.Contains(err.Error(), "it takes longer than 10ms") {
		t.Errorf("got %v", err)
	}
}

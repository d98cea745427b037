package delay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestFor: it waits as long as requested, and no longer than its context, whose cause it returns.
func TestFor(t *testing.T) {
	errEnd := errors.New("end")
	for _, c := range []struct{ end, wait, want time.Duration }{{time.Hour, time.Minute, time.Minute}, {time.Minute, time.Hour, time.Minute}, {0, time.Hour, 0}, {time.Hour, 0, 0}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer time.AfterFunc(c.end, func() { cancel(errEnd) }).Stop()
			if c.end == 0 {
				cancel(errEnd)
			}
			began := time.Now()
			err := For(ctx, c.wait)
			if took := time.Since(began); took != c.want || (err != nil) != (c.end < c.wait) || err != nil && !errors.Is(err, errEnd) {
				t.Errorf("ends after %s, waits for %s: got %s, %v, want %s", c.end, c.wait, took, err, c.want)
			}
		})
	}
}

// Package delay waits.
package delay

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends: then it says why that ended.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

package drill

import (
	"context"

	"github.com/rissodb/risso/internal/sandbox"
)

// purpose is what the sandboxes of drills are claimed for.
const purpose = "drill"

// Sweep throws away what killed drills left: servers, data, locks.
func Sweep(ctx context.Context, dir string) error { return sandbox.Sweep(ctx, dir, purpose) }

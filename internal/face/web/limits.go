package web

import (
	"cmp"
	"time"

	"github.com/rissodb/risso/internal/serve/config"
)

// withDefaults fills in what is zero.
func withDefaults(l config.Limits) config.Limits {
	return config.Limits{Samples: cmp.Or(l.Samples, 3_000_000), Series: cmp.Or(l.Series, 50_000), Answer: cmp.Or(l.Answer, 64_000_000), Memory: cmp.Or(l.Memory, 200_000_000),
		Time: cmp.Or(l.Time, 30*time.Second), Write: cmp.Or(l.Write, 30*time.Second), Body: cmp.Or(l.Body, 30*time.Second),
		AtOnce: cmp.Or(l.AtOnce, 2), Wait: cmp.Or(l.Wait, 5*time.Second), Connections: cmp.Or(l.Connections, 512)}
}

// What needs no setting.
const (
	headerTime      = 10 * time.Second // of receiving the header of a request
	idleTime        = 2 * time.Minute  // of a connection between two requests
	headerBytes     = 64 << 10         // of the line and the fields of a request: a chart of 500 series
	formBytes       = 256 << 10        // of a form with a PromQL question
	smallBody       = 4 << 10          // of a body that holds a token or nothing
	quickAtOnce     = 8                // questions about the present, which cost next to nothing
	passwordsAtOnce = 2                // compared passwords
	mostWaiting     = 100              // questions of a kind in the queue: one more is refused immediately
)

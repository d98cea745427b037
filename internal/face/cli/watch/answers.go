package watch

import (
	"time"

	"github.com/rissodb/risso/internal/watch/live"
)

// TopAnswer is a line of top: one each second.
type TopAnswer struct {
	Time      time.Time  `json:"time"`
	Instances []live.Row `json:"instances"` // the worst first
}

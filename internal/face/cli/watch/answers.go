package watch

import (
	"time"

	"github.com/rissodb/risso/internal/watch/live"
)

// TopAnswer is one line of top; there is one every second.
type TopAnswer struct {
	Time      time.Time  `json:"time"`
	Instances []live.Row `json:"instances"` // worst first
}

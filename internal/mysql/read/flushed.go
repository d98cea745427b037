package read

import (
	"context"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// flushWatch notices statements that may lock the whole server for less than a second: the reading of each second may come before anybody
// waits for it, and the next one when all is over.
type flushWatch struct {
	keys    []string // of the counters of these statements
	counted float64  // their sum at the last reading
	known   bool     // counted is
	grew    bool     // at this reading
	seen    []LockWait
}

// flushCommands are the commands that lock a whole server, and others that begin with the same word.
var flushCommands = []string{"flush", "backup"}

// look compares the counters with those of the reading before.
func (w *flushWatch) look(s *fleet.Sample) {
	if w.keys == nil {
		for _, c := range flushCommands {
			m := fleet.Metric{Name: "mysql_global_status_commands_total", Labels: []fleet.Label{{Name: "command", Value: c}}}
			w.keys = append(w.keys, m.Key())
		}
	}
	sum := 0.0
	for _, key := range w.keys {
		n, _ := s.Value(key)
		sum += n
	}
	w.grew = w.known && sum > w.counted
	w.counted, w.known = sum, true
}

// Flushed reports whether a statement began since the reading before that may have locked the whole server, while this reading found nobody
// who waits: LookAgain, a moment later, may find them.
func (r *Reader) Flushed() bool {
	return r.flushes.grew && len(r.Locks) == 0 && !time.Now().Before(r.locksRest)
}

// LookAgain asks who waits for a lock of the whole server. What it finds is among the Locks of the next reading, if that finds none itself.
// An error means that the connection is useless.
func (r *Reader) LookAgain(ctx context.Context, c *mysql.Conn) error {
	asked := time.Now()
	list, _, err := lockWaits(ctx, c, 0, nil, r.locked)
	if took := time.Since(asked); took > time.Second/lockShare {
		r.locksRest = asked.Add(took * lockShare)
	}
	r.flushes.seen = slices.DeleteFunc(list, func(w LockWait) bool { return w.Kind != LockGlobal })
	return err
}

// takeSeen puts what was found between two readings among the Locks.
func (r *Reader) takeSeen() {
	if len(r.Locks) == 0 && len(r.flushes.seen) > 0 {
		r.Locks = r.flushes.seen
	}
	r.flushes.seen = nil
}

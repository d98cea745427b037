package history

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// What is read in addition to the counters of statements. It fails alone: a server that takes too long over one of these is not asked
// for it again for a while, and loses nothing of the others.
const (
	optionalPrepared        = "executions of prepared statements"
	optionalLatency         = "the latency of the heaviest classes"
	optionalRoom            = "how full the server's table of digests is"
	optionalSamples         = "samples and plans of the heaviest classes"
	optionalPreparedSamples = "samples and plans of prepared statements"
	optionalMarks           = "which statements are Risso's own"
)

const (
	optionalTime  = 5 * time.Second  // of each in a minute
	optionalRetry = 10 * time.Minute // after one that failed
)

// errBroken says that something optional cost the connection.
var errBroken = errors.New("the connection was closed over something optional; the next minute includes what was counted")

// optional does what is not needed, within its time. A failure is noted as a gap, with what it costs.
func (c *Collector) optional(ctx context.Context, now time.Time, what string, f func(context.Context) error) {
	if c.conn == nil || now.Before(c.tried[what]) {
		return
	}
	octx, cancel := context.WithTimeout(ctx, optionalTime)
	defer cancel()
	err := f(octx)
	if ctx.Err() != nil { // Risso ends, or the whole minute was used up
		c.disconnect()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.tried, what)
		delete(c.gaps, what)
		return
	}
	c.Logger.Debug("something optional was not read", "instance", c.instance.ID, "what", what, "err", err)
	gap := fleet.Trouble{What: what, Why: err.Error()}
	switch mysql.ClassOf(err) {
	case mysql.ClassTimeout, mysql.ClassDropped, mysql.ClassRefused:
		gap.Why = "the server took longer than " + optionalTime.String() + "; it will be asked again in " + optionalRetry.String()
		c.disconnect()
	case mysql.ClassPrivilege:
		gap.Why, gap.Remedy = "the account "+c.conn.Server.Account+" is missing a privilege", c.conn.Server.GrantPerformanceSchema()
	}
	if c.tried == nil {
		c.tried, c.gaps = map[string]time.Time{}, map[string]fleet.Trouble{}
	}
	c.tried[what], c.gaps[what] = now.Add(optionalRetry), gap
}

// missing lists what optional could not have. The caller holds mu.
func (c *Collector) missing() []fleet.Trouble {
	return slices.SortedFunc(maps.Values(c.gaps), func(a, b fleet.Trouble) int { return strings.Compare(a.What, b.What) })
}

// everybodys are the verbs that another Risso sends just as applications do: its mark on one says nothing of the others.
var everybodys = map[string]bool{"COMMIT": true, "ROLLBACK": true, "USE": true, "DELETE": true, "REPLACE": true, "INSERT": true}

// marked are the digests that the server remembers with Risso's mark: those of other processes of Risso, such as a trace.
// The table of digests has no comments, and before MySQL 8.0.3 no samples.
func (c *Collector) marked(ctx context.Context) map[string]bool {
	ids := map[string]bool{}
	if read.KeepsSamples(c.conn.Server) {
		return ids // they have, and of all statements
	}
	c.optional(ctx, c.readAt, optionalMarks, func(ctx context.Context) error {
		return read.MarkedDigests(ctx, c.conn, func(id string) error { ids[id] = true; return nil })
	})
	return ids
}

// merge adds costs to those that wait, each digest once.
func merge(waiting, list []cost) []cost {
	if len(waiting) == 0 {
		return list
	}
	at := make(map[digestKey]int, len(waiting))
	for i, w := range waiting {
		at[w.digestKey] = i
	}
	for _, d := range list {
		i, ok := at[d.digestKey]
		if !ok {
			waiting = append(waiting, d)
			continue
		}
		w := &waiting[i]
		w.Cost.Add(d.Cost)
		w.First, w.fresh = d.First, w.fresh || d.fresh
	}
	return slices.Clip(waiting)
}

package retire

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Reading is what tells of a server, from one moment to the next, whether all that ran in between was counted by class.
type Reading struct {
	Time  time.Time `json:"time"`            // by the server's clock
	Began time.Time `json:"began"`           // when the oldest class was seen first: another time means that counting began anew
	Start time.Time `json:"start"`           // when the server was started
	Lost  int64     `json:"lost,omitempty"`  // statements for which the table of classes had no room
	Apart int64     `json:"apart,omitempty"` // executions of prepared statements, which the table leaves out
	Blind string    `json:"blind,omitempty"` // why what runs from then on tells nothing, until the next reading
}

// The time of a start is known as finely as that; so many executions of prepared statements may be Risso's own, who finds out by them
// where the server counts them.
const (
	startSlack  = 2 * time.Second
	ownPrepared = 20
)

// unseen says for how long it is not known what ran between two readings, and why. What ran after counting began anew is known.
func (r Reading) unseen(now Reading) (time.Duration, string) {
	whole := max(now.Time.Sub(r.Time), 0)
	apart := now.Apart - r.Apart
	if apart < 0 {
		apart = now.Apart
	}
	anew := !now.Began.Equal(r.Began)
	switch {
	case r.Time.IsZero():
		return 0, ""
	case r.Blind != "":
		return whole, r.Blind
	case now.Blind != "": // it came in between
		return whole, now.Blind
	case now.Lost > r.Lost || anew && now.Lost > 0:
		return whole, "its table of classes of statements is full: " + digits.Counted(max(now.Lost-r.Lost, 1), "statement") + " fell into one row without a name; make performance_schema_digests_size larger in the option file and restart the server, or TRUNCATE performance_schema.events_statements_summary_by_digest"
	case apart > ownPrepared:
		return whole, digits.Counted(apart, "execution") + " of prepared statements by the binary protocol, which this server does not count by class"
	case anew && now.Start.Add(startSlack).After(r.Time) && now.Start.Sub(r.Start) >= startSlack:
		return min(max(now.Began.Sub(r.Time), time.Second), max(whole, time.Second)), "the server was restarted"
	case anew:
		return min(max(now.Began.Sub(r.Time), time.Second), max(whole, time.Second)), "its table of classes of statements was emptied"
	}
	return 0, ""
}

// moment reads a time of performance_schema, in a session in UTC; zero if it is none.
func moment(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", text) // a fraction is read, too
	if err != nil {
		return time.Time{}
	}
	return t
}

// notCounted is the reason why a server counts no statements.
type notCounted struct{ fleet.Trouble }

func (n *notCounted) Error() string {
	return "statements are not counted, so nobody would notice that they got slower: " + n.Why
}

// reading begins one: the rest is read with the classes.
func reading(ctx context.Context, c *mysql.Conn) (r Reading, err error) {
	off, err := read.CountsStatements(ctx, c)
	if err != nil {
		return r, fmt.Errorf("are statements counted? %w", err)
	}
	if off != nil {
		return r, fleet.WithRemedy(&notCounted{*off}, off.Remedy)
	}
	clock, err := read.ServerNow(ctx, c) // it also makes the session read times in UTC
	if err != nil {
		return r, fmt.Errorf("read the server's clock: %w", err)
	}
	if r.Time = moment(clock); r.Time.IsZero() {
		return r, fmt.Errorf("the server's clock says %q", clock)
	}
	start, err := read.Started(ctx, c)
	if err != nil {
		return r, fmt.Errorf("read when the server was started: %w", err)
	}
	r.Start = time.Unix(start, 0).UTC()
	where, err := read.CountsPrepared(ctx, c)
	if err != nil {
		return r, fmt.Errorf("are prepared statements counted? %w", err)
	}
	if !where.Digests {
		if r.Apart, err = read.PreparedExecutions(ctx, c); err != nil {
			return r, fmt.Errorf("read how many prepared statements were executed: %w", err)
		}
	}
	return r, nil
}

// note takes a row of the table of classes.
func (r *Reading) note(d *read.Digest) {
	if first := moment(d.First); !first.IsZero() && (r.Began.IsZero() || first.Before(r.Began)) {
		r.Began = first
	}
	if d.ID == "" {
		r.Lost += d.Calls
	}
}

// shown reports whether an index is there and may be used: on a replica whose replication stands still it is, though its source hides it.
func shown(ctx context.Context, c *mysql.Conn, r *Record) (is bool, err error) {
	column, hidden := c.Server.HiddenIndexColumn()
	if column == "" {
		column = "''"
	}
	err = c.Query(ctx, "SELECT /* risso: is the index hidden? */ "+column+" FROM information_schema.STATISTICS WHERE SEQ_IN_INDEX = 1 AND TABLE_SCHEMA = "+mysql.Literal(r.Schema)+" AND TABLE_NAME = "+mysql.Literal(r.Table)+" AND INDEX_NAME = "+mysql.Literal(r.Index), func(row []sqldriver.Value) error {
		is = hidden == "" || mysql.Text(row[0]) != hidden
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("is the index hidden? %w", err)
	}
	return is, nil
}

// advance takes a reading of a server: what was not seen since the last one is watched longer. first says that this reason is not that of the
// reading before, so that it is told.
func (b *Baseline) advance(now Reading) (span time.Duration, first bool) {
	last, before := b.Seen, b.Unseen
	if last.Time.IsZero() {
		last = Reading{Time: b.Time, Blind: "an older Risso watched it, which did not look whether all statements were counted"}
	}
	if span, b.Unseen = last.unseen(now); span == 0 {
		b.Unseen = ""
	}
	b.Seen, b.Missed = now, b.Missed+span
	return span, span > 0 && kind(before) != kind(b.Unseen)
}

// kind is a reason up to its numbers.
func kind(why string) string {
	if i := strings.IndexAny(why, "0123456789"); i >= 0 {
		return why[:i]
	}
	return why
}

// blind notes that a server counts nothing; it reports whether that is so.
func (b *Baseline) blind(err error) bool {
	var n *notCounted
	if !errors.As(err, &n) {
		return false
	}
	b.Seen.Blind = n.Why
	return true
}

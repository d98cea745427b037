package appliers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/applier"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/oneline"
)

// LiveAnswer is what the workers of a replica do.
type LiveAnswer struct {
	applier.Live
	Server  string          `json:"server"`
	Seconds float64         `json:"seconds"`
	Applied uint64          `json:"transactions"` // applied meanwhile, by GTID; 0 without GTIDs
	Unread  []fleet.Trouble `json:"unread,omitempty"`
}

// The limits of --for, and how often the replica is looked at.
const (
	shortest = 200 * time.Millisecond
	longest  = time.Hour
	every    = 100 * time.Millisecond
)

func (c *command) watch(ctx context.Context) error {
	if c.length < shortest || c.length > longest {
		return fault.Usagef("--for %s: %s to %s", digits.Duration(c.length), shortest, digits.Duration(longest))
	}
	t, err := c.Target()
	if err != nil {
		return err
	}
	conn, err := mysql.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	moments, err := read.ReplicaMoments(ctx, conn)
	if err != nil {
		return err
	}
	if len(moments) == 0 {
		return fault.New(fault.Failed, "name a replica with --dsn; for what a source's log allows leave out --live", errors.New("the server does not replicate from another"))
	}
	answer, err := c.look(ctx, conn, moments)
	switch {
	case ctx.Err() != nil:
		return fault.New(fault.Interrupted, "", errors.New("interrupted"))
	case err != nil:
		return err
	}
	var unmet error
	if answer.Verdict == applier.Unseen {
		unmet = fault.New(fault.Failed, unseenRemedy(conn, answer.Unread), errors.New("the thread that applies runs, and the account may not see what it does"))
	}
	if c.output == "json" {
		return errors.Join(render.JSON(c.Out, answer), unmet)
	}
	if unmet == nil {
		liveText(c.Out, &answer)
	}
	return unmet
}

// unseenRemedy is what lets the account see the threads of replication.
func unseenRemedy(conn *mysql.Conn, unread []fleet.Trouble) string {
	for _, u := range unread {
		if u.Remedy != "" {
			return u.Remedy
		}
	}
	return conn.Server.Grant("PROCESS")
}

// look looks at the replica for the time that was asked for.
func (c *command) look(ctx context.Context, conn *mysql.Conn, moments []read.ReplicaMoment) (LiveAnswer, error) {
	p := screen.NewProgress(c.Err)
	defer p.End()
	w := applier.NewWatch()
	answer := LiveAnswer{Server: conn.Server.String()}
	begun := time.Now()
	for {
		threads, gaps, err := read.Appliers(ctx, conn, moments)
		if err != nil {
			return answer, err
		}
		last, more, err := read.LastApplied(ctx, conn)
		if err != nil {
			return answer, err
		}
		answer.Unread = append(gaps, more...)
		w.Add(threads, last)
		now := time.Since(begun)
		if now >= c.length {
			answer.Seconds = now.Seconds()
			break
		}
		p.Set(int64(now), int64(c.length))
		if err := delay.For(ctx, every); err != nil {
			return answer, err
		}
	}
	after, err := read.ReplicaMoments(ctx, conn)
	if err != nil {
		return answer, err
	}
	for _, m := range after {
		for _, before := range moments {
			if m.Name == before.Name {
				answer.Applied = max(answer.Applied, m.Applied.Ahead(before.Applied)) // of MySQL it is the whole server's
			}
		}
	}
	applies := func(m read.ReplicaMoment) bool { return m.Applies() }
	answer.Live = w.Live(slices.ContainsFunc(moments, applies) && slices.ContainsFunc(after, applies))
	return answer, nil
}

// verdictWords are the verdicts in words.
var verdictWords = map[applier.Verdict]string{
	applier.Stopped:   "Nothing is applied: the thread that applies does not run. risso lag says why.",
	applier.Unseen:    "What is applied is not known: the account may not see the threads.",
	applier.KeepsUp:   "The replica keeps up: most of the time there is nothing to apply. More workers gain nothing now.",
	applier.OneThread: "One thread applies, and is busy. What more of them would gain is in the source's log: risso appliers --dsn of the source.",
	applier.OneBusy:   "One worker is busy all the time, and there is nothing to give to the others: a long transaction, or one that waits for a lock.",
	applier.Dependent: "Transactions wait for those that they depend on by the source's log: more workers gain nothing. What orders them is there: risso appliers --dsn of the source.",
	applier.Ordered:   "Workers are done and wait for the commit of a transaction before theirs: a long one holds up the rest.",
	applier.AllBusy:   "All workers are busy: more of them pay, if the replica has processors and disk to spare.",
	applier.LockWaits: "Workers wait for locks of sessions on the replica, not for each other: risso lag names them.",
	applier.Feeding:   "The thread that reads the relay log and gives out transactions is the limit: more workers gain nothing.",
	applier.Mixed:     "Nothing of this keeps the replica most of the time.",
}

func liveText(w io.Writer, a *LiveAnswer) {
	fmt.Fprintf(w, "%s, %s, looked at %s times", a.Server, digits.Seconds(a.Seconds), digits.Thousands(a.Looks))
	if a.Applied > 0 {
		fmt.Fprintf(w, ": %s applied, %s", digits.Counted(a.Applied, "transaction"), digits.Rate(float64(a.Applied)/a.Seconds))
	}
	fmt.Fprintln(w)
	if len(a.Workers) > 0 {
		t := render.Table{Heads: []string{">WORKER", ">BUSY", "", ">COMMITS", ">LOCKED", ">IN ORDER", ">DEPENDS", ">IDLE", ">TIME", ">RETRIES"}}
		for _, x := range a.Workers {
			took := digits.Unknown
			if x.Seen > 0 {
				took = digits.Seconds(x.Seconds)
			}
			bar := strings.Repeat("█", int(x.Busy*barWidth/2+0.5))
			t.Rows = append(t.Rows, []string{strconv.FormatInt(x.Session, 10), digits.Percent(x.Busy), bar, digits.Percent(x.Commits), digits.Percent(x.Locked), digits.Percent(x.InOrder),
				digits.Percent(x.Depends), digits.Percent(x.Idle), took, strconv.FormatInt(x.Retries, 10)})
		}
		fmt.Fprintln(w)
		for _, l := range t.Lines(0) {
			fmt.Fprintln(w, strings.TrimRight(l, " "))
		}
		fmt.Fprintln(w, "IN ORDER: done, and waits for the commit before; DEPENDS: may not begin yet; TIME: of a transaction, those waits included.")
	}
	f := a.Feeder
	fmt.Fprintf(w, "\n%s of %s work at the same time, on average. The thread that gives out: busy %s, nothing to give out %s, waits for what the next depends on %s, for room in workers %s.\n",
		digits.Number(a.BusyWorkers), digits.Counted(max(1, len(a.Workers)), "worker"), digits.Percent(f.Busy), digits.Percent(f.Idle), digits.Percent(f.Depends), digits.Percent(f.Full))
	fmt.Fprintln(w, verdictWords[a.Verdict])
	if o := a.Oldest; o != nil && a.Verdict != applier.KeepsUp {
		fmt.Fprintf(w, "The longest that was seen open: %s", digits.Age(o.Open))
		if o.Transaction != "" {
			fmt.Fprintf(w, ", %s", oneline.Of(o.Transaction))
		}
		if o.Rows >= 0 {
			fmt.Fprintf(w, ", %s changed", digits.Counted(o.Rows, "row"))
		}
		fmt.Fprintln(w)
	}
	for _, u := range a.Unread {
		fmt.Fprintf(w, "not seen: %s: %s\n", u.What, oneline.Of(u.Why))
	}
}

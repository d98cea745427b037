package advise

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/host"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/serve/advice"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/live"
)

// glanceDefault is how long a server is watched: long enough for two looks, at which something has to hold to be found.
const glanceDefault = 1500 * time.Millisecond

// moment is what is wrong with a server just now.
type moment struct {
	findings []advise.Finding
	missing  []fleet.Trouble // what could not be read, so that nothing is known of it
	watched  time.Duration
}

// momentChecks are findings of watch/rules about a server, in addition to those that package advise looks for itself.
var momentChecks = []advise.Check{
	{ID: "server.*", Title: "at the moment: a server that is down, hangs, stalls, or was restarted"}, {ID: "repl.stopped", Title: "at the moment: replication that stopped"},
	{ID: "repl.lag", Title: "at the moment: a replica that is behind"}, {ID: "trx.long", Title: "at the moment: transactions that are open for long"}, {ID: "undo.history", Title: "at the moment: old rows that cannot be removed"},
	{ID: "redo.pressure", Title: "at the moment: a redo log that is nearly full"}, {ID: "lock.blocker", Title: "at the moment: a transaction that others wait for"}, {ID: "lock.global", Title: "at the moment: a lock of the whole server"},
	{ID: "lock.user", Title: "at the moment: a lock of GET_LOCK() that others wait for"}, {ID: "mdl.blocker", Title: "at the moment: a session that keeps a table from others"}, {ID: "deadlock.rate", Title: "at the moment: frequent deadlocks"},
	{ID: "threads.pileup", Title: "at the moment: threads that pile up"}, {ID: "commit.*", Title: "at the moment: commits that wait"}, {ID: "conn.aborted", Title: "at the moment: connections that are cut"},
	{ID: "galera.non_primary", Title: "at the moment: a member without the majority"}, {ID: "galera.not_synced", Title: "at the moment: a member that is not synced"}, {ID: "clock.skew", Title: "at the moment: a clock that is wrong"},
	{ID: "cert.server", Title: "at the moment: see sec.tls"},
}

// allChecks are all things that are looked for.
func allChecks() []advise.Check {
	list := slices.Concat(advice.Checks(), momentChecks)
	slices.SortFunc(list, func(a, b advise.Check) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// glance begins to watch a server; what it returns waits until --look is over, unless nobody wants to know any more, and says what was seen.
func (f *adviseFlags) glance(ctx context.Context, w config.Watched) func(wait bool) moment {
	if f.look == 0 {
		return func(bool) moment { return moment{} }
	}
	begun := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	var group collect.Group
	board, err := serve.GlanceBriefly(ctx, &group, []config.Watched{w})
	return func(wait bool) (m moment) {
		defer group.Wait()
		defer cancel()
		if err != nil {
			m.missing = append(m.missing, fleet.Trouble{What: "what is wrong at the moment", Why: err.Error()})
			return m
		}
		if !wait || delay.For(ctx, f.look-time.Since(begun)) != nil {
			return m
		}
		m.watched = time.Since(begun)
		f.see(board, w.Instance.ID, &m)
		return m
	}
}

// see takes what a board says of a server, and of the disks that its data are on.
func (f *adviseFlags) see(board *live.Board, id string, m *moment) {
	d, known := board.Detail(id)
	if !known || d.Seen == 0 {
		m.missing = append(m.missing, fleet.Trouble{What: "what is wrong at the moment", Why: "the server did not answer soon enough; a longer --look waits for it"})
	}
	for _, gap := range d.Gaps {
		gap.What = "at the moment: " + gap.What
		m.missing = append(m.missing, gap)
	}
	take := func(a advise.Finding) {
		if a.Evidence = append(a.Evidence, "seen at the moment, while watching for "+digits.Span(m.watched)); f.wants(a.ID) {
			m.findings = append(m.findings, a)
		}
	}
	for _, x := range d.Findings {
		take(advice.OfFinding(x))
	}
	machine, ok := board.Detail(d.Host)
	if !ok || d.Host == "" {
		return
	}
	h, err := host.New(host.Options{})
	if err != nil {
		return
	}
	defer h.Close()
	disks, ok := advice.DisksOf(h, d.Facts["datadir"])
	for _, x := range machine.Findings {
		if a, stands := advice.Standing(x); ok && stands && disks.Holds(x) {
			take(a)
		}
	}
}

// joined are findings of both kinds. What both know of, such as a replica that accepts writes, is told once.
func (f *adviseFlags) joined(list, moment []advise.Finding) []advise.Finding {
	for _, m := range moment {
		switch {
		case m.ID == "cert.server" && slices.ContainsFunc(list, func(x advise.Finding) bool { return x.ID == "sec.tls" && x.Object == "certificate" }):
		case slices.ContainsFunc(list, func(x advise.Finding) bool { return x.ID == m.ID && x.Severity >= m.Severity }) && m.ID != "mem.overcommit":
		default:
			list = append(list, m)
		}
	}
	advise.Rank(list)
	return list
}

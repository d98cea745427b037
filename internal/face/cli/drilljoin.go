package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/store/state"
)

// drillLoader puts logical backups into a drill's server.
func drillLoader() drill.Loader { return loader{} }

type loader struct{}

// Load loads a backup and compares every table with the manifest.
func (loader) Load(ctx context.Context, q drill.LoadRequest) (drill.Loaded, error) {
	var out drill.Loaded
	res, err := load.Restore(ctx, load.Options{Repo: q.Repo, Backup: q.Backup, Into: q.Into, Threads: q.Threads, SkipIncompatible: true, Hold: true,
		Confirm: func(p load.Plan) error {
			for _, f := range p.Findings {
				if f.Mapped == "" {
					continue // it is left out, which the result says
				}
				out.Notes = append(out.Notes, findingWords(f))
			}
			out.Notes = append(out.Notes, p.Notes...)
			return nil
		},
		Progress: func(p load.Progress) { q.Progress(p.Stage, p.Bytes, p.Total) }})
	if !cameToEnd(err) {
		return out, err
	}
	accounts := false // some are missing
	for _, f := range res.LeftOut {
		accounts = accounts || strings.HasPrefix(f.What, "account ")
		switch text := f.What + ": " + f.Reason; {
		case strings.HasPrefix(f.What, "account "): // the throw-away server may lack ways to log in
			out.Notes = append(out.Notes, text)
		case !strings.HasPrefix(f.What, "table "): // a table that is missing is missed when they are counted
			out.LeftOut = append(out.LeftOut, text)
		}
	}
	for _, f := range res.Broken {
		text := f.What + " does not work: " + f.Reason
		if accounts { // one of them may be its definer
			out.Notes = append(out.Notes, text)
		} else {
			out.LeftOut = append(out.LeftOut, text)
		}
	}
	out.Tables, out.Rows, out.Bytes = res.Tables, res.Rows, res.Bytes
	// That accounts were there (res.Kept) is nothing to know: those are the throw-away server's own.
	out.Notes = append(out.Notes, res.Notes...)
	for _, t := range res.Different {
		out.Different = append(out.Different, fmt.Sprintf("%s.%s (%s, sum %s; the backup has %s)", t.Schema, t.Table, digits.Counted(t.Rows, "row"), t.Sum, t.Wants))
	}
	return out, nil
}

// drillRoller rolls a drill's server forward with the logs that are mirrored at a place.
func drillRoller(place, identity string, trust logTrust) drill.Roller {
	return roller{place, identity, trust}
}

type roller struct {
	place, identity string
	trust           logTrust
}

// Roll applies all that is mirrored behind the backup's position.
func (r roller) Roll(ctx context.Context, q drill.RollRequest) (drill.Rolled, error) {
	place, closePlace, err := openPlace(ctx, r.place, r.identity)
	if err != nil {
		return drill.Rolled{}, err
	}
	defer closePlace()
	res, err := mirror.Roll(ctx, r.trust.of(place), mirrorDir("", r.place), q.Backup, binlog.RollOptions{Into: q.Into,
		Tell: func(p binlog.Progress) { q.Progress("roll forward", p.Bytes, p.Total) }})
	switch {
	case errors.Is(err, mirror.ErrNone):
		return drill.Rolled{}, drill.ErrNoLogs
	case errors.Is(err, binlog.ErrShort):
		return drill.Rolled{}, fmt.Errorf("%w: logs %s: %w", drill.ErrShort, res.Series.Key, err)
	case err != nil && res.Series.Key != "":
		return drill.Rolled{}, fmt.Errorf("logs %s: %w", res.Series.Key, err)
	case err != nil:
		return drill.Rolled{}, err
	}
	out := drill.Rolled{Transactions: res.Transactions, GTIDSet: res.GTIDs.String(), Time: res.LastTime}
	out.Notes = res.Notes
	if res.Newer != "" {
		out.Notes = append(slices.Clip(out.Notes), fmt.Sprintf("the server began its binary logs anew behind this backup (series %s: RESET, or other data): it is rolled forward to the end of series %s; take a new backup", res.Newer, res.Series.Key))
	}
	return out, nil
}

// seriesOf are the mirrored logs of a server, the newest life of it first.
func seriesOf(ctx context.Context, place mirror.Place, dir, identity string) ([]mirror.Series, error) {
	all, err := mirror.List(ctx, place, dir)
	return mirror.Of(all, identity), err
}

// mirrored looks how far the mirrored logs of a backup's server reach that count by a policy, nil where there are none; short: they end
// before the backup's position; doubt: what is there and does not count, and why.
func mirrored(ctx context.Context, at, identity string, newest repo.Header, policy repo.Policy) (m *state.Mirror, short bool, doubt string, err error) {
	place, closePlace, err := openPlace(ctx, at, identity)
	if err != nil {
		return nil, false, "", err
	}
	defer closePlace()
	place.Policy = policy
	dir := mirrorDir("", at)
	list, err := seriesOf(ctx, place, dir, newest.Server.Identity)
	if err != nil {
		return nil, false, "", err
	}
	var s mirror.Series
	for i := 0; i < len(list) && len(s.Logs) == 0; i++ { // one that a stranger put there hides none
		var why string
		if s, why, err = list[i].Counted(ctx, place, dir); err != nil {
			return nil, false, "", err
		}
		doubt = cmp.Or(doubt, why)
	}
	logs := s.Logs
	if len(logs) == 0 {
		return nil, false, doubt, nil
	}
	m = &state.Mirror{Place: at, Last: logs[len(logs)-1].Last}
	m.First, m.Gap = unbroken(s)
	if m.First.IsZero() {
		m.First = lockedFirst(logs[len(logs)-1], newest)
	}
	short = newest.Position.File != ""
	for _, l := range logs {
		order := binlog.CompareNames(l.Name, newest.Position.File)
		if order > 0 || order == 0 && l.Size >= newest.Position.Offset {
			short = false
		}
	}
	return m, short, doubt, nil
}

// lockedFirst is when a log begins at the latest that cannot be read here: it is encrypted, being written, and no identity is given. Logs
// before it are missing, or there are none. Where the backup's position lies in it, it begins before the backup.
func lockedFirst(l mirror.Log, newest repo.Header) time.Time {
	if l.Name == newest.Position.File {
		return newest.Began
	}
	return l.Last
}

// unbroken finds where the run of logs that ends now begins, and what is missing before it.
func unbroken(s mirror.Series) (first time.Time, gap string) {
	first = s.Logs[0].First
	gaps := s.Gaps()
	if len(gaps) == 0 {
		return first, ""
	}
	last := gaps[len(gaps)-1]
	for i := range s.Logs {
		if s.Logs[i].Name == last.Before {
			first = s.Logs[i].First
		}
	}
	return first, last.String()
}

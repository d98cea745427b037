// Package join lets a drill load backups and roll them forward.
package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/physical"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/store/state"
)

// Loader puts logical backups into a drill's server.
func Loader() drill.Loader { return loader{} }

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
				out.Notes = append(out.Notes, FindingWords(f))
			}
			out.Notes = append(out.Notes, p.Notes...)
			return nil
		},
		Progress: func(p load.Progress) { q.Progress(p.Stage, p.Bytes, p.Total) }})
	if !CameToEnd(err) {
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

// Roller rolls a drill's server forward with the logs that are mirrored at a place.
func Roller(place, identity string, trust places.LogTrust) drill.Roller {
	return roller{place, identity, trust}
}

type roller struct {
	place, identity string
	trust           places.LogTrust
}

// Roll applies all that is mirrored behind the backup's position.
func (r roller) Roll(ctx context.Context, q drill.RollRequest) (drill.Rolled, error) {
	place, closePlace, err := places.OpenLogs(ctx, r.place, r.identity)
	if err != nil {
		return drill.Rolled{}, err
	}
	defer closePlace()
	res, err := mirror.Roll(ctx, r.trust.Of(place), places.MirrorDir("", r.place), q.Backup, binlog.RollOptions{Into: q.Into,
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
		out.Notes = append(slices.Clip(out.Notes), fmt.Sprintf("the server restarted its binary logs after this backup (series %s: RESET, or other data): it is rolled forward to the end of series %s; take a new backup", res.Newer, res.Series.Key))
	}
	return out, nil
}

// Failure gives an error its hint.
func Failure(err error) error {
	var d *drill.Error
	if errors.As(err, &d) {
		return fault.New(fault.Failed, d.Hint, err)
	}
	var p *physical.Error
	if errors.As(err, &p) {
		return fault.New(fault.Failed, p.Hint, err)
	}
	if hint := places.Mistrusted(err); hint != "" {
		return fault.New(fault.Failed, hint, err)
	}
	if errors.Is(err, repo.ErrNoBackup) {
		return fault.New(fault.Failed, "risso backup --to takes one", err)
	}
	return err
}

// Drilled is a proof as the store of facts keeps it.
func Drilled(p drill.Proof, place, instance string) (state.Drill, error) {
	b, err := json.Marshal(p)
	return state.Drill{Place: place, Backup: p.Backup, Instance: instance, Began: p.Began, Ended: p.Ended, Passed: p.Passed, Recovery: p.Recovery, Reached: p.Reached(), Text: p.Summary(), Proof: b}, err
}

// CameToEnd says whether a restore came to its end, whatever it found there.
func CameToEnd(err error) bool {
	return err == nil || errors.Is(err, load.ErrDifferent) || errors.Is(err, load.ErrLeftOut) || errors.Is(err, load.ErrBroken) || errors.Is(err, load.ErrOrphans)
}

func FindingWords(f load.Finding) string {
	if f.Mapped != "" {
		return f.What + ": " + f.Reason + ": " + f.Mapped + " instead"
	}
	text := f.What + " cannot come along: " + f.Reason
	if strings.HasPrefix(f.What, "view ") {
		text += "\n  " + f.Create
	}
	return text
}

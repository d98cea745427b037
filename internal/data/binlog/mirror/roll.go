package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/data/repo"
)

// Of returns those of some series that are a server's, the newest life of it first: the keys of MariaDB's begin with its identity,
// followed by a time, and after RESET by a number.
func Of(all []Series, identity string) []Series {
	var list []Series
	for _, s := range all {
		if s.Of(identity) && len(s.Logs) > 0 {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b Series) int { return latest(b).Compare(latest(a)) })
	return list
}

// Of reports whether a series of logs is of a server.
func (s Series) Of(identity string) bool {
	rest, ok := strings.CutPrefix(s.Key, identity)
	return ok && (rest == "" || rest[0] == '-' || rest[0] == '.')
}

// Errors of rolling a backup forward.
var (
	ErrNone  = errors.New("no binary logs of that server are mirrored")
	ErrAnew  = errors.New("the server restarted its binary logs before the time to stop at")
	ErrOther = errors.New("none of the mirrored series of binary logs continues the backup")
)

// Rolled is what was done, and with which series.
type Rolled struct {
	binlog.RollResult
	Series Series
	Newer  string // the key of the series with which the server restarted its logs after that; nothing of it is applied
}

// Roll plans, and carries that out.
func Roll(ctx context.Context, place Place, dir string, backup repo.Header, o binlog.RollOptions) (Rolled, error) {
	p, err := PlanRoll(ctx, place, dir, backup, o)
	out := Rolled{Series: p.Series, Newer: p.Newer}
	if err == nil {
		out.RollResult, err = p.Execute(ctx, change.Log{})
	}
	return out, err
}

// Plan is what would be done, and with which series.
type Plan struct {
	*binlog.Plan        // nil if no series was read
	Series       Series // as in Rolled
	Newer        string
}

// PlanRoll plans to roll a server forward that has a backup, with the one series that goes on from the backup's position: after RESET the newest
// series is of another history, whose names, places and GTIDs start over. Files, From, Own and Moment of o are chosen here. The error wraps
// ErrNone if nothing is mirrored of the backup's server, binlog.ErrShort if its logs do not yet reach the position, ErrOther where
// no series is found to continue it, and ErrAnew if the time to stop at is after a RESET.
func PlanRoll(ctx context.Context, place Place, dir string, backup repo.Header, o binlog.RollOptions) (Plan, error) {
	all, err := List(ctx, place, dir)
	if err != nil {
		return Plan{}, err
	}
	list := Of(all, backup.Server.Identity)
	if len(list) == 0 {
		return Plan{}, ErrNone
	}
	var why []error
	o.From, o.Own, o.Moment = backup.Position, true, backup.Moment()
	for i, s := range list {
		out := Plan{Series: s}
		o.Files, o.Lacks = s.Files(place, dir), s.Lacks()
		if i > 0 {
			out.Newer = list[i-1].Key
			if err := anew(ctx, s, list[i-1], o); err != nil {
				return out, err
			}
		}
		if i+1 < len(list) && s.doubtful(o) {
			older := o
			older.Files = list[i+1].Files(place, dir)
			if _, err := binlog.PlanRoll(ctx, older); err == nil {
				return out, fmt.Errorf("%w with certainty: the server restarted its logs in the same second as the backup, so it may be %s or %s", ErrOther, list[i+1].Key, s.Key)
			}
		}
		out.Plan, err = binlog.PlanRoll(ctx, o)
		if len(list) == 1 || !errors.Is(err, binlog.ErrHistory) && !s.beginsBehind(o, out.Result, err) {
			return out, err
		}
		why = append(why, fmt.Errorf("series %s: %w", s.Key, err))
	}
	return Plan{Series: list[0]}, fmt.Errorf("%w %s: %w", ErrOther, backup.ID, errors.Join(why...))
}

// anew refuses a time after the end of a series if the server has restarted its logs since. This is found out before anything is done.
func anew(ctx context.Context, s, newer Series, o binlog.RollOptions) error {
	begun := newer.Logs[0].First
	if !o.Stop.Time.After(begun) {
		return nil
	}
	if p, err := binlog.PlanRoll(ctx, o); err != nil || !p.Result.AtEnd {
		return nil // rolling forward reports what is wrong
	}
	return fmt.Errorf("%w: series %s, which continues the backup, ends at %s, and %s begins at %s (RESET, or other data): what was committed in between is in neither", ErrAnew, s.Key,
		latest(s).UTC().Format(time.DateTime+"Z"), newer.Key, begun.UTC().Format(time.DateTime+"Z"))
}

// beginsBehind reports whether a series does not continue the backup because of where it begins. One that has a hole further on, or without
// GTIDs began before the backup, is the right one, and another that has logs of the same names is not.
func (s Series) beginsBehind(o binlog.RollOptions, res binlog.RollResult, err error) bool {
	return errors.Is(err, binlog.ErrGap) && len(res.Stretches) == 0 && (o.From.GTIDSet != "" || s.Logs[0].First.Unix() > o.Moment.Unix())
}

// doubtful reports whether nothing shows if the series was begun before the backup's moment or after it.
func (s Series) doubtful(o binlog.RollOptions) bool {
	return o.From.GTIDSet == "" && slices.ContainsFunc(s.Logs, func(l Log) bool { return l.Name == o.From.File && l.First.Unix() == o.Moment.Unix() })
}

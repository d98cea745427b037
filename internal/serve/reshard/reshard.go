// Package reshard moves rows of shards from one group of servers to another while they are written: it copies them, follows the binary log, refuses writes of
// them for a moment, compares both sides, and puts another map in the place of the old one. What it did is in a journal by which another process goes on, or
// takes it back.
//
// The binary log only says which rows changed; what they are now is read again on the old primary. So the order in which rows are copied and changes
// followed does not matter, and doing something twice does no harm: once nobody writes, the two sides are the same. The reads lock, since a server sends a
// transaction's events before the transaction can be seen.
package reshard

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	groups "github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
)

// Limits bound a move.
type Limits struct {
	Rows  int           // that are copied, or deleted, at a time
	Pause time.Duration // between two deletions
	Lock  time.Duration // how long a statement waits for a lock; others wait behind it meanwhile
	Whole int64         // tables of more rows are compared beforehand, so that writes are not refused for long
	Near  int           // so few changed rows are left when writes are refused
	Grace time.Duration // how long the old group refuses the keys after the switch, at least
}

// DefaultLimits are those of a command.
func DefaultLimits() Limits {
	return Limits{Rows: 500, Pause: 20 * time.Millisecond, Lock: 2 * time.Second, Near: 200, Whole: 20_000, Grace: time.Minute}
}

// Mover moves rows.
type Mover struct {
	Groups *groups.Room
	Maps   *keep.Room
	Limits Limits
	Keep   bool         // the old rows stay, also those of a move that was to delete them
	Say    func(string) // how far it is; nil: nobody listens
	// Before is called before each stage of a move, for tests; an error ends it there as a kill would.
	Before func(shard.Stage) error
}

// Errors of this package.
var (
	ErrRefused = errors.New("the rows cannot be moved")
	ErrDiffers = errors.New("the copy is not the same as the rows")
	ErrMoved   = errors.New("the primary of the group is another server than when the move began")
	ErrTaken   = errors.New("another process has taken the move over")
	ErrNothing = errors.New("no move of the map is under way")
	ErrChanged = errors.New("somebody else changed the map since the move was planned")
	ErrTooLate = errors.New("the rows have moved already")
	ErrLost    = errors.New("the new group may have lost rows that moved")
)

// Plan is a move that was checked.
type Plan struct {
	Move  shard.Move
	Steps change.Plan
	Rows  int64 // that move now
}

// Plan checks a move of rows, and changes nothing.
func (m *Mover) Plan(ctx context.Context, name string, a shard.Asked, keepRows bool) (*Plan, error) {
	mp, err := m.Maps.Map(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := m.Maps.Still(ctx, name); err != nil { // else its copy would be taken for rows that are in the way
		return nil, err
	}
	if err := keep.Sure(mp); err != nil {
		return nil, err
	}
	part, from, after, err := mp.Plan(a, time.Now().UTC())
	if err != nil {
		return nil, err
	}
	var id [4]byte
	rand.Read(id[:])
	p := &Plan{Move: shard.Move{ID: hex.EncodeToString(id[:]), Map: name, By: m.Maps.Who, Asked: a, Part: part, From: from, After: after, Stage: shard.Copying,
		Keep: keepRows, Grace: m.Limits.Grace, Began: time.Now().UTC()}}
	p.Move.After.Move = p.Move.ID
	for _, t := range mp.Tables {
		p.Move.Tables = append(p.Move.Tables, shard.Progress{Table: t})
	}
	r, err := m.open(ctx, &keep.Journal{Move: p.Move})
	if err != nil {
		return nil, err
	}
	defer r.close()
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	if err := r.vacant(ctx); err != nil {
		return nil, err
	}
	p.Move = r.j.Move
	if p.Rows, err = r.count(ctx, r.from); err != nil {
		return nil, err
	}
	p.Steps = steps(p)
	return p, nil
}

// steps is a move in words.
func steps(p *Plan) (out change.Plan) {
	copied := change.Step{What: "copy", Where: tables(&p.Move), Why: p.Move.Part.Words() + ", " + digits.Counted(p.Rows, "row") + " now, from group " + p.Move.From + " to group " + p.Move.Asked.To}
	return append(change.Plan{copied}, behindCopy(&p.Move)...)
}

// tables are the names of those of which rows move.
func tables(m *shard.Move) string {
	var names []string
	for _, t := range m.Tables {
		names = append(names, t.Table.Schema+"."+t.Table.Name)
	}
	return strings.Join(names, ", ")
}

// behindCopy is what follows the copy, in words.
func behindCopy(m *shard.Move) change.Plan {
	return append(change.Plan{
		{What: "follow the binary log of group", Where: m.From, Why: "until few changed rows are left"},
		{What: "refuse writes of these keys in group", Where: m.From, Why: "by triggers; all other keys are written as before"},
		{What: "copy what changed last, and compare", Where: tables(m), Why: "count and checksum of the rows on both sides"},
		{What: "raise the epoch of map", Where: m.Map, Why: fmt.Sprintf("to %d: shard %s is in group %s", m.After.Epoch, m.Asked.New, m.Asked.To)},
	}, behindSwitch(m)...)
}

// behindSwitch is what follows the change of the map, in words.
func behindSwitch(m *shard.Move) change.Plan {
	old := change.Step{What: "delete the old rows in group", Where: m.From, Why: "in small steps, at the earliest " + digits.Span(m.Grace) + " after the switch"}
	if m.Keep {
		old = change.Step{What: "leave the old rows in group", Where: m.From}
	}
	return change.Plan{old, {What: "drop the triggers in group", Where: m.From}}
}

// back is how a move is taken back, in words.
func back(m *shard.Move) change.Plan {
	plan := change.Plan{{What: "drop the triggers in group", Where: m.From, Why: "writes of the rows are taken as before"}}
	if m.Log.File != "" {
		plan = append(plan, change.Step{What: "delete the copy in group", Where: m.Asked.To, Why: "in small steps"})
	}
	return plan
}

// PlanResume says what Resume would do. Nothing is changed, and no server is asked.
func (m *Mover) PlanResume(ctx context.Context, name string) (change.Plan, error) {
	j, stage, err := m.cutOff(ctx, name)
	if err != nil {
		return nil, err
	}
	j.Keep = j.Keep || m.Keep
	switch stage {
	case shard.Undoing:
		return back(&j.Move), nil
	case shard.Cleaning:
		return behindSwitch(&j.Move), nil
	}
	var plan change.Plan
	if guarded(j, stage) {
		plan = change.Plan{{What: "drop the triggers in group", Where: j.From, Why: "writes of the rows are taken while the copy is compared again"}}
	}
	plan = append(plan, change.Step{What: "go on with the copy of", Where: tables(&j.Move), Why: j.Part.Words() + ", from group " + j.From + " to group " + j.Asked.To})
	return append(plan, behindCopy(&j.Move)...), nil
}

// PlanUndo says what Undo would do. Nothing is changed, and no server is asked.
func (m *Mover) PlanUndo(ctx context.Context, name string) (change.Plan, error) {
	j, stage, err := m.cutOff(ctx, name)
	if err != nil {
		return nil, err
	}
	if stage == shard.Cleaning {
		return nil, tooLate(j)
	}
	return back(&j.Move), nil
}

// cutOff is the move of a map that is under way, and its stage as the map says it.
func (m *Mover) cutOff(ctx context.Context, name string) (*keep.Journal, shard.Stage, error) {
	j, err := m.left(ctx, name)
	if err != nil {
		return nil, "", err
	}
	if j.Stage == shard.Switching {
		mp, err := m.Maps.Map(ctx, name)
		if err != nil && !errors.Is(err, keep.ErrNone) {
			return nil, "", err
		}
		if err == nil && j.Made(mp) {
			return j, shard.Cleaning, nil
		}
	}
	return j, j.Stage, nil
}

// tooLate refuses to take a move back whose map is switched.
func tooLate(j *keep.Journal) error {
	return fault.New(fault.Failed, "risso shard resume "+j.Map+" brings it to its end; then a move in the other direction", fmt.Errorf("map %s, epoch %d: %w", j.Map, j.After.Epoch, ErrTooLate))
}

// Run carries a plan out. An error leaves a move that Resume goes on with and Undo takes back.
func (m *Mover) Run(ctx context.Context, p *Plan) (*keep.Journal, error) {
	j, err := m.Maps.Begin(ctx, p.Move)
	if errors.Is(err, keep.ErrOther) { // somebody else was faster
		err = cmp.Or(m.Maps.Still(ctx, p.Move.Map), fault.New(fault.Failed, "risso shard list "+p.Move.Map+" shows how it is now; then begin again", fmt.Errorf("map %s: %w", p.Move.Map, ErrChanged)))
	}
	if err != nil {
		return nil, err
	}
	return j, m.goOn(ctx, j)
}

// left is the move of a map that is under way.
func (m *Mover) left(ctx context.Context, name string) (*keep.Journal, error) {
	j, err := m.Maps.Last(ctx, name)
	if err == nil && (j == nil || !j.Ended.IsZero()) {
		err = fmt.Errorf("%s: %w", name, ErrNothing)
	}
	return j, err
}

// Resume goes on with a move that was cut off. A process that still works on it is stopped by its next entry into the journal.
func (m *Mover) Resume(ctx context.Context, name string) (*keep.Journal, error) {
	j, err := m.left(ctx, name)
	if err != nil {
		return nil, err
	}
	j.Keep = j.Keep || m.Keep
	if err := m.takeOver(ctx, j); err != nil {
		return j, err
	}
	return j, m.goOn(ctx, j)
}

// Undo takes a move back whose map is not switched: the guards are dropped, and the copy is deleted.
func (m *Mover) Undo(ctx context.Context, name string) (*keep.Journal, error) {
	j, err := m.left(ctx, name)
	if err != nil {
		return nil, err
	}
	if j.Stage != shard.Cleaning {
		if err := m.takeOver(ctx, j); err != nil {
			return j, err
		}
	}
	if j.Stage == shard.Cleaning {
		return j, tooLate(j)
	}
	j.Stage = shard.Undoing
	if err := j.Save(ctx); err != nil {
		return j, taken(ctx, j, err)
	}
	return j, m.goOn(ctx, j)
}

// guarded reports whether the old group may refuse writes of rows of a map that is not switched.
func guarded(j *keep.Journal, stage shard.Stage) bool {
	return stage == shard.Switching || stage == shard.Copying && !j.Fenced.IsZero()
}

// takeOver makes a move that of this process. One that worked on it before fails at its next entry into the journal, or, if it made its last one before it
// switches the map, at that.
func (m *Mover) takeOver(ctx context.Context, j *keep.Journal) error {
	err := j.Save(ctx)
	if err == nil {
		err = m.seeSwitched(ctx, j)
	}
	return taken(ctx, j, err)
}

// seeSwitched finds out whether a process that was killed while it switched has done so: the map says it, and is renewed, so that it is not switched later. A
// map that is gone was not switched, as one whose rows move is not removed.
func (m *Mover) seeSwitched(ctx context.Context, j *keep.Journal) error {
	if j.Stage != shard.Switching {
		return nil
	}
	mp, err := m.Maps.Renew(ctx, j.Map)
	if errors.Is(err, keep.ErrNone) || err == nil && !j.Made(mp) {
		return nil
	} else if err != nil {
		return err
	}
	j.Stage, j.Switch = shard.Cleaning, mp.Changed
	j.Blocked = j.Switch.Sub(j.Fenced)
	return j.Save(ctx)
}

// planned sees that the map is the one still that the move was planned by, and tells its version.
func (r *run) planned(ctx context.Context) (int64, error) {
	mp, version, err := r.Maps.Read(ctx, r.j.Map)
	if err == nil && mp.Epoch+1 != r.j.After.Epoch {
		err = r.changed(mp.Epoch)
	}
	return version, err
}

// changed is the error of a map that somebody else changed.
func (r *run) changed(epoch uint64) error {
	return fault.New(fault.Failed, "risso shard undo "+r.j.Map+" takes the move back; then begin again", fmt.Errorf("map %s has epoch %d, and not %d: %w", r.j.Map, epoch, r.j.After.Epoch-1, ErrChanged))
}

// taken is why a move ended: err, or that another process has followed, which ends the session of this one and makes its entries into the journal fail.
func taken(ctx context.Context, j *keep.Journal, err error) error {
	if err == nil || !errors.Is(err, keep.ErrOther) && !j.Followed(ctx) {
		return err
	}
	return fault.New(fault.Failed, "that one brings it to its end, or takes it back; risso shard resume "+j.Map+" goes on if it has ended before", fmt.Errorf("map %s: %w", j.Map, ErrTaken))
}

// goOn brings a move to its end, from the stage that it has.
func (m *Mover) goOn(ctx context.Context, j *keep.Journal) error {
	return taken(ctx, j, m.work(ctx, j))
}

// work goes through the stages.
func (m *Mover) work(ctx context.Context, j *keep.Journal) error {
	r, err := m.open(ctx, j)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if guarded(j, j.Stage) { // what was known of the copy is lost, and writes are not refused while it is compared again
		if err := r.reopen(ctx); err != nil {
			return err
		}
	}
	for j.Ended.IsZero() {
		if m.Before != nil {
			if err := m.Before(j.Stage); err != nil {
				return err
			}
		}
		switch j.Stage {
		case shard.Copying:
			err = r.copying(ctx)
		case shard.Switching:
			err = r.switching(ctx)
		case shard.Cleaning:
			err = r.cleaning(ctx)
		case shard.Undoing:
			err = r.undoing(ctx)
		default:
			err = fmt.Errorf("a move has no stage %q: a newer Risso wrote the journal", j.Stage)
		}
		if err != nil {
			return fmt.Errorf("while %s: %w", j.Stage, err)
		}
		if err := j.Save(ctx); err != nil {
			return err
		}
	}
	return nil
}

// say tells how far it is.
func (m *Mover) say(format string, args ...any) {
	if m.Say != nil {
		m.Say(fmt.Sprintf(format, args...))
	}
}

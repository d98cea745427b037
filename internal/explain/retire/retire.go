package retire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Retirer retires indexes of one server.
type Retirer struct {
	Folder   Folder
	Server   Server
	Replicas []Server      // that are watched as well
	Absent   []string      // other servers of the group that cannot be asked now, or may be of it: what runs there is not known
	Kept     Kept          // what risso serve keeps of what statements cost; nil: only the servers' own counters are compared
	Watch    time.Duration // how long an index is watched before it is dropped
	Now      func() time.Time

	At func(point string) // for tests: called between what is written down and what is done
}

// Kept is what somebody kept, minute by minute, of what classes of statements cost on servers: it goes back to before an index was hidden, and
// over restarts.
type Kept interface {
	// Classes are what classes of statements that name one of these tables, or views, cost on a server in a time. Their digests are class IDs.
	Classes(ctx context.Context, seat string, from, to time.Time, names []mysql.TableName) ([]Class, error)
	// Digest is what a class cost on a server in a time, by the server's own name for it.
	Digest(ctx context.Context, seat string, from, to time.Time, digest string) (fleet.Cost, error)
	// Knew reports whether anything of a server is kept of a time.
	Knew(ctx context.Context, seat string, from, to time.Time) (bool, error)
}

// ErrRefused is the reason when an index must stay.
var ErrRefused = errors.New("the index must stay")

func (t *Retirer) point(name string) {
	if t.At != nil {
		t.At(name)
	}
}

// Prepare says what retiring an index will do. Nothing is changed, nothing is written down.
func (t *Retirer) Prepare(ctx context.Context, table mysql.TableName, index string) (*Record, error) {
	s, facts, state, err := t.look(ctx, table, index)
	switch {
	case err != nil:
		return nil, err
	case facts == nil:
		return nil, fmt.Errorf("there is no table %s", table)
	case state == nil:
		return nil, fmt.Errorf("table %s has no index %s", table, mysql.Quote(index))
	case state.Needed != "":
		return nil, fmt.Errorf("%w: %s", ErrRefused, state.Needed)
	case slices.ContainsFunc(s.Missing, func(m fleet.Trouble) bool { return m.What == "replication" }):
		return nil, fleet.WithRemedy(fmt.Errorf("%w: whether this server is a replica is not known: the account may not read it", ErrRefused), s.Grant(s.ReplicaPrivilege()))
	case len(s.Channels) > 0:
		return nil, fmt.Errorf("%w: this server is a replica of %s: retire it there", ErrRefused, s.Channels[0].Source)
	}
	r := &Record{Server: t.Server.Name, Seat: s.Place(), Schema: table.Schema, Table: table.Name, Definition: state.Text, Began: t.Now().UTC(), Watch: t.Watch.String(), Bytes: facts.Bytes[index]}
	for _, k := range facts.Keys {
		if strings.EqualFold(k.Name, index) {
			r.Index = k.Name
		}
	}
	alter := "ALTER TABLE " + table.String() + " "
	if hide := s.HideIndex(r.Index, true); hide != "" {
		r.Hide, r.Show = alter+hide, alter+s.HideIndex(r.Index, false)
	}
	r.Drop, r.Undo = alter+"DROP INDEX "+mysql.Quote(r.Index), alter+"ADD "+state.Text
	list, err := t.Folder.List()
	if err != nil {
		return nil, err
	}
	for _, old := range list {
		switch {
		case old.Ended() || old.Seat != r.Seat || old.TableName() != r.TableName():
		case old.Index == r.Index:
			return nil, fmt.Errorf("%s is being retired already: %s since %s", r.Object(), old.Phase, digits.Span(t.Now().Sub(old.Began)))
		default:
			return nil, fmt.Errorf("%s is being retired: one index of a table after the other, else nobody knows which of them a class of statements needs that gets slower", old.Object())
		}
	}
	if err := t.others(ctx, r, s, facts); err != nil {
		return nil, err
	}
	if state.Hidden {
		return nil, fmt.Errorf("%w as it is: it is hidden already, so that what statements cost before is not known", ErrRefused)
	}
	return r, nil
}

// others looks at the replicas: a hint may be in what only they run. It notes who uses the index, and who is not watched.
func (t *Retirer) others(ctx context.Context, r *Record, s *advise.Server, facts *advise.Table) error {
	note := func(name string, u *advise.Use) {
		if u != nil && u.Reads[r.Index] > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: it was used %s times since the server began to count", name, digits.Count(u.Reads[r.Index])))
		}
	}
	note(t.Server.Name, facts.Use)
	for _, replica := range t.Replicas {
		one := *t
		one.Server = replica
		_, facts, state, err := one.look(ctx, r.TableName(), r.Index)
		switch {
		case err != nil:
			return err
		case state == nil:
			r.Notes = append(r.Notes, replica.Name+": it is not there")
		case state.Needed != "":
			return fmt.Errorf("%w: on %s: %s", ErrRefused, replica.Name, state.Needed)
		default:
			note(replica.Name, facts.Use)
		}
	}
	if more := s.Replicas - len(t.Replicas); more > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s connected that --replica does not name: what they run is not watched", digits.Plural(more, "replica is", "replicas are")))
	}
	return nil
}

// look reads a table and what of its index matters. facts is nil if there is no such table, state if there is no such index.
func (t *Retirer) look(ctx context.Context, table mysql.TableName, index string) (s *advise.Server, facts *advise.Table, state *advise.Retiring, err error) {
	s, facts, err = gather.One(ctx, t.Server.Target, t.Server.Traffic, table)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", t.Server.Name, err)
	}
	if facts != nil {
		if r, there := advise.Retire(s, facts, index); there {
			state = &r
		}
	}
	return s, facts, state, nil
}

// Plan is what Begin and, later, Check will do.
func (t *Retirer) Plan(r *Record) change.Plan {
	if r.Hide == "" {
		return change.Plan{{What: r.Drop, Why: "this server cannot hide an index: what needs it notices only when it is gone; undo: " + r.Undo, Do: func(ctx context.Context) error { return t.drop(ctx, r) }}}
	}
	return change.Plan{{What: r.Hide, Why: "no statement uses it from then on, it is maintained still; undo: " + r.Show, Do: func(ctx context.Context) error { return t.hide(ctx, r) }}}
}

// Later is what Check will do, in words.
func (t *Retirer) Later(r *Record) []string {
	if r.Hide == "" {
		return nil
	}
	return []string{"risso serve, or risso index check, compares what statements of the table cost then and before; at once when a class gets slower or fails: " + r.Show,
		fmt.Sprintf("after %s, if none does: %s; undo: %s", digits.Span(t.Watch), r.Drop, r.Undo)}
}

// Begin hides an index, or drops it where the server cannot hide it.
func (t *Retirer) Begin(ctx context.Context, r *Record) error {
	unlock, err := t.Folder.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	_, err = change.Execute(ctx, t.Plan(r), change.Log{})
	return err
}

// step writes down where a record is about to be, runs a statement, and writes down that it is there. An error of the statement leaves it
// where it was, if the server answered.
func (t *Retirer) step(ctx context.Context, r *Record, doing, done Phase, statement, why string) error {
	was := r.Phase
	r.Phase = doing
	if err := t.Folder.save(r); err != nil {
		return err
	}
	t.point(string(doing) + " written")
	if err := run(ctx, t.Server, statement); err != nil {
		if mysql.Gone(err) || ctx.Err() != nil {
			return err // the next check asks the server
		}
		if r.Phase = was; was == "" {
			r.Phase = Back
		}
		r.Log = append(r.Log, Entry{t.Now().UTC(), "refused: " + err.Error()})
		return errors.Join(err, t.Folder.save(r))
	}
	t.point(string(doing) + " done")
	return t.arrive(r, done, statement+why)
}

// arrive writes down that a record is in a phase.
func (t *Retirer) arrive(r *Record, done Phase, what string) error {
	now := t.Now().UTC()
	if r.Phase = done; done == Watching && r.Hidden.IsZero() {
		watch, err := time.ParseDuration(r.Watch)
		if err != nil {
			return fmt.Errorf("the journal of %s: %w", r.Object(), err)
		}
		r.Hidden, r.Due = now, now.Add(watch)
	}
	r.Log = append(r.Log, Entry{now, what})
	return t.Folder.save(r)
}

// servers are all that are watched.
func (t *Retirer) servers() []Server { return append([]Server{t.Server}, t.Replicas...) }

func (t *Retirer) hide(ctx context.Context, r *Record) error {
	for _, s := range t.servers() {
		l, err := baseline(ctx, s, r)
		if err != nil {
			return err
		}
		b := l.Baseline
		b.Time = t.Now().UTC()
		r.Baselines = append(r.Baselines, b)
	}
	return t.step(ctx, r, Hiding, Watching, r.Hide, "")
}

// drop drops an index, if nothing needs it by now.
func (t *Retirer) drop(ctx context.Context, r *Record) error {
	_, _, state, err := t.look(ctx, r.TableName(), r.Index)
	switch {
	case err != nil:
		return err
	case state != nil && state.Needed != "":
		return fmt.Errorf("%w: %s", ErrRefused, state.Needed)
	case state != nil && state.Text != r.Definition && !state.Hidden:
		return fmt.Errorf("%w: its definition is not what it was: %s", ErrRefused, state.Text)
	}
	return t.step(ctx, r, Dropping, Dropped, r.Drop, "; undo: "+r.Undo)
}

// Drop drops an index that is watched, now.
func (t *Retirer) Drop(ctx context.Context, r *Record) error {
	return t.locked(ctx, r, func() error {
		if err := t.settle(ctx, r); err != nil {
			return err
		}
		if r.Phase != Watching {
			return fmt.Errorf("%s is %s: only what is watched can be dropped", r.Object(), r.Phase)
		}
		return t.drop(ctx, r)
	})
}

// Back shows an index again, or makes it again if it is dropped.
func (t *Retirer) Back(ctx context.Context, r *Record) error {
	return t.locked(ctx, r, func() error {
		if err := t.settle(ctx, r); err != nil {
			return err
		}
		return t.back(ctx, r, "")
	})
}

func (t *Retirer) back(ctx context.Context, r *Record, why string) error {
	switch r.Phase {
	case Watching:
		return t.step(ctx, r, Returning, Back, r.Show, why)
	case Dropped:
		return t.step(ctx, r, Returning, Back, r.Undo, why)
	}
	return fmt.Errorf("%s is %s: there is nothing to take back", r.Object(), r.Phase)
}

// locked runs f while no other process works on the folder, with the record as it is on disk by now.
func (t *Retirer) locked(ctx context.Context, r *Record, f func() error) error {
	unlock, err := t.Folder.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	list, err := t.Folder.List()
	if err != nil && len(list) == 0 {
		return err
	}
	for _, now := range list {
		if t.Folder.path(now) == t.Folder.path(r) {
			*r = *now
		}
	}
	return f()
}

// settle finds out where an index is whose process was killed, or which somebody else has changed.
func (t *Retirer) settle(ctx context.Context, r *Record) error {
	if r.Ended() {
		return nil
	}
	s, facts, state, err := t.look(ctx, r.TableName(), r.Index)
	if err != nil {
		return err
	}
	if len(s.Channels) > 0 { // what is done to it here would be missing there
		return fmt.Errorf("%s: it is a replica of %s by now, so that nothing is done to %s here", t.Server.Name, s.Channels[0].Source, r.Object())
	}
	there, hidden := state != nil, state != nil && state.Hidden
	switch {
	case facts == nil:
		return t.arrive(r, Dropped, "the table is gone")
	case r.Phase == Hiding && hidden:
		return t.arrive(r, Watching, r.Hide+" (found done)")
	case r.Phase == Hiding && there:
		return t.step(ctx, r, Hiding, Watching, r.Hide, " (again)")
	case !there && r.Phase == Dropping:
		return t.arrive(r, Dropped, r.Drop+" (found done); undo: "+r.Undo)
	case !there && r.Phase == Returning:
		return t.step(ctx, r, Returning, Back, r.Undo, " (again)")
	case !there:
		return t.arrive(r, Dropped, "somebody else dropped the index; undo: "+r.Undo)
	case r.Phase == Returning && !hidden:
		return t.arrive(r, Back, r.Show+" (found done)"+r.because())
	case r.Phase == Returning:
		return t.step(ctx, r, Returning, Back, r.Show, " (again)"+r.because())
	case r.Phase == Dropping && r.Hide != "" && hidden:
		return t.arrive(r, Watching, "found not dropped")
	case r.Phase == Dropping && r.Hide == "":
		return t.arrive(r, Back, "found not dropped: a process was killed before it did")
	case !hidden:
		return t.arrive(r, Back, "somebody else has shown the index again")
	}
	return nil
}

// Checked is what a check of an index found and did.
type Checked struct {
	Record  *Record      `json:"-"`
	Worse   []Regression `json:"worse"`
	Watched int          `json:"watched"`           // classes of the table that ran since
	Fresh   int          `json:"fresh"`             // thereof such as did not run before
	Unasked []string     `json:"unasked,omitempty"` // servers that are watched, and could not be asked this time
	Unseen  []string     `json:"unseen,omitempty"`  // what ran and was not seen since the last check: on which server, and why
	Did     string       `json:"did"`               // in words; "" : nothing
}

// Check finds out where an index stands, compares what statements cost with what they did before it was hidden, shows it again if one is
// worse, and drops it when its time is over.
func (t *Retirer) Check(ctx context.Context, r *Record, dryRun bool) (c Checked, err error) {
	err = t.locked(ctx, r, func() error {
		if !dryRun {
			if err := t.settle(ctx, r); err != nil {
				return err
			}
		}
		c, err = t.check(ctx, r, dryRun)
		return err
	})
	c.Record = r
	return c, err
}

func (t *Retirer) check(ctx context.Context, r *Record, dryRun bool) (c Checked, err error) {
	if r.Phase != Watching {
		return c, nil
	}
	failed := t.compare(ctx, r, &c)
	now := t.Now().UTC()
	switch {
	case len(c.Worse) > 0 && dryRun:
		c.Did = "would be taken back: " + c.Worse[0].What
	case len(c.Worse) > 0:
		r.Worse = c.Worse
		c.Did = "taken back" + r.because()
		return c, t.back(ctx, r, r.because())
	case failed != nil:
		c.Did = "not dropped: " + failed.Error()
	case len(c.Unseen) > 0:
		c.Did = "watched on for " + digits.Span(max(r.Due.Sub(now), 0)) + "; not all that ran was seen: " + strings.Join(c.Unseen, "; ")
	case now.Before(r.Due):
		c.Did = "watched on for " + digits.Span(r.Due.Sub(now))
	case len(c.Unasked) > 0:
		c.Did = "not dropped: " + strings.Join(c.Unasked, ", ") + " could not be asked, so that it is not known what ran there"
	case len(r.Doubtful) > 0:
		d := r.Doubtful[0]
		c.Did = "not dropped: class " + d.Digest + " on " + d.Server + " " + d.What + "; risso index drop drops it nevertheless, risso index back shows it again"
	case dryRun:
		c.Did = "would be dropped"
	default:
		c.Did = "dropped; undo: " + r.Undo
		if err := t.drop(ctx, r); errors.Is(err, ErrRefused) {
			c.Did = "taken back, not dropped: " + err.Error()
			return c, t.back(ctx, r, "; "+err.Error())
		} else if err != nil {
			return c, err
		}
	}
	if !dryRun && r.Phase == Watching {
		if failed == nil {
			r.Checked = now
		}
		r.waits(now, c.Did)
		return c, errors.Join(failed, t.Folder.save(r))
	}
	return c, failed
}

// because says why an index is taken back; "" if no class got worse.
func (r *Record) because() string {
	if len(r.Worse) == 0 {
		return ""
	}
	g := r.Worse[0]
	return "; because class " + g.Digest + " on " + g.Server + " " + g.What
}

// waits writes down why an index is not dropped, though its time is over, if that is another reason than the last one.
func (r *Record) waits(now time.Time, did string) {
	if now.Before(r.Due) || !strings.HasPrefix(did, "not dropped") {
		return
	}
	if n := len(r.Log); n == 0 || kind(r.Log[n-1].What) != kind(did) {
		r.Log = append(r.Log, Entry{now, did})
	}
}

// compare compares all servers that are watched. One that cannot be asked does not keep the others from being judged; it is an error.
func (t *Retirer) compare(ctx context.Context, r *Record, c *Checked) error {
	var j Judgement
	var failed []error
	asked, longest := map[string]bool{}, time.Duration(0)
	now := t.Now().UTC()
	for _, s := range t.servers() {
		l, err := baseline(ctx, s, r)
		i := slices.IndexFunc(r.Baselines, func(b Baseline) bool { return b.Seat == l.Seat || err != nil && b.Server == s.Name })
		if err != nil {
			if i >= 0 {
				asked[r.Baselines[i].Seat] = r.Baselines[i].blind(err) || asked[r.Baselines[i].Seat]
			}
			failed = append(failed, err)
			continue
		}
		asked[l.Seat] = true
		if l.shown { // its replication stands still
			l.Seen.Blind = "the index is not hidden there: it does not replicate, or it lags"
		}
		if i < 0 { // it joined the group, or nobody named it before
			if i, err = t.late(ctx, r, l); err != nil {
				failed = append(failed, err)
				continue
			}
		}
		b := &r.Baselines[i]
		one := Judge(b.Classes, l.Classes, r, l.touches, b.Late)
		if t.Kept != nil {
			if err := t.byKept(ctx, r, &one, l); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", s.Name, err))
			}
		}
		j.join(one, s.Name)
		span, first := b.advance(l.Seen)
		if longest = max(longest, span); span > 0 || l.shown {
			c.Unseen = append(c.Unseen, s.Name+": "+cmp.Or(b.Unseen, l.Seen.Blind))
		}
		if first {
			r.Log = append(r.Log, Entry{now, fmt.Sprintf("what ran on %s was not seen for %s, so that the index is watched longer: %s", s.Name, digits.Span(span), b.Unseen)})
		}
	}
	r.Due = r.Due.Add(longest)
	j.sort()
	c.Worse, c.Watched, c.Fresh = j.Worse, j.Watched, j.Fresh
	for _, d := range j.Doubtful { // kept, for a server that is restarted forgets them
		if !slices.ContainsFunc(r.Doubtful, func(k Regression) bool { return k.Server == d.Server && k.Schema == d.Schema && k.Digest == d.Digest }) {
			r.Doubtful = append(r.Doubtful, d)
		}
	}
	for _, b := range r.Baselines {
		if !asked[b.Seat] {
			c.Unasked = append(c.Unasked, b.Server)
		}
	}
	for _, name := range t.Absent {
		if !slices.Contains(c.Unasked, name) {
			c.Unasked = append(c.Unasked, name)
		}
	}
	return errors.Join(failed...)
}

// late begins to watch a server on which the index is hidden already. If nobody kept what statements cost there before, it is watched for as
// long as the others were.
func (t *Retirer) late(ctx context.Context, r *Record, l look) (i int, err error) {
	now, known := t.Now().UTC(), false
	if t.Kept != nil {
		if known, err = t.Kept.Knew(ctx, l.Seat, r.Hidden.Add(-24*time.Hour), r.Hidden); err != nil {
			return -1, fmt.Errorf("%s: %w", l.Server, err)
		}
	}
	what := "risso serve kept what statements cost there before"
	if !known {
		what = "what statements cost there before the index was hidden is not known"
		watch, err := time.ParseDuration(r.Watch)
		if err != nil {
			return -1, fmt.Errorf("the journal of %s: %w", r.Object(), err)
		}
		if due := now.Add(watch); due.After(r.Due) {
			r.Due = due
		}
	}
	b := l.Baseline
	b.Late, b.Time = true, now
	r.Baselines = append(r.Baselines, b)
	r.Log = append(r.Log, Entry{now, l.Server + " is watched from now on; " + what})
	return len(r.Baselines) - 1, nil
}

// byKept adds to a judgement what is kept of what classes cost: as long before the index was hidden as it was hidden since, and a week at least.
func (t *Retirer) byKept(ctx context.Context, r *Record, j *Judgement, l look) error {
	now := t.Now()
	from := r.Hidden.Add(-max(now.Sub(r.Hidden), 7*24*time.Hour))
	before, err := t.Kept.Classes(ctx, l.Seat, from, r.Hidden, l.names)
	if err != nil {
		return err
	}
	after, err := t.Kept.Classes(ctx, l.Seat, r.Hidden, now, l.names)
	if err != nil {
		return err
	}
	old := map[string]fleet.Cost{}
	for _, c := range before {
		old[c.key()] = c.Cost
	}
	var kept Judgement
	for _, c := range after {
		told := slices.ContainsFunc(kept.Worse, func(g Regression) bool { return g.Digest == c.Digest })
		if b := old[c.key()]; b.Calls > 0 && works(c.Text) && l.touches(c) && !told {
			kept.add(c, b, c.Cost, r)
		}
	}
	if len(kept.Worse) > 0 { // by names that people can look up
		j.Worse = kept.Worse
	}
	var doubtful []Regression
	for _, d := range j.Doubtful { // the server's own counters do not go back far enough; what is kept may
		was, err := t.Kept.Digest(ctx, l.Seat, r.Hidden.AddDate(-1, 0, 0), r.Hidden, d.Digest)
		if err != nil {
			return err
		}
		is, err := t.Kept.Digest(ctx, l.Seat, r.Hidden, now, d.Digest)
		if err != nil {
			return err
		}
		switch what := slower(was, is); {
		case was.Calls == 0 || is.Calls == 0:
			doubtful = append(doubtful, d)
		case what != "":
			d.What = what
			j.Worse = append(j.Worse, d)
		}
	}
	j.Doubtful = doubtful
	return nil
}

// Mine are the records of the retirer's server.
func (t *Retirer) Mine(ctx context.Context, list []*Record) (mine []*Record, err error) {
	c, err := mysql.Connect(ctx, t.Server.Target, t.Server.Traffic)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Server.Name, err)
	}
	defer c.Close()
	for _, r := range list {
		if r.Seat == c.Server.Place() {
			mine = append(mine, r)
		}
	}
	return mine, nil
}

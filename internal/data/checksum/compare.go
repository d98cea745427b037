package checksum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/pattern"
)

// run is one comparison.
type run struct {
	Options
	primary *side
	others  []*side
	state   *state

	slots chan struct{} // one for each that works: this many tables, or parts of them, are read at a time

	mu     sync.Mutex
	result *Result
	spare  []*worker // that have nothing to do

	tables, rows, bytes, of, differ atomic.Int64
}

// Compare compares tables of the primary with those of the others. An error says that the comparison ended early; the result
// then holds what was found until then. That tables differ is no error.
func Compare(ctx context.Context, o Options) (Result, error) {
	o.fill()
	r := &run{Options: o, slots: make(chan struct{}, o.Threads), result: &Result{Began: time.Now().UTC()}}
	var err error
	if r.choice, err = pattern.NewChoice(o.Schemas, o.Tables); err != nil {
		return *r.result, err
	}
	err = r.meet(ctx)
	if err == nil {
		err = r.begin()
	}
	if err == nil {
		err = r.all(ctx)
		err = errors.Join(err, r.state.close(err == nil && r.result.Counts.Open == 0))
	}
	r.result.Seconds = time.Since(r.result.Began).Seconds()
	if err == nil && r.result.Tables == 0 {
		err = ErrNothing
	}
	return *r.result, err
}

// meet connects to all servers.
func (r *run) meet(ctx context.Context) error {
	var err error
	if r.primary, err = meet(ctx, r.Primary, false); err != nil {
		return err
	}
	r.result.Primary = r.primary.report()
	if len(r.Options.Others) == 0 {
		return errors.New("no server to compare with")
	}
	for _, t := range r.Options.Others {
		s, err := meet(ctx, t, r.Replicas)
		if err != nil {
			return err
		}
		if s.server.Seat == r.primary.server.Seat {
			return fmt.Errorf("%s and %s are the same server", r.primary.name, s.name)
		}
		r.others = append(r.others, s)
	}
	r.checkSources()
	for _, s := range append([]*side{r.primary}, r.others...) {
		if err := r.lookAround(ctx, s); err != nil {
			return err
		}
	}
	for _, s := range r.others {
		r.result.Others = append(r.result.Others, s.report())
	}
	return nil
}

// lookAround notes what of the tables an account may not see.
func (r *run) lookAround(ctx context.Context, s *side) error {
	l := r.link(s)
	defer l.close()
	o := define.Scope{Open: len(r.Schemas)+len(r.Tables) == 0}
	for _, name := range r.choice.Schemas() {
		if o.Open = o.Open || strings.Contains(name, "*"); !strings.Contains(name, "*") {
			o.Schemas = append(o.Schemas, r.there(s, name))
		}
	}
	for _, name := range r.choice.Tables() {
		schema, table, exact := name.Names()
		switch {
		case len(r.Schemas) > 0: // seen by those
		case strings.Contains(schema, "*") || !exact && strings.Contains(table, "."):
			o.Open = true
		case strings.Contains(table, "*"):
			o.Schemas = append(o.Schemas, r.there(s, schema))
		default:
			o.Tables = append(o.Tables, mysql.TableName{Schema: r.there(s, schema), Name: table})
		}
	}
	if o.Open {
		list, err := l.schemas(ctx, &r.Options)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		o.Schemas = append(o.Schemas, list...)
	}
	return l.rows(ctx, func(st *mysql.Stream) error {
		blind, err := define.Blind(ctx, st, s.server, o)
		if err != nil {
			return err
		}
		if blind != nil {
			r.result.Unseen = append(r.result.Unseen, Unseen{s.name, fleet.Trouble{What: blind.Error(), Remedy: blind.Remedy()}})
		}
		if len(r.Tables) > 0 {
			return nil
		}
		o.Programs = func(string) bool { return true }
		if blind, err = define.Blind(ctx, st, s.server, o); err == nil && blind != nil {
			s.blind = true
			r.note(Definition{Kind: "definitions", Name: "of views and programs", Server: s.name, Verdict: Failed, What: []string{fault.Line(blind.Error(), blind.Remedy())}})
		}
		return err
	})
}

// there is the name of a schema on a server.
func (r *run) there(s *side, schema string) string {
	if s == r.primary {
		return schema
	}
	return r.Rename(schema)
}

// checkSources notes replicas that do not replicate from any of the servers.
func (r *run) checkSources() {
	known := map[string]bool{r.primary.id: true}
	for _, s := range r.others {
		known[s.id] = true
	}
	for _, s := range r.others {
		from := false
		for _, ch := range s.channels {
			from = from || known[ch.SourceID]
		}
		if !from && len(s.channels) > 0 {
			ch := s.channels[0]
			s.notes = append(s.notes, fmt.Sprintf("it replicates from %s:%d, which is none of the servers compared", ch.SourceHost, ch.SourcePort))
		}
	}
}

func (s *side) report() Side {
	return Side{Server: s.name, Version: s.server.Version, ID: s.id, Notes: s.notes}
}

// begin opens the state file.
func (r *run) begin() error {
	names := []string{r.primary.identity()}
	for _, s := range r.others {
		names = append(names, s.identity())
	}
	var err error
	r.state, err = openState(r.State, r.Resume, strings.Join(names, " "))
	if err != nil {
		return err
	}
	for _, t := range r.state.done {
		r.count(t)
	}
	return nil
}

// identity distinguishes a server from others.
func (s *side) identity() string {
	return s.server.Place() + "#" + s.id
}

// count adds a table to the result.
func (r *run) count(t Table) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := t.Verdict()
	c := &r.result.Counts
	switch {
	case v.Bad():
		c.Differ++
		r.differ.Add(1)
	case v.Open():
		c.Open++
	case v == Filtered:
		c.Filtered++
	default:
		c.Equal++
	}
	if slices.ContainsFunc(t.On, func(o On) bool { return len(o.Definition) > 0 }) {
		c.Definitions++
	} else if slices.ContainsFunc(t.On, func(o On) bool { return len(o.Undefined) > 0 }) {
		c.Undefined++
	}
	r.result.Tables++
	r.result.Rows += t.Rows
	r.result.Bytes += t.Bytes
	if v != Equal {
		r.result.List = append(r.result.List, t)
	}
	r.tables.Add(1)
	if r.Each != nil {
		r.Each(t)
	}
}

// done notes a table that was compared.
func (r *run) done(t Table) error {
	if r.Redact {
		t.redact()
	}
	r.count(t)
	r.progress(t.Schema + "." + t.Name)
	return r.state.table(t)
}

func (r *run) progress(table string) {
	if r.Progress != nil {
		r.Progress(Progress{Table: table, Tables: r.tables.Load(), Rows: r.rows.Load(), Bytes: r.bytes.Load(), Of: r.of.Load(), Differ: r.differ.Load()})
	}
}

func (r *run) link(s *side) *link { return &link{side: s, silence: r.Silence, back: r.Return} }

// all compares table after table.
func (r *run) all(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	jobs := make(chan job)
	g.Go(func() error {
		defer close(jobs)
		return r.produce(ctx, jobs)
	})
	for range r.Threads {
		g.Go(func() error {
			for j := range jobs {
				if err := r.job(ctx, j); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	for _, w := range r.spare {
		w.close()
	}
	return err
}

// job compares a table when fewer than Threads are at work.
func (r *run) job(ctx context.Context, j job) error {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	w := r.borrow()
	defer r.giveBack(w)
	t, err := w.table(ctx, j)
	if err != nil || t == nil {
		return err
	}
	return r.done(*t)
}

// produce lists the tables of all servers.
func (r *run) produce(ctx context.Context, jobs chan<- job) error {
	here := r.link(r.primary)
	defer here.close()
	there := make([]*link, len(r.others))
	for i, s := range r.others {
		there[i] = r.link(s)
		defer there[i].close()
	}
	schemas, err := here.schemas(ctx, &r.Options)
	if err != nil {
		return err
	}
	if err := r.named(ctx, here, there, schemas); err != nil {
		return err
	}
	for _, schema := range schemas {
		list, err := here.tables(ctx, schema)
		if err != nil {
			return err
		}
		known := make(map[string]bool, len(list))
		for _, j := range list {
			known[strings.ToLower(j.name)] = true
			if r.chosen(schema, j.name) && !r.state.has(schema, j.name) {
				r.of.Add(j.rows)
			}
		}
		for _, j := range list {
			if !r.chosen(schema, j.name) || r.state.has(schema, j.name) {
				continue
			}
			select {
			case jobs <- j:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err := r.objects(ctx, here, there, schema); err != nil {
			return err
		}
		if err := r.extraTables(ctx, here, there, schema, known); err != nil {
			return err
		}
	}
	return r.accounts(ctx, here, there)
}

// named makes sure that each name asked for exists, on any server, before anything is compared. A pattern that matches
// nothing is only noted.
func (r *run) named(ctx context.Context, here *link, there []*link, schemas []string) error {
	if r.choice.All() {
		return nil
	}
	for _, schema := range schemas {
		r.choice.Schema(schema)
		for i, l := range append([]*link{here}, there...) {
			name := schema
			if i > 0 {
				name = r.Rename(schema)
			}
			list, err := l.tables(ctx, name)
			if err != nil && (i == 0 || ctx.Err() != nil) {
				return err
			}
			for _, j := range list {
				r.chosen(schema, j.name)
			}
		}
	}
	var unmet *pattern.UnmetError
	if !errors.As(r.choice.Unmet(), &unmet) {
		return nil
	}
	if exact := unmet.Exact(); exact != nil {
		return fmt.Errorf("%w: there is no %w", ErrNothing, exact)
	}
	r.result.Notes = append(r.result.Notes, fmt.Sprintf("there is no %s: it was not compared", unmet))
	return nil
}

// extraTables finds tables of a schema that only the others have.
func (r *run) extraTables(ctx context.Context, here *link, there []*link, schema string, known map[string]bool) error {
	on := map[string][]On{}
	for _, l := range there {
		list, err := l.tables(ctx, r.Rename(schema))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			continue // the workers meet the same trouble and say it
		}
		for _, j := range list {
			if !known[strings.ToLower(j.name)] && r.chosen(schema, j.name) && l.passes(schema, j.name) && !r.state.has(schema, j.name) {
				on[j.name] = append(on[j.name], On{Server: l.name, Verdict: ExtraTable})
			}
		}
	}
	if len(on) == 0 {
		return nil
	}
	// A table made in the meantime is on the primary by now; one that was dropped there is removed soon.
	again, err := here.tables(ctx, schema)
	if err != nil {
		return err
	}
	for _, j := range again {
		delete(on, j.name)
	}
	for name, list := range on {
		if err := r.dropped(ctx, here, there, schema, name, list); err != nil {
			return err
		}
	}
	return nil
}

// dropped reports a table that only others have, unless it goes away when they have caught up.
func (r *run) dropped(ctx context.Context, here *link, there []*link, schema, name string, list []On) error {
	t := Table{Schema: schema, Name: name}
	for _, o := range list {
		for _, l := range there {
			if l.name != o.Server {
				continue
			}
			if reached, err := r.caughtUp(ctx, here, l); err != nil || !reached {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				o.Verdict = Behind
			}
			_, err := l.define(ctx, r.Rename(schema), name)
			if gone(err) {
				continue
			}
			t.On = append(t.On, o)
		}
	}
	if len(t.On) == 0 {
		return nil
	}
	return r.done(t)
}

// caughtUp waits until a replica has what the primary has now. Servers that do not replicate are never waited for.
func (r *run) caughtUp(ctx context.Context, here, there *link) (bool, error) {
	if !r.Replicas {
		return true, nil
	}
	m, have, err := here.mark(ctx)
	if err != nil || !have {
		return err == nil, err
	}
	return there.reach(ctx, m, r.Patience)
}

// worker compares one table at a time.
type worker struct {
	*run
	primary *link
	pairs   []*pair
	tail    []byte // memory for the last row of a chunk
}

// pair is what is used for one of the others.
type pair struct {
	near *link // to the primary, besides the one that reads ahead
	far  *link
}

func (r *run) worker() *worker {
	w := &worker{run: r, primary: r.link(r.primary)}
	for _, s := range r.others {
		w.pairs = append(w.pairs, &pair{near: r.link(r.primary), far: r.link(s)})
	}
	return w
}

func (w *worker) close() {
	w.primary.close()
	for _, p := range w.pairs {
		p.near.close()
		p.far.close()
	}
}

// table compares one table; nil when it is gone.
func (w *worker) table(ctx context.Context, j job) (*Table, error) {
	t := &Table{Schema: j.schema, Name: j.name, On: make([]On, len(w.pairs))}
	began := time.Now()
	defer func() { t.Seconds = time.Since(began).Seconds() }()
	p, err := w.study(ctx, j, t)
	if gone(err) {
		return nil, nil // dropped since it was listed
	}
	if err == nil {
		for _, c := range p.key.Order[:p.key.Cuts] {
			t.Key = append(t.Key, c.Name)
		}
		t.Notes = p.notes
		err = w.scan(ctx, p, t)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		if lost(err) {
			return nil, fmt.Errorf("the primary was lost: %w", err)
		}
		for i := range t.On {
			if t.On[i].Verdict == "" || t.On[i].Verdict == Equal {
				t.On[i].fail(err)
			}
		}
		t.Notes = append(t.Notes, "it cannot be read on the primary: "+err.Error())
	}
	return t, nil
}

// fail notes why a table could not be read to its end.
func (o *On) fail(err error) {
	o.Verdict = worse(o.Verdict, Failed)
	o.Why = err.Error()
	o.Remedy = fleet.RemedyOf(err)
	switch {
	case o.Remedy != "":
	case mysql.ClassOf(err) == mysql.ClassPrivilege:
		o.Remedy = "the account needs SELECT on the table"
	case mysql.ErrorNumber(err) == errno.LockWaitTimeout:
		o.Remedy = "the table is locked, for example by an ALTER TABLE: compare it again"
	case mysql.ClassOf(err) == mysql.ClassMissing:
		o.Remedy = "its definition was changed meanwhile: compare it again"
	}
}

// study reads the definitions.
func (w *worker) study(ctx context.Context, j job, t *Table) (*plan, error) {
	p := &plan{job: j, peers: make([]peer, len(w.pairs))}
	var err error
	if p.here, err = w.primary.define(ctx, j.schema, j.name); err != nil {
		return nil, err
	}
	for i, pr := range w.pairs {
		e := &p.peers[i]
		t.On[i] = On{Server: pr.far.name, Verdict: Equal}
		if !pr.far.passes(j.schema, j.name) {
			e.skip = Filtered
			continue
		}
		e.table, err = pr.far.define(ctx, w.Rename(j.schema), j.name)
		if gone(err) {
			// It may only be late.
			reached, waitErr := w.caughtUp(ctx, pr.near, pr.far)
			if waitErr == nil {
				e.table, err = pr.far.define(ctx, w.Rename(j.schema), j.name)
			}
			if gone(err) {
				e.skip = MissingTable
				if !reached {
					e.skip = Behind
				}
				continue
			}
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			e.skip, e.fail = Failed, err
		}
	}
	for i, pr := range w.pairs {
		if p.peers[i].skip == "" {
			if err := w.defines(ctx, p, i, pr, &t.On[i]); err != nil {
				return nil, err
			}
		}
	}
	match(p, w.run.primary, w.run.others)
	for i := range p.peers {
		t.On[i].Notes = p.peers[i].notes
		if v := p.peers[i].skip; v != "" {
			t.On[i].Verdict = v
		}
		if p.peers[i].fail != nil {
			t.On[i].fail(p.peers[i].fail)
		}
	}
	if len(p.here.Columns) == 0 {
		return p, nil
	}
	if err := w.primary.text(ctx, p.text); err != nil {
		return nil, err
	}
	for i, pr := range w.pairs {
		if p.peers[i].skip != "" {
			continue
		}
		if err := errors.Join(pr.near.text(ctx, p.text), pr.far.text(ctx, p.text)); err != nil {
			p.peers[i].skip = Failed
			t.On[i].fail(err)
		}
	}
	return p, nil
}

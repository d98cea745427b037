// Package ask learns what internal/avail/lag judges: a replica at two moments and what its appliers do in between, beside its source, if that
// can be asked. It only reads.
package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/lag"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Options say what to look at.
type Options struct {
	Target mysql.Target
	Source *mysql.Target // nil: the address that the replica knows its source by, with the account of Target
	Alone  bool          // the source is not asked
	For    time.Duration // between the two moments
	// Patience is how long the source is waited for: it may be what is wrong. 0: three seconds.
	Patience time.Duration
	// Grace is how much longer than For the replica may take for all its answers, beside what the source may take. 0: 30 seconds.
	Grace time.Duration
}

// every is how long it is between two looks at the appliers, and lockEvery how many looks are one at locks as well.
const (
	every     = 200 * time.Millisecond
	lockEvery = 3
)

// sourcePatience is how long the source is waited for, where nobody says otherwise.
const sourcePatience = 3 * time.Second

// settings are those of a replica that bear on how fast it applies.
var settings = []string{"server_id", "gtid_mode", "replica_parallel_workers", "slave_parallel_workers", "slave_parallel_threads", "slave_parallel_mode", "slave_parallel_type", "replica_parallel_type",
	"replica_preserve_commit_order", "slave_preserve_commit_order", "sync_binlog", "innodb_flush_log_at_trx_commit", "sync_relay_log", "relay_log_space_limit", "slave_exec_mode", "replica_exec_mode", "gtid_slave_pos"}

// replica is one that is looked at.
type replica struct {
	o       Options
	c       *mysql.Conn
	sources []*source // by channel
	looks   []lag.Look
	gaps    []fleet.Trouble
}

// grace is Options.Grace, where nobody says otherwise.
const grace = 30 * time.Second

// Replica looks at a replica for a while; the answer has its channels. A server that does not replicate has none. One that hangs is an error in time.
func Replica(ctx context.Context, o Options) ([]lag.Facts, error) {
	most := o.For + cmp.Or(o.Grace, grace)
	if !o.Alone {
		most += 5 * cmp.Or(o.Patience, sourcePatience) // connect, look twice, and compare for two of them
	}
	late := fmt.Errorf("it did not answer all within %s: who asks how replication stands waits for a thread of it that hangs, as on a full disk or in STOP", digits.Span(most))
	ctx, cancel := context.WithTimeoutCause(ctx, most, late)
	defer cancel()
	list, err := look(ctx, o)
	if err != nil && errors.Is(context.Cause(ctx), late) {
		err = fmt.Errorf("%w (%w)", late, err)
	}
	return list, err
}

func look(ctx context.Context, o Options) ([]lag.Facts, error) {
	c, err := mysql.Connect(ctx, o.Target, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r := &replica{o: o, c: c}
	set, err := read.Variables(ctx, c, settings)
	if err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	before, err := read.ReplicaMoments(ctx, c)
	if err != nil || len(before) == 0 {
		return nil, err
	}
	r.findSources(ctx, before)
	defer func() {
		for _, s := range r.sources {
			s.close()
		}
	}()
	began := time.Now()
	if before, err = r.moment(ctx, func(s *source) { s.look(ctx, &s.before) }); err != nil {
		return nil, err
	}
	if err := r.watch(ctx, before); err != nil {
		return nil, err
	}
	after, err := r.moment(ctx, func(s *source) { s.look(ctx, &s.after) })
	if err != nil {
		return nil, err
	}
	span := time.Since(began).Seconds()
	var out []lag.Facts
	for _, m := range after {
		at := slices.IndexFunc(before, func(b read.ReplicaMoment) bool { return b.Name == m.Name })
		if at < 0 {
			continue // it was set up just now
		}
		f := lag.Facts{Server: c.Server, Before: before[at], After: m, Span: span, Settings: set, Looks: r.looksOf(m.Name)}
		s := r.sources[at]
		f.Source = s.facts(ctx, before[at], m)
		known := len(r.gaps)
		if f.Stuck, err = r.stuck(ctx, before[at], m); err != nil {
			return nil, err
		}
		f.Gaps = slices.Clone(r.gaps)
		r.gaps = r.gaps[:known] // those of the keys are this channel's
		if f.Source != nil && f.Source.FirstUnseen != "" {
			f.Gaps = append(f.Gaps, fleet.Trouble{What: "the age of the first transaction that is not applied", Why: f.Source.FirstUnseen})
		}
		if f.Source == nil {
			f.NotAsked = s.trouble.Why
			f.Gaps = append(f.Gaps, s.trouble)
		}
		out = append(out, f)
	}
	return out, nil
}

// findSources connects to the sources, all at once: one that hangs must not keep the others.
func (r *replica) findSources(ctx context.Context, list []read.ReplicaMoment) {
	r.sources = make([]*source, len(list))
	var all sync.WaitGroup
	for i, m := range list {
		if r.o.Alone {
			r.sources[i] = &source{trouble: fleet.Trouble{What: "the source " + m.Channel.Source, Why: "it was not asked"}}
			continue
		}
		t := r.o.Target.WithAddress(m.Channel.Source)
		if r.o.Source != nil {
			t = *r.o.Source
		}
		all.Go(func() { r.sources[i] = connect(ctx, t, m, cmp.Or(r.o.Patience, sourcePatience)) })
	}
	all.Wait()
}

// moment reads the sources, and then the replica: what the sources had then, and the replica has, is not missing.
func (r *replica) moment(ctx context.Context, source func(*source)) ([]read.ReplicaMoment, error) {
	var all sync.WaitGroup
	for _, s := range r.sources {
		all.Go(func() { source(s) })
	}
	all.Wait()
	return read.ReplicaMoments(ctx, r.c)
}

// watch looks at the appliers until the time is over.
func (r *replica) watch(ctx context.Context, moments []read.ReplicaMoment) error {
	seen := map[string]fleet.Trouble{}
	end := time.Now().Add(r.o.For)
	for i := 0; i == 0 || time.Now().Before(end); i++ {
		list, gaps, err := read.Appliers(ctx, r.c, moments)
		if err != nil {
			return fmt.Errorf("look at the appliers: %w", err)
		}
		l := lag.Look{Appliers: list}
		if i%lockEvery == 0 && slices.ContainsFunc(list, func(a read.Applier) bool { return a.Role != read.ApplierReceives && a.Doing != read.ApplierIdle }) {
			waits, more, err := read.LockWaits(ctx, r.c, 0)
			if err = gap(&more, "locks", err); err != nil {
				return fmt.Errorf("look at locks: %w", err)
			}
			gaps = append(gaps, more...)
			if slices.ContainsFunc(waits, func(w read.LockWait) bool {
				return slices.ContainsFunc(list, func(a read.Applier) bool { return a.Session == w.Waiter })
			}) {
				l.Locks = waits
			}
		} else if i%lockEvery != 0 && len(r.looks) > 0 { // a wait stands until the next look at locks
			l.Locks = r.looks[len(r.looks)-1].Locks
		}
		for _, g := range gaps {
			seen[g.What] = g
		}
		r.looks = append(r.looks, l)
		if err := delay.For(ctx, max(0, min(every, time.Until(end)))); err != nil {
			return err
		}
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		r.gaps = append(r.gaps, seen[what])
	}
	return nil
}

// gap notes what the server refused to tell; other errors are returned.
func gap(gaps *[]fleet.Trouble, what string, err error) error {
	switch mysql.ClassOf(err) {
	case mysql.ClassPrivilege, mysql.ClassMissing, mysql.ClassOther:
		*gaps = append(*gaps, fleet.Trouble{What: what, Why: err.Error(), Remedy: fleet.RemedyOf(err)})
		return nil
	}
	return err
}

// looksOf are the looks at one channel's threads, and at those of which the server does not say whose they are.
func (r *replica) looksOf(channel string) []lag.Look {
	out := make([]lag.Look, len(r.looks))
	for i, l := range r.looks {
		out[i].Locks = l.Locks
		for _, a := range l.Appliers {
			if a.OneOf || a.Channel == channel {
				out[i].Appliers = append(out[i].Appliers, a)
			}
		}
	}
	return out
}

// stuck says at which transaction the applier is, and by which keys it finds its rows.
func (r *replica) stuck(ctx context.Context, before, after read.ReplicaMoment) (s lag.Stuck, err error) {
	if !after.Applies() || after.RelayLog == "" {
		return s, nil
	}
	s.Same = before.RelayLog == after.RelayLog && before.RelayPos == after.RelayPos && before.Pos == after.Pos && before.Log == after.Log
	tables, statement, err := read.RelayedTables(ctx, r.c, after)
	if err != nil {
		return s, fmt.Errorf("look at what is applied: %w", err)
	}
	s.Statement = statement
	for _, name := range tables {
		schema, table, _ := strings.Cut(name, ".")
		keys, err := read.KeysOf(ctx, r.c, schema, table)
		if err = gap(&r.gaps, "the keys of "+name, err); err != nil {
			return s, fmt.Errorf("look at the keys of %s: %w", name, err)
		}
		s.Tables = append(s.Tables, lag.Table{Name: name, Keys: keys})
	}
	return s, nil
}

package applier

// Mode is a way in which servers decide what may be applied at the same time.
type Mode string

// The modes.
const (
	Logged       Mode = "logged"       // MySQL, LOGICAL_CLOCK: as the log says
	WriteSet     Mode = "writeset"     // the same, if the source had written the log with WRITESET
	BySchema     Mode = "database"     // MySQL, DATABASE: one worker for a schema
	Conservative Mode = "conservative" // MariaDB: what was committed together
	Optimistic   Mode = "optimistic"   // MariaDB: all that can be rolled back, but what waited for a lock when it ran first
	Aggressive   Mode = "aggressive"   // MariaDB: that too
)

// clocks is the order of a log of MySQL: each transaction says up to which number all must be done. The numbers begin again with each log, where a
// replica waits until all is done. Source: MySQL's sql/rpl_mta_submode.cc, Mts_submode_logical_clock::schedule_next_event.
type clocks struct {
	base   int64 // the last number of the logs before
	last   int64
	opened bool // a log has begun, and nothing of it was seen
}

func (c *clocks) nextLog() { c.base, c.opened = c.last, true }

func (c *clocks) need(t *Transaction) need {
	if t.Sequence <= 0 { // it says nothing: alone
		c.last++
		c.base, c.opened = c.last, true
		return need{number: c.last, all: true}
	}
	n := need{number: c.base + t.Sequence, after: c.base + t.LastCommitted}
	if n.number <= c.last { // the log was written anew: another one begins
		c.nextLog()
		n = need{number: c.base + t.Sequence, after: c.base + t.LastCommitted}
	}
	// A number that is left out, or none before it, makes servers wait for everything.
	n.all = t.LastCommitted <= 0 || c.opened || n.number > c.last+1
	c.last, c.opened = n.number, false
	return n
}

// history is how many keys a source remembers (binlog_transaction_dependency_history_size), as it is by default.
const history = 25000

// writeSets is the order that a source which tracks write sets would have logged: a transaction waits for the last one that wrote a row of its
// own, and never for more than by the order of commits. Source: MySQL's sql/rpl_trx_tracking.cc,
// Writeset_trx_dependency_tracker::get_dependency.
type writeSets struct {
	clocks
	wrote map[uint64]int64
	start int64 // nothing before it is remembered
}

func (w *writeSets) nextLog() {
	w.clocks.nextLog()
	w.wrote, w.start = map[uint64]int64{}, w.base+1
}

func (w *writeSets) need(t *Transaction) need {
	n := w.clocks.need(t)
	if w.wrote == nil || n.number <= w.start {
		w.wrote, w.start = map[uint64]int64{}, n.number
	}
	if t.DDL || t.Statements || len(t.Keys) >= MostKeys || len(t.Keys) == 0 && !t.Unkeyed {
		w.start = n.number
		clear(w.wrote)
		return n
	}
	parent, full := w.start, len(w.wrote)+len(t.Keys) > history
	for _, k := range t.Keys {
		if at, ok := w.wrote[k]; ok {
			parent = max(parent, at)
		} else if full {
			continue
		}
		w.wrote[k] = n.number
	}
	if !t.Unkeyed && n.number > w.start { // of tables without a key the order of commits stays
		if n.all {
			n.after = w.start
		}
		n.after, n.all = min(parent, n.after), false
	}
	if full {
		w.start = n.number
		clear(w.wrote)
	}
	return n
}

// groups is the order of MariaDB. Source: its sql/rpl_parallel.cc, rpl_parallel::do_event.
type groups struct {
	mode    Mode
	last    int64 // number of the transaction before, of any domain
	domains map[uint32]*groupOrder
}

type groupOrder struct {
	last     int64  // number of the domain's transaction before
	group    uint64 // its commit ID
	barrier  int64  // up to which all must be done
	was, now map[uint64]int64
}

func (g *groups) need(t *Transaction) need {
	d := g.domains[t.Domain]
	if d == nil {
		d = &groupOrder{now: map[uint64]int64{}}
		g.domains[t.Domain] = d
	}
	g.last++
	n := need{number: g.last, domain: t.Domain}
	switch {
	case g.mode == Conservative:
		if t.Group == 0 || t.Group != d.group {
			d.barrier = d.last
		}
	case t.DDL || !t.Transactional || t.Serial:
		d.barrier = d.last
	}
	n.after = d.barrier
	if g.mode == Optimistic && t.Waited {
		n.after = d.last
	}
	n.holder = d.held(t, n.number)
	d.last, d.group = n.number, t.Group
	if g.mode != Conservative && (t.DDL || !t.Transactional || t.Serial) {
		d.barrier = n.number // those that follow wait for it too
	}
	return n
}

// held is the last transaction before that wrote a row of this one: it has the row's lock until it has committed. What is tried too early is
// rolled back, and tried again. Only what was recent can still be under way: older keys are forgotten.
func (d *groupOrder) held(t *Transaction, number int64) (holder int64) {
	if len(d.now)+len(t.Keys) > history {
		d.was, d.now = d.now, map[uint64]int64{}
	}
	for _, k := range t.Keys {
		at, ok := d.now[k]
		if !ok {
			at = d.was[k]
		}
		holder = max(holder, at)
		if len(d.now) < history {
			d.now[k] = number
		}
	}
	return holder
}

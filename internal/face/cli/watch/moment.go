package watch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// moment is one server at one moment, as the screens show it.
type moment struct {
	at         time.Time
	server     string // what it is: flavour and version
	processes  []read.Process
	more       int // sessions for which there was no room; -1: some
	open       []read.Transaction
	waits      []read.LockWait
	channels   []read.ReplicaChannel
	statements []ran
	gaps       []fleet.Trouble
	trouble    string // why there is nothing else
}

// process finds a session.
func (m *moment) process(id int64) (read.Process, bool) {
	i := slices.IndexFunc(m.processes, func(p read.Process) bool { return p.ID == id })
	if i < 0 {
		return read.Process{}, false
	}
	return m.processes[i], true
}

// blocker is what is known of a session from those that wait for it.
func (m *moment) blocker(id int64) (read.Blocker, bool) {
	i := slices.IndexFunc(m.waits, func(w read.LockWait) bool { return w.Blocker.ID == id })
	if i < 0 {
		return read.Blocker{}, false
	}
	return m.waits[i].Blocker, true
}

// lookPatience bounds a reading of a server.
const lookPatience = 5 * time.Second

// look reads what a view shows of a server.
func look(ctx context.Context, c *mysql.Conn, v view, statements *digests) (m moment, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	m.at, m.server = time.Now(), fmt.Sprintf("%s %s", c.Server.Flavour, c.Server.Version)
	var more bool
	if m.processes, m.open, more, m.gaps, err = read.Processes(ctx, c); err != nil {
		return m, err
	}
	if more {
		m.more = -1
	}
	waits, gaps, err := read.LockWaits(ctx, c, 0)
	if err != nil {
		return m, err
	}
	m.waits = waits
	if v == viewLocks {
		m.gaps = append(m.gaps, gaps...)
	}
	switch v {
	case viewReplication:
		m.channels, err = read.ReplicaChannels(ctx, c)
	case viewStatements:
		var off *fleet.Trouble
		if off, err = read.CountsStatements(ctx, c); err == nil && off != nil {
			m.gaps = append(m.gaps, *off)
		} else if err == nil {
			m.statements, err = statements.read(ctx, c)
		}
	}
	if mysql.ClassOf(err) == mysql.ClassPrivilege {
		m.gaps, err = append(m.gaps, fleet.Trouble{What: v.name(), Why: err.Error()}), nil
	}
	return m, err
}

// ran is what a class of statements cost between two readings.
type ran struct {
	text    string
	schema  string
	seconds float64 // between the readings
	fleet.Cost
}

// digests remembers the counters of classes of statements.
type digests struct {
	at     time.Time
	since  string // by the server's clock
	known  map[[2]string]fleet.Cost
	texts  map[string]string
	latest []ran
}

// Of the table of digests: how often it is read, and how many classes are shown.
const (
	digestsEvery = 5 * time.Second
	digestsMost  = 100
)

// read returns what ran between the last two readings, the most costly first; nil after the first.
func (d *digests) read(ctx context.Context, c *mysql.Conn) ([]ran, error) {
	if !d.at.IsZero() && time.Since(d.at) < digestsEvery {
		return d.latest, nil
	}
	now, err := read.ServerNow(ctx, c)
	if err != nil {
		return nil, err
	}
	first, seconds := d.known == nil, time.Since(d.at).Seconds()
	if first {
		d.known, d.texts = map[[2]string]fleet.Cost{}, map[string]string{}
	}
	var list []ran
	ids := []string{}
	err = read.Digests(ctx, c, d.since, func(g *read.Digest) error {
		key := [2]string{g.Schema, g.ID}
		before := d.known[key]
		d.known[key] = g.Cost
		if first || g.Cost.Anew(before) || g.Calls == before.Calls {
			return nil
		}
		list = append(list, ran{text: g.ID, schema: g.Schema, seconds: seconds, Cost: g.Since(before)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.at, d.since = time.Now(), now
	slices.SortFunc(list, func(a, b ran) int { return cmp.Compare(b.Seconds, a.Seconds) })
	list = list[:min(len(list), digestsMost)]
	for _, r := range list {
		if _, ok := d.texts[r.text]; !ok && r.text != "" {
			ids = append(ids, r.text)
		}
	}
	if len(ids) > 0 {
		err = read.DigestTexts(ctx, c, ids, func(t read.DigestText) error {
			d.texts[t.ID] = t.Text
			return nil
		})
	}
	for i := range list {
		list[i].text = cmp.Or(d.texts[list[i].text], list[i].text, "(all others: the table of digests is full)")
	}
	d.latest = list
	return list, err
}

package history

import (
	"cmp"
	"context"
	"slices"

	"github.com/rissodb/risso/internal/explain/prepared"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
	"github.com/rissodb/risso/internal/store/events"
)

// follower follows executions of prepared statements, if the server's table of digests leaves them out.
type follower struct {
	prepared.Counters
	classes map[string]*known // by text
	notes   []fleet.Trouble   // guarded by the collector's mutex
}

// execution is the cost of the executions of one text in a minute.
type execution struct {
	prepared.Executions
	class string
}

func (e execution) row() events.Row {
	return events.Row{Class: e.class, Schema: e.Schema, User: e.User, Cost: e.Cost}
}

// executions returns what was executed since the reading before, and notes what is missing. nil is no reading: the next one
// covers both.
func (c *Collector) executions(r *prepared.Reading) []prepared.Executions {
	if r == nil {
		return nil
	}
	list := c.prepared.Next(*r)
	notes := c.prepared.Gaps("between two readings, which are a minute apart")
	c.setStatus(func(*Status) { c.prepared.notes = notes })
	return list
}

// identifyPrepared finds the classes of what was executed and stores those that were not seen lately; the heaviest come first.
func (c *Collector) identifyPrepared(ctx context.Context, at int64, list []prepared.Executions) ([]execution, error) {
	if c.prepared.classes == nil || len(c.prepared.classes) > maxBase {
		c.prepared.classes = map[string]*known{}
	}
	out := make([]execution, 0, len(list))
	var found []events.Class
	var texts []string // of found
	for _, e := range list {
		k, ok := c.prepared.classes[e.Text]
		if !ok || !k.own && at-k.stored >= classEvery {
			fingerprint := prepared.AppendPlain(nil, &c.names.f, e)
			id := sqltext.ClassID(fingerprint)
			k = &known{class: id, verb: sqltext.Verb([]byte(e.Text)), stored: at, own: c.names.isOwn(id)}
			c.prepared.classes[e.Text] = k
			if !k.own {
				found = append(found, events.Class{Instance: c.instance.ID, ID: id, Fingerprint: string(fingerprint), Verb: k.verb, Tables: tablesOf([]byte(e.Text)), FirstSeen: at, LastSeen: at})
				texts = append(texts, e.Text)
			}
		}
		if !k.own {
			out = append(out, execution{e, k.class})
		}
	}
	slices.SortFunc(out, func(a, b execution) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Text, b.Text))
	})
	return out, c.note(ctx, found, func(i int) { delete(c.prepared.classes, texts[i]) })
}

// samplePrepared keeps the heaviest as they were prepared, with the user who executes them, if no execution with its values is kept. Plans of
// those with parameters have to be caught while they run.
func (c *Collector) samplePrepared(ctx context.Context, at int64, list []execution) error {
	var store []events.Sample
	plans := map[sampleKey]read.StatementSample{}
	for _, e := range list {
		k := sampleKey{e.class, e.Owner.Schema}
		if _, fresh := c.sampled[k]; fresh {
			continue
		}
		c.sampled[k] = at
		s := read.StatementSample{Schema: e.Owner.Schema, Text: e.Text, Cut: e.Cut, Time: at, Seconds: e.Seconds / float64(e.Calls), User: e.User, Host: e.Host}
		if explainable[sqltext.Verb([]byte(e.Text))] {
			plans[k] = s
		}
		store = append(store, events.Sample{Instance: c.instance.ID, Class: e.class, Time: at, Text: c.shown(e.Text), Seconds: s.Seconds, Schema: s.Schema, User: s.User, Host: s.Host})
	}
	if err := c.Store.AddSamples(ctx, store...); err != nil {
		return err
	}
	return c.takePlans(ctx, at, plans)
}

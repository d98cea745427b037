package live

import (
	"context"
	"math"

	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/explain/prepared"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
)

// executions reads what was executed of prepared statements since the reading before.
func (r *Reader) executions(ctx context.Context) ([]prepared.Executions, error) {
	reading, err := r.prepared.Read(ctx, r.conn)
	if err != nil {
		return nil, err
	}
	return r.prepared.Next(reading), nil
}

// addPrepared adds them to the classes of the same statements run as text.
func (r *Reader) addPrepared(p *digest.Profile, groups map[string]*group, all *group, own map[string]bool) {
	var f sqltext.Fingerprinter
	for _, e := range r.executed {
		name := string(prepared.AppendPlain(nil, &f, e))
		if own[name] {
			p.Skipped[digest.SkippedOwn] += e.Calls
			continue
		}
		d := read.Digest{Schema: e.Schema, Cost: e.Cost}
		if d.MaxSeconds == 0 {
			d.MaxSeconds = math.NaN()
		}
		p.Calls += d.Calls
		g := r.groupOf(groups, &d, name, e.Text)
		g.add(&d)
		all.add(&d)
		if len(g.prepared) <= r.o.Samples {
			g.prepared = append(g.prepared, read.StatementSample{Schema: d.Schema, Text: e.Text, Cut: e.Cut, Seconds: d.Seconds / float64(d.Calls), User: e.User, Host: e.Host})
		}
	}
}

// notePrepared notes which executions are missing.
func (r *Reader) notePrepared() {
	between := "meanwhile"
	if r.o.For == 0 {
		between = "before they were read"
	}
	for _, g := range r.prepared.Gaps(between) {
		note := g.Why + "."
		if g.Remedy != "" {
			note += " Remedy: " + g.Remedy + "."
		}
		r.notes = append(r.notes, note)
	}
}

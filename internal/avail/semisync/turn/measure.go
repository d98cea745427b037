package turn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/avail/semisync"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// The schema and the table of a measurement, which nobody else has.
const measured = "risso_semisync_measure"

// MostCommits is the most that are made.
const MostCommits = 1000

// Measure plans some commits on the primary, one after the other, in a schema of their own that is dropped at the end. They replicate.
func (g *Group) Measure(commits int) (change.Plan, error) {
	if g.Facts.Source.InForce && (g.Facts.Source.Clients < g.Facts.Source.Count || g.Facts.Waited >= semisync.Missed) {
		return nil, fleet.WithRemedy(errors.New("commits wait for acknowledgements that nobody can give: a measurement would wait, too"), "risso semisync status says what to do")
	}
	table := mysql.Quote(measured) + ".commits"
	return change.Plan{
		{What: "CREATE DATABASE " + measured, Why: "with one table; it replicates", Do: func(ctx context.Context) error { return g.makeMeasured(ctx, table) }},
		{What: fmt.Sprintf("%d commits of one row each, one after the other", commits), Do: func(ctx context.Context) error { return g.commit(ctx, table, commits) }},
		{What: "DROP DATABASE " + measured, Do: func(ctx context.Context) error {
			if err := g.primary.Exec(ctx, "DROP DATABASE /* risso: semisync status */ "+mysql.Quote(measured)); err != nil {
				return fmt.Errorf("drop the schema of the measurement: %w", err)
			}
			g.made = false
			return nil
		}},
	}, nil
}

// RunMeasure carries such a plan out. Its schema is dropped whatever happens.
func (g *Group) RunMeasure(ctx context.Context, plan change.Plan) error {
	_, err := change.Execute(ctx, plan, change.Log{})
	if !g.made {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backTime)
	defer cancel()
	c, derr := again(ctx, g.o.Primary, g.session)
	if derr == nil {
		defer c.Close()
		derr = c.Exec(ctx, "DROP DATABASE /* risso: semisync status */ IF EXISTS "+mysql.Quote(measured))
	}
	if derr != nil {
		return fleet.WithRemedy(errors.Join(err, fmt.Errorf("drop the schema of the measurement: %w", derr)), "DROP DATABASE "+measured)
	}
	g.made = false
	return err
}

// makeMeasured makes the schema and its table, unless it is there: then it is another measurement's.
func (g *Group) makeMeasured(ctx context.Context, table string) error {
	there, err := g.primary.Maps(ctx, "SHOW /* risso: does another measurement run? */ DATABASES LIKE "+mysql.Literal(measured))
	if err == nil && len(there) > 0 {
		return fleet.WithRemedy(errors.New("create a schema for the measurement: the database exists"), "if no other measurement runs: DROP DATABASE "+measured)
	}
	if err == nil {
		g.made = true // it may be, though it is interrupted
		if err = g.primary.Exec(ctx, "CREATE DATABASE /* risso: semisync status */ "+mysql.Quote(measured)); mysql.Answered(err) {
			g.made = false
		}
	}
	if err == nil {
		err = g.primary.Exec(ctx, "CREATE TABLE "+table+" (id INT PRIMARY KEY)")
	}
	if err != nil {
		return fmt.Errorf("create a schema for the measurement: %w", err)
	}
	return nil
}

// commit makes them, between two readings of the counters.
func (g *Group) commit(ctx context.Context, table string, commits int) error {
	before, err := read.SemiSyncNow(ctx, g.primary)
	if err != nil {
		return fmt.Errorf("ask the primary for semi-sync: %w", err)
	}
	began := time.Now()
	for i := range commits {
		if err := g.primary.Exec(ctx, fmt.Sprintf("INSERT /* risso: semisync status */ INTO %s VALUES (%d)", table, i)); err != nil {
			return fmt.Errorf("commit for the measurement: %w", err)
		}
	}
	took := time.Since(began).Seconds()
	after, err := read.SemiSyncNow(ctx, g.primary)
	if err != nil {
		return fmt.Errorf("ask the primary for semi-sync: %w", err)
	}
	m := &semisync.Measured{Commits: int64(commits), Seconds: took / float64(commits), Acked: after.Source.Yes - before.Source.Yes}
	if waits := after.Source.TxWaits - before.Source.TxWaits; waits > 0 { // those of others between them count as well: it is a mean
		m.Waited = min(m.Seconds, (after.Source.TxMicros-before.Source.TxMicros)/float64(waits)/1e6)
	}
	g.Facts.Measured, g.Facts.Source = m, after.Source
	return nil
}

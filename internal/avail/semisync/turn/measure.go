package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/semisync"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// The schema and the table of a measurement, which nobody else has.
const measured = "risso_semisync_measure"

// MostCommits is the most that are made.
const MostCommits = 1000

// Measure plans some commits on the primary, one after the other, in a schema of their own that is dropped at the end. They replicate.
func (g *Group) Measure(commits int) (change.Plan, error) {
	if g.Facts.Source.InForce && g.Facts.Source.Clients < g.Facts.Source.Count {
		return nil, fleet.WithRemedy(errors.New("commits wait for acknowledgements that nobody can give: a measurement would wait, too"), "risso semisync status says what to do")
	}
	table := mysql.Quote(measured) + ".commits"
	return change.Plan{
		{What: "CREATE DATABASE " + measured, Why: "with one table; it replicates", Do: func(ctx context.Context) error {
			err := g.primary.Exec(ctx, "CREATE DATABASE /* risso: semisync status */ "+mysql.Quote(measured))
			if mysql.ErrorNumber(err) == errno.DatabaseExists {
				return fleet.WithRemedy(fmt.Errorf("create a schema for the measurement: %w", err), "if no other measurement runs: DROP DATABASE "+measured)
			} else if err != nil {
				return fmt.Errorf("create a schema for the measurement: %w", err)
			}
			if err := g.primary.Exec(ctx, "CREATE TABLE "+table+" (id INT PRIMARY KEY)"); err != nil {
				return errors.Join(fmt.Errorf("create a table for the measurement: %w", err), g.dropMeasured(ctx))
			}
			return nil
		}},
		{What: fmt.Sprintf("%d commits of one row each, one after the other", commits), Do: func(ctx context.Context) error {
			err := g.commit(ctx, table, commits)
			if err != nil {
				return errors.Join(err, g.dropMeasured(ctx))
			}
			return nil
		}},
		{What: "DROP DATABASE " + measured, Do: g.dropMeasured},
	}, nil
}

func (g *Group) dropMeasured(ctx context.Context) error {
	statement := "DROP DATABASE " + mysql.Quote(measured)
	if err := g.primary.Exec(context.WithoutCancel(ctx), statement); err != nil {
		return fleet.WithRemedy(fmt.Errorf("drop the schema of the measurement: %w", err), strings.ReplaceAll(statement, "`", ""))
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

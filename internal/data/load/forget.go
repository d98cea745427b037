package load

import (
	"context"
	"strconv"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// Forgotten is what is known of a restore that was cut off, whose journal Forget removes.
type Forgotten struct {
	Found   bool     `json:"found"`
	Backup  string   `json:"backup,omitempty"`  // ID
	Began   string   `json:"began,omitempty"`   // RFC 3339
	Tables  int64    `json:"tables"`            // complete tables that were compared
	Partly  []string `json:"partly,omitempty"`  // tables that are incomplete or were not compared
	Schemas []Lent   `json:"schemas,omitempty"` // that get the default collation back which it had changed for a while
	Rolling bool     `json:"rolling"`           // it was applying binary logs: tables are as of some moment after the backup

	Steps change.Plan `json:"steps"` // that remove the journal, in this order
}

// Forget takes the journal of a restore that was cut off away: it cannot go on any more. Tables stay as they are; schemas get back
// the default collations that it had changed for a while. With dryRun it only looks.
func Forget(ctx context.Context, into mysql.Target, dryRun bool) (Forgotten, error) {
	r := &run{o: Options{Into: into}}
	var f Forgotten
	c, err := mysql.Connect(ctx, into, nil)
	if err != nil {
		return f, err
	}
	r.server = c.Server
	if err := c.Close(); err != nil {
		return f, err
	}
	s, err := r.open(ctx)
	if err != nil {
		return f, err
	}
	defer s.Close()
	if err := r.lock(ctx, s); err != nil {
		return f, err
	}
	if f.Found, _, f.Backup, f.Began, err = r.findJournal(ctx, s); err != nil {
		return f, err
	}
	if f.Found {
		if err := f.look(ctx, s); err != nil && mysql.ErrorNumber(err) != errno.NoSuchTable {
			return f, err
		}
		if err := r.readEarlier(ctx, s); err != nil {
			return f, err
		}
		if f.Schemas, err = r.lentCollations(ctx, s, f.Rolling); err != nil {
			return f, err
		}
	}
	f.Steps = change.Plan{{What: "end sessions", Why: "of a restore that was killed", Do: func(ctx context.Context) error { return r.endEarlier(ctx, s) }}}
	for _, l := range f.Schemas {
		f.Steps = append(f.Steps, change.Step{What: "give schema its default collation back", Where: mysql.Quote(l.Schema), Why: l.Statement(),
			Do: func(ctx context.Context) error { return giveBack(ctx, s, []Lent{l}) }})
	}
	if f.Rolling {
		f.Steps = append(f.Steps, change.Step{What: "remove schema", Where: repo.RollSchema, Why: "how far it came means nothing without the journal",
			Do: func(ctx context.Context) error { return s.Exec(ctx, "DROP DATABASE IF EXISTS "+repo.RollSchema) }})
	}
	f.Steps = append(f.Steps, change.Step{What: "remove schema", Where: repo.JournalSchema, Do: func(ctx context.Context) error { return r.endJournal(ctx, s) }})
	if !dryRun {
		_, err = change.Execute(ctx, f.Steps, change.Log{})
	}
	return f, err
}

// look finds out which tables are not finished: the journal knows their names' hashes.
func (f *Forgotten) look(ctx context.Context, s *session) error {
	states := map[string]state{} // by the bytes of an id
	err := s.Query(ctx, "SELECT /* risso: how far is it? */ id, state FROM "+repo.JournalSchema+".tables", func(row [][]byte) error {
		n, err := strconv.Atoi(string(row[1]))
		states[string(row[0])] = state(n)
		return err
	})
	if err != nil {
		return err
	}
	id := func(schema, table string) string {
		b := hashOf(schema, table)
		return string(b[:])
	}
	f.Rolling = states[id("", "roll forward")] > absent
	return s.Query(ctx, "SELECT /* risso: what is there? */ TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE'", func(row [][]byte) error {
		switch st, ok := states[id(string(row[0]), string(row[1]))]; {
		case !ok:
		case st == equal:
			f.Tables++
		default:
			f.Partly = append(f.Partly, mysql.Quote(string(row[0]))+"."+mysql.Quote(string(row[1])))
		}
		return nil
	})
}

package flags

import (
	"context"
	"fmt"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sqltext"
)

// ErrantLogs are the binary logs of a server, as package errant wants them.
type ErrantLogs struct{ Server mysql.Target }

// Find is errant.Logs.
func (s ErrantLogs) Find(ctx context.Context, among mysql.GTIDSet, wanted func(mysql.GTID) bool, most int) (errant.Seen, error) {
	files, err := binlog.FromServer(ctx, s.Server)
	if err == nil && !among.Empty() {
		files, err = binlog.ReadHeads(ctx, files)
	}
	if err != nil {
		return errant.Seen{}, LogFailure(err)
	}
	res, err := binlog.Search(ctx, files, binlog.Damage{GTID: among, Wanted: wanted, Limit: most})
	if err != nil {
		return errant.Seen{}, LogFailure(err)
	}
	seen := errant.Seen{Total: res.Fit, Incomplete: res.Incomplete, Notes: res.Notes}
	if seen.Before, err = s.began(ctx); err != nil {
		return errant.Seen{}, err
	}
	for _, f := range res.Found {
		t := errant.Transaction{GTID: f.GTID, Time: f.Time, File: f.File, Position: f.Pos, Connection: f.Thread, ServerID: f.Server, Changes: []errant.Change{}}
		for _, c := range f.Changes {
			t.Changes = append(t.Changes, errant.Change{Table: c.Table, Kind: c.Kind, Rows: c.Rows, Other: c.Object})
		}
		for _, st := range f.Statements {
			text := st.Text
			if sqltext.SetsPassword([]byte(text)) {
				text = string(sqltext.Redact(nil, []byte(text)))
			}
			t.Statements = append(t.Statements, oneline.Cut(oneline.Of(text), 300))
		}
		seen.Transactions = append(seen.Transactions, t)
	}
	return seen, nil
}

// began is what came before its oldest log.
func (s ErrantLogs) began(ctx context.Context) (mysql.BinlogState, error) {
	c, err := mysql.Connect(ctx, s.Server, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	before, err := mysql.OldestLog(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("ask what came before the oldest binary log: %w", err)
	}
	return before, nil
}

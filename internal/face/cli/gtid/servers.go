package gtid

import (
	"context"
	"errors"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sqltext"
)

// named is a server that is asked.
type named struct {
	name   string
	target mysql.Target
}

// ask connects and reads.
func (n named) ask(ctx context.Context) (errant.Reading, error) {
	c, err := mysql.Connect(ctx, n.target, nil)
	if err != nil {
		return errant.Reading{}, err
	}
	defer c.Close()
	return errant.Read(ctx, n.name, c)
}

// serverLogs are the binary logs of a server, as package errant wants them.
type serverLogs struct{ named }

// Find is errant.Logs.
func (s serverLogs) Find(ctx context.Context, among mysql.GTIDSet, wanted func(mysql.GTID) bool, most int) (errant.Seen, error) {
	files, err := binlog.FromServer(ctx, s.target)
	if err == nil && !among.Empty() {
		files, err = binlog.ReadHeads(ctx, files)
	}
	if err != nil {
		return errant.Seen{}, flags.LogFailure(err)
	}
	res, err := binlog.Search(ctx, files, binlog.Damage{GTID: among, Wanted: wanted, Limit: most})
	if err != nil {
		return errant.Seen{}, flags.LogFailure(err)
	}
	seen := errant.Seen{Total: res.Fit, Incomplete: res.Incomplete, Notes: res.Notes}
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

// servers are those that --dsn names.
func servers(f flags.Servers) (list []named, err error) {
	watched, err := f.Watched()
	if err != nil {
		return nil, err
	}
	for _, w := range watched {
		list = append(list, named{w.Instance.Name, w.Target})
	}
	return list, nil
}

// source is the server that --source names; ok is false if it names none.
func source(f flags.Servers, dsn string) (n named, ok bool, err error) {
	if dsn == "" {
		return n, false, nil
	}
	f.Dsns, f.All = []string{dsn}, false
	list, err := servers(f)
	if err != nil || len(list) == 0 {
		return n, false, errors.Join(errors.New("--source"), err)
	}
	return list[0], true, nil
}

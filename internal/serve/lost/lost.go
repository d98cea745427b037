// Package lost reads from binary logs what transactions changed that the new primary of a group does not have: those of the old primary, a mirror of them, or
// files of its data folder.
package lost

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sqltext"
)

// Logs are binary logs in which transactions are looked for, as package errant wants them.
type Logs struct {
	Words string // whose they are
	Files func(context.Context) ([]binlog.File, error)
	// Before is what came before the oldest; nil: it is not known.
	Before func(context.Context) (mysql.BinlogState, error)
	// Keep is how long their server keeps them; 0: for good. nil: it is not known.
	Keep func(context.Context) (time.Duration, error)
}

// OfServer are those that a server has now.
func OfServer(name string, t mysql.Target) Logs {
	return Logs{
		Words:  "the binary logs of " + name,
		Files:  func(ctx context.Context) ([]binlog.File, error) { return binlog.FromServer(ctx, t) },
		Before: func(ctx context.Context) (mysql.BinlogState, error) { return began(ctx, t) },
		Keep:   func(ctx context.Context) (time.Duration, error) { return kept(ctx, t) },
	}
}

// Of are logs that were found elsewhere.
func Of(words string, files []binlog.File) Logs {
	return Logs{Words: words, Files: func(context.Context) ([]binlog.File, error) { return files, nil }}
}

// Pick are the transactions that are wanted in them; of MySQL's, logs that cannot have them are not read.
func (l Logs) Pick(ctx context.Context, among mysql.GTIDSet, wanted func(mysql.GTID) bool) (binlog.Pick, error) {
	files, err := l.Files(ctx)
	if err == nil && !among.Empty() {
		files, err = binlog.ReadHeads(ctx, files)
	}
	return binlog.Pick{Files: files, Among: among, Wanted: wanted}, err
}

// Find is errant.Logs.
func (l Logs) Find(ctx context.Context, among mysql.GTIDSet, wanted func(mysql.GTID) bool, most int) (errant.Seen, error) {
	pick, err := l.Pick(ctx, among, wanted)
	if err != nil {
		return errant.Seen{}, err
	}
	res, err := binlog.Search(ctx, pick.Files, binlog.Damage{GTID: among, Wanted: wanted, Limit: most})
	if err != nil {
		return errant.Seen{}, err
	}
	seen := errant.Seen{Total: res.Fit, Incomplete: res.Incomplete, Notes: res.Notes}
	if l.Before != nil {
		if seen.Before, err = l.Before(ctx); err != nil {
			return errant.Seen{}, err
		}
	}
	for _, f := range res.Found {
		t := errant.Transaction{GTID: f.GTID, Time: f.Time, File: f.File, Position: f.Pos, Connection: f.Thread, ServerID: f.Server, Changes: []errant.Change{}}
		for _, c := range f.Changes {
			t.Changes = append(t.Changes, errant.Change{Table: c.Table, Kind: c.Kind, Rows: c.Rows, Other: c.Object})
		}
		for _, st := range f.Statements {
			text := st.Text
			if sqltext.SetsPassword([]byte(text)) {
				text = redacted(text)
			}
			t.Statements = append(t.Statements, oneline.Cut(oneline.Of(text), 300))
		}
		seen.Transactions = append(seen.Transactions, t)
	}
	return seen, nil
}

func redacted(text string) string { return string(sqltext.Redact(nil, []byte(text))) }

// began is what came before the oldest log of a server.
func began(ctx context.Context, t mysql.Target) (mysql.BinlogState, error) {
	c, err := mysql.Connect(ctx, t, nil)
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

// kept is how long a server keeps its binary logs; 0: for good.
func kept(ctx context.Context, t mysql.Target) (keep time.Duration, err error) {
	c, err := mysql.Connect(ctx, t, nil)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	rows, err := c.Maps(ctx, "SHOW /* risso: how long are binary logs kept? */ GLOBAL VARIABLES WHERE Variable_name IN ('binlog_expire_logs_seconds', 'expire_logs_days', 'binlog_expire_logs_auto_purge')")
	if err != nil {
		return 0, fmt.Errorf("ask how long binary logs are kept: %w", err)
	}
	for _, r := range rows {
		n, _ := strconv.ParseFloat(r["Value"], 64)
		switch strings.ToLower(r["Variable_name"]) {
		case "binlog_expire_logs_auto_purge":
			if r["Value"] == "OFF" {
				return 0, nil
			}
		case "expire_logs_days":
			n *= 24 * 60 * 60
			fallthrough
		default: // both are there on some servers, and one of them is 0, or both say the same
			keep = max(keep, time.Duration(n*float64(time.Second)))
		}
	}
	return keep, nil
}

// Beyond are the transactions in logs that a server has not, which told what it has had.
func Beyond(ctx context.Context, logs Logs, executed string) (mysql.Errant, error) {
	others, err := mysql.Beyond(nil, executed)
	if err != nil {
		return others, err
	}
	set, err := mysql.ParseGTIDSet(executed)
	if err != nil {
		return others, err
	}
	has := set.Contains
	if set.ByDomain() {
		has = others.Theirs.Contains
	}
	var mu sync.Mutex
	var list []mysql.GTID
	pick, err := logs.Pick(ctx, mysql.GTIDSet{}, nil)
	if err != nil {
		return others, err
	}
	_, err = binlog.Search(ctx, pick.Files, binlog.Damage{Limit: 1, Wanted: func(g mysql.GTID) bool {
		if g.IsZero() || has(g) {
			return false
		}
		mu.Lock() // logs are read at the same time
		defer mu.Unlock()
		list = append(list, g)
		return false
	}})
	if err != nil {
		return others, err
	}
	return mysql.Beyond(list, executed)
}

// MostKept are the transactions of which a receipt keeps what they changed.
const MostKept = 100

// Contents are what transactions changed, for a receipt: without the values in their statements.
func Contents(ctx context.Context, which mysql.Errant, logs Logs) *failover.Contents {
	part, more := errant.Contents(ctx, which, logs, MostKept)
	c := &failover.Contents{Read: time.Now().UTC(), From: logs.Words, Transactions: part.Transactions, More: more, Unseen: part.Unseen, Unwritten: part.Unwritten}
	if logs.Keep != nil && len(c.Transactions) > 0 {
		if keep, err := logs.Keep(ctx); err == nil && keep > 0 {
			c.Until = c.Transactions[0].Time.Add(keep)
		}
	}
	for i := range c.Transactions {
		t := &c.Transactions[i]
		for _, ch := range t.Changes {
			c.Rows += ch.Rows
		}
		for n, text := range t.Statements {
			t.Statements[n] = redacted(text)
		}
	}
	return c
}

// FromMember is carry.Carrier's Contents.
func FromMember(ctx context.Context, member string, t mysql.Target, which mysql.Errant) *failover.Contents {
	return Contents(ctx, which, OfServer(member, t))
}

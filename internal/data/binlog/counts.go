package binlog

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
)

// BackupCounts returns how many rows tables had, by the manifests of backups of the server whose logs are searched. Of all
// backups it takes two: the newest before until, which is nearest to the mistake, and the oldest since the logs began, from
// which on they have every change. A manifest is read when the first table is asked for; only wanted tables are kept of it.
func BackupCounts(r *repo.Repo, backups []repo.Header, since, until time.Time, wanted TableFilter) Counts {
	var chosen []repo.Header
	for i := range backups { // the newest first
		h := backups[len(backups)-1-i]
		if h.Kind != repo.Logical || !until.IsZero() && h.Snapshot.After(until) {
			continue
		}
		switch {
		case len(chosen) == 0:
			chosen = append(chosen, h)
		case !since.IsZero() && h.Snapshot.After(since):
			chosen = append(chosen[:1], h)
		}
	}
	b := &backupCounts{repo: r, chosen: chosen, wanted: wanted}
	return b.counts
}

type backupCounts struct {
	repo   *repo.Repo
	chosen []repo.Header
	wanted TableFilter

	mu   sync.Mutex
	rows map[string][]Count // nil: not read
}

func (b *backupCounts) counts(ctx context.Context, schema, table string) []Count {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rows == nil {
		b.rows = map[string][]Count{}
		for _, h := range b.chosen {
			b.read(ctx, h) // a damaged one is ignored
		}
	}
	return b.rows[schema+"."+table]
}

func (b *backupCounts) read(ctx context.Context, h repo.Header) error {
	before, err := mysql.ParseGTIDSet(h.Position.GTIDSet)
	if err != nil {
		return err
	}
	m, err := b.repo.Manifest(ctx, h.ID)
	if err != nil {
		return err
	}
	defer m.Close()
	return m.Each(func(l repo.Line) error {
		if t := l.Table; t != nil && (b.wanted == nil || b.wanted(t.Schema, t.Name)) {
			name := t.Schema + "." + t.Name
			b.rows[name] = append(b.rows[name], Count{Rows: t.Rows, Exact: t.Transactional, Source: "backup " + h.ID, Time: h.Snapshot, Before: before})
		}
		return nil
	})
}

// maxCounted is how many rows are counted before the server's estimate is used.
const maxCounted = 100_000

// Rows returns how many rows a table has now: counted if they are few, else as the server estimates.
func (l *Live) Rows(ctx context.Context, schema, table string) (Count, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := mysql.Quote(schema) + "." + mysql.Quote(table)
	rows, err := l.conn.Maps(ctx, "SELECT /* risso: how many rows are left? */ COUNT(*) AS n FROM (SELECT 1 FROM "+at+" LIMIT "+strconv.Itoa(maxCounted+1)+") x")
	if err != nil || len(rows) == 0 {
		return Count{}, false
	}
	n, err := strconv.ParseInt(rows[0]["n"], 10, 64)
	c := Count{Rows: n, Exact: true, Source: "rows counted now", Time: time.Now(), Now: true}
	if n <= maxCounted || err != nil {
		return c, err == nil
	}
	// MySQL 8 keeps what INFORMATION_SCHEMA.TABLES says for a day (information_schema_stats_expiry): InnoDB's own table is newer.
	c.Exact, c.Source = false, "the server's current estimate"
	for _, q := range []string{
		"SELECT /* risso: how many rows are left? */ MAX(n_rows) AS n FROM mysql.innodb_table_stats WHERE database_name = " + mysql.Literal(schema) + " AND table_name = " + mysql.Literal(table),
		"SELECT /* risso: how many rows are left? */ TABLE_ROWS AS n FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = " + mysql.Literal(schema) + " AND TABLE_NAME = " + mysql.Literal(table),
	} {
		rows, err := l.conn.Maps(ctx, q)
		if err != nil || len(rows) == 0 {
			continue
		}
		if n, err := strconv.ParseInt(rows[0]["n"], 10, 64); err == nil {
			c.Rows = max(n, maxCounted)
			return c, true
		}
	}
	return c, false
}

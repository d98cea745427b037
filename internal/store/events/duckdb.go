//go:build cgo

package events

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"github.com/rissodb/risso/internal/store/aside"
)

// Embedded says whether this build has the embedded store.
const Embedded = true

// embedded is the store in one DuckDB file.
type embedded struct {
	asker
	path string

	use    sync.RWMutex // held for reading while the database is in use, for writing while it is reopened
	db     *sql.DB
	damage *aside.Damage
	broken atomic.Bool // DuckDB gave up on the database, as after a full disk: it must be reopened

	mu sync.Mutex // held by the one that writes

	untilMu sync.Mutex
	next    [2]int64 // what until becomes when the transaction of the writer is confirmed; its own
	until   [2]int64 // up to here whole hours are in risso_hours, whole days in risso_days
}

// What DuckDB may use. Its memory limit is a goal, not a wall: questions were seen to take up to twice as much. They are few at
// a time and bounded, too. flushFrom is how much freed memory goes back to the system; DuckDB would keep hundreds of megabytes.
const (
	memoryLimit    = "128MB"
	flushFrom      = "8MB"
	tempLimit      = "2GB"
	maxThreads     = 2
	rollupPatience = 5 * minute // an hour is rolled up so long after it ended
)

// schemaVersion is the version of the tables below. Older files are brought to it, newer ones left alone.
const schemaVersion = 1

// minuteSums are the columns of risso_minutes and risso_hours that are added up.
var minuteSums = []string{"calls", "seconds", "lock_seconds", "rows_sent", "rows_examined", "rows_affected", "errors", "warnings",
	"tmp_tables", "tmp_disk_tables", "no_index", "sort_rows"}

const tableOfCosts = ` (
	instance VARCHAR NOT NULL, time BIGINT NOT NULL, class BIGINT NOT NULL, db VARCHAR NOT NULL, account VARCHAR NOT NULL,
	calls BIGINT NOT NULL, seconds DOUBLE NOT NULL, lock_seconds DOUBLE NOT NULL, rows_sent BIGINT NOT NULL, rows_examined BIGINT NOT NULL,
	rows_affected BIGINT NOT NULL, errors BIGINT NOT NULL, warnings BIGINT NOT NULL, tmp_tables BIGINT NOT NULL, tmp_disk_tables BIGINT NOT NULL,
	no_index BIGINT NOT NULL, sort_rows BIGINT NOT NULL, max_seconds DOUBLE NOT NULL, bucket SMALLINT[], bucket_calls BIGINT[]);`

const createTables = `
CREATE TABLE risso_meta (name VARCHAR PRIMARY KEY, value BIGINT NOT NULL);
CREATE TABLE risso_minutes` + tableOfCosts + `
CREATE TABLE risso_hours` + tableOfCosts + `
CREATE TABLE risso_days` + tableOfCosts + `
CREATE TABLE risso_classes (class BIGINT PRIMARY KEY, id VARCHAR NOT NULL, pt_id VARCHAR NOT NULL, fingerprint VARCHAR NOT NULL, verb VARCHAR NOT NULL, tables VARCHAR NOT NULL);
CREATE TABLE risso_seen (instance VARCHAR NOT NULL, class BIGINT NOT NULL, digest VARCHAR NOT NULL, first_seen BIGINT NOT NULL, last_seen BIGINT NOT NULL, PRIMARY KEY (instance, class, digest));
CREATE TABLE risso_samples (instance VARCHAR NOT NULL, class BIGINT NOT NULL, time BIGINT NOT NULL, text VARCHAR NOT NULL, seconds DOUBLE NOT NULL, db VARCHAR NOT NULL,
	account VARCHAR NOT NULL, host VARCHAR NOT NULL, PRIMARY KEY (instance, class, time));
CREATE TABLE risso_plans (instance VARCHAR NOT NULL, class BIGINT NOT NULL, db VARCHAR NOT NULL, plan VARCHAR NOT NULL, first_seen BIGINT NOT NULL, last_seen BIGINT NOT NULL,
	origin VARCHAR NOT NULL, text VARCHAR NOT NULL, PRIMARY KEY (instance, class, db, plan));
CREATE TABLE risso_flips (instance VARCHAR NOT NULL, class BIGINT NOT NULL, db VARCHAR NOT NULL, time BIGINT NOT NULL, old VARCHAR NOT NULL, new VARCHAR NOT NULL);
`

// macros give DuckDB the words of ClickHouse that the questions use. They live with a connection.
var macros = []string{
	"CREATE OR REPLACE TEMP MACRO toInt64(x) AS CAST(coalesce(x, 0) AS BIGINT)",
	"CREATE OR REPLACE TEMP MACRO toFloat64(x) AS CAST(coalesce(x, 0) AS DOUBLE)",
	"CREATE OR REPLACE TEMP MACRO intDiv(a, b) AS a // b",
	"CREATE OR REPLACE TEMP MACRO uniqExact(x) AS count(DISTINCT x)",
}

// OpenEmbedded opens the store in the file at path and creates it if there is none. Its folder is for nothing else: only
// its owner may enter it. A damaged file is moved aside, a
// new one is begun, and Damage says so. A file that another process has open is ErrInUse.
func OpenEmbedded(ctx context.Context, path string) (Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open the store of statements: %w", err)
	}
	// DuckDB creates its files with the process's umask: others must not get as far as the files.
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open the store of statements: %w", err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open the store of statements: %w", err)
	}
	s, err := openOrSetAside(ctx, path)
	return s.orNil(err)
}

func openOrSetAside(ctx context.Context, path string) (*embedded, error) {
	s, err := openEmbedded(ctx, path)
	if err == nil || !damaged(err) {
		return s, err
	}
	moved, merr := aside.Move(path, time.Now(), ".wal")
	if merr != nil {
		return nil, fmt.Errorf("the store of statements %s is damaged (%w) and could not be moved aside: %w", path, err, merr)
	}
	d := &aside.Damage{MovedTo: moved, Reason: firstLine(err.Error())}
	if s, err = openEmbedded(ctx, path); err == nil {
		s.damage = d
	}
	return s, err
}

// revive reopens a database that DuckDB gave up on. What was confirmed is in the file and its log.
func (s *embedded) revive(ctx context.Context) error {
	s.use.Lock()
	defer s.use.Unlock()
	if !s.broken.Load() {
		return nil
	}
	if err := s.db.Close(); err != nil && !strings.Contains(err.Error(), "invalidated") {
		return fmt.Errorf("close the broken store: %w", err)
	}
	fresh, err := openOrSetAside(ctx, s.path)
	if err != nil {
		return err
	}
	s.db = fresh.db
	if fresh.damage != nil {
		s.damage = fresh.damage
	}
	s.pruned.Store(fresh.pruned.Load())
	s.setRolled(fresh.until[0], fresh.until[1])
	s.broken.Store(false)
	return nil
}

// judge notes whether an error means that DuckDB gave up on the database.
func (s *embedded) judge(err error) {
	var e *duckdb.Error
	if errors.As(err, &e) && (e.Type == duckdb.ErrorTypeFatal || strings.Contains(e.Msg, "database has been invalidated")) {
		s.broken.Store(true)
	}
}

func (s *embedded) orNil(err error) (Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openEmbedded(ctx context.Context, path string) (*embedded, error) {
	if err := os.MkdirAll(path+".tmp", 0o700); err != nil {
		return nil, fmt.Errorf("open the store of statements: %w", err)
	}
	if strings.Contains(path, "?") { // the driver takes what follows for options
		return nil, fmt.Errorf("the store of statements cannot be at %s: choose a folder without a question mark", path)
	}
	dsn := fmt.Sprintf("%s?threads=%d&memory_limit=%s&max_temp_directory_size=%s&autoinstall_known_extensions=false&autoload_known_extensions=false",
		path, min(maxThreads, runtime.NumCPU()), memoryLimit, tempLimit)
	connector, err := duckdb.NewConnector(dsn, func(c driver.ExecerContext) error {
		for _, m := range macros {
			if _, err := c.ExecContext(ctx, m, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, explainOpen(path, err)
	}
	s := &embedded{path: path, db: sql.OpenDB(connector)}
	s.asker = newAsker(s)
	s.db.SetMaxOpenConns(atOnce + 2) // questions, the writer, one to spare
	s.db.SetMaxIdleConns(atOnce + 2)
	if err := s.prepare(ctx); err != nil {
		s.db.Close()
		return nil, explainOpen(path, err)
	}
	return s, nil
}

func (s *embedded) prepare(ctx context.Context) error {
	for _, set := range []string{
		"SET temp_directory = '" + strings.ReplaceAll(s.path+".tmp", "'", "''") + "'",
		"SET allocator_flush_threshold = '" + flushFrom + "'",
		"SET allocator_bulk_deallocation_flush_threshold = '" + flushFrom + "'",
		"SET enable_external_access = false", // no statement may reach another file or the network
		"SET lock_configuration = true",
	} {
		if _, err := s.db.ExecContext(ctx, set); err != nil {
			return err
		}
	}
	var tables int
	if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'risso_%'").Scan(&tables); err != nil {
		return err
	}
	if tables == 0 {
		return s.change(ctx, func(ctx context.Context, c *sql.Conn) error {
			if _, err := c.ExecContext(ctx, createTables+createReadings+";"+createActivity); err != nil {
				return err
			}
			_, err := c.ExecContext(ctx, "INSERT INTO risso_meta VALUES ('schema', ?), ('hours', 0), ('days', 0), ('pruned', 0)", schemaVersion)
			return err
		})
	}
	var version, pruned int64
	if err := s.db.QueryRowContext(ctx, "SELECT max(value) FILTER (WHERE name = 'schema'), max(value) FILTER (WHERE name = 'hours'), max(value) FILTER (WHERE name = 'days'), max(value) FILTER (WHERE name = 'pruned') FROM risso_meta").
		Scan(&version, &s.until[0], &s.until[1], &pruned); err != nil {
		return err
	}
	if version > schemaVersion {
		return fmt.Errorf("%w: its tables are version %d, this Risso knows up to %d", ErrNewer, version, schemaVersion)
	}
	s.pruned.Store(pruned)
	if _, err := s.db.ExecContext(ctx, createActivity); err != nil { // a file of an older Risso has it not
		return err
	}
	return s.prepareReadings(ctx)
}

// damaged reports whether an error of opening means that the file itself is broken. DuckDB has no error class for that.
func damaged(err error) bool {
	if errors.Is(err, ErrNewer) || errors.Is(err, ErrInUse) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var e *duckdb.Error
	text := err.Error()
	if errors.As(err, &e) {
		switch e.Type {
		case duckdb.ErrorTypeSerialization, duckdb.ErrorTypeFatal, duckdb.ErrorTypeInternal, duckdb.ErrorTypeCatalog:
			return true
		}
		text = e.Msg
	}
	for _, sign := range []string{"not a valid DuckDB database", "checksum", "orrupt", "replaying WAL", "Failed to load metadata", "Serialization Error", "INTERNAL Error", "FATAL Error", "Could not read enough bytes"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

func explainOpen(path string, err error) error {
	switch { // DuckDB's errors have a type each, and it is the same one (IO) for all of these
	case strings.Contains(err.Error(), "Could not set lock"):
		return fmt.Errorf("%w: %s", ErrInUse, path)
	case strings.Contains(err.Error(), "Trying to read a database file with version number"):
		return fmt.Errorf("%w: %s: %s", ErrNewer, path, firstLine(err.Error()))
	}
	return fmt.Errorf("open the store of statements: %w", err)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 300 {
		s = s[:300] + " …"
	}
	return s
}

// Damage reports the damaged file that was moved aside; nil when there was none.
func (s *embedded) Damage() *aside.Damage {
	s.use.RLock()
	defer s.use.RUnlock()
	return s.damage
}

// Name is the file.
func (s *embedded) Name() string { return "DuckDB, " + s.path }

// Close writes the log into the file and closes it.
func (s *embedded) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.use.Lock()
	defer s.use.Unlock()
	err := s.db.Close()
	return errors.Join(err, os.RemoveAll(s.path+".tmp"))
}

func (s *embedded) query(ctx context.Context, statement string, args []any, row func(scan func(dest ...any) error) error) (err error) {
	s.use.RLock()
	defer s.use.RUnlock()
	defer func() { s.judge(err) }()
	err = ask(ctx, s.db, statement, args, row)
	if e, ok := errors.AsType[*duckdb.Error](err); ok && e.Type == duckdb.ErrorTypeOutOfMemory {
		return fmt.Errorf("%w: %s", ErrMemory, firstLine(e.Msg))
	}
	return err
}

func (s *embedded) rolled() (hours, days int64) {
	s.untilMu.Lock()
	defer s.untilMu.Unlock()
	return s.until[0], s.until[1]
}

func (s *embedded) setRolled(hours, days int64) {
	s.untilMu.Lock()
	defer s.untilMu.Unlock()
	s.until = [2]int64{hours, days}
}

func (s *embedded) sumColumns() string { return minuteColumns }

func (s *embedded) once(subquery string) (prefix, name string) {
	return "WITH found AS MATERIALIZED (" + subquery + ") ", "found"
}

func (s *embedded) contains(column string) string { return "contains(lower(" + column + "), ?)" }

func (s *embedded) latency(table, where, slot string) string {
	return "SELECT class, slot, toInt64(bucket) AS bucket, toInt64(sum(calls)) AS counted FROM (SELECT class, toInt64(" + slot + ") AS slot, unnest(bucket) AS bucket, unnest(bucket_calls) AS calls FROM " +
		table + " WHERE " + where + " AND bucket IS NOT NULL) GROUP BY class, slot, bucket"
}

func (s *embedded) quantile(counted string, level float64) string {
	return fmt.Sprintf(`SELECT class, toInt64(min(bucket)) AS reached, toInt64(max(of)) AS of FROM
 (SELECT class, bucket, sum(counted) OVER (PARTITION BY class ORDER BY bucket) AS below, sum(counted) OVER (PARTITION BY class) AS of FROM (%s))
 WHERE below >= CAST(%g AS DOUBLE) * of GROUP BY class`, counted, level)
}

// change runs f in one transaction of the one writer.
func (s *embedded) change(ctx context.Context, f func(context.Context, *sql.Conn) error) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken.Load() {
		if err := s.revive(ctx); err != nil {
			return err
		}
	}
	s.use.RLock()
	defer s.use.RUnlock()
	defer func() { s.judge(err) }()
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, "BEGIN TRANSACTION"); err != nil {
		return err
	}
	s.next = [2]int64{}
	if err = f(ctx, c); err == nil {
		_, err = c.ExecContext(ctx, "COMMIT")
	}
	if err == nil && s.next[0] != 0 {
		s.setRolled(s.next[0], s.next[1])
	}
	if err != nil {
		// Not with ctx, which may have ended: the connection goes back to the pool.
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_, _ = c.ExecContext(rctx, "ROLLBACK")                          // after a failed COMMIT there is nothing left to roll back
		if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) { // DuckDB says that it was interrupted, not by what
			err = fmt.Errorf("%w: %w", ended, err)
		}
	}
	return err
}

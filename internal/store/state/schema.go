package state

import (
	"context"
	"database/sql"
	"fmt"
	"syscall"
)

// errNoSpace is what a full disk looks like to the file functions.
const errNoSpace = syscall.ENOSPC

// applicationID marks a file as Risso's: "RSSO" in its header, where file(1) looks.
const applicationID = 0x5253534f

// migrations make the schema, one after the other. PRAGMA user_version counts how
// many a file has had. One that was released is never changed.
var migrations = [...]string{
	// 1
	`CREATE TABLE events (
		id       INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, even after a prune
		time     INTEGER NOT NULL,                  -- microseconds since 1970, as all times here
		instance TEXT NOT NULL,                     -- empty: Risso itself
		kind     TEXT NOT NULL,
		severity INTEGER NOT NULL,
		subject  TEXT NOT NULL,
		old      TEXT NOT NULL,
		new      TEXT NOT NULL,
		text     TEXT NOT NULL
	) STRICT;
	CREATE INDEX events_by_instance ON events (instance, time);
	CREATE INDEX events_by_time ON events (time);

	CREATE TABLE instances (
		id         TEXT PRIMARY KEY,
		name       TEXT NOT NULL,
		kind       TEXT NOT NULL,
		address    TEXT NOT NULL,
		flavour    TEXT NOT NULL,
		version    TEXT NOT NULL,
		role       TEXT NOT NULL,
		host_id    TEXT NOT NULL,
		first_seen INTEGER NOT NULL,
		last_seen  INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;

	CREATE TABLE variables (
		instance TEXT NOT NULL,
		name     TEXT NOT NULL,
		value    TEXT,              -- NULL: the server does not have it any more
		seen     INTEGER NOT NULL,  -- when it was first seen
		PRIMARY KEY (instance, name)
	) STRICT, WITHOUT ROWID;

	CREATE TABLE variable_changes (
		instance TEXT NOT NULL,
		name     TEXT NOT NULL,
		time     INTEGER NOT NULL,
		old      TEXT,              -- NULL: the server did not have it
		new      TEXT,
		PRIMARY KEY (instance, name, time)
	) STRICT, WITHOUT ROWID;

	CREATE TABLE tokens (
		id        TEXT PRIMARY KEY,
		name      TEXT NOT NULL UNIQUE,
		hash      BLOB NOT NULL,    -- SHA-256 of the secret
		created   INTEGER NOT NULL,
		last_used INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;`,
	// 2
	`CREATE TABLE benchmarks (
		id          INTEGER PRIMARY KEY AUTOINCREMENT,
		stored      INTEGER NOT NULL,
		began       INTEGER NOT NULL,  -- the warm-up, where there was one
		ended       INTEGER NOT NULL,
		instance    TEXT NOT NULL,     -- empty: the server is not watched
		workload    TEXT NOT NULL,
		server      TEXT NOT NULL,     -- its address, as the run had it
		version     TEXT NOT NULL,
		threads     INTEGER NOT NULL,
		rate        REAL NOT NULL,     -- transactions a second that were asked for; 0: as many as could be
		throughput  REAL NOT NULL,     -- transactions a second
		queries     REAL NOT NULL,     -- a second
		p95         REAL NOT NULL,     -- seconds
		p99         REAL NOT NULL,
		errors      INTEGER NOT NULL,
		outage      REAL NOT NULL,     -- seconds in all
		interrupted INTEGER NOT NULL,
		hash        BLOB NOT NULL UNIQUE, -- SHA-256 of what was sent
		result      BLOB NOT NULL      -- the whole result, JSON, gzip
	) STRICT;
	CREATE INDEX benchmarks_by_instance ON benchmarks (instance, began);`,
}

// migrate brings a file to the newest schema, all of it or none.
func migrate(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var version, app, tables int
	for pragma, into := range map[string]*int{
		"PRAGMA user_version":                &version,
		"PRAGMA application_id":              &app,
		"SELECT count(*) FROM sqlite_schema": &tables,
	} {
		if err := tx.QueryRowContext(ctx, pragma).Scan(into); err != nil {
			return err
		}
	}
	if tables > 0 {
		if err := ours(app, version); err != nil {
			return err
		}
	}
	if version == len(migrations) {
		return nil
	}
	for i := version; i < len(migrations); i++ {
		if _, err := tx.ExecContext(ctx, migrations[i]); err != nil {
			return fmt.Errorf("schema version %d: %w", i+1, err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", applicationID, len(migrations))); err != nil {
		return err
	}
	return tx.Commit()
}

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
	// 3
	`CREATE TABLE protect_jobs (
		id       INTEGER PRIMARY KEY AUTOINCREMENT,
		name     TEXT NOT NULL UNIQUE,
		kind     TEXT NOT NULL,     -- backup, drill, verify, prune, copy, mirror, checksum
		instance TEXT NOT NULL,     -- empty: of no one server
		place    TEXT NOT NULL,     -- where the repository is; without a secret
		schedule TEXT NOT NULL,     -- as it was written; empty: only by hand
		options  TEXT NOT NULL,     -- JSON, the flags of the command
		enabled  INTEGER NOT NULL,
		next_due INTEGER NOT NULL,  -- 0: none
		created  INTEGER NOT NULL
	) STRICT;

	CREATE TABLE protect_runs (
		id       INTEGER PRIMARY KEY AUTOINCREMENT,
		job      INTEGER NOT NULL,  -- 0: by hand
		kind     TEXT NOT NULL,
		instance TEXT NOT NULL,
		place    TEXT NOT NULL,
		backup   TEXT NOT NULL,     -- the backup that was made, proven, verified, copied
		began    INTEGER NOT NULL,
		ended    INTEGER NOT NULL,  -- 0: it runs
		outcome  TEXT NOT NULL,     -- running, ok, failed, interrupted
		text     TEXT NOT NULL,     -- one sentence: the outcome, or why it failed and how to fix it
		result   TEXT NOT NULL      -- JSON, whatever the job says
	) STRICT;
	CREATE INDEX protect_runs_by_job ON protect_runs (job, began);
	CREATE INDEX protect_runs_by_instance ON protect_runs (instance, began);

	CREATE TABLE protect_backups (
		place    TEXT NOT NULL,
		id       TEXT NOT NULL,     -- as the repository calls it
		instance TEXT NOT NULL,
		kind     TEXT NOT NULL,     -- logical, physical
		parent   TEXT NOT NULL,     -- the backup that an incremental one needs
		began    INTEGER NOT NULL,
		ended    INTEGER NOT NULL,
		bytes    INTEGER NOT NULL,  -- before compression
		stored   INTEGER NOT NULL,  -- that this backup added to the place
		tables   INTEGER NOT NULL,
		rows     INTEGER NOT NULL,
		position TEXT NOT NULL,     -- GTID set or file:offset of the snapshot
		PRIMARY KEY (place, id)
	) STRICT, WITHOUT ROWID;
	CREATE INDEX protect_backups_by_instance ON protect_backups (instance, began);

	CREATE TABLE protect_drills (
		id       INTEGER PRIMARY KEY AUTOINCREMENT,
		place    TEXT NOT NULL,
		backup   TEXT NOT NULL,
		instance TEXT NOT NULL,
		began    INTEGER NOT NULL,
		ended    INTEGER NOT NULL,
		passed   INTEGER NOT NULL,
		recovery REAL NOT NULL,     -- seconds from the beginning until the server answered with its data
		reached  INTEGER NOT NULL,  -- the time that the data was rolled forward to; 0: the snapshot's
		text     TEXT NOT NULL,
		proof    TEXT NOT NULL,     -- JSON, as in the repository
		UNIQUE (place, backup, began)
	) STRICT;
	CREATE INDEX protect_drills_by_instance ON protect_drills (instance, began);

	CREATE TABLE protect_mirrors (
		place    TEXT NOT NULL,
		instance TEXT NOT NULL,
		first    INTEGER NOT NULL,  -- of the unbroken run of logs that ends now
		last     INTEGER NOT NULL,  -- of the newest event
		checked  INTEGER NOT NULL,
		gap      TEXT NOT NULL,     -- what is missing before first; empty: nothing
		PRIMARY KEY (place, instance)
	) STRICT, WITHOUT ROWID;`,
	// 4
	`CREATE TABLE protect_progress (
		run   INTEGER PRIMARY KEY,
		time  INTEGER NOT NULL,
		stage TEXT NOT NULL,
		done  INTEGER NOT NULL,
		total INTEGER NOT NULL,     -- 0: unknown
		unit  TEXT NOT NULL         -- bytes, rows, tables
	) STRICT;

	CREATE TABLE protect_log (
		id   INTEGER PRIMARY KEY AUTOINCREMENT,
		run  INTEGER NOT NULL,
		time INTEGER NOT NULL,
		text TEXT NOT NULL
	) STRICT;
	CREATE INDEX protect_log_by_run ON protect_log (run, id);`,
	// 5: tokens from before there were roles could do everything, and still can
	`ALTER TABLE tokens ADD COLUMN role TEXT NOT NULL DEFAULT 'act';
	CREATE TABLE access (asked INTEGER NOT NULL) STRICT; -- 1: a token is asked for, even when the last one was revoked
	INSERT INTO access SELECT count(*) > 0 FROM tokens;`,
	// 6
	`CREATE TABLE findings (
		id       INTEGER PRIMARY KEY AUTOINCREMENT,
		instance TEXT NOT NULL,
		finding  TEXT NOT NULL,     -- its stable word, such as repl.stopped
		subject  TEXT NOT NULL,     -- tells findings of one word apart: a channel, a disk
		severity INTEGER NOT NULL,  -- the worst it had
		began    INTEGER NOT NULL,  -- 0: nobody knows
		told     INTEGER NOT NULL,  -- when it was first told
		seen     INTEGER NOT NULL,  -- when it was last known to hold
		ended    INTEGER NOT NULL,  -- 0: it holds
		unseen   INTEGER NOT NULL,  -- 1: it ended while Risso did not look, between seen and ended
		first    TEXT NOT NULL,     -- JSON: the finding as it was first told
		worst    TEXT NOT NULL,     -- JSON: the finding at its worst
		worst_at INTEGER NOT NULL,
		evidence TEXT NOT NULL      -- JSON: what was seen at its worst; empty: nothing more
	) STRICT;
	CREATE UNIQUE INDEX findings_open ON findings (instance, finding, subject) WHERE ended = 0;
	CREATE INDEX findings_by_instance ON findings (instance, told);
	CREATE INDEX findings_by_time ON findings (told);
	CREATE INDEX findings_by_end ON findings (ended);`,
	// 7
	`CREATE TABLE marks (
		first INTEGER PRIMARY KEY,  -- its first event
		last  INTEGER NOT NULL,     -- and its last: one for each instance
		key   TEXT NOT NULL UNIQUE, -- by which a retry is known
		asked TEXT NOT NULL         -- JSON: what was asked for, to tell a retry from another mark with its key
	) STRICT;`,
	// 8: what rings, and who is told
	`ALTER TABLE findings ADD COLUMN closed INTEGER NOT NULL DEFAULT 0; -- ascending, in the order in which they were ended; 0: it holds
	UPDATE findings SET closed = id WHERE ended != 0;
	CREATE INDEX findings_by_closing ON findings (closed);
	CREATE TABLE alerting (state TEXT NOT NULL) STRICT; -- JSON, one row: what the engine remembers
	CREATE TABLE alerts (
		key      TEXT NOT NULL,     -- instance, finding and subject
		rang     INTEGER NOT NULL,  -- when it rang first
		instance TEXT NOT NULL,
		finding  TEXT NOT NULL,
		severity INTEGER NOT NULL,  -- the worst it had
		ended    INTEGER NOT NULL,  -- 0: it has not
		alert    TEXT NOT NULL,     -- JSON: as it is, or was at its end
		PRIMARY KEY (key, rang)
	) STRICT, WITHOUT ROWID;
	CREATE INDEX alerts_by_time ON alerts (rang);
	CREATE TABLE messages (
		id        TEXT NOT NULL PRIMARY KEY,
		receiver  TEXT NOT NULL,
		made      INTEGER NOT NULL,
		tries     INTEGER NOT NULL,
		next      INTEGER NOT NULL,  -- when it is to be tried again
		delivered INTEGER NOT NULL,  -- 0: it is not
		dropped   INTEGER NOT NULL,  -- when it was given up; 0: it is not
		error     TEXT NOT NULL,     -- of the last try
		body      TEXT NOT NULL      -- JSON
	) STRICT;
	CREATE INDEX messages_waiting ON messages (receiver, made) WHERE delivered = 0 AND dropped = 0;
	CREATE INDEX messages_by_receiver ON messages (receiver, made);
	CREATE TABLE silences (
		id     INTEGER PRIMARY KEY AUTOINCREMENT,
		begins INTEGER NOT NULL,
		ends   INTEGER NOT NULL,
		ended  INTEGER NOT NULL,  -- when somebody ended it; 0: nobody did
		body   TEXT NOT NULL      -- JSON: what it holds back, why, who made it
	) STRICT;
	CREATE TABLE acks (key TEXT NOT NULL, at INTEGER NOT NULL, who TEXT NOT NULL, PRIMARY KEY (key, at)) STRICT, WITHOUT ROWID;`,
	// 9: incidents, of which the rest is in files
	`CREATE TABLE incidents (
		id       TEXT NOT NULL PRIMARY KEY,
		instance TEXT NOT NULL,
		began    INTEGER NOT NULL,
		ended    INTEGER NOT NULL,  -- 0: it goes on
		body     TEXT NOT NULL      -- JSON: what lists show of it
	) STRICT, WITHOUT ROWID;
	CREATE INDEX incidents_by_time ON incidents (began);
	CREATE INDEX incidents_by_instance ON incidents (instance, began);`,
	// 10: the user's own rules and thresholds
	`CREATE TABLE rule_alerts (
		key    TEXT PRIMARY KEY,  -- the labels of an alert of the user's rules that is pending or fires
		since  INTEGER NOT NULL,
		firing INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;
	CREATE TABLE thresholds (
		id    INTEGER PRIMARY KEY AUTOINCREMENT,
		about TEXT NOT NULL UNIQUE, -- what it fits: there is one for each
		at    INTEGER NOT NULL,
		who   TEXT NOT NULL,
		body  TEXT NOT NULL         -- JSON
	) STRICT;
	CREATE INDEX findings_long ON findings (ended) WHERE ended = 0 OR ended - told > 86400000000; -- that one day of a year is found at once`,
	// 11: alerts of rules that fire on because of keep_firing_for
	`ALTER TABLE rule_alerts ADD COLUMN lapsed INTEGER NOT NULL DEFAULT 0; -- since when the rule no longer finds it; 0: it does
	ALTER TABLE rule_alerts ADD COLUMN value REAL`,
	// 12: that any day of years of findings is found at once; see spans
	`DROP INDEX findings_long;
	CREATE INDEX findings_by_span ON findings (` + spanOf + `, told)`,
	// 13: what is wrong before it hurts, and what people decided about it
	`CREATE TABLE advice (
		instance TEXT NOT NULL,
		finding  TEXT NOT NULL,     -- its stable word, such as schema.no_pk
		object   TEXT NOT NULL,     -- schema.table, user@host and the like; empty: the server
		severity INTEGER NOT NULL,
		first    INTEGER NOT NULL,  -- when it was first seen
		since    INTEGER NOT NULL,  -- since when it is so; 0: nobody knows
		seen     INTEGER NOT NULL,  -- when it was last seen
		ended    INTEGER NOT NULL,  -- when a look no longer found it; 0: it holds
		blind    TEXT NOT NULL,     -- JSON: what could not be read when it was last seen
		body     TEXT NOT NULL,     -- JSON: the finding as it was last seen
		PRIMARY KEY (instance, finding, object)
	) STRICT, WITHOUT ROWID;
	CREATE TABLE advice_looks (
		instance TEXT NOT NULL PRIMARY KEY,
		looked   INTEGER NOT NULL,  -- when the last look ended that was whole; 0: none was
		tried    INTEGER NOT NULL,  -- and the last one that was tried
		body     TEXT NOT NULL      -- JSON: what it took, what could not be read, why it failed
	) STRICT, WITHOUT ROWID;
	CREATE TABLE advice_decisions (
		id       INTEGER PRIMARY KEY AUTOINCREMENT,
		kind     TEXT NOT NULL,     -- accepted, postponed, silenced
		server   TEXT NOT NULL,     -- instance, or a pattern of names where it is silenced; empty: all
		finding  TEXT NOT NULL,
		object   TEXT NOT NULL,
		severity INTEGER NOT NULL,  -- that it had: what gets worse is told again
		until    INTEGER NOT NULL,  -- 0: without end
		at       INTEGER NOT NULL,
		who      TEXT NOT NULL,
		reason   TEXT NOT NULL,
		UNIQUE (server, finding, object)
	) STRICT`,
	// 14: what the replication topology looked like
	`CREATE TABLE topologies (
		id    INTEGER PRIMARY KEY AUTOINCREMENT,
		run   INTEGER NOT NULL,  -- when the process began that saw it: between two of them nobody looked
		first INTEGER NOT NULL,  -- when it was first seen so
		last  INTEGER NOT NULL,  -- and last
		words TEXT NOT NULL,     -- JSON: what changed, in words
		body  BLOB NOT NULL      -- JSON, by gzip
	) STRICT;
	CREATE INDEX topologies_by_time ON topologies (first)`,
	// 15: what processes and controllers agree on: groups, leases, journals of failovers, receipts
	`CREATE TABLE documents (
		kind    TEXT NOT NULL,
		key     TEXT NOT NULL,
		version INTEGER NOT NULL,  -- counts its changes
		changed INTEGER NOT NULL,
		by      TEXT NOT NULL,     -- who changed it
		body    BLOB NOT NULL,     -- JSON
		PRIMARY KEY (kind, key)
	) STRICT, WITHOUT ROWID`,
	// 16: users, what they and tokens may do, who signed in, and who did what
	`UPDATE tokens SET role = 'change' WHERE role = 'act';
	ALTER TABLE tokens ADD COLUMN only TEXT NOT NULL DEFAULT '';     -- JSON: patterns of what it may change; empty: everything
	ALTER TABLE tokens ADD COLUMN user TEXT NOT NULL DEFAULT '';     -- whose it is; empty: a program's
	ALTER TABLE tokens ADD COLUMN expires INTEGER NOT NULL DEFAULT 0; -- 0: never
	ALTER TABLE tokens ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;   -- when it was seen to have expired: a clock that goes back does not revive it
	CREATE TABLE users (
		name     TEXT NOT NULL PRIMARY KEY,
		role     TEXT NOT NULL,
		only     TEXT NOT NULL,
		password TEXT NOT NULL,     -- Argon2id
		created  INTEGER NOT NULL,
		changed  INTEGER NOT NULL,  -- the password
		seen     INTEGER NOT NULL   -- when he last signed in; 0: never
	) STRICT, WITHOUT ROWID;
	CREATE TABLE sessions (
		key     TEXT NOT NULL PRIMARY KEY, -- SHA-256 of what the browser has, in hex
		user    TEXT NOT NULL,             -- empty: of a program's token
		token   TEXT NOT NULL,             -- its id; empty: signed in by password
		created INTEGER NOT NULL,
		seen    INTEGER NOT NULL,
		expires INTEGER NOT NULL,
		address TEXT NOT NULL
	) STRICT, WITHOUT ROWID;
	CREATE TABLE devices (
		user    TEXT NOT NULL,
		device  TEXT NOT NULL,     -- SHA-256 of what the browser has, in hex
		last    INTEGER NOT NULL,  -- when he last signed in with it
		PRIMARY KEY (user, device)
	) STRICT, WITHOUT ROWID;
	CREATE TABLE actions (
		event   INTEGER PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE, -- when, to what, in words
		who     TEXT NOT NULL,
		role    TEXT NOT NULL,     -- that he had
		via     TEXT NOT NULL,     -- password, token and its name, shell; empty: nobody was asked
		address TEXT NOT NULL,     -- empty: a command on this machine
		call    TEXT NOT NULL,     -- the request or command
		outcome TEXT NOT NULL      -- done, failed, refused
	) STRICT;
	CREATE INDEX actions_by_outcome ON actions (outcome, event)`,
	// 17: how far a file is that controllers share
	`CREATE TABLE agreed (         -- one row where it is shared; none: it is not
		cluster TEXT NOT NULL,
		node    TEXT NOT NULL,     -- as which controller
		applied INTEGER NOT NULL   -- the number of the last change that was agreed on and is in this file
	) STRICT;
	CREATE TABLE agreed_families ( -- of tables: see families
		family TEXT NOT NULL PRIMARY KEY,
		at     INTEGER NOT NULL    -- the number of its last change
	) STRICT, WITHOUT ROWID;
	CREATE TABLE agreed_changes (  -- the last ones, so that none is made twice
		id TEXT NOT NULL PRIMARY KEY,
		at INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;
	CREATE INDEX agreed_changes_by_number ON agreed_changes (at)`,
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

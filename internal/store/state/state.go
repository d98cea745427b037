// Package state keeps facts in one SQLite file: which instances there are, what
// happened to them, how their variables changed, who may do what, and who did.
//
// DESIGN.md explains the design.
package state

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite" // the driver "sqlite"; also its error type
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/aside"
)

// The errors that a caller may want to distinguish.
var (
	// ErrDiskFull says that a write found no room. The store works again once there is.
	ErrDiskFull = errors.New("the disk that holds Risso's state is full")
	// ErrForeign says that the file is a database, but not one of Risso's, or one of
	// a newer Risso. It is left alone.
	ErrForeign = errors.New("not a state file of this version of Risso")
	// ErrBroken says that the file is damaged, beyond what SQLite can read.
	ErrBroken = errors.New("the state file is damaged")
	// ErrNotFound says that there is no such thing.
	ErrNotFound = errors.New("not found")
	// ErrExists says that the name is taken.
	ErrExists = errors.New("the name is already in use")
)

// callLimit bounds a call whose context has no deadline of its own.
const callLimit = 10 * time.Second

// Store is an open state file. All methods may be called from any goroutine.
type Store struct {
	path   string
	file   os.FileInfo // of the file that is open
	write  *sql.DB     // one connection: writers queue here and not in SQLite's busy loop
	read   *sql.DB     // readers, which WAL lets go on during writes
	damage *aside.Damage
	now    func() time.Time // the clock by which access ends
	match  func(kept, password string) (ok, current bool)

	mu     sync.Mutex
	seen   map[string]uint64 // per instance, a digest of the variables that are stored
	shared *share            // nil: the file is not shared between controllers; it does not change after Open
}

// Open opens the state file at path and makes it if there is none. A damaged one is refused with ErrBroken, and left as it is.
func Open(ctx context.Context, path string) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	s, err := open(ctx, path)
	var bad *damagedError
	if errors.As(err, &bad) {
		return nil, fleet.WithRemedy(fmt.Errorf("%s: %w", path, bad),
			"risso state restore brings a backup of it back; if there is none, move it away, and an empty one is begun")
	}
	return s, err
}

// OpenAnyway is Open for who has to go on without what was in the file: a damaged one is moved aside, a new one is begun, and
// Damage says so. An empty store after damage knows no token: callers must keep access closed.
func OpenAnyway(ctx context.Context, path string) (*Store, error) {
	s, err := Open(ctx, path)
	var bad *damagedError
	if !errors.As(err, &bad) {
		return s, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	moved, err := aside.Move(path, time.Now(), "-wal", "-shm")
	if err != nil {
		return nil, fmt.Errorf("open state: %s is damaged (%s) and could not be moved aside: %w", path, bad.reason, err)
	}
	if s, err = open(ctx, path); err != nil {
		return nil, err
	}
	s.damage = &aside.Damage{MovedTo: moved, Reason: bad.reason}
	if err := s.askAlways(ctx); err != nil { // there may have been tokens
		s.Close()
		return nil, err
	}
	return s, nil
}

// Reopen closes the store and opens its file again. What Damage said stays.
func (s *Store) Reopen(ctx context.Context) (*Store, error) {
	if err := s.Close(); err != nil {
		return nil, err
	}
	again, err := Open(ctx, s.path)
	if err == nil {
		again.damage = s.damage
	}
	return again, err
}

// Damage reports the damaged file that OpenAnyway moved aside; nil when there was none.
func (s *Store) Damage() *aside.Damage { return s.damage }

// Path is the state file.
func (s *Store) Path() string { return s.path }

// Close closes the store.
func (s *Store) Close() error { return errors.Join(s.read.Close(), s.write.Close()) }

// damagedError says that the file is beyond use.
type damagedError struct{ reason string }

func (e *damagedError) Error() string { return ErrBroken.Error() + ": " + e.reason }

// Is makes it an ErrBroken.
func (e *damagedError) Is(target error) bool { return target == ErrBroken }

func open(ctx context.Context, path string) (*Store, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // the check of a large file takes its time
	defer cancel()
	// Created here first, so that others cannot read the hashes in it.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	info, ierr := f.Stat()
	err = errors.Join(foreign(f), ierr)
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("open state %s: %w", path, err)
	}
	if size := info.Size(); 0 < size && size < leastPage { // which SQLite would take for a new one, and overwrite
		return nil, &damagedError{fmt.Sprintf("it has %s", digits.Counted(int(size), "byte"))}
	}
	s := &Store{path: path, file: info, now: time.Now, match: matches, seen: map[string]uint64{}}
	if s.write, err = connect(path, 1, writing, nil); err != nil {
		return nil, err
	}
	if s.read, err = connect(path, 2, "_pragma=query_only(1)", nil); err != nil {
		s.write.Close()
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.joinIn(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// leastPage is the size of the smallest page of SQLite (https://www.sqlite.org/fileformat.html).
const leastPage = 512

// foreign looks at the header before SQLite does, because opening a file in WAL
// mode changes it. The places are those of https://www.sqlite.org/fileformat.html:
// the number of pages at 28, user_version at 60, application_id at 68. migrate
// looks again, as the newest header may still be in the WAL.
func foreign(f *os.File) error {
	var h [100]byte
	if _, err := f.ReadAt(h[:], 0); err != nil || string(h[:16]) != "SQLite format 3\x00" {
		return nil // new, or damaged: for SQLite to say
	}
	pages, version, app := binary.BigEndian.Uint32(h[28:]), binary.BigEndian.Uint32(h[60:]), binary.BigEndian.Uint32(h[68:])
	if pages > 1 {
		return ours(int(app), int(version))
	}
	return nil
}

// ours judges by the marks of a file that holds tables.
func ours(app, version int) error {
	switch {
	case app != applicationID:
		return fmt.Errorf("%w: it is another program's database; give Risso a separate folder", ErrForeign)
	case version > len(migrations):
		return fmt.Errorf("%w: its schema is version %d, this Risso knows up to %d; run the newer Risso", ErrForeign, version, len(migrations))
	}
	return nil
}

func (s *Store) prepare(ctx context.Context) error {
	if err := check(ctx, s.write, s.path); err != nil {
		return err
	}
	if err := migrate(ctx, s.write); err != nil {
		if reason, bad := damaged(err); bad {
			return &damagedError{reason}
		}
		return fmt.Errorf("open state %s: %w", s.path, explain(err))
	}
	return nil
}

// writing lets transactions take the file when they begin.
const writing = "_txlock=immediate"

// connect makes a pool. The cache is kept small: the facts are few, and the
// kernel caches the file. watched notes what changes; nil: nobody does.
func connect(path string, connections int, extra string, watched *recorder) (*sql.DB, error) {
	q := strings.Join([]string{
		"_pragma=busy_timeout(5000)",
		"_pragma=journal_mode(WAL)",
		"_pragma=synchronous(NORMAL)", // a crash of the machine may cost the last events, never the file
		"_pragma=foreign_keys(1)",
		"_pragma=cache_size(-256)", // KiB for each connection
		"_pragma=journal_size_limit(1048576)",
		"_pragma=wal_autocheckpoint(128)", // pages
		"_pragma=temp_store(MEMORY)",
		extra,
	}, "&")
	u := url.URL{Scheme: "file", Path: path, RawQuery: q}
	connector, err := sqlite.NewConnector(u.String())
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	if watched != nil {
		connector = recording{connector, watched}
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// quickAbove is the size from which the whole check takes too long at the start.
const quickAbove = 64 << 20

// check reads the file through and finds what is broken.
func check(ctx context.Context, db *sql.DB, path string) error {
	pragma := "PRAGMA integrity_check(3)"
	if st, err := os.Stat(path); err == nil && st.Size() > quickAbove {
		pragma = "PRAGMA quick_check(3)" // leaves out whether indexes match their tables
	}
	rows, err := db.QueryContext(ctx, pragma)
	if err != nil {
		if reason, bad := damaged(err); bad {
			return &damagedError{reason}
		}
		return fmt.Errorf("open state %s: %w", path, explain(err))
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return fmt.Errorf("check state: %w", err)
		}
		if line != "ok" {
			found = append(found, line)
		}
	}
	if err := rows.Err(); err != nil {
		if reason, bad := damaged(err); bad {
			return &damagedError{reason}
		}
		return fmt.Errorf("check state: %w", explain(err))
	}
	if len(found) > 0 {
		return &damagedError{strings.ReplaceAll(strings.Join(found, "; "), "\n", ", ")}
	}
	return nil
}

// damaged reports whether an error means that the file itself is broken.
func damaged(err error) (string, bool) {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return e.Error(), true
		}
	}
	return "", false
}

// explain names the errors that have a remedy.
func explain(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_FULL:
			return fmt.Errorf("%w (free some space; nothing that was stored is lost): %w", ErrDiskFull, err)
		case sqlite3.SQLITE_IOERR:
			if errors.Is(err, errNoSpace) || e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE || e.Code() == sqlite3.SQLITE_IOERR_WRITE {
				return fmt.Errorf("%w, or cannot be written: %w", ErrDiskFull, err)
			}
		case sqlite3.SQLITE_BUSY:
			return fmt.Errorf("another process holds the state file: %w", err)
		case sqlite3.SQLITE_READONLY:
			return fmt.Errorf("the state file cannot be written (its owner must be the user that runs Risso): %w", err)
		}
	}
	return err
}

// limit gives a context a deadline if it has none.
func limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, callLimit)
}

// change runs f in one transaction. Where controllers share the file, it ends when they agreed on what f changed. f may run several
// times then: what it learned the last time counts, and it must do the same each time.
func (s *Store) change(ctx context.Context, what string, f func(context.Context, *sql.Tx) error) error {
	if s.shared == nil {
		return s.alone(ctx, what, f)
	}
	ctx, cancel := limit(ctx)
	defer cancel()
	if err := s.agree(ctx, f); err != nil {
		return fmt.Errorf("%s: %w", what, explain(err))
	}
	return nil
}

// noteLimit bounds a note that nobody may have to wait for; after one that failed, none is tried for noteAgain.
const (
	noteLimit = 300 * time.Millisecond
	noteAgain = 10 * time.Second
)

// note is change for what is good to have: it does not wait long for other controllers.
func (s *Store) note(ctx context.Context, what string, f func(context.Context, *sql.Tx) error) error {
	if s.shared == nil {
		return s.change(ctx, what, f)
	}
	s.mu.Lock()
	quiet := time.Now().Before(s.shared.quiet)
	s.mu.Unlock()
	if quiet {
		return ErrNoLeader
	}
	ctx, cancel := context.WithTimeout(ctx, noteLimit)
	defer cancel()
	err := s.change(ctx, what, f)
	if err != nil {
		s.mu.Lock()
		s.shared.quiet = time.Now().Add(noteAgain)
		s.mu.Unlock()
	}
	return err
}

// alone runs f in one transaction of this file, whoever shares it.
func (s *Store) alone(ctx context.Context, what string, f func(context.Context, *sql.Tx) error) error {
	ctx, cancel := limit(ctx)
	defer cancel()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", what, explain(err))
	}
	defer tx.Rollback() // of no effect after Commit
	if err := f(ctx, tx); err != nil {
		return fmt.Errorf("%s: %w", what, explain(err))
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%s: %w", what, explain(err))
	}
	return nil
}

// each runs a query and calls f for every row.
func (s *Store) each(ctx context.Context, what string, f func(*sql.Rows) error, query string, args ...any) error {
	ctx, cancel := limit(ctx)
	defer cancel()
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, explain(err))
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, explain(err))
	}
	return nil
}

// stamp is how times are stored: microseconds since 1970. The zero time is 0.
func stamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromStamp(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

package agree

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rissodb/risso/internal/delay"
)

// logStore is Raft's log, and what it must not forget, in a SQLite file of its own that is synced with each write.
type logStore struct {
	db     *sql.DB
	closed context.Context
	close  context.CancelFunc
	full   atomic.Pointer[string] // why a write waits; nil: none does
	writes stride                 // of entries
	keeps  stride                 // of what must not be forgotten
}

const logSchema = `CREATE TABLE IF NOT EXISTS log (
		number     INTEGER PRIMARY KEY,
		term       INTEGER NOT NULL,
		type       INTEGER NOT NULL,
		data       BLOB,
		extensions BLOB,
		appended   INTEGER NOT NULL  -- microseconds since 1970, of the leader's clock; only to be looked at
	) STRICT;
	CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
	PRAGMA application_id=0x5253524c` // "RSRL"

// openLog opens the log at path and makes it if there is none.
func openLog(ctx context.Context, path string) (*logStore, error) {
	path, err := filepath.Abs(path) // a relative one would be a host in a URI
	if err != nil {
		return nil, fmt.Errorf("open the controllers' log: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the controllers' log: %w", err)
	}
	f.Close()
	u := url.URL{Scheme: "file", Path: path, RawQuery: "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=cache_size(-256)&_txlock=immediate"}
	c, err := sqlite.NewConnector(u.String())
	if err != nil {
		return nil, fmt.Errorf("open the controllers' log: %w", err)
	}
	l := &logStore{db: sql.OpenDB(c)}
	l.closed, l.close = context.WithCancel(context.Background())
	l.db.SetMaxOpenConns(1)
	if _, err := l.db.ExecContext(ctx, logSchema); err != nil {
		l.db.Close()
		return nil, fmt.Errorf("open the controllers' log %s: %w", path, err)
	}
	return l, nil
}

// Close closes the log; what waits for room on the disk ends.
func (l *logStore) Close() error { l.close(); return l.db.Close() }

func (l *logStore) number(query string) (n uint64, err error) {
	err = l.db.QueryRow(query).Scan(&n)
	return n, err
}

// FirstIndex is the number of the oldest entry; 0: there is none.
func (l *logStore) FirstIndex() (uint64, error) {
	return l.number(`SELECT coalesce(min(number), 0) FROM log`)
}

// LastIndex is the number of the newest entry; 0: there is none.
func (l *logStore) LastIndex() (uint64, error) {
	return l.number(`SELECT coalesce(max(number), 0) FROM log`)
}

// GetLog reads an entry.
func (l *logStore) GetLog(index uint64, e *raft.Log) error {
	var appended int64
	*e = raft.Log{}
	err := l.db.QueryRow(`SELECT number, term, type, data, extensions, appended FROM log WHERE number = ?`, index).Scan(&e.Index, &e.Term, &e.Type, &e.Data, &e.Extensions, &appended)
	if errors.Is(err, sql.ErrNoRows) {
		return raft.ErrLogNotFound
	}
	if err != nil {
		return fmt.Errorf("read entry %d of the controllers' log: %w", index, err)
	}
	if appended != 0 {
		e.AppendedAt = time.UnixMicro(appended)
	}
	return nil
}

// StoreLog writes an entry.
func (l *logStore) StoreLog(e *raft.Log) error { return l.StoreLogs([]*raft.Log{e}) }

// StoreLogs writes entries, all of them or none. A failure is Raft's to take: a leader steps down, a follower is behind.
func (l *logStore) StoreLogs(list []*raft.Log) (err error) {
	end := l.writes.begin()
	defer func() { end(err) }()
	tx, err := l.db.Begin()
	if err != nil {
		return fmt.Errorf("write the controllers' log: %w", err)
	}
	defer tx.Rollback() // of no effect after Commit
	for _, e := range list {
		var appended int64
		if !e.AppendedAt.IsZero() {
			appended = e.AppendedAt.UnixMicro()
		}
		if _, err := tx.Exec(`INSERT OR REPLACE INTO log (number, term, type, data, extensions, appended) VALUES (?,?,?,?,?,?)`, e.Index, e.Term, int(e.Type), e.Data, e.Extensions, appended); err != nil {
			return fmt.Errorf("write entry %d of the controllers' log: %w", e.Index, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("write the controllers' log: %w", err)
	}
	return nil
}

// DeleteRange deletes entries, both ends included.
func (l *logStore) DeleteRange(from, to uint64) (err error) {
	end := l.writes.begin()
	defer func() { end(err) }()
	_, err = l.db.Exec(`DELETE FROM log WHERE number BETWEEN ? AND ?`, from, to)
	if err != nil {
		return fmt.Errorf("cut the controllers' log: %w", err)
	}
	return nil
}

// fullWait is between two tries to write where there is no room.
const fullWait = 200 * time.Millisecond

// Set keeps a value. Without room on the disk it waits for some: Raft ends the program if a term cannot be kept, and a controller that waits
// is to the others as one that is down.
func (l *logStore) Set(key, value []byte) error {
	defer l.keeps.begin()(nil)
	for {
		_, err := l.db.Exec(`INSERT OR REPLACE INTO kept (key, value) VALUES (?,?)`, string(key), value)
		if err == nil {
			l.full.Store(nil)
			return nil
		}
		var e *sqlite.Error
		if code := 0; errors.As(err, &e) {
			code = e.Code() & 0xff
			if code != sqlite3.SQLITE_FULL && code != sqlite3.SQLITE_IOERR && code != sqlite3.SQLITE_BUSY {
				return fmt.Errorf("keep %s: %w", key, err)
			}
		}
		why := err.Error()
		l.full.Store(&why)
		if delay.For(l.closed, fullWait) != nil {
			return fmt.Errorf("keep %s: %w", key, err)
		}
	}
}

// Get reads a value; an empty one where there is none.
func (l *logStore) Get(key []byte) (value []byte, err error) {
	err = l.db.QueryRow(`SELECT value FROM kept WHERE key = ?`, string(key)).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return value, nil
}

// SetUint64 keeps a number, as Set does.
func (l *logStore) SetUint64(key []byte, n uint64) error {
	return l.Set(key, binary.BigEndian.AppendUint64(nil, n))
}

// GetUint64 reads a number; 0 where there is none.
func (l *logStore) GetUint64(key []byte) (uint64, error) {
	value, err := l.Get(key)
	if err != nil || len(value) != 8 {
		return 0, err
	}
	return binary.BigEndian.Uint64(value), nil
}

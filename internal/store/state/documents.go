package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Document is a fact that several processes, and several controllers, agree on: a group, a lease, the journal of a failover, a receipt. Its body belongs to who
// wrote it. The version tells two of them apart that changed it at once.
type Document struct {
	Kind    string          `json:"kind"` // whose body it is: "group"
	Key     string          `json:"key"`
	Version int64           `json:"version"` // counts its changes; 0: there is none yet
	Changed time.Time       `json:"changed"`
	By      string          `json:"by,omitempty"` // who changed it
	Body    json.RawMessage `json:"body"`
}

// ErrConflict says that a document was changed in the meantime: read it again.
var ErrConflict = errors.New("it was changed in the meantime")

// PutDocument writes a document whose Version is the one that was read, 0 for a new one, and returns it with its new version. It wraps ErrConflict if
// another one is there.
func (s *Store) PutDocument(ctx context.Context, d Document) (Document, error) {
	d.Changed = time.Now().UTC().Truncate(time.Microsecond)
	stored := d
	err := s.change(ctx, "store "+d.Kind+" "+d.Key, func(ctx context.Context, tx *sql.Tx) error {
		stored = d
		return put(ctx, tx, &stored)
	})
	return stored, err
}

// put writes it in a transaction.
func put(ctx context.Context, tx *sql.Tx, d *Document) error {
	var version int64
	switch err := tx.QueryRowContext(ctx, `SELECT version FROM documents WHERE kind=? AND key=?`, d.Kind, d.Key).Scan(&version); {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return err
	case version != d.Version:
		return fmt.Errorf("version %d, not %d: %w", version, d.Version, ErrConflict)
	}
	d.Version++
	_, err := tx.ExecContext(ctx, `INSERT INTO documents (kind, key, version, changed, by, body) VALUES (?,?,?,?,?,?)
		ON CONFLICT (kind, key) DO UPDATE SET version=excluded.version, changed=excluded.changed, by=excluded.by, body=excluded.body`,
		d.Kind, d.Key, d.Version, stamp(d.Changed), d.By, []byte(d.Body))
	return err
}

// Document reads one. It wraps ErrNotFound if there is none.
func (s *Store) Document(ctx context.Context, kind, key string) (Document, error) {
	list, err := s.documents(ctx, `WHERE kind=? AND key=?`, kind, key)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s %s: %w", kind, key, ErrNotFound)
	}
	if err != nil {
		return Document{}, err
	}
	return list[0], nil
}

// Documents reads all of a kind, by key.
func (s *Store) Documents(ctx context.Context, kind string) ([]Document, error) {
	return s.documents(ctx, `WHERE kind=? ORDER BY key`, kind)
}

// DocumentsUnder reads those of a kind whose key begins with a prefix, by key.
func (s *Store) DocumentsUnder(ctx context.Context, kind, prefix string) ([]Document, error) {
	return s.documents(ctx, `WHERE kind=? AND key>=? AND key<?||char(0x10FFFF) ORDER BY key`, kind, prefix, prefix)
}

func (s *Store) documents(ctx context.Context, where string, args ...any) (list []Document, err error) {
	err = s.each(ctx, "read documents", func(r *sql.Rows) error {
		var d Document
		var changed int64
		if err := r.Scan(&d.Kind, &d.Key, &d.Version, &changed, &d.By, (*[]byte)(&d.Body)); err != nil {
			return err
		}
		d.Changed = fromStamp(changed)
		list = append(list, d)
		return nil
	}, `SELECT kind, key, version, changed, by, body FROM documents `+where, args...)
	return list, err
}

// DropDocument removes one, if its version is still the one that was read; it wraps ErrConflict if not.
func (s *Store) DropDocument(ctx context.Context, kind, key string, version int64) error {
	return s.change(ctx, "remove "+kind+" "+key, func(ctx context.Context, tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, `DELETE FROM documents WHERE kind=? AND key=? AND version=?`, kind, key, version)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return ErrConflict
	})
}

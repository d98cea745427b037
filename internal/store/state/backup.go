package state

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
)

// backupFormat names backups of the state: a line of JSON, then the file as SQLite wrote it, by zstd, encrypted or not.
const backupFormat = "risso state backup 1"

// BackupHead is the first line of a backup.
type BackupHead struct {
	Format    string    `json:"format"`
	Risso     string    `json:"risso"`     // the version that made it
	Schema    int       `json:"schema"`    // the newest one of state files that it knows
	Made      time.Time `json:"made"`      // when
	Encrypted bool      `json:"encrypted"` // to an age recipient
	Bytes     int64     `json:"bytes"`     // behind this line
	SHA256    string    `json:"sha256"`    // of them
}

// ErrDamaged says that a backup is not what was written.
var ErrDamaged = errors.New("the backup is damaged")

// WriteBackup writes the whole state file as it is at one moment to a new file, while whoever uses it goes on. seal encrypts; nil: it is not
// encrypted. There is no file of that name unless it is whole.
func WriteBackup(ctx context.Context, path, to, version string, seal func(io.Writer) (io.WriteCloser, error)) (h BackupHead, err error) {
	if path, err = filepath.Abs(path); err != nil { // SQLite takes it within a URI
		return h, fmt.Errorf("back up the state: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return h, fmt.Errorf("back up the state: %w", err)
	}
	if _, err := os.Lstat(to); err == nil {
		return h, fmt.Errorf("back up the state: %s: %w", to, os.ErrExist)
	}
	dir, err := os.MkdirTemp(filepath.Dir(to), ".risso-state-") // 0700
	if err != nil {
		return h, fmt.Errorf("back up the state: %w", err)
	}
	defer os.RemoveAll(dir)
	plain := filepath.Join(dir, "state.db")
	if err := vacuumInto(ctx, path, plain); err != nil {
		return h, fmt.Errorf("back up the state: %w", explain(err))
	}
	h = BackupHead{Format: backupFormat, Risso: version, Schema: len(migrations), Made: time.Now().UTC().Truncate(time.Second), Encrypted: seal != nil}
	body, err := os.OpenFile(filepath.Join(dir, "body"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return h, fmt.Errorf("back up the state: %w", err)
	}
	defer body.Close()
	sum := sha256.New()
	if err := pack(io.MultiWriter(body, sum), plain, seal); err != nil {
		return h, fmt.Errorf("back up the state: %w", err)
	}
	h.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if h.Bytes, err = body.Seek(0, io.SeekCurrent); err == nil {
		_, err = body.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = writeBackupFile(filepath.Join(dir, "backup"), h, body)
	}
	if err == nil {
		err = os.Link(filepath.Join(dir, "backup"), to) // unlike a rename, it replaces nothing
	}
	if err != nil {
		return h, fmt.Errorf("back up the state: %w", err)
	}
	return h, nil
}

// vacuumInto has SQLite write a copy of a file of one moment.
func vacuumInto(ctx context.Context, path, to string) error {
	db, err := connect(path, 1, "mode=rw", nil)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := check(ctx, db, path); err != nil {
		return err
	}
	var app, version int
	if err := errors.Join(db.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&app), db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version)); err != nil {
		return err
	}
	if err := ours(app, version); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, to)
	return err
}

// pack compresses and encrypts a file.
func pack(w io.Writer, file string, seal func(io.Writer) (io.WriteCloser, error)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	sealed := io.WriteCloser(endless{w})
	if seal != nil {
		if sealed, err = seal(w); err != nil {
			return err
		}
	}
	z, err := zstd.NewWriter(sealed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	_, err = io.Copy(z, f)
	return errors.Join(err, z.Close(), sealed.Close())
}

// endless is a writer that needs no end.
type endless struct{ io.Writer }

// Close does nothing.
func (endless) Close() error { return nil }

func writeBackupFile(to string, h BackupHead, body io.Reader) error {
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.MultiReader(bytes.NewReader(append(head, '\n')), body))
	return errors.Join(err, out.Sync(), out.Close())
}

// ReadBackup reads the head of a backup, and checks the rest by its sum.
func ReadBackup(file string) (h BackupHead, err error) {
	err = eachBackup(file, func(head BackupHead, body io.Reader) error {
		h = head
		sum := sha256.New()
		n, err := io.Copy(sum, body)
		if err == nil && (n != h.Bytes || hex.EncodeToString(sum.Sum(nil)) != h.SHA256) {
			err = fmt.Errorf("%w: it has %d bytes, and other ones than the %d that were written", ErrDamaged, n, h.Bytes)
		}
		return err
	})
	return h, err
}

// eachBackup opens a backup for a function.
func eachBackup(file string, do func(BackupHead, io.Reader) error) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	defer f.Close()
	r := bufio.NewReader(io.LimitReader(f, 1<<50))
	line, err := r.ReadSlice('\n')
	var h BackupHead
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil || h.Format != backupFormat {
		return fmt.Errorf("read the backup %s: %w: it is none that risso state backup wrote", file, ErrForeign)
	}
	if h.Schema > len(migrations) {
		return fmt.Errorf("read the backup %s of Risso %s: %w", file, h.Risso, ErrNewer)
	}
	if err := do(h, r); err != nil {
		return fmt.Errorf("read the backup %s: %w", file, err)
	}
	return nil
}

// RestoreBackup makes the state file at path, where there is none, from a backup that was checked. It is not shared, whatever it was. unseal decrypts; nil
// where it is not encrypted.
func RestoreBackup(ctx context.Context, file, path string, unseal func(io.Reader) (io.Reader, error)) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("restore the state: %s: %w", path, os.ErrExist)
	}
	if _, err := ReadBackup(file); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".risso-state-")
	if err != nil {
		return fmt.Errorf("restore the state: %w", err)
	}
	defer os.RemoveAll(dir)
	fresh := filepath.Join(dir, "state.db")
	err = eachBackup(file, func(_ BackupHead, body io.Reader) error {
		if unseal != nil {
			if body, err = unseal(body); err != nil {
				return err
			}
		}
		return unpack(fresh, body)
	})
	if err != nil {
		return err
	}
	s, err := Open(ctx, fresh)
	var bad *damagedError
	if errors.As(err, &bad) {
		return fmt.Errorf("restore the state: %w: %s", ErrDamaged, bad.reason)
	}
	if err != nil {
		return fmt.Errorf("restore the state: %w", err)
	}
	if err := errors.Join(s.EndSharing(ctx), s.Close()); err != nil { // the last one to close it leaves no WAL
		return fmt.Errorf("restore the state: %w", err)
	}
	if err := os.Rename(fresh, path); err != nil {
		return fmt.Errorf("restore the state: %w", err)
	}
	return nil
}

func unpack(to string, body io.Reader) error {
	z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, z)
	return errors.Join(err, out.Sync(), out.Close())
}

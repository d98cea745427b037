package retire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
)

// Phase is where an index stands.
type Phase string

// The phases. Those that end in -ing are on disk before the statement: a process that ends in them may have sent it or not, and the next one
// asks the server.
const (
	Hiding    Phase = "hiding"
	Watching  Phase = "watching" // hidden
	Dropping  Phase = "dropping"
	Dropped   Phase = "dropped"
	Returning Phase = "returning" // shown again, or made again
	Back      Phase = "back"
)

// Record is what is kept of an index that is being retired.
type Record struct {
	Version    int       `json:"version"`
	Server     string    `json:"server"` // its name, as it was given
	Seat       string    `json:"seat"`   // which server it is: fleet.Seat.Place
	Schema     string    `json:"schema"`
	Table      string    `json:"table"`
	Index      string    `json:"index"`
	Definition string    `json:"definition"`     // of the index
	Hide       string    `json:"hide,omitempty"` // statement; empty where the server cannot hide an index
	Show       string    `json:"show,omitempty"` // statement that takes Hide back
	Drop       string    `json:"drop"`
	Undo       string    `json:"undo"` // statement that makes the index again
	Phase      Phase     `json:"phase"`
	Began      time.Time `json:"began"`
	Hidden     time.Time `json:"hidden,omitzero"`
	Due        time.Time `json:"due,omitzero"` // when it may be dropped
	Watch      string    `json:"watch"`        // how long it is watched
	Checked    time.Time `json:"checked,omitzero"`
	Bytes      float64   `json:"bytes,omitempty"`
	Notes      []string  `json:"notes,omitempty"` // what a person should know before

	Baselines []Baseline   `json:"baselines,omitempty"` // of the server, and of its replicas that were named
	Worse     []Regression `json:"worse,omitempty"`     // why it was taken back
	Doubtful  []Regression `json:"doubtful,omitempty"`  // classes that cannot be compared, and may need it: it is not dropped
	Log       []Entry      `json:"log"`
	Told      int          `json:"told,omitempty"` // so many entries of the log were told as events
}

// Baseline is what classes of statements had cost on a server when the index was hidden.
type Baseline struct {
	Server  string    `json:"server"`
	Seat    string    `json:"seat"`
	Time    time.Time `json:"time"`
	Classes []Class   `json:"classes"`
	Late    bool      `json:"late,omitempty"` // the index was hidden already: what classes cost before is not in it

	Seen   Reading       `json:"seen"`             // the last reading
	Missed time.Duration `json:"missed,omitempty"` // for how long it is not known what ran since the index was hidden
	Unseen string        `json:"unseen,omitempty"` // why it was not known what ran before the last reading; empty: it was
}

// Entry is something that was done.
type Entry struct {
	Time time.Time `json:"time"`
	What string    `json:"what"`
}

// Object is how the index is named: schema.table.index.
func (r *Record) Object() string { return r.Schema + "." + r.Table + "." + r.Index }

// TableName is its table.
func (r *Record) TableName() mysql.TableName { return mysql.TableName{Schema: r.Schema, Name: r.Table} }

// Ended reports whether nothing is left to be done.
func (r *Record) Ended() bool { return r.Phase == Dropped || r.Phase == Back }

// Folder keeps records.
type Folder struct{ dir string }

// Open returns a folder of records; it is made when the first is written.
func Open(dir string) Folder { return Folder{dir} }

// ErrBusy is the reason when another process works on the folder.
var ErrBusy = errors.New("another risso is retiring indexes")

const version = 1

// Lock keeps other processes, and other parts of this one, away until unlock is called; the kernel does that when the process ends. Who has it
// is waited for a little.
func (f Folder) Lock(ctx context.Context) (unlock func(), err error) {
	for begun := time.Now(); ; {
		unlock, err = f.lock()
		if !errors.Is(err, ErrBusy) || time.Since(begun) > lockPatience || delay.For(ctx, 50*time.Millisecond) != nil {
			return unlock, err
		}
	}
}

// lockPatience is how long a lock is waited for.
const lockPatience = 3 * time.Second

func (f Folder) lock() (unlock func(), err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create a folder for the journal: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(f.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the journal: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("%w: %s", ErrBusy, f.dir)
	}
	return func() { file.Close() }, nil
}

// path is where the record of an index of a server is.
func (f Folder) path(r *Record) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s", r.Seat, r.Schema, r.Table, strings.ToLower(r.Index))
	return filepath.Join(f.dir, fmt.Sprintf("retire-%016x.json", h.Sum64()))
}

// save puts a record on disk: whole, or as it was before.
func (f Folder) save(r *Record) error {
	r.Version = version
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	tmp, err := os.CreateTemp(f.dir, ".retire-*")
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), f.path(r))
	}
	if err == nil {
		err = home.SyncDir(f.dir)
	}
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// MarkTold writes down that so many entries of a record's log were told.
func (f Folder) MarkTold(ctx context.Context, r *Record, n int) error {
	unlock, err := f.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	now, err := readRecord(f.path(r))
	if err != nil {
		return err
	}
	now.Told = n
	return f.save(now)
}

// readRecord reads a record.
func readRecord(path string) (*Record, error) {
	b, err := os.ReadFile(path)
	r := &Record{}
	if err == nil {
		err = json.Unmarshal(b, r)
	}
	if err == nil && r.Version != version {
		err = fmt.Errorf("version %d is not known", r.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal %s: %w", path, err)
	}
	return r, nil
}

// List reads all records, the newest first. One that cannot be read is an error that names its file; the others are returned with it.
func (f Folder) List() (list []*Record, err error) {
	names, readErr := os.ReadDir(f.dir)
	if errors.Is(readErr, os.ErrNotExist) {
		return nil, nil
	} else if readErr != nil {
		return nil, fmt.Errorf("read the journal: %w", readErr)
	}
	for _, e := range names {
		if !strings.HasPrefix(e.Name(), "retire-") || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		r, readErr := readRecord(filepath.Join(f.dir, e.Name()))
		if readErr != nil {
			err = errors.Join(err, readErr)
			continue
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b *Record) int { return b.Began.Compare(a.Began) })
	return list, err
}

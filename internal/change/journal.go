package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
)

// Why there is no journal, or none that can be taken. Each comes with its path.
var (
	errExists = errors.New("there is already a journal")
	errHeld   = errors.New("another process is using the journal")
	errDamage = errors.New("the journal cannot be read")
)

// version is that of record's form.
const version = 1

// halfWritten is the age from which a file without its name is taken for one whose process was killed.
const halfWritten = time.Minute

// record is what the journal of a loan says. Journals of older versions have this form, too.
type record[T any] struct {
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
	PID     int       `json:"pid"`
	Host    string    `json:"host"` // @@hostname, port and data directory: which server
	Port    int       `json:"port"`
	DataDir string    `json:"data_dir"`
	Started int64     `json:"started"` // unix seconds: which life of it
	Old     T         `json:"old"`     // what was there before
}

// file is a journal that this process holds: it is there, whole, before the first change, locked as long as the process that made the change
// lives, and gone when everything is as before. The journal of a killed process is found because no process locks it.
type file struct {
	path string
	file *os.File
	was  []*os.File // those that it replaced, which stay locked: another process may have opened them
}

func newRecord[T any](s mysql.Server, started int64, old T) record[T] {
	return record[T]{version, time.Now().UTC(), os.Getpid(), s.Hostname, s.Port, s.DataDir, started, old}
}

// pathOf is where the journal of a kind of change to a server is.
func pathOf(dir, kind string, s mysql.Server) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%d\x00%s", s.Hostname, s.Port, s.DataDir)
	return filepath.Join(dir, fmt.Sprintf("%s-%016x.json", kind, h.Sum64()))
}

// write puts what was there before on disk, and keeps it locked. It wraps errExists when there is a journal of that kind
// for that server: somebody is at work on it, or was killed. started is when the server started, in Unix seconds.
func write[T any](dir, kind string, s mysql.Server, started int64, old T) (*file, error) {
	path := pathOf(dir, kind, s)
	b, err := json.MarshalIndent(newRecord(s, started, old), "", " ")
	if err != nil {
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create a folder for the journal: %w", err)
	}
	sweep(dir, kind)
	f, err := publish(dir, kind, path, b)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil, fmt.Errorf("%w: %s", errExists, path)
	case err != nil:
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	return &file{path: path, file: f}, nil
}

// publish writes a file that is whole, on disk and locked before it has its name, so that it is never taken for that of a killed
// process.
func publish(dir, kind, path string, b []byte) (*os.File, error) {
	return put(dir, kind, b, func(name string) error { return os.Link(name, path) }) // fails when there is one
}

// put writes a file that is whole, on disk and locked, and then gives it its name.
func put(dir, kind string, b []byte, named func(name string) error) (*os.File, error) {
	f, err := os.CreateTemp(dir, "."+kind+"-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	err = lock(f)
	if err == nil {
		_, err = f.Write(b)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = named(f.Name())
	}
	if err == nil {
		err = home.SyncDir(dir)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// sweep removes what a process left that was killed while it wrote its journal.
func sweep(dir, kind string) {
	for _, path := range files(dir, "."+kind+"-", "") {
		if st, err := os.Stat(path); err == nil && time.Since(st.ModTime()) > halfWritten {
			os.Remove(path)
		}
	}
}

// anyOf reports whether there is a journal of a kind, of any server.
func anyOf(dir, kind string) bool {
	return len(files(dir, kind+"-", ".json")) > 0
}

// files lists those of a folder whose names begin and end so. The folder's own name may hold what a pattern would mean otherwise.
func files(dir, begin, end string) (paths []string) {
	list, _ := os.ReadDir(dir) // a folder that is not there has none
	for _, e := range list {
		if strings.HasPrefix(e.Name(), begin) && strings.HasSuffix(e.Name(), end) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// take takes the journal that a killed process left of a server: nil when there is none. It wraps errHeld when its process
// lives, and errDamage when somebody has to look at it.
func take[T any](dir, kind string, s mysql.Server) (*file, record[T], error) {
	var c record[T]
	f, err := os.Open(pathOf(dir, kind, s))
	if errors.Is(err, os.ErrNotExist) {
		return nil, c, nil
	} else if err != nil {
		return nil, c, fmt.Errorf("read the journal: %w", err)
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, c, fmt.Errorf("%w: %s", errHeld, f.Name())
	}
	if err := json.NewDecoder(f).Decode(&c); err != nil || c.Version != version {
		f.Close()
		return nil, c, fmt.Errorf("%w: look at %s, put back by hand what it lists, and remove it", errDamage, f.Name())
	}
	return &file{path: f.Name(), file: f}, c, nil
}

// sameStart reports whether two readings of when a server began are of the same start: the two clocks are read one after the
// other. A server that was restarted has its own settings, and nothing has to be put back.
func sameStart(a, b int64) bool { return a-b <= 2 && b-a <= 2 }

// replace writes another record in its place.
func (f *file) replace(record any) error {
	b, err := json.MarshalIndent(record, "", " ")
	if err == nil {
		var fresh *os.File
		kind, _, _ := strings.Cut(filepath.Base(f.path), ".")
		fresh, err = put(filepath.Dir(f.path), kind, b, func(name string) error { return os.Rename(name, f.path) })
		if err == nil {
			f.was, f.file = append(f.was, f.file), fresh
		}
	}
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// remove ends the journal: everything is as before.
func (f *file) remove() error {
	err := os.Remove(f.path)
	f.release()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// release leaves the journal for the process that will put back what it says.
func (f *file) release() {
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
	for _, was := range f.was {
		was.Close()
	}
	f.was = nil
}

package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/mysql"
)

// journal is a file with the values to put back on a server. It is there before the first change, locked as long as its
// process lives, and gone when everything is as before.
type journal struct {
	path string
	file *os.File
}

type journalContent struct {
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
	PID     int       `json:"pid"`
	Host    string    `json:"host"` // @@hostname, port and data directory: which server
	Port    int       `json:"port"`
	DataDir string    `json:"data_dir"`
	Started int64     `json:"started"` // unix seconds: which life of it
	Old     []Setting `json:"old"`
}

func journalPath(dir string, s mysql.Server) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%d\x00%s", s.Hostname, s.Port, s.DataDir)
	return filepath.Join(dir, fmt.Sprintf("settings-%016x.json", h.Sum64()))
}

func writeJournal(dir string, s mysql.Server, started int64, old []Setting) (*journal, error) {
	j := &journal{path: journalPath(dir, s)}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for the journal: %w", err)
	}
	b, err := json.MarshalIndent(journalContent{1, time.Now().UTC(), os.Getpid(), s.Hostname, s.Port, s.DataDir, started, old}, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	// Whole, on disk and locked before it has its name: nobody may take it for that of a killed process.
	f, err := os.CreateTemp(dir, ".settings-*")
	if err != nil {
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		_, err = f.Write(b)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Link(f.Name(), j.path) // fails when there is one
	}
	os.Remove(f.Name())
	if err == nil {
		err = syncDir(dir)
	}
	if errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("%w: %s is there; run risso bench compare --restore", ErrLeft, j.path)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	j.file = f
	return j, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func (j *journal) remove() error {
	err := os.Remove(j.path)
	j.release()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (j *journal) release() {
	if j.file != nil {
		j.file.Close()
		j.file = nil
	}
}

// Left says what a killed compare left on a server.
type Left struct {
	Since      time.Time
	Restarted  bool // since then: nothing is left to put back
	Statements []string
}

// Restore puts back what a killed compare left on a server; with dryRun it only says what it would run. It gives nil when there
// is nothing.
func Restore(ctx context.Context, target mysql.Target, dir string, dryRun bool) (*Left, error) {
	ctx, cancel := context.WithTimeout(ctx, putBackWithin)
	defer cancel()
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	j := &journal{path: journalPath(dir, c.Server)}
	if j.file, err = os.Open(j.path); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	defer j.release()
	if err := syscall.Flock(int(j.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("%w: a process holds %s", ErrLeft, j.path)
	}
	var content journalContent
	if err := json.NewDecoder(j.file).Decode(&content); err != nil || content.Version != 1 {
		return nil, fmt.Errorf("the journal %s cannot be read: look at it, set by hand what it says, and remove it", j.path)
	}
	for _, s := range content.Old {
		if settingForm.FindString(s.Name+"=") == "" { // the names go into statements
			return nil, fmt.Errorf("the journal %s names a variable %q: look at it", j.path, s.Name)
		}
	}
	started, err := c.Started(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask since when the server runs: %w", err)
	}
	left := &Left{Since: content.Time, Restarted: !sameStart(started, content.Started)}
	if !left.Restarted {
		left.Statements = statements(content.Old)
	}
	if dryRun {
		return left, nil
	}
	if err := putBack(ctx, target, content.Started, content.Old); err != nil {
		return left, fmt.Errorf("%w: %w", ErrNotRestored, err)
	}
	return left, j.remove()
}

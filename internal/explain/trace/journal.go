package trace

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

// Journal is a file that holds what a trace has to put back on a server. It is locked as long as the process of that trace
// lives, and gone when everything is as before.
type Journal struct {
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
	Old     Old       `json:"old"`
}

func journalPath(dir string, s mysql.Server) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%d\x00%s", s.Hostname, s.Port, s.DataDir)
	return filepath.Join(dir, fmt.Sprintf("trace-%016x.json", h.Sum64()))
}

// writeJournal puts what was there before on disk, and keeps it locked.
func writeJournal(dir string, s mysql.Server, started int64, old Old) (*Journal, error) {
	j := &Journal{path: journalPath(dir, s)}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for the journal: %w", err)
	}
	if _, err := os.Stat(j.path); err == nil {
		return nil, fmt.Errorf("%w, or was killed: %s is there; run risso trace --restore", ErrBusy, j.path)
	}
	b, err := json.MarshalIndent(journalContent{1, time.Now().UTC(), os.Getpid(), s.Hostname, s.Port, s.DataDir, started, old}, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	sweep(dir)
	// Whole or not at all, and locked before it has its name: nobody may take it for that of a killed process.
	f, err := os.CreateTemp(dir, ".trace-*")
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
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	j.file = f
	return j, nil
}

// sweep removes what a process left that was killed while it wrote its journal.
func sweep(dir string) {
	list, _ := filepath.Glob(filepath.Join(dir, ".trace-*"))
	for _, path := range list {
		if st, err := os.Stat(path); err == nil && time.Since(st.ModTime()) > time.Minute {
			os.Remove(path)
		}
	}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func (j *Journal) remove() error {
	err := os.Remove(j.path)
	j.release()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (j *Journal) release() {
	if j.file != nil {
		j.file.Close()
		j.file = nil
	}
}

// openJournal takes the journal that a killed trace of this server left: nil when there is none.
func openJournal(dir string, s mysql.Server) (*Journal, journalContent, error) {
	var c journalContent
	path := journalPath(dir, s)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, c, nil
	}
	if err != nil {
		return nil, c, fmt.Errorf("read the journal: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, c, fmt.Errorf("read the journal: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, c, ErrBusy
	}
	if err := json.Unmarshal(b, &c); err != nil || c.Version != 1 {
		f.Close()
		return nil, c, fmt.Errorf("the journal %s cannot be read: look at it, put back by hand what it says, and remove it", path)
	}
	return &Journal{path: path, file: f}, c, nil
}

// Left says what a killed trace left switched on, on a server: nil when nothing.
type Left struct {
	Since      time.Time // when it was switched on
	Restarted  bool      // the server has been restarted since: nothing is left to put back
	Statements []string  // that put it back
	Words      string
}

// Restore puts back what a killed trace left switched on; with dryRun it only says what it would run. It gives nil when there
// is nothing to put back.
func Restore(ctx context.Context, target mysql.Target, stateDir string, dryRun bool) (*Left, error) {
	cctx, cancel := context.WithTimeout(ctx, queryTimeout)
	c, err := mysql.Connect(cctx, target, nil)
	cancel()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	j, content, err := openJournal(stateDir, c.Server)
	if err != nil || j == nil {
		return nil, err
	}
	defer j.release()
	started, err := c.Started(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask since when the server runs: %w", err)
	}
	left := &Left{Since: content.Time, Restarted: !sameStart(started, content.Started), Words: content.Old.words()}
	if !left.Restarted {
		left.Statements = content.Old.restore()
	}
	if dryRun {
		return left, nil
	}
	if !left.Restarted {
		// The server may not have noticed yet that the killed one is gone.
		if err := takeLock(ctx, c, 5); err != nil {
			return left, err
		}
		if err := putBack(ctx, c, content.Old); err != nil {
			return left, fmt.Errorf("%w: %w", ErrNotRestored, err)
		}
	}
	return left, j.remove()
}

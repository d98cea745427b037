package change

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Diary is a file of JSON lines that says what is changed permanently, and what was there: each line is on disk before the change.
type Diary struct{ f *os.File }

// NewDiary begins a file of a kind in a folder, under a name with the time and the process.
func NewDiary(dir, kind string) (*Diary, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create a folder for the journal: %w", err)
	}
	name := fmt.Sprintf("%s-%s-%d.jsonl", kind, time.Now().UTC().Format("20060102T150405Z"), os.Getpid())
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	return &Diary{f}, nil
}

// Path is where it is.
func (d *Diary) Path() string { return d.f.Name() }

// Note writes a line. It is on disk when Note returns.
func (d *Diary) Note(line any) error {
	b, err := json.Marshal(line)
	if err == nil {
		_, err = d.f.Write(append(b, '\n'))
	}
	if err == nil {
		err = d.f.Sync()
	}
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// Close ends it. The file stays.
func (d *Diary) Close() error { return d.f.Close() }

package change

import (
	"encoding/json"
	"errors"
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
	name := fmt.Sprintf("%s-%s-%d", kind, time.Now().UTC().Format("20060102T150405Z"), os.Getpid())
	for i := 0; ; i++ { // a process may begin several within a second
		end := ".jsonl"
		if i > 0 {
			end = fmt.Sprintf("-%d.jsonl", i+1)
		}
		f, err := os.OpenFile(filepath.Join(dir, name+end), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return &Diary{f}, nil
		}
		if !errors.Is(err, os.ErrExist) || i == 1000 {
			return nil, fmt.Errorf("write the journal: %w", err)
		}
	}
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

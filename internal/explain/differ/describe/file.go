package describe

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rissodb/risso/internal/explain/differ"
)

// ErrFile is the reason of Load for a file that is no description.
var ErrFile = errors.New("it is no description of a server that risso diff --save wrote")

// Save writes a description to a file that its owner alone may read: it names accounts and tables, and holds no secret. An older file of
// the name is replaced only when the new one is on disk.
func Save(path string, d *differ.Description) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".risso-diff-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // once renamed there is none
	enc := json.NewEncoder(f)
	enc.SetIndent("", " ")
	if err = enc.Encode(d); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}

// Load reads a description.
func Load(path string) (*differ.Description, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, path)
}

// Read reads a description from a stream; name is for errors.
func Read(r io.Reader, name string) (*differ.Description, error) {
	var d differ.Description
	dec := json.NewDecoder(r)
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, ErrFile, err)
	}
	if d.Format == 0 || d.Variables == nil && len(d.Unread) == 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrFile)
	}
	if d.Format > differ.Format {
		return nil, fmt.Errorf("%s: a newer Risso wrote it (form %d, this one reads up to %d)", name, d.Format, differ.Format)
	}
	return &d, nil
}

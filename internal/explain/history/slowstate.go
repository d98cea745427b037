package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/rissodb/risso/internal/store/aside"
	"github.com/rissodb/risso/internal/store/events"
)

// slowState is what is stored about a slow log: each event before Place is stored, or in Waiting, or in Open.
type slowState struct {
	Version int             `json:"version"`
	Place   logPlace        `json:"place"`
	Queue   []logPlace      `json:"queue,omitempty"`
	Open    slowOpen        `json:"open"`
	Waiting []events.Minute `json:"waiting,omitempty"`
}

const slowStateVersion = 1

// stateFile is where it is written down; empty: nowhere.
type stateFile string

// stateFileOf names the file by the instance, whose ID may hold anything.
func stateFileOf(dir, instance string) stateFile {
	if dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(instance))
	return stateFile(filepath.Join(dir, "slowlog-"+hex.EncodeToString(sum[:8])+".json"))
}

func (f stateFile) read() (st slowState, err error) {
	if f == "" {
		return st, os.ErrNotExist
	}
	b, err := os.ReadFile(string(f))
	if err != nil {
		return st, err
	}
	if err := json.Unmarshal(b, &st); err != nil {
		return slowState{}, err
	}
	if st.Version != slowStateVersion {
		return slowState{}, fmt.Errorf("%s belongs to another Risso", f)
	}
	return st, nil
}

// write replaces the file; it is whole at any time, also when the power goes.
func (f stateFile) write(st slowState) error {
	if f == "" {
		return nil
	}
	st.Version = slowStateVersion
	b, err := json.Marshal(st)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(string(f)), filepath.Base(string(f))+".*.tmp") // for its owner only
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), string(f))
	}
	if err != nil {
		err = errors.Join(err, os.Remove(tmp.Name()))
	}
	return err
}

// setAside keeps a file that cannot be read under another name: it may be of a newer Risso.
func (f stateFile) setAside() error {
	_, err := aside.Move(string(f), time.Now())
	return err
}

func (f stateFile) remove(l *slog.Logger) {
	if f == "" {
		return
	}
	if err := os.Remove(string(f)); err != nil && !errors.Is(err, os.ErrNotExist) {
		l.Warn("a file with the state of a slow log cannot be removed", "err", err)
	}
}

// explainTable takes MariaDB's mark off each line of a plan.
func explainTable(b []byte) string {
	var out []byte
	for _, line := range bytes.Split(bytes.TrimRight(b, "\r\n"), []byte("\n")) {
		out = append(append(out, bytes.TrimRight(bytes.TrimPrefix(line, []byte("# explain: ")), "\r")...), '\n')
	}
	return string(out)
}

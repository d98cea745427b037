package prove

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/home"
)

// kept is a proof with what it is of.
type kept struct {
	Version   int          `json:"version"`
	Seat      string       `json:"seat"`
	ID        string       `json:"id"`
	Object    string       `json:"object"`
	Statement string       `json:"statement"`
	Proof     advise.Proof `json:"proof"`
}

// pathOf is where the proof of a finding of a server is kept. A finding with another statement is another one.
func pathOf(dir, seat string, f advise.Finding) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s", seat, f.ID, f.Object, f.Statement)
	return filepath.Join(dir, fmt.Sprintf("proof-%016x.json", h.Sum64()))
}

// Keep writes a proof down, whole or not at all, in place of an earlier one of the same finding.
func Keep(dir, seat string, f advise.Finding, p advise.Proof) error {
	b, err := json.MarshalIndent(kept{1, seat, f.ID, f.Object, f.Statement, p}, "", " ")
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("keep the proof: %w", err)
	}
	sweepHalf(dir)
	tmp, err := os.CreateTemp(dir, half+"*")
	if err != nil {
		return fmt.Errorf("keep the proof: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), pathOf(dir, seat, f))
	}
	if err == nil {
		err = home.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("keep the proof: %w", err)
	}
	return nil
}

// half begins the name of a proof that is being written.
const half = ".proof-"

// sweepHalf removes what a process left that was killed while it wrote a proof. One that is young may be about to be finished.
func sweepHalf(dir string) {
	list, _ := filepath.Glob(filepath.Join(dir, half+"*")) // the only error is a bad pattern
	for _, path := range list {
		if st, err := os.Stat(path); err == nil && time.Since(st.ModTime()) > time.Minute {
			os.Remove(path)
		}
	}
}

// Hang hangs proofs on the findings of a server that have one.
func Hang(dir, seat string, list []advise.Finding) error {
	var failed error
	for i, f := range list {
		if f.Statement == "" {
			continue
		}
		b, err := os.ReadFile(pathOf(dir, seat, f))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		var k kept
		if err == nil {
			err = json.Unmarshal(b, &k)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("read the proof of %s %s: %w", f.ID, f.Object, err))
			continue
		}
		if k.Seat == seat && k.ID == f.ID && k.Object == f.Object && k.Statement == f.Statement {
			list[i].Proof = &k.Proof
		}
	}
	return failed
}

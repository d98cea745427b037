package chaos

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/change"
)

// Entry is a line of the journal of a run, by which its faults are ended if it is killed.
type Entry struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"`           // break, heal, sandbox, controller
	Fault   int       `json:"fault,omitempty"` // its number
	Kind    Kind      `json:"kind,omitempty"`
	Target  string    `json:"target,omitempty"`  // to whom it happened
	Command string    `json:"command,omitempty"` // that ends it, if the user gave one
	Sandbox string    `json:"sandbox,omitempty"` // the folder that the run's servers are in
	PID     int       `json:"pid,omitempty"`     // of a controller
}

// journalName begins the file's name.
const journalName = "journal"

// Journal is what a run changed and has to put back.
type Journal struct{ diary *change.Diary }

// NewJournal begins one in the folder of a run.
func NewJournal(dir string) (*Journal, error) {
	d, err := change.NewDiary(dir, journalName)
	return &Journal{d}, err
}

// Note writes an entry. It is on disk when Note returns.
func (j *Journal) Note(e Entry) error {
	e.Time = time.Now().UTC()
	return j.diary.Note(e)
}

// Close ends it.
func (j *Journal) Close() error { return j.diary.Close() }

// Left is what a run that was killed left.
type Left struct {
	Faults  []Entry // that were caused and not ended, the last first
	Sandbox string  // its folder; "": the run was not in a sandbox
	PIDs    []int   // of its controllers that still run
}

// ReadLeft reads it from the folder of a run.
func ReadLeft(dir string) (Left, error) {
	var l Left
	files, err := filepath.Glob(filepath.Join(escaped(dir), journalName+"-*.jsonl"))
	if err != nil {
		return l, err
	}
	if len(files) == 0 {
		return l, fmt.Errorf("there is no journal of risso chaos in %s", dir)
	}
	open := map[int]Entry{}
	var order []int
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return l, fmt.Errorf("read the journal: %w", err)
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			var e Entry
			if json.Unmarshal(s.Bytes(), &e) != nil {
				continue // the line that was being written
			}
			switch e.Event {
			case "break":
				open[e.Fault] = e
				order = append(order, e.Fault)
			case "heal":
				delete(open, e.Fault)
			case "sandbox":
				l.Sandbox = e.Sandbox
			case "controller":
				if runsBelow(e.PID, dir) {
					l.PIDs = append(l.PIDs, e.PID)
				}
			}
		}
	}
	for i := len(order) - 1; i >= 0; i-- {
		if e, ok := open[order[i]]; ok {
			l.Faults = append(l.Faults, e)
			delete(open, order[i])
		}
	}
	return l, nil
}

// escaped is a path as a pattern that matches only it.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// runsBelow reports whether a process works in a folder: it is in its arguments. A number alone may be another's by now.
func runsBelow(pid int, dir string) bool {
	if pid <= 1 {
		return false
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	for _, a := range strings.Split(string(args), "\x00") {
		if strings.HasPrefix(a, dir+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// End kills the controllers that are left.
func (l Left) End() error {
	for _, pid := range l.PIDs {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			return fmt.Errorf("end controller %d: %w", pid, err)
		}
	}
	return nil
}

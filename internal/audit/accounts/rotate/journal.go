package rotate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/change"
)

// kind begins the names of journals.
const kind = "rotate"

// Line is one of a journal: what is about to be done, or was. No password and no stored form is in it.
type Line struct {
	Time    time.Time `json:"time"`
	Server  string    `json:"server"` // its place: host, port and data directory
	Account string    `json:"account"`
	Step    string    `json:"step"`
	State   string    `json:"state"` // begun, done, failed or finished
}

// Run carries the plan out with a journal in a folder, and says where that is.
func (r *Rotation) Run(ctx context.Context, dir string) (journal string, err error) {
	if err := r.alone(ctx); err != nil {
		return "", err
	}
	defer r.free()
	d, err := change.NewDiary(dir, kind)
	if err != nil {
		return "", err
	}
	defer d.Close()
	note := func(step, state string) error {
		return d.Note(Line{time.Now().UTC(), r.place, r.name, step, state})
	}
	last := ""
	done, err := change.Execute(ctx, r.Plan, change.Log{
		Before: func(_ int, s change.Step) error { last = s.String(); return note(last, "begun") },
		After:  func(_ context.Context, s change.Step) error { return note(s.String(), "done") },
	})
	if err == nil {
		err = note("", "finished")
	}
	if err != nil {
		if e := note(last, "failed"); e != nil {
			err = fmt.Errorf("%w; %w", err, e)
		}
		return d.Path(), fmt.Errorf("%d of %d steps done: %w", done, len(r.Plan), err)
	}
	return d.Path(), nil
}

// CutOff is where the last rotation of this account stands that did not finish, in words; "" if there is none.
func (r *Rotation) CutOff(dir string) string {
	paths, err := filepath.Glob(filepath.Join(strings.NewReplacer("[", `\[`, "*", `\*`, "?", `\?`).Replace(dir), kind+"-*.jsonl"))
	if err != nil {
		return ""
	}
	slices.Sort(paths)
	words := ""
	for _, path := range paths {
		last := lastLine(path)
		switch {
		case last.Server != r.place || last.Account != r.name:
		case last.State == "finished":
			words = ""
		default:
			how := "was cut off"
			if last.State == "failed" {
				how = "failed"
			}
			words = fmt.Sprintf("a rotation of %s %s at %s; the last step %s: %s (%s)", r.name, how, last.Time.Format(time.DateTime), last.State, last.Step, path)
		}
	}
	return words
}

func lastLine(path string) (l Line) {
	f, err := os.Open(path)
	if err != nil {
		return l
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var next Line
		if json.Unmarshal(s.Bytes(), &next) == nil { // the last one may be torn
			l = next
		}
	}
	return l
}

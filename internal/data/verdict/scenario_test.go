package verdict

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/schedule"
	"github.com/rissodb/risso/internal/store/state"
)

// scenario is a server whose protection is judged: testdata/README.md has the format.
type scenario struct {
	facts   Facts
	want    Want
	planned bool
	now     time.Time
}

// TestScenarios judges the servers of testdata/*.scenario.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.scenario")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files, %v; want some", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(text), "\nscenario ")[1:] {
			name, body, _ := strings.Cut(part, "\n")
			t.Run(name, func(t *testing.T) { runScenario(t, body) })
		}
	}
}

func runScenario(t *testing.T, body string) {
	s := &scenario{facts: good(), planned: true, now: now,
		want: Want{Backup: plan(t, "daily at 02:00"), Drill: plan(t, "weekly on sunday at 04:00"), Mirror: true, Place: "/backup", Since: ago1(1000 * time.Hour)}}
	var want []string
	for _, line := range strings.Split(body, "\n") {
		line = strings.TrimSpace(line)
		switch word, rest, _ := strings.Cut(line, " "); {
		case line == "" || line[0] == '#':
		case slices.Contains([]string{"ok:", "warning", "critical", "remedy"}, word):
			want = append(want, line)
		default:
			if err := s.set(word, rest); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
	wanted := &s.want
	if !s.planned {
		wanted = nil
	}
	v := Judge(s.facts, wanted, s.now)
	if got, want := tell(v), strings.Join(want, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if v.Findings == nil {
		t.Error("got no list of findings, want an empty one: null is no list in JSON")
	}
}

// tell writes a verdict as a scenario does.
func tell(v Verdict) string {
	if len(v.Findings) == 0 {
		return string(v.State) + ": " + v.Words
	}
	var out []string
	for i, f := range v.Findings {
		line := fmt.Sprintf("%s %s", f.Severity, strings.TrimPrefix(f.ID, "protect."))
		if !f.Since.IsZero() {
			line += " since " + f.Since.UTC().Format("2006-01-02 15:04")
		}
		out = append(out, line+": "+f.What)
		if f.Remedy != "" {
			out = append(out, "remedy "+f.Remedy)
		}
		if i == 0 && (string(v.State) != f.Severity.String() || v.Words != f.What) {
			out = append(out, fmt.Sprintf("but the verdict is %s: %s", v.State, v.Words))
		}
	}
	return strings.Join(out, "\n")
}

// when reads a time: "10h ago", "in 2h", "2026-11-20 02:00" or "never".
func (s *scenario) when(text string) (time.Time, error) {
	if text == "never" {
		return time.Time{}, nil
	}
	sign, span, ok := -1, "", false
	if span, ok = strings.CutSuffix(text, " ago"); !ok {
		sign = 1
		span, ok = strings.CutPrefix(text, "in ")
	}
	if !ok {
		return time.Parse("2006-01-02 15:04", text)
	}
	d, err := length(span)
	return s.now.Add(time.Duration(sign) * d), err
}

// length reads a span of time, which may be in days; "never" is Never.
func length(text string) (time.Duration, error) {
	if text == "never" {
		return Never, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

// set carries out one line of a scenario.
func (s *scenario) set(word, rest string) (err error) {
	f, w := &s.facts, &s.want
	at := func(text string) time.Time {
		t, e := s.when(text)
		if e != nil && err == nil {
			err = e
		}
		return t
	}
	head, words, _ := strings.Cut(rest, ": ") // "copy 1h ago: no route to host"
	switch word {
	case "nothing":
		s.planned = s.planned && rest != "planned"
		if rest == "known" {
			*f = Facts{}
		}
	case "zone":
		minutes, e := strconv.Atoi(rest)
		s.now, err = s.now.In(time.FixedZone("there", minutes*60)), e
	case "now":
		s.now = at(rest)
	case "no":
		return s.without(rest)
	case "plan":
		kind, text, _ := strings.Cut(rest, " ")
		p, e := schedule.Parse(text)
		*map[string]*schedule.Schedule{"backup": &w.Backup, "drill": &w.Drill}[kind], err = p, e
	case "limit":
		return s.limit(strings.Fields(rest))
	case "place":
		w.Place = rest
	case "wanted":
		w.Since = at(rest)
	case "backup":
		f.LastBackup = &state.Backup{Place: "/backup", ID: "b1", Began: at(rest), Ended: at(rest).Add(time.Hour)}
	case "ahead":
		id, text, _ := strings.Cut(rest, " ")
		f.Ahead = &state.Backup{ID: id, Began: at(text)}
	case "oldest":
		f.First = at(rest)
	case "proven":
		f.ProvenAt = at(rest)
	case "drill":
		f.LastDrill = &state.Drill{Ended: at(head), Text: words}
	case "recovery":
		f.Recovery, err = strconv.ParseFloat(rest, 64)
	case "window":
		from, to, _ := strings.Cut(rest, " to ")
		f.WindowFrom, f.WindowTo = at(from), at(to)
	case "mirror":
		from, to, _ := strings.Cut(rest, " to ")
		f.Mirrors = append(f.Mirrors, state.Mirror{Place: "/backup", First: at(from), Last: at(to)})
	case "gap":
		f.Gap = rest
	case "short":
		f.Short = true
	case "replica":
		f.Source = rest
	case "runs":
		kind, text, _ := strings.Cut(rest, " since ")
		f.Running = append(f.Running, state.Run{Kind: state.JobKind(kind), Began: at(text)})
	case "failed", "interrupted", "found":
		kind, text, _ := strings.Cut(head, " ")
		n := state.Run{Kind: state.JobKind(kind), Outcome: state.OutcomeFailed, Ended: at(text), Text: words, Result: json.RawMessage("{}")}
		if word == "interrupted" {
			n.Outcome = state.OutcomeInterrupted
		}
		if word == "found" {
			n.Result = json.RawMessage(`[1]`)
		}
		f.Failing = append(f.Failing, n)
	case "trouble":
		kind, text, _ := strings.Cut(head, " ")
		w.Outage = Outage{Words: words, Gone: kind == "gone", Since: at(text)}
	case "newest":
		id, kind, _ := strings.Cut(head, " ")
		kinds := []string{"hollow", "part", "strange", "broken"}
		w.Newest = Uncounted{ID: id, Kind: UncountedKind(slices.Index(kinds, kind)), Why: words}
		if w.Newest.Kind < 0 {
			return fmt.Errorf("a newest backup is one of %q", kinds)
		}
	case "strange":
		w.Strange = rest
	case "doubt":
		w.Doubt = rest
	default:
		return fmt.Errorf("unknown word %q", word)
	}
	return err
}

// without takes something of the good server away.
func (s *scenario) without(what string) error {
	f, w := &s.facts, &s.want
	switch what {
	case "backup":
		f.LastBackup = nil
	case "proof":
		f.LastProven, f.LastDrill = nil, nil
	case "window":
		f.WindowFrom, f.WindowTo = time.Time{}, time.Time{}
	case "mirrors":
		f.Mirrors = nil
	case "mirroring":
		w.Mirror = false
	case "place":
		w.Place = ""
	case "backup plan":
		w.Backup = schedule.Schedule{}
	case "drill plan":
		w.Drill = schedule.Schedule{}
	default:
		return fmt.Errorf("nothing is called %q", what)
	}
	return nil
}

// limit sets when something is late and lost: "age 9h 20h", "mirror never never"; 0s is as usual.
func (s *scenario) limit(words []string) error {
	if len(words) != 3 {
		return fmt.Errorf("want age, proof or mirror, and two spans of time")
	}
	late, err := length(words[1])
	if err != nil {
		return err
	}
	lost, err := length(words[2])
	if err != nil {
		return err
	}
	l := map[string]*Limits{"age": &s.want.Age, "proof": &s.want.Proof, "mirror": &s.want.Behind}[words[0]]
	if l == nil {
		return fmt.Errorf("nothing called %q has limits", words[0])
	}
	*l = Limits{late, lost}
	return nil
}

package keep

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/rules"
)

var begin = time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)

// findings reads "a b:c!5": the findings a, and b of the subject c, which is critical and has the value 5.
func findings(text string) (list []fleet.Finding) {
	for _, word := range strings.Fields(text) {
		f := fleet.Finding{Severity: fleet.SeverityWarning, Since: begin}
		var value string
		var critical bool
		word, value, critical = strings.Cut(word, "!")
		if critical {
			f.Severity = fleet.SeverityCritical
			_ = json.Unmarshal([]byte(value), &f.Value)
		}
		f.ID, f.Subject, _ = strings.Cut(word, ":")
		list = append(list, f)
	}
	return list
}

func TestLook(t *testing.T) {
	type look struct {
		at     int // seconds
		state  rules.State
		found  string
		due    bool
		holds  string // what the look says that holds
		unseen string // and what ended unseen
	}
	for name, c := range map[string]struct {
		open  string
		looks []look
	}{
		"begins, holds and ends": {"", []look{{0, "ok", "", false, "", ""}, {1, "warning", "a", true, "a", ""}, {2, "warning", "a", false, "a", ""}, {3, "ok", "", true, "", ""}, {4, "ok", "", false, "", ""}}},
		"gets worse":             {"", []look{{0, "warning", "a", true, "a", ""}, {1, "critical", "a!1", true, "a", ""}, {2, "critical", "a!1.05", false, "a", ""}, {3, "critical", "a!1.2", true, "a", ""}, {4, "warning", "a", false, "a", ""}}},
		"holds for long":         {"", []look{{0, "warning", "a", true, "a", ""}, {59, "warning", "a", false, "a", ""}, {60, "warning", "a", true, "a", ""}, {61, "warning", "a", false, "a", ""}}},
		"two of one word":        {"", []look{{0, "warning", "a:x a:y", true, "a:x a:y", ""}, {1, "warning", "a:y", true, "a:y", ""}}},
		"twice the same":         {"", []look{{0, "warning", "a a", true, "a", ""}}},
		"found again":            {"a", []look{{0, "new", "", false, "", ""}, {5, "ok", "", true, "a", ""}, {9, "warning", "a", false, "a", ""}, {70, "ok", "", true, "", ""}}},
		"not found again":        {"a", []look{{0, "ok", "", true, "a", ""}, {59, "ok", "", false, "a", ""}, {60, "ok", "", true, "", "a"}}},
		"is up again":            {"server.down", []look{{0, "new", "", false, "", ""}, {5, "ok", "", true, "", "server.down"}}},
		"goes down":              {"", []look{{0, "warning", "a", true, "a", ""}, {1, "down", "server.down", true, "server.down", "a"}, {2, "ok", "", true, "", ""}}},
	} {
		var k Keeper
		var open []state.FindingRecord
		for _, f := range findings(c.open) {
			open = append(open, state.FindingRecord{First: f, Worst: f})
		}
		k.Resume(open)
		for _, l := range c.looks {
			got, due := k.Look("db", begin.Add(time.Duration(l.at)*time.Second), rules.Verdict{State: l.state, Findings: findings(l.found)}, nil)
			var holds, unseen []string
			for _, f := range got.Findings {
				holds = append(holds, strings.TrimSuffix(f.ID+":"+f.Subject, ":"))
			}
			for key, is := range got.Unseen {
				if is {
					unseen = append(unseen, strings.TrimSuffix(strings.ReplaceAll(key, "\x00", ":"), ":"))
				}
			}
			slices.Sort(holds)
			if due != l.due || strings.Join(holds, " ") != l.holds || strings.Join(unseen, " ") != l.unseen {
				t.Errorf("%s, second %d: got due %t, holds %q, unseen %q; want %t, %q, %q", name, l.at, due, holds, unseen, l.due, l.holds, l.unseen)
			}
		}
	}
}

func TestLostLookIsSaidAgain(t *testing.T) {
	var k Keeper
	k.Look("db", begin, rules.Verdict{State: rules.StateWarning, Findings: findings("a")}, nil)
	k.Again()
	if l, due := k.Look("db", begin.Add(time.Second), rules.Verdict{State: rules.StateWarning, Findings: findings("a")}, nil); !due || len(l.Findings) != 1 {
		t.Errorf("got %+v, due %t; want the finding again", l, due)
	}
}

func TestEvidenceIsTakenOnce(t *testing.T) {
	var k Keeper
	asked := 0
	evidence := func(fleet.Finding) json.RawMessage { asked++; return json.RawMessage(`{}`) }
	for i, found := range []string{"a", "a", "a!1", "a!1", "a!2"} {
		k.Look("db", begin.Add(time.Duration(i)*time.Second), rules.Verdict{State: rules.StateWarning, Findings: findings(found)}, evidence)
	}
	if asked != 3 {
		t.Errorf("evidence was asked for %d times, want 3: new, critical, worse", asked)
	}
}

// TestLastHeld: a finding ends when it last held, not when it is no longer listed; one of before a restart was last seen before that.
func TestLastHeld(t *testing.T) {
	var k Keeper
	k.Resume([]state.FindingRecord{{First: findings("old")[0], Worst: findings("old")[0], Seen: begin.Add(-time.Hour)}})
	at := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Second) }
	look := func(n int, f ...fleet.Finding) state.Look {
		l, _ := k.Look("db", at(n), rules.Verdict{State: rules.StateWarning, Findings: f}, nil)
		return l
	}
	a := findings("a")[0]
	if l := look(0, a); !l.Last["old\x00"].Equal(begin.Add(-time.Hour)) || !l.Last["a\x00"].IsZero() {
		t.Errorf("got %v, want that old held an hour ago, and nothing of a, which holds", l.Last)
	}
	a.Last = at(1)
	if l := look(5, a); !l.Last["a\x00"].Equal(at(1)) {
		t.Errorf("got %v, want that a held in second 1", l.Last)
	}
	if l := look(12); !l.Last["a\x00"].Equal(at(1)) {
		t.Errorf("it is over: got %v, want that a held in second 1", l.Last)
	}
}

// TestAnotherError: what a finding is about is written when it changes, unless it is less bad.
func TestAnotherError(t *testing.T) {
	var k Keeper
	for i, c := range []struct {
		severity fleet.Severity
		about    string
		due      bool
	}{{fleet.SeverityCritical, "error 1146 in 1", true}, {fleet.SeverityCritical, "error 1146 in 1", false}, {fleet.SeverityCritical, "error 1062 in 2", true}, {fleet.SeverityWarning, "error 1396 in 3", false}, {fleet.SeverityCritical, "error 1062 in 2", false}} {
		f := fleet.Finding{ID: "repl.stopped", Severity: c.severity, Since: begin, Case: c.about}
		if _, due := k.Look("r", begin.Add(time.Duration(i)*time.Second), rules.Verdict{State: rules.StateCritical, Findings: []fleet.Finding{f}}, nil); due != c.due {
			t.Errorf("look %d at %s: due %v, want %v", i, c.about, due, c.due)
		}
	}
}

// TestAnotherOfThatName: what is found after a restart of Risso, and began after the one of before was last seen, is another one.
func TestAnotherOfThatName(t *testing.T) {
	for name, c := range map[string]struct {
		since time.Time
		want  string // what the two looks hold
	}{
		"the same one":               {begin.Add(-time.Hour), "a | a"},
		"it began before":            {begin.Add(-30 * time.Minute), "a | a"},
		"it began after it was seen": {begin.Add(-time.Minute), " | a"},
	} {
		var k Keeper
		old := findings("a")[0]
		old.Since = begin.Add(-time.Hour)
		k.Resume([]state.FindingRecord{{First: old, Worst: old, Seen: begin.Add(-10 * time.Minute)}})
		f := old
		f.Since = c.since
		var got []string
		for i := range 2 {
			l, due := k.Look("db", begin.Add(time.Duration(i)*time.Second), rules.Verdict{State: rules.StateWarning, Findings: []fleet.Finding{f}}, nil)
			holds := ""
			for _, f := range l.Findings {
				holds += f.ID
			}
			got = append(got, holds)
			if (holds == "") != l.Unseen["a\x00"] || holds == "" && !due {
				t.Errorf("%s, look %d: got unseen %v, due %v", name, i, l.Unseen, due)
			}
		}
		if s := strings.Join(got, " | "); s != c.want {
			t.Errorf("%s: got %q, want %q", name, s, c.want)
		}
	}
}

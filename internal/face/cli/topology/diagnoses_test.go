package topology

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
)

func found() []diagnose.Diagnosis {
	dead := diagnose.Diagnosis{Code: "primary.dead", Severity: fleet.SeverityCritical, Nodes: []string{"a"}, What: "a is dead", Evidence: []string{"from here: refused"}, NotSeen: "whether it runs", Next: "look"}
	lag := diagnose.Diagnosis{Code: "repl.delayed", Nodes: []string{"z"}, What: "z\x1b[2J is late", Evidence: []string{"it says so"}, NotSeen: "-", Next: "nothing", On: "z", Statements: "SET 'x\n'"}
	list := []diagnose.Diagnosis{dead, lag}
	for _, name := range []string{"b", "c", "d", "e", "f", "g", "h"} {
		list = append(list, diagnose.Diagnosis{Code: "repl.stopped:cannot_connect", Severity: fleet.SeverityCritical, Nodes: []string{name}, What: name + " cannot receive", Because: &diagnose.Cause{Code: "primary.dead", Node: "a"}})
	}
	return list
}

// TestDiagnosesText: what follows from something stands below it, the first of it; nothing of a server gets to the terminal as it is.
func TestDiagnosesText(t *testing.T) {
	want := `
critical  primary.dead: a is dead
          seen: from here: refused
          not seen: whether it runs
          next: look
          so: repl.stopped:cannot_connect: b cannot receive
          so: repl.stopped:cannot_connect: c cannot receive
          so: repl.stopped:cannot_connect: d cannot receive
          so: repl.stopped:cannot_connect: e cannot receive
          so: repl.stopped:cannot_connect: f cannot receive
          and 2 more
info      repl.delayed: z` + "\ufffd" + `[2J is late
          on z: SET 'x '
`
	if got := diagnosesText(found(), 0); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := diagnosesText(nil, 0); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	for _, line := range strings.Split(codesText(diagnose.Codes()), "\n") {
		if strings.HasSuffix(line, ": -") {
			t.Errorf("%q says nothing", line)
		}
	}
}

// TestFails: --fail-on ends with 1 if something is so bad, and only then.
func TestFails(t *testing.T) {
	for _, c := range []struct {
		failOn string
		found  []diagnose.Diagnosis
		want   int
	}{{"", found(), 0}, {"critical", found(), 1}, {"warning", found()[1:2], 0}, {"info", found()[1:2], 1}, {"info", nil, 0}} {
		got := 0
		if err := (&command{failOn: c.failOn}).fails(c.found); err != nil {
			got = fault.Code(err)
		}
		if got != c.want {
			t.Errorf("--fail-on %q: got exit code %d, want %d", c.failOn, got, c.want)
		}
	}
}

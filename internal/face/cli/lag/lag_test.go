package lag

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/lag"
	"github.com/rissodb/risso/internal/fleet"
)

// TestHostile: what servers call themselves and their channels moves no terminal's cursor.
func TestHostile(t *testing.T) {
	odd := "x\x1b[2J\r\n\u202ey"
	seconds := 1.0
	r := lag.Report{Replica: odd, Channel: odd, Source: odd, State: lag.Behind, Seconds: &seconds, SecondsBy: odd, Forecast: odd, Causes: []lag.Cause{{Code: "lock", Words: odd, Evidence: []string{odd}, NotSeen: odd, Next: odd}},
		Gaps: []fleet.Trouble{{What: odd, Why: odd, Remedy: odd}}}
	var b strings.Builder
	if err := writeReport(&b, r); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.ContainsAny(text, "\x1b\r\u202e") || strings.Count(text, "\n") != 9 {
		t.Errorf("got %q", text)
	}
}

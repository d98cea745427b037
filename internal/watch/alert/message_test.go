package alert

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// TestHuge: what servers say may be of any size and contain anything; a message stays small, and its title one line.
func TestHuge(t *testing.T) {
	long := strings.Repeat("x\r\nBcc: \u202e\x00\xff", 1<<14)
	a := Standing{Alert: Alert{Key: "k", Finding: "lock.blocker", Server: "db\n1", Severity: fleet.SeverityCritical, Phase: Firing, Began: time.Now(), Trouble: fleet.Trouble{What: long, Why: long, Remedy: long}}}
	for range 200 {
		a.Evidence = append(a.Evidence, long)
	}
	m := Message{Alerts: []Alert{a.shown()}}
	body, err := json.Marshal(m)
	if err != nil || len(body) > 8_000_000 {
		t.Errorf("got %d bytes, %v, want less than 8 MB", len(body), err)
	}
	if e := m.Alerts[0].Evidence; len(e) != mostLines+1 || e[mostLines] != "100 more lines left out" {
		t.Errorf("got %d lines of evidence, the last %.100s, want %d and one that says what is left out", len(e), e[len(e)-1], mostLines)
	}
	if len(a.Evidence) != 200 || len(a.Evidence[0]) != len(long) {
		t.Error("the alert itself was changed, want it as it was")
	}
	if title := m.Title(200); strings.ContainsAny(title, "\r\n\x00\u202e") || len([]rune(title)) > 200 || !strings.HasPrefix(title, "[CRITICAL] db 1: x Bcc: ") {
		t.Errorf("got the title %q, want one line without what is no text", title)
	}
}

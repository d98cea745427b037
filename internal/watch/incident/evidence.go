package incident

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/oneline"
)

// Evidence is what was seen in the second of a finding, in brief: it is kept with the finding for good. Literals are left out.
type Evidence struct {
	Tick      int64              `json:"tick"` // unix seconds
	Down      string             `json:"down,omitempty"`
	Numbers   map[string]float64 `json:"numbers,omitempty"`
	Connected int                `json:"connected,omitempty"`
	Running   int                `json:"running,omitempty"`
	Blocked   int                `json:"blocked,omitempty"`  // sessions that wait for a lock
	Blockers  []Blocker          `json:"blockers,omitempty"` // at the root of most waits
	Locks     []read.LockWait    `json:"locks,omitempty"`    // some of them
	Sessions  []Session          `json:"sessions,omitempty"` // those whose statement takes the longest
	Channels  []fleet.Channel    `json:"channels,omitempty"` // of replication
	Host      *HostSeen          `json:"host,omitempty"`     // of a finding of a host; the rest but Tick is empty then
}

// Limits of evidence.
const (
	evidenceSessions  = 5
	evidenceLocks     = 10
	evidenceChannels  = 4
	evidenceStatement = 200 // bytes
	evidenceLines     = 8
	evidenceBytes     = 16 << 10
)

// EvidenceOf is the evidence of a finding in a moment, as JSON; nil: there is none.
func EvidenceOf(m *Moment, channels []fleet.Channel, f fleet.Finding) json.RawMessage {
	if m == nil {
		return nil
	}
	e := Evidence{Tick: m.Tick, Down: m.Down, Numbers: m.Numbers, Connected: m.Connected, Running: m.Running(), Blocked: m.Blocked()}
	copied := Moment{Sessions: append([]Session(nil), m.Sessions[:min(len(m.Sessions), evidenceSessions)]...), Locks: append([]read.LockWait(nil), m.Locks...)}
	for i := range copied.Sessions {
		copied.Sessions[i].Statement = brief(copied.Sessions[i].Statement)
	}
	for i := range copied.Locks {
		copied.Locks[i].Blocker.Statement = brief(copied.Locks[i].Blocker.Statement)
	}
	copied.Redact()
	copied.normal()
	e.Sessions = copied.Sessions
	e.Blockers = copied.Blockers[:min(len(copied.Blockers), evidenceSessions)]
	e.Locks = copied.Locks[:min(len(copied.Locks), evidenceLocks)]
	if strings.HasPrefix(f.ID, "repl.") {
		for _, c := range channels {
			if len(e.Channels) < evidenceChannels && (f.Subject == "" || f.Subject == c.Name || len(channels) == 1) {
				e.Channels = append(e.Channels, c)
			}
		}
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil
	}
	if len(text) > evidenceBytes { // long names and errors
		e.Locks, e.Sessions = nil, nil
		if text, err = json.Marshal(e); err != nil || len(text) > evidenceBytes {
			return nil
		}
	}
	return text
}

// brief cuts a statement at whole characters.
func brief(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), evidenceStatement)], "")
}

// EvidenceLines says evidence in a few lines, for messages; none where it cannot be read.
func EvidenceLines(text json.RawMessage) []string {
	var e Evidence
	if len(text) == 0 || json.Unmarshal(text, &e) != nil || e.Tick == 0 {
		return nil
	}
	if e.Host != nil {
		out := e.Host.lines(e.Tick)
		return out[:min(len(out), evidenceLines)]
	}
	clock := time.Unix(e.Tick, 0).Local().Format("15:04:05")
	if e.Down != "" {
		return []string{"at " + clock + " the server " + oneline.Of(e.Down)}
	}
	out := []string{fmt.Sprintf("at %s: %s, %d run a statement, %d blocked", clock, digits.Counted(e.Connected, "connection"), e.Running, e.Blocked)}
	for _, b := range e.Blockers {
		out = append(out, oneline.Cut(oneline.Of(b.What), 300))
	}
	for _, c := range e.Channels {
		line := fmt.Sprintf("replication from %s: receives %s, applies %s", oneline.Of(c.Source), oneline.Of(c.IORunning), oneline.Of(c.SQLRunning))
		if err := c.Error(); err.Text != "" {
			line += fmt.Sprintf("; error %d: %s", err.Number, oneline.Cut(oneline.Of(err.Text), 300))
		}
		out = append(out, line)
	}
	for _, s := range e.Sessions {
		if s.Wait != Idle && s.Statement != "" {
			out = append(out, fmt.Sprintf("connection %d%s, %s, %s: %s", s.ID, at(s.User, s.Host), digits.Seconds(s.Seconds), strings.ReplaceAll(s.Wait, "_", " "), oneline.Cut(oneline.Of(s.Statement), evidenceStatement)))
		}
	}
	return out[:min(len(out), evidenceLines)]
}

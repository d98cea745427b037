package lag

import (
	"github.com/rissodb/risso/internal/channels"
	"github.com/rissodb/risso/internal/fleet"
)

// State is how a channel stands.
type State string

// The states.
const (
	Level   State = "level"   // all that the source had was applied
	Applied State = "applied" // all that was received was applied; what the source has done since was not seen
	Delayed State = "delayed" // as late as it is configured to be
	Behind  State = "behind"
	Stopped State = "stopped" // a thread does not run, or cannot connect
	Unknown State = "unknown" // neither the server nor its source tells
)

// Report is the verdict on one channel.
type Report struct {
	Replica string `json:"replica"`           // its name
	Channel string `json:"channel,omitempty"` // the channel's name, where there are several
	Source  string `json:"source"`
	State   State  `json:"state"`

	Seconds      *float64 `json:"seconds,omitempty"`      // how late it is, the configured delay included
	SecondsBy    string   `json:"seconds_by,omitempty"`   // how that is known
	Said         *int     `json:"said,omitempty"`         // what the server says of it: Seconds_Behind_Source
	Delay        int      `json:"delay"`                  // seconds that it is configured to stay behind
	Transactions *int64   `json:"transactions,omitempty"` // that are not applied
	Bytes        *int64   `json:"bytes,omitempty"`        // of the source's log that are not applied
	OnlyReceived bool     `json:"only_received"`          // transactions and bytes are of what was received; the source may have more

	Course   channels.Course `json:"course"`   // where it goes
	Forecast string          `json:"forecast"` // the same in words, or why it is unknown

	Causes []Cause         `json:"causes"` // the one that keeps it most first
	Gaps   []fleet.Trouble `json:"gaps,omitempty"`
}

// Cause is one reason why a channel is late.
type Cause struct {
	Code     string   `json:"code"` // as in docs/lag.md
	Words    string   `json:"words"`
	Evidence []string `json:"evidence,omitempty"` // what speaks for it
	Certain  bool     `json:"certain"`            // it was seen, not guessed
	NotSeen  string   `json:"not_seen,omitempty"` // what would have to be known to be certain
	Next     string   `json:"next,omitempty"`     // a statement or command, or what to do
	weight   float64
}

// Code explains one code of causes.
type Code struct{ Code, Meaning string }

// Codes are all causes that there are, in the order in which they are told.
func Codes() []Code {
	return []Code{
		{"detached", "risso replica detach has detached it from its source: risso replica attach lets it replicate again"},
		{"rebuilding", "risso replica rebuild is at work on it, or ended early: it has not all of its rows"},
		{"applier.error", "the thread that applies stopped at an error"},
		{"applier.stopped", "the thread that applies does not run, without an error: by a command or a restart"},
		{"receiver.error", "the thread that receives stopped at an error"},
		{"receiver.connecting", "the thread that receives cannot connect to the source"},
		{"receiver.stopped", "the thread that receives does not run, without an error"},
		{"receiver.silent", "the connection to the source stands, but nothing of what the source has came in the time of the look: the network, the source hangs, or one large event is on its way. Seconds_Behind_Source says 0 then"},
		{"server.no_room", "a thread that receives or applies waits for room on a disk"},
		{"delayed", "it is configured to stay behind"},
		{"lock", "the applier waits for a lock that a session on the replica holds"},
		{"table.no_key", "the applier changes rows of a table that has no primary or unique key: it looks for each row in the whole table"},
		{"transaction.long", "the applier is in one transaction"},
		{"relay.full", "nothing more is received because the relay logs have reached relay_log_space_limit"},
		{"relay.disk", "the thread that receives is kept by writing the relay log"},
		{"network", "the source's log comes more slowly than the source writes, or than it is applied"},
		{"commit", "the appliers wait for commits: the disk of the logs"},
		{"order", "the appliers are done, and wait for the commit of transactions before theirs"},
		{"semisync", "the appliers' commits wait for a replica of this replica"},
		{"applier.single", "one applier is at its limit"},
		{"applier.few", "of several appliers few have work: transactions depend on each other, or are not known not to"},
		{"applier.all", "all appliers are at their limit"},
		{"catching_up", "nothing keeps it now: it works off what it missed"},
		{"unexplained", "it is behind, and nothing that was seen explains it"},
	}
}

package galera

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/mysql/wsrep"
	"github.com/rissodb/risso/internal/pattern"
)

// Position is a place in a cluster's history: the history's UUID, and the sequence number of the last transaction; -1 is unknown.
type Position struct {
	UUID  string `json:"uuid"`  // of the history
	Seqno int64  `json:"seqno"` // sequence number of the last transaction; -1: unknown
}

// String is the position as servers write it.
func (p Position) String() string { return p.UUID + ":" + strconv.FormatInt(p.Seqno, 10) }

// Known reports whether it is a place in a history.
func (p Position) Known() bool { return p.UUID != "" && p.UUID != wsrep.Undefined && p.Seqno >= 0 }

var positionForm = pattern.Lazy(`^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}):(-?[0-9]+)$`)

// ParsePosition reads a position: UUID:SEQNO. What MariaDB adds, the GTID of its binary log, is left out.
func ParsePosition(text string) (Position, error) {
	text, _, _ = strings.Cut(strings.TrimSpace(text), ",")
	text, _, _ = strings.Cut(text, " ")
	m := positionForm().FindStringSubmatch(text)
	if m == nil {
		return Position{}, fmt.Errorf("%q is no position UUID:SEQNO", text)
	}
	n, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return Position{}, fmt.Errorf("position %q: %w", text, err)
	}
	return Position{strings.ToLower(m[1]), n}, nil
}

// Grastate is what a node wrote into grastate.dat: its position if it was shut down in order, and whether it was the last one then. While it runs,
// and after a crash, the number is -1.
type Grastate struct {
	Position
	Safe bool `json:"safe_to_bootstrap"` // it says that it was the last to be shut down
}

// ParseGrastate reads grastate.dat.
func ParseGrastate(text string) (Grastate, error) {
	g := Grastate{Position: Position{Seqno: -1}}
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if value = strings.TrimSpace(value); !ok || strings.HasPrefix(name, "#") {
			continue
		}
		seen[name] = true
		switch name {
		case "uuid":
			g.UUID = strings.ToLower(value)
		case "seqno":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return g, fmt.Errorf("seqno %q is no number", value)
			}
			g.Seqno = n
		case "safe_to_bootstrap":
			g.Safe = value == "1"
		}
	}
	if !seen["uuid"] || !seen["seqno"] {
		return g, errors.New("it has no uuid and seqno")
	}
	if _, err := ParsePosition(g.UUID + ":0"); err != nil {
		return g, fmt.Errorf("uuid %q is none", g.UUID)
	}
	return g, nil
}

// Gvwstate is the last view of a primary component that a node was in, as it wrote it into gvwstate.dat; an orderly shutdown removes the file.
type Gvwstate struct {
	Own     string   `json:"own"`     // the node's UUID in the group
	View    int64    `json:"view"`    // its number
	Maker   string   `json:"maker"`   // the member that the view's number is of
	Members []string `json:"members"` // their UUIDs in the group
}

// ParseGvwstate reads gvwstate.dat.
func ParseGvwstate(text string) (Gvwstate, error) {
	var g Gvwstate
	ended := false
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) == 1 && f[0] == "#vwend":
			ended = true
		case len(f) >= 2 && f[0] == "my_uuid:":
			g.Own = strings.ToLower(f[1])
		case len(f) >= 4 && f[0] == "view_id:":
			n, err := strconv.ParseInt(f[3], 10, 64)
			if err != nil {
				return g, fmt.Errorf("view %q is no number", f[3])
			}
			g.Maker, g.View = strings.ToLower(f[2]), n
		case len(f) >= 2 && f[0] == "member:":
			g.Members = append(g.Members, strings.ToLower(f[1]))
		}
	}
	if g.Own == "" || len(g.Members) == 0 || !ended {
		return g, errors.New("it does not end, or has no members: the node crashed while it wrote it")
	}
	return g, nil
}

// Log is what an error log says of positions.
type Log struct {
	// Recovered is what --wsrep-recover found, or the position that the node was last started from, if it has not taken part since.
	Recovered Position `json:"recovered"`
	When      string   `json:"when,omitempty"` // that was, by the line's own words
	// AtLeast is the furthest place that the log speaks of: the node was there, and may have gone on.
	AtLeast Position `json:"at_least"`
	Name    string   `json:"name,omitempty"` // wsrep_node_name
	ID      string   `json:"id,omitempty"`   // its UUID in the group when it last ran
	// Synced is where the group was when the node last came to it and was level; known: in a group with a history.
	Synced  Position `json:"synced"`
	View    Position `json:"view"`    // of the last view that it logged: views have numbers in the history, too
	Copying bool     `json:"copying"` // it asked for the state of another, and does not say that it has it
	Differs bool     `json:"differs"` // the others found that its data differ from theirs
}

// What error logs say. MariaDB and Galera 3 begin with WSREP:, Percona XtraDB Cluster 8.0 and MySQL 8.0 of Codership with [WSREP] or [Galera].
var (
	logRecovered = pattern.Lazy(`(?:WSREP:|\[(?:WSREP|Galera)\]) Recovered position:? *([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}:-?[0-9]+)`)
	logTakesPart = pattern.Lazy(`(?:WSREP:|\[(?:WSREP|Galera)\]) (?:Synchronized with group|Server \S+ synced with group|Shifting JOINED -> SYNCED|Member [0-9.]+ \(.*\) synced with group|Receiving IST|IST received|SST received)`)
	logBegan     = pattern.Lazy(`(?:WSREP:|\[(?:WSREP|Galera)\]) Loading provider .* initial position: *([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}:-?[0-9]+)`)
	logPlaces    = pattern.Lazy(`(?:WSREP:|\[(?:WSREP|Galera)\]) (?:Setting (?:GCS )?initial position to|Found saved state:|IST received:|SST received:|wsrep_sst_received: Received SST, position|Recovered position from storage:) *([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}:-?[0-9]+)`)
	logGroup     = pattern.Lazy(`(?:WSREP:|\[(?:WSREP|Galera)\]) (?:Server \S+ connected to cluster at position|New cluster view: global state:) *([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}:-?[0-9]+)`)
	logLevel     = pattern.Lazy(`(?:WSREP:|\[(?:WSREP|Galera)\]) (?:Synchronized with group|Server \S+ synced with group|Shifting JOINED -> SYNCED)`)
	logAsks      = pattern.Lazy(`(?:WSREP:|\[(?:WSREP|Galera)\]) (?:State transfer required|Requesting state transfer)`)
	logHas       = pattern.Lazy(`(?:WSREP:|\[(?:WSREP|Galera)\]) (?:SST received:|IST received|Receiving IST|Installed new state from SST|wsrep_sst_received: Received SST)`)
	logDiffers   = pattern.Lazy(`(?:WSREP:|\[(?:WSREP|Galera)\]) (?:Inconsistency detected|Node consistency compromi[sz]ed|Vote .* is inconsistent with group)`)
	logName      = pattern.Lazy(`(?:WSREP:|\[(?:WSREP|Galera)\]) Server (\S+) (?:connected to cluster at position|synced with group)`)
	logTime      = pattern.Lazy(`^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]|[0-9]{6}) *[0-9]{1,2}:[0-9]{2}:[0-9]{2}`)
	logView      = pattern.Lazy(`^\s+id: *([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}:-?[0-9]+)\s*$`)
	logOwn       = pattern.Lazy(`(?:WSREP:|\[(?:WSREP|Galera)\]) #+ My UUID: ([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})`)
)

// ReadLog reads the lines of error logs: first those that ended before the node last took part, in which what was recovered does not count any more.
func ReadLog(before, lines []string) Log {
	l := Log{Recovered: Position{Seqno: -1}, AtLeast: Position{Seqno: -1}, Synced: Position{Seqno: -1}, View: Position{Seqno: -1}}
	l.read(before)
	l.Recovered = Position{Seqno: -1}
	l.read(lines)
	return l
}

func (l *Log) read(lines []string) {
	reach := func(text string) {
		if p, err := ParsePosition(text); err == nil && p.Known() && (p.UUID != l.AtLeast.UUID || p.Seqno > l.AtLeast.Seqno) {
			l.AtLeast = p
		}
	}
	group := l.Synced
	for _, line := range lines {
		if m := logView().FindStringSubmatch(line); m != nil {
			if p, err := ParsePosition(m[1]); err == nil && p.Known() {
				l.View = p
			}
			continue
		}
		if !strings.Contains(line, "WSREP") && !strings.Contains(line, "[Galera]") {
			continue
		}
		if m := logRecovered().FindStringSubmatch(line); m != nil {
			if p, err := ParsePosition(m[1]); err == nil {
				l.Recovered, l.When = p, logTime().FindString(line)
				reach(m[1])
			}
		}
		if m := logBegan().FindStringSubmatch(line); m != nil {
			if p, err := ParsePosition(m[1]); err == nil && p.Known() { // --wsrep_start_position: found by a recovery whose own words went elsewhere
				l.Recovered, l.When = p, logTime().FindString(line)
				reach(m[1])
			}
		}
		if m := logPlaces().FindStringSubmatch(line); m != nil {
			reach(m[1])
		}
		if m := logName().FindStringSubmatch(line); m != nil {
			l.Name = m[1]
		}
		if m := logOwn().FindStringSubmatch(line); m != nil {
			l.ID = strings.ToLower(m[1])
		}
		if logTakesPart().MatchString(line) {
			l.Recovered = Position{Seqno: -1} // it has gone on from there
		}
		if l.state(line, &group) {
			reach(group.String()) // it was there too once it was level
		}
	}
}

// state follows in what state the node was last, and reports whether it became level. group is where the group was when the node came to it.
func (l *Log) state(line string, group *Position) (level bool) {
	if m := logGroup().FindStringSubmatch(line); m != nil {
		if p, err := ParsePosition(m[1]); err == nil {
			*group = p
		}
	}
	switch {
	case logLevel().MatchString(line):
		l.Synced, l.Copying, l.Differs = *group, false, false
		return true
	case logAsks().MatchString(line):
		l.Copying, l.Differs = true, false
	case logHas().MatchString(line):
		l.Copying = false
	case logDiffers().MatchString(line):
		l.Differs = true
	}
	return false
}

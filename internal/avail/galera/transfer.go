package galera

import (
	"fmt"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/wsrep"
)

// The ways in which a node gets what it missed.
const (
	IST     = "IST" // the transactions that it missed, from a donor's gcache
	SST     = "SST" // a copy of all data
	Unknown = "unknown"
)

// Transfer is what a node will get when it comes back.
type Transfer struct {
	Node     string         `json:"node"`
	Kind     string         `json:"kind"`     // IST, SST or unknown
	Position Position       `json:"position"` // from which it would go on; -1: unknown
	Missed   int64          `json:"missed"`   // transactions; -1: unknown
	Spare    int64          `json:"spare"`    // transactions that may still leave the gcache before it is SST; -1: unknown
	Donors   []string       `json:"donors"`   // that could give it
	Sure     fleet.Sureness `json:"sure"`
	Words    string         `json:"words"`
}

// gapShare and gapMost are what a cluster keeps in reserve of what its members have cached, as transactions go on leaving the cache while one is sent.
const (
	gapShare = 128
	gapMost  = 1 << 20
)

// Forecast says what a node will get if it is started now. members are those of the primary component that were seen; all reports whether none was
// left out. The rule is that of group_find_ist_donor in Galera's gcs_group.cpp: the node's number must be past the lowest that any member has
// cached by a reserve of a 128th of the range, and a synced member must have the next one.
func Forecast(n Node, members []wsrep.Status, all bool) Transfer {
	t := Transfer{Node: n.Name, Kind: Unknown, Position: n.Position, Missed: -1, Spare: -1, Sure: fleet.Certain}
	var last, lowest int64 = -1, -1
	history := ""
	for i := range members {
		s := &members[i]
		history, last = s.ClusterUUID, max(last, s.Committed)
		if s.CachedFrom >= 0 && (lowest < 0 || s.CachedFrom < lowest) {
			lowest = s.CachedFrom
		}
	}
	if !all {
		t.Sure = fleet.Likely
	}
	guess := false
	if !t.Position.Known() && n.AtLeast.Known() && n.AtLeast.UUID == n.Position.UUID {
		t.Position, guess = n.AtLeast, true
	}
	switch {
	case history == "" || last < 0:
		t.Words = "no member of a primary component was seen, so there is no donor"
		return t
	case n.Blank != "":
		t.Sure = fleet.Certain // whatever a member has that was not seen
		t.Kind, t.Words = SST, n.Blank.words()+": a copy of all data (SST), from whatever position it is started"
		if n.Blank == BlankNew {
			t.Words = n.Blank.words() + ": a copy of all data"
		}
		if n.mayHave() && n.Recovered.Known() && (n.Recovered.UUID != history || n.Recovered.Seqno > last) {
			t.Words += "; its own data are at " + n.Recovered.String() + ", which the cluster does not have: keep a copy of them first"
		}
		return t
	case n.Position.UUID == wsrep.Undefined || n.Position.UUID == "" && n.Grastate == nil && n.From == "":
		t.Kind, t.Words = SST, "it has no data of a cluster: a copy of all data"
		return t
	case n.Position.UUID != "" && n.Position.UUID != history:
		t.Kind, t.Words = SST, "its data are of another history ("+n.Position.UUID+"): a copy of all data, and what only it has is lost"
		return t
	case !t.Position.Known():
		t.Words = "it does not tell where it is; " + howToRecover(n)
		return t
	}
	t.Missed = max(last-t.Position.Seqno, 0)
	safe := lowest + min((last-lowest)/gapShare, gapMost)
	for i := range members {
		if s := &members[i]; s.State == wsrep.Synced && s.CachedFrom >= 0 && s.CachedFrom <= t.Position.Seqno+1 {
			t.Donors = append(t.Donors, s.Name)
		}
	}
	if lowest >= 0 && t.Position.Seqno >= safe && len(t.Donors) > 0 {
		t.Kind, t.Spare = IST, t.Position.Seqno-safe
		t.Words = fmt.Sprintf("IST: it is at %d and missed %s, which %s in gcache", t.Position.Seqno, digits.Counted(t.Missed, "transaction"), has(t.Donors))
		if guess {
			t.Words += "; it is there at least, so it may have missed fewer. Started without systemd or mysqld_safe, it needs --wsrep-start-position, or all data are copied (SST): " + howToRecover(n)
			t.Sure = fleet.Likely
		}
		if !guess && n.Logged.UUID == t.Position.UUID && n.Logged.Seqno > t.Position.Seqno {
			t.Words += fmt.Sprintf("; it crashed while it took down a change of the membership (%d), which is past its position: if MariaDB refuses the first start (bogus GTID), start it again, and all data are copied (SST)", n.Logged.Seqno)
			t.Sure = fleet.Likely
		}
		return t
	}
	if guess {
		t.Words = fmt.Sprintf("it was at %d at least, which is too far back for IST; whether it went further it does not tell; %s", t.Position.Seqno, howToRecover(n))
		t.Position, t.Missed = n.Position, -1
		return t
	}
	t.Kind = SST
	switch {
	case lowest < 0:
		t.Words = "SST: no member has anything in its gcache"
	case t.Position.Seqno+1 >= lowest && t.Position.Seqno < safe:
		t.Words = fmt.Sprintf("SST: it is at %d, and the gcaches begin at %d: so near their end that the cluster does not try IST (it keeps a 128th in reserve)", t.Position.Seqno, lowest)
	case t.Position.Seqno >= safe:
		t.Words = fmt.Sprintf("SST: it is at %d, and no synced member has the next transaction in its gcache any more", t.Position.Seqno)
	default:
		t.Words = fmt.Sprintf("SST: it is at %d, and the gcaches begin at %d: %s are gone", t.Position.Seqno, lowest, digits.Counted(lowest-t.Position.Seqno-1, "transaction"))
	}
	return t
}

func has(names []string) string {
	if len(names) == 1 {
		return names[0] + " has"
	}
	return fmt.Sprintf("%s and %s have", names[0], digits.Counted(len(names)-1, "other"))
}

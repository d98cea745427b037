// Package failover judges: is a primary dead, who is to follow it, what would be lost, what stands against it. Facts of servers go in, verdicts in words come out.
// It is pure; package carry does what is decided.
package failover

import (
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Kind is how a primary is replaced.
type Kind string

// The kinds.
const (
	Switchover Kind = "switchover" // planned: the old primary lives, and follows the new one
	Failover   Kind = "failover"   // the old primary is dead, or taken for it
)

// Stage is how far a change of the primary has come. Whoever finds a journal that was cut off knows by it whether to go back or on.
type Stage string

// The stages. Until Promoting all can be taken back; from there on it is brought to its end.
const (
	Begun     Stage = "begun"
	Stopping  Stage = "stopping"  // the old primary is kept from writes; of a failover, the replicas from receiving
	Draining  Stage = "draining"  // the one that was chosen applies what it, or the old primary, has
	Promoting Stage = "promoting" // it becomes the primary
	Published Stage = "published" // it is: clients are told so
	Pointing  Stage = "pointing"  // the others are pointed at it
	Done      Stage = "done"
	Undone    Stage = "undone" // it was given up, and put back as it was
	Failed    Stage = "failed" // it could neither be finished nor taken back: a person has to look
)

// Entry is a step of a change.
type Entry struct {
	At     time.Time     `json:"at"`
	Where  string        `json:"where,omitempty"` // the server
	What   string        `json:"what"`            // a statement, or words
	Took   time.Duration `json:"took_ns,omitempty"`
	Failed string        `json:"failed,omitempty"`
}

// Was is how a server was before.
type Was struct {
	ReadOnly  bool   `json:"read_only"`
	Super     bool   `json:"super_read_only"`
	Source    string `json:"source,omitempty"`    // that it replicated from, host:port
	Applying  bool   `json:"applying,omitempty"`  // it applied what it received
	Receives  bool   `json:"receives,omitempty"`  // its receiver ran, or tried to, before it was stopped for this: nobody had stopped it
	Stopped   bool   `json:"stopped,omitempty"`   // its receiving was stopped for this
	Final     bool   `json:"-"`                   // it was stopped by this process: one that another one stopped may have been started since, and receive again
	Compared  bool   `json:"compared,omitempty"`  // what it received was known when the new primary was chosen
	Repointed bool   `json:"repointed,omitempty"` // it follows the new primary
	Delay     int    `json:"delay,omitempty"`     // by how many seconds it stayed behind on purpose, before that was taken away for this
	// Farewell is what mysql.Server.Farewell was before it was shortened to stop receiving; "": it has it.
	Farewell string `json:"farewell,omitempty"`
}

// Known is what was last known of a primary.
type Known struct {
	At       time.Time    `json:"at,omitzero"`
	Name     string       `json:"name,omitempty"`
	UUID     string       `json:"server_uuid,omitempty"`
	ServerID string       `json:"server_id,omitempty"`
	Executed string       `json:"executed,omitempty"`  // gtid_executed; of MariaDB gtid_binlog_state
	Server   fleet.Server `json:"server,omitzero"`     // which version it is
	Silent   time.Time    `json:"silent,omitzero"`     // since when it did not answer risso serve any more; zero: it did when it was last asked
	Told     bool         `json:"told,omitempty"`      // it told whether it waits for replicas; else the rest is not known
	SemiSync bool         `json:"semi_sync,omitempty"` // it was in force then
	Lossless bool         `json:"lossless,omitempty"`  // and so that no commit is acknowledged to a client before WaitFor replicas have it, however long it takes
	WaitFor  int          `json:"wait_for,omitempty"`
	Unacked  int64        `json:"unacknowledged,omitempty"` // how many commits it has let go on without a replica since it was started
	// Unlogged is when it was first seen that it writes no binary log any more, though it is to. What it took from then on, until it was started again, is in no log and on no replica.
	Unlogged time.Time `json:"unlogged,omitzero"`
	// Full says that commits waited for room on its disk: a MariaDB has then counted what it could not write.
	Full bool `json:"full,omitempty"`
	// Covered is, where it is Lossless, what it had executed when a replica was last seen to have all of that, or when it was first seen to be Lossless: what came after that was
	// acknowledged to nobody before a replica had it. "": not known.
	Covered string `json:"covered,omitempty"`
	// Settings are those in which one that follows is to be like it.
	Settings map[string]string `json:"settings,omitempty"`
	Acks     []string          `json:"acknowledgers,omitempty"` // who could acknowledge: names of members, also of those that were not seen; what is no name is no member
	// Had is what the other members had when they were last seen, by name.
	Had map[string]Had `json:"had,omitempty"`
}

// Journal is what is done to replace a primary. It is written down before each step.
type Journal struct {
	Group     string `json:"group"`
	Epoch     uint64 `json:"epoch"`
	Kind      Kind   `json:"kind"`
	Stage     Stage  `json:"stage"`
	By        string `json:"by"`                // who asked for it
	Automatic bool   `json:"automatic"`         // nobody did
	Because   string `json:"because,omitempty"` // what was seen
	// AcceptLoss says that a known loss does not refuse it.
	AcceptLoss bool           `json:"accept_loss,omitempty"`
	Old        string         `json:"old"`
	New        string         `json:"new,omitempty"`
	Doubtful   string         `json:"doubtful,omitempty"` // who was being promoted when it was cut off, and could not be asked then: it may take writes
	Ordered    bool           `json:"ordered,omitempty"`  // an agent may have been told that its server is not the primary as of this epoch: it believes no older one any more
	Began      time.Time      `json:"began"`
	Ended      time.Time      `json:"ended,omitzero"`
	EndedBy    string         `json:"ended_by,omitempty"` // the process that brought it to its end, or took it back
	Blocked    time.Time      `json:"blocked,omitzero"`   // since when nobody took writes
	Longer     bool           `json:"longer,omitempty"`   // Blocked is when it was asked for: nobody saw when the old primary died
	Opened     time.Time      `json:"opened,omitzero"`    // since when the new primary does
	Before     map[string]Was `json:"before"`             // by server
	Known      Known          `json:"known"`
	Out        []Out          `json:"out,omitempty"` // members that cannot replicate from the new primary, and stay out
	// TLS is how the channel of the new primary was encrypted, which is removed; nil: it had none.
	TLS      *fleet.ChannelTLS `json:"replication_tls,omitempty"`
	Missing  uint64            `json:"missing,omitempty"`  // how many transactions were known to be lost when the new primary was chosen
	Events   *group.Events     `json:"events,omitempty"`   // what the old primary ran; nil: that is not known
	WaitFor  int               `json:"wait_for,omitempty"` // for how many replicas each commit of the new primary waits, if the group wants that
	Notes    []string          `json:"notes,omitempty"`    // what is not as it was
	Verified *Verified         `json:"verified,omitempty"` // nil: it did not come so far
	Steps    []Entry           `json:"steps"`
	Problem  string            `json:"problem,omitempty"`
	Receipt  *Receipt          `json:"receipt,omitempty"`
}

// Verified says whether the new primary takes writes the way clients go, and where these arrive.
type Verified struct {
	Written bool     `json:"written"`           // a row was written
	Not     string   `json:"not,omitempty"`     // why none was
	Arrived []string `json:"arrived,omitempty"` // members that have applied it; if nothing was written, that receive from the new primary
	Missing []string `json:"missing,omitempty"` // the others, and why
}

// Words are it in a sentence.
func (v *Verified) Words() string {
	words := "verified: a row was written"
	if !v.Written {
		words = "not verified by a write: " + v.Not
	}
	switch {
	case v.Written && len(v.Arrived) > 0:
		words += ", and arrived at " + strings.Join(v.Arrived, ", ")
	case len(v.Arrived) > 0:
		words += "; " + strings.Join(v.Arrived, ", ") + " replicate from it"
	case v.Written:
		words += ", and arrived nowhere else"
	}
	if len(v.Missing) > 0 {
		words += "; not seen at " + strings.Join(v.Missing, ", ")
	}
	return words
}

// Final reports whether it was brought to an end.
func (j *Journal) Final() bool { return !j.Ended.IsZero() }

// Receipt says what a change of the primary cost in transactions.
type Receipt struct {
	Group   string        `json:"group"`
	Epoch   uint64        `json:"epoch"`
	Kind    Kind          `json:"kind"`
	Time    time.Time     `json:"time"`
	Old     string        `json:"old"`
	New     string        `json:"new"`
	Outage  time.Duration `json:"outage_ns"`               // in which nobody took writes, as far as it was seen
	Longer  bool          `json:"outage_longer,omitempty"` // it is counted from when the failover was asked for: nobody saw when it began
	Verdict Verdict       `json:"verdict"`
	Words   string        `json:"words"` // the verdict, and because of what
	// Lost are transactions that are known to be lost, by GTID; "": none is known.
	Lost string `json:"lost,omitempty"`
	// Behind is, of MariaDB, the last that the new primary has of the same domains and servers: those that are lost begin behind it.
	Behind  string `json:"lost_behind,omitempty"`
	Count   uint64 `json:"lost_count"`
	Checked string `json:"checked"` // against what: the old primary itself, or what was last seen of it
	// Again is, by the clock of the old primary, when it was started again, if it has transactions that the new one has not; zero: it was not.
	Again time.Time `json:"started_again,omitzero"`
	// Full says that the disk of the old primary, a MariaDB, was full: what it counted may be written nowhere, and acknowledged to nobody, which only its binary logs tell.
	Full bool `json:"disk_full,omitempty"`
	// Contents are what those that are lost changed, without the values; nil: no log of them was read yet.
	Contents *Contents `json:"contents,omitempty"`
	// Applied are those of them that were applied to the new primary later.
	Applied []Applied `json:"applied,omitempty"`
	// Verified says whether the new primary takes writes, and where these arrive; nil: it did not come so far.
	Verified *Verified `json:"verified,omitempty"`
	Notes    []string  `json:"notes,omitempty"` // what is not as it was
}

// OutageWords say for how long nobody took writes; "": that is not known.
func (r *Receipt) OutageWords() string {
	switch {
	case r.Outage <= 0:
		return ""
	case r.Longer:
		return "nobody took writes for at least " + digits.Span(r.Outage) + ", since the failover was asked for"
	}
	return "nobody took writes for " + digits.Span(r.Outage)
}

// Contents are what lost transactions changed, as binary logs tell, without values: those are not kept in a receipt.
type Contents struct {
	Read         time.Time            `json:"read"`
	From         string               `json:"from"`         // whose logs
	Transactions []errant.Transaction `json:"transactions"` // the oldest first; values in statements are ?
	More         int64                `json:"more"`         // transactions that are not listed
	Rows         int64                `json:"rows"`         // that those that are listed changed
	Unseen       string               `json:"unseen,omitempty"`
	Unwritten    bool                 `json:"unwritten,omitempty"` // the old primary could not write them to its binary log, and told nobody that they were committed
	Until        time.Time            `json:"until,omitzero"`      // about when the server removes the log of the first of them; zero: not by itself, or not known
}

// Missed reports whether logs were to tell what these are, and told nothing.
func (c *Contents) Missed() bool {
	return len(c.Transactions) == 0 && !c.Unwritten && c.Unseen != ""
}

// Applied is a transaction that was applied to another server after it was lost.
type Applied struct {
	GTID      string    `json:"gtid"`
	At        time.Time `json:"at"`
	By        string    `json:"by"`
	To        string    `json:"to"`                  // the server
	Unchecked bool      `json:"unchecked,omitempty"` // also what could not be compared with what was there
}

// Which are the transactions that are lost.
func (r *Receipt) Which() (mysql.Errant, error) { return mysql.ParseErrant(r.Lost, r.Behind) }

// Verdict is how sure it is that nothing was lost.
type Verdict string

// The verdicts.
const (
	NothingLost   Verdict = "nothing_lost" // proven: no acknowledged transaction is lost
	Lost          Verdict = "lost"         // the transactions that are, are listed
	PerhapsLost   Verdict = "perhaps_lost" // those that were written after the last look are not known
	NothingToLose Verdict = "nothing_seen" // all that was seen of the old primary is there; it is not known whether it had more
)

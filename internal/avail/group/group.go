// Package group is the vocabulary of failing over: a group is a primary and the servers that replicate from it, each with a status, a weight and a rule of
// promotion, as MySQL Fabric had them. What may become of what is decided here. It is pure.
package group

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
)

// Status is what a server of a group is for.
type Status string

// The statuses. One that is FAULTY comes back as SPARE only: somebody, or the comparison of its data, says that it is well. One that somebody made FAULTY: somebody alone.
const (
	Primary   Status = "PRIMARY"   // takes writes
	Secondary Status = "SECONDARY" // replicates, answers reads, may become the primary
	Spare     Status = "SPARE"     // replicates; gets no reads, and is promoted only by name
	Faulty    Status = "FAULTY"    // gets nothing
)

// SaidSo is why a member is FAULTY that a person made so.
const SaidSo = "somebody said so"

// Statuses lists them.
func Statuses() []Status { return []Status{Primary, Secondary, Spare, Faulty} }

// Rule is how gladly a server is promoted.
type Rule string

// The rules.
const (
	Prefer  Rule = "prefer"
	Neutral Rule = "neutral"
	Avoid   Rule = "avoid" // only when nobody else can
	Never   Rule = "never" // not even by name
)

// Rules lists them.
func Rules() []Rule { return []Rule{Prefer, Neutral, Avoid, Never} }

// Member is a server of a group.
type Member struct {
	Name    string    `json:"name"`    // unique in the group
	Address string    `json:"address"` // host:port by which clients and the other members reach it
	Status  Status    `json:"status"`
	Rule    Rule      `json:"rule"`
	Weight  float64   `json:"weight"`           // of reads, in proportion to the others'; 0: it gets none
	Center  string    `json:"center,omitempty"` // data center
	Since   time.Time `json:"since"`            // since when it has the status
	Fault   string    `json:"fault,omitempty"`  // why it is FAULTY
	// ByHand says of a FAULTY one that a person made it so: it stays out until a person says otherwise.
	ByHand bool   `json:"by_hand,omitempty"`
	Errant string `json:"errant,omitempty"` // of a FAULTY one: the transactions that only it has
	// Replaced says of a FAULTY one that a failover made another one the primary: the transactions that only it has are in the receipt of that.
	Replaced bool `json:"replaced,omitempty"`
	// Unread is when the binary logs of one that was replaced could not be read last, which tell what only it has; zero: they were read, or nobody tried.
	Unread time.Time `json:"logs_unread,omitzero"`
	// Refused is when one that the primary does not let in was given the group's account last.
	Refused time.Time `json:"login_refused,omitzero"`
	// Unlogged says of one that was replaced that it took what is in no binary log: its GTIDs do not tell what only it has. It stays out until a person has looked.
	Unlogged bool `json:"unlogged,omitempty"`
	Back     bool `json:"back,omitempty"` // a SPARE one that was FAULTY, and becomes SECONDARY when it has caught up
	// Pointing says that it is being pointed at the primary, or that this was cut off: then it may replicate from there, stopped, and nobody stopped it on purpose.
	Pointing bool `json:"pointing,omitempty"`
	// Rebuild says of a FAULTY one that its data are being replaced, or that this failed; nil: nobody tried.
	Rebuild *Rebuild `json:"rebuild,omitempty"`
	// TLS is how the channel by which it replicated last was encrypted: it was removed when it was made the primary. nil: it is not known.
	TLS *fleet.ChannelTLS `json:"replication_tls,omitempty"`
	// Fenced is what a server had before it was kept from writes, as package fence has it; it gets that back when it is the primary again.
	Fenced json.RawMessage `json:"fenced,omitempty"`
}

// Rebuild is how replacing the data of a member goes. Who does it holds it, as a lease; the group's own stays free, for a failover.
type Rebuild struct {
	Holder string    `json:"holder,omitempty"` // "": nobody is at it
	Until  time.Time `json:"until,omitzero"`   // how long it holds without a word of its holder
	Began  time.Time `json:"began"`
	From   string    `json:"from,omitempty"`  // whose data it gets
	Stage  string    `json:"stage,omitempty"` // what is done, and how far that is
	Tries  int       `json:"tries,omitempty"` // that failed
	Ended  time.Time `json:"ended,omitzero"`  // when the last one did, or was stopped
	// Problem is why it did.
	Problem string `json:"problem,omitempty"`
}

// Running reports whether somebody is at it.
func (r *Rebuild) Running(now time.Time) bool {
	return r != nil && r.Holder != "" && now.Before(r.Until)
}

// RebuildTries is how often a rebuild that fails is tried without being asked for.
const RebuildTries = 3

// RebuildPause is how long a member is left alone after a rebuild of it failed; it doubles with each.
const RebuildPause = 10 * time.Minute

// Again is when it may be tried again without being asked for; false: no more.
func (r *Rebuild) Again() (at time.Time, may bool) {
	if r == nil || r.Tries == 0 {
		return time.Time{}, true
	}
	return r.Ended.Add(RebuildPause << (r.Tries - 1)), r.Tries < RebuildTries
}

// Words are how it stands, without how far it is; "" where nobody tried.
func (r *Rebuild) Words(now time.Time) string {
	switch at, may := r.Again(); {
	case r == nil:
		return ""
	case r.Running(now) && r.From != "":
		return "it is being rebuilt from " + r.From + " since " + r.Began.Format(time.TimeOnly)
	case r.Running(now):
		return "it is being rebuilt since " + r.Began.Format(time.TimeOnly)
	case r.Holder != "":
		return "its rebuild was cut off, and goes on"
	case r.Tries == 0:
		return "its rebuild was stopped, and goes on later: " + r.Problem
	case may:
		return "its rebuild failed, and is tried again after " + at.Format(time.TimeOnly) + ": " + r.Problem
	}
	return fmt.Sprintf("its rebuild failed %d times, and is not tried again: %s", r.Tries, r.Problem)
}

// Policy is how a group fails over.
type Policy struct {
	Automatic bool          `json:"automatic"`            // serve fails over by itself
	Lossless  bool          `json:"lossless"`             // a failover is refused where an acknowledged transaction is known to be lost
	Pause     time.Duration `json:"pause_ns"`             // between two automatic failovers
	AgentPort int           `json:"agent_port,omitempty"` // of the agents, on the members' hosts; 0: none is asked
	Agents    time.Duration `json:"agents_ns,omitempty"`  // each member has an agent, which fences it when no controller confirmed for so long that it is the primary; 0: it has none
	Rejoin    bool          `json:"rejoin"`               // an old primary that comes back without transactions of its own replicates again
	Center    string        `json:"center,omitempty"`     // preferred data center
	SemiSync  bool          `json:"semi_sync"`            // each primary waits for an acknowledgement
	Rebuild   bool          `json:"rebuild,omitempty"`    // one that has transactions of its own is rebuilt
	Unwritten bool          `json:"unwritten,omitempty"`  // no row is written to verify a promotion
}

// Group is a primary and the servers that replicate from it.
type Group struct {
	Name    string    `json:"name"`
	About   string    `json:"about,omitempty"` // in the words of who made it
	Active  bool      `json:"active"`          // it is looked after, and failed over if its policy says so; else its clients stay with the primary that it has
	Policy  Policy    `json:"policy"`
	Members []Member  `json:"members"` // by name
	Epoch   uint64    `json:"epoch"`   // of the primary: each change of it has a higher one
	Since   time.Time `json:"since"`   // since when the primary is it
	Lease   Lease     `json:"lease"`
	Moving  bool      `json:"moving,omitempty"` // the primary is being handed over, as long as somebody has the lease: clients wait
	Failed  time.Time `json:"failed,omitzero"`  // when it was last failed over automatically
	Events  *Events   `json:"events,omitempty"` // nil: nobody asked yet
	Acks    *Acks     `json:"acks,omitempty"`   // nil: commits wait for as many replicas as they are to
}

// Acks says that commits of the primary wait for fewer replicas than they were to, as no more could acknowledge.
type Acks struct {
	Want int `json:"want"` // for how many they were to wait
	Set  int `json:"set"`  // for how many they do; another number on the server was set by somebody
}

// Events are the scheduled events that a primary runs. Its replicas do not tell: there all of them have one status, those that it does not run, too.
type Events struct {
	At        time.Time `json:"at"`        // when it was asked
	Scheduler string    `json:"scheduler"` // its event_scheduler: ON, OFF, DISABLED
	Enabled   []string  `json:"enabled"`   // quoted names, schema and event
}

// Errors of this package.
var (
	ErrStatus = errors.New("a server cannot go from the one status to the other")
	ErrNone   = errors.New("no such server in the group")
	ErrHeld   = errors.New("another process changes the group")
)

// DefaultPause is how long a group is left alone after an automatic failover.
const DefaultPause = time.Hour

var nameForm = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName refuses a name that commands, host names and files would not take.
func CheckName(name string) error {
	if !nameForm().MatchString(name) {
		return fault.Usagef("%q: a name has letters, digits, dots, dashes and underscores, and begins with a letter or digit, up to 64", name)
	}
	return nil
}

// Find is the index of a member by its name or address, or -1.
func (g *Group) Find(name string) int {
	i := slices.IndexFunc(g.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		i = slices.IndexFunc(g.Members, func(m Member) bool { return strings.EqualFold(m.Address, name) })
	}
	return i
}

// Primary is the index of the primary, or -1.
func (g *Group) Primary() int {
	return slices.IndexFunc(g.Members, func(m Member) bool { return m.Status == Primary })
}

// Sort brings the members into the order of their names.
func (g *Group) Sort() {
	slices.SortFunc(g.Members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
}

// Set gives a member another status, as a person wants it and Fabric allows it: FAULTY returns only by SPARE, and a primary is made by promotion alone. One that Risso made FAULTY
// can be made so by a person as well, and stays so then.
func (g *Group) Set(name string, to Status, why string, now time.Time) error {
	i := g.Find(name)
	if i < 0 {
		return fmt.Errorf("%s: %w", name, ErrNone)
	}
	m := &g.Members[i]
	switch {
	case m.Status == Faulty && to == Faulty && !m.ByHand:
		m.ByHand = true
		g.KeepOut(name, why, now)
		return nil
	case m.Status == to:
		return nil
	case to == Primary:
		return fault.New(fault.Failed, "risso switchover --group "+g.Name+" --to "+m.Name, fmt.Errorf("%s to PRIMARY: %w; a primary is made by a switchover or a failover", m.Name, ErrStatus))
	case m.Status == Primary && to == Faulty: // it would go on to take writes
		return fault.New(fault.Failed, "risso switchover --group "+g.Name+" if it lives, risso failover --group "+g.Name+" if it is dead; risso group demote "+g.Name+" leaves the group without a primary",
			fmt.Errorf("%s is the primary: %w", m.Name, ErrStatus))
	case m.Status == Primary:
		return fault.New(fault.Failed, "risso switchover --group "+g.Name+" --to another server", fmt.Errorf("%s is the primary: %w", m.Name, ErrStatus))
	case m.Status == Faulty && to != Spare:
		return fault.New(fault.Failed, "make it SPARE first", fmt.Errorf("%s from FAULTY to %s: %w", m.Name, to, ErrStatus))
	}
	m.Status, m.Since, m.Fault, m.Back, m.Replaced, m.Unlogged, m.ByHand = to, now, "", false, false, false, to == Faulty
	if to == Faulty {
		m.Fault = why
	} else {
		m.Errant, m.Rebuild = "", nil
	}
	return nil
}

// mostWeight bounds weights.
const mostWeight = 1000

// CheckWeight refuses what is no weight.
func CheckWeight(w float64) error {
	if !(w >= 0 && w <= mostWeight) {
		return fault.Usagef("%g is no weight: a number from 0 to %d", w, mostWeight)
	}
	return nil
}

// SetWeight gives a member a share of the reads.
func (g *Group) SetWeight(name string, w float64) error {
	i := g.Find(name)
	if i < 0 {
		return fault.New(fault.Failed, "risso group show "+g.Name, fmt.Errorf("%s: %w", name, ErrNone))
	}
	if err := CheckWeight(w); err != nil {
		return err
	}
	g.Members[i].Weight = w
	return nil
}

// CheckRule refuses what is no rule.
func CheckRule(r Rule) error {
	if !slices.Contains(Rules(), r) {
		return fault.Usagef("%q is no rule: prefer, neutral, avoid or never", r)
	}
	return nil
}

// SetRule says how gladly a member is promoted.
func (g *Group) SetRule(name string, r Rule) error {
	i := g.Find(name)
	if i < 0 {
		return fault.New(fault.Failed, "risso group show "+g.Name, fmt.Errorf("%s: %w", name, ErrNone))
	}
	if err := CheckRule(r); err != nil {
		return err
	}
	g.Members[i].Rule = r
	return nil
}

// CheckCenter refuses what is no name of a data center; "" is none.
func CheckCenter(center string) error {
	if center == "" {
		return nil
	}
	return CheckName(center)
}

// SetCenter says in which data center a member is; "": in none that matters.
func (g *Group) SetCenter(name, center string) error {
	i := g.Find(name)
	if i < 0 {
		return fault.New(fault.Failed, "risso group show "+g.Name, fmt.Errorf("%s: %w", name, ErrNone))
	}
	if err := CheckCenter(center); err != nil {
		return err
	}
	g.Members[i].Center = center
	return nil
}

// Promoted makes a member the primary. What was it becomes old, FAULTY or SECONDARY.
func (g *Group) Promoted(name string, old Status, why string, epoch uint64, now time.Time) error {
	i := g.Find(name)
	if i < 0 {
		return fmt.Errorf("%s: %w", name, ErrNone)
	}
	if was := g.Primary(); was >= 0 && was != i {
		m := &g.Members[was]
		m.Status, m.Since, m.Fault, m.ByHand = old, now, "", false
		if m.Replaced = old == Faulty; m.Replaced {
			m.Fault = why
		}
	}
	m := &g.Members[i]
	m.Status, m.Since, m.Fault, m.Errant, m.Replaced, m.Unlogged, m.ByHand, m.Rebuild, m.Fenced = Primary, now, "", "", false, false, false, nil, nil
	g.Epoch, g.Since, g.Moving = epoch, now, false
	return nil
}

// KeepOut makes a member FAULTY that cannot be what the group needs, though nothing of it failed; one that is FAULTY already is so for that, too.
func (g *Group) KeepOut(name, why string, now time.Time) {
	i := g.Find(name)
	if i < 0 {
		return
	}
	m := &g.Members[i]
	if m.Status != Faulty {
		m.Status, m.Since, m.Fault, m.Back = Faulty, now, "", false
	}
	if m.Fault != "" {
		why = m.Fault + "; " + why
	}
	m.Fault = why
}

// Without takes a member out.
func (g *Group) Without(name string) error {
	i := g.Find(name)
	switch {
	case i < 0:
		return fmt.Errorf("%s: %w", name, ErrNone)
	case g.Members[i].Status == Primary:
		return fault.New(fault.Failed, "risso switchover --group "+g.Name+" makes another one the primary", fmt.Errorf("%s is the primary: %w", name, ErrStatus))
	}
	g.Members = slices.Delete(g.Members, i, i+1)
	return nil
}

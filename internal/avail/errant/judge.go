package errant

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Kind is what transactions are that a replica has beyond others.
type Kind string

// Kinds.
const (
	KindErrant  Kind = "errant"  // they are only there
	KindAhead   Kind = "ahead"   // they came from the source, which has not committed them yet, or cannot be asked
	KindUnknown Kind = "unknown" // nobody who was asked can tell
)

// Sureness is how certain that is.
type Sureness string

// Surenesses.
const (
	Certain Sureness = "certain"
	Likely  Sureness = "likely"
	Unsure  Sureness = "not known"
)

// Part is transactions of a replica that are of one kind, for one reason.
type Part struct {
	Kind         Kind          `json:"kind"`  // errant, ahead or unknown
	GTIDs        string        `json:"gtids"` // MariaDB: of each domain and server the last one
	Count        uint64        `json:"count"` // MariaDB: those that its binary logs have
	Sure         Sureness      `json:"sure"`  // certain, likely or not known
	Because      string        `json:"why"`
	Transactions []Transaction `json:"transactions"`     // what they changed, as the replica's binary logs tell, the oldest first
	Unseen       string        `json:"unseen,omitempty"` // why not all of them could be looked at; "": all were
	// Unwritten says that its server, whose binary logs are all there, has none of them: writing them failed, and no client was told that they were committed.
	Unwritten bool         `json:"unwritten,omitempty"`
	errant    mysql.Errant `json:"-"`
}

// Has reports whether a transaction is one of these.
func (p *Part) Has(g mysql.GTID) bool { return p.errant.Contains(g) }

// Set is the transactions; of MariaDB's an empty set.
func (p *Part) Set() mysql.GTIDSet { return p.errant.Set }

// Transaction is what one did.
type Transaction struct {
	GTID       mysql.GTID `json:"gtid"`
	Time       time.Time  `json:"time"`
	File       string     `json:"file"`
	Position   int64      `json:"position"`
	Changes    []Change   `json:"changes"` // none: it is empty
	Statements []string   `json:"statements,omitempty"`
	Connection uint32     `json:"connection,omitempty"` // of the session that did it
	ServerID   uint32     `json:"server_id"`
}

// Change is what a transaction did to one table.
type Change struct {
	Table string `json:"table"`
	Kind  string `json:"kind"`             // insert, update, delete, or what a statement did: create, drop, alter, …
	Rows  int64  `json:"rows,omitempty"`   // of insert, update and delete
	Other string `json:"object,omitempty"` // what it is if it is no table
}

// OfRows reports whether it changed rows, and no definition.
func (c Change) OfRows() bool {
	return slices.Contains([]string{"insert", "update", "delete"}, c.Kind)
}

// Verdict is what is known of a replica.
type Verdict struct {
	Replica string   `json:"replica"` // the server that was compared
	Source  string   `json:"source"`  // "": not asked, or not reached
	Beside  []string `json:"beside"`  // other servers it was compared with
	Parts   []Part   `json:"parts"`   // none: it has nothing that the others have not
	Unknown string   `json:"unknown"` // why nothing can be said; "": something can
	Notes   []string `json:"notes"`
}

// Errant are the parts that are errant for certain or likely.
func (v *Verdict) Errant() (list []*Part) {
	for i := range v.Parts {
		if v.Parts[i].Kind == KindErrant {
			list = append(list, &v.Parts[i])
		}
	}
	return list
}

// Question is what Judge is asked. The replica was read before all others.
type Question struct {
	Replica Reading
	Source  *Reading  // nil: it cannot be asked
	Also    []Reading // further sources of the replica, read after it, too
	Others  []Reading
	Unasked string // in brackets, what kept the source from being asked; "": nobody named it
}

// Judge says which of a replica's transactions are errant. It is pure.
func Judge(q Question) (Verdict, error) {
	v := Verdict{Replica: q.Replica.Name, Beside: []string{}, Parts: []Part{}, Notes: []string{}}
	r := &q.Replica
	for i := range q.Others {
		v.Beside = append(v.Beside, q.Others[i].Name)
	}
	if r.Off {
		v.Unknown = "GTIDs are off on " + r.Name + ": its transactions have no names by which they could be compared; risso checksum compares rows"
		return v, nil
	}
	for _, ch := range r.Channels {
		if ch.Status.IORunning == "No" || ch.Status.SQLRunning == "No" {
			v.Notes = append(v.Notes, "replication stands on "+r.Name+because(ch.LastError)+"; risso gtid back tells whether a repair left it so")
		}
	}
	if r.Server.ByDomain() {
		if !r.Logs {
			v.Notes = append(v.Notes, "log_slave_updates is off, or log_bin: what "+r.Name+" applied is not in its binary log, only what was written there")
		}
		if !r.Strict {
			v.Notes = append(v.Notes, "gtid_strict_mode is OFF on "+r.Name+": it goes on after a write of its own with numbers that its source uses, too")
		}
	}
	if q.Source != nil {
		return v, judgeUp(&v, r, q)
	}
	return v, judgeDown(&v, r, q)
}

func because(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// judgeUp compares with a source that was read after the replica.
func judgeUp(v *Verdict, r *Reading, q Question) error {
	source, others := q.Source, q.Others
	v.Source = source.Name
	switch {
	case r.Server.ByDomain() != source.Server.ByDomain():
		v.Unknown = "one of both is a MariaDB, the other is not: their GTIDs cannot be compared"
		return nil
	case source.Off:
		v.Unknown = "GTIDs are off on " + source.Name
		return nil
	case r.Identity != "" && r.Identity == source.Identity:
		v.Unknown = r.Name + " and " + source.Name + " are one server, or one is a copy of the other's files with its identity"
		return nil
	case source.Executed == "" && r.Executed != "":
		v.Unknown = source.Name + " has no transaction at all: is its binary log on, and is it the source?"
		return nil
	}
	if !r.Follows(source) {
		v.Notes = append(v.Notes, r.Name+" does not replicate from "+source.Name+" itself, as its channels are")
	}
	executed, owned := []string{source.Executed}, source.Owned
	for i := range q.Also {
		executed, owned = append(executed, q.Also[i].Executed), owned.Union(q.Also[i].Owned)
		v.Source += " and " + q.Also[i].Name
	}
	e, err := mysql.ErrantTransactions(r.Executed, executed...)
	if err != nil {
		return err
	}
	if !e.Set.Empty() {
		ahead := e
		ahead.Set = e.Set.Intersect(owned)
		e.Set = e.Set.Subtract(owned)
		v.add(KindAhead, Certain, ahead, source.Name+" has written them and is just committing them: with semi-synchronous replication (AFTER_SYNC) a replica may have a transaction first")
	}
	if e, err = v.perhaps(v.elsewhere(e, r, append([]Reading{*source}, q.Also...)), r, source); err != nil {
		return err
	}
	if source.Follows(r) {
		e = v.part(e, r.own, KindAhead, Likely, "they were committed on "+r.Name+" itself; "+source.Name+" replicates from there, too, and has not applied them yet")
	}
	e = v.part(e, r.own, KindErrant, Certain, "they were committed on "+r.Name+" itself, and "+source.Name+" has not got them")
	e = v.part(e, source.own, KindErrant, Certain, source.Name+" committed them once and has lost them since, by a crash or by a restore of an older state; their rows are only on "+r.Name+", and "+source.Name+" gives their numbers to others, which "+r.Name+" then passes over")
	for i := range others {
		e = v.part(e, others[i].own, KindErrant, Certain, "they were committed on "+others[i].Name+", and "+source.Name+" has not got them")
	}
	v.add(KindErrant, Certain, e, source.Name+" has not got them; they were committed on a server that was not asked")
	return nil
}

// elsewhere takes those out that the replica got, or may have got, from a source of another channel that was not asked.
func (v *Verdict) elsewhere(e mysql.Errant, r *Reading, asked []Reading) mysql.Errant {
	rest := *r
	rest.Channels = nil
	var received mysql.GTIDSet
	for _, ch := range r.Channels {
		one := Reading{Channels: []read.ReplicaChannel{ch}}
		if slices.ContainsFunc(asked, func(s Reading) bool { return one.Follows(&s) }) {
			continue
		}
		rest.Channels = append(rest.Channels, ch)
		if set, err := mysql.ParseGTIDSet(ch.Received); err == nil && !set.ByDomain() {
			received = received.Union(set)
		}
	}
	if len(rest.Channels) == 0 || len(rest.Channels) == len(r.Channels) { // none of its sources was asked: a note says so
		return e
	}
	const why = "they came from another source, which was not asked: name all sources by --dsn"
	got := e
	got.Set, got.State = e.Set.Intersect(received), nil
	e.Set = e.Set.Subtract(received)
	v.add(KindUnknown, Unsure, got, why)
	return v.part(e, rest.ofSource, KindUnknown, Unsure, why)
}

// perhaps takes those out that a MariaDB source may have had, though its gtid_binlog_state has none of their server: as a replica, or before its binary log was
// made anew, as after a restore, for its position is beyond them; or in a domain that it knows nothing of, which may have been deleted there.
func (v *Verdict) perhaps(e mysql.Errant, r, source *Reading) (mysql.Errant, error) {
	if len(e.State) == 0 {
		return e, nil
	}
	position, err := mysql.ParseBinlogState(source.Position)
	state, serr := mysql.ParseBinlogState(source.Executed)
	if err = errors.Join(err, serr); err != nil {
		return e, err
	}
	var had, deleted, rest = e, e, e
	had.State, deleted.State, rest.State = mysql.BinlogState{}, mysql.BinlogState{}, mysql.BinlogState{}
	for o, n := range e.State {
		_, known := e.Theirs[o]
		switch {
		case !known && position.Farthest(o.Domain) >= n:
			had.State[o] = n
		case state.Farthest(o.Domain) == 0 && position.Farthest(o.Domain) == 0 && !r.own("", o.Server):
			deleted.State[o] = n
		default:
			rest.State[o] = n
		}
	}
	v.add(KindErrant, Likely, had, source.Name+" has not got them in its binary log; but as a replica it came farther in this domain (gtid_slave_pos), so that it may have had them before its log began")
	v.add(KindErrant, Likely, deleted, source.Name+" knows nothing of this domain; it may have had it, and deleted it (FLUSH BINARY LOGS DELETE_DOMAIN_ID): then delete it on "+r.Name+", too")
	return rest, nil
}

// judgeDown compares with what others know.
func judgeDown(v *Verdict, r *Reading, q Question) error {
	v.Notes = append(v.Notes, "the source was not asked"+q.Unasked+": what follows is by the other servers and by what "+r.Name+" itself knows")
	executed := []string{}
	var received mysql.GTIDSet
	below := q.below()
	for i := range q.Others {
		o := &q.Others[i]
		if below[i] {
			v.Notes = append(v.Notes, o.Name+" replicates from "+r.Name+": what it has came from there, and says nothing of where else it is")
			continue
		}
		if o.Server.ByDomain() != r.Server.ByDomain() || o.Off {
			v.Notes = append(v.Notes, o.Name+" has no GTIDs that can be compared with those of "+r.Name)
			continue
		}
		executed = append(executed, o.Executed)
		received = received.Union(o.Received)
	}
	if !received.Empty() {
		executed = append(executed, received.String())
	}
	e, err := beyond(r, executed)
	if err != nil {
		return err
	}
	own, sure := "they were committed on "+r.Name+" itself", Certain
	switch {
	case len(executed) == 0:
		own, sure = own+"; if it was the primary earlier, others have them", Likely
	case !r.Server.ByDomain():
		own += ", and no other server has them"
	default:
		own += ", and no other server's binary log has them"
	}
	alone := len(executed) == 0
	if alone {
		v.Notes = append(v.Notes, "no other server was asked that could tell: what "+r.Name+" got from its source, and nobody else may have, is not listed")
	}
	if !e.Set.Empty() {
		ahead := e
		ahead.Set = e.Set.Intersect(r.Received)
		e.Set = e.Set.Subtract(r.Received)
		if alone {
			ahead = mysql.Errant{}
		}
		v.add(KindAhead, Certain, ahead, r.Name+" received them from its source, so that they are not errant: it is farther than the others; if the source comes back without them, they are")
	}
	e = v.part(e, r.own, KindErrant, sure, own)
	if alone {
		_, e = e.Split(r.ofSource)
	}
	e = v.part(e, r.ofSource, KindAhead, Likely, "its source committed them, as their server says: "+r.Name+" is farther than the others")
	v.add(KindUnknown, Unsure, e, "they were committed on a server that was not asked; "+r.Name+" does not know any more by which way it got them")
	if alone && len(v.Parts) == 0 {
		v.Unknown = "neither its source nor another server was asked that could tell; it wrote nothing itself: name the other replicas by --dsn"
	}
	return nil
}

// below says which of the others replicate from the replica, directly or not: what they have is no witness for it.
func (q *Question) below() []bool {
	is := make([]bool, len(q.Others))
	for more := true; more; {
		more = false
		for i := range q.Others {
			o := &q.Others[i]
			if is[i] || o.Server.ByDomain() != q.Replica.Server.ByDomain() {
				continue
			}
			for j := range q.Others {
				is[i] = is[i] || is[j] && i != j && o.Follows(&q.Others[j])
			}
			is[i] = is[i] || o.Follows(&q.Replica)
			more = more || is[i]
		}
	}
	return is
}

// Unsaid reports whether of some of what it has nobody can tell what it is.
func (v *Verdict) Unsaid() bool {
	return v.Unknown != "" || slices.ContainsFunc(v.Parts, func(p Part) bool { return p.Kind == KindUnknown })
}

// beyond is what a replica has that others have not; without others, all.
func beyond(r *Reading, executed []string) (mysql.Errant, error) {
	if strings.Join(executed, "") != "" {
		return mysql.ErrantTransactions(r.Executed, executed...)
	}
	e := mysql.Errant{Object: r.Server.ExecutedTransactions()}
	var err error
	if r.Server.ByDomain() {
		e.State, err = mysql.ParseBinlogState(r.Executed)
		return e, err
	}
	e.Set, err = mysql.ParseGTIDSet(r.Executed)
	return e, err
}

// part takes those out of e that come from somewhere, and returns the rest.
func (v *Verdict) part(e mysql.Errant, of from, kind Kind, sure Sureness, why string) mysql.Errant {
	yes, no := e.Split(of)
	v.add(kind, sure, yes, why)
	return no
}

func (v *Verdict) add(kind Kind, sure Sureness, e mysql.Errant, why string) {
	if !e.Empty() {
		v.Parts = append(v.Parts, Part{Kind: kind, GTIDs: e.String(), Count: e.Set.Count(), Sure: sure, Because: why, Transactions: []Transaction{}, errant: e})
	}
}

// ErrantOf is all errant transactions together.
func (v *Verdict) ErrantOf() (all mysql.Errant) {
	for _, p := range v.Errant() {
		all.Object, all.Set, all.Theirs = p.errant.Object, all.Set.Union(p.errant.Set), p.errant.Theirs
		all.State = all.State.Union(p.errant.State)
	}
	return all
}

// String is a part in one line.
func (p *Part) String() string {
	return fmt.Sprintf("%s (%s): %s: %s", p.Kind, p.Sure, p.GTIDs, p.Because)
}

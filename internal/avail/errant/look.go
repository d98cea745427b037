package errant

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rissodb/risso/internal/mysql"
)

// Logs finds transactions in the binary logs of one server.
type Logs interface {
	// Find returns those that are wanted, at most so many; among are of MySQL's all that can be, of MariaDB's nothing.
	Find(ctx context.Context, among mysql.GTIDSet, wanted func(mysql.GTID) bool, most int) (Seen, error)
}

// Seen is what was found in binary logs.
type Seen struct {
	Transactions []Transaction
	Total        int64             // also those beyond the limit
	Incomplete   bool              // not all logs could be read: Notes say why
	Notes        []string          // about logs
	Before       mysql.BinlogState // MariaDB: what came before the oldest log; nil: not known
}

// mostLooked is how many transactions are kept with what they changed.
const mostLooked = 1000

// Describe adds what transactions changed, as the replica's own binary logs tell.
func Describe(ctx context.Context, v *Verdict, logs Logs) {
	if len(v.Parts) == 0 {
		return
	}
	var among mysql.GTIDSet
	for i := range v.Parts {
		among = among.Union(v.Parts[i].errant.Set)
	}
	wanted := func(g mysql.GTID) bool {
		return slices.ContainsFunc(v.Parts, func(p Part) bool { return p.Has(g) })
	}
	seen, err := logs.Find(ctx, among, wanted, mostLooked)
	for i := range v.Parts {
		v.Parts[i].take(seen, err)
	}
	v.Notes = append(v.Notes, seen.Notes...)
}

// Contents are transactions that are known by name only, with what they changed, as logs tell: at most so many. The second is how many there are beyond those.
func Contents(ctx context.Context, which mysql.Errant, logs Logs, most int) (Part, int64) {
	p := Part{Kind: KindErrant, GTIDs: which.String(), Count: which.Count(), Sure: Certain, Transactions: []Transaction{}, errant: which}
	seen, err := logs.Find(ctx, which.Set, p.Has, mostLooked)
	p.take(seen, err)
	more := max(0, len(p.Transactions)-most)
	p.Transactions = p.Transactions[:len(p.Transactions)-more]
	return p, int64(more) + max(0, seen.Total-int64(len(seen.Transactions)))
}

// take takes those of a part out of what was found.
func (p *Part) take(seen Seen, err error) {
	for _, t := range seen.Transactions {
		if p.Has(t.GTID) {
			p.Transactions = append(p.Transactions, t)
		}
	}
	slices.SortStableFunc(p.Transactions, func(a, b Transaction) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.File, b.File), cmp.Compare(a.Position, b.Position))
	})
	if len(p.errant.State) > 0 {
		p.Count = uint64(len(p.Transactions))
	}
	found := map[mysql.Origin]bool{}
	for _, t := range p.Transactions {
		found[mysql.Origin{Domain: t.GTID.Domain, Server: t.GTID.Server}] = true
	}
	switch {
	case err != nil:
		p.Unseen = "its binary logs could not be read: " + err.Error()
	case seen.Total > int64(len(seen.Transactions)):
		p.Unseen = fmt.Sprintf("there are %d, of which the %d that changed most were looked at", seen.Total, len(seen.Transactions))
	case seen.Incomplete:
		p.Unseen = "not all of its binary logs could be read"
	case p.errant.Set.Count() > uint64(len(p.Transactions)):
		p.Unseen = fmt.Sprintf("its binary logs do not have %d of them any more", p.errant.Set.Count()-uint64(len(p.Transactions)))
	}
	for _, g := range p.errant.State.List() {
		origin := mysql.Origin{Domain: g.Domain, Server: g.Server}
		switch {
		case p.Unseen != "":
		case !found[origin] && seen.Before != nil && seen.Before[origin] <= p.errant.Theirs[origin]:
			p.Unseen = fmt.Sprintf("its binary logs are all there, and have none of those up to %s: writing them failed, and nobody was told that they were committed", g)
			p.Unwritten = len(p.errant.State) == 1
		case !found[origin]:
			p.Unseen = "its binary logs have none any more of those up to " + g.String()
		case seen.Before[origin] > p.errant.Theirs[origin]:
			p.Unseen = fmt.Sprintf("its binary logs begin behind %d-%d-%d, and no longer have those before", g.Domain, g.Server, seen.Before[origin])
		}
	}
}

// State is where a transaction is on a server.
type State string

// States.
const (
	InLog    State = "in its binary log"
	Purged   State = "purged"
	Applied  State = "applied, not logged"
	Received State = "received, not applied"
	Begun    State = "being committed"
	Never    State = "never seen"
	NotTold  State = "not known"
)

// Place is where a transaction is on one server.
type Place struct {
	Server      string       `json:"server"`
	GTID        mysql.GTID   `json:"gtid"`
	State       State        `json:"state"` // in its binary log, purged, applied, not logged, received, not applied, being committed, never seen, or not known
	Because     string       `json:"why,omitempty"`
	Transaction *Transaction `json:"transaction"` // null: no binary log that was read has it
}

// Locate says where transactions are on a server that was asked. It is pure; seen and err are what its logs gave.
func Locate(r *Reading, list []mysql.GTID, seen Seen, err error) []Place {
	places := make([]Place, 0, len(list))
	state, _ := mysql.ParseBinlogState(r.Executed)
	executed, _ := mysql.ParseGTIDSet(r.Executed)
	position, _ := mysql.ParseBinlogState(r.Position)
	received := mysql.BinlogState{}
	for _, ch := range r.Channels {
		if at, err := mysql.ParseBinlogState(ch.Received); err == nil && r.Server.ByDomain() {
			received = received.Union(at)
		}
	}
	for _, g := range list {
		p := Place{Server: r.Name, GTID: g}
		if i := slices.IndexFunc(seen.Transactions, func(t Transaction) bool { return t.GTID == g }); i >= 0 {
			p.State, p.Transaction = InLog, &seen.Transactions[i]
			places = append(places, p)
			continue
		}
		unread := err != nil || seen.Incomplete
		switch {
		case g.ByDomain() != r.Server.ByDomain():
			p.State, p.Because = Never, "its GTIDs are of another kind"
		case g.ByDomain():
			p.ofMariaDB(g, state, position, received, unread)
		case r.Purged.Contains(g):
			p.State, p.Because = Purged, "it has had it; its binary logs have it no more"
		case executed.Contains(g) && unread:
			p.State, p.Because = NotTold, "it has had it; not all of its binary logs could be read"
		case executed.Contains(g):
			p.State, p.Because = Applied, "it has had it, and none of its binary logs has it"
		case r.Owned.Contains(g):
			p.State = Begun
		case r.Received.Contains(g):
			p.State, p.Because = Received, "a relay log has it"
		default:
			p.State = Never
		}
		if err != nil && p.State == NotTold {
			p.Because += ": " + err.Error()
		}
		places = append(places, p)
	}
	return places
}

// ofMariaDB says where one of MariaDB's is that no log has. received is Gtid_IO_Pos.
func (p *Place) ofMariaDB(g mysql.GTID, state, position, received mysql.BinlogState, unread bool) {
	switch {
	case state.Contains(g) && unread:
		p.State, p.Because = NotTold, "its binary log came that far, and not all of it could be read"
	case state.Contains(g):
		p.State, p.Because = Purged, "its binary log came that far and does not have it any more, or no transaction has this number: numbers may have gaps"
	case position.Contains(g):
		p.State, p.Because = Applied, "gtid_slave_pos is that far, if a transaction has this number"
	case position.Farthest(g.Domain) >= g.Number:
		p.State, p.Because = NotTold, "it is farther in this domain, by transactions of other servers: whether this one was among them its logs do not tell"
	case received.Contains(g):
		p.State, p.Because = Received, "Gtid_IO_Pos is that far, if a transaction has this number"
	case received.Farthest(g.Domain) >= g.Number:
		p.State, p.Because = NotTold, "it has received more of this domain than it has applied, up to another server's transaction: whether this one is among them it does not tell"
	case unread:
		p.State, p.Because = NotTold, "not all of its binary logs could be read"
	default:
		p.State = Never
	}
}

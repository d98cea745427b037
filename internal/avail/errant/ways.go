package errant

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// lockPatience is how long a replica may take until nobody writes. Meanwhile whoever wants to write there waits, too.
const lockPatience = 30 * time.Second

// empty plans empty transactions on the primary.
func (p *Plan) empty(replica, source *Reading) error {
	switch {
	case len(source.Channels) > 0:
		return refused("%s replicates from another server itself, and would get errant transactions by this: name the primary by --source", source.Name)
	case source.ReadOnly:
		return refused("%s is read only: is it the primary?", source.Name)
	case p.errant.Set.Count() > mostEmpty:
		p.Method, p.Because = MethodRebuild, fmt.Sprintf("only a rebuild helps, because %d empty transactions are more than this makes (%d); a replica without replicas can forget them: --forget", p.errant.Set.Count(), mostEmpty)
		p.After = append(p.After, rebuild(replica, source))
		return nil
	}
	p.Method = MethodEmpty
	p.Because = fmt.Sprintf("%s gets them as empty transactions, and all that replicate from it, directly or not; %s has them and passes over them", source.Name, replica.Name)
	for _, g := range p.errant.Numbers(mostEmpty) {
		p.Steps = append(p.Steps, Step{Server: source.Name, Statement: source.Server.EmptyTransaction(g), Back: "an empty transaction changes nothing and needs no way back", gtid: g, kind: stepEmpty})
	}
	p.Steps[len(p.Steps)-1].Statement = append(slices.Clone(p.Steps[len(p.Steps)-1].Statement), source.Server.EndOfEmpty())
	p.checkRows(replica)
	if replica.Replicas > 0 && len(p.Tables) > 0 && !p.Equal {
		p.After = append(p.After, "what replicates from "+replica.Name+" has applied them, too: compare its rows as well")
	}
	return nil
}

// forget plans that a replica forgets what it had.
func (p *Plan) forget(replica, source *Reading, w Wanted) error {
	switch {
	case replica.Replicas < 0:
		return refused("whether %s has replicas of its own is not known: the account may not see other sessions (PROCESS)", replica.Name)
	case replica.Replicas > 0 && replica.Server.ByDomain():
		p.below(replica, source, w)
		return nil
	case replica.Replicas > 0:
		return refused("%s has %s that read its binary log and may have taken them: without --forget the primary gets them as empty transactions, which reach all", replica.Name, digits.Counted(replica.Replicas, "session"))
	case !replica.Server.ByDomain() && !w.RowsEqual:
		return refused("a MySQL that forgets that it had them looks like its source ever after: only after its rows and definitions were compared and are equal (risso checksum, risso diff); say so by --rows-equal")
	case len(replica.Groups) > 0 && replica.Groups[0] != "":
		return refused("%s is in a group, or was: it gets its transactions from there", replica.Name)
	}
	thrown, err := unapplied(replica, w.from(source))
	if err == nil {
		err = acknowledged(replica, w.from(source))
	}
	if err != nil {
		return err
	}
	if lost, err := p.lostPosition(replica); lost != "" || err != nil {
		p.Method, p.Because = MethodRebuild, fmt.Sprintf("only a rebuild helps, because %s is one of them and the position of %s as a replica (gtid_slave_pos): %s has lost what it would have to send next", lost, replica.Name, source.Name)
		p.After = append(p.After, rebuild(replica, source))
		return err
	}
	rest, err := p.errant.Rest(replica.Executed, replica.Position)
	if err != nil {
		return err
	}
	p.Method, p.rest = MethodForget, rest
	p.Because = fmt.Sprintf("%s forgets that its binary log had them, and begins it anew; it stays where it is as a replica", replica.Name)
	p.Lost = "the binary logs of " + replica.Name + " go with it, and with them what they tell of these transactions: copy them before by risso binlog follow --once, if they are wanted; a replica of it that is away now, and comes back, cannot go on" + thrown
	p.forgetSteps(replica, rest)
	p.checkRows(replica)
	return nil
}

// forgetSteps are the steps of forget.
func (p *Plan) forgetSteps(replica *Reading, rest string) {
	step := func(kind stepKind, back, why string, statements ...string) {
		p.Steps = append(p.Steps, Step{Server: replica.Name, Statement: statements, Because: why, Back: back, replica: true, kind: kind})
	}
	var start []string
	for _, ch := range replica.Channels {
		t := threadsOf(ch)
		p.threads = append(p.threads, t)
		if s := t.start(replica.Server); s != "" {
			start = append(start, s)
			step(stepPlain, s, "", replica.Server.StopReplica(ch.Name))
		}
	}
	step(stepPlain, "", "nobody writes meanwhile; this waits for others up to "+digits.Duration(lockPatience)+", and whoever wants to write waits, too", replica.Server.LockWrites(lockPatience)...)
	step(stepAgain, strings.Join(start, "; "), "nothing else may have happened; the positions of the next steps are those of then")
	for _, s := range replica.Server.ForgetTransactions(rest, replica.Position) {
		step(stepReset, "there is no way back to the old binary log: risso gtid back goes on", "", s)
	}
	for _, s := range start {
		step(stepPlain, "", "", s)
	}
}

// below says in which order a MariaDB and its replicas are repaired: as long as one of them has the transactions, or needs the binary log, it cannot begin anew.
func (p *Plan) below(replica, source *Reading, w Wanted) {
	p.Method = MethodBelow
	p.Because = fmt.Sprintf("%s has %s that read its binary log and may have taken them: what replicates from it is repaired first, and replicates from %s while its binary log begins anew", replica.Name, digits.Counted(replica.Replicas, "session"), source.Name)
	p.After = append(p.After,
		fmt.Sprintf("for each REPLICA of %s, those below it first: risso gtid repair --dsn REPLICA --source %s, then risso replica move REPLICA --below %s --dsn %s", replica.Name, w.Source, source.Name, w.Source),
		fmt.Sprintf("then risso gtid repair --dsn %s --source %s", w.Replica, w.Source),
		fmt.Sprintf("then, for each: risso replica move REPLICA --below %s --dsn %s", replica.Name, w.Source),
		"if none of them is a replica, such as a mirror of binary logs, end them and plan again; that of a replica that has moved away ends with the next transactions")
}

// unapplied refuses a replica whose source no longer has what it would have to send when replication starts again, and says what a stop throws away: a MariaDB
// that stands throws its relay logs away when it starts. Source: sql/slave.cc, start_slave_threads.
func unapplied(replica, from *Reading) (thrown string, err error) {
	if !replica.Server.ByDomain() {
		have, err := mysql.ParseGTIDSet(replica.Executed)
		if lacks := from.Purged.Subtract(have).Subtract(replica.Received); err == nil && !lacks.Empty() {
			return "", refused("%s has purged what %s has not got: %s; it cannot go on from there, forgetting or not", from.Name, replica.Name, lacks)
		}
		return "", err
	}
	applied, err := mysql.ParseBinlogState(replica.Position)
	gone, gerr := mysql.ParseBinlogState(from.Gone)
	if err = errors.Join(err, gerr); err != nil {
		return "", err
	}
	for _, g := range gone.List() {
		if applied.Farthest(g.Domain) < g.Number {
			return "", refused("%s has applied up to %q, and the binary logs of %s begin behind %s: what it has received and not applied would be thrown away by the stop, and could not be fetched again; let it apply that first", replica.Name, replica.Position, from.Name, g)
		}
	}
	for _, ch := range replica.Channels {
		received, err := mysql.ParseBinlogState(ch.Received)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(received.List(), func(g mysql.GTID) bool { return applied.Farthest(g.Domain) < g.Number }) {
			thrown = "; what it has received and not applied is thrown away, and fetched again from " + from.Name + ", whose binary logs have it"
		}
	}
	return thrown, nil
}

// acknowledged refuses a replica without whose acknowledgements its source's commits would wait while it stands.
func acknowledged(replica, from *Reading) error {
	waits := from.SemiSync.Source
	if !replica.SemiSync.Replica.InForce || !waits.InForce || waits.Clients > waits.Count {
		return nil
	}
	return refused("commits on %s wait for %s, and %s, which would stand for a while, is one of %d that acknowledge: they would wait for it up to %s; let another replica acknowledge first",
		from.Name, digits.Counted(waits.Count, "acknowledgement"), replica.Name, waits.Clients, digits.Duration(time.Duration(waits.Timeout)*time.Millisecond))
}

// lostPosition is the transaction that a MariaDB stands at as a replica, if it is one of those that it would forget.
func (p *Plan) lostPosition(replica *Reading) (string, error) {
	position, err := mysql.ParseBinlogState(replica.Position)
	for _, g := range position.List() {
		if p.errant.Contains(g) {
			return g.String(), err
		}
	}
	return "", err
}

// mostUndone is up to how many transactions it is said how each is undone.
const mostUndone = 20

// undo says how rows that they changed are set back, where all of them are known and changed nothing else.
func (p *Plan) undo(v *Verdict, replica *Reading, w Wanted) {
	if p.Equal || len(p.Tables) == 0 {
		return
	}
	var list []Transaction // none that is only prepared: its rows are not there
	for _, part := range v.Errant() {
		for _, t := range part.Transactions {
			if slices.ContainsFunc(t.Changes, Change.OfRows) {
				list = append(list, t)
			}
		}
		if part.Unseen != "" || slices.ContainsFunc(part.Transactions, func(t Transaction) bool { return slices.Contains(t.Statements, prepared) }) {
			return
		}
	}
	slices.SortFunc(list, func(a, b Transaction) int {
		return cmp.Or(cmp.Compare(b.File, a.File), cmp.Compare(b.Position, a.Position))
	})
	if len(list) > mostUndone || len(list) == 0 {
		return
	}
	var names []string
	for _, t := range list {
		names = append(names, t.GTID.String())
	}
	p.Before = append(p.Before, fmt.Sprintf("if nobody has changed the same rows since, they can be set back without comparing tables, while the binary logs of %s still have the transactions: for each, the newest first (%s), "+
		"risso binlog undo --dsn %s --gtid GTID; read what it prints, and run it on %s behind SET sql_log_bin = 0, so that it is no errant transaction itself", replica.Name, strings.Join(names, ", "), w.Replica, replica.Name))
}

// Threads is what of a channel works, or would if it had not stopped by an error; what somebody stopped on purpose stays stopped.
type Threads struct {
	Channel  string `json:"channel"`
	Receives bool   `json:"receives"`
	Applies  bool   `json:"applies"`
}

func threadsOf(ch read.ReplicaChannel) Threads {
	return Threads{ch.Name, ch.Status.IORunning != "" && ch.Status.IORunning != "No" || ch.Status.IO.Text != "", ch.SQLRunning || ch.Status.SQL.Text != ""}
}

// start is the statement that starts what worked; "": nothing did.
func (t Threads) start(s mysql.Server) string {
	switch {
	case t.Receives && t.Applies:
		return s.StartReplica(t.Channel)
	case t.Receives:
		return s.StartThread(t.Channel, mysql.Receiver)
	case t.Applies:
		return s.StartThread(t.Channel, mysql.Applier)
	}
	return ""
}

// works reports whether all of that works.
func (t Threads) works(ch read.ReplicaChannel) bool {
	return (!t.Receives || ch.IORunning) && (!t.Applies || ch.SQLRunning)
}

package failover

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// NewReceipt says what a change of the primary cost, by what was known of the old one and what the members have now.
func NewReceipt(j *Journal, t *topology.Topology) Receipt {
	r := Receipt{Group: j.Group, Epoch: j.Epoch, Kind: j.Kind, Time: j.Began, Old: j.Old, New: j.New, Verified: j.Verified, Notes: j.Notes}
	if !j.Opened.IsZero() && !j.Blocked.IsZero() {
		r.Outage, r.Longer = j.Opened.Sub(j.Blocked), j.Longer
	}
	if j.Old == "" {
		r.Outage, r.Longer = 0, false // nobody saw when somebody last took writes
		withoutOld(&r, j, t)
		return r
	}
	if j.Kind == Switchover {
		r.Verdict, r.Checked = NothingLost, theOld
		if e, known := kept(j, t); !known {
			r.Verdict, r.Words = PerhapsLost, j.Old+" could not be asked at the end whether it was written to in spite of being read-only"
			return r
		} else if why := j.Known.unlogged(); why != "" {
			r.Verdict, r.Words = PerhapsLost, "it is not known whether transactions are lost: "+why
			return r
		} else if !e.Empty() {
			r.Verdict, r.Lost, r.Behind, r.Count = Lost, e.String(), e.Behind(), e.Count()
			r.Words = fmt.Sprintf("%s lost: %s took %s though it was read-only, from an account with special privileges", digits.Counted(int(r.Count), "transaction"), j.Old, short(r.Lost))
			return r
		}
		r.Words = "zero acknowledged transactions lost: " + j.Old + " took no more writes, and " + j.New + " had applied all of its transactions before it took any"
		return r
	}
	r.Checked = "what was last seen of " + j.Old
	r.Full = j.Known.Full && mysql.Of(j.Known.Server).CountsUnwritten()
	lost, err := missing(j, t)
	switch {
	case err != nil:
		r.Verdict, r.Words = PerhapsLost, "it is not known whether transactions are lost: "+err.Error()
	case j.Known.Executed == "":
		r.Verdict = PerhapsLost
		r.Words = "it is not known whether transactions are lost: nothing was known of " + j.Old + " when it died"
	case !lost.Empty() && unacknowledged(j, t):
		r.Verdict, r.Words = proven(j)
		amend(&r, lost, r.Checked)
	case !lost.Empty():
		// Those of MariaDB are counted from what the new primary has, which by now wrote some of its own.
		r.Verdict, r.Lost, r.Behind, r.Count = Lost, lost.String(), lost.Behind(), max(1, j.Missing, lost.Count())
		r.Words = fmt.Sprintf("%s lost, at least: %s had %s, and %s has not", digits.Counted(int(r.Count), "transaction"), j.Old, short(r.Lost), j.New)
		if r.Full {
			r.counted()
		}
	default:
		r.Verdict, r.Words = proven(j)
	}
	return r
}

// withoutOld says what a group had that had no primary: all that its members have is to be on the new one.
func withoutOld(r *Receipt, j *Journal, t *topology.Topology) {
	r.Checked = "the members"
	i := t.Find(j.New)
	var unseen, lost []string
	for k := range t.Nodes {
		n := &t.Nodes[k]
		if k == i || i < 0 {
			continue
		}
		e, known := kept(&Journal{Old: n.Name, New: j.New}, t)
		switch {
		case !known:
			unseen = append(unseen, n.Name)
		case !e.Empty():
			r.Count += e.Count()
			lost = append(lost, e.String())
			r.Words = fmt.Sprintf("%s%s has %s that %s has not: %s; ", r.Words, n.Name, digits.Counted(int(e.Count()), "transaction"), j.New, short(e.String()))
		}
	}
	switch {
	case len(lost) > 0:
		r.Verdict, r.Lost = Lost, strings.Join(lost, ",")
		r.Words += "the group had no primary"
	case i < 0 || !t.Nodes[i].Seen:
		r.Verdict, r.Words = PerhapsLost, "it is not known whether transactions are lost: "+j.New+" did not answer at the end"
	case len(unseen) > 0:
		r.Verdict, r.Words = PerhapsLost, "it is not known whether transactions are lost: the group had no primary, and could not ask "+strings.Join(unseen, ", ")
	default:
		r.Verdict, r.Words = NothingLost, "zero acknowledged transactions lost: the group had no primary, and all that its members have is on "+j.New
	}
}

// kept are the transactions that the old primary of a switchover has and the new one has not; false: they could not be asked.
func kept(j *Journal, t *topology.Topology) (e mysql.Errant, known bool) {
	o, n := t.Find(j.Old), t.Find(j.New)
	if o < 0 || n < 0 || !t.Nodes[o].Seen || !t.Nodes[n].Seen {
		return e, false
	}
	old, now := &t.Nodes[o].GTID, &t.Nodes[n].GTID
	e, err := mysql.ErrantTransactions(old.All(), now.Newest())
	e = e.Forgotten(now.Applied, t.Nodes[o].ServerID)
	if err == nil && !e.Empty() { // what the new one wrote since it was asked, and the old one got from it already, is none of these
		id := &t.Nodes[n].Facts
		_, e = e.Split(func(uuid string, server uint32) bool {
			return uuid != "" && strings.EqualFold(uuid, id.UUID) || uuid == "" && fmt.Sprint(server) == id.ServerID
		})
	}
	return e, err == nil
}

// unacknowledged reports whether it is proven of those that are missing that nobody was told that they were committed.
func unacknowledged(j *Journal, t *topology.Topology) bool {
	owed := *j
	owed.Known.Executed = j.Known.Owed()
	lost, err := missing(&owed, t)
	verdict, _ := proven(j)
	return err == nil && lost.Empty() && verdict == NothingLost
}

// missing are the transactions that the old primary had when it was last seen, and the new one has not.
func missing(j *Journal, t *topology.Topology) (mysql.Errant, error) {
	i := t.Find(j.New)
	if i < 0 || !t.Nodes[i].Seen {
		return mysql.Errant{}, fmt.Errorf("%s does not answer", j.New)
	}
	n := &t.Nodes[i]
	sets := []string{n.GTID.All()}
	if sets[0] == "" { // it may have been filled with a copy
		sets = append(sets, n.GTID.Applied)
	}
	e, err := beyond(j.Known.Executed, sets)
	return e.Forgotten(n.GTID.Applied, j.Known.ServerID), err
}

// proven says whether nothing can be lost. A commit that was acknowledged to a client had been acknowledged by WaitFor of N replicas before; where N - WaitFor + 1
// of them were asked, and the new primary has all that they received, at least one of those that acknowledged is among them.
func proven(j *Journal) (Verdict, string) {
	k := j.Known
	if why := k.unlogged(); why != "" {
		return PerhapsLost, "it is not known whether transactions are lost: " + why
	}
	since := k.before(j.Began)
	if !k.Lossless {
		return NothingToLose, "all that " + j.Old + " had when it was last seen" + since + " is there; what it may have written after that is not known, as " + k.loose()
	}
	var asked []string
	for _, name := range k.Acks {
		if j.Before[name].Compared && !slices.Contains(asked, name) {
			asked = append(asked, name)
		}
	}
	need := k.needed()
	if len(asked) < need {
		return PerhapsLost, fmt.Sprintf("it is not certain that nothing is lost: each commit waited for %s, but only of %d of the %d that acknowledge it is certain what they had received; %d are needed to be sure",
			digits.Counted(max(1, k.WaitFor), "replica"), len(asked), len(k.Acks), need)
	}
	return NothingLost, fmt.Sprintf("zero acknowledged transactions lost: as it was last seen%s, each commit of %s waited for %s without a time-out (AFTER_SYNC), all that %s received is on %s, and no commit can have been acknowledged without one of them",
		since, j.Old, digits.Counted(max(1, k.WaitFor), "replica"), strings.Join(asked, ", "), j.New)
}

// unlogged is what a primary took that is in no binary log, in words; "": it logged all for all that is known.
func (k Known) unlogged() string {
	if k.Unlogged.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s was seen at %s to write no binary log any more; what it took from then on, until it was started again, is on no other member", k.Name, k.Unlogged.UTC().Format(time.DateTime))
}

// before is how long before a time it was known, in words.
func (k Known) before(t time.Time) string {
	age := t.Sub(k.At)
	if k.At.IsZero() || age <= 0 {
		return ""
	}
	return " (" + digits.Span(max(age.Round(time.Millisecond), time.Millisecond)) + " before)"
}

// loose is why commits of a primary may have been acknowledged that no replica has.
func (k Known) loose() string {
	switch {
	case !k.Told:
		return "it is not known whether it waited for replicas"
	case k.SemiSync:
		return "semi-sync could fall back to asynchronous"
	}
	return "replication was asynchronous"
}

// needed is how many of those that acknowledge have to be asked, so that one of them has each commit that was acknowledged.
func (k Known) needed() int { return max(1, len(k.Acks)-max(1, k.WaitFor)+1) }

// AtRisk says what a failover could lose beside what is known to be lost; asked are the members that answer.
func (k Known) AtRisk(asked []string) string {
	switch {
	case !k.Unlogged.IsZero():
		return "it is not known what would be lost: " + k.unlogged()
	case k.Executed == "":
		return "what would be lost is not known: nothing is known of the primary"
	case !k.Lossless:
		return "what " + k.Name + " writes after it was last seen could be lost: " + strings.NewReplacer("waited", "waits", "could fall", "can fall", "was", "is").Replace(k.loose())
	}
	if len(k.Acks) == 0 {
		return "it would not be certain that nothing is lost: no replica acknowledges"
	}
	if n := k.asked(asked); n < k.needed() {
		return fmt.Sprintf("it would not be certain that nothing is lost: %d of the %d that acknowledge would have to be asked, and %d answer", k.needed(), len(k.Acks), n)
	}
	return "no acknowledged transaction would be lost: each commit waits for " + digits.Counted(max(1, k.WaitFor), "replica")
}

// Returned is what became of an old primary that answers again.
type Returned struct {
	Started time.Time     // when it was started, by this machine's clock, within a second; zero: it runs since before it was replaced
	Skew    time.Duration // by how much its clock is ahead
}

// Amend puts into a receipt which transactions the old primary has, now that it answers, and the new one has not. It reports whether that is something new. One that was started again may have
// taken writes and told clients so, before anybody kept it from that: what it has is not known to be unacknowledged before it is read.
func Amend(r *Receipt, e mysql.Errant, back Returned) bool {
	if !amend(r, e, theOld) {
		return false
	}
	if r.Verdict == NothingLost && !back.Started.IsZero() {
		r.Verdict, r.Again = PerhapsLost, back.Started.Add(back.Skew-time.Second)
		r.Words = strings.Replace(r.Words, neverAcked(r.Count), startedSince(r.Count), 1)
	}
	return true
}

// What is said of so many transactions that only the old primary has.
func neverAcked(n uint64) string {
	return digits.Plural(int(n), "transaction that was never acknowledged", "transactions that were never acknowledged")
}

func startedSince(n uint64) string {
	return digits.Counted(int(n), "transaction") + " more, and was started again since; whether it took writes then is not known"
}

// AmendByLogs does so with those that copies of its binary logs have. They may end before the logs of the server do: what it said itself stays.
func AmendByLogs(r *Receipt, e mysql.Errant) bool {
	return r.Checked != theOld && e.Count() >= r.Count && amend(r, e, "its binary logs")
}

func amend(r *Receipt, e mysql.Errant, checked string) bool {
	errant := e.String()
	if r.Lost == errant && r.Behind == e.Behind() && r.Checked == checked {
		return false
	}
	count, byLogs := max(1, e.Count()), r.Verdict == NothingLost && r.Words == r.couldNotWrite()
	if r.Lost == errant && r.Behind == e.Behind() {
		count = max(count, r.Count)
	}
	if r.Lost != errant { // what was read is of others
		r.Contents = nil
	}
	r.Lost, r.Behind, r.Count, r.Checked = errant, e.Behind(), count, checked
	if byLogs { // more was counted since; whether that was written is not read yet
		r.counted()
	} else if r.Verdict == NothingLost {
		proof, _, _ := strings.Cut(r.Words, "; "+r.Old+" has ") // its logs may have told of some before it answered
		r.Words = fmt.Sprintf("%s; %s has %s: %s", proof, r.Old, neverAcked(r.Count), short(errant))
	} else if r.Full && (r.Contents == nil || len(r.Contents.Transactions) == 0) {
		r.counted()
	} else {
		r.Verdict = Lost
		r.Words = fmt.Sprintf("%s of %s not on %s: %s", digits.Counted(int(r.Count), "transaction"), r.Old, r.New, short(errant))
	}
	return true
}

// counted says of a MariaDB whose disk was full that it is not known whether it wrote what it counted.
func (r *Receipt) counted() { r.Verdict, r.Words = PerhapsLost, r.onlyCounted() }

// onlyCounted are its words.
func (r *Receipt) onlyCounted() string {
	return fmt.Sprintf("it is not known whether transactions are lost: %s counted up to %s, which %s has not; its disk was full, and what it could not write it told nobody: its binary logs say which these are", r.Old, short(r.Lost), r.New)
}

// couldNotWrite says that its binary logs have none of what it counted.
func (r *Receipt) couldNotWrite() string {
	return fmt.Sprintf("zero acknowledged transactions lost: %s could not write to its binary log what it counted up to %s, told nobody that it was committed, and has nothing else that %s has not", r.Old, short(r.Lost), r.New)
}

// Read puts into a receipt what those that are lost changed, as logs tell. Of MariaDB the numbers alone do not tell how many they are, nor whether there are any: a disk that is full
// leaves some that were never written.
func (r *Receipt) Read(c *Contents) {
	r.Contents = c
	n := uint64(len(c.Transactions)) + uint64(c.More)
	unread := r.Full && r.Verdict == PerhapsLost && r.Words == r.onlyCounted() // else more is not known, which these logs do not tell
	switch {
	case r.settled():
	case c.Unwritten && (r.Verdict == Lost || unread):
		r.Verdict, r.Words, r.Full = NothingLost, r.couldNotWrite(), true
	case c.Unseen == "" && n > 0 && unread:
		r.Verdict, r.Count = Lost, n
		r.Words = fmt.Sprintf("%s of %s not on %s: %s", digits.Counted(int(n), "transaction"), r.Old, r.New, short(r.Lost))
	case c.Unseen == "" && n > 0 && n != r.Count:
		r.Words = strings.Replace(r.Words, digits.Counted(int(r.Count), "transaction"), digits.Counted(int(n), "transaction"), 1)
		r.Count = n
	}
}

// settled says whether an old primary that was started again took writes then, now that it is read what it has. Those of before its death were not acknowledged. False: it is no such one, or
// not all of that was read.
func (r *Receipt) settled() bool {
	c := r.Contents
	if r.Verdict != PerhapsLost || r.Again.IsZero() || c.Unseen != "" || c.More > 0 || len(c.Transactions) == 0 {
		return false
	}
	var list []time.Time
	for _, t := range c.Transactions {
		if !t.Time.Before(r.Again) {
			list = append(list, t.Time)
		}
	}
	if len(list) == 0 {
		r.Verdict, r.Words = NothingLost, strings.Replace(r.Words, startedSince(r.Count), neverAcked(r.Count), 1)
		return true
	}
	r.Verdict, r.Count = Lost, uint64(len(list))
	r.Outage, r.Longer = 0, false // in between it took some
	r.Words = fmt.Sprintf("%s lost: %s was started again and took writes, from %s to %s by its clock, before it was kept from them", digits.Counted(len(list), "transaction"), r.Old,
		slices.MinFunc(list, time.Time.Compare).UTC().Format(time.DateTime), slices.MaxFunc(list, time.Time.Compare).UTC().Format(time.DateTime))
	if older := len(c.Transactions) - len(list); older > 0 {
		r.Words += "; " + digits.Plural(older, "transaction of before its death was", "transactions of before its death were") + " never acknowledged"
	}
	return true
}

// Cleared completes a receipt with that the old primary answers again, and has nothing that the new one has not. It reports whether that is something new. k is what was known
// of it: one that does not write each commit to its disk may have forgotten some when its machine crashed. n is what it has now: other data, as a copy of a member, prove nothing.
func Cleared(r *Receipt, k Known, n *topology.Node) bool {
	if r.Checked == theOld {
		return false
	}
	if words := r.Old + " came back, and it is not proven that it has the data that it had: what only it had is not known"; !k.is(n) {
		if strings.HasSuffix(r.Words, words) {
			return false
		}
		r.Words += "; " + words
		return true
	}
	r.Checked = theOld
	nothing := fmt.Sprintf("%s came back, and has nothing that %s has not", r.Old, r.New)
	switch {
	case r.Verdict == NothingLost, r.Verdict == Lost, !k.Unlogged.IsZero(): // its GTIDs do not tell what it has
		r.Words += "; " + nothing
	case k.Settings["sync_binlog"] == "1" && k.Settings["innodb_flush_log_at_trx_commit"] == "1":
		r.Verdict, r.Words = NothingLost, "zero acknowledged transactions lost: "+nothing
	default:
		r.Verdict, r.Words = NothingToLose, nothing+"; what it lost itself, if its machine crashed, is not known, as it did not write each commit to its disk"
	}
	return true
}

// is reports whether a server has the data of the primary of which this is known, as far as it tells: it is that server, and has all that the primary was seen to have. A MariaDB has no
// identity; what others wrote since it was the primary is in a copy of one of them only.
func (k Known) is(n *topology.Node) bool {
	if k.Executed == "" {
		return false
	}
	if !n.GTID.ByDomain {
		had, err := mysql.ParseGTIDSet(k.Executed)
		has, herr := mysql.ParseGTIDSet(n.GTID.Executed)
		return err == nil && herr == nil && k.UUID != "" && strings.EqualFold(k.UUID, n.UUID) && has.ContainsSet(had)
	}
	had, err := mysql.ParseBinlogState(k.Executed)
	has, herr := mysql.ParseBinlogState(n.GTID.State)
	if err != nil || herr != nil || k.ServerID != n.ServerID {
		return false
	}
	for o, number := range had {
		if fmt.Sprint(o.Server) == k.ServerID && has[o] < number {
			return false
		}
	}
	for o, number := range has {
		if fmt.Sprint(o.Server) != k.ServerID && number > had[o] {
			return false
		}
	}
	return true
}

// Unlogged puts into a receipt that the old primary answers, and writes no binary log any more. It reports whether that is something new.
func Unlogged(r *Receipt, _ Known) bool {
	if r.Verdict != NothingLost && r.Verdict != NothingToLose && (r.Verdict != PerhapsLost || !r.Full || r.Words != r.onlyCounted()) {
		return false
	}
	r.Verdict = PerhapsLost
	r.Words = fmt.Sprintf("it is not known whether transactions are lost: %s writes no binary log any more, and what it took since it could not is on no other member; before that, %s", r.Old, r.Words)
	return true
}

// theOld says against what a receipt was checked.
const theOld = "the old primary itself"

// More are lines beside the words: whether the new primary was verified, and what is not as it was.
func (r *Receipt) More() []string {
	var list []string
	if r.Verified != nil {
		list = append(list, r.Verified.Words())
	}
	return append(list, r.Notes...)
}

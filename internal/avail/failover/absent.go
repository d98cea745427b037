package failover

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// This file is about members that do not answer when the primary died. After a power cut one of them comes up first, and it need not be the one that received the most.

// Had is what a member had when it was last seen.
type Had struct {
	At       time.Time `json:"at,omitzero"`        // when; zero: it was never seen beside the primary
	Received string    `json:"received,omitempty"` // GTIDs: all that it had, applied or not
}

// together is how long before the primary a member may have been seen last and still have what the primary wrote last: each member is asked once a second, and an answer may
// take as long.
const together = 3 * time.Second

// From reports whether a transaction was written by the primary itself: of MySQL by its UUID, of MariaDB by its server_id.
func (k Known) From(uuid string, server uint32) bool {
	return uuid != "" && strings.EqualFold(uuid, k.UUID) || uuid == "" && fmt.Sprint(server) == k.ServerID
}

// lacking are the transactions of the primary that somebody had and those that answer have not.
func (k Known) lacking(had string, here []string) mysql.Errant {
	e, err := beyond(Received(had), here)
	if err != nil || len(here) == 0 {
		return mysql.Errant{}
	}
	mine, _ := e.Split(k.From)
	return mine
}

// beyond are the transactions that somebody had and others have not, whose sets these are: all of them, where the others have none at all.
func beyond(had string, sets []string) (mysql.Errant, error) {
	if !slices.ContainsFunc(sets, func(set string) bool { return set != "" }) {
		return mysql.AllErrant(had)
	}
	return mysql.ErrantTransactions(had, sets...)
}

// Absent says which of the members that do not answer may have what nobody has who answers, and why; "": none. A failover waits for these a while: who is promoted
// without them loses it. here are the members that answer, with what they had when they were last asked.
func (k Known) Absent(here map[string]string, away []string) (names []string, words string) {
	var sets, why []string
	for _, name := range slices.Sorted(maps.Keys(here)) {
		sets = append(sets, here[name])
	}
	rest := k.lacking(k.Executed, sets)
	for _, name := range away {
		had, known := k.Had[name]
		beside := !known || k.At.IsZero() || !had.At.Before(k.At.Add(-together)) // it fell silent when the primary did, or nobody knows
		switch more := k.lacking(had.Received, sets); {
		case !more.Empty():
			why = append(why, fmt.Sprintf("%s had %s that nobody has who answers: %s", name, digits.Counted(int(max(1, more.Count())), "transaction"), short(more.String())))
		case beside && !rest.Empty():
			why = append(why, fmt.Sprintf("%s may have %s of %s that nobody has who answers: %s", name, digits.Counted(int(max(1, rest.Count())), "transaction"), k.Name, short(rest.String())))
		case beside && known && k.Lossless && slices.Contains(k.Acks, name) && k.asked(slices.Collect(maps.Keys(here))) < k.needed():
			why = append(why, fmt.Sprintf("%s may have acknowledged commits that nobody has who answers", name))
		default:
			continue
		}
		names = append(names, name)
	}
	return names, strings.Join(why, "; ")
}

// After completes what is known of a primary by what was known of it before.
func (k Known) After(was Known) Known {
	k.Covered = k.Executed
	if was.UUID == k.UUID && was.ServerID == k.ServerID && was.Name == k.Name {
		if !k.Unlogged.IsZero() && k.Executed == "" { // a MariaDB does not tell any more what it has
			k.Executed, k.Covered = was.Executed, was.Covered
		}
		if !was.Unlogged.IsZero() { // starting it again does not bring to its replicas what it took meanwhile
			k.Unlogged = was.Unlogged
		}
	}
	if !k.Lossless || !was.Lossless || was.Covered == "" || was.UUID != k.UUID || was.ServerID != k.ServerID || was.Unacked != k.Unacked {
		return k
	}
	k.Covered = was.Covered
	for _, name := range k.Acks {
		if more, err := mysql.ErrantTransactions(was.Executed, k.Had[name].Received); err == nil && k.Had[name].Received != "" && more.Empty() {
			k.Covered = was.Executed
		}
	}
	return k
}

// Owed is what has to be on the next primary: all that the old one had. A MariaDB has GTIDs before a replica has them, also of what it then cannot write to its binary log: of one whose commits
// wait for replicas it is what was acknowledged for all that is known.
func (k Known) Owed() string {
	if set, err := mysql.ParseGTIDSet(k.Executed); err == nil && set.ByDomain() && k.Lossless && k.Covered != "" {
		return k.Covered
	}
	return k.Executed
}

// asked is how many of those that acknowledge are among some members.
func (k Known) asked(names []string) (n int) {
	for _, name := range k.Acks {
		if slices.Contains(names, name) {
			n++
		}
	}
	return n
}

// Received puts together sets of what a member had: executed, logged, received.
func Received(sets ...string) string {
	if set, err := mysql.ParseGTIDSet(strings.Join(sets, ",")); err == nil && !set.ByDomain() {
		return set.String()
	}
	var list []string
	for _, set := range sets {
		for part := range strings.SplitSeq(strings.ReplaceAll(set, "\n", ""), ",") {
			if part = strings.TrimSpace(part); part != "" && !slices.Contains(list, part) {
				list = append(slices.DeleteFunc(list, func(was string) bool { return within(was, part) }), part)
			}
		}
	}
	return strings.Join(list, ",")
}

// within reports whether a transaction of a MariaDB is one that another one of the same server and domain came after.
func within(was, now string) bool {
	a, err := mysql.ParseGTID(was)
	b, berr := mysql.ParseGTID(now)
	return err == nil && berr == nil && a.ByDomain() && b.ByDomain() && a.Domain == b.Domain && a.Server == b.Server && a.Number <= b.Number
}

// Remember puts together what two looks know of what members had: the later one counts.
func Remember(a, b map[string]Had) map[string]Had {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]Had{}
	}
	for name, h := range b {
		if old, ok := out[name]; !ok || old.At.Before(h.At) {
			out[name] = h
		}
	}
	return out
}

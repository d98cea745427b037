package lag

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/blockers"
	"github.com/rissodb/risso/internal/channels"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sqltext"
)

// applying finds what keeps the threads that apply.
func (f *Facts) applying(add func(Cause)) {
	if root, share := f.locked(); share >= 0.3 {
		add(f.lock(root, share))
		return // whatever else it does, it does nothing meanwhile
	}
	if c, ok := f.oneTransaction(); ok {
		add(c)
		return
	}
	mean, threads := f.busy()
	used := mean / float64(max(threads, 1))
	of := func(what read.ApplierDoing) float64 { // the part of the active threads that was found doing that
		n := 0.0
		for _, l := range f.Looks {
			for _, a := range l.appliers() {
				if a.Doing == what {
					n++
				}
			}
		}
		return n / max(mean*float64(len(f.Looks)), 1)
	}
	if c := of(read.ApplierCommits); c >= 0.3 && mean >= 0.3 {
		add(Cause{Code: "commit", Words: "the appliers wait for their commits: the disk of the logs", weight: holds * c,
			Evidence: append([]string{fmt.Sprintf("%s of the appliers that had work waited for a commit", digits.Percent(c))}, f.set("sync_binlog", "innodb_flush_log_at_trx_commit")...),
			NotSeen:  "how long the disk takes", Certain: c >= 0.5,
			Next: "SET GLOBAL sync_binlog = 0; SET GLOBAL innodb_flush_log_at_trx_commit = 2 (then a crash of this machine may cost it transactions that it had acknowledged: rebuild it after one)"})
	}
	if c := of(read.ApplierSemiSync); c >= 0.3 {
		add(Cause{Code: "semisync", Words: "the appliers' commits wait for a replica of this replica", Certain: true, weight: holds * c, Next: "risso semisync status"})
	}
	if c := of(read.ApplierInOrder); c >= 0.5 {
		add(Cause{Code: "order", Words: "most appliers are done, and wait for the commit of a transaction before theirs", Certain: true, weight: holds * c,
			Evidence: append([]string{fmt.Sprintf("%s of the appliers that had work waited for their turn", digits.Percent(c))}, f.set("replica_preserve_commit_order", "slave_preserve_commit_order", "slave_parallel_mode")...),
			Next:     "look for the transaction that all wait for: the applier that is busy"})
	}
	// A thread that applies one event after the other is found idle between them now and then.
	switch {
	case threads <= 1 && used >= 0.7:
		add(Cause{Code: "applier.single", Words: "one thread applies, and is busy all the time", Certain: used >= 0.9, weight: holds / 2 * used,
			Evidence: append([]string{fmt.Sprintf("it was busy in %s of %d looks", digits.Percent(used), len(f.Looks))}, f.appliersSet()...), Next: channels.MoreAppliers(f.Server, f.setting)})
	case threads > 1 && used >= 0.8:
		add(Cause{Code: "applier.all", Words: fmt.Sprintf("all %d appliers are busy", threads), Certain: used >= 0.9, weight: holds / 2 * used,
			Evidence: f.appliersSet(), Next: "more of them may help, if the machine has processors and disk left"})
	case threads > 1 && mean >= 0.7 && used < 0.6:
		add(Cause{Code: "applier.few", Words: fmt.Sprintf("of %d appliers only %s work at a time: transactions depend on each other, or are not known not to", threads, digits.Three(mean)), weight: holds / 4,
			Evidence: f.appliersSet(), NotSeen: "which transactions depend on which", Next: "risso digest says how write time is spread over schemas and tables"})
	}
}

// appliersSet says with how many threads it is to apply.
func (f *Facts) appliersSet() []string {
	names := []string{}
	for _, v := range f.Server.Appliers() {
		if names = append(names, v.Variable); f.setting(v.Variable) != "" {
			break // the other is the older name of the same
		}
	}
	return f.set(append(names, "slave_parallel_type", "replica_parallel_type", "slave_parallel_mode")...)
}

// whoHolds is what to do where the server does not say who holds a lock.
const whoHolds = "risso top shows who has a transaction open or is idle since before that: LOCK TABLES, FLUSH TABLES WITH READ LOCK and open transactions hold such locks"

func (f *Facts) lock(root blockers.Root, share float64) Cause {
	c := Cause{Code: "lock", Certain: true, weight: stops / 2, Words: "the applier waits for a lock", Evidence: []string{fmt.Sprintf("seen in %s of %d looks", digits.Percent(share), len(f.Looks))}}
	w := &root.Wait
	if w.Waiter == 0 { // its state says so, and the server does not say who holds it
		c.Evidence = append(f.told(), c.Evidence...)
		c.NotSeen = "who holds it"
		c.Next = whoHolds
		return c
	}
	c.Words = "the applier waits for " + blockers.Lock(w) + blockers.InTheWay(w)
	if w.Maybe {
		c.NotSeen = "who holds it, for sure"
	}
	c.Next = blockers.Kill(w)
	if w.Maybe && w.Blocker.ID == 0 {
		c.Words, c.Next = "the applier waits for "+blockers.Lock(w), whoHolds
	}
	if words := blockers.Remedy(w); c.Next == "" {
		c.Next = words
	} else if words != "" {
		c.Evidence = append(c.Evidence, words)
	}
	return c
}

// progress is the applier that is in its transaction for longest, as it was seen first and last; nil if none is in one.
func (f *Facts) progress() (first, last *read.Applier) {
	for i := range f.Looks {
		for _, a := range f.Looks[i].appliers() {
			if !active(a.Doing) || a.Doing == read.ApplierInOrder || a.Open < 0 || a.Rows < 0 {
				continue
			}
			switch {
			case first == nil || first.Session != a.Session && a.Open > last.Open:
				first, last = &a, &a
			case first.Session == a.Session:
				last = &a
			}
		}
	}
	return first, last
}

// oneTransaction finds an applier that is in one transaction all the time, and a table without a key in it.
func (f *Facts) oneTransaction() (Cause, bool) {
	mean, threads := f.busy()
	first, last := f.progress()
	keyless, hidden := "", ""
	for _, t := range f.Stuck.Tables {
		if !t.Keys.Known {
			hidden = t.Name
		}
		if t.Keys.Known && !t.Keys.Primary && !t.Keys.Unique {
			keyless = t.Name
		}
	}
	stuck := f.Stuck.Same && mean >= 0.5
	if !stuck && (keyless == "" || mean/float64(threads) < 0.5) {
		return Cause{}, false
	}
	c := Cause{Code: "transaction.long", Words: "the applier is in one transaction", Certain: stuck, weight: holds}
	if stuck && last != nil && last.Open >= 0 {
		c.Words = "the applier has been in one transaction for " + digits.Age(last.Open)
	}
	if len(f.Stuck.Tables) > 0 {
		var names []string
		for _, t := range f.Stuck.Tables {
			names = append(names, oneline.Of(t.Name))
		}
		c.Words += ", on " + strings.Join(names, ", ")
		if hidden != "" {
			c.NotSeen = "by which key the rows of " + oneline.Of(hidden) + " are found: the account may not see that table"
		}
	} else {
		c.NotSeen = "which table it is on"
	}
	if stuck {
		c.Evidence = append(c.Evidence, fmt.Sprintf("the same one at the beginning and at the end of %s", digits.Seconds(f.Span)))
		if last != nil && last.Rows >= 0 {
			words := digits.Roughly(last.Rows, "row") + " changed so far"
			if f.Source != nil && f.Source.FirstRows > 0 {
				words = digits.Roughly(last.Rows, "row") + " of " + digits.Number(float64(f.Source.FirstRows)) + " changed so far"
			}
			if last.Rows > first.Rows && f.Span > 0 {
				words += ", " + digits.Rate(float64(last.Rows-first.Rows)/f.Span)
			}
			c.Evidence = append(c.Evidence, words)
		}
	}
	if f.Stuck.Statement != "" {
		c.Evidence = append(c.Evidence, "statement: "+oneline.Cut(oneline.Of(string(sqltext.Redact(nil, []byte(f.Stuck.Statement)))), 200))
	}
	if keyless != "" {
		c.Code, c.weight = "table.no_key", holds+1
		c.Words = "the applier changes rows of " + oneline.Of(keyless) + ", which has no primary or unique key: it looks for each row in the whole table"
		if !stuck {
			c.NotSeen = "how much of its time goes there"
		}
		schema, table, _ := strings.Cut(keyless, ".")
		quoted := mysql.Quote(schema) + "." + mysql.Quote(table)
		c.Next = "ALTER TABLE " + quoted + " ADD COLUMN risso_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY (on the source, once this transaction is through; risso alter plan says what it will do)"
		return c, true
	}
	c.Next = "it ends by itself; smaller transactions on the source keep replicas closer"
	return c, true
}

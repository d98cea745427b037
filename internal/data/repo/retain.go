package repo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// Retention says which backups stay. Counts are of periods that have a backup: Daily 7 keeps the last backup of each of the
// last 7 days on which there was one, so that a server that is off for a month does not lose what it has.
type Retention struct {
	Last    int           // this many of the newest
	Within  time.Duration // all that are younger, counted from the newest; if nothing else is that young, also from the one before it
	Daily   int
	Weekly  int // weeks begin on Monday (ISO 8601)
	Monthly int
	Yearly  int
}

// Empty reports whether nothing is asked for.
func (p Retention) Empty() bool { return p == Retention{} }

// Candidate is a backup that retention judges.
type Candidate struct {
	ID     string
	Time   time.Time // when it began
	Group  string    // backups of one kind of one server; each group is judged by itself
	Server string
	Parent string // that it cannot be restored without; "" for none
	Proven bool   // a drill restored it
	// Unread says that it is unknown whether a drill restored it: it may be the newest proven one, and causes no proven one to be removed.
	Unread bool
	// Vouched says that a trusted key signed what the drill found. A proof without such a key never replaces one that has it.
	Vouched bool
	// Keep is why it stays whatever the rules say; "" if they decide.
	Keep string
	// Hollow is why it replaces no other; "" for a full one.
	Hollow string
	// Signer is the key that signed it; "": it is not signed.
	Signer PublicKey
	// Trusted says that Signer is trusted.
	Trusted bool

	physical bool
}

// replaces reports whether a backup counts when rules judge another one: what no trusted key signed never counts for what a trusted key
// signed, nor what is not signed, or signed by one key, for what is signed by another one. Being able to put files into a place must not be
// enough to make prune remove what others took.
func (c Candidate) replaces(o Candidate) bool {
	return c.Trusted || !o.Trusted && (o.Signer == "" || o.Signer == c.Signer)
}

// signedBy identifies those that are judged together: all that are trusted, those of each other key, those that nobody signed.
type signedBy struct {
	trusted bool
	key     PublicKey
}

func (c Candidate) signedBy() signedBy {
	if c.Trusted {
		return signedBy{trusted: true}
	}
	return signedBy{key: c.Signer}
}

// stranger says why a backup that does not count for all others does not; "" for one that is trusted.
func (c Candidate) stranger() string {
	switch {
	case c.Trusted:
		return ""
	case c.Signer == "":
		return "it is not signed"
	}
	return "it is signed by a key that is not trusted"
}

// Decision is whether a backup is kept, and why.
type Decision struct {
	ID      string   `json:"id"`
	Keep    bool     `json:"keep"`
	Reasons []string `json:"reasons"`
}

// Decide applies the rules; without any, only the following stays. Days, weeks, months and years are those of a time zone. Beyond the rules
// stay: the newest backup of each group (if there are rules), the newest of each server that was proven, whatever a backup that stays
// builds on, and what is dated ahead of now: a clock was wrong, and such a backup decides nothing about others. Each is judged among those
// that may replace it: see Candidate.Signer.
func (p Retention) Decide(list []Candidate, zone *time.Location, now time.Time) []Decision {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Candidate) int { return cmp.Or(b.Time.Compare(a.Time), strings.Compare(b.ID, a.ID)) })
	reasons := map[string][]string{}
	proven := map[string][]Candidate{}
	groups := map[string][]Candidate{}
	hollow := map[string]string{} // the oldest hollow one after the last full one of each group, and why
	for _, c := range list {
		if fleet.Ahead(c.Time, now) {
			if c.Keep == "" && !p.Empty() {
				c.Keep = "dated in the future: a clock was wrong; rules ignore it (--remove removes it)"
			}
			if c.Keep != "" {
				reasons[c.ID] = append(reasons[c.ID], c.Keep)
			}
			continue
		}
		group := c.Group
		switch {
		case c.Hollow != "": // judged among its like, so that it replaces no full one
			group += "\x00hollow"
			hollow[c.Group] = c.ID + " after it is none: " + c.Hollow
		case len(groups[group]) == 0 && hollow[group] != "":
			reasons[c.ID] = append(reasons[c.ID], "the last full one; "+hollow[group])
		}
		groups[group] = append(groups[group], c)
		if c.Keep != "" {
			reasons[c.ID] = append(reasons[c.ID], c.Keep)
		}
		if c.Unread && !slices.ContainsFunc(proven[c.Server], func(newer Candidate) bool { return newer.replaces(c) }) {
			reasons[c.ID] = append(reasons[c.ID], "whether a drill proved it is unknown: the proof is damaged, or encrypted (give --identity)")
		}
		if c.Proven && !slices.ContainsFunc(proven[c.Server], func(newer Candidate) bool { return newer.replaces(c) && (newer.Vouched || !c.Vouched) }) {
			proven[c.Server] = append(proven[c.Server], c)
			why := "the newest proven one"
			if !c.Vouched {
				why += ", by a drill not signed by a trusted key"
			}
			reasons[c.ID] = append(reasons[c.ID], why)
		}
	}
	for _, g := range groups {
		p.judge(g, zone, reasons)
	}
	// The newest first, so that a chain of parents is mostly followed in one pass; by a wrong clock a parent may be dated after its child.
	for again := true; again; {
		again = false
		for _, c := range list {
			why := c.ID + " builds on it"
			if len(reasons[c.ID]) > 0 && c.Parent != "" && !slices.Contains(reasons[c.Parent], why) {
				reasons[c.Parent] = append(reasons[c.Parent], why)
				again = true
			}
		}
	}
	out := make([]Decision, 0, len(list))
	for _, c := range list {
		d := Decision{ID: c.ID, Keep: len(reasons[c.ID]) > 0, Reasons: reasons[c.ID]}
		if d.Keep && c.Hollow != "" {
			d.Reasons = append(d.Reasons, "it replaces no full one: "+c.Hollow)
		}
		if !d.Keep {
			d.Reasons = []string{"no rule keeps it"}
		}
		out = append(out, d)
	}
	slices.Reverse(out)
	return out
}

// judge judges the backups of one group, the newest first: those of each signer among all that may replace them.
func (p Retention) judge(g []Candidate, zone *time.Location, reasons map[string][]string) {
	judged := map[signedBy]bool{}
	for _, c := range g {
		who := c.signedBy()
		if judged[who] {
			continue
		}
		judged[who] = true
		among := slices.DeleteFunc(slices.Clone(g), func(o Candidate) bool { return !o.replaces(c) })
		p.group(among, zone, func(c Candidate, why string) {
			if c.signedBy() == who {
				reasons[c.ID] = append(reasons[c.ID], why)
			}
		})
	}
	for _, c := range g { // which does not replace all its neighbours
		if !p.Empty() && len(reasons[c.ID]) > 0 && slices.ContainsFunc(g, func(o Candidate) bool { return !c.replaces(o) }) {
			reasons[c.ID] = append(reasons[c.ID], "it replaces none signed by another key: "+c.stranger())
		}
	}
}

// group judges backups of one group, the newest first.
func (p Retention) group(g []Candidate, zone *time.Location, keep func(c Candidate, why string)) {
	// One backup alone never makes all others too old: the clock may be wrong even now.
	since := g[0].Time
	if len(g) > 1 && since.Sub(g[1].Time) > p.Within {
		since = g[1].Time
	}
	if !p.Empty() {
		keep(g[0], "the newest")
	}
	for i, c := range g {
		if i < p.Last {
			keep(c, fmt.Sprintf("one of the last %d", p.Last))
		}
		if p.Within > 0 && since.Sub(c.Time) <= p.Within {
			keep(c, "within "+p.Within.String())
		}
	}
	for _, rule := range []struct {
		count  int
		word   string
		period func(time.Time) string
	}{
		{p.Daily, "daily", func(t time.Time) string { return t.Format("2006-01-02") }},
		{p.Weekly, "weekly", func(t time.Time) string { y, w := t.ISOWeek(); return fmt.Sprintf("%d-W%02d", y, w) }},
		{p.Monthly, "monthly", func(t time.Time) string { return t.Format("2006-01") }},
		{p.Yearly, "yearly", func(t time.Time) string { return t.Format("2006") }},
	} {
		last, n := "", 0
		for _, c := range g {
			if period := rule.period(c.Time.In(zone)); period != last && n < rule.count {
				last = period
				n++
				keep(c, fmt.Sprintf("%s %d of %d: %s", rule.word, n, rule.count, period))
			}
		}
	}
}

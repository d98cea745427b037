package alter

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/blockers"
	"github.com/rissodb/risso/internal/digits"
)

type adder func(head, format string, args ...any)

func (p *Plan) replicaWords(f *Facts, add adder) {
	r := f.Replicas
	if r.Cluster {
		add("replicas", "a cluster: every member does it at the same place in its order of transactions, and all wait as long as it takes (Galera: wsrep_OSU_method TOI)")
	}
	if r.Replica {
		add("replicas", "the server is itself a replica: a change that is made only here makes it differ from its source")
	}
	switch n := len(r.Addresses); {
	case !r.Known:
		add("replicas", "it is not known whether there are any")
	case n == 0 && !r.Cluster:
		add("replicas", "none is connected")
	case n > 0 && !p.Replicas && r.TwoPhase:
		add("replicas", "%s: they begin when the primary does (binlog_alter_two_phase), and so hardly fall behind", strings.Join(r.Addresses, ", "))
	case n > 0 && !p.Replicas:
		add("replicas", "%s: they do it in a moment, too", strings.Join(r.Addresses, ", "))
	case n > 0:
		lag := "as long as it takes there"
		if p.Forecast.Known {
			lag = digits.Seconds(p.Forecast.Seconds)
		}
		add("replicas", "%s: each begins when the primary has ended, and falls behind by about %s; %s", strings.Join(r.Addresses, ", "), lag, p.First.Text)
	}
}

func (p *Plan) trafficWords(f *Facts, add adder) {
	t := f.Traffic
	switch {
	case !t.Known:
		add("traffic", "not known")
	case t.Uses == 0:
		add("traffic", "no statement used the table in %s", digits.Seconds(t.Seconds))
	default:
		add("traffic", "%s statements use the table now (%s rows read, %s written): while it waits for its lock, all of them queue behind it", digits.Rate(t.Uses), digits.Rate(t.RowReads), digits.Rate(t.RowEdits))
	}
}

func holderWords(h Holder) string {
	b := h.Session
	who := blockers.Session(&b)
	switch {
	case h.Backup:
		who += " has locked the whole server against changes (" + h.Mode + "), as backups and FLUSH TABLES WITH READ LOCK do"
	case h.Maybe:
		who += " may hold a metadata lock of the table"
	default:
		who += " holds a metadata lock of the table"
		if h.Mode != "" {
			who += " (" + h.Mode + ")"
		}
	}
	return who + ": " + blockers.Doing(&b)
}

// unknownHolders reports whether the server did not say who holds locks.
func unknownHolders(f *Facts) bool {
	for _, g := range f.Gaps {
		if g.What == "who holds a metadata lock of the table" {
			return true
		}
	}
	return false
}

func (p *Plan) neighbourWords(f *Facts, st Statement, add adder) {
	var parents, children []string
	for _, n := range f.Neighbours {
		if n.Parent {
			parents = append(parents, n.Name.String())
		}
		if n.Child {
			children = append(children, n.Name.String())
		}
	}
	if len(parents) > 0 {
		add("foreign keys", "to %s: their metadata locks are taken as well", strings.Join(parents, ", "))
	}
	if len(children) > 0 {
		add("foreign keys", "from %s: statements on those wait, too, while it has its lock", strings.Join(children, ", "))
	}
	if n := len(f.Triggers); n > 0 {
		add("triggers", "%s on the table: it does not fire them", digits.Counted(n, "trigger"))
	}
	if st.Ignore {
		add("data", "IGNORE: rows that do not fit are dropped or changed without an error")
	}
}

// words tells the forecast.
func (c Forecast) words(add adder) {
	switch {
	case c.Moment:
		add("time", "a moment, however large the table is, as soon as it has its lock")
	case !c.Known:
		add("time", "not known: %s", c.Basis)
	default:
		add("time", "about %s (%s to %s): %s", digits.Seconds(c.Seconds), digits.Seconds(c.Low), digits.Seconds(c.High), c.Basis)
	}
	if c.Moment {
		return
	}
	for _, l := range c.Disk {
		add("disk", "%s", l)
	}
}

func bytesOf(v float64) string { return digits.Bytes(int64(max(0, v))) }

func plainly(format string, args ...any) string { return fmt.Sprintf(format, args...) }

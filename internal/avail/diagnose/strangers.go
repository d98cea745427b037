package diagnose

import (
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// origin is by which servers' transactions two servers show that they have one history.
type origin struct {
	by   string // a server_uuid; of MariaDB domain and server_id
	weak bool   // servers of two replications may have it in common
}

// mostPairs is how many servers with one history are compared with each other; of more it is said once: they are copies, as of one image.
const mostPairs = 8

// strangers finds servers that can both be written to, have a history in common, and no link: an old primary that came back, or a copy.
func (v *view) strangers() {
	by := map[string][]int{} // those that have transactions of an origin
	origins := map[int][]origin{}
	var order []origin
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if !n.Seen || !n.Writes.Open() || len(v.up[i]) > 0 {
			continue
		}
		origins[i] = v.origins(i)
		for _, o := range origins[i] {
			if by[o.by] == nil {
				order = append(order, o)
			}
			by[o.by] = append(by[o.by], i)
		}
	}
	for _, o := range order {
		if v.copies(o, by[o.by]) {
			delete(by, o.by)
		}
	}
	told := map[[2]int]bool{}
	for i := range v.Nodes {
		for _, o := range origins[i] {
			for _, j := range by[o.by] {
				if i >= j || told[[2]int{i, j}] || v.part[i] == v.part[j] && v.sameGroup(i, j) || v.ownOf(o, i) && v.ownOf(o, j) {
					continue // two that wrote under one server_id need have nothing in common
				}
				told[[2]int{i, j}] = true
				v.parted(i, j, o)
			}
		}
	}
}

// ownOf reports whether a MariaDB itself has the server_id of an origin.
func (v *view) ownOf(o origin, i int) bool {
	return o.weak && strings.HasSuffix(o.by, "-"+v.Nodes[i].ServerID)
}

// copies tells of many servers with one history, which are no members of one group; false: they are few.
func (v *view) copies(o origin, list []int) bool {
	groups := map[string]bool{}
	var some []int
	own := 0
	for _, i := range list {
		if g := v.Nodes[i].Group; g != nil {
			if groups[g.Name] {
				continue
			}
			groups[g.Name] = true
		}
		if v.ownOf(o, i) {
			if own++; own > 1 {
				continue
			}
		}
		some = append(some, i)
	}
	if len(some) <= mostPairs {
		return false
	}
	names := v.names(some)
	d := v.add("primary.several", some[0], -1, "%s have one history, and all of them can be written to", digits.Counted(len(some), "server")).see("%s", listed(names)).see("all have transactions of %s", o.by).with(names[1:]...)
	d.Subject, d.NotSeen = o.by, "whether they are copies of one image that are meant to stand alone; what each has beyond the others"
	return true
}

// origins are those that wrote what a server has.
func (v *view) origins(i int) (list []origin) {
	g := &v.Nodes[i].GTID
	if !g.ByDomain {
		for _, uuid := range v.executed(i).Servers() {
			list = append(list, origin{by: uuid})
		}
		return list
	}
	for part := range strings.SplitSeq(g.State, ",") {
		part = strings.TrimSpace(part)
		if at := strings.LastIndexByte(part, '-'); at > 0 {
			list = append(list, origin{by: part[:at], weak: true})
		}
	}
	return list
}

func (v *view) sameGroup(i, j int) bool {
	a, b := v.Nodes[i].Group, v.Nodes[j].Group
	return a != nil && b != nil && a.Name == b.Name
}

// executed is what a MySQL has executed; nothing if that cannot be read.
func (v *view) executed(i int) mysql.GTIDSet {
	set, is := v.sets[i]
	if !is {
		set, _ = mysql.ParseGTIDSet(v.Nodes[i].GTID.Executed)
		v.sets[i] = set
	}
	return set
}

// beyond are the transactions that one of two servers has and the other has not, and how many they are; 0: their number is not known.
func (v *view) beyond(i, j int) (extra string, count uint64, known bool) {
	a, b := &v.Nodes[i].GTID, &v.Nodes[j].GTID
	if a.ByDomain {
		e, err := mysql.ErrantTransactions(a.State, b.State)
		return e.String(), 0, err == nil
	}
	only := v.executed(i).Subtract(v.executed(j))
	return only.String(), only.Count(), true
}

// parted tells of two with one history and no link between them.
func (v *view) parted(i, j int, o origin) {
	onlyA, countA, known := v.beyond(i, j)
	onlyB, countB, known2 := v.beyond(j, i)
	if !known || !known2 {
		return
	}
	first, second := v.name(i), v.name(j)
	var d *Diagnosis
	switch {
	case onlyA == "" && onlyB == "":
		d = v.add("primary.several", i, -1, "%s and %s have one history, and both can be written to", first, second).see("they have the same transactions")
	case onlyA == "" || onlyB == "":
		ahead, behind := first, second
		if onlyA == "" {
			ahead, behind = second, first
		}
		more := "and more"
		if n := countA + countB; n > 0 {
			more = "and " + strconv.FormatUint(n, 10) + " more"
		}
		d = v.add("primary.several", i, -1, "%s and %s have one history, and both can be written to", first, second).see("%s has all transactions of %s, %s", ahead, behind, more)
	default:
		d = v.add("repl.split_brain", i, -1, "%s and %s have one history, and each has transactions that the other has not", first, second).
			see("only on %s: %s", first, v.counted(onlyA, countA)).see("only on %s: %s", second, v.counted(onlyB, countB))
		d.Severity = warning
	}
	d.with(second).Subject = second
	if o.weak {
		d.see("both have transactions of domain and server_id %s", o.by)
		d.NotSeen = "whether it is one history: servers of two replications may have the same server_id; " + d.NotSeen
	}
}

// counted is a set and how many transactions it has.
func (v *view) counted(set string, count uint64) string {
	if count == 0 {
		return cut(set)
	}
	return digits.Counted(int64(min(count, 1<<62)), "transaction") + ": " + cut(set)
}

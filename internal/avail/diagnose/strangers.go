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

// strangers finds servers that can both be written to, have a history in common, and no link: an old primary that came back, or a copy.
func (v *view) strangers() {
	by := map[string][]int{} // those that have transactions of an origin
	origins := map[int][]origin{}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if !n.Seen || !n.Writes.Open() || len(v.up[i]) > 0 {
			continue
		}
		origins[i] = v.origins(i)
		for _, o := range origins[i] {
			by[o.by] = append(by[o.by], i)
		}
	}
	told := map[[2]int]bool{}
	for i := range v.Nodes {
		for _, o := range origins[i] {
			for _, j := range by[o.by] {
				if i >= j || told[[2]int{i, j}] || v.part[i] == v.part[j] && v.sameGroup(i, j) || o.weak && v.Nodes[i].ServerID == v.Nodes[j].ServerID && strings.HasSuffix(o.by, "-"+v.Nodes[i].ServerID) {
					continue // two that wrote under one server_id need have nothing in common
				}
				told[[2]int{i, j}] = true
				v.parted(i, j, o)
			}
		}
	}
}

// origins are those that wrote what a server has.
func (v *view) origins(i int) (list []origin) {
	g := &v.Nodes[i].GTID
	if !g.ByDomain {
		set, err := mysql.ParseGTIDSet(g.Executed)
		if err != nil {
			return nil
		}
		for _, uuid := range set.Servers() {
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

// beyond are the transactions that one of two servers has and the other has not, and how many they are; 0: their number is not known.
func (v *view) beyond(i, j int) (extra string, count uint64, known bool) {
	a, b := &v.Nodes[i].GTID, &v.Nodes[j].GTID
	if a.ByDomain {
		e, err := mysql.ErrantTransactions(a.State, b.State)
		return e.String(), 0, err == nil
	}
	has, err := mysql.ParseGTIDSet(a.Executed)
	had, err2 := mysql.ParseGTIDSet(b.Executed)
	if err != nil || err2 != nil {
		return "", 0, false
	}
	only := has.Subtract(had)
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

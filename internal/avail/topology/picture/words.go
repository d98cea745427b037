package picture

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
)

// Dress gives a picture its words and places.
func (p *Picture) Dress() {
	for i := range p.Links {
		p.linkWords(&p.Links[i])
	}
	for i := range p.Nodes {
		p.Nodes[i].Words = p.nodeWords(i)
	}
	p.say()
	p.place()
}

// linkWords are those of links that a picture knows better than the topology.
func (p *Picture) linkWords(l *Link) {
	switch {
	case l.Kind == Remembered:
		l.Words = "as it was at " + l.Seen.Local().Format("2 Jan 15:04:05")
	case l.Words == "" && l.Kind == Late:
		l.Words = "late"
	case l.Words == "" && l.Kind == Runs:
		l.Words = "runs"
	}
}

// nodeWords is what is to be known of a node, the worst first.
func (p *Picture) nodeWords(i int) (words []string) {
	n := &p.Nodes[i]
	if !n.Seen {
		if words = append(words, p.unseenWords(n)); n.Server != "" {
			words = append(words, n.Server)
		}
		return words
	}
	if n.NoQuorum {
		words = append(words, "without quorum")
	}
	var quiet []string
	for _, l := range p.Links {
		switch {
		case l.Replica != i:
		case l.State == OK:
			quiet = append(quiet, l.Words)
		case p.sources(i) > 1:
			words = append(words, "from "+p.Nodes[l.Source].Name+": "+l.Words)
		default:
			words = append(words, l.Words)
		}
	}
	if n.Errant {
		words = append(words, "errant transactions")
	}
	if n.Partly != "" {
		words = append(words, "not all of it was seen: "+n.Partly)
	}
	if n.Member != "" {
		words = append(words, n.Member)
	}
	switch {
	case n.Offline:
		words = append(words, "offline mode")
	case n.Writable:
		words = append(words, "writable")
	default:
		words = append(words, "read-only")
	}
	words = append(words, quiet...)
	if n.SemiSync != "" {
		words = append(words, n.SemiSync)
	}
	return append(words, n.Server)
}

func (p *Picture) sources(i int) (n int) {
	for _, l := range p.Links {
		if l.Replica == i {
			n++
		}
	}
	return n
}

// unseenWords is why a node was not seen.
func (p *Picture) unseenWords(n *Node) string {
	why := (&topology.Failure{Kind: n.Why, Text: n.WhyText}).Words()
	switch {
	case n.Answered.IsZero():
		if why == "" {
			why = "nobody tells why"
		}
		return "not seen: " + why
	case n.Why == "timeout", n.Why == "hung":
		return "no answer for " + digits.Age(p.Time.Sub(n.Answered).Round(time.Second).Seconds())
	}
	return why + ", since " + n.Since.Local().Format("15:04:05")
}

// say makes the sentence and the state of all.
func (p *Picture) say() {
	p.State = Unknown
	var bad []int
	seen, told := 0, behind{most: -1}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		p.State = Worse(p.State, n.State)
		if n.Seen {
			seen++
		}
		if n.State == Warning || n.State == Critical {
			bad = append(bad, i)
		}
	}
	for _, l := range p.Links {
		switch {
		case l.Behind != nil:
			told.most, told.some = max(told.most, *l.Behind-l.Delay, 0), true
		case l.State != Unknown:
			told.silent = true
		}
	}
	switch {
	case len(p.Nodes) == 0:
		p.Words = "There is no server."
		return
	case len(bad) == 0:
		p.Words = p.calm(seen, told)
		return
	}
	slices.SortStableFunc(bad, func(a, b int) int { return p.rank(b) - p.rank(a) })
	worst := &p.Nodes[bad[0]]
	p.Words = worst.Name + ": " + worst.lead(p)
	if lead := worst.lead(p); !strings.Contains(lead, "since ") && !strings.HasPrefix(lead, "no answer for") {
		p.Words += ", since " + worst.Since.Local().Format("15:04:05")
	}
	p.Words += "."
	if n := len(bad) - 1; n > 0 {
		needs := "need"
		if n == 1 {
			needs = "needs"
		}
		p.Words += fmt.Sprintf(" %s of %s %s attention, too.", digits.Counted(n, "other"), digits.Thousands(len(p.Nodes)), needs)
	}
}

// lead is what to say of a node that is not well: its own words, or where they are of one that is, what was diagnosed.
func (n *Node) lead(p *Picture) string {
	if len(n.Findings) == 0 || !n.Seen || n.NoQuorum || n.Errant || n.Partly != "" {
		return n.Words[0]
	}
	for i, l := range p.Links {
		if p.Nodes[l.Replica].ID == n.ID && p.Links[i].State != OK && l.State != Unknown {
			return n.Words[0]
		}
	}
	return n.Findings[0].What
}

// behind is what replicas tell of how far they are behind.
type behind struct {
	most   int  // seconds, not counting a delay that is wanted
	some   bool // one told it
	silent bool // one did not
}

// calm is the sentence of a topology in which nothing is wrong.
func (p *Picture) calm(seen int, told behind) string {
	words := digits.Counted(len(p.Nodes), "server")
	if seen < len(p.Nodes) {
		words += fmt.Sprintf(", %d of them seen", seen)
	}
	switch {
	case len(p.Links) == 0:
	case seen < len(p.Nodes):
		words += "; replication runs where it was seen"
	default:
		words += "; replication runs everywhere"
	}
	who := "no replica"
	if told.silent {
		who = "no replica that tells"
	}
	switch {
	case !told.some:
	case told.most == 0:
		words += ", " + who + " is behind"
	default:
		words += fmt.Sprintf(", %s is more than %s behind", who, digits.Span(time.Duration(told.most)*time.Second))
	}
	return words + "."
}

// rank is how much a node is the cause: one that others replicate from and that is not seen comes first.
func (p *Picture) rank(i int) int {
	n, rank := &p.Nodes[i], 0
	if n.State == Critical {
		rank += 1_000_000
	}
	if !n.Seen {
		rank += 100_000
	}
	for _, l := range p.Links {
		if l.Source == i {
			rank++
		}
		if l.Replica == i && l.Kind == Broken {
			rank += 10_000
		}
	}
	return rank
}

// Diff says in words what changed from one picture to the next.
func Diff(before, after *Picture) (words []string) {
	if before == nil {
		return []string{after.Words}
	}
	old := map[string]int{}
	for i := range before.Nodes {
		old[before.Nodes[i].ID] = i
	}
	for i := range after.Nodes {
		n := &after.Nodes[i]
		k, was := old[n.ID]
		delete(old, n.ID)
		if !was {
			words = append(words, n.Name+" is new: "+n.Words[0])
			continue
		}
		words = append(words, nodeDiff(before, k, after, i)...)
	}
	gone := make([]string, 0, len(old))
	for _, k := range old {
		gone = append(gone, before.Nodes[k].Name+" is gone: no server tells of it any more")
	}
	slices.Sort(gone)
	words = append(words, gone...)
	for _, s := range after.Surprises {
		if !slices.Contains(before.Surprises, s) {
			words = append(words, s)
		}
	}
	for _, s := range before.Surprises {
		if !slices.Contains(after.Surprises, s) {
			words = append(words, "no longer so: "+s)
		}
	}
	return words
}

// nodeDiff is what changed of one node.
func nodeDiff(before *Picture, k int, after *Picture, i int) (words []string) {
	o, n := &before.Nodes[k], &after.Nodes[i]
	add := func(s string) { words = append(words, n.Name+" "+s) }
	switch {
	case o.Seen && !n.Seen, !o.Seen && !n.Seen && o.Why != n.Why:
		words = append(words, n.Name+": "+n.Words[0])
	case !o.Seen && n.Seen:
		add("is seen again")
	case !n.Seen && o.State != n.State:
		words = append(words, n.Name+": "+n.Words[0])
	}
	if n.Seen && o.Seen {
		if o.Writable != n.Writable {
			add(map[bool]string{true: "is writable", false: "is read-only"}[n.Writable])
		}
		if o.Server != n.Server {
			add("is " + n.Server + " now")
		}
		if o.Errant != n.Errant {
			add(map[bool]string{true: "has errant transactions", false: "has no errant transactions any more"}[n.Errant])
		}
		if o.Member != n.Member || o.NoQuorum != n.NoQuorum {
			add("is " + n.Member + map[bool]string{true: ", without quorum", false: ""}[n.NoQuorum] + " in its cluster")
		}
		if o.SemiSync != n.SemiSync {
			add(map[bool]string{true: "has no semi-sync any more", false: "has " + n.SemiSync}[n.SemiSync == ""])
		}
	}
	links := func(p *Picture, node int) map[string]Link {
		m := map[string]Link{}
		for _, l := range p.Links {
			if l.Replica == node {
				m[p.Nodes[l.Source].Name+"\x00"+l.Channel] = l
			}
		}
		return m
	}
	had, has := links(before, k), links(after, i)
	for _, l := range after.Links {
		if l.Replica != i {
			continue
		}
		source := after.Nodes[l.Source].Name
		was, there := had[source+"\x00"+l.Channel]
		switch {
		case !there:
			add("follows " + source + ": " + l.Words)
		case n.Seen && (was.Kind != l.Kind || was.Error != l.Error):
			add("← " + source + ": " + l.Words)
		}
	}
	for _, l := range before.Links {
		source := before.Nodes[l.Source].Name
		if _, there := has[source+"\x00"+l.Channel]; l.Replica == k && !there {
			add("no longer follows " + source)
		}
	}
	words = append(words, foundDiff(o, n)...)
	if len(words) == 0 && (o.State != n.State || o.Partly != n.Partly || o.Offline != n.Offline) {
		add("is " + n.State + ": " + n.Words[0])
	}
	return words
}

// foundDiff is what is diagnosed of a node that was not before, and what no more.
func foundDiff(o, n *Node) (words []string) {
	same := func(f Finding) func(Finding) bool {
		return func(g Finding) bool { return g.ID == f.ID && g.Subject == f.Subject }
	}
	for _, f := range n.Findings {
		if i := slices.IndexFunc(o.Findings, same(f)); i < 0 || f.Other(o.Findings[i].Finding) {
			words = append(words, n.Name+": "+f.ID+": "+f.What)
		}
	}
	for _, f := range o.Findings {
		if !slices.ContainsFunc(n.Findings, same(f)) {
			words = append(words, n.Name+": no longer "+f.ID+": "+f.What)
		}
	}
	return words
}

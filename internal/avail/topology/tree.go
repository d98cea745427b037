package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/follow"
	"github.com/rissodb/risso/internal/oneline"
)

// Tree draws the topology as a tree of lines no wider than width; 0: as wide as they are. A node with several sources stands below the first of them, in full,
// and below the others by its name.
func (t *Topology) Tree(width int) string {
	d := &drawing{t: t, done: make([]bool, len(t.Nodes))}
	groups := map[string]bool{}
	for _, root := range t.Roots() {
		g := t.Nodes[root].Group
		if g == nil || g.Name == "" {
			d.node(root, nil, "", "")
			continue
		}
		if groups[g.Name] {
			continue
		}
		groups[g.Name] = true
		d.add(t.groupWords(g), "")
		members := t.members(g.Name)
		for i, m := range members {
			first, rest := branches(i == len(members)-1)
			d.node(m, nil, first, rest)
		}
	}
	for i := range t.Nodes { // members of a group that also replicate from elsewhere
		if !d.done[i] {
			d.node(i, nil, "", "")
		}
	}
	return d.text(width)
}

// members are the nodes of a group.
func (t *Topology) members(name string) (list []int) {
	for i := range t.Nodes {
		if g := t.Nodes[i].Group; g != nil && g.Name == name {
			list = append(list, i)
		}
	}
	return list
}

func (t *Topology) groupWords(g *Group) string {
	kind := map[string]string{"galera": "Galera cluster", "group_replication": "Group Replication"}[g.Kind]
	seen := len(t.members(g.Name))
	words := fmt.Sprintf("%s %s: %s", kind, cmp.Or(g.Title, g.Name), digits.Counted(int64(g.Size), "member"))
	if seen != g.Size {
		words += fmt.Sprintf(", %d seen", seen)
	}
	return words
}

// drawing is a tree that is being drawn.
type drawing struct {
	t     *Topology
	done  []bool
	lines [][2]string // a node with its branches; what is said of it
}

func (d *drawing) add(left, right string) { d.lines = append(d.lines, [2]string{left, right}) }

// branches are what stands before a node, and before what is below it.
func branches(last bool) (first, rest string) {
	if last {
		return "└─ ", "   "
	}
	return "├─ ", "│  "
}

// node draws a node and those that replicate from it. link is how it follows the one above it.
func (d *drawing) node(i int, link *Link, first, rest string) {
	n := &d.t.Nodes[i]
	if d.done[i] {
		words := "drawn above"
		if link != nil {
			words = d.t.LinkWords(link) + ", " + words
		}
		d.add(first+oneline.Of(n.Name), strings.TrimPrefix(words, ", "))
		return
	}
	d.done[i] = true
	d.add(first+oneline.Of(n.Name), d.t.Words(i, link))
	down := d.t.Replicas(i)
	for k := range down {
		b, r := branches(k == len(down)-1)
		d.node(down[k].Replica, &down[k], rest+b, rest+r)
	}
}

func (d *drawing) text(width int) string {
	most := 0
	for _, l := range d.lines {
		if l[1] != "" {
			most = max(most, utf8.RuneCountInString(l[0]))
		}
	}
	var b strings.Builder
	for _, l := range d.lines {
		line := l[0]
		if l[1] != "" {
			line += strings.Repeat(" ", max(most-utf8.RuneCountInString(l[0]), 0)+2) + oneline.Of(l[1])
		}
		if width > 0 {
			line = oneline.Cut(line, width)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// Words says in a line what a node is and how it is. link is the one by which it is looked at; nil: none.
func (t *Topology) Words(i int, link *Link) string {
	n := &t.Nodes[i]
	if !n.Seen {
		words := "not seen: " + cmp.Or(n.Unseen.Words(), "nobody tells why")
		if link != nil && link.Channel == nil {
			words += "; its source lists it, perhaps still"
		}
		return words
	}
	words := []string{n.Short()}
	if len(t.Sources(i)) == 0 && len(t.Replicas(i)) > 0 {
		words = append(words, "primary")
	} else if t.LikelyPrimary(i) {
		words = append(words, "likely the primary")
	}
	switch w := n.Writes; {
	case w.Offline:
		words = append(words, "offline mode")
	case w.Open():
		words = append(words, "writable")
	default:
		words = append(words, "read-only")
	}
	for _, ring := range t.Rings() {
		if slices.Contains(ring, i) && len(ring) > 1 {
			words = append(words, fmt.Sprintf("in a ring of %d", len(ring)))
		}
	}
	if g := n.Group; g != nil {
		state := g.State
		if !g.Primary {
			state += ", without quorum"
		}
		words = append(words, state)
	}
	if link != nil {
		words = append(words, t.LinkWords(link))
		for _, l := range t.Sources(i) {
			if l.Source != link.Source {
				words = append(words, "also from "+t.Nodes[l.Source].Name)
			}
		}
	}
	if n.Errant != "" {
		words = append(words, "errant: "+n.Errant)
	}
	words = append(words, n.SemiSync.Words())
	if n.Unseen != nil {
		words = append(words, "not all of it was seen: "+n.Unseen.Words())
	}
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), ", ")
}

// Short is a flavour and its version, without what packagers add.
func (f *Facts) Short() string {
	version, _, _ := strings.Cut(f.Version, "-")
	return strings.TrimSpace(string(f.Flavour) + " " + version)
}

// Words is how a source waits for its replicas; "": it does not.
func (s *SemiSync) Words() string {
	switch {
	case !s.SourceEnabled:
		return ""
	case !s.SourceActive:
		return "semi-sync off now"
	}
	return fmt.Sprintf("semi-sync %d of %d", s.Replicas, max(s.WaitFor, 1))
}

// Words is why a server was not seen, in a few words.
func (f *Failure) Words() string {
	if f == nil {
		return ""
	}
	switch f.Kind {
	case "refused":
		return "nothing listens there"
	case "timeout":
		return "no answer in time"
	case "hung":
		return "it takes connections, and does not answer in time"
	case "unreachable":
		return "no way to it"
	case "login":
		return "it refuses the account"
	case "full":
		return "too many connections"
	case "dropped":
		return "the connection broke"
	case "tls":
		return "TLS failed"
	}
	return oneline.Cut(f.Text, 80)
}

// LinkWords is how a replica follows a source.
func (t *Topology) LinkWords(l *Link) string {
	ch := l.Channel
	if ch == nil {
		return "the source lists it, perhaps still"
	}
	var words []string
	was, marked := follow.Marked(ch.Source)
	_, detached := follow.Unmarked(ch.Source, follow.DetachedSuffix)
	switch {
	case detached:
		words = append(words, "detached by risso from "+was)
	case marked:
		words = append(words, "being rebuilt by risso")
	case !ch.Receiving() && !ch.Applying() && ch.Error().Text == "":
		words = append(words, "stopped")
	case !ch.Applying():
		words = append(words, "does not apply"+errorWords(ch.SQL.Number, ch.SQL.Text))
		if !ch.Receiving() {
			words = append(words, "does not receive"+errorWords(ch.IO.Number, ch.IO.Text))
		}
	case ch.IORunning == "Connecting" && ch.IO.Text == "":
		words = append(words, "connecting")
	case ch.IORunning == "Connecting":
		words = append(words, "cannot connect"+errorWords(ch.IO.Number, ch.IO.Text))
	case !ch.Receiving():
		words = append(words, "does not receive"+errorWords(ch.IO.Number, ch.IO.Text))
	case l.Frozen > 0:
		words = append(words, "receives nothing for "+digits.Span(l.Frozen.Truncate(time.Second)))
	case ch.Behind != nil:
		words = append(words, digits.Span(time.Duration(*ch.Behind)*time.Second)+" behind")
	}
	if l.Missing != nil && *l.Missing > 0 {
		words = append(words, digits.Counted(int64(*l.Missing), "transaction")+" to apply")
	}
	if ch.Delay > 0 {
		words = append(words, "delayed by "+digits.Span(time.Duration(ch.Delay)*time.Second))
	}
	if ch.Name != "" {
		words = append(words, "channel "+ch.Name)
	}
	return strings.Join(words, ", ")
}

func errorWords(number int, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" (%d: %s)", number, oneline.Cut(text, 60))
}

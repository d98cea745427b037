package diagnose

import (
	"cmp"
	"slices"

	"github.com/rissodb/risso/internal/channels"
	"github.com/rissodb/risso/internal/follow"
)

// apartFrom finds a channel that stands still on purpose: Risso keeps it from its source, or it is left over on what is likely the primary. To start it would be wrong.
func (v *view) apartFrom(k int) bool {
	l := &v.Links[k]
	ch, name := l.Channel, v.name(l.Replica)
	if is, _, kept := channels.Kept(ch.Source); kept {
		code, command := "detached", "when it is to replicate again: risso replica attach "+name
		if _, rebuilding := follow.Unmarked(ch.Source, follow.RebuildingSuffix); rebuilding {
			code, command = "rebuilding", "let it end; if nobody is at it any more, risso replica rebuild "+name+" goes on"
		}
		v.add("repl.stopped:"+code, l.Replica, k, "%s is %s", name, is).see("its source is set to %s, a name that leads nowhere", ch.Source).Next = command
		return true
	}
	if !v.LikelyPrimary(l.Replica) {
		return false
	}
	source := v.Nodes[l.Source].Unseen
	d := v.add("repl.stopped:left_over", l.Replica, k, "%s is likely the primary, and has a stopped channel from %s, which looks left over", name, v.source(l)).
		see("it can be written to, and replicas receive from it").see("IO thread %s, SQL thread %s", cmp.Or(ch.IORunning, "No"), cmp.Or(ch.SQLRunning, "No")).
		see("%s was not seen: %s", v.name(l.Source), source.Words())
	if e := ch.Error(); e.Text != "" {
		d.see("%s", failure(e))
	}
	d.Next = "do not start it, nor make " + name + " read-only, before it is known which server is the primary; once it is sure that the channel is left over, on " + name + ": " +
		v.server(l.Replica).ForgetChannel(ch.Name) + " removes it"
	return true
}

// onlyLeftOver reports whether nobody but likely primaries, by channels that look left over, tells of a server as its source.
func (v *view) onlyLeftOver(i int) bool {
	return !slices.ContainsFunc(v.down[i], func(k int) bool { return v.Links[k].Channel != nil && !v.LikelyPrimary(v.Links[k].Replica) })
}

package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/follow"
	"github.com/rissodb/risso/internal/mysql"
)

// channels is about each channel that its replica tells of.
func (v *view) channels() {
	for k := range v.Links {
		l := &v.Links[k]
		if l.Channel == nil {
			continue
		}
		if l.Replica == l.Source {
			v.add("ring.self", l.Replica, k, "%s replicates from itself", v.name(l.Replica)).see("its source is %s", l.Channel.Source)
		}
		if v.apartFrom(k) {
			continue
		}
		switch room := v.noRoom(k); { // a server that waits for room says that its threads run
		case l.Channel.Receiving() && l.Channel.Applying():
			v.late(k)
		case !room:
			v.stopped(k)
		}
		if l.Channel.Receiving() && l.Frozen > 0 {
			ch, s := l.Channel, &v.Nodes[l.Source]
			v.add("repl.frozen", l.Replica, k, "%s received nothing from %s for %s, and says that all is well", v.name(l.Replica), v.source(l), digits.Span(l.Frozen.Truncate(time.Second))).
				see("%s was at %s:%d", s.Name, s.Log.File, s.Log.Pos).see("it stayed at %s:%d, %s", ch.SourceLog, ch.SourcePos, ch.IOState).
				remedy(v.name(l.Replica), v.server(l.Replica).Thread("STOP", "IO_THREAD", ch.Name)+"; "+v.server(l.Replica).Thread("START", "IO_THREAD", ch.Name))
		}
		if ch := l.Channel; ch.Delay > 0 {
			v.add("repl.delayed", l.Replica, k, "%s stays %s behind %s on purpose", v.name(l.Replica), digits.Span(time.Duration(ch.Delay)*time.Second), v.source(l)).see("its delay is set to %s", digits.Span(time.Duration(ch.Delay)*time.Second))
		}
		if host := l.Channel.Source; !l.Channel.TLS && !follow.Loopback(hostOf(host)) && !strings.EqualFold(v.Nodes[l.Replica].Hostname, v.Nodes[l.Source].Hostname) {
			v.add("repl.tls", l.Replica, k, "%s replicates from %s without TLS", v.name(l.Replica), v.source(l)).see("its source is %s", host)
		}
	}
}

// hostOf is an address without its port.
func hostOf(address string) string {
	if i := strings.LastIndexByte(address, ':'); i >= 0 {
		return address[:i]
	}
	return address
}

// late finds a channel that is behind.
func (v *view) late(k int) {
	const some, much = 30, 600
	l := &v.Links[k]
	if l.Channel.Behind == nil {
		return
	}
	lag := *l.Channel.Behind - l.Channel.Delay
	if lag < some {
		return
	}
	d := v.add("repl.lag", l.Replica, k, "the replica %s is %s behind %s", v.name(l.Replica), digits.Age(float64(lag)), v.source(l)).see("it says so itself: %s", digits.Span(time.Duration(*l.Channel.Behind)*time.Second))
	if lag < much {
		d.Severity = warning
	}
	if l.Channel.Delay > 0 {
		d.see("of which %s are wanted", digits.Span(time.Duration(l.Channel.Delay)*time.Second))
	}
	if l.Missing != nil {
		d.see("not applied: %s of %s", digits.Counted(int64(min(*l.Missing, 1<<62)), "transaction"), v.name(l.Source))
	}
	a := v.Nodes[l.Replica].Applier
	if a.Workers > 1 {
		return
	}
	d.see("it applies with one thread")
	names := v.server(l.Replica).Appliers()
	name := names[len(names)-1]
	if !v.server(l.Replica).KnowsSlaveWords() {
		name = names[0]
	}
	d.remedy(v.name(l.Replica), fmt.Sprintf("STOP %[1]s SQL_THREAD; SET GLOBAL %[2]s = 4; START %[1]s SQL_THREAD", name.Word, name.Variable))
}

// noRoom finds a channel that stopped, or waits, for want of room.
func (v *view) noRoom(k int) bool {
	l := &v.Links[k]
	ch := l.Channel
	for _, text := range []string{ch.SQL.Text, ch.IO.Text, ch.IOState, ch.SQLState} {
		low := strings.ToLower(text)
		e := ch.Error()
		if e.Text != text || e.Number != 1021 && e.Number != 1114 {
			if !mysql.WaitsForRoom(text) && !slices.ContainsFunc([]string{"no space left", "errcode: 28", "errno: 28", "disk full", "disk is full"}, func(words string) bool { return strings.Contains(low, words) }) {
				continue
			}
		}
		if text == "" {
			continue
		}
		if ch.Receiving() && ch.Applying() && v.found1("server.no_room", l.Replica) { // its sessions say so already
			return true
		}
		d := v.add("server.no_room", l.Replica, k, "%s has no room for what it replicates from %s", v.name(l.Replica), v.source(l))
		d.see("%s", failure(fleet.ReplicaError{Number: e.Number, Text: text}))
		d.Case = e.Case()
		if !ch.Receiving() || !ch.Applying() { // one that waits goes on by itself
			d.remedy(v.name(l.Replica), v.server(l.Replica).StartReplica(ch.Name))
		}
		return true
	}
	return false
}

// found1 reports whether a code was found of a node.
func (v *view) found1(code string, node int) bool {
	return slices.ContainsFunc(v.found, func(d Diagnosis) bool { return d.Code == code && d.node == node })
}

// stopped finds a channel of which a thread does not run.
func (v *view) stopped(k int) {
	l := &v.Links[k]
	ch, replica := l.Channel, v.name(l.Replica)
	e := ch.Error()
	if e.Text == "" {
		if ch.IORunning == "Connecting" && ch.Applying() { // it just began, or lost its source a moment ago
			v.add("repl.stopped:cannot_connect", l.Replica, k, "%s is connecting to %s", replica, v.source(l)).see("its thread that receives is Connecting, and tells no error yet")
			return
		}
		what := "replication of " + replica + " from " + v.source(l) + " is stopped"
		remedy := v.server(l.Replica).StartReplica(ch.Name)
		switch {
		case ch.Applying():
			what = replica + " does not receive from " + v.source(l) + ": the IO thread is stopped"
		case ch.Receiving():
			what = replica + " receives from " + v.source(l) + ", and does not apply: the SQL thread is stopped"
		}
		d := v.add("repl.stopped:by_command", l.Replica, k, "%s", what).see("IO thread %s, SQL thread %s, without an error", cmp.Or(ch.IORunning, "No"), cmp.Or(ch.SQLRunning, "No"))
		v.waiting(d, l)
		if !v.keep(d, l) {
			d.remedy(replica, remedy)
		}
		return
	}
	n := &v.Nodes[l.Replica]
	id := int64(0)
	fmt.Sscan(n.ServerID, &id)
	if ch.SQL.Text != "" && ch.IO.Text != "" { // each has its own cause
		only := ch.Channel
		only.SQL = fleet.ReplicaError{}
		v.stop(k, only, id)
		only = ch.Channel
		only.IO = fleet.ReplicaError{}
		v.stop(k, only, id)
		return
	}
	v.stop(k, ch.Channel, id)
}

// stop tells an error of a channel.
func (v *view) stop(k int, ch fleet.Channel, id int64) {
	l := &v.Links[k]
	n := &v.Nodes[l.Replica]
	s := v.server(l.Replica).GoOn(ch, mysql.ReplicaSettings{GTIDMode: n.GTID.Mode, ApplyMode: n.Applier.ExecMode, ServerID: id,
		Threads: n.Applier.Workers, Position: n.GTID.Applied})
	verb := "receive from"
	if ch.SQL.Text != "" {
		verb = "apply what it received from"
	}
	e := ch.Error()
	code := "repl.stopped:" + s.Kind
	if s.Kind == "disk" {
		code = "server.no_room"
	}
	d := v.add(code, l.Replica, k, "%s cannot %s %s%s", n.Name, verb, v.source(l), number(e))
	d.see("%s", failure(e)).with(v.name(l.Source))
	d.Case = e.Case()
	if advice := strings.TrimPrefix(s.Advice, "; "); advice != "" {
		d.Next = advice
	}
	if ch.SQL.Text != "" {
		v.waiting(d, l)
	}
	remedy := s.Statements
	if s.Kind == "object_missing" { // skipping is not what helps
		remedy = ""
		d.Next = "make the object as on the source, then start the replica: " + v.server(l.Replica).StartReplica(ch.Name)
	}
	switch {
	case s.Kind == "blocked":
		d.remedy(v.name(l.Source), v.server(l.Source).UnblockHosts())
	case !v.keep(d, l):
		d.remedy(n.Name, remedy)
	}
}

// keep tells how a channel applies what it received, where a START would throw that away and its source does not answer: nobody else may have it. It reports whether it is so.
func (v *view) keep(d *Diagnosis, l *topology.Link) bool {
	if v.Nodes[l.Source].Seen || !v.Nodes[l.Replica].StartDrops(l.Channel) {
		return false
	}
	s, ch := v.server(l.Replica), l.Channel
	applies, after := s.ApplyReceived(ch.Name, ch.RelayLog, ch.RelayPos), s.FollowGTID(ch.Name)
	d.Next = "START would throw away what it received and did not apply, and its source does not answer: "
	if ch.SQL.Text != "" { // the same error again
		d.Next += "once the error is mended, " + applies + " applies that; afterwards " + after
		return true
	}
	d.Next += "the statements apply that; afterwards " + after
	d.remedy(v.name(l.Replica), applies)
	return true
}

// waiting says how much a channel has not applied.
func (v *view) waiting(d *Diagnosis, l *topology.Link) {
	if l.Missing != nil && *l.Missing > 0 {
		d.see("not applied: %s of %s", digits.Counted(int64(min(*l.Missing, 1<<62)), "transaction"), v.name(l.Source))
	}
	if l.Channel.Unapplied > 0 {
		d.see("received and not applied: %s of the source's log", digits.Bytes(l.Channel.Unapplied))
	}
}

func number(e fleet.ReplicaError) string {
	if e.Number == 0 {
		return ""
	}
	return fmt.Sprintf(": error %d", e.Number)
}

// failure is an error with the transaction, table and key that it is about, and the server's words.
func failure(e fleet.ReplicaError) string {
	text := cut(e.Text)
	if words := e.Words(); words != "" {
		return words + ": " + text
	}
	return text
}

// rounds is about rings.
func (v *view) rounds() {
	for _, ring := range v.rings {
		var open []int
		for _, i := range ring {
			if v.Nodes[i].Seen && v.Nodes[i].Writes.Open() && v.Nodes[i].Group == nil {
				open = append(open, i)
			}
		}
		for k := range v.Links {
			l := &v.Links[k]
			if !slices.Contains(ring, l.Replica) || !slices.Contains(ring, l.Source) || l.Channel != nil && l.Channel.Receiving() && l.Channel.Applying() {
				continue
			}
			words := "the ring of %s is broken between %s and %s"
			d := v.add("ring.broken", l.Replica, k, words, listed(v.names(ring)), v.name(l.Source), v.name(l.Replica))
			if l.Channel == nil {
				d.see("%s was not seen; its source lists it, perhaps still", v.name(l.Replica))
			} else {
				d.see("IO thread %s, SQL thread %s", l.Channel.IORunning, l.Channel.SQLRunning)
			}
		}
		if len(open) < 2 {
			continue
		}
		names := v.names(open)
		v.add("ring.two_writable", open[0], -1, "%s of a ring can be written to: %s", digits.Counted(len(open), "server"), listed(names)).see("read_only is off on them").with(names[1:]...)
		v.sameNumbers(open)
	}
}

// sameNumbers finds servers that give the same AUTO_INCREMENT numbers.
func (v *view) sameNumbers(open []int) {
	least, offsets, same := 0, map[int]bool{}, false
	for _, i := range open {
		n := v.Nodes[i].Numbers
		if n.Step == 0 {
			return // not known
		}
		if least == 0 || n.Step < least {
			least = n.Step
		}
		same = same || offsets[n.Offset]
		offsets[n.Offset] = true
	}
	if least >= len(open) && !same {
		return
	}
	d := v.add("ring.auto_increment", open[0], -1, "servers of a ring give the same AUTO_INCREMENT numbers: %s", listed(v.names(open))).with(v.names(open)[1:]...)
	for _, i := range open {
		d.see("%s: auto_increment_increment %d, auto_increment_offset %d", v.name(i), v.Nodes[i].Numbers.Step, v.Nodes[i].Numbers.Offset)
	}
	var words []string
	for place, i := range open {
		s := v.server(i)
		words = append(words, fmt.Sprintf("on %s: %s; %s", v.name(i), s.SetLasting("auto_increment_increment", fmt.Sprint(len(open))), s.SetLasting("auto_increment_offset", fmt.Sprint(place+1))))
	}
	d.Next = strings.Join(words, "; ")
}

// semiSync is about semi-synchronous replication.
func (v *view) semiSync() {
	for i := range v.Nodes {
		n := &v.Nodes[i]
		s := &n.SemiSync
		if !n.Seen || !s.SourceEnabled || len(v.down[i]) == 0 && len(v.up[i]) > 0 { // what may be promoted has it enabled, and nobody to acknowledge
			continue
		}
		waits := s.WaitSessions
		for state, count := range n.Waiting {
			if strings.Contains(strings.ToLower(state), "semi-sync") {
				waits = max(waits, count)
			}
		}
		need := max(s.WaitFor, 1)
		few := fmt.Sprintf("%s connected, %d needed", digits.Plural(s.Replicas, "replica that acknowledges is", "replicas that acknowledge are"), need)
		const many, long = 4, 10 * time.Second
		switch {
		case s.SourceActive && waits > 0 && s.Replicas < need:
			v.add("commit.semisync", i, -1, "%s on %s for replicas that do not acknowledge", digits.Plural(waits, "session waits", "sessions wait"), n.Name).see("%s", few).see("it gives up waiting after %s", digits.Span(s.Timeout))
		case s.SourceActive && waits > 0 && s.Waited >= long:
			v.add("commit.semisync", i, -1, "%s on %s for an acknowledgement that does not come", digits.Plural(waits, "session waits", "sessions wait"), n.Name).see("one has waited for %s", digits.Span(s.Waited)).
				see("%s connected: what they received before they acknowledged they do not acknowledge", digits.Plural(s.Replicas, "replica that acknowledges is", "replicas that acknowledge are")).Next = "risso semisync on tells it what its replicas have; risso group prepare does in a group"
		case s.SourceActive && waits >= many:
			d := v.add("commit.semisync", i, -1, "%s on %s for replicas to acknowledge", digits.Plural(waits, "session waits", "sessions wait"), n.Name).see("%s", few)
			d.Severity = warning
		case !s.SourceActive:
			v.add("semisync.off", i, -1, "semi-synchronous replication of %s fell back to asynchronous", n.Name).see("%s", few).see("%s since its start", digits.Plural(s.Unacknowledged, "commit was not waited for", "commits were not waited for"))
		case s.Replicas < need:
			v.add("semisync.too_few", i, -1, "fewer replicas acknowledge to %s than its commits wait for", n.Name).see("%s", few).see("a commit waits up to %s", digits.Span(s.Timeout))
		}
		for _, k := range v.down[i] {
			v.acknowledges(k)
		}
	}
}

// acknowledges finds a replica that does not acknowledge to a source that waits.
func (v *view) acknowledges(k int) {
	l := &v.Links[k]
	r := &v.Nodes[l.Replica]
	s := &r.SemiSync
	if !r.Seen || l.Channel == nil || !l.Channel.Receiving() || s.ReplicaActive {
		return
	}
	server, name := v.server(l.Replica), l.Channel.Name
	again := server.Thread("STOP", "IO_THREAD", name) + "; " + server.Thread("START", "IO_THREAD", name)
	d := v.add("semisync.not_acknowledging", l.Replica, k, "%s does not acknowledge to %s, which waits for replicas", r.Name, v.source(l))
	switch {
	case s.ReplicaEnabled:
		d.see("it is enabled, and not active: its IO thread runs since before").remedy(r.Name, again)
	case s.ReplicaSetting != "":
		d.see("%s is OFF", s.ReplicaSetting).remedy(r.Name, server.SetLasting(s.ReplicaSetting, "ON")+"; "+again)
	default:
		d.see("its plug-in is not installed")
	}
}

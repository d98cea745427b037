package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/blockers"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/oneline"
)

// helpLines are what ? shows.
var helpLines = []string{
	"0 F  the fleet: all servers, worst first        enter  look at the chosen server",
	"1 Q  processes                                  n N    the next, the previous server",
	"2 L  locks: who waits for whom                  tab    the next view",
	"3 T  transactions                               up down, page up, page down, home, end",
	"4 M  replication",
	"5 S  statements: what cost most in 5 s",
	"6 B  InnoDB's numbers",
	"",
	"k    kill the chosen connection (asked twice)   x      kill its statement only",
	"e    the plan of the statement that it runs     enter  its statement in full",
	"",
	"f /  filter: user=app host=web db=shop command=Query state=lock time>5 words",
	"c    no filter (so does escape)                 i      idle sessions too, or not",
	"s    sort by the next column                    r      the other way round",
	"p    pause                                      space  read now",
	"d    seconds between readings",
	"?    this help (or h)                           q      quit (or Ctrl-C)",
	"",
	"With --at:  left right  a second back, on       [ ]    a minute",
	"            { }         an hour                 end    the newest second",
}

// seconds writes how long something lasts; a clock that was set back is no time.
func seconds(v float64) string { return digits.Seconds(max(v, 0)) }

// screen is all that is drawn.
func (u *ui) screen(width, height int) []line {
	if u.page != nil {
		return u.pageLines(width, height)
	}
	head := u.head(width)
	var foot []line
	switch {
	case u.kill != nil:
		foot = u.kill.lines()
		for i := range foot {
			if parts := wrapped([]string{foot[i].text}, width); len(parts) > 3 { // a long statement does not push the question off the screen
				foot[i].text = oneline.Cut(foot[i].text, 3*width)
			}
		}
		foot = spread(foot, width)
	case u.input != nil:
		foot = []line{{tail(u.input.label+u.input.text+"▏", width), bold}}
	case u.note != "" && time.Now().Before(u.noteTill):
		foot = spread([]line{{u.note, notice}}, width)
	}
	room := max(height-len(head)-len(foot), 1)
	body := u.body(width, room)
	if len(body) > room {
		body = body[:room]
	}
	for len(body) < room {
		body = append(body, line{})
	}
	return slices.Concat(head, body, foot)
}

// tail is the end of a text that is longer than the screen is wide.
func tail(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return "…" + string(r[len(r)-width+1:])
	}
	return s
}

// spread breaks lines that are too long.
func spread(list []line, width int) (out []line) {
	for _, l := range list {
		for _, part := range wrapped([]string{l.text}, width) {
			out = append(out, line{part, l.style})
		}
	}
	return out
}

func (u *ui) pageLines(width, height int) []line {
	p := u.page
	lines := p.lines
	if p.wide != nil {
		lines = p.wide(width)
	}
	p.top = min(max(p.top, 0), max(len(lines)-height+1, 0))
	out := []line{{p.title + "   (up, down; any other key goes back)", bold}}
	for _, l := range lines[p.top:min(len(lines), p.top+height-1)] {
		out = append(out, line{l, plain})
	}
	return out
}

// head is the upper lines: where and when, the views, what is the matter.
func (u *ui) head(width int) []line {
	when := time.Now()
	if u.view != viewFleet && !u.m.at.IsZero() {
		when = u.m.at
	}
	first := "risso top " + when.Format(time.TimeOnly) + " every " + digits.Span(u.interval)
	if u.past != nil {
		first = "risso top " + u.past.words()
	}
	if u.paused {
		first += " PAUSED"
	}
	if u.view != viewFleet {
		first += "  " + u.name() + "  " + u.m.server
	}
	var tabs []string
	for i, v := range views {
		name := v.name
		if width < 100 && view(i) != u.view {
			name = oneline.Cut(name, 7)
		}
		if view(i) == u.view {
			name = "[" + name + "]"
		}
		tabs = append(tabs, strconv.Itoa(i)+" "+name)
	}
	out := []line{{first, bold}, {strings.Join(tabs, " ") + "  ? help", plain}}
	if u.view == viewFleet {
		return append(out, line{})
	}
	return append(out, u.vitals()...)
}

// vitals are a server's most important numbers, and the worst that is said of it.
func (u *ui) vitals() []line {
	if u.past != nil {
		return u.past.vitals()
	}
	var out []line
	for _, r := range u.fleet.board.Fleet(time.Now()) {
		if len(u.servers) == 0 || r.ID != u.servers[u.server].Instance.ID {
			continue
		}
		text := fmt.Sprintf("questions/s %s  running %s  sessions %d  waits for locks %d", cmp.Or(figure(r.QPS, digits.Number), "–"), cmp.Or(figure(r.ThreadsRunning, digits.Number), "–"), len(u.m.processes), len(u.m.waits))
		if r.Lag != nil {
			text += "  lag " + digits.Seconds(*r.Lag)
		}
		out = append(out, line{text, plain})
		if len(r.Findings) > 0 {
			out = append(out, line{r.Findings[0].Severity.String() + ": " + r.Findings[0].What, alarm})
		}
	}
	return out
}

// body is what a view shows in height lines.
func (u *ui) body(width, height int) []line {
	if u.view == viewFleet {
		return u.fleetLines(width)
	}
	if u.m.trouble != "" {
		u.rows = nil
		return spread([]line{{u.m.trouble, alarm}}, width)
	}
	if u.m.at.IsZero() {
		u.rows = nil
		return []line{{"Reading …", plain}}
	}
	var out []line
	switch u.view {
	case viewProcesses:
		out = u.processLines(width, height)
	case viewLocks:
		out = u.lockLines(width, height)
	case viewTransactions:
		out = u.transactionLines(width, height)
	case viewReplication:
		out = u.replicationLines(width)
	case viewStatements:
		out = u.statementLines(width)
	case viewInnoDB:
		out = u.innodbLines()
	}
	for _, g := range u.m.gaps {
		text := "Not seen: " + strings.TrimPrefix(g.What+": "+g.Why, ": ")
		if g.Remedy != "" {
			text += ". " + g.Remedy
		}
		out = append(out, line{text, notice})
	}
	return out
}

func (u *ui) fleetLines(width int) []line {
	if u.past != nil {
		u.rows = nil
		return []line{{"A moment of the past is of one server: " + u.past.server + ". 1 shows its processes.", plain}}
	}
	rows := u.fleet.board.Fleet(time.Now())
	u.rows = make([]int64, len(rows))
	u.at = min(max(u.at, 0), max(len(rows)-1, 0))
	var out []line
	for i, l := range fleetTable(rows, u.at).Lines(width) {
		s := plain
		switch {
		case i == 0:
			s = bold
		case i-1 == u.at:
			s = chosen
		}
		out = append(out, line{l, s})
	}
	if len(rows) > 0 {
		out = append(out, line{})
		for _, l := range u.fleet.detail(rows[u.at], width) {
			out = append(out, line{l, plain})
		}
	}
	return out
}

// pick makes the lines of a table of sessions in which one is chosen; ids are those of its rows. What does not fit is left out above
// and below the chosen row.
func (u *ui) pick(t render.Table, ids []int64, width, height int) []line {
	u.rows = ids
	if i := slices.Index(ids, u.selected); i >= 0 && u.selected != 0 {
		u.at = i
	}
	u.at = min(max(u.at, 0), max(len(ids)-1, 0))
	u.selected = 0
	if len(ids) > 0 {
		u.selected = ids[u.at]
	}
	t.Heads = append([]string{""}, t.Heads...)
	for i := range t.Rows {
		mark := " "
		if i == u.at {
			mark = "›"
		}
		t.Rows[i] = append([]string{mark}, t.Rows[i]...)
	}
	lines := t.Lines(width)
	out := []line{{lines[0], bold}}
	lines = lines[1:]
	top := min(max(u.at-(height-3), 0), max(len(lines)-(height-2), 0))
	for i := top; i < min(top+max(height-2, 1), len(lines)); i++ {
		s := plain
		if i == u.at {
			s = chosen
		}
		out = append(out, line{lines[i], s})
	}
	return out
}

// fit is the width of a column of names on a screen.
func fit(s string, width int) string { return oneline.Cut(oneline.Of(s), width) }

func (u *ui) processLines(width, height int) []line {
	list := u.shown()
	t := render.Table{Heads: []string{">ID", "USER", "HOST", "DB", "COMMAND", ">TIME", ">TRX", "STATE", "STATEMENT"}}
	narrow := width < 120
	names, state := 16, 24
	if narrow {
		names, state = 8, 10
	}
	var ids []int64
	for _, p := range list {
		trx := ""
		if p.Transaction != nil {
			trx = seconds(p.Transaction.Seconds)
		}
		text := p.Statement
		if b, ok := u.m.blocker(p.ID); ok && text == "" && b.Statement != "" {
			text = "(last) " + b.Statement
		}
		t.Rows = append(t.Rows, []string{strconv.FormatInt(p.ID, 10), fit(p.User, names), fit(p.Host, names), fit(p.Schema, names), fit(p.Command, 7), seconds(p.Seconds), trx, fit(p.State, state), oneline.Of(text)})
		ids = append(ids, p.ID)
	}
	out := u.pick(t, ids, width, height)
	return append(out, line{u.counted(len(list)), plain})
}

// counted says how many sessions are shown, how, and how many are not.
func (u *ui) counted(n int) string {
	text := fmt.Sprintf("%d of %s, by %s", n, digits.Counted(len(u.m.processes), "session"), orders[u.order].name)
	if u.reverse {
		text += ", reversed"
	}
	if u.m.more > 0 {
		text += fmt.Sprintf("; %d more were not kept", u.m.more)
	} else if u.m.more < 0 {
		text += "; there are more, for which there is no room"
	}
	if u.filter.text != "" {
		text += "; filter: " + oneline.Of(u.filter.text) + " (c clears it)"
	}
	if !u.all && u.past == nil {
		text += "; idle ones hidden (i)"
	}
	return text
}

// lockLines draw who waits for whom as trees, the worst first.
func (u *ui) lockLines(width, height int) []line {
	if len(u.m.waits) == 0 {
		u.rows, u.selected = nil, 0
		return []line{{"Nobody waits for a lock.", plain}}
	}
	t := render.Table{Heads: []string{">ID", "WHO WAITS FOR WHOM"}}
	var ids []int64
	add := func(id int64, text string) {
		t.Rows, ids = append(t.Rows, []string{strconv.FormatInt(id, 10), text}), append(ids, id)
	}
	for _, r := range blockers.Roots(u.m.waits) {
		b := &r.Wait.Blocker
		text := fmt.Sprintf("keeps %d waiting: %s: %s", len(r.Waiters), account(b.User, b.Host), blockers.Doing(b))
		add(b.ID, text)
		u.tree(b.ID, "", map[int64]bool{b.ID: true}, add)
		if end := blockers.Remedy(&r.Wait); end != "" {
			add(b.ID, "└ "+end)
		}
	}
	return u.pick(t, ids, width, height)
}

func account(user, host string) string {
	if user == "" {
		return "somebody"
	}
	return oneline.Of(user + "@" + host)
}

// tree adds those that wait for a session, and those that wait for them. Who waits for several stands under each of them.
func (u *ui) tree(id int64, indent string, seen map[int64]bool, add func(id int64, text string)) {
	var of []read.LockWait
	for _, w := range u.m.waits {
		if w.Blocker.ID == id && !seen[w.Waiter] && !slices.ContainsFunc(of, func(o read.LockWait) bool { return o.Waiter == w.Waiter }) {
			of = append(of, w)
		}
	}
	for i, w := range of {
		branch, next := "├ ", "│ "
		if i == len(of)-1 {
			branch, next = "└ ", "  "
		}
		who, doing := "", ""
		if p, ok := u.m.process(w.Waiter); ok {
			who, doing = account(p.User, p.Host)+" "+seconds(p.Seconds)+" ", ": "+oneline.Of(p.Statement)
		}
		how := "waits for "
		switch {
		case w.Maybe:
			how = "may wait for it: "
		case w.Queued:
			how = "is behind it in the queue for "
		}
		add(w.Waiter, indent+branch+who+how+blockers.Lock(&w)+doing)
		seen[w.Waiter] = true
		u.tree(w.Waiter, indent+next, seen, add)
	}
}

func (u *ui) transactionLines(width, height int) []line {
	if len(u.m.open) == 0 {
		u.rows, u.selected = nil, 0
		return []line{{"No transaction of InnoDB is open.", plain}}
	}
	t := render.Table{Heads: []string{">ID", ">OPEN", "STATE", ">CHANGED", ">LOCKED", "USER", "HOST", "STATEMENT"}}
	var ids []int64
	for _, x := range u.m.open {
		p, _ := u.m.process(x.Session)
		if !u.filter.takes(&p) {
			continue
		}
		text := cmp.Or(x.Statement, p.Statement)
		if b, ok := u.m.blocker(x.Session); ok && text == "" && b.Statement != "" {
			text = "(last) " + b.Statement
		}
		if x.Session == 0 {
			text = "prepared, without a connection: XA RECOVER lists it"
		}
		t.Rows = append(t.Rows, []string{strconv.FormatInt(x.Session, 10), seconds(x.Seconds), fit(x.State, 9), digits.Thousands(x.RowsModified), digits.Thousands(x.RowsLocked), fit(p.User, 10), fit(p.Host, 10), oneline.Of(text)})
		ids = append(ids, x.Session)
	}
	return u.pick(t, ids, width, height)
}

func (u *ui) replicationLines(width int) []line {
	u.rows, u.selected = nil, 0
	if u.past != nil {
		return []line{{"Of replication only the lag is kept with a moment: see above.", plain}}
	}
	if len(u.m.channels) == 0 {
		return []line{{"This server replicates from nobody.", plain}}
	}
	t := render.Table{Heads: []string{"CHANNEL", "SOURCE", "IO", "SQL", ">BEHIND", ">DELAY", "GTID"}}
	running := func(yes bool) string {
		if yes {
			return "running"
		}
		return "STOPPED"
	}
	var errs []line
	for _, c := range u.m.channels {
		behind := "not known"
		if c.Behind >= 0 {
			behind = seconds(float64(c.Behind))
		}
		gtid := "no"
		if c.GTID {
			gtid = "yes"
		}
		t.Rows = append(t.Rows, []string{cmp.Or(oneline.Of(c.Name), "(default)"), fmt.Sprintf("%s:%d", oneline.Of(c.SourceHost), c.SourcePort), running(c.IORunning), running(c.SQLRunning), behind, seconds(float64(c.Delay)), gtid})
		if c.LastError != "" {
			errs = append(errs, spread([]line{{cmp.Or(oneline.Of(c.Name), "(default)") + ": " + oneline.Of(c.LastError), alarm}}, width)...)
		}
	}
	var out []line
	for i, l := range t.Lines(width) {
		s := plain
		if i == 0 {
			s = bold
		}
		out = append(out, line{l, s})
	}
	return append(append(out, line{}), errs...)
}

func (u *ui) statementLines(width int) []line {
	u.rows, u.selected = nil, 0
	switch {
	case u.past != nil:
		return []line{{"Statements by class are not kept with a moment: risso serve's page has them by the minute.", plain}}
	case len(u.m.statements) == 0:
		return []line{{fmt.Sprintf("Nothing has been counted yet: classes are compared every %s.", digits.Span(digestsEvery)), plain}}
	}
	t := render.Table{Heads: []string{">LOAD", ">CALLS/S", ">AVERAGE", ">ROWS READ/CALL", ">ERRORS", "DB", "STATEMENT"}}
	for _, s := range u.m.statements {
		calls := float64(s.Calls)
		t.Rows = append(t.Rows, []string{digits.Three(s.Seconds / s.seconds), digits.Number(calls / s.seconds), seconds(s.Seconds / calls), digits.Number(float64(s.RowsExamined) / calls), digits.Thousands(s.Errors), fit(s.schema, 12), oneline.Of(s.text)})
	}
	var out []line
	for i, l := range t.Lines(width) {
		s := plain
		if i == 0 {
			s = bold
		}
		out = append(out, line{l, s})
	}
	return out
}

package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/serve/config"
)

// view is what the screen shows.
type view int

const (
	viewFleet view = iota
	viewProcesses
	viewLocks
	viewTransactions
	viewReplication
	viewStatements
	viewInnoDB
)

// views are the views, their digit being their place here, and the letter that innotop has for them.
var views = []struct{ name, key string }{
	{"Fleet", "F"}, {"Processes", "Q"}, {"Locks", "L"}, {"Transactions", "T"}, {"Replication", "M"}, {"Statements", "S"}, {"InnoDB", "B"},
}

func (v view) name() string { return views[v].name }

// ui is the state of the screen. It belongs to the goroutine of run.
type ui struct {
	fleet    *topScreen
	servers  []config.Watched
	server   int // the one that is looked at
	view     view
	interval time.Duration
	paused   bool
	all      bool // idle sessions, those of Risso and of the server too
	filter   filter
	order    int
	reverse  bool
	past     *past // nil: the present

	m        moment
	rows     []int64 // the sessions of the rows on the screen; 0: none
	selected int64   // session
	at       int     // row
	note     string
	noteTill time.Time
	kill     *killing
	input    *prompt
	page     *page

	jobs       chan job
	done       chan then
	pending    bool // a reading is on its way
	stop       func()
	lookedAt   time.Time
	statements *digests
}

// prompt is a line that is being typed.
type prompt struct {
	label, text string
	take        func(text string)
}

// page is a text that covers the screen.
type page struct {
	title string
	lines []string
	wide  func(width int) []string // instead of lines
	top   int
}

func newUI(t *topScreen, servers []config.Watched, interval time.Duration) *ui {
	u := &ui{fleet: t, servers: servers, interval: interval, done: make(chan then), view: viewFleet}
	if len(servers) == 1 {
		u.view = viewProcesses
	}
	return u
}

// name is the server's that is looked at.
func (u *ui) name() string {
	if u.past != nil {
		return u.past.server
	}
	if len(u.servers) == 0 {
		return "this host"
	}
	return u.servers[u.server].Instance.Name
}

// say shows a message for some seconds.
func (u *ui) say(text string) { u.sayFor(text, 8*time.Second) }

func (u *ui) sayFor(text string, d time.Duration) { u.note, u.noteTill = text, time.Now().Add(d) }

// failed takes what a job could not do.
func (u *ui) failed(at time.Time, what string) {
	u.pending = false
	u.m = moment{at: at, server: u.m.server, trouble: what}
}

// run shows the screen each interval and follows keys, until q, Ctrl-C or the end of ctx. It begins with the worker of the server.
func (u *ui) run(ctx context.Context, tty *terminal) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	keys := make(chan []string)
	go tty.read(ctx, keys)
	if u.past != nil {
		u.past.ctx, u.past.group = ctx, &group
	}
	u.choose(ctx, &group, u.server)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	n := 0
	for u.fleet.count == 0 || n < u.fleet.count {
		u.ask(false)
		width, height := tty.size()
		if err := tty.draw(u.screen(width, height)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			n++
		case tell := <-u.done:
			tell(u)
		case s := <-tty.signals:
			if s == unix.SIGTSTP {
				if err := tty.suspend(); err != nil {
					return err
				}
			}
		case list := <-keys:
			for _, key := range list {
				was := u.server
				end, err := u.press(key, tty)
				if err != nil || end {
					return err
				}
				if u.server != was {
					u.choose(ctx, &group, u.server)
				}
			}
		}
	}
	return nil
}

// choose looks at another server.
func (u *ui) choose(ctx context.Context, group *sync.WaitGroup, server int) {
	if u.stop != nil {
		u.stop()
	}
	switch {
	case u.past != nil:
		return
	case len(u.servers) == 0:
		u.m = moment{at: time.Now(), trouble: "No server is watched, only this host."}
		return
	}
	ctx, u.stop = context.WithCancel(ctx)
	u.jobs, u.done, u.pending, u.m, u.selected, u.at = make(chan job, 8), make(chan then), false, moment{}, 0, 0
	w := &worker{target: u.servers[server].Target, jobs: u.jobs, done: u.done}
	group.Go(func() { w.run(ctx) })
}

// do hands a job to the worker of the server.
func (u *ui) do(j job) {
	select {
	case u.jobs <- j:
	default:
		u.say("The server does not answer: " + fmt.Sprint(cap(u.jobs)) + " questions wait already.")
	}
}

// ask reads the server again when it is due, or at once.
func (u *ui) ask(now bool) {
	if u.past != nil {
		u.past.ask(u)
		return
	}
	// A tick may come a little early: a tenth of a second less is due as well.
	if u.view == viewFleet || u.pending || u.jobs == nil || !now && (u.paused || time.Since(u.lookedAt) < u.interval-100*time.Millisecond) {
		return
	}
	if u.statements == nil {
		u.statements = &digests{}
	}
	v, statements := u.view, u.statements
	u.pending, u.lookedAt = true, time.Now()
	u.do(func(ctx context.Context, c *mysql.Conn) (then, error) {
		m, err := look(ctx, c, v, statements)
		if err != nil {
			return nil, err
		}
		return func(u *ui) {
			u.pending = false
			if !u.paused || u.m.at.IsZero() {
				u.m = m
			}
		}, nil
	})
}

// press takes a key; end says that it ends the command.
func (u *ui) press(key string, tty *terminal) (end bool, err error) {
	switch {
	case key == "ctrl-c":
		return true, nil
	case key == "ctrl-z":
		return false, tty.suspend()
	case u.kill != nil:
		u.answerKill(key)
		return false, nil
	case u.input != nil:
		u.typed(key)
		return false, nil
	case u.page != nil:
		_, height := tty.size()
		u.turn(key, height)
		return false, nil
	}
	if key == "q" || key == "escape" && u.view == viewFleet {
		return true, nil
	}
	u.command(key, tty)
	return false, nil
}

// command is what a key does on a view.
func (u *ui) command(key string, tty *terminal) {
	_, height := tty.size()
	for i, v := range views {
		if key == v.key || key == fmt.Sprint(i) {
			u.show(view(i))
			return
		}
	}
	if u.past != nil && u.past.press(u, key) {
		return
	}
	switch key {
	case "up":
		u.move(-1)
	case "down":
		u.move(1)
	case "page up":
		u.move(-height / 2)
	case "page down":
		u.move(height / 2)
	case "home":
		u.move(-len(u.rows))
	case "end":
		u.move(len(u.rows))
	case "tab":
		u.show((u.view + 1) % view(len(views)))
	case "enter":
		if u.view == viewFleet {
			u.enter()
		} else {
			u.whole()
		}
	case "escape":
		u.filter = filter{}
	case "k":
		u.askKill(false)
	case "x":
		u.askKill(true)
	case "e":
		u.explain()
	case "p":
		u.paused = !u.paused
		u.ask(!u.paused)
	case " ":
		u.ask(true)
	default:
		u.option(key)
	}
}

// option is what a key changes of how things are shown.
func (u *ui) option(key string) {
	switch key {
	case "f", "/":
		u.input = &prompt{label: "Filter (" + filterHelp + "): ", text: u.filter.text, take: func(text string) {
			f, err := parseFilter(text)
			if err != nil {
				u.say(err.Error())
				return
			}
			u.filter = f
		}}
	case "c":
		u.filter = filter{}
	case "i":
		u.all = !u.all
	case "s":
		u.order = (u.order + 1) % len(orders)
	case "r":
		u.reverse = !u.reverse
	case "d":
		u.input = &prompt{label: "Seconds between readings: ", take: func(text string) {
			d, err := time.ParseDuration(strings.TrimSuffix(strings.TrimSpace(text), "s") + "s")
			if err != nil || d < time.Second || d > time.Hour {
				u.say(fmt.Sprintf("%q: write a number from 1 to 3600", oneline.Of(text)))
				return
			}
			u.interval = d
		}}
	case "n", "N":
		if n := len(u.servers); n > 1 {
			step := 1
			if key == "N" {
				step = n - 1
			}
			u.server = (u.server + step) % n
		}
	case "?", "h":
		u.page = &page{title: "Keys", lines: helpLines}
	}
}

// show turns to a view.
func (u *ui) show(v view) {
	u.view, u.at = v, 0
	u.ask(true)
}

// enter looks at the server that is chosen in the fleet.
func (u *ui) enter() {
	rows := u.fleet.board.Fleet(time.Now())
	if u.at >= len(rows) {
		return
	}
	i := slices.IndexFunc(u.servers, func(w config.Watched) bool { return w.Instance.ID == rows[u.at].ID })
	if i < 0 {
		u.say("This is no server: the fleet's lower half tells what is known of it.")
		return
	}
	u.server = i
	u.show(viewProcesses)
}

// move chooses another row.
func (u *ui) move(by int) {
	if len(u.rows) == 0 {
		return
	}
	u.at = min(max(u.at+by, 0), len(u.rows)-1)
	u.selected = u.rows[u.at]
}

// typed takes a key into the prompt.
func (u *ui) typed(key string) {
	in := u.input
	switch {
	case key == "enter":
		u.input = nil
		in.take(in.text)
	case key == "escape":
		u.input = nil
	case key == "backspace":
		if r := []rune(in.text); len(r) > 0 {
			in.text = string(r[:len(r)-1])
		}
	case len([]rune(key)) == 1 && key >= " ":
		in.text += key
	}
}

// turn takes a key on a page.
func (u *ui) turn(key string, height int) {
	switch key {
	case "up":
		u.page.top--
	case "down":
		u.page.top++
	case "page up":
		u.page.top -= height - 2
	case "page down", " ":
		u.page.top += height - 2
	case "home":
		u.page.top = 0
	default:
		u.page = nil
	}
}

// whole shows a session's statement in full.
func (u *ui) whole() {
	p, ok := u.m.process(u.selected)
	if !ok {
		return
	}
	lines := []string{fmt.Sprintf("%s@%s  schema %s  %s for %s  %s", oneline.Of(p.User), oneline.Of(p.Host), oneline.Of(p.Schema), p.Command, seconds(p.Seconds), oneline.Of(p.State))}
	if t := p.Transaction; t != nil {
		lines = append(lines, fmt.Sprintf("transaction %s, %s, begun %s ago: %s, %d rows locked in %d tables, %s", t.Trx, t.State, seconds(t.Seconds), changes(t), t.RowsLocked, t.Tables, t.Isolation))
	}
	text := p.Statement
	if b, ok := u.m.blocker(p.ID); ok && text == "" {
		text = b.Statement
	}
	lines = append(lines, "")
	for _, l := range strings.Split(text, "\n") {
		lines = append(lines, oneline.Of(l))
	}
	u.page = &page{title: fmt.Sprintf("Connection %d", p.ID), wide: func(width int) []string { return wrapped(lines, width) }}
}

// wrapped breaks lines at width; 0 is a pipe, which has none.
func wrapped(lines []string, width int) (out []string) {
	if width < 1 {
		return lines
	}
	for _, l := range lines {
		r := []rune(l)
		for len(r) > width {
			out, r = append(out, string(r[:width])), r[width:]
		}
		out = append(out, string(r))
	}
	return out
}

// explainPatience bounds an EXPLAIN.
const explainPatience = 5 * time.Second

// explain shows the plan of what the chosen session runs.
func (u *ui) explain() {
	p, ok := u.m.process(u.selected)
	switch {
	case u.past != nil:
		u.say("This is the past: plans of that time are in risso serve's statements.")
		return
	case !ok || p.Statement == "" || p.Command == "Sleep":
		u.say("Choose a session that runs a statement.")
		return
	}
	u.say("Asking for the plan …")
	target := u.servers[u.server].Target.WithPatience(explainPatience)
	u.do(func(ctx context.Context, _ *mysql.Conn) (then, error) { // Take changes the session, so it is another one
		ctx, cancel := context.WithTimeout(ctx, 2*explainPatience)
		defer cancel()
		e, err := planOf(ctx, target, p.ID)
		if err != nil {
			return func(u *ui) { u.say("No plan: " + err.Error()) }, nil
		}
		return func(u *ui) {
			u.note = ""
			u.page = &page{title: fmt.Sprintf("The plan of connection %d", p.ID), wide: e.Lines}
		}, nil
	})
}

func planOf(ctx context.Context, target mysql.Target, id int64) (plan.Explained, error) {
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return plan.Explained{}, err
	}
	defer c.Close()
	taken, err := plan.Take(ctx, c, plan.Request{Connection: id, Timeout: explainPatience})
	if err != nil {
		return plan.Explained{}, err
	}
	e := plan.Explain(taken.Plan, nil, taken.SQL)
	e.Notes = append(e.Notes, taken.Notes...)
	return e, nil
}

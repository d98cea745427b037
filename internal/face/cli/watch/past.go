package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/watch/live"
)

// past is one server at seconds that a risso serve has kept.
type past struct {
	run      *flags.Running
	server   string // its name
	instance string // and its ID
	asked    int64  // the second to be shown, in Unix seconds
	shown    MomentAnswer
	trouble  string
	waiting  bool
	again    bool // another second was chosen meanwhile
	begun    bool
	ctx      context.Context
	group    *sync.WaitGroup
}

// MomentAnswer is what /api/moment answers: the newest second that is kept at or before the one that was asked for.
type MomentAnswer struct {
	Instance string          `json:"instance"` // its ID
	Asked    int64           `json:"asked"`    // Unix seconds
	Oldest   int64           `json:"oldest"`   // the oldest second that is kept
	Newest   int64           `json:"newest"`   // and the newest
	Missing  []MissingSpan   `json:"missing,omitempty"`
	Moment   *MomentRecorded `json:"moment"` // null: none is kept within a minute before
}

// MissingSpan is a span of which nothing is kept.
type MissingSpan struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Why  string `json:"why"` // what made the gap
}

// MomentRecorded is one second of a server.
type MomentRecorded struct {
	Tick         int64                 `json:"tick"`           // Unix seconds
	Down         string                `json:"down,omitempty"` // why it did not answer
	Connected    int                   `json:"connected"`      // sessions, idle ones too
	Sleeping     int                   `json:"sleeping"`       // idle sessions
	More         int                   `json:"more,omitempty"` // sessions that were left out
	Sessions     []SessionRecorded     `json:"sessions"`
	Transactions []TransactionRecorded `json:"transactions"`
	Locks        []read.LockWait       `json:"locks"`
	Numbers      map[string]float64    `json:"numbers"`            // by name
	Deadlock     *DeadlockRecorded     `json:"deadlock,omitempty"` // the latest that was seen up to then
}

// SessionRecorded is a session of a second that was kept.
type SessionRecorded struct {
	ID          int64   `json:"id"`
	User        string  `json:"user"`
	Host        string  `json:"host"`
	Schema      string  `json:"schema,omitempty"`
	Command     string  `json:"command"` // Sleep: it is idle
	State       string  `json:"state,omitempty"`
	Wait        string  `json:"wait"` // what it waits for; running: nothing
	Seconds     float64 `json:"seconds"`
	Statement   string  `json:"statement,omitempty"`
	Transaction float64 `json:"transaction,omitempty"`   // seconds since it began; 0: none
	Trx         string  `json:"trx,omitempty"`           // the ID of the transaction
	Locked      int64   `json:"rows_locked,omitempty"`   // rows that the transaction locks
	Modified    int64   `json:"rows_modified,omitempty"` // changes of rows that it has made
	Blocker     int64   `json:"blocker,omitempty"`       // the connection that it waits for
}

// TransactionRecorded is a transaction of a second that was kept.
type TransactionRecorded struct {
	Session  int64   `json:"session"` // its connection; 0: none
	Trx      string  `json:"trx"`     // the ID of the transaction
	Seconds  float64 `json:"seconds"`
	State    string  `json:"state"`
	Locked   int64   `json:"rows_locked,omitempty"`   // rows that the transaction locks
	Modified int64   `json:"rows_modified,omitempty"` // changes of rows that it has made
}

// DeadlockRecorded is a deadlock.
type DeadlockRecorded struct {
	At    time.Time `json:"at"`    // when it happened
	Drawn string    `json:"drawn"` // drawn as text
}

// readMoment asks risso serve for a second.
func readMoment(ctx context.Context, run *flags.Running, instance string, at int64) (a MomentAnswer, err error) {
	q := url.Values{"instance": {instance}, "at": {strconv.FormatInt(at, 10)}}
	err = run.Do(ctx, http.MethodGet, "/api/moment?"+q.Encode(), nil, "keep moments", &a)
	return a, err
}

// runPast shows a server at a moment of the past.
func runPast(ctx context.Context, s screen.Streams, f topFlags) error {
	if len(f.DSNs) > 0 || f.count > 0 {
		return fault.Usagef("--at shows what risso serve has kept: it takes --server, not --dsn or --count")
	}
	at, err := flags.Lately(f.at, time.Now(), time.Local)
	if err != nil {
		return fault.Usagef("--at %w", err)
	}
	p := &past{run: &flags.Running{To: f.url, TokenFile: f.tokenFile, ConfigFile: f.ConfigFile}, asked: at.Unix()}
	if err := p.find(ctx, f.server); err != nil {
		return err
	}
	a, err := readMoment(ctx, p.run, p.instance, p.asked)
	if err != nil {
		return err
	}
	if f.output == "json" {
		return render.JSON(s.Out, a)
	}
	u := newUI(&topScreen{out: s.Out}, nil, f.interval)
	u.past, u.view, u.all, p.shown, p.begun, u.m = p, viewProcesses, true, a, true, momentOf(a)
	in, out := terminals(s)
	if in == nil {
		return u.print(s.Out)
	}
	tty, err := takeTerminal(in, out)
	if err != nil {
		return err
	}
	defer tty.leave()
	return u.run(ctx, tty)
}

// print writes the moment for a pipe: sessions, and who waits for whom.
func (u *ui) print(w io.Writer) error {
	list := append(u.past.vitals(), u.body(0, 1<<20)...)
	if len(u.m.waits) > 0 {
		u.view = viewLocks
		list = append(append(list, line{}), u.body(0, 1<<20)...)
	}
	text := dayTime(u.past.asked) + "  " + u.past.server + "\n"
	for _, l := range list {
		text += l.text + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// find finds the server of that name, or the only one that risso serve watches.
func (p *past) find(ctx context.Context, name string) error {
	var a struct {
		Instances []live.Row `json:"instances"`
	}
	if err := p.run.Do(ctx, http.MethodGet, "/api/fleet", nil, "tell what it watches", &a); err != nil {
		return err
	}
	var names []string
	for _, r := range a.Instances {
		if r.Kind == fleet.KindHost {
			continue
		}
		names = append(names, r.Name)
		if name == "" || r.Name == name || r.ID == name {
			p.server, p.instance = r.Name, r.ID
		}
	}
	switch {
	case name == "" && len(names) > 1:
		return fault.New(fault.Usage, "--server is one of "+strings.Join(names, ", "), errors.New("risso serve watches several servers"))
	case p.instance == "":
		return fault.New(fault.Usage, "there are: "+strings.Join(names, ", "), fmt.Errorf("risso serve watches no server %q", name))
	}
	return nil
}

// ask reads the second that is to be shown, if it is not the one that is shown; one question at a time.
func (p *past) ask(u *ui) {
	if p.waiting || p.begun && !p.again {
		return
	}
	p.waiting, p.again, p.begun = true, false, true
	at, done := p.asked, u.done
	p.group.Go(func() {
		a, err := readMoment(p.ctx, p.run, p.instance, at)
		tell := func(u *ui) {
			p.waiting = false
			if err != nil {
				p.trouble, u.m = err.Error(), moment{at: time.Unix(at, 0), trouble: err.Error()}
				return
			}
			p.trouble, p.shown = "", a
			u.m = momentOf(a)
		}
		select {
		case done <- tell:
		case <-p.ctx.Done():
		}
	})
}

// step shows another second; none before the oldest or after the newest that is kept.
func (p *past) step(by int64) {
	p.asked += by
	if p.shown.Newest > 0 {
		p.asked = min(max(p.asked, p.shown.Oldest), p.shown.Newest)
	}
	p.again = true
}

// press takes the keys that move in time.
func (p *past) press(u *ui, key string) bool {
	by, ok := map[string]int64{"left": -1, "right": 1, "[": -60, "]": 60, "{": -3600, "}": 3600}[key]
	switch {
	case ok:
		p.step(by)
	case key == "end" && p.shown.Newest > 0:
		p.asked, p.again = p.shown.Newest, true
	default:
		return false
	}
	p.ask(u)
	return true
}

// momentOf is a moment as the screens show it.
func momentOf(a MomentAnswer) moment {
	m := moment{at: time.Unix(a.Asked, 0)}
	r := a.Moment
	switch {
	case r == nil:
		m.trouble = "Nothing is kept of this second, nor of the minute before."
		if a.Oldest > 0 {
			m.trouble += fmt.Sprintf(" Kept is %s to %s, but for gaps.", dayTime(a.Oldest), dayTime(a.Newest))
		}
		for _, g := range a.Missing {
			m.trouble += fmt.Sprintf(" %s to %s: %s.", dayTime(g.From), dayTime(g.To), g.Why)
		}
		return m
	case r.Down != "":
		m.trouble = "The server was down: " + oneline.Of(r.Down)
		return m
	}
	m.at, m.more, m.waits = time.Unix(r.Tick, 0), r.More, r.Locks
	for _, t := range r.Transactions {
		m.open = append(m.open, read.Transaction{Trx: t.Trx, Session: t.Session, Seconds: t.Seconds, State: t.State, RowsModified: t.Modified, RowsLocked: t.Locked})
	}
	for _, s := range r.Sessions {
		p := read.Process{ID: s.ID, User: s.User, Host: s.Host, Schema: s.Schema, Command: s.Command, Seconds: s.Seconds, State: cmp.Or(s.State, s.Wait), Statement: s.Statement}
		if s.Transaction > 0 {
			p.Transaction = &read.Transaction{Trx: s.Trx, Session: s.ID, Seconds: s.Transaction, RowsModified: s.Modified, RowsLocked: s.Locked}
		}
		m.processes = append(m.processes, p)
	}
	return m
}

func dayTime(unix int64) string { return time.Unix(unix, 0).Format(time.DateTime) }

// words say which second is shown, and whether it is the one that was asked for.
func (p *past) words() string {
	text := dayTime(p.asked)
	if r := p.shown.Moment; r != nil && r.Tick != p.shown.Asked {
		text += fmt.Sprintf(" (kept %s before)", digits.Counted(p.shown.Asked-r.Tick, "second"))
	}
	if p.waiting {
		text += " …"
	}
	return text + "  ← → a second, [ ] a minute"
}

// vitals are the numbers of the second, and what it lacks.
func (p *past) vitals() []line {
	r := p.shown.Moment
	if r == nil || p.trouble != "" {
		return nil
	}
	text := fmt.Sprintf("sessions %d, idle %d  waits for locks %d", r.Connected, r.Sleeping, len(r.Locks))
	for _, n := range []struct{ label, key string }{{"questions/s", "questions_per_second"}, {"running", "threads_running"}, {"lag s", "replication_lag"}} {
		if v, ok := r.Numbers[n.key]; ok {
			text += "  " + n.label + " " + digits.Number(v)
		}
	}
	out := []line{{text, plain}}
	for _, g := range p.shown.Missing {
		out = append(out, line{fmt.Sprintf("not kept: %s to %s: %s", dayTime(g.From), dayTime(g.To), oneline.Of(g.Why)), notice})
	}
	return out
}

// numbers are all numbers that were kept, and the latest deadlock.
func (p *past) numbers() []line {
	r := p.shown.Moment
	if r == nil {
		return nil
	}
	var cells []string
	for _, name := range slices.Sorted(maps.Keys(r.Numbers)) {
		v := r.Numbers[name]
		show := digits.Number(v)
		if strings.Contains(name, "bytes") || name == "checkpoint_age" {
			show = digits.Bytes(v)
		}
		cells = append(cells, fmt.Sprintf("%-22s %10s", strings.ReplaceAll(name, "_", " "), show))
	}
	out := columns(cells)
	if d := r.Deadlock; d != nil {
		out = append(out, line{}, line{"The latest deadlock, " + d.At.Local().Format(time.DateTime), bold})
		for _, l := range strings.Split(strings.TrimRight(d.Drawn, "\n"), "\n") {
			out = append(out, line{oneline.Cut(strings.ReplaceAll(l, "\x1b", "�"), 200), plain})
		}
	}
	return out
}

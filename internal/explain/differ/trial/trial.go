// Package trial tries an upgrade: it starts a throw-away server of the new version, gives it a server's settings and definitions, and tells
// what it refuses. The old server is only read.
package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/explain/differ/describe"
	"github.com/rissodb/risso/internal/explain/differ/upgrade"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

// Options say how it is tried.
type Options struct {
	To         string      // the new server as sandbox.Find understands it
	Statements []Statement // those of the application
	Now        time.Time
	Progress   func(string) // nil: nobody
	Dir        string       // root folder of sandboxes; "": the usual one

	// Live is the old server, which is asked for what its optimiser estimates from, and for its plans; nil: it is not at hand, and no plans
	// are compared.
	Live *mysql.Target

	// Find finds servers; nil: sandbox.Find.
	Find func(ctx context.Context, spec string) (sandbox.Server, error)
}

// Statement is one of the application's, as it was recorded.
type Statement struct {
	Class    string // its fingerprint
	SQL      string
	Database string
	Calls    int64
}

// Answer is what an upgrade breaks and changes.
type Answer struct {
	Server   string            `json:"server"`
	From     string            `json:"from"` // flavour and version
	To       string            `json:"to"`
	Tried    bool              `json:"tried"` // false: no such server is installed here, all is by rules
	Problems []upgrade.Problem `json:"problems"`
	Loaded   Loaded            `json:"loaded"`
	Plans    []PlanChange      `json:"plans,omitempty"` // statements whose plan changes, or that are refused
	Compared int               `json:"statements_compared"`
	Unknown  []PlanUnknown     `json:"plans_unknown,omitempty"` // statements whose plans could not be compared
	// NotTried is what the trial leaves open, and why.
	NotTried []fleet.Trouble `json:"not_tried,omitempty"`
}

// Loaded counts what the new server was given.
type Loaded struct {
	Settings int `json:"settings"`
	Tables   int `json:"tables"`
	Objects  int `json:"objects"`
	Refused  int `json:"refused"`
	// Statistics counts tables, and partitions, whose statistics were copied.
	Statistics int `json:"statistics"`
}

// trial is one at work.
type trial struct {
	Options
	d     *differ.Description
	facts upgrade.Facts
	kind  fleet.Server
	out   *Answer
}

// Run says what an upgrade would break. facts are what was asked of the old server besides its description.
func Run(ctx context.Context, d *differ.Description, facts upgrade.Facts, o Options) (*Answer, error) {
	if o.Find == nil {
		o.Find = sandbox.Find
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	t := &trial{Options: o, d: d, facts: facts, out: &Answer{Server: d.Name, From: d.Server.String()}}
	for _, u := range d.Unread {
		t.open(u.Area, u.Why, u.Remedy)
	}
	t.out.NotTried = append(t.out.NotTried, facts.NotAsked...)
	srv, err := o.Find(ctx, o.To)
	if errors.Is(err, sandbox.ErrNoServer) {
		kind, ok := sandbox.Named(o.To)
		if !ok {
			return nil, err
		}
		t.kind = kind
		t.out.To = kind.String() + " (not installed here)"
		t.out.Problems = upgrade.Find(d, facts, kind)
		t.statementsByRules()
		t.open("all of it", "no "+o.To+" is installed here: the answer is by rules, and nothing of it was tried", "install it; RISSO_SERVERS names a folder")
		return t.out, t.finish()
	}
	if err != nil {
		return nil, err
	}
	t.kind = srv.Kind()
	t.out.To, t.out.Tried = t.kind.String(), true
	if t.kind.SameKind(d.Server) && t.kind.Number < d.Server.Number {
		t.open("the way back", "the new server is older: files of a newer one cannot be used by it, only a dump can be loaded", "")
	}
	t.out.Problems = upgrade.Find(d, facts, t.kind)
	return t.out, errors.Join(t.try(ctx), t.finish())
}

func (t *trial) open(what, why, remedy string) {
	t.out.NotTried = append(t.out.NotTried, fleet.Trouble{What: what, Why: why, Remedy: remedy})
}

func (t *trial) finish() error {
	upgrade.Sort(t.out.Problems)
	t.out.Problems = slices.CompactFunc(t.out.Problems, func(a, b upgrade.Problem) bool { return a.ID == b.ID && a.Object == b.Object && a.What == b.What })
	return nil
}

// purpose is what throw-away servers are claimed for.
const purpose = "upgrade"

// box is a throw-away server.
type box struct {
	*sandbox.Passing
	args []string // with which it started last: the old server's settings
}

// why says of an error what of the server may be its cause, and what to do about a full disk: a server that found no room says so in its log alone.
func (b *box) why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if err = b.Why(err); errors.Is(err, sandbox.ErrFull) {
		return fault.New(fault.Failed, "free some, or name another folder in RISSO_SANDBOX_DIR", err)
	}
	return err
}

// restart starts it once more as it is.
func (b *box) restart(ctx context.Context) error {
	if err := b.Primary().Stop(ctx); err != nil {
		return err
	}
	return b.Primary().Start(ctx, b.args...)
}

// up starts a throw-away server. The caller ends it.
func (t *trial) up(ctx context.Context, spec string) (*box, error) {
	t.Progress("start " + spec)
	s, err := sandbox.UpFor(ctx, purpose, sandbox.Options{Dir: t.Dir, Servers: []string{spec}, Find: t.Find, Settings: []string{"event_scheduler=OFF"}, AnswerTimeout: 5 * time.Minute, StartTimeout: 2 * time.Minute})
	if err != nil {
		return nil, err
	}
	return &box{Passing: s}, nil
}

// target is a node's root.
func target(n *sandbox.Node) (mysql.Target, error) { return mysql.ParseTarget(n.DSN) }

func (t *trial) try(ctx context.Context) (err error) {
	box, err := t.up(ctx, t.To)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(box.why(ctx, err), box.End(ctx)) }()
	to, err := target(box.Primary())
	if err != nil {
		return err
	}
	fresh, err := describe.Take(ctx, to, describe.Options{Now: t.Now})
	if err != nil {
		return fmt.Errorf("describe the new server: %w", err)
	}
	t.out.Problems = append(t.out.Problems, upgrade.Defaults(t.d, fresh)...)
	t.accounts(fresh)
	if err := t.settings(ctx, box, fresh); err != nil {
		return err
	}
	l := &loader{trial: t}
	if err := l.open(ctx, to); err != nil {
		return err
	}
	defer l.close()
	if err := l.load(ctx); err != nil {
		return err
	}
	t.merge(l.refused)
	if err := t.words(ctx, l); err != nil {
		return err
	}
	return t.plans(ctx, box)
}

// accounts marks what the new server says of ways to log in: which plug-ins it has.
func (t *trial) accounts(fresh *differ.Description) {
	t.out.Problems = slices.DeleteFunc(t.out.Problems, func(p upgrade.Problem) bool { return p.ID == "account.plugin" })
	for _, name := range sorted(t.d.Accounts) {
		for _, plugin := range t.d.Accounts[name].Plugins {
			if strings.HasPrefix(fresh.Plugins[plugin], "ACTIVE") {
				continue
			}
			p := upgrade.LostLogin(name, plugin, t.d.Server)
			p.Tried = true
			t.out.Problems = append(t.out.Problems, p)
		}
	}
}

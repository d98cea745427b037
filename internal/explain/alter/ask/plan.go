package ask

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Options are what a plan is asked for.
type Options struct {
	Target    mysql.Target
	Statement string
	Sample    int64         // bytes of the real rows to time the change on; 0: none
	Watch     time.Duration // how long to watch what goes on with the table
	File      string        // the option file that tools are told to read the password from
	Dir       string        // of sandboxes; "": as usual
	Box       *mysql.Target // a server to ask instead of a sandbox, all of which may be thrown away
	Say       func(string)  // a step begins; nil: silence
}

// Planned is a plan with what it was made of.
type Planned struct {
	alter.Plan
	Facts     alter.Facts
	Statement alter.Statement
	Server    mysql.Server
}

// Plan learns all that a plan is made of, and makes it. The server is only read.
func Plan(ctx context.Context, o Options) (p Planned, err error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	c, err := mysql.Connect(ctx, o.Target, nil)
	if err != nil {
		return p, err
	}
	defer c.Close()
	p.Server = c.Server
	if p.Statement, err = Parse(c, o.Target, o.Statement); err != nil {
		return p, err
	}
	o.Say("read the table's definition")
	if p.Facts, err = Facts(ctx, o.Target, c, p.Statement, o.Watch); err != nil {
		return p, err
	}
	p.Facts.Login = login(o, c.Server)
	a, empty, s, err := answer(ctx, o, &p.Facts, p.Statement)
	if err != nil {
		return p, err
	}
	p.Plan = alter.Make(&p.Facts, p.Statement, a, empty, s)
	return p, nil
}

// answer asks a sandbox, or the manual's table where there is none.
func answer(ctx context.Context, o Options, f *alter.Facts, st alter.Statement) (a alter.Answer, empty time.Duration, s alter.Sample, err error) {
	var b *Box
	if o.Box != nil {
		b, err = BoxAt(ctx, *o.Box, f)
	} else {
		b, err = OpenBox(ctx, f, o.Sample, o.Dir, o.Say)
	}
	if ctx.Err() != nil {
		return a, 0, s, errors.Join(context.Cause(ctx), closed(b))
	}
	if err != nil {
		a = alter.Documented(f, st)
		a.Notes = append(a.Notes, "no empty clone could be asked: "+err.Error())
		f.Gaps = append(f.Gaps, fleet.Trouble{What: "what a server of this kind answers", Why: err.Error(), Remedy: "risso sandbox servers lists those on this machine; RISSO_SERVERS names folders with others"})
		s.Unmeasured = "no sandbox of that version to measure on"
		return a, 0, s, nil
	}
	defer func() { err = errors.Join(err, closed(b)) }()
	o.Say("ask an empty clone")
	a, empty, err = b.Ask(ctx, f, st)
	if err != nil {
		if ctx.Err() != nil || mysql.ErrorNumber(err) == 0 {
			return a, 0, s, fmt.Errorf("ask an empty clone: %w", err)
		}
		reason := err.Error()
		a, err = alter.Documented(f, st), nil
		a.Notes = append(a.Notes, "no empty clone could be asked: "+reason)
		f.Gaps = append(f.Gaps, fleet.Trouble{What: "what an empty clone answers", Why: reason})
		s.Unmeasured = "there is no clone to measure on"
		return a, 0, s, nil
	}
	if alter.UsedUp(f, st, a) {
		next := st
		next.Algorithm = "INPLACE"
		was := a.Closed(f)
		if a, empty, err = b.Ask(ctx, f, next); err != nil {
			return a, 0, s, fmt.Errorf("ask an empty clone: %w", err)
		}
		a.Attempts = append(was.Attempts, a.Attempts...)
	}
	if a.Error != nil || a.Algorithm == "INSTANT" || o.Sample <= 0 {
		if s.Unmeasured = "nothing was measured"; o.Sample <= 0 {
			s.Unmeasured = "no part of the rows was measured (--sample-size 0)"
		}
		return a, empty, s, nil
	}
	s, err = b.Sample(ctx, o.Target, f, st, a, o.Sample, o.Say)
	return a, empty, s, err
}

func closed(b *Box) error {
	if b == nil {
		return nil
	}
	return b.Close()
}

// login is how a tool of others would reach the server.
func login(o Options, s mysql.Server) alter.Login {
	l := alter.Login{Host: "127.0.0.1", Port: s.Port, Socket: o.Target.Socket(), User: o.Target.User(), File: o.File}
	if host, _, err := net.SplitHostPort(o.Target.Address()); err == nil && l.Socket == "" {
		l.Host, l.Port = strings.Trim(host, "[]"), o.Target.Port()
	}
	return l
}

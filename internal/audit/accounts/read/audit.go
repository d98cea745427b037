package read

import (
	"context"
	"time"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Source is a server to read.
type Source struct {
	Name   string
	Target mysql.Target
	Flags  string // that name it to a command; "": --dsn with its account and address
}

// Options are how servers are audited.
type Options struct {
	Sources []Source
	Policy  accounts.Policy
	Words   []string      // passwords to test in addition to the built-in ones
	Budget  time.Duration // for the test of passwords; 0: none is tested
	Say     func(string)  // progress; nil: none
}

// Audit reads servers, one after the other, tests passwords and judges. A server that cannot be read is in the report with its error.
func Audit(ctx context.Context, o Options, now time.Time) (accounts.Report, error) {
	r := accounts.Report{Made: now, Policy: o.Policy, Rules: accounts.Rules(), Budget: o.Budget.Seconds(), Words: len(accounts.Words()) + len(o.Words)}
	say := o.Say
	if say == nil {
		say = func(string) {}
	}
	var all []*accounts.Account
	for _, src := range o.Sources {
		say("reading " + src.Name)
		begin := time.Now()
		on, list, err := Accounts(ctx, src.Target, src.Name)
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		s := accounts.ServerReport{Server: on, Account: src.Target.String(), Seconds: time.Since(begin).Seconds()}
		if err != nil {
			s.Server, s.Error = &accounts.Server{Name: src.Name}, err.Error()
			if remedy := fleet.RemedyOf(err); remedy != "" {
				s.Error += " (" + remedy + ")"
			}
		}
		if src.Flags != "" {
			s.Server.Flags = src.Flags
		}
		r.Servers = append(r.Servers, s)
		all = append(all, list...)
	}
	say("testing passwords")
	accounts.Try(ctx, all, o.Words, o.Budget)
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	accounts.Compare(all)
	r.Findings = accounts.Judge(all, o.Policy, now)
	for _, a := range all {
		r.Accounts = append(r.Accounts, accounts.Judged{Server: a.On.Name, Account: a, Verdicts: accounts.Verdicts(a, o.Policy, now)})
	}
	return r, nil
}

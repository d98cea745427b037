// Package rotate gives an account a new password while the old one stays valid, and later removes the old one. The new password is kept by
// somebody else before the server has it; neither it nor what the server stores is in a plan, a journal or an error.
package rotate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/audit/accounts/read"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// Options are what is rotated, and how.
type Options struct {
	Source   read.Source
	Account  string // user@host
	Discard  bool   // remove the old password
	AtOnce   bool   // do not keep the old password
	Plugin   string // "": as it is
	Password string // the new one; "": it is drawn
	Store    string // command that keeps the new password; "": none
}

// Rotation is a plan with what it says to people.
type Rotation struct {
	Plan   change.Plan
	Notes  []string // what it could break, and how it goes on
	Undo   string
	conn   *mysql.Conn
	place  string
	name   string
	logins string  // how the account logs in, as the plan takes it; with secrets
	o      Options // what was asked for
	stored bool    // the command of --store has the new password
}

// Close ends its session.
func (r *Rotation) Close() { _ = r.conn.Close() }

// storeTime is how long the command may take that keeps a password.
const storeTime = time.Minute

// Prepare makes the plan; nothing is changed.
func Prepare(ctx context.Context, o Options) (r *Rotation, err error) {
	a, err := find(ctx, o)
	if err != nil {
		return nil, err
	}
	c, err := mysql.Connect(ctx, o.Source.Target, nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	r = &Rotation{conn: c, place: c.Server.Place(), name: a.Object(), logins: logins(a), o: o}
	if err := r.takesChanges(ctx); err != nil {
		return nil, err
	}
	if o.Discard {
		return r, r.discard(a)
	}
	if err := r.takesForms(ctx); err != nil {
		return nil, err
	}
	if err := r.allowed(ctx, o.Password); err != nil {
		return nil, err
	}
	return r, r.renew(a, o)
}

// logins is how an account logs in, to see whether that has changed.
func logins(a *accounts.Account) string {
	text := string(a.Second)
	for _, m := range a.Methods {
		text += "\x00" + m.Plugin + "\x00" + string(m.Secret)
	}
	return text
}

// find reads the account.
func find(ctx context.Context, o Options) (*accounts.Account, error) {
	on, list, err := read.Accounts(ctx, o.Source.Target, o.Source.Name)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(a *accounts.Account) bool { return a.Object() == o.Account || a.Name() == o.Account })
	switch {
	case i < 0:
		return nil, missing(on, list, o.Account)
	case list[i].RoleLike() || list[i].System:
		return nil, fmt.Errorf("%s is a role, or belongs to the server itself", o.Account)
	case !list[i].Known:
		return nil, fleet.WithRemedy(fmt.Errorf("how %s logs in could not be read", o.Account), on.Unread[0].Remedy)
	}
	return list[i], nil
}

// missing says that there is no such account, and which have its name.
func missing(on *accounts.Server, list []*accounts.Account, account string) error {
	err := fmt.Errorf("%s has no account %s that can be seen", on.Name, account)
	var named []string
	for _, a := range list {
		if !a.Role && (a.User == account || strings.HasPrefix(account, a.User+"@")) && a.User != "" {
			named = append(named, a.Object())
		}
		if !a.Known && len(on.Unread) > 0 {
			return fleet.WithRemedy(err, on.Unread[0].Remedy)
		}
	}
	if len(named) > 0 {
		return fleet.WithRemedy(err, "of that name there are: "+strings.Join(named, ", "))
	}
	return fleet.WithRemedy(err, "write it as risso accounts shows it: user@host")
}

// renew plans the first step of a rotation.
func (r *Rotation) renew(a *accounts.Account, o Options) (err error) {
	at := a.Passwords()
	if a.HasSecond || len(at) > 1 {
		return fleet.WithRemedy(fmt.Errorf("%s has several passwords already: a rotation is under way, or somebody gave it more than one", a.Object()), "once all clients have the newest one: risso accounts rotate --discard")
	}
	plugin := o.Plugin
	switch {
	case plugin != "":
	case len(at) == 1:
		plugin = a.Methods[at[0]].Plugin
	default:
		plugin = a.Methods[0].Plugin
	}
	password := o.Password
	if password == "" {
		if password, err = accounts.Draw(); err != nil {
			return err
		}
	}
	secret, err := accounts.NewSecret(plugin, password)
	if err != nil {
		return fleet.WithRemedy(err, "name another with --plugin")
	}
	statement, shown, err := r.statement(a, at, o, [2]string{plugin, string(secret)})
	if err != nil {
		return err
	}
	if o.Store != "" {
		r.Plan = append(r.Plan, change.Step{What: "store the new password by the command of --store", Why: "before the server has it", Do: func(ctx context.Context) error {
			err := store(ctx, o, a, password)
			r.stored = err == nil
			return err
		}})
	}
	r.Plan = append(r.Plan, change.Step{What: shown, Do: func(ctx context.Context) error { return r.exec(ctx, statement) }},
		change.Step{What: "make sure that the server keeps the new password", Do: func(ctx context.Context) error {
			now, err := find(ctx, o)
			if err == nil && !now.Keeps(password) {
				err = fmt.Errorf("the server does not keep the new password of %s; look at SHOW CREATE USER", a.Object())
			}
			return err
		}})
	if a.Replicates != "" {
		r.Notes = append(r.Notes, a.Replicates+": give replicas the new password before the old one is discarded")
	}
	return nil
}

// statement gives the account the new password: the statement, and the same without secrets.
func (r *Rotation) statement(a *accounts.Account, at []int, o Options, login [2]string) (statement, shown string, err error) {
	server := r.conn.Server
	logins, hidden := [][2]string{login}, [][2]string{{login[0], "***"}}
	end := ""
	old := len(at) == 1
	switch {
	case !old:
		r.Notes = append(r.Notes, "it had no password: clients that send none are refused at once")
	case o.AtOnce:
		r.Notes = append(r.Notes, "the old password is void at once: clients that have not got the new one are refused")
	case server.SeveralLogins():
		logins, hidden = nil, nil
		for _, m := range a.Methods { // the old one first: clients that have it see no difference
			logins = append(logins, [2]string{m.Plugin, string(m.Secret)})
			hidden = append(hidden, [2]string{m.Plugin, masked(m)})
		}
		logins, hidden = append(logins, login), append(hidden, [2]string{login[0], "***"})
		r.Notes = append(r.Notes, "this server has no dual passwords: the new one becomes a second way to log in, after the old one; each login by it fails at the old one first, and clients that change plug-in only once in a login (Go's driver) cannot use the second of two ways that are not mysql_native_password")
	case !server.DualPasswords():
		return "", "", fleet.WithRemedy(errors.New("this server can keep only one password: clients that have the old one are refused from then on"), "--at-once does it")
	case login[0] != a.Methods[at[0]].Plugin:
		return "", "", fleet.WithRemedy(errors.New("the old password cannot be kept when the plug-in changes"), "--at-once does it: clients that have the old one are refused from then on; or make a new account")
	default:
		end = " RETAIN CURRENT PASSWORD"
	}
	if old && !o.AtOnce {
		r.Undo = "the old password stays valid until --discard"
		r.Notes = append(r.Notes, "the old password stays valid until --discard: nothing breaks before")
	} else {
		r.Undo = "none: what the server kept of the old password is not kept anywhere"
	}
	return server.SetSecrets(a.Name(), logins...) + end, server.SetSecrets(a.Name(), hidden...) + end, nil
}

// discard plans the second step of a rotation.
func (r *Rotation) discard(a *accounts.Account) error {
	at := a.Passwords()
	statement, shown := "", ""
	switch {
	case a.HasSecond:
		statement = "ALTER USER /* risso: accounts rotate */ " + a.Name() + " DISCARD OLD PASSWORD"
		shown = statement
	case len(at) == 2 && r.conn.Server.SeveralLogins():
		var logins, hidden [][2]string
		for i, m := range a.Methods {
			if i != at[0] {
				logins, hidden = append(logins, [2]string{m.Plugin, string(m.Secret)}), append(hidden, [2]string{m.Plugin, masked(m)})
			}
		}
		gone, stays := a.Methods[at[0]].Plugin, a.Methods[at[1]].Plugin
		r.Notes = append(r.Notes, "of its two passwords the first goes ("+gone+"), the second stays ("+stays+"), which a rotation takes for the newer one: where somebody else made them, make sure of that")
		statement, shown = r.conn.Server.SetSecrets(a.Name(), logins...), r.conn.Server.SetSecrets(a.Name(), hidden...)
	default:
		return fmt.Errorf("%s has one password: there is none to discard", a.Object())
	}
	r.Undo = "none: what the server kept of the old password is not kept anywhere"
	r.Notes = append(r.Notes, "clients that still have the old password are refused at their next login")
	r.Plan = change.Plan{{What: shown, Do: func(ctx context.Context) error { return r.exec(ctx, statement) }}}
	return nil
}

// masked stands for what is kept of a way to log in.
func masked(m accounts.Method) string {
	if m.Secret == "" {
		return ""
	}
	return "***"
}

// exec runs a statement with secrets in it; they are in no error.
func (r *Rotation) exec(ctx context.Context, statement string) error {
	err := r.conn.Exec(ctx, statement)
	if err == nil {
		return nil
	}
	n, stands := mysql.ErrorNumber(err), ""
	switch {
	case r.stored && n != 0:
		stands = "; the server keeps the old password, but the command of --store has the new one: put the old one back there"
	case r.stored:
		stands = "; whether the server took it is not known, and the command of --store has the new one: try which of them logs in"
	}
	if n == errno.ParseError || strings.Contains(err.Error(), "near '") {
		return fmt.Errorf("change the password of %s: the server does not take the statement (error %d)%s", r.name, n, stands)
	}
	return fmt.Errorf("change the password of %s: %w%s", r.name, err, stands)
}

// store gives the new password to a command: on its standard input, with a line's end; the account is in its environment. What the command
// writes is not shown, because it may be the password.
func store(ctx context.Context, o Options, a *accounts.Account, password string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, storeTime, fmt.Errorf("not done within %s", storeTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", o.Store)
	cmd.Stdin = bytes.NewBufferString(password + "\n")
	cmd.Env = append(os.Environ(), "RISSO_ACCOUNT="+a.Object(), "RISSO_USER="+a.User, "RISSO_HOST="+a.Host, "RISSO_SERVER="+o.Source.Name)
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("the command of --store failed, and the server was not changed: %w", err)
	}
	return nil
}

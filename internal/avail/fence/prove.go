package fence

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// end ends what still waits on the server; what new writes wait behind only when commits wait for replicas.
func (f *fencing) end(ctx context.Context) {
	if f.setter == nil || f.result.holding != nil {
		return
	}
	limit, late := cleanTime, f.closedErr == errLate
	if f.released {
		limit = restoreTime
	}
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	if f.released && f.closedErr != nil {
		if f.unrestored = f.restore(ctx); f.unrestored != nil && late {
			f.leave()
			return
		}
	}
	if f.closedErr != nil {
		f.giveUp(ctx)
	}
	if f.endSetter(); late {
		<-f.closed
	}
	_ = f.setter.Close()
	if f.unrestored == nil {
		f.backOnline(ctx)
	}
}

// leave leaves the statement that makes the server read-only as it is: new writes wait behind it until what it waits for is over, or its lock time is.
func (f *fencing) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over, f.result.Pending = true, true
	go func() { // ends with that
		<-f.closed
		f.endSetter()
		_ = f.setter.Close()
	}()
}

// prove reads back what holds.
func (f *fencing) prove(ctx context.Context) {
	r := f.result
	defer func() {
		if !r.Proven && f.unrestored != nil {
			r.By = f.unreleased()
		}
	}()
	if err := f.reconnect(ctx); err != nil {
		r.By = "not proven: it was not asked again: " + err.Error()
		return
	}
	v, err := read.Variables(ctx, f.control, asked)
	if err != nil {
		r.By = "not proven: " + err.Error()
		return
	}
	facts := facts{server: f.control.Server, readOnly: v["read_only"], super: v["super_read_only"], held: r.holding != nil, account: f.control.Server.Account}
	if list, err := read.Clients(ctx, f.control); err == nil {
		r.Left = slices.DeleteFunc(list, func(c read.Client) bool { return f.own[c.ID] })
	} else {
		facts.unknown = err
	}
	r.Closed = facts.server.Closed(facts.readOnly)
	if !facts.server.ClosedToAll(facts.readOnly, facts.super) {
		if r.Writers, err = mysql.Writers(ctx, f.control); err != nil {
			r.Unknown = err.Error()
			facts.unknown = err
		}
	}
	facts.left, facts.writers, facts.late = r.Left, r.Writers, f.closedErr
	r.Proven, r.By = facts.judge()
}

// reconnect connects again where the limit ended the session with a statement.
func (f *fencing) reconnect(ctx context.Context) error {
	if f.control.Exec(ctx, "SELECT /* risso: does it answer? */ 1") == nil {
		return nil
	}
	c, err := connect(ctx, f.target)
	if err != nil {
		return err
	}
	_ = f.control.Close()
	f.control, f.own[c.Server.ConnectionID] = c, true
	return nil
}

// giveUp ends the statement that makes the server read-only, so that it is not found so later by surprise.
func (f *fencing) giveUp(ctx context.Context) {
	c, err := connect(ctx, f.target)
	if err == nil {
		err = c.Exec(ctx, "KILL /* risso: it was not read-only in time */ "+strconv.FormatInt(f.setter.Server.ConnectionID, 10))
		_ = c.Close()
	}
	f.result.Pending = err != nil && mysql.ErrorNumber(err) != errno.NoSuchThread
}

// facts are what a verdict rests on.
type facts struct {
	server          mysql.Server
	readOnly, super string
	held            bool
	account         string // Risso's own
	left            []read.Client
	writers         []string
	unknown         error // why left or writers are not known
	late            error // why it could not be made read-only
}

// judge says whether no client can write, and what proves it or is missing.
func (f facts) judge() (bool, string) {
	switch {
	case f.server.ClosedToAll(f.readOnly, f.super) && f.super != "":
		return true, "super_read_only is ON: no account writes, and no transaction that had begun could be committed since"
	case f.server.ClosedToAll(f.readOnly, f.super):
		return true, "read_only is " + f.readOnly + ": no account writes, and no transaction that had begun could be committed since"
	case !f.server.Closed(f.readOnly):
		return false, "not proven: it is not read-only: " + f.why()
	case f.held:
		return true, "read_only is ON, and a session of Risso's holds the global read lock: it holds as long as that session lives"
	case f.unknown != nil:
		return false, "not proven: read_only is ON, but which accounts it does not hold for is not known: " + f.unknown.Error()
	}
	others := slices.DeleteFunc(slices.Clone(f.writers), func(a string) bool { return a == f.account })
	var sessions []string
	own, _, _ := strings.Cut(f.account, "@")
	for _, c := range f.left {
		if c.User == own {
			continue
		}
		sessions = append(sessions, strconv.FormatInt(c.ID, 10)+" of "+c.User)
	}
	switch {
	case len(others) > 0:
		return false, "not proven: read_only is ON, but it does not hold for " + strings.Join(others, ", ")
	case len(sessions) > 0:
		return false, "not proven: read_only is ON, but these sessions are not ended: " + strings.Join(sessions, ", ")
	}
	return true, "read_only is ON, no account but Risso's own passes it, and no session of a client that had begun before is left"
}

func (f facts) why() string {
	if f.late == nil {
		return "somebody else sets it"
	}
	return f.late.Error()
}

// Words are the result for people.
func (r *Result) Words() string {
	ended := digits.Counted(r.Ended, "session") + " ended"
	if r.Waited > 0 {
		ended += fmt.Sprintf(", %d of them waited for a replica to acknowledge: their transactions are in this server's binary log, and nobody was told that they are committed", r.Waited)
	}
	return fmt.Sprintf("%s: %s; %s; %s", r.Server, r.By, ended, digits.Span(r.Took.Round(time.Millisecond)))
}

package fence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// close makes the server read-only, and ends the sessions of its clients until it is.
func (f *fencing) close(ctx context.Context) {
	state, server := f.result.State, f.control.Server
	if state.SemiSync != "" && state.Timeout < forever { // else commits that wait would be told that all is well when their time is over
		_ = f.do(ctx, "SET GLOBAL /* risso: nobody goes on without a replica */ "+state.SemiSync+"_timeout = "+strconv.Itoa(forever))
	}
	if server.ClosedToAll(state.ReadOnly, state.Super) {
		f.tellClosed()
		f.closed <- nil
	} else if err := f.connectSetter(ctx); err == nil {
		var long context.Context
		long, f.endSetter = context.WithCancel(context.WithoutCancel(ctx))
		go func() { // ends when the server answers, its lock time is over, or end says so
			err := f.setReadOnly(long)
			if err == nil && server.CanBeClosedToAll() {
				f.tellClosed()
			}
			f.closed <- err
		}()
	} else {
		f.closed <- err
	}
	if f.o.Grace > 0 {
		grace, cancel := context.WithTimeout(ctx, f.o.Grace)
		defer cancel()
		select {
		case err := <-f.closed:
			f.closed <- err
		case <-grace.Done():
		}
	}
	f.endSessions(ctx)
}

func (f *fencing) tellClosed() {
	if f.o.Closed != nil {
		f.o.Closed()
	}
}

// connectSetter connects once more. A server that is full has a place when a session has ended.
func (f *fencing) connectSetter(ctx context.Context) error {
	began := time.Now()
	for {
		c, err := connect(ctx, f.target.WithPatience(f.lockTime()+cleanTime))
		if err == nil {
			f.setter, f.own[c.Server.ConnectionID] = c, true
			return nil
		}
		if mysql.ClassOf(err) != mysql.ClassFull || ctx.Err() != nil {
			f.step("connect to make it read-only", began, err)
			return err
		}
		if _, _, err := f.round(ctx); err != nil {
			f.step("end a session of a server that is full", began, err)
			return err
		}
	}
}

// lockTime is the lock_wait_timeout of the statement that makes the server read-only: longer than the limit, so that it is we who end it; and not much longer, for new writes
// wait behind it, and if this process is killed nobody else ends it.
func (f *fencing) lockTime() time.Duration {
	if f.result.State.SemiSync != "" { // it has to last until commits wait again
		return f.o.Limit + cleanTime + restoreTime
	}
	return f.o.Limit + cleanTime
}

// setReadOnly waits until what is being written is over.
func (f *fencing) setReadOnly(ctx context.Context) (err error) {
	if err = f.setter.Exec(ctx, f.setter.Server.BoundLocks(f.lockTime())); err != nil {
		return err
	}
	for _, statement := range f.setter.Server.CloseWrites() {
		began := time.Now()
		err = f.setter.Exec(ctx, statement)
		if mysql.ErrorNumber(err) == errno.WrongValue { // it is older than it says
			continue
		}
		f.step(statement, began, err)
		return err
	}
	return err
}

// endSessions ends the sessions of clients until the server is read-only, and then those that came meanwhile.
func (f *fencing) endSessions(ctx context.Context) {
	began := time.Now()
	var err error
	defer func() {
		f.result.Ended = len(f.told)
		f.step("KILL "+digits.Counted(len(f.told), "session")+" of clients", began, err)
	}()
	closed, rounds := false, 0
	for !closed || rounds < f.roundsAfter() {
		select {
		case f.closedErr = <-f.closed:
			closed = true
		default:
		}
		list, fresh, rerr := f.round(ctx)
		if rerr != nil {
			err = rerr
		}
		if rerr != nil && !mysql.Answered(rerr) {
			if !closed {
				f.closedErr = errLate
			}
			return
		}
		if closed {
			if rounds++; len(fresh) == 0 || f.closedErr != nil {
				return
			}
			continue
		}
		if rerr == nil && f.mayRelease(ctx) && f.stuck(list) { // who came meanwhile was told to end, or waits behind the setter
			f.release(ctx)
		}
		f.pause(ctx)
	}
}

// roundsAfter is how often sessions are ended that came while the server was made read-only: those of accounts for which that does not hold could write.
func (f *fencing) roundsAfter() int {
	if f.control.Server.CanBeClosedToAll() {
		return 1
	}
	return 10
}

// pause waits for the end of the setter, or a moment.
func (f *fencing) pause(ctx context.Context) {
	t := time.NewTimer(lookEvery)
	defer t.Stop()
	select {
	case err := <-f.closed:
		f.closed <- err
	case <-t.C:
	case <-ctx.Done():
	}
}

// stuck reports whether killed sessions wait for a replica, whose clients are gone, while nobody else can write: the statement that makes the server read-only waits for them,
// and whoever came since waits behind it.
func (f *fencing) stuck(list []read.Client) bool {
	waits, queued := false, false
	for _, c := range list {
		if mysql.AwaitsReplica(c.State) && !c.Killed() { // of the caller's own
			return false
		}
		waits = waits || mysql.AwaitsReplica(c.State)
		queued = queued || f.setter != nil && c.ID == f.setter.Server.ConnectionID && mysql.AwaitsLock(c.State)
	}
	return waits && queued
}

// Locks by name that sessions of Risso's have, so that processes that fence the same server at once do not end each other's.
const (
	atWork  = "risso fence"
	holding = "risso fence holds" // has the global read lock
)

// alone waits until no other process fences this server; not for long, for it may hang.
func (f *fencing) alone(ctx context.Context) {
	began := time.Now()
	for time.Since(began) < f.o.Limit/4 {
		got, err := f.control.Text(ctx, "SELECT /* risso: does another process fence it? */ GET_LOCK("+mysql.Literal(atWork)+", 0)")
		if err != nil {
			return
		}
		if got == "1" {
			if id, err := f.control.Text(ctx, "SELECT /* risso: does another process keep it locked? */ IS_USED_LOCK("+mysql.Literal(holding)+")"); err == nil && id != "" {
				n, _ := strconv.ParseInt(id, 10, 64)
				f.own[n] = true
			}
			return
		}
		_ = delay.For(ctx, lookEvery)
	}
	f.step("wait for another process that fences it", began, errLate)
}

// perKiller is for how many sessions a further connection is worth while.
const (
	perKiller   = 200
	mostKillers = 8
)

// round lists the clients, and ends those that were not told to yet: fresh.
func (f *fencing) round(ctx context.Context) (list, fresh []read.Client, err error) {
	if list, err = read.Clients(ctx, f.control); err != nil {
		return nil, nil, err
	}
	for _, c := range list {
		if f.own[c.ID] || f.told[c.ID] {
			continue
		}
		if mysql.AwaitsReplica(c.State) {
			f.result.Waited++
		}
		f.told[c.ID] = true
		if !c.Killed() {
			fresh = append(fresh, c)
		}
	}
	return list, fresh, f.kill(ctx, fresh)
}

// kill ends sessions. Those that wait for room on a disk are ended when all others are: a MariaDB that cannot begin another binary log then writes none any more, and what
// waits to be committed behind that is committed, and acknowledged, though no replica gets it.
func (f *fencing) kill(ctx context.Context, list []read.Client) error {
	var last, first []read.Client
	for _, c := range list {
		if mysql.WaitsForRoom(c.State) {
			last = append(last, c)
		} else {
			first = append(first, c)
		}
	}
	return errors.Join(f.killMany(ctx, first), killAll(ctx, f.control, last))
}

// killMany ends sessions, many of them over several connections.
func (f *fencing) killMany(ctx context.Context, list []read.Client) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	share := (len(list) + perKiller) / min(mostKillers, len(list)/perKiller+1)
	for len(list) > share {
		part := list[:share]
		list = list[share:]
		c, err := connect(ctx, f.target)
		if err != nil {
			return killAll(ctx, f.control, append(part, list...)) // alone, then
		}
		f.own[c.Server.ConnectionID] = true
		wg.Go(func() {
			_ = killAll(ctx, c, part) // who is left is seen in the next round
			_ = c.Close()
		})
	}
	return killAll(ctx, f.control, list)
}

func killAll(ctx context.Context, c *mysql.Conn, list []read.Client) (denied error) {
	for _, p := range list {
		err := c.Exec(ctx, "KILL /* risso: this server takes no writes any more */ "+strconv.FormatInt(p.ID, 10))
		if err == nil || mysql.ErrorNumber(err) == errno.NoSuchThread {
			continue
		}
		err = fmt.Errorf("end session %d of %s: %w", p.ID, p.User, err)
		if !mysql.Answered(err) {
			return err
		}
		denied = err // one that has SYSTEM_USER, perhaps: the others are ended nevertheless
	}
	return denied
}

// settle does what is left when the server is read-only.
func (f *fencing) settle(ctx context.Context) {
	s := f.control.Server
	if f.closedErr == nil && f.o.Hold && !s.CanBeClosedToAll() {
		f.hold(ctx)
	}
	if f.result.State.Events == "ON" {
		_ = f.do(ctx, NoEvents)
	}
	if f.o.Offline && s.HasOfflineMode() {
		_ = f.do(ctx, goOffline)
	}
	if f.o.Boot && s.KeepsSettings() {
		for _, set := range s.StartSettings() {
			_ = f.do(ctx, s.SetForStart(set[0], set[1]))
		}
	}
}

// hold takes the global read lock, and leaves the connection that has it to the result.
func (f *fencing) hold(ctx context.Context) {
	began := time.Now()
	if f.setter == nil {
		if err := f.connectSetter(ctx); err != nil {
			return
		}
	}
	err := f.setter.Exec(ctx, Lock)
	f.step(Lock, began, err)
	if err == nil {
		f.result.holding = f.setter
		f.tellClosed()
		_ = f.setter.Exec(ctx, "SELECT /* risso: another process that fences it leaves this session */ GET_LOCK("+mysql.Literal(holding)+", 0)")
	}
}

package fence

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// This file switches semi-sync off while the server is made read-only, and makes sure that nobody's commit is acknowledged without a replica meanwhile: a server that does not
// become read-only in spite of that waits for replicas again before anybody can go on.

// Parts of the time that this takes.
const (
	releaseTakes = 1200 * time.Millisecond // the server ends the thread that hears from replicas, which looks once a second
	restoreTime  = 5 * time.Second         // beyond the limit: without it commits would be acknowledged that no replica has
)

// mayRelease reports whether there is need, and time enough, to let commits go on. MariaDB lets killed sessions go on by itself.
func (f *fencing) mayRelease(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && !f.triedOff && time.Until(end) >= releaseTakes && f.result.State.SemiSync != "" && f.control.Server.HasOfflineMode()
}

// turnsAway reports whether clients are turned away meanwhile. Not where replicas have to go on reading: offline_mode ends their sessions, too.
func (f *fencing) turnsAway() bool { return !f.o.Hold && f.result.State.Offline == "OFF" }

// release lets commits go on whose clients are gone: they become visible here, and are acknowledged to nobody.
func (f *fencing) release(ctx context.Context) {
	f.triedOff = true
	if f.turnsAway() {
		f.away = true // also if no answer comes
		if f.do(ctx, goOffline) != nil {
			return
		}
	}
	f.released = true
	_ = f.do(ctx, "SET GLOBAL /* risso: their clients are gone */ "+f.semiSync()+" = OFF")
}

func (f *fencing) semiSync() string { return f.result.State.SemiSync + "_enabled" }

// restore lets commits wait for replicas again where the server did not become read-only. Until it returns nil nobody may end the statement that new writes wait behind.
func (f *fencing) restore(ctx context.Context) (err error) {
	began := time.Now()
	statement := "SET GLOBAL /* risso: it is not read-only: commits wait again */ " + f.semiSync() + " = ON"
	defer func() { f.step(statement, began, err) }()
	before := f.control.Server.ConnectionID
	c, err := connect(ctx, f.target.WithPatience(restoreTime))
	if err != nil {
		return err
	}
	_ = f.control.Close()
	f.control, f.own[c.Server.ConnectionID] = c, true
	// What switches it off may still be under way in the session before, or not even begun.
	if err := c.Exec(ctx, "KILL /* risso: left behind */ "+strconv.FormatInt(before, 10)); err != nil && mysql.ErrorNumber(err) != errno.NoSuchThread {
		return err
	}
	for {
		list, err := read.Clients(ctx, c)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(s read.Client) bool { return s.ID == before }) {
			break
		}
		if err := delay.For(ctx, lookEvery); err != nil {
			return err
		}
	}
	if err := c.Exec(ctx, statement); err != nil {
		return err
	}
	v, err := read.Variables(ctx, c, []string{f.semiSync()})
	if err == nil && v[f.semiSync()] != "ON" {
		err = fmt.Errorf("%s is %q", f.semiSync(), v[f.semiSync()])
	}
	return err
}

// unreleased says what is the matter with a server on which commits may not wait for replicas any more, and which is not read-only.
func (f *fencing) unreleased() string {
	words := "not proven: it is not read-only, and " + f.semiSync() + " could not be switched on again: " + f.unrestored.Error()
	if f.away {
		words += "; offline_mode turns clients away until somebody switches it off"
	}
	return words
}

// backOnline lets clients come again that were turned away.
func (f *fencing) backOnline(ctx context.Context) {
	if f.away && !f.o.Offline && f.reconnect(ctx) == nil {
		_ = f.do(ctx, set("offline_mode", "OFF"))
	}
}

package watch

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/blockers"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
	homefolder "github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/oneline"
)

// killing is a KILL that is being asked for.
type killing struct {
	server        string
	session       read.Process
	last          string // the statement that it runs, or ran last; empty: not known
	waiters       []int64
	onlyStatement bool
	again         bool // it was confirmed once
}

// statement is what is going to be sent, without its comment.
func (k *killing) statement() string {
	if k.onlyStatement {
		return fmt.Sprintf("KILL QUERY %d", k.session.ID)
	}
	return fmt.Sprintf("KILL %d", k.session.ID)
}

// askKill begins to ask for a KILL of the chosen session.
func (u *ui) askKill(onlyStatement bool) {
	if u.past != nil {
		u.say("This is the past: nothing can be killed there.")
		return
	}
	p, ok := u.m.process(u.selected)
	switch {
	case u.view == viewFleet || u.selected == 0:
		u.say("Choose a session first, by up and down.")
		return
	case !ok:
		u.say(fmt.Sprintf("Connection %d is not there any more.", u.selected))
		return
	}
	if why := blockers.Untouchable(p); why != "" {
		u.say(fmt.Sprintf("Connection %d is not killed: %s.", p.ID, why))
		return
	}
	if onlyStatement && p.Command == "Sleep" {
		u.say(fmt.Sprintf("Connection %d runs no statement. k ends the connection, and its transaction with it.", p.ID))
		return
	}
	k := &killing{server: u.name(), session: p, last: p.Statement, onlyStatement: onlyStatement}
	if b, ok := u.m.blocker(p.ID); ok {
		k.last = cmp.Or(k.last, b.Statement)
	}
	for _, r := range blockers.Roots(u.m.waits) {
		if r.Wait.Blocker.ID == p.ID {
			k.waiters = r.Waiters
		}
	}
	u.kill = k
}

// lines ask the question.
func (k *killing) lines() []line {
	p := &k.session
	doing := "busy for " + digits.Seconds(max(p.Seconds, 0)) + "; it runs "
	if p.Command == "Sleep" {
		doing = "idle for " + digits.Seconds(max(p.Seconds, 0)) + "; its last statement: "
	}
	last := "unknown"
	if k.last != "" {
		last = oneline.Of(k.last)
	}
	out := []line{{k.statement() + " on " + k.server + "?", alarm},
		{fmt.Sprintf("  %s@%s, %s%s", oneline.Of(p.User), oneline.Of(p.Host), doing, last), plain}}
	switch t := p.Transaction; {
	case t != nil && k.onlyStatement:
		out = append(out, line{fmt.Sprintf("  Its transaction, begun %s ago, %s, stays open with its locks: only the statement is undone.", digits.Age(t.Seconds), changes(t)), notice})
	case t != nil:
		out = append(out, line{fmt.Sprintf("  Its transaction began %s ago; %s, which the server undoes before the locks are free.", digits.Age(t.Seconds), changes(t)), notice})
	default:
		out = append(out, line{"  No open transaction of InnoDB is known of it.", plain})
	}
	if strings.HasPrefix(strings.ToUpper(oneline.Of(k.last)), "XA PREPARE") && !k.onlyStatement {
		out = append(out, line{"  Its XA transaction is prepared: a KILL does not end that, XA COMMIT or XA ROLLBACK does.", alarm})
	}
	if n := len(k.waiters); n > 0 {
		out = append(out, line{"  " + digits.Counted(n, "connection") + " " + digits.Plural(n, "waits", "wait")[len(digits.Thousands(n))+1:] + " for it.", plain})
	}
	if k.again {
		return append(out, line{"Sure? It was read again just now. y kills, any other key leaves it.", alarm})
	}
	return append(out, line{"y goes on, any other key leaves it.", bold})
}

// changes says what is undone.
func changes(t *read.Transaction) string {
	if t.RowsModified == 0 {
		return "it has changed no rows"
	}
	return "it has made " + digits.Counted(t.RowsModified, "change") + " of rows"
}

// answerKill takes a key as the answer.
func (u *ui) answerKill(key string) {
	k := u.kill
	u.kill = nil
	if key != "y" && key != "Y" {
		u.say(k.statement() + " was left.")
		return
	}
	if !k.again {
		u.do(func(ctx context.Context, c *mysql.Conn) (then, error) {
			why, now, err := stillThere(ctx, c, k)
			if err != nil {
				return nil, err
			}
			return func(u *ui) {
				if why != "" {
					u.say(why)
					return
				}
				next := *k
				next.session, next.again = now, true
				u.kill = &next
			}, nil
		})
		u.say("Reading it again …")
		return
	}
	u.say(k.statement() + " …")
	u.do(func(ctx context.Context, c *mysql.Conn) (then, error) {
		said, err := u.carryOut(ctx, c, k)
		if err != nil {
			said = k.statement() + " failed: " + err.Error()
		}
		return func(u *ui) { u.sayFor(said, killToldFor) }, nil
	})
}

// killToldFor is how long it is told what was killed.
const killToldFor = 30 * time.Second

// stillThere reads a session again and says why it is not to be killed any more; empty: it is the one that was asked about.
func stillThere(ctx context.Context, c *mysql.Conn, k *killing) (why string, now read.Process, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	list, _, _, _, err := read.Processes(ctx, c)
	if err != nil {
		return "", now, err
	}
	m := moment{processes: list}
	now, ok := m.process(k.session.ID)
	switch {
	case !ok:
		return fmt.Sprintf("Connection %d has ended by itself.", k.session.ID), now, nil
	case now.User != k.session.User || now.Host != k.session.Host:
		return fmt.Sprintf("Connection %d is somebody else's by now: %s@%s. Nothing was killed.", now.ID, oneline.Of(now.User), oneline.Of(now.Host)), now, nil
	case k.onlyStatement && now.Statement != k.session.Statement:
		return fmt.Sprintf("Connection %d does not run that statement any more. Nothing was killed.", now.ID), now, nil
	}
	if why := blockers.Untouchable(now); why != "" {
		return fmt.Sprintf("Connection %d is not killed: %s.", now.ID, why), now, nil
	}
	return "", now, nil
}

// killed is a line of the journal.
type killed struct {
	Time      time.Time    `json:"time"`
	By        string       `json:"by"`      // whom of this machine
	Account   string       `json:"account"` // with which account of the server
	Server    string       `json:"server"`
	Statement string       `json:"statement"`
	Session   read.Process `json:"session"`
}

// carryOut writes down what is going to be killed, and kills it.
func (u *ui) carryOut(ctx context.Context, c *mysql.Conn, k *killing) (said string, err error) {
	why, now, err := stillThere(ctx, c, k)
	if err != nil || why != "" {
		return why, err
	}
	by := homefolder.AccountName(os.Getuid())
	diary, err := change.NewDiary(homefolder.State("kills"), fmt.Sprintf("kill-%d", now.ID))
	if err != nil {
		return "", err
	}
	defer diary.Close()
	if err := diary.Note(killed{time.Now().UTC(), by, c.Server.QuotedAccount(), k.server, k.statement(), now}); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	switch err := c.KillSession(ctx, now.ID, k.onlyStatement); {
	case mysql.ErrorNumber(err) == errno.NoSuchThread:
		return fmt.Sprintf("Connection %d has ended by itself.", now.ID), nil
	case err != nil:
		return "", err
	}
	return fmt.Sprintf("%s sent at %s by %s: %s@%s. Journal: %s", k.statement(), time.Now().Format(time.TimeOnly), by, oneline.Of(now.User), oneline.Of(now.Host), diary.Path()), nil
}

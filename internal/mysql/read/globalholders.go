package read

import (
	"cmp"
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sqltext"
)

// locksServer is a statement that locks the whole server for its session.
var locksServer = regexp.MustCompile(`(?is)^\s*(?:/\*.*?\*/\s*)*(?:FLUSH\s.*\bWITH\s+READ\s+LOCK\b|BACKUP\s+STAGE\s+(?:START|FLUSH|BLOCK_DDL|BLOCK_COMMIT)\b)`)

// locked is when a session was seen running a statement that locks the whole server.
type locked struct {
	statement string
	at        time.Time
}

// mostLocked is of how many sessions that is remembered.
const mostLocked = 100

// remember notes which sessions run a statement that locks the whole server: while they wait for others to end, they are seen.
func (r *Reader) remember(now time.Time) {
	for _, s := range r.waits.sessions {
		if !locksServer.MatchString(s.Text) {
			continue
		}
		if r.locked == nil {
			r.locked = map[int64]locked{}
		}
		r.locked[s.ID] = locked{oneline.Cut(oneline.Of(string(sqltext.Redact(nil, []byte(s.Text)))), 60), now}
	}
	for len(r.locked) > mostLocked {
		delete(r.locked, slices.MinFunc(slices.Collect(maps.Keys(r.locked)), func(a, b int64) int { return r.locked[a].at.Compare(r.locked[b].at) }))
	}
}

// What a guess at who holds a lock of the whole server goes by.
const (
	mostHolders = 3
	lately      = time.Hour              // what a session ran longer ago speaks no longer for it
	early       = 500 * time.Millisecond // the two times are of different moments
	soon        = 2 * time.Second        // somebody waits that soon after the lock was taken, where anybody writes
)

// IdleBefore is a LockWait.Sign that says little: all sessions of an idle pool are so.
const IdleBefore = "it has been idle since before the first of them began to wait"

// globalHolders are the sessions that most probably hold a lock of the whole server, where the server does not say: those that were seen running a
// statement that takes one, then those that have done nothing since the first began to wait, the closest first. None of that is certain.
func globalHolders(ctx context.Context, c *mysql.Conn, ran map[int64]locked) (list []LockWait, err error) {
	known := []string{"0"}
	for _, id := range slices.Sorted(maps.Keys(ran)) {
		known = append(known, strconv.FormatInt(id, 10))
	}
	spent := "TIME"
	if c.Server.MariaDB() {
		spent = "TIME_MS / 1000"
	}
	type guess struct {
		id      int64
		rank    int
		seconds float64
		sign    string
	}
	var guesses []guess
	first := 0.0
	const waits = "(STATE LIKE 'Waiting for backup lock' OR STATE LIKE 'Waiting for global read lock' OR STATE LIKE 'Waiting for commit lock')"
	_, err = allowed(ctx, c, "", "", fmt.Sprintf(`SELECT /* risso: who may have locked the whole server */ p.ID, p.COMMAND, %[1]s, (SELECT MAX(%[1]s) FROM information_schema.PROCESSLIST WHERE %[2]s) AS longest
 FROM information_schema.PROCESSLIST p WHERE p.ID <> CONNECTION_ID() AND p.COMMAND IN ('Sleep', 'Query', 'Execute') AND COALESCE(p.STATE, '') NOT LIKE 'Waiting for%%' AND p.USER <> 'system user'
 ORDER BY p.ID IN (%[3]s) DESC, p.COMMAND = 'Sleep' DESC, ABS(%[1]s - longest) LIMIT 50`, spent, waits, strings.Join(known, ", ")), func(row []sqldriver.Value) error {
		g := guess{id: whole(row[0]), rank: 3}
		g.seconds, _ = number(row[2])
		first, _ = number(row[3])
		before := time.Duration((g.seconds - first) * float64(time.Second))
		idle := mysql.Text(row[1]) == "Sleep"
		was, seen := ran[g.id]
		since := time.Since(was.at)
		switch {
		case seen && idle && g.seconds+soon.Seconds() >= since.Seconds():
			g.rank, g.sign = 0, "it ran "+was.statement+" at "+was.at.Local().Format("15:04:05")+", and nothing since"
		case seen && since < lately:
			g.rank, g.sign = 1, "it ran "+was.statement+" at "+was.at.Local().Format("15:04:05")+", and something else since"
		case idle && before >= -early && before <= soon:
			g.rank, g.sign = 1, "it became idle when the first of them began to wait"
		case idle && before > soon:
			g.rank, g.sign = 2, IdleBefore
		default:
			return nil
		}
		guesses = append(guesses, g)
		return nil
	})
	slices.SortStableFunc(guesses, func(a, b guess) int {
		return cmp.Or(a.rank-b.rank, cmp.Compare(math.Abs(a.seconds-first), math.Abs(b.seconds-first)))
	})
	if i := slices.IndexFunc(guesses, func(g guess) bool { return g.sign == IdleBefore }); i > 0 { // others are more probable
		guesses = guesses[:i]
	}
	for _, g := range guesses[:min(len(guesses), mostHolders)] {
		list = append(list, LockWait{Kind: LockGlobal, Maybe: true, Sign: g.sign, Blocker: Blocker{ID: g.id}})
	}
	return list, err
}

// globalWaits are the waits of all sessions for a lock of the whole server of which the server does not say who holds it.
func globalWaits(ctx context.Context, c *mysql.Conn, sessions []stuck, ran map[int64]locked) (list []LockWait, gaps []fleet.Trouble, err error) {
	if len(sessions) == 0 {
		return nil, nil, nil
	}
	holders, err := globalHolders(ctx, c, ran)
	if len(holders) == 0 {
		holders = []LockWait{{Kind: LockGlobal, Maybe: true}}
	}
	for _, s := range sessions {
		gaps = append(gaps, unnamed(c, s))
		for _, h := range holders {
			h.Waiter = s.id
			list = append(list, h)
		}
	}
	return list, gaps, err
}

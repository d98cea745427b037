package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// Where a server cannot keep all schema changes waiting (LOCK INSTANCE FOR BACKUP), one more session of the snapshot is in
// reserve: its transaction has a shared metadata lock on each table that has not been read. A session that alters such a table waits,
// and later ones wait behind it, the backup's own sessions too; only a session that has the lock already gets through.
// So the reserve immediately reads what another session wants to alter, and lets it go.
const (
	holdMost   = 1000                   // tables: each is opened, and servers other than MySQL 8 go through all that a session holds for each more
	holdSingly = 16                     // the first tables, which are the largest, are let go one by one, the others by openAtOnce
	holdTick   = 250 * time.Millisecond // how often is looked who waits
	holdPing   = 100                    // looks: the reserve is pinged
)

// ErrStalls says that reading was given up because others waited for it.
var ErrStalls = errors.New("others waited for the backup")

// hold is the tables that are held. A nil hold holds nothing.
type hold struct {
	snap    *Snapshot
	o       Options
	st      *mysql.Stream // belongs to the caller of Next
	poke    chan struct{} // there is something to do
	over    chan struct{} // closed when there is no more to read
	end     context.CancelFunc
	done    chan struct{} // the watch has ended
	pinged  time.Time
	endOnce sync.Once

	mu      sync.Mutex
	tables  []mysql.TableName
	at      map[mysql.TableName]int // place in tables
	read    []bool
	free    []bool // not held any more
	upTo    int    // all before this place have been read
	steps   []int  // places where steps begin; the last step is held first, so that the first can be let go first
	step    int    // the steps before are let go
	reading map[mysql.TableName]int
	wanted  []mysql.TableName // by others, and not begun
	aside   []int             // places of those that others want, and that have been read
	broken  bool              // a table may have been altered unnoticed
	lost    error             // why the reserve is of no more use
}

// stepsOf divides n tables into steps.
func stepsOf(n int) (steps []int) {
	for i := 0; i < n; {
		steps = append(steps, i)
		if i < holdSingly {
			i++
		} else {
			i += openAtOnce
		}
	}
	return steps
}

// mayHold reports whether a reserve is of use: the server does not keep changes waiting by itself, and the account sees who waits.
func (s *Snapshot) mayHold(ctx context.Context) bool { return !s.DDLBlocked && s.seesOthers(ctx) }

// openReserve opens the session in reserve, nil if there is none. It is the last of the sessions until the snapshot is there.
func (s *Snapshot) openReserve(ctx context.Context, o Options) (*mysql.Stream, error) {
	if !s.mayHold(ctx) {
		return nil, nil
	}
	st, err := s.session(ctx, o.Guard.target)
	if mysql.ClassOf(err) == mysql.ClassFull {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.Sessions = append(s.Sessions, st)
	return st, nil
}

// hold lets the reserve hold the tables, in its transaction that has just begun.
func (s *Snapshot) hold(ctx context.Context, o Options, reserve *mysql.Stream) error {
	if reserve == nil {
		return nil
	}
	held, err := s.holdTables(ctx, o, reserve)
	switch {
	case err == nil:
		s.held = held
	case outOfTime(err) || mysql.ErrorNumber(err) == errno.Deadlock:
		return fmt.Errorf("%w: a table has been locked by a schema change for longer than %s", ErrLocks, o.LockWait)
	}
	return err
}

// letReserve takes the reserve out of the sessions. Those wait for no change any longer: what they cannot get it reads.
func (s *Snapshot) letReserve(ctx context.Context, o Options) error {
	if s.held == nil {
		return nil
	}
	s.Sessions = s.Sessions[:len(s.Sessions)-1]
	wait := time.Second
	if len(s.held.tables)+len(s.lists.Plain) < s.tables {
		wait = o.LockWait
	}
	for _, st := range s.Sessions {
		if err := s.setLockWait(ctx, st, wait); err != nil {
			return err
		}
	}
	return s.held.start(ctx)
}

// holdTables keeps tables from being altered. Those without transactions are locked.
func (s *Snapshot) holdTables(ctx context.Context, o Options, st *mysql.Stream) (*hold, error) {
	plain := map[mysql.TableName]bool{}
	for _, t := range s.lists.Plain {
		plain[t] = true
	}
	tables := make([]mysql.TableName, 0, min(len(s.lists.Tables), holdMost)) // those of the list itself are let go
	for _, t := range s.lists.Tables {
		if len(tables) == holdMost {
			break
		}
		if !plain[t] {
			tables = append(tables, t)
		}
	}
	h := &hold{snap: s, o: o, st: st, tables: tables, at: make(map[mysql.TableName]int, len(tables)), reading: map[mysql.TableName]int{},
		read: make([]bool, len(tables)), free: make([]bool, len(tables)), steps: stepsOf(len(tables)),
		poke: make(chan struct{}, 1), over: make(chan struct{}), done: make(chan struct{}), pinged: time.Now()}
	for i, t := range tables {
		h.at[t] = i
	}
	if err := s.setLockWait(ctx, st, o.LockWait); err != nil {
		return nil, err
	}
	if err := h.take(ctx, len(h.steps)-1); err != nil {
		return nil, err
	}
	return h, nil
}

// start begins to watch. The watch ends with stop.
func (h *hold) start(ctx context.Context) error {
	watcher, err := mysql.Connect(ctx, h.o.Guard.target, nil)
	if err != nil {
		return fmt.Errorf("watch over tables: %w", err)
	}
	wctx, end := context.WithCancel(context.WithoutCancel(ctx))
	h.end = end
	go func() {
		defer close(h.done)
		defer watcher.Close()
		h.watch(wctx, watcher)
	}()
	return nil
}

// stop ends the watch and the reserve.
func (h *hold) stop() {
	if h == nil {
		return
	}
	if h.end != nil {
		h.end()
		<-h.done
	}
	h.st.Close()
}

// take holds the tables of the steps up to last that are not read, the last step first.
func (h *hold) take(ctx context.Context, last int) error {
	for i := last; i >= h.step; i-- {
		if err := h.st.Exec(ctx, fmt.Sprintf("SAVEPOINT /* risso: keeps tables from being altered */ risso%d", i)); err != nil {
			return err
		}
		var some []mysql.TableName
		h.mu.Lock()
		for at := h.steps[i]; at < h.stepEnd(i); at++ {
			if h.free[at] = h.read[at]; !h.free[at] {
				some = append(some, h.tables[at])
			}
		}
		h.mu.Unlock()
		if err := holdSome(ctx, h.st, some); err != nil {
			return err
		}
	}
	return nil
}

// stepEnd is the place after a step.
func (h *hold) stepEnd(i int) int {
	if i+1 < len(h.steps) {
		return h.steps[i+1]
	}
	return len(h.tables)
}

// holdSome opens tables in a transaction. One that the server refuses spoils the statement for the others.
func holdSome(ctx context.Context, st *mysql.Stream, tables []mysql.TableName) error {
	if len(tables) == 0 {
		return nil
	}
	err := st.Exec(ctx, openStatement(tables))
	var refused *driver.MySQLError
	if !errors.As(err, &refused) || outOfTime(err) || refused.Number == errno.Deadlock {
		return err
	}
	for _, t := range tables {
		if len(tables) == 1 {
			return nil // it shows when it is read
		}
		if err := holdSome(ctx, st, []mysql.TableName{t}); err != nil {
			return err
		}
	}
	return nil
}

// Reserve is the session that holds tables, nil if none does. Who reads with it calls Next in between.
func (s *Snapshot) Reserve() *mysql.Stream {
	if s.held == nil {
		return nil
	}
	return s.held.st
}

// ErrReserve says that the session that held tables is gone.
var ErrReserve = errors.New("the session that kept tables from being altered until they were read was lost")

// Lost says why the session in reserve is useless, nil while it works, or if there is none. It is no longer used then.
func (s *Snapshot) Lost() error {
	h := s.held
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// lose notes that the reserve is gone, and why. It is called with the lock of h.
func (h *hold) lose(err error) {
	if h.lost == nil {
		h.lost = fmt.Errorf("%w (connection %d: %w)", ErrReserve, h.st.ID(), err)
	}
}

// Next waits until a session wants to alter tables that no session has begun to read, and returns them, or until Poke; more is
// false after Over. Meanwhile it lets go of what has been read. If the reserve is lost, Lost says so from then on.
func (s *Snapshot) Next(ctx context.Context) (wanted []mysql.TableName, more bool, err error) {
	h := s.held
	select {
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	case <-h.over:
		return nil, false, nil
	case <-h.poke:
	}
	if err := h.letGo(ctx); err != nil {
		return nil, false, err
	}
	h.mu.Lock()
	wanted = slices.DeleteFunc(h.wanted, func(t mysql.TableName) bool { return h.reading[t] > 0 || h.read[h.at[t]] })
	h.wanted = nil
	h.mu.Unlock()
	return wanted, true, nil
}

// Poke makes Next return.
func (s *Snapshot) Poke() { s.held.wake() }

// Over says that no more will be read.
func (s *Snapshot) Over() {
	if s.held != nil {
		s.held.endOnce.Do(func() { close(s.held.over) })
	}
}

func (h *hold) wake() {
	select {
	case h.poke <- struct{}{}:
	default:
	}
}

// letGo ends the hold on tables that have been read. A reserve that is lost is no reason to fail: changes are found then.
func (h *hold) letGo(ctx context.Context) error {
	h.mu.Lock()
	step := h.step
	for step < len(h.steps) && h.stepEnd(step) <= h.upTo {
		step++
	}
	last := -1 // step of the last table that has to go, which takes along those before
	for _, at := range h.aside {
		i, begins := slices.BinarySearch(h.steps, at)
		if !begins {
			i--
		}
		if !h.free[at] {
			last = max(last, i)
		}
	}
	h.aside = nil
	moved, ping := step > h.step, time.Since(h.pinged) > holdPing*holdTick
	h.step = step
	gone := h.st.Broken()
	if gone != nil && ctx.Err() == nil {
		h.lose(gone)
	}
	h.mu.Unlock()
	if gone != nil {
		return ctx.Err()
	}
	var err error
	switch {
	case last >= step:
		err = h.giveBack(ctx, last)
	case moved:
		err = h.st.Exec(ctx, fmt.Sprintf("ROLLBACK /* risso: tables that are read may be altered */ TO SAVEPOINT risso%d", step-1))
	case ping:
		err = h.st.Exec(ctx, "DO /* risso: still here */ 0")
	default:
		return ctx.Err()
	}
	h.pinged = time.Now()
	if err != nil && ctx.Err() == nil {
		h.mu.Lock()
		h.broken = h.broken || h.step < len(h.steps)
		h.lose(err)
		h.mu.Unlock()
		h.st.Close()
	}
	return ctx.Err()
}

// giveBack lets go of the steps up to one, and takes again what of them has not been read. Who changes a schema between the two
// is noticed.
func (h *hold) giveBack(ctx context.Context, last int) error {
	before, err := readDDL(ctx, h.st)
	if err == nil {
		err = h.st.Exec(ctx, fmt.Sprintf("ROLLBACK /* risso: a table that is read may be altered */ TO SAVEPOINT risso%d", last))
	}
	if err == nil {
		err = h.take(ctx, last)
	}
	if err != nil {
		return err
	}
	after, err := readDDL(ctx, h.st)
	if err == nil && !maps.Equal(before, after) {
		h.mu.Lock()
		h.broken = true
		h.mu.Unlock()
	}
	return err
}

// Reading says that somebody begins to read a table.
func (s *Snapshot) Reading(t mysql.TableName) {
	if h := s.held; h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.reading[t]++
	}
}

// Read says that a table has been read: it may be altered from now on.
func (s *Snapshot) Read(t mysql.TableName) {
	h := s.held
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.reading, t)
	i, ok := h.at[t]
	if !ok {
		return
	}
	h.read[i] = true
	for h.upTo < len(h.read) && h.read[h.upTo] {
		h.upTo++
	}
	if h.step < len(h.steps) && h.stepEnd(h.step) <= h.upTo {
		h.wake()
	}
}

// Held reports whether none of the tables can have been altered between the snapshot and the time when it had been read. It is
// asked when all have been.
func (s *Snapshot) Held() bool {
	return s.kept(func(h *hold) bool { return len(h.tables)+len(s.lists.Plain) == s.tables })
}

// Kept reports whether a table cannot have been altered until it had been read. It is called when all have been.
func (s *Snapshot) Kept(t mysql.TableName) bool {
	return s.kept(func(h *hold) bool { _, held := h.at[t]; return held })
}

// kept reports whether nothing could be altered, or those are held that a question is about.
func (s *Snapshot) kept(held func(*hold) bool) bool {
	if s.DDLBlocked {
		return true
	}
	h := s.held
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return held(h) && !h.broken && h.st.Broken() == nil
}

// seesOthers reports whether the account may see who waits: it has PROCESS.
func (s *Snapshot) seesOthers(ctx context.Context) bool {
	sees := false
	err := s.control.Query(ctx, "SHOW /* risso: may it see who waits? */ GRANTS", func(row [][]byte) error {
		grants, _, global := strings.Cut(strings.ToUpper(string(row[0])), " ON *.*")
		sees = sees || global && (strings.Contains(grants, "PROCESS") || strings.Contains(grants, "ALL PRIVILEGES"))
		return nil
	})
	return err == nil && sees
}

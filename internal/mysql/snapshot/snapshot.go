// Package snapshot makes several sessions see a server as it was at one moment, with the matching position in its binary logs.
// Its locks are bounded: they are released before anything else waits longer than allowed.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// Snapshot is several sessions that see a server as it was at one moment, and the place in its binary logs that belongs to
// that moment.
type Snapshot struct {
	Server   mysql.Server
	Sessions []*mysql.Stream // each in a transaction that reads that moment, prepared by ForRows
	Locked   *mysql.Stream   // holds read locks on the tables without transactions until they are read; nil when there are none
	Position LogPlace
	Sources  []SourcePlace // on a replica: how far it had applied its sources
	At       time.Time     // by the server's clock
	Method   Method
	LockTime time.Duration // how long no other session could commit
	Tries    int           // how often locks or snapshots were asked for
	// DDLBlocked says that the server keeps schema changes waiting until Close.
	DDLBlocked bool
	Notes      []string

	held    *hold
	control *mysql.Stream // asks for locks and positions; its transaction, if any, is irrelevant
	lists   Lists
	tables  int              // of lists.Tables, which are let go when the snapshot is there: there may be 650,000
	ddl     map[string]int64 // counters of statements that change schemas, at the moment
	newest  int64            // see newestTable
}

// Method is how sessions get to see the same moment.
type Method string

// The methods. All but ByBinlog, and ByComparison, hold a lock for the time of a few statements.
const (
	ByBinlog     Method = "binlog snapshots" // no lock: snapshots know their own place in the binary log, and are taken until all have the same
	ByStage      Method = "backup stage"     // BACKUP STAGE BLOCK_COMMIT
	ByGlobalLock Method = "global read lock" // FLUSH TABLES WITH READ LOCK
	ByTableLocks Method = "table locks"      // LOCK TABLES … READ on all tables: accounts without RELOAD
	ByComparison Method = "comparison"       // no lock is allowed: the position before and after has to be the same
)

// LogPlace is a place in a server's binary logs.
type LogPlace struct {
	File    string
	Offset  int64
	GTIDSet string // MySQL: gtid_executed; MariaDB: gtid_binlog_pos at that place
	State   string // MariaDB: gtid_binlog_state at that place, each server's own apart
}

// SourcePlace is how far a replica had applied one of its sources.
type SourcePlace struct {
	Name, Host string
	Port       int
	LogPlace
}

// DefaultLockWait is how long a lock is waited for by default.
const DefaultLockWait = 5 * time.Second

// Options are how a snapshot is taken.
type Options struct {
	Sessions int           // at least 1
	LockWait time.Duration // how long a lock is waited for; then it is no longer asked for, for a while; 0 is DefaultLockWait
	Tries    int           // how often a lock is asked for; 0 is 5
	Method   Method
	Guard    Guard
	// List names what is going to be read. It is called after schema changes are kept waiting, where that is possible, and
	// again when a schema was changed before the snapshot was there. It may use all of the sessions.
	List func(ctx context.Context, server mysql.Server, sessions []*mysql.Stream) (Lists, error)
	// Stalled may be nil. Others wait for a table that is being read: reading should be given up. It is called once, from a
	// goroutine of the snapshot.
	Stalled func(error)
}

// Lists are the tables to be read: they are locked where accounts may not lock the server. Plain are those among them without
// transactions: they stay locked for reading until they have been read.
type Lists struct{ Tables, Plain []mysql.TableName }

// ErrLocks says that no lock was granted in time.
var ErrLocks = errors.New("the server is too busy for the lock that a backup needs")

// errNotHere says that a method does not work on this server or for this account.
var errNotHere = errors.New("does not work here")

// Take opens the sessions and makes them see one moment. The caller closes the snapshot.
func Take(ctx context.Context, t mysql.Target, o Options) (_ *Snapshot, err error) {
	s := &Snapshot{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if err := s.open(ctx, t, max(1, o.Sessions)); err != nil {
		return nil, err
	}
	if o.LockWait <= 0 {
		o.LockWait = DefaultLockWait
	}
	if o.Tries <= 0 {
		o.Tries = 5
	}
	o.Guard.target, o.Guard.wait, o.Guard.saying = t, o.LockWait, &sync.Mutex{}
	if err := s.blockDDL(ctx, o); err != nil {
		return nil, err
	}
	reserve, err := s.openReserve(ctx, o)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		before, err := readDDL(ctx, s.control)
		if err != nil {
			return nil, err
		}
		if quietTruncate(s.Server) {
			if s.newest, err = newestTable(ctx, s.control); err != nil {
				return nil, err
			}
		}
		if s.lists, err = o.List(ctx, s.Server, s.Sessions); err != nil {
			return nil, err
		}
		if err = s.takeAny(ctx, o); err != nil {
			return nil, err
		}
		err = s.hold(ctx, o, reserve)
		if err != nil && (!errors.Is(err, ErrLocks) || try >= o.Tries) {
			return nil, err
		}
		waited := err != nil
		if s.ddl, err = readDDL(ctx, s.control); err != nil {
			return nil, err
		}
		if s.DDLBlocked || !waited && maps.Equal(before, s.ddl) {
			if err := s.applied(ctx); err != nil {
				return nil, fmt.Errorf("ask for the sources' positions: %w", err)
			}
			s.tables, s.lists.Tables = len(s.lists.Tables), nil
			return s, s.letReserve(ctx, o)
		}
		if try >= o.Tries {
			return nil, fmt.Errorf("%w: %s a schema was changed between the list of tables and the snapshot", ErrLocks, digits.Counted(try, "time"))
		}
		if s.Locked != nil {
			if err := s.Locked.Exec(ctx, unlockTables); err != nil {
				return nil, err
			}
		}
	}
}

// takeAny takes the snapshots by the first method that works.
func (s *Snapshot) takeAny(ctx context.Context, o Options) error {
	if len(s.lists.Plain) > 0 && s.Locked == nil {
		st, err := s.session(ctx, o.Guard.target)
		if err != nil {
			return err
		}
		s.Locked = st
	}
	var refused error
	for _, m := range Methods(s.Server, len(s.lists.Plain) > 0, o.Method) {
		err := s.take(ctx, m, o)
		if err == nil {
			s.Method = m
			return nil
		}
		if !errors.Is(err, errNotHere) && !errors.Is(err, ErrLocks) && mysql.ClassOf(err) != mysql.ClassPrivilege && mysql.ClassOf(err) != mysql.ClassLogin {
			return fmt.Errorf("take a snapshot by %s: %w", m, err)
		}
		if err = fmt.Errorf("%s: %w", m, err); refused != nil {
			err = fmt.Errorf("%w; %w", refused, err)
		}
		refused = err
	}
	err := fmt.Errorf("no consistent snapshot can be taken: %w", refused)
	if grants := s.lockGrants(ctx); len(grants) > 0 {
		err = fmt.Errorf("%w; to lock tables without transactions run %s", err, strings.Join(grants, "; "))
	}
	return err
}

// lockGrants are the statements that let the account lock the tables without transactions, where it may not.
func (s *Snapshot) lockGrants(ctx context.Context) (grants []string) {
	rights, err := s.control.Rights(ctx)
	if err != nil || rights.Have("", "", "LOCK TABLES") {
		return nil
	}
	for _, t := range s.lists.Plain {
		g := "GRANT LOCK TABLES ON " + mysql.QuoteGrantSchema(t.Schema) + ".* TO " + s.Server.QuotedAccount()
		if !rights.Have(t.Schema, "", "LOCK TABLES") && !slices.Contains(grants, g) {
			grants = append(grants, g)
		}
	}
	return grants
}

// open connects all sessions before anything is locked.
func (s *Snapshot) open(ctx context.Context, t mysql.Target, sessions int) error {
	c, err := mysql.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	s.Server = c.Server
	c.Close()
	list := make([]*mysql.Stream, sessions+1)
	var g errgroup.Group
	g.SetLimit(8)
	for i := range list {
		g.Go(func() (err error) {
			list[i], err = s.session(ctx, t)
			return err
		})
	}
	err = g.Wait()
	s.control = list[0]
	for _, st := range list[1:] {
		if st != nil {
			s.Sessions = append(s.Sessions, st)
		}
	}
	return err
}

// session opens one.
func (s *Snapshot) session(ctx context.Context, t mysql.Target) (*mysql.Stream, error) {
	st, err := t.ConnectStream(ctx, mysql.StreamOptions{})
	if err != nil {
		return nil, err
	}
	err = st.ForRows(ctx, s.Server)
	if err == nil {
		err = st.Exec(ctx, "SET SESSION /* risso: backup */ TRANSACTION ISOLATION LEVEL REPEATABLE READ")
	}
	if err == nil && s.Server.MariaDB() {
		// Else a ROLLBACK TO SAVEPOINT keeps metadata locks, and each next table costs the more the more there are:
		// trans_rollback_to_savepoint in sql/transaction.cc asks whether the session writes a binary log.
		err = st.Exec(ctx, "SET SESSION /* risso: lets go of tables that are read */ sql_log_bin = 0")
		if mysql.ClassOf(err) == mysql.ClassPrivilege {
			err = nil
		}
	}
	if err != nil {
		st.Close()
		return nil, err
	}
	return st, nil
}

// Control is a session that is outside of the moment, for definitions, which have no snapshot.
func (s *Snapshot) Control() *mysql.Stream { return s.control }

// Close ends the sessions and so all that they held.
func (s *Snapshot) Close() {
	s.held.stop()
	for _, st := range append(slices.Clone(s.Sessions), s.Locked, s.control) {
		if st != nil {
			st.Close()
		}
	}
	s.Sessions, s.Locked, s.control = nil, nil, nil
}

// Methods are those that may work on a server, the least burdensome first. plain: there are tables without
// transactions. The account may not have the privileges for them.
func Methods(server mysql.Server, plain bool, only Method) []Method {
	if only != "" {
		return []Method{only}
	}
	list := []Method{ByGlobalLock, ByTableLocks, ByComparison}
	if server.MariaDB() && server.Number >= 100401 { // BACKUP STAGE: 10.4.1
		list = []Method{ByStage, ByTableLocks, ByComparison}
	}
	// Tables without transactions have no snapshot: they must not change between it and their lock.
	if !plain {
		list = append([]Method{ByBinlog}, list...)
	}
	return list
}

func (s *Snapshot) take(ctx context.Context, m Method, o Options) error {
	switch {
	case m == ByBinlog:
		return s.byBinlog(ctx)
	case m == ByComparison, m == ByTableLocks && len(s.lists.Tables) == 0:
		return s.byComparison(ctx, o)
	}
	l := s.locking(m, o)
	if m == ByTableLocks {
		lockers, err := s.spread(ctx, o, &l)
		defer closeAll(lockers)
		if err != nil {
			return err
		}
	}
	return s.byLock(ctx, o, l)
}

func lockTables(tables []mysql.TableName) string {
	var b strings.Builder
	b.WriteString("LOCK TABLES /* risso: backup */ ")
	for i, t := range tables {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(t.String() + " READ")
	}
	return b.String()
}

// startTransaction gives a session its moment. Source: MySQL manual, "START TRANSACTION": the snapshot is that of InnoDB.
const startTransaction = "START TRANSACTION /* risso: backup */ WITH CONSISTENT SNAPSHOT"

// start begins the transactions of some sessions at the same time.
func start(ctx context.Context, sessions []*mysql.Stream) error {
	var g errgroup.Group
	for _, st := range sessions {
		g.Go(func() error { return st.Exec(ctx, startTransaction) })
	}
	return g.Wait()
}

// locking is a way to keep everybody from committing.
type locking struct {
	flushes bool   // see Guard.ask
	begin   string // has to succeed right before each try
	lock    string
	unlock  string
	spread  []request // instead of lock, in several sessions at the same time: shorter, and tried first
}

// requests are what is asked for at a try. Locks that several sessions ask for may wait for each other by way of a transaction
// that uses tables of both, which the server does not see: they give way soon, and in the end one session asks for all.
func (s *Snapshot) requests(l locking, try int) *requests {
	switch {
	case len(l.spread) == 1:
		return &requests{list: l.spread}
	case len(l.spread) > 1 && try <= spreadTries:
		return &requests{list: l.spread, stall: spreadStall}
	}
	return &requests{list: []request{{s.control, l.lock}}, flushes: l.flushes}
}

func (s *Snapshot) locking(m Method, o Options) locking {
	switch m {
	case ByStage:
		return locking{begin: "BACKUP STAGE /* risso */ START", lock: "BACKUP STAGE /* risso: one moment for all sessions */ BLOCK_COMMIT",
			unlock: "BACKUP STAGE /* risso */ END"}
	case ByTableLocks:
		return locking{lock: lockTables(s.lists.Tables), unlock: unlockTables}
	}
	return locking{flushes: true, lock: "FLUSH /* risso: one moment for all sessions */ TABLES WITH READ LOCK", unlock: unlockTables}
}

// byLock takes the snapshots while no session can commit.
func (s *Snapshot) byLock(ctx context.Context, o Options, l locking) error {
	if err := s.setLockWait(ctx, s.control, o.LockWait); err != nil {
		return err
	}
	var sent time.Time // the lock may be there before the answer is
	var asked *requests
	for s.Tries = 1; ; s.Tries++ {
		if l.begin != "" {
			if err := s.control.Exec(ctx, l.begin); err != nil {
				return err
			}
		}
		// A FLUSH TABLES first would make the lock shorter, but mark tables as old that a statement uses: everybody
		// else would then wait for that statement, however soon our own request is withdrawn.
		asked = s.requests(l, s.Tries)
		var err error
		if sent, err = o.Guard.ask(ctx, asked); err == nil {
			break
		}
		if uerr := asked.each(ctx, l.unlock); uerr != nil { // nothing may stay locked while it waits for the next try
			return uerr
		}
		if !outOfTime(err) {
			return err
		}
		if s.Tries >= o.Tries {
			return fmt.Errorf("%w: asked %s, for up to %s each", ErrLocks, digits.Counted(s.Tries, "time"), o.LockWait)
		}
		wait := o.LockWait // sessions that waited behind us get their turn
		if asked.stall > 0 {
			wait = min(wait, 4*asked.stall)
		}
		if err := delay.For(ctx, wait); err != nil {
			return err
		}
	}
	err := s.underLock(ctx, o)
	if uerr := asked.each(ctx, l.unlock); err == nil {
		err = uerr
	}
	s.LockTime = time.Since(sent)
	return err
}

// outOfTime says that a lock was not given in time, so that asking again may help.
func outOfTime(err error) bool {
	var refused *driver.MySQLError
	return errors.Is(err, ErrLocks) || errors.As(err, &refused) && refused.Number == errno.LockWaitTimeout
}

// underLock is what has to happen while no session can commit: as little as possible.
func (s *Snapshot) underLock(ctx context.Context, o Options) error {
	var g errgroup.Group
	g.Go(func() error { return start(ctx, s.Sessions) })
	if s.Locked != nil {
		g.Go(func() error {
			if err := s.setLockWait(ctx, s.Locked, o.LockWait); err != nil {
				return err
			}
			return s.Locked.Exec(ctx, lockTables(s.lists.Plain))
		})
	}
	perr := s.readPosition(ctx)
	if err := g.Wait(); err != nil {
		return err
	}
	return perr
}

// byBinlog takes snapshots until all have the same place in the binary log. MariaDB and Percona Server tell a transaction its
// own (https://mariadb.com/kb/en/enhancements-for-start-transaction-with-consistent-snapshot/).
func (s *Snapshot) byBinlog(ctx context.Context) error {
	own, err := s.ownLogOnly(ctx)
	if err != nil {
		return err
	}
	if own {
		return fmt.Errorf("%w: the server is a replica, and its binary log does not contain what it applies (log_slave_updates)", errNotHere)
	}
	places := make([]LogPlace, len(s.Sessions))
	for s.Tries = 1; s.Tries <= 500; s.Tries++ {
		last := slices.MaxFunc(places, compareLogPlaces)
		var g errgroup.Group
		for i, st := range s.Sessions {
			if places[i] == last && last.File != "" {
				continue
			}
			g.Go(func() error {
				err := st.Exec(ctx, startTransaction)
				if err == nil {
					places[i], err = snapshotPlace(ctx, st)
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if places[0].File == "" {
			return fmt.Errorf("%w: the server does not report a snapshot's position in the binary log", errNotHere)
		}
		if !slices.ContainsFunc(places, func(p LogPlace) bool { return p != places[0] }) {
			s.Position = places[0]
			return s.afterBinlog(ctx)
		}
	}
	return fmt.Errorf("%w: %s there were commits between two snapshots", errNotHere, digits.Counted(s.Tries-1, "time"))
}

func compareLogPlaces(a, b LogPlace) int {
	if c := len(a.File) - len(b.File); c != 0 { // numbers that grew a digit
		return c
	}
	if c := strings.Compare(a.File, b.File); c != 0 {
		return c
	}
	return int(min(max(a.Offset-b.Offset, -1), 1))
}

// snapshotPlace is the place that the session's transaction sees.
func snapshotPlace(ctx context.Context, st *mysql.Stream) (p LogPlace, err error) {
	err = st.Query(ctx, "SHOW /* risso: position of the snapshot */ SESSION STATUS WHERE Variable_name IN ('Binlog_snapshot_file', 'Binlog_snapshot_position')", func(row [][]byte) error {
		if strings.EqualFold(string(row[0]), "binlog_snapshot_file") {
			p.File = string(row[1])
			return nil
		}
		p.Offset, _ = strconv.ParseInt(string(row[1]), 10, 64)
		return nil
	})
	return p, err
}

// afterBinlog completes the position: nothing of it can have changed.
func (s *Snapshot) afterBinlog(ctx context.Context) error {
	st := s.Sessions[0]
	if s.Server.MariaDB() {
		err := st.Query(ctx, fmt.Sprintf("SELECT /* risso: position of the snapshot */ BINLOG_GTID_POS('%s', %d)", s.Position.File, s.Position.Offset), func(row [][]byte) error {
			s.Position.GTIDSet = string(row[0])
			return nil
		})
		if err != nil {
			return fmt.Errorf("ask for the GTID of the snapshot: %w", err)
		}
	}
	if err := s.readMoment(ctx, "NULL"); err != nil {
		return err
	}
	if err := s.readState(ctx); err != nil {
		return err
	}
	return s.readSources(ctx)
}

// byComparison hopes that nothing is committed meanwhile, and checks whether it was.
func (s *Snapshot) byComparison(ctx context.Context, o Options) error {
	for s.Tries = 1; s.Tries <= 20*o.Tries; s.Tries++ {
		if err := s.readPosition(ctx); err != nil {
			return err
		}
		before, sources := s.Position, s.Sources
		if err := start(ctx, s.Sessions); err != nil {
			return err
		}
		if s.Locked != nil {
			if err := s.Locked.Exec(ctx, lockTables(s.lists.Plain)); err != nil {
				return err
			}
		}
		if err := s.readPosition(ctx); err != nil {
			return err
		}
		still := s.Position == before && slices.Equal(s.Sources, sources)
		if still && before != (LogPlace{}) {
			s.Notes = append(s.Notes, "The account may lock neither the server nor its tables: the binary log did not change while the snapshots were taken, but a transaction being committed at that time may be missing or not.")
			return nil
		}
		if still && len(s.Sessions) == 1 && len(s.Sources) == 0 {
			s.Notes = append(s.Notes, "The position in the binary logs is unknown: the account may not read it, or the server writes none.")
			return nil
		}
		if s.Locked != nil {
			if err := s.Locked.Exec(ctx, unlockTables); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%w: the account may not lock, and %s there were commits in the meantime", errNotHere, digits.Counted(s.Tries-1, "time"))
}

// setLockWait bounds how long a session waits for metadata locks, in whole seconds.
func (s *Snapshot) setLockWait(ctx context.Context, st *mysql.Stream, wait time.Duration) error {
	return st.Exec(ctx, fmt.Sprintf("SET SESSION /* risso: backup */ lock_wait_timeout = %d", max(1, int(wait.Seconds()+0.999))))
}

// blockDDL keeps schema changes waiting, without anybody else noticing. It is MySQL's since 8.0.
func (s *Snapshot) blockDDL(ctx context.Context, o Options) error {
	if !s.Server.AtLeast(80000, fleet.Never) {
		return nil
	}
	if err := s.setLockWait(ctx, s.control, o.LockWait); err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := s.control.Exec(ctx, "LOCK INSTANCE /* risso: no schema changes while a backup runs */ FOR BACKUP")
		switch {
		case err == nil:
			s.DDLBlocked = true
			return nil
		case mysql.ClassOf(err) == mysql.ClassPrivilege:
			s.Notes = append(s.Notes, "The account does not have BACKUP_ADMIN: schema changes do not wait, but are detected.")
			return nil
		case !outOfTime(err):
			return fmt.Errorf("lock the instance for a backup: %w", err)
		case try >= o.Tries:
			return fmt.Errorf("%w: a schema is being changed, %s for longer than %s", ErrLocks, digits.Counted(try, "time"), o.LockWait)
		}
		if err := delay.For(ctx, time.Second); err != nil {
			return err
		}
	}
}

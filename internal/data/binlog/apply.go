package binlog

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

const (
	// batchTransactions are sent together if they have no rows.
	batchTransactions = 200
	// chunkBytes of events are in one BINLOG statement, if a statement has that many rows.
	chunkBytes = 1 << 20
)

// applier applies the events of logs to a server.
type applier struct {
	o      RollOptions
	plan   *Plan
	s      *replayer
	words  mysql.ReplayWords
	j      progress // nil: the GTIDs of the server show what was done
	had    mysql.GTIDSet
	result RollResult

	format  binlogevent.Format
	formatS string // the BINLOG statement of the format description
	file    string
	b       binlogevent.Boundaries
	mode    mode
	sql     strings.Builder // statements that were not yet sent
	open    bool            // a transaction was begun and not ended, sent or not
	unsent  int             // transactions in sql
	schema  string          // the session's default database
	letters bool            // the session has the character set of a statement
	rows    batch
	told    time.Time
	bytes   int64  // of the logs before the one in hand
	next    int    // the log that comes next, of the plan's
	wanted  bool   // of the open transaction something was applied
	own     bool   // it changes a journal of Risso's, which is left out
	xa      string // the statement that began the XA transaction that is open
	xaLater string // the same, before it has changed anything wanted
	ctas    bool   // a CREATE TABLE … SELECT is open, which takes its rows and nothing else (MySQL 8.0.21)
	since   string // where the first statement in sql comes from
}

// mode is what is done with the open transaction.
type mode int

const (
	modeApply mode = iota
	modeHad        // the server has it
	modeEmpty      // it is left out
)

// batch is the rows of one statement that were not yet made a BINLOG statement.
type batch struct {
	tables map[uint64]*mapped
	order  []uint64
	events [][]byte
	size   int
}

// mapped is a table of the statement in hand.
type mapped struct {
	raw    []byte // its event, without a checksum
	body   []byte
	wanted bool
	used   bool               // in the batch in hand
	eight  *binlogevent.Table // it has as many columns as a sequence of MariaDB; nil: it has not
}

// openApplier opens the session, and makes sure that the server can take what is planned. It changes nothing.
func openApplier(ctx context.Context, p *Plan) (*applier, error) {
	c, err := mysql.Connect(ctx, p.o.Into, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if len(p.files) > 0 && !c.Server.SameKind(p.source.Server) {
		return nil, fmt.Errorf("%w: the logs are of %s, the server is %s", ErrTarget, p.source.Version, c.Server.Version)
	}
	a := &applier{o: p.o, plan: p, had: p.from, result: RollResult{GTIDs: p.from.Clone(), Notes: p.Result.Notes}}
	if err = a.connect(ctx); err == nil && p.o.Keep {
		err = a.keeps(ctx, c)
	}
	if err != nil && a.s != nil {
		a.s.Close()
	}
	return a, err
}

// keeps makes sure that transactions can keep their GTIDs.
func (a *applier) keeps(ctx context.Context, c *mysql.Conn) error {
	switch keeps, err := mysql.KeepsGTIDs(ctx, c); {
	case err != nil:
		return err
	case !keeps:
		return fmt.Errorf("%w: it keeps no GTIDs (gtid_mode is off; MariaDB: log_bin is off)", ErrTarget)
	case !a.plan.byGTID && a.o.From.File != "":
		return fmt.Errorf("%w: to keep GTIDs, the position must be given as GTIDs", ErrTarget)
	}
	if a.plan.source.GTIDsByDomain() { // those do not record what the server has: after a kill the same would be applied again
		if note, err := filtered(ctx, c); err != nil || note != "" {
			return cmp.Or(err, fmt.Errorf("%w with their GTIDs, because its binary log does not record them all (without --keep-gtids a table does): %s", ErrTarget, note))
		}
	}
	return a.startByGTID(ctx, c)
}

// filtered describes what the server's own binary logs leave out of what is applied; "" if nothing. Its replication
// filters (replicate_ignore_db and the like) are for what its own replication brings, not for a session.
func filtered(ctx context.Context, c *mysql.Conn) (note string, err error) {
	filter, err := c.LogFilter(ctx)
	switch {
	case mysql.ClassOf(err) == mysql.ClassPrivilege:
		return "what the target's binary logs leave out is unknown: the account needs REPLICATION CLIENT (MariaDB: BINLOG MONITOR)", nil
	case err != nil || filter.String() == "":
		return "", err
	}
	return "of the target: " + filter.String() + ", and its replicas do not get it", nil
}

// connect opens the session, of which there may be only one at a time: a process that was killed may have left one that
// is still at work.
func (a *applier) connect(ctx context.Context) error {
	s, err := connectReplayer(ctx, a.o.Into)
	if err != nil {
		return err
	}
	a.s, a.words, a.schema, a.letters = s, s.Server.Replay(), "", false
	if err := s.Exec(ctx, a.words.Begin); err != nil {
		return fmt.Errorf("prepare the session (the account needs SUPER, or SYSTEM_VARIABLES_ADMIN, BINLOG_ADMIN and REPLICATION_APPLIER; on MariaDB BINLOG REPLAY): %w", err)
	}
	return lockRoll(ctx, s)
}

// startByGTID makes sure that the server has the position, and finds out what it has of what comes after.
func (a *applier) startByGTID(ctx context.Context, c *mysql.Conn) error {
	have, err := mysql.LoggedGTIDs(ctx, c)
	if err != nil {
		return err
	}
	if lacks := a.plan.from.Subtract(have); !lacks.Empty() {
		return fmt.Errorf("%w with their GTIDs: it says %q, the position is %q (first: %s)", ErrTarget, have, a.plan.from, a.plan.source.TakesPosition(a.plan.from))
	}
	if a.plan.source.GTIDsByDomain() {
		for _, g := range have.Domains() {
			if !a.plan.from.Contains(g) && !a.plan.Result.GTIDs.Contains(g) {
				return fmt.Errorf("%w with their GTIDs: it is at %s, beyond the logs, which end with %s", ErrTarget, g, a.plan.Result.GTIDs)
			}
		}
	}
	a.had = a.plan.from.Union(have)
	return nil
}

// through applies the plan's logs up to one of them.
func (a *applier) through(ctx context.Context, last int) error {
	for ; a.next <= last; a.next++ {
		if err := a.log(ctx, a.next, a.plan.files[a.next]); err != nil {
			return err
		}
	}
	return a.flush(ctx)
}

// finish reads those logs to the end of which nothing is applied.
func (a *applier) finish(ctx context.Context) error {
	r := a.plan.Result
	if err := a.through(ctx, len(r.Stretches)-1); err != nil {
		return err
	}
	a.result.Next, a.result.Stopped, a.result.AtEnd = r.Next, r.Stopped, r.AtEnd
	a.tell(true)
	return nil
}

// log applies one log, up to the plan's end.
func (a *applier) log(ctx context.Context, i int, f File) error {
	end := a.plan.Result.Next
	in, err := f.Open(ctx)
	if err != nil {
		return fmt.Errorf("open %s: %w", f.Name, err)
	}
	defer in.Close()
	r, err := binlogevent.NewReader(in, binlogevent.Options{})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	a.file, a.b = f.Name, binlogevent.Boundaries{}
	for {
		e, err := r.Next()
		switch {
		case f.Name == end.File && err == nil && e.Pos >= end.Pos && !a.b.Open:
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, binlogevent.ErrTorn) && i+1 == len(a.plan.files):
			a.bytes += r.Pos()
			a.result.Bytes = a.bytes
			return a.abandon(ctx)
		case err != nil:
			return fmt.Errorf("%s: %w", f.Name, err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		a.format = r.Format()
		if i == 0 && e.Pos < a.plan.offset && e.Type != binlogevent.TypeFormatDescription {
			a.b.Next(e)
			continue
		}
		if err := a.event(ctx, e); err != nil {
			return fmt.Errorf("%s:%d%s: %w", f.Name, e.Pos, gtidIn(a.b.GTID.ID), err)
		}
		a.result.Bytes = a.bytes + e.End
		a.tell(false)
	}
}

func gtidIn(g mysql.GTID) string {
	if g.IsZero() {
		return ""
	}
	return " (" + g.String() + ")"
}

// abandon takes back the transaction with which a log ends in its middle: its server died, and has rolled it back itself.
func (a *applier) abandon(ctx context.Context) error {
	a.rows = batch{}
	if !a.open {
		return nil
	}
	if err := a.flush(ctx); err != nil {
		return err
	}
	a.open = false
	return a.s.Exec(ctx, "ROLLBACK")
}

func (a *applier) tell(force bool) {
	if a.o.Tell == nil || !force && time.Since(a.told) < 200*time.Millisecond {
		return
	}
	a.told = time.Now()
	a.o.Tell(Progress{Bytes: a.result.Bytes, Total: a.plan.total, Transactions: a.result.Transactions, File: a.file, Time: a.result.LastTime})
}

// event applies one event.
func (a *applier) event(ctx context.Context, e binlogevent.Event) error {
	if e.Type == binlogevent.TypeFormatDescription {
		return a.describe(ctx, e)
	}
	began, ended := a.b.Next(e)
	if began {
		if err := a.begin(ctx, e); err != nil {
			return err
		}
	}
	if a.mode == modeApply {
		if err := a.apply(ctx, e, ended); err != nil {
			return err
		}
	}
	if ended {
		return a.end(ctx, e)
	}
	return nil
}

// describe tells the server the format of the events.
func (a *applier) describe(ctx context.Context, e binlogevent.Event) error {
	if err := a.flush(ctx); err != nil {
		return err
	}
	a.formatS = "BINLOG '" + base64.StdEncoding.EncodeToString(binlogevent.PlainFormat(e.Raw)) + "'"
	return a.sendFormat(ctx)
}

func (a *applier) sendFormat(ctx context.Context) error {
	if a.formatS == "" {
		return nil
	}
	auto := a.s.Server.NextGTID(mysql.GTID{})
	if err := a.s.Exec(ctx, auto+";"+a.formatS); err != nil {
		return fmt.Errorf("hand over the format of the log: %w", err)
	}
	return a.s.Exec(ctx, auto) // MySQL expects a GTID event after it now
}

// begin decides about a transaction and begins it.
func (a *applier) begin(ctx context.Context, e binlogevent.Event) error {
	g := a.b.GTID
	a.wanted, a.own, a.xaLater = false, false, ""
	a.rows = batch{}
	switch {
	case !g.ID.IsZero() && a.had.Contains(g.ID):
		a.mode = modeHad
		return nil
	case a.j != nil && a.j.has(a.file, e.Pos):
		a.mode = modeHad
		return nil
	case a.o.skips(g.ID):
		a.mode = modeEmpty
		return nil
	}
	a.mode = modeApply
	if g.AlterPhase {
		return fmt.Errorf("%w: half of an ALTER (binlog_alter_two_phase)", ErrContents)
	}
	a.name(g)
	if g.Prepares != nil {
		return a.startXA(ctx, "XA START "+g.Prepares.SQL())
	}
	return nil
}

// startXA begins an XA transaction; MySQL logs the statement, MariaDB says it in the GTID event. If only some tables are
// wanted it waits for a change of one: a server refuses to commit a branch that is empty (MariaDB, error 1402).
func (a *applier) startXA(ctx context.Context, text string) error {
	if a.o.Only != nil && a.xaLater == "" {
		a.xaLater = text
		return nil
	}
	a.xa, a.xaLater, a.wanted = text, "", true
	if err := a.notePending(ctx, []byte(text)); err != nil {
		return err
	}
	if err := a.flush(ctx); err != nil {
		return err
	}
	return a.explain(a.s.ExecOne(ctx, text))
}

// name gives its GTID to the transaction that begins.
func (a *applier) name(g binlogevent.GTID) {
	if !a.o.Keep {
		return
	}
	a.add(a.s.Server.NextGTID(g.ID))
	if a.words.Original && !g.Original.IsZero() {
		a.add(fmt.Sprintf("SET original_commit_timestamp = %d", g.Original.UnixMicro()))
	}
	if a.words.Versions && g.OriginalVersion > 0 {
		a.add(fmt.Sprintf("SET original_server_version = %d, immediate_server_version = %d", g.OriginalVersion, g.ServerVersion))
	}
}

func (a *applier) add(statement string) {
	a.separate()
	a.sql.WriteString(statement)
}

func (a *applier) separate() {
	if a.sql.Len() > 0 {
		a.sql.WriteByte(';')
		return
	}
	a.since = fmt.Sprintf("%s:%d%s", a.file, a.b.Pos, gtidIn(a.b.GTID.ID))
}

// flush sends the statements that were gathered.
func (a *applier) flush(ctx context.Context) error {
	if a.sql.Len() == 0 {
		return nil
	}
	err := a.s.Exec(ctx, a.sql.String())
	a.sql.Reset()
	a.unsent = 0
	if err != nil {
		return fmt.Errorf("transactions from %s on: %w", a.since, a.explain(err))
	}
	return nil
}

// explain adds a hint to an error of the server.
func (a *applier) explain(err error) error {
	if _, again := a.j.(*reapplyMark); again {
		return err
	}
	if n := mysql.ErrorNumber(err); n == errno.KeyNotFound || n == errno.DuplicateEntry {
		return fmt.Errorf("%w (the server's rows are not those of the position: was it restored from the backup with that position, and written to since?)", err)
	}
	return err
}

// apply applies an event of a wanted transaction.
func (a *applier) apply(ctx context.Context, e binlogevent.Event, ended bool) error {
	switch {
	case e.Type == binlogevent.TypeTableMap:
		return a.table(e)
	case e.Type.IsRows():
		return a.addRows(ctx, e)
	}
	switch e.Type {
	case binlogevent.TypeQuery, binlogevent.TypeQueryZip:
		return a.query(ctx, e, ended)
	case binlogevent.TypeXid:
		return nil
	case binlogevent.TypeXAPrepare:
		return a.prepare(ctx, e)
	case binlogevent.TypeIntvar:
		v, err := binlogevent.ParseIntvar(e.Body)
		name := map[bool]string{true: "last_insert_id", false: "insert_id"}[v.LastInsertID]
		a.add(fmt.Sprintf("SET %s = %d", name, v.Value))
		return err
	case binlogevent.TypeRand:
		x, y, err := binlogevent.ParseRand(e.Body)
		a.add(fmt.Sprintf("SET rand_seed1 = %d, rand_seed2 = %d", x, y))
		return err
	case binlogevent.TypeUserVar:
		return a.userVar(ctx, e)
	case binlogevent.TypeIncident:
		return fmt.Errorf("%w: the server says that it lost events (an incident)", ErrContents)
	case binlogevent.TypeBeginLoadQuery, binlogevent.TypeAppendBlock, binlogevent.TypeExecuteLoadQuery, binlogevent.TypeDeleteFile:
		return fmt.Errorf("%w: LOAD DATA that was logged as a statement", ErrContents)
	}
	return nil // texts of statements whose rows follow, and what replicas pass over
}

// begun begins the transaction on the server, once.
func (a *applier) begun(ctx context.Context) error {
	if a.xaLater != "" {
		return a.startXA(ctx, a.xaLater)
	}
	if !a.open && a.xa == "" {
		a.add("BEGIN")
		a.open = true
	}
	return nil
}

func (a *applier) table(e binlogevent.Event) error {
	t, err := binlogevent.ParseTable(a.format, e.Body)
	if err != nil {
		return err
	}
	if a.rows.tables == nil {
		a.rows.tables = map[uint64]*mapped{}
	}
	m := &mapped{raw: append([]byte(nil), binlogevent.PlainEvent(e)...), body: append([]byte(nil), e.Body...), wanted: !repo.Journals(t.Schema) && (a.o.Only == nil || a.o.Only(t.Schema, t.Name))}
	if a.plan.source.HasSequences() && len(t.Columns) == 8 {
		m.eight = &t
	}
	a.own = a.own || repo.Journals(t.Schema)
	if m.wanted && a.o.renames(t.Schema, t.Name) {
		schema, name := a.o.Names(t.Schema, t.Name)
		if m.raw, err = binlogevent.RenameTable(a.format, m.raw, schema, name); err != nil {
			return err
		}
	}
	a.rows.tables[t.ID] = m
	a.rows.order = append(a.rows.order, t.ID)
	return nil
}

// addRows takes a rows event.
func (a *applier) addRows(ctx context.Context, e binlogevent.Event) error {
	id, flags, err := binlogevent.RowsHead(a.format, e)
	if err != nil {
		return err
	}
	t := a.rows.tables[id]
	last := flags&binlogevent.RowsStatementEnd != 0
	if t == nil && id != binlogevent.Dummy {
		return fmt.Errorf("%w: rows of a table that was not named", binlogevent.ErrDamaged)
	}
	if t != nil && t.wanted {
		if set, err := a.setval(ctx, t.eight, e); err != nil || set {
			if err == nil && last {
				err = a.sendRows(ctx)
				a.rows = batch{}
			}
			return err
		}
		raw, err := binlogevent.Plain(a.format, e)
		if err != nil {
			return err
		}
		if len(raw) > a.s.MaxPacket/2 {
			return a.splitRows(ctx, t, raw, last)
		}
		a.takeRows(t, append([]byte(nil), raw...))
	}
	if last || a.rows.size >= min(chunkBytes, a.s.MaxPacket/2) {
		if err := a.sendRows(ctx); err != nil {
			return err
		}
	}
	if last {
		a.rows = batch{}
	}
	return nil
}

func (a *applier) takeRows(t *mapped, raw []byte) {
	binlogevent.SetRowsFlags(a.format, raw, rowsFlags(a.format, raw)&^binlogevent.RowsStatementEnd)
	t.used = true
	a.rows.events = append(a.rows.events, raw)
	a.rows.size += len(raw)
}

func rowsFlags(f binlogevent.Format, raw []byte) uint16 {
	_, flags, _ := binlogevent.RowsHead(f, binlogevent.Event{Body: raw[binlogevent.HeaderLen:]})
	return flags
}

// splitRows cuts an event that is longer than the server takes into several.
func (a *applier) splitRows(ctx context.Context, t *mapped, raw []byte, last bool) error {
	table, err := binlogevent.ParseTable(a.format, t.body)
	if err != nil {
		return err
	}
	parts, err := binlogevent.Split(a.format, raw, &table, a.s.MaxPacket/2)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if 4*len(p)/3+1024 > a.s.MaxPacket {
			return fmt.Errorf("%w: a row of %d bytes, and its max_allowed_packet is %d: SET GLOBAL max_allowed_packet = 1073741824", ErrTarget, len(p), a.s.MaxPacket)
		}
		a.takeRows(t, p)
		if err := a.sendRows(ctx); err != nil {
			return err
		}
	}
	if last {
		a.rows = batch{}
	}
	return nil
}

// sendRows makes a BINLOG statement of the rows gathered so far: their tables, then the rows, the last of them marked as the
// end of the statement, after which the server closes the tables.
//
// Nothing may follow a BINLOG statement in one packet: its answer does not have the flag that more answers follow
// (applying rows resets the session's status). COMMIT travels with the next transaction.
func (a *applier) sendRows(ctx context.Context) error {
	if len(a.rows.events) == 0 {
		return nil
	}
	if err := a.begun(ctx); err != nil {
		return err
	}
	a.wanted = true
	last := a.rows.events[len(a.rows.events)-1]
	binlogevent.SetRowsFlags(a.format, last, rowsFlags(a.format, last)|binlogevent.RowsStatementEnd)
	size := a.rows.size
	for _, id := range a.rows.order {
		size += len(a.rows.tables[id].raw)
	}
	buf := make([]byte, 0, size)
	for _, id := range a.rows.order {
		if t := a.rows.tables[id]; t.used {
			buf = append(buf, t.raw...)
			t.used = false
		}
	}
	for _, e := range a.rows.events {
		buf = append(buf, e...)
	}
	a.rows.events, a.rows.size = a.rows.events[:0], 0
	a.separate()
	a.sql.WriteString("BINLOG '")
	enc := base64.NewEncoder(base64.StdEncoding, &a.sql)
	enc.Write(buf)
	enc.Close()
	a.sql.WriteByte('\'')
	return a.flush(ctx)
}

// end ends a transaction.
func (a *applier) end(ctx context.Context, e binlogevent.Event) error {
	g, mode := a.b.GTID, a.mode
	a.mode = modeApply
	place := Place{File: a.file, Pos: e.End}
	switch mode {
	case modeHad:
		a.result.Had++
		a.result.GTIDs.Add(g.ID)
		return nil
	case modeEmpty:
		a.result.LeftOut++
		a.result.GTIDs.Add(g.ID)
		if a.o.Keep && !a.plan.source.GTIDsByDomain() {
			a.add(a.s.Server.NextGTID(g.ID) + ";BEGIN;COMMIT")
		}
	default:
		if err := a.commit(place, g); err != nil {
			return err
		}
		if (a.o.Only != nil || a.own) && !a.wanted {
			a.result.LeftOut++
		} else {
			a.result.Transactions++
			a.result.LastGTID, a.result.LastTime = g.ID, commitTime(g, a.b.When)
		}
		a.result.GTIDs.Add(g.ID)
	}
	a.unsent++
	if a.unsent >= batchTransactions {
		return a.flush(ctx)
	}
	return nil
}

// commit ends an open transaction; one that was a statement by itself is over already.
func (a *applier) commit(place Place, g binlogevent.GTID) error {
	switch {
	case a.open && a.ctas:
		a.add("COMMIT")
		if a.j != nil { // in this one nothing else may be changed
			a.add(a.j.save(place, g.ID))
		}
	case a.open:
		if a.j != nil {
			a.add(a.j.save(place, g.ID))
		}
		a.add("COMMIT")
	case a.j != nil && a.wanted:
		a.add(a.j.save(place, g.ID))
	case a.o.Keep && !a.wanted && !a.plan.source.GTIDsByDomain() && !g.ID.IsZero(): // nothing in it was wanted: an empty one replaces it
		a.add("BEGIN;COMMIT")
	}
	a.open, a.ctas = false, false
	return nil
}

// close reads the logs to their end, and removes the journal; without one it asserts that the server says it has what it should.
func (a *applier) close(ctx context.Context) error {
	if err := a.finish(ctx); err != nil {
		return err
	}
	if a.j != nil {
		return a.j.drop(ctx, a.s)
	}
	c, err := mysql.Connect(ctx, a.o.Into, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	have, err := mysql.LoggedGTIDs(ctx, c)
	if err != nil {
		return err
	}
	want := a.plan.Result.GTIDs
	if a.plan.source.GTIDsByDomain() { // what was skipped or not wanted has left no trace there
		want = mysql.GTIDSet{}
		want.Add(a.result.LastGTID)
	}
	if lacks := want.Subtract(have); !lacks.Empty() {
		return fmt.Errorf("after the last transaction the server has %s: %s is missing", have, lacks)
	}
	return nil
}

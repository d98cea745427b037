package binlog

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sqltext"
)

// query runs a statement that was logged as text.
func (a *applier) query(ctx context.Context, e binlogevent.Event, ended bool) error {
	q, err := binlogevent.ParseQuery(e)
	if err != nil {
		return err
	}
	if why := neverLogged(q); why != "" {
		return fmt.Errorf("%w: %s: %.200s", ErrContents, why, q.Text)
	}
	up := strings.ToUpper(string(q.Text[:min(len(q.Text), 64)]))
	switch binlogevent.FrameOf(q.Text) {
	case binlogevent.FrameBegin:
		if !strings.HasPrefix(up, "XA") {
			return nil // begun with the first change
		}
		return a.startXA(ctx, string(q.Text))
	case binlogevent.FrameEnd:
		switch {
		case strings.HasPrefix(up, "XA"):
			return a.endXA(ctx, q, e)
		case strings.HasPrefix(up, "ROLLBACK") && a.open: // tables without transactions keep what was done
			a.add("ROLLBACK")
			a.open = false
		}
		return nil
	}
	if strings.HasPrefix(up, "XA ") { // XA END
		if a.xaLater != "" {
			return nil
		}
		return a.statement(ctx, q, e)
	}
	if !a.wantsStatement(q) {
		return nil
	}
	if ended {
		a.wanted = true
		return a.alone(ctx, q, e)
	}
	verb := sqltext.Verb(q.Text)
	if verb != "CREATE" && verb != "DROP" {
		if err := a.begun(ctx); err != nil {
			return err
		}
	}
	a.wanted = true
	switch {
	case a.open:
		err = a.statement(ctx, q, e)
	case a.o.Keep && a.plan.source.LogsFilledTables() && verb == "CREATE":
		err = a.createFilled(ctx, q, e)
	default:
		err = a.unprotected(ctx, q, e)
	}
	if bytes.HasSuffix(bytes.TrimSpace(q.Text), []byte("START TRANSACTION")) { // CREATE TABLE … SELECT of MySQL 8.0.21
		a.open, a.ctas = true, true
	}
	return err
}

// neverLogged says why a statement is one that a server never logs; "" for all others. Whatever a log says, it must not set variables of
// the server that it is applied to. That it is a single statement is ensured by the server: see replayer.ExecOne.
func neverLogged(q binlogevent.Query) string {
	if d := dialectOf(q); setsServer(d, string(q.Text)) {
		return "servers do not log this as a statement"
	}
	if q.TimeZone != nil && strings.ContainsFunc(*q.TimeZone, notInZone) {
		return "there is no such time zone: " + strconv.Quote(*q.TimeZone)
	}
	return ""
}

// setsServer reports whether a statement is about the server itself.
func setsServer(d sqltext.Dialect, text string) bool {
	var words [2]string // the first ones
	n := 0
	for _, t := range d.Tokens(text) {
		if t.Kind == sqltext.TokenWord && n < len(words) {
			words[n] = strings.ToUpper(t.Text)
			n++
		}
	}
	switch words[0] {
	case "SET":
		if words[1] != "STATEMENT" {
			return words[1] != "PASSWORD" && words[1] != "DEFAULT"
		}
		_, end := d.Find(text, "FOR") // MariaDB: SET STATEMENT variable = value, … FOR statement
		return end < 0 || setsServer(d, text[end:])
	case "INSTALL", "UNINSTALL", "SHUTDOWN", "RESET", "CHANGE", "CLONE":
		return true
	}
	return false
}

// notInZone reports whether a letter occurs in no time zone's name: the name goes into a statement of Risso.
func notInZone(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_+-:/.", r)
}

// endXA commits a prepared XA transaction or takes it back. One that changed nothing wanted was not prepared here.
func (a *applier) endXA(ctx context.Context, q binlogevent.Query, e binlogevent.Event) error {
	a.wanted = true
	err := a.alone(ctx, q, e)
	if a.o.Only != nil && mysql.ErrorNumber(err) == errno.UnknownXID {
		a.wanted, a.open = false, false
		return nil
	}
	return err
}

// createFilled runs the CREATE TABLE of a CREATE TABLE … SELECT, which is logged with the rows as one transaction. As a
// statement it would be one by itself, and its rows another one with a GTID too many: so only the rows are logged, under the
// GTID of both. When it was run before, by a process that was killed, it is run again.
func (a *applier) createFilled(ctx context.Context, q binlogevent.Query, e binlogevent.Event) error {
	const create = "CREATE TABLE"
	if len(q.Text) > len(create) && strings.EqualFold(string(q.Text[:len(create)]), create) {
		q.Text = append([]byte("CREATE OR REPLACE TABLE"), q.Text[len(create):]...)
	}
	a.add("SET sql_log_bin = 0")
	if err := a.statement(ctx, q, e); err != nil {
		return err
	}
	a.result.Notes = append(a.result.Notes, fmt.Sprintf("%s created a table and filled it: the server's own binary log has only the rows", a.b.GTID.ID))
	a.add("SET sql_log_bin = 1")
	a.name(a.b.GTID)
	return nil
}

// wantsStatement reports whether a statement changes a wanted table. One that names none, such as DROP DATABASE, is not run
// where only some tables are wanted.
func (a *applier) wantsStatement(q binlogevent.Query) bool {
	if ofJournal(q) {
		a.own = true
		return false
	}
	if a.o.Only == nil {
		return true
	}
	if up := strings.ToUpper(string(q.Text[:min(len(q.Text), 32)])); strings.HasPrefix(up, "SAVEPOINT") || strings.HasPrefix(up, "ROLLBACK TO") {
		return a.open
	}
	all := changedTables(q)
	for _, t := range all {
		if a.o.Only(t.Schema, t.Name) {
			return true
		}
	}
	if len(all) == 0 && len(a.result.Notes) < 100 {
		a.result.Notes = append(a.result.Notes, fmt.Sprintf("left out, because it names no table: %.120s", q.Text))
	}
	return false
}

// ofJournal reports whether a statement changes nothing but a journal of Risso's.
func ofJournal(q binlogevent.Query) bool {
	if all := changedTables(q); len(all) > 0 {
		return !slices.ContainsFunc(all, func(t sqltext.Table) bool { return !repo.Journals(t.Schema) })
	}
	c, ok := dialectOf(q).ReadChange(string(q.Text))
	return ok && c.Kind == "DATABASE" && len(c.Names) == 1 && (c.Verb == "CREATE" || c.Verb == "DROP") && repo.Journals(c.Names[0].Name)
}

// changedTables are the tables that a statement may change, with their schemas. A trigger belongs to its table; programs, schemas
// and accounts are no tables.
func changedTables(q binlogevent.Query) []sqltext.Table {
	c, ok := dialectOf(q).ReadChange(string(q.Text))
	if !ok { // ANALYZE, OPTIMIZE
		return namedTables(q)
	}
	var names []sqltext.Ident
	switch c.Kind {
	case "TABLE", "VIEW", "SEQUENCE":
		names = slices.Concat(c.Names, c.To)
	case "TRIGGER":
		if c.On.Name != "" {
			names = []sqltext.Ident{c.On}
		}
	}
	var all []sqltext.Table
	for _, n := range names {
		all = append(all, sqltext.Table{Schema: cmp.Or(n.Schema, q.Schema), Name: n.Name})
	}
	return all
}

// namedTables are all tables that a statement names, with their schemas.
func namedTables(q binlogevent.Query) []sqltext.Table {
	all := sqltext.Tables(q.Text)
	for i := range all {
		all[i].Schema = cmp.Or(all[i].Schema, q.Schema)
	}
	return all
}

// unprotected notes that a statement runs of which a crash would leave open whether it was done.
func (a *applier) unprotected(ctx context.Context, q binlogevent.Query, e binlogevent.Event) error {
	if err := a.notePending(ctx, q.Text); err != nil {
		return err
	}
	return a.statement(ctx, q, e)
}

func (a *applier) notePending(ctx context.Context, text []byte) error {
	if err := a.flush(ctx); err != nil || a.j == nil {
		return err
	}
	if err := a.s.Exec(ctx, a.j.pending(Place{File: a.file, Pos: a.b.Pos, GTID: a.b.GTID.ID}, text)); err != nil {
		return fmt.Errorf("record what is about to run: %w", err)
	}
	return nil
}

// alone runs a statement that is its own transaction.
func (a *applier) alone(ctx context.Context, q binlogevent.Query, e binlogevent.Event) error {
	if err := a.unprotected(ctx, q, e); err != nil {
		return err
	}
	a.open = false
	return nil
}

// statement runs a statement in the session that it ran in.
func (a *applier) statement(ctx context.Context, q binlogevent.Query, e binlogevent.Event) error {
	if err := a.here(ctx, &q); err != nil {
		return err
	}
	set := a.session(q, e)
	a.add(set)
	if err := a.flush(ctx); err != nil {
		return fmt.Errorf("set up the session of a statement: %w", err)
	}
	err := a.s.ExecOne(ctx, string(q.Text))
	a.letters = a.letters || q.Charset != nil
	if err != nil && q.ErrorCode == 0 { // else it failed on its original server, too
		return a.explain(fmt.Errorf("%w; the statement is: %.200s", err, q.Text))
	}
	return nil
}

// here makes a statement that ran on another server one that does the same on this one.
func (a *applier) here(ctx context.Context, q *binlogevent.Query) error {
	if a.o.Names != nil {
		if _, ok := a.o.renamed(*q); ok {
			copied, err := a.copied(ctx, *q)
			if err != nil {
				return err
			}
			*q, _ = a.o.renamed(copied)
		}
	}
	*q = mayBeGone(*q)
	return nil
}

// mayBeGone lets an event be dropped that is not there: where its last time was past, a server has not made it, or has dropped it by itself.
// Source: MySQL manual, "CREATE EVENT Statement", ON COMPLETION NOT PRESERVE.
func mayBeGone(q binlogevent.Query) binlogevent.Query {
	d, text := dialectOf(q), string(q.Text)
	c, ok := d.ReadChange(text)
	if !ok || c.Verb != "DROP" || c.Kind != "EVENT" || d.Has(text[:c.Names[0].Begin], "IF", "EXISTS") {
		return q
	}
	at := c.Names[0].Begin
	q.Text = []byte(text[:at] + "IF EXISTS " + text[at:])
	return q
}

// utf8 lets the names in what comes next be read as UTF-8, which they are, whatever the character set of the last statement.
func (a *applier) utf8() {
	if a.letters {
		a.add("SET character_set_client = utf8mb4")
		a.letters = false
	}
}

// suppressUse is a flag in a query event's header: the default database is not to be set (LOG_EVENT_SUPPRESS_USE_F).
const suppressUse = 8

// session is the statement that makes the session one like that in which a statement ran: what mysqlbinlog prints in front
// of it (Query_log_event::print_query_header).
func (a *applier) session(q binlogevent.Query, e binlogevent.Event) string {
	var set []string
	add := func(format string, args ...any) { set = append(set, fmt.Sprintf(format, args...)) }
	add("timestamp = %d.%06d", e.Seconds, q.Micros)
	add("pseudo_thread_id = %d", q.Thread)
	if f := q.Flags2; f >= 0 {
		bit := func(mask int64) int { return map[bool]int{true: 1}[f&mask != 0] }
		add("foreign_key_checks = %d, unique_checks = %d, sql_auto_is_null = %d", 1-bit(binlogevent.Flags2NoForeignKeys), 1-bit(binlogevent.Flags2RelaxedUnique), bit(binlogevent.Flags2AutoIsNull))
	}
	if q.SQLMode != nil {
		add("sql_mode = %d", *q.SQLMode&a.words.SQLModeMask)
	}
	inc := [2]uint16{1, 1}
	if q.AutoIncrement != nil {
		inc = *q.AutoIncrement
	}
	add("auto_increment_increment = %d, auto_increment_offset = %d", inc[0], inc[1])
	if q.Charset != nil {
		add("character_set_client = %d, collation_connection = %d, collation_server = %d", mysql.ClientCharset(q.Charset[0]), q.Charset[1], q.Charset[2])
	}
	if q.TimeZone != nil {
		add("time_zone = '%s'", *q.TimeZone) // see notInZone
	}
	if q.LCTimeNames >= 0 {
		add("lc_time_names = %d", q.LCTimeNames)
	}
	if q.CharsetDatabase >= 0 {
		add("collation_database = %d", q.CharsetDatabase)
	}
	if a.plan.source.LogsDefaults() {
		if q.DefaultUTF8MB4 >= 0 {
			add("default_collation_for_utf8mb4 = %d", q.DefaultUTF8MB4)
		}
		if q.RequirePK >= 0 {
			add("sql_require_primary_key = %d", q.RequirePK)
		}
		if q.TableEncryption >= 0 {
			add("default_table_encryption = %d", q.TableEncryption)
		}
		if q.ExplicitTS >= 0 {
			add("explicit_defaults_for_timestamp = %d", q.ExplicitTS)
		}
	}
	out := "SET " + strings.Join(set, ", ")
	if q.Schema != "" && q.Schema != a.schema && e.Flags&suppressUse == 0 {
		a.utf8()
		out = "USE " + mysql.Quote(q.Schema) + ";" + out
		a.schema = q.Schema
	}
	return out
}

// prepare ends the first half of an XA transaction.
func (a *applier) prepare(ctx context.Context, e binlogevent.Event) error {
	x, err := binlogevent.ParseXAPrepare(e.Body)
	if err != nil {
		return err
	}
	if a.xaLater != "" { // nothing in it is wanted
		a.xaLater = ""
		return nil
	}
	text := "XA PREPARE " + x.SQL()
	if x.OnePhase {
		text = "XA COMMIT " + x.SQL() + " ONE PHASE"
	} else {
		a.result.Prepared = append(a.result.Prepared, x.SQL())
	}
	a.add(text)
	if err := a.flush(ctx); err != nil {
		return err
	}
	a.xa, a.open = "", false
	// A session with a prepared transaction may do nothing else on some servers; without it the transaction stays prepared.
	a.s.Close()
	if err := a.connect(ctx); err != nil {
		return err
	}
	return a.sendFormat(ctx)
}

func (a *applier) userVar(ctx context.Context, e binlogevent.Event) error {
	v, err := binlogevent.ParseUserVar(e.Body)
	if err != nil {
		return err
	}
	collation := ""
	if v.Kind == 0 && !v.Null {
		collation, err = a.s.Value(ctx, fmt.Sprintf("SELECT /* risso: a user variable's collation */ COLLATION_NAME FROM INFORMATION_SCHEMA.COLLATIONS WHERE ID = %d", v.Collation))
		if err != nil {
			return err
		}
	}
	value, err := v.Assignment(collation)
	if err != nil {
		return err
	}
	a.utf8()
	a.add("SET @" + mysql.Quote(v.Name) + " = " + value)
	return nil
}

// rollLock is the name of the lock that keeps a second roll forward out.
const rollLock = "risso roll forward"

// lockRoll waits for a session that a killed process left: what it was doing has ended then, one way or the other.
func lockRoll(ctx context.Context, s *replayer) error {
	got, err := s.Value(ctx, "SELECT /* risso: one roll forward at a time */ GET_LOCK('"+rollLock+"', 60)")
	if err != nil {
		return fmt.Errorf("lock the roll forward: %w", err)
	}
	if got != "1" {
		return fmt.Errorf("%w: another roll forward has been running on it for over a minute", ErrTarget)
	}
	return nil
}

// progress notes on the server what was applied, in the transactions that are.
type progress interface {
	has(file string, pos int64) bool     // the transaction that begins there was applied
	save(p Place, g mysql.GTID) string   // the statement that notes a transaction, which ends there
	pending(p Place, text []byte) string // the statement that notes that a statement is going to run that no transaction protects
	drop(ctx context.Context, s *replayer) error
}

// rollJournal is how far a roll forward has come, in a table of the server itself, which changes in the transactions that it
// describes. It is for servers whose GTIDs do not say.
type rollJournal struct {
	id    string
	saved Place // what was done ends there; the zero value: nothing
}

// rollID names a roll forward by where it begins.
func rollID(from repo.Position) string {
	sum := sha256.Sum256([]byte(from.GTIDSet + "\x00" + from.File + "\x00" + fmt.Sprint(from.Offset)))
	return hex.EncodeToString(sum[:16])
}

// Forget removes what a server has noted of how far a Roll from a position came: the next one begins there. What is noted of another one stays.
func Forget(ctx context.Context, into mysql.Target, from repo.Position) error {
	c, err := mysql.Connect(ctx, into, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	rows, err := c.Maps(ctx, "SELECT /* risso: what is noted of roll forwards? */ COUNT(*) AS others FROM "+repo.RollSchema+".progress WHERE id <> '"+rollID(from)+"'")
	switch {
	case mysql.Gone(err):
		return nil
	case err == nil && len(rows) == 1 && rows[0]["others"] == "0":
		err = c.Exec(ctx, "DROP DATABASE IF EXISTS "+repo.RollSchema)
	case err == nil:
		err = c.Exec(ctx, "DELETE FROM "+repo.RollSchema+".progress WHERE id = '"+rollID(from)+"'")
	}
	if err != nil {
		return fmt.Errorf("remove the journal of the roll forward: %w", err)
	}
	return nil
}

// startByJournal finds what an earlier call has left, or begins.
func (a *applier) startByJournal(ctx context.Context) error {
	j := &rollJournal{id: rollID(a.o.From)}
	a.j = j
	const create = "CREATE DATABASE IF NOT EXISTS " + repo.RollSchema + `;
CREATE TABLE IF NOT EXISTS ` + repo.RollSchema + `.progress (id CHAR(32) CHARACTER SET ascii PRIMARY KEY, file VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
 pos BIGINT NOT NULL, pending LONGBLOB) ENGINE=InnoDB COMMENT 'how far risso has applied binary logs; it goes when that is done'`
	if err := a.s.Exec(ctx, create); err != nil {
		return fmt.Errorf("create the journal of the roll forward: %w", err)
	}
	get := func(expr string) (string, error) {
		return a.s.Value(ctx, "SELECT /* risso: resume */ "+expr+" FROM "+repo.RollSchema+".progress WHERE id = '"+j.id+"'")
	}
	other, err := a.s.Value(ctx, "SELECT /* risso: resume */ COUNT(*) FROM "+repo.RollSchema+".progress WHERE id <> '"+j.id+"'")
	if err != nil {
		return err
	}
	if other != "0" {
		return fmt.Errorf("%w: a roll forward from another position was interrupted on it: finish that first, or DROP DATABASE %s", ErrTarget, repo.RollSchema)
	}
	if err := a.s.Exec(ctx, "INSERT IGNORE INTO "+repo.RollSchema+".progress (id, file, pos) VALUES ('"+j.id+"', '', 0)"); err != nil {
		return err
	}
	if j.saved.File, err = get("file"); err != nil {
		return err
	}
	pos, err := get("pos")
	if err != nil {
		return err
	}
	fmt.Sscan(pos, &j.saved.Pos)
	pending, err := get("pending")
	if err != nil || pending == "" {
		return err
	}
	return a.unclear(ctx, j, pending)
}

// unclear decides about a statement that was running when a process was killed.
func (a *applier) unclear(ctx context.Context, j *rollJournal, pending string) error {
	place, text, _ := strings.Cut(pending, "\n")
	switch a.o.Again {
	case PendingAgain:
		return nil
	case PendingDone:
		var p Place
		file, pos, _ := strings.Cut(place, "\t")
		fmt.Sscan(pos, &p.Pos)
		p.File, p.Pos = file, p.Pos+1 // after where it begins
		if err := a.s.Exec(ctx, j.save(p, mysql.GTID{})); err != nil {
			return err
		}
		j.saved = p
		return nil
	}
	look := "look at the server"
	if strings.HasPrefix(text, "XA ") { // it stays prepared when its session ends
		look = "check the server (if XA RECOVER lists the transaction as prepared: done)"
	}
	return fmt.Errorf("%w: %s: %.300s; %s, then say done or again", ErrPending, strings.ReplaceAll(place, "\t", ":"), text, look)
}

// has reports whether the transaction that begins at a position was done.
func (j *rollJournal) has(file string, pos int64) bool {
	if c := CompareNames(file, j.saved.File); j.saved.File == "" || c != 0 {
		return j.saved.File != "" && c < 0
	}
	return pos < j.saved.Pos
}

// save is the statement that notes that everything before a place is done.
func (j *rollJournal) save(p Place, _ mysql.GTID) string {
	return fmt.Sprintf("UPDATE %s.progress SET file = X'%x', pos = %d, pending = NULL WHERE id = '%s'", repo.RollSchema, p.File, p.Pos, j.id)
}

// pending is the statement that notes that a statement is going to run.
func (j *rollJournal) pending(p Place, text []byte) string {
	note := fmt.Sprintf("%s\t%d\t%s\n%s", p.File, p.Pos, p.GTID, text[:min(len(text), 4096)])
	return fmt.Sprintf("UPDATE %s.progress SET pending = X'%x' WHERE id = '%s'", repo.RollSchema, note, j.id)
}

// drop removes the journal: everything is done.
func (j *rollJournal) drop(ctx context.Context, s *replayer) error {
	return s.Exec(ctx, "DROP DATABASE IF EXISTS "+repo.RollSchema)
}

package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// RollOptions say what is applied to which server.
type RollOptions struct {
	Files []File         // in order
	From  repo.Position  // what the server has: of a backup, its position
	Stop  Stop           // where to end; the zero value: at the end of the logs
	Skip  []mysql.GTID   // transactions that are left out; with KeepGTIDs replaced by empty ones
	Into  mysql.Target   // the server
	Only  TableFilter    // only what changes these tables; nil: everything
	Names TableNames     // the names of those tables on the server, if they differ; needs Only; nil: they have the same
	Keep  bool           // transactions keep their GTIDs
	Again PendingPolicy  // what to do about a statement of which it is unknown whether it ran
	Leave bool           // what the server has noted of how far it came stays at the end, until Forget: called again, nothing is applied
	Tell  func(Progress) // how far it is, several times a second; may be nil

	// Lacks says what is stored with the logs and cannot be read; "": nothing. It is a note, and an error if the logs end before Stop.Time.
	Lacks string

	// Own says that the logs are of the server that From is of: then its file and offset must be in them, too, else ErrHistory or ErrShort says
	// why not. Without, they may be another server's, and file and offset count only if there are no GTIDs.
	Own    bool
	Moment time.Time // with Own: when the server was at From, by its clock; a log of that name begun later is of another history. Zero: unknown
}

// TableFilter says whether a table is wanted.
type TableFilter func(schema, table string) bool

// TableNames returns the name on the server of a table in the logs.
type TableNames func(schema, table string) (string, string)

// renames reports whether a table has another name on the server.
func (o RollOptions) renames(schema, table string) bool {
	if o.Names == nil {
		return false
	}
	s, t := o.Names(schema, table)
	return s != schema || t != table
}

// PendingPolicy says what to do when a process was killed during a statement that no transaction protects (DDL) and the
// server's GTIDs do not show whether it was done.
type PendingPolicy string

// The policies.
const (
	PendingRefuse PendingPolicy = ""
	PendingDone   PendingPolicy = "done"  // it was done: go on after it
	PendingAgain  PendingPolicy = "again" // it was not: run it
)

// Stop is where rolling forward ends. At most one of Time, GTID and File is set.
type Stop struct {
	Time   time.Time  // before the first transaction that was committed then or later
	GTID   mysql.GTID // with this transaction
	Before bool       // before GTID instead
	File   string     // before the event that begins at Pos of this log, or the next one
	Pos    int64
}

// IsZero says that it is the end of the logs.
func (s Stop) IsZero() bool { return s.Time.IsZero() && s.GTID.IsZero() && s.File == "" }

// Progress is how far it is.
type Progress struct {
	Bytes, Total int64 // of the logs
	Transactions int64 // applied
	File         string
	Time         time.Time // of the last transaction
}

// RollResult is the result of applying logs.
type RollResult struct {
	Transactions int64         `json:"transactions"` // applied
	Had          int64         `json:"had"`          // transactions that the server already had
	LeftOut      int64         `json:"left_out"`     // transactions left out by Skip, or because they change none of the tables selected
	LastGTID     mysql.GTID    `json:"last_gtid"`    // GTID of the last one applied
	LastTime     time.Time     `json:"last_time"`
	Next         Place         `json:"next"`                // where the first transaction not applied begins; the end of the logs if there is none
	Stopped      string        `json:"stopped"`             // why it stopped there
	AtEnd        bool          `json:"at_end,omitempty"`    // it stopped because the logs end, before the requested point
	GTIDs        mysql.GTIDSet `json:"gtids"`               // the starting position, plus all transactions applied or skipped since
	Prepared     []string      `json:"prepared"`            // prepared XA transactions waiting for COMMIT or ROLLBACK
	Notes        []string      `json:"notes"`               // what a person should know
	Bytes        int64         `json:"bytes"`               // bytes of logs read
	Planned      bool          `json:"planned"`             // nothing was done
	Stretches    []Stretch     `json:"stretches,omitempty"` // the parts of the logs that were, or would be, read
}

// Stretch is the part of one log between the position and the end.
type Stretch struct {
	File         string `json:"file"`
	From         int64  `json:"from"` // where the first transaction after the position begins
	To           int64  `json:"to"`   // where the last one ends; equal to From if there is none
	Transactions int64  `json:"transactions"`
	skipped      int64  // transactions that are left out
}

// Bytes is how long it is.
func (s Stretch) Bytes() int64 { return s.To - s.From }

// add takes a transaction that is applied.
func (s *Stretch) add(from, to int64) {
	if s.Transactions == 0 {
		s.From = from
	}
	s.To = to
	s.Transactions++
}

// pass takes one that is not.
func (s *Stretch) pass(to int64) {
	if s.Transactions == 0 {
		s.From, s.To = to, to
	}
}

// Place is a position in the logs.
type Place struct {
	File string     `json:"file"`
	Pos  int64      `json:"position"`
	GTID mysql.GTID `json:"gtid"` // GTID of the transaction that begins there
}

// String is the place as people write it.
func (p Place) String() string {
	s := fmt.Sprintf("%s:%d", p.File, p.Pos)
	if !p.GTID.IsZero() {
		s = p.GTID.String() + " (" + s + ")"
	}
	return s
}

// Errors of rolling forward.
var (
	ErrGap      = errors.New("transactions between the position and the logs are missing")
	ErrNoStop   = errors.New("the logs do not have the transaction to stop at")
	ErrPast     = errors.New("the position is past the point to stop at")
	ErrPending  = errors.New("it is unknown whether the statement that was running was carried out")
	ErrContents = errors.New("the logs cannot be replayed")
	ErrTarget   = errors.New("the server cannot take these transactions")
	ErrRenamed  = errors.New("a statement was logged as text and contains only the old name of a table")
)

// Plan is what rolling a server forward will do.
type Plan struct {
	Result RollResult // as if it had been done; of a plan that cannot be, up to the obstacle
	o      RollOptions
	files  []File // from the first one that is needed
	from   mysql.GTIDSet
	byGTID bool  // the start is given by GTIDs, not by file and offset
	offset int64 // in the first file, if it is given by that
	total  int64
	adds   mysql.GTIDSet
	source mysql.Server // what wrote the first log
}

// PlanRoll says what applying transactions from binary logs to a server will do, and changes nothing: the logs are read once. It is an error when they
// do not reach back to the position, have a hole, or do not have the transaction to stop at.
func PlanRoll(ctx context.Context, o RollOptions) (*Plan, error) {
	p := &Plan{o: o, Result: RollResult{Planned: true}}
	err := p.read(ctx)
	if err != nil {
		return p, err
	}
	if note := plannedFilter(ctx, o); note != "" {
		p.Result.Notes = append(slices.Clip(p.Result.Notes), note)
	}
	return p, nil
}

// plannedFilter is what filtered says about the server, if one is named.
func plannedFilter(ctx context.Context, o RollOptions) string {
	if o.Into.Address() == "" {
		return ""
	}
	c, err := mysql.Connect(ctx, o.Into, nil)
	note := ""
	if err == nil {
		defer c.Close()
		note, err = filtered(ctx, c)
	}
	if err != nil {
		return "what the target's binary logs leave out is unknown: " + err.Error()
	}
	return note
}

// Steps are what Execute does, in this order.
func (p *Plan) Steps() change.Plan { return p.steps(nil) }

// steps are those of an applier.
func (p *Plan) steps(a *applier) (steps change.Plan) {
	if !p.o.Keep {
		steps = append(steps, change.Step{What: "make schema", Where: repo.RollSchema, Why: "it notes how far this is", Do: func(ctx context.Context) error { return a.startByJournal(ctx) }})
	}
	for i, s := range p.Result.Stretches {
		if s.Transactions+s.skipped == 0 {
			continue
		}
		why := digits.Counted(s.Transactions, "transaction") + ", " + digits.Bytes(s.Bytes())
		if s.skipped > 0 {
			why += fmt.Sprintf(", %d left out", s.skipped)
		}
		steps = append(steps, change.Step{What: "apply", Where: fmt.Sprintf("%s from %d to %d", s.File, s.From, s.To), Why: why, Do: func(ctx context.Context) error { return a.through(ctx, i) }})
	}
	last := change.Step{What: "remove schema", Where: repo.RollSchema, Why: "all is applied"}
	if p.o.Keep {
		last = change.Step{What: "compare GTIDs", Why: "the server has to say that it has all of them"}
	}
	if last.Do = func(ctx context.Context) error { return a.close(ctx) }; p.o.Keep || !p.o.Leave {
		steps = append(steps, last)
	}
	return steps
}

// Execute applies the transactions of a plan to the server, exactly once each, also when it was killed in between and is called
// again with a plan from the same position. Rows are applied by the server itself from the events (BINLOG statements, as mysqlbinlog has
// them), statements that were logged as text run in the session that they ran in. See DESIGN.md.
func (p *Plan) Execute(ctx context.Context, log change.Log) (RollResult, error) {
	a, err := openApplier(ctx, p)
	if err != nil {
		return RollResult{}, err
	}
	defer func() { a.s.Close() }() // which may be another one by then
	_, err = change.Execute(ctx, p.steps(a), log)
	if err == nil {
		err = a.finish(ctx)
	}
	return a.result, err
}

// read reads the logs once: headers and GTIDs.
func (p *Plan) read(ctx context.Context) (err error) {
	o := p.o
	if len(o.Files) == 0 {
		return fmt.Errorf("%w: there are no logs", ErrGap)
	}
	if o.Names != nil && o.Only == nil {
		return errors.New("renaming needs a selection of tables")
	}
	if p.from, err = mysql.ParseGTIDSet(o.From.GTIDSet); err != nil {
		return err
	}
	if o.Lacks != "" {
		p.Result.Notes = append(p.Result.Notes, o.Lacks)
	}
	if err := eachOnce(o.Files); err != nil {
		return err
	}
	if id := o.Stop.GTID; !id.IsZero() && p.from.Contains(id) {
		return p.there(o.Stop)
	}
	if err := p.choose(ctx, o); err != nil {
		return err
	}
	if s := o.Stop; s.File != "" && CompareNames(p.files[0].Name, s.File) > 0 {
		return fmt.Errorf("%w: the first transaction it does not have is in %s, after %s:%d", ErrPast, p.files[0].Name, s.File, s.Pos)
	}
	w := walker{o: o, p: p, h: newHistory(&o), order: newOrder(p.from)}
	for i, f := range p.files {
		err := w.file(ctx, i, f)
		p.Result.Bytes = p.total
		if err != nil {
			return err
		}
		if w.stopped {
			break
		}
	}
	switch {
	case w.stopped:
	case !o.Stop.GTID.IsZero():
		return fmt.Errorf("%w: %s", ErrNoStop, o.Stop.GTID)
	case o.Stop.File != "":
		return fmt.Errorf("%w: %s is not among them, or ends before %d", ErrNoStop, o.Stop.File, o.Stop.Pos)
	case !o.Stop.Time.IsZero() && o.Lacks != "":
		return fmt.Errorf("%w: they end before the time to stop at, and %s", ErrGap, o.Lacks)
	case !o.Stop.Time.IsZero():
		p.Result.Stopped, p.Result.AtEnd = "where the logs end, before the time to stop at, "+o.Stop.Time.UTC().Format(time.RFC3339Nano), true
	default:
		p.Result.Stopped, p.Result.AtEnd = "where the logs end", true
	}
	p.Result.GTIDs = p.from.Union(p.adds)
	return nil
}

// eachOnce refuses a log that is named twice, as by a pattern that matches both binlog.000003 and binlog.000003.gz: what is in it would
// be applied twice.
func eachOnce(files []File) error {
	names := map[string]bool{}
	for _, f := range files {
		if names[f.Name] {
			return fmt.Errorf("%w: %s is there twice, but its transactions must be applied once: name only one of the two", ErrContents, f.Name)
		}
		names[f.Name] = true
	}
	return nil
}

// there checks a point to stop at that the position already has: it is right only if nothing came after it.
func (p *Plan) there(s Stop) error {
	last, alone := p.from.Last(s.GTID)
	switch {
	case s.Before:
		return fmt.Errorf("%w: it has %s, which is to be left out", ErrPast, s.GTID)
	case !last:
		return fmt.Errorf("%w: it has %s, and more after it: %s", ErrPast, s.GTID, p.from)
	case !alone:
		p.Result.Notes = append(p.Result.Notes, fmt.Sprintf("GTIDs do not say whether the position's transactions of other servers (%s) were committed before %s or after it", p.from, s.GTID))
	}
	p.Result.GTIDs, p.Result.Stopped = p.from, "at once: the position has "+s.GTID.String()+" already"
	return nil
}

// choose finds the log to begin with: by GTID the last one before which the server had nothing beyond the position.
func (p *Plan) choose(ctx context.Context, o RollOptions) error {
	p.byGTID = !p.from.Empty()
	h := newHistory(&o)
	if err := h.absent(ctx); err != nil {
		return err
	}
	if !p.byGTID {
		if o.From.File == "" {
			p.files = o.Files
			return nil
		}
		for i, f := range o.Files {
			if f.Name == o.From.File {
				p.files, p.offset = o.Files[i:], o.From.Offset
				return nil
			}
		}
		return fmt.Errorf("%w: %s is not among the logs, which begin with %s", ErrGap, o.From.File, o.Files[0].Name)
	}
	begin := len(o.Files) - 1
	if h.listed { // the log of the position is looked at, also where all GTIDs of it are there
		begin = slices.IndexFunc(o.Files, func(f File) bool { return f.Name == o.From.File })
	}
	for i := begin; i >= 0; i-- {
		before, found, err := beforeLog(ctx, o.Files[i])
		if err != nil {
			return err
		}
		if found && p.from.ContainsSet(before) {
			p.files = o.Files[i:]
			return nil
		}
		if i == 0 {
			missing := before.Subtract(p.from)
			return fmt.Errorf("%w: the first log, %s, begins after %s; of these the position does not have %s", ErrGap, o.Files[0].Name, before, missing)
		}
	}
	return nil
}

// beforeLog reads what was there before a log began.
func beforeLog(ctx context.Context, f File) (s mysql.GTIDSet, found bool, err error) {
	if f.Index != nil && !f.Index.Before.Empty() {
		return f.Index.Before, true, nil
	}
	in, err := f.Open(ctx)
	if err != nil {
		return s, false, fmt.Errorf("open %s: %w", f.Name, err)
	}
	defer in.Close()
	r, err := binlogevent.NewReader(in, binlogevent.Options{})
	if err != nil {
		return s, false, fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	for range 4 {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return s, false, nil
		}
		if err != nil {
			return s, false, fmt.Errorf("%s: %w", f.Name, err)
		}
		if e.Type == binlogevent.TypePreviousGTIDs || e.Type == binlogevent.TypeMariaGTIDList {
			s, err = binlogevent.ParseGTIDs(e)
			return s, true, err
		}
	}
	return s, false, nil
}

// walker skips the logs and decides about each transaction what rolling forward would do.
type walker struct {
	o       RollOptions
	p       *Plan
	end     mysql.GTIDSet // what the log before ended with
	started bool
	plain   bool // a transaction without a GTID was seen
	stopped bool
	closed  bool // the current log ends as a server ends one before it starts the next
	b       binlogevent.Boundaries
	h       history
	order   order
}

func (w *walker) file(ctx context.Context, i int, f File) error {
	in, err := f.Open(ctx)
	if err != nil {
		return fmt.Errorf("open %s: %w", f.Name, err)
	}
	defer in.Close()
	options := binlogevent.Options{MaxBody: 16 << 20, KeepPayload: true, Skip: notForIndex}
	if w.o.Names != nil { // statements are looked at, also in compressed transactions
		options = binlogevent.Options{Skip: func(h binlogevent.Header) bool {
			return h.Type != binlogevent.TypePayload && h.Type != binlogevent.TypeXid && notForIndex(h)
		}}
	}
	r, err := binlogevent.NewReader(in, options)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	if i > 0 && !w.closed && w.plain {
		w.p.Result.Notes = append(w.p.Result.Notes, fmt.Sprintf("%s does not end as a server ends a log: the server crashed, or the copy is truncated; without GTIDs it is unknown whether transactions are missing", w.p.files[i-1].Name))
	}
	w.b, w.closed = binlogevent.Boundaries{}, false
	begin := int64(len(binlogevent.Magic))
	w.p.Result.Next = Place{File: f.Name, Pos: begin}
	w.p.Result.Stretches = append(w.p.Result.Stretches, Stretch{File: f.Name, From: begin, To: begin})
	for {
		e, err := r.Next()
		last := i+1 == len(w.p.files)
		switch {
		case (errors.Is(err, io.EOF) || errors.Is(err, binlogevent.ErrTorn)) && r.Pos() < f.Least:
			return f.short(r.Pos())
		case errors.Is(err, io.EOF):
			w.p.total += r.Pos()
			return w.h.end(f.Name, r.Pos(), w.b.Open)
		case errors.Is(err, binlogevent.ErrTorn) && last:
			w.p.Result.Notes = append(w.p.Result.Notes, fmt.Sprintf("%s ends in the middle of an event at %d: complete events are applied", f.Name, r.Pos()))
			w.p.total += r.Pos()
			return w.h.end(f.Name, r.Pos(), w.b.Open)
		case err != nil:
			return fmt.Errorf("%s: %w", f.Name, err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if i == 0 && !w.started {
			w.started = true
			w.p.source = mysql.Of(r.Format().Server())
		}
		if err := w.event(f, e, i == 0); err != nil || w.stopped {
			w.p.total += r.Pos()
			return err
		}
	}
}

// event counts one event and says in w.stopped whether the walk ends before it.
func (w *walker) event(f File, e binlogevent.Event, first bool) error {
	if err := w.h.event(f.Name, e, w.b.Open); err != nil {
		return err
	}
	switch e.Type {
	case binlogevent.TypePreviousGTIDs, binlogevent.TypeMariaGTIDList:
		before, err := binlogevent.ParseGTIDs(e)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if err := w.follows(f, before, first); err != nil {
			return err
		}
		w.end = w.end.Union(before)
		return nil
	case binlogevent.TypeRotate, binlogevent.TypeStop:
		w.closed = true
	case binlogevent.TypeIncident:
		return fmt.Errorf("%w: at %s:%d the server says that it lost events (an incident)", ErrContents, f.Name, e.Pos)
	case binlogevent.TypeBeginLoadQuery:
		return fmt.Errorf("%w: at %s:%d begins a LOAD DATA that was logged as a statement", ErrContents, f.Name, e.Pos)
	}
	began, ended := w.b.Next(e)
	if began && w.h.behind(f.Name) && w.o.Stop.before(f.Name, e, w.b.GTID) {
		if w.had(first) {
			return fmt.Errorf("%w: it has what begins at %s:%d%s, of %s", ErrPast, f.Name, e.Pos, gtidIn(w.b.GTID.ID), commitTime(w.b.GTID, e.Seconds).UTC().Format("2006-01-02 15:04:05.999999Z"))
		}
		w.stop(f, e)
		return nil
	}
	if err := w.names(f, e, first); err != nil {
		return err
	}
	if !ended {
		return nil
	}
	id := w.b.GTID.ID
	w.end.Add(id)
	w.plain = w.plain || id.IsZero()
	if w.p.byGTID {
		if err := w.h.transaction(f.Name, w.b.GTID, w.p.from.Contains(id)); err != nil {
			return err
		}
		if err := w.order.next(f.Name, id, w.p.from.Contains(id)); err != nil {
			return err
		}
	}
	if w.had(first) {
		w.p.Result.Had++
		w.stretch().pass(e.End)
	} else {
		if w.o.Keep && id.IsZero() {
			return fmt.Errorf("%w: the transaction at %s:%d has no GTID to keep", ErrContents, f.Name, w.b.Pos)
		}
		if w.p.count(w.o, w.b.GTID, w.b.When) {
			w.stretch().add(w.b.Pos, e.End)
		} else {
			w.stretch().pass(e.End)
			w.stretch().skipped++
		}
	}
	w.p.Result.Next = Place{File: f.Name, Pos: e.End}
	if !w.o.Stop.GTID.IsZero() && id == w.o.Stop.GTID {
		w.stopped = true
		w.p.Result.Stopped = "with " + id.String()
	}
	return nil
}

// stretch is that of the log that is read.
func (w *walker) stretch() *Stretch { return &w.p.Result.Stretches[len(w.p.Result.Stretches)-1] }

// follows makes sure that nothing is missing between a log and the one that was read before it. Where transactions have no
// GTIDs only the logs' numbers show it.
func (w *walker) follows(f File, before mysql.GTIDSet, first bool) error {
	if first {
		return nil
	}
	missing := w.missing(f)
	if !w.end.ContainsSet(before) {
		return fmt.Errorf("%w: before %s there should be %s%s", ErrGap, f.Name, before.Subtract(w.end), missing)
	}
	if missing != "" && !w.p.source.GTIDsByDomain() && (w.plain || before.Empty()) {
		return fmt.Errorf("%w%s", ErrGap, missing)
	}
	return nil
}

// missing names the logs that are not there between a log and the one before it.
func (w *walker) missing(f File) string {
	was := w.p.Result.Stretches[len(w.p.Result.Stretches)-2].File
	gone := Number(f.Name) - Number(was) - 1
	switch { // also if the numbers start over
	case Number(f.Name) <= Number(was)+1:
		return ""
	case gone == 1:
		return fmt.Sprintf(" (the log between %s and %s is missing)", was, f.Name)
	}
	return fmt.Sprintf(" (%d logs between %s and %s are missing)", gone, was, f.Name)
}

// had reports whether the position has the open transaction.
func (w *walker) had(first bool) bool {
	return w.p.byGTID && w.p.from.Contains(w.b.GTID.ID) || first && w.b.Pos < w.p.offset
}

// names refuses a statement on wanted tables that names one with another name on the server, even if it only reads it:
// in text that cannot be determined.
func (w *walker) names(f File, e binlogevent.Event, first bool) error {
	if w.o.Names == nil || e.Type != binlogevent.TypeQuery && e.Type != binlogevent.TypeQueryZip || w.had(first) || w.o.skips(w.b.GTID.ID) {
		return nil
	}
	q, err := binlogevent.ParseQuery(e)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", f.Name, e.Pos, err)
	}
	if _, ok := w.o.renamed(q); ok {
		return nil
	}
	changed := changedTables(q)
	if !slices.ContainsFunc(changed, func(t sqltext.Table) bool { return w.o.Only(t.Schema, t.Name) }) {
		return nil
	}
	for _, t := range slices.Concat(changed, namedTables(q)) {
		if w.o.Only(t.Schema, t.Name) && w.o.renames(t.Schema, t.Name) {
			return fmt.Errorf("%w: at %s:%d%s: %.200s", ErrRenamed, f.Name, e.Pos, gtidIn(w.b.GTID.ID), q.Text)
		}
	}
	return nil
}

func (w *walker) stop(f File, e binlogevent.Event) {
	w.stopped = true
	w.p.Result.Next = Place{File: f.Name, Pos: e.Pos, GTID: w.b.GTID.ID}
	w.p.Result.Stopped = w.o.Stop.reason()
}

// count counts a transaction, and says whether it is applied.
func (p *Plan) count(o RollOptions, g binlogevent.GTID, when uint32) bool {
	p.adds.Add(g.ID)
	if o.skips(g.ID) {
		p.Result.LeftOut++
		return false
	}
	p.Result.Transactions++
	p.Result.LastGTID = g.ID
	p.Result.LastTime = commitTime(g, when)
	return true
}

// commitTime is when a transaction was committed, as precisely as the log has it: at least the time of its first event.
func commitTime(g binlogevent.GTID, first uint32) time.Time {
	if !g.Committed.IsZero() {
		return g.Committed
	}
	return time.Unix(int64(first), 0).UTC()
}

func (o RollOptions) skips(id mysql.GTID) bool {
	for _, s := range o.Skip {
		if s == id && !id.IsZero() {
			return true
		}
	}
	return false
}

// before reports whether rolling ends before the transaction that begins with an event.
func (s Stop) before(file string, e binlogevent.Event, g binlogevent.GTID) bool {
	switch {
	case !s.Time.IsZero():
		return !commitTime(g, e.Seconds).Before(s.Time)
	case s.File != "":
		return file == s.File && e.Pos >= s.Pos || CompareNames(file, s.File) > 0
	case !s.GTID.IsZero() && s.Before:
		return g.ID == s.GTID
	}
	return false
}

func (s Stop) reason() string {
	switch {
	case !s.Time.IsZero():
		return "before the first transaction from " + s.Time.UTC().Format(time.RFC3339Nano) + " on"
	case s.File != "":
		return fmt.Sprintf("before %s:%d", s.File, s.Pos)
	}
	return "before " + s.GTID.String()
}

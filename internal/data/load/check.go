package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sqltext"
)

// check makes sure, before the first change, that nothing is in the way and that the target knows what the backup holds.
func (r *run) check(ctx context.Context, s *session) error {
	if err := mayWrite(ctx, s); err != nil {
		return err
	}
	found, what, backup, began, err := r.findJournal(ctx, s)
	switch {
	case err != nil:
		return err
	case found && what == r.asked():
		r.resumed, r.plan.Resumes = true, true
		if err := r.readEarlier(ctx, s); err != nil {
			return err
		}
	case found && !r.o.Overwrite:
		return fmt.Errorf("%w: %s, begun %s: run that one again to continue it", ErrUnfinished, backup, began)
	case found:
		r.plan.Notes = append(r.plan.Notes, fmt.Sprintf("the restore of %s, begun %s, was not finished: its journal is removed; what it created stays unless it is overwritten", backup, began))
	}
	if r.foreignServer() {
		if err := r.rehearseAll(ctx); err != nil {
			return err
		}
		r.plan.Findings = r.findings()
	}
	if err := r.refuseFindings(); err != nil {
		return err
	}
	if err := r.checkNames(); err != nil {
		return err
	}
	if err := r.askNames(ctx, s); err != nil {
		return err
	}
	if err := r.checkPointers(); err != nil {
		return err
	}
	if err := r.tellMeetings(); err != nil {
		return err
	}
	if err := r.tellDefiners(ctx, s); err != nil {
		return err
	}
	if err := r.unrenamed(); err != nil {
		return err
	}
	orphans, err := r.tellOrphans()
	if err != nil {
		return err
	}
	r.plan.Notes = append(r.plan.Notes, orphans...)
	if err := r.planPrograms(); err != nil {
		return err
	}
	if err := r.tellBroken(); err != nil {
		return err
	}
	if err := r.checkWay(ctx, s); err != nil {
		return err
	}
	return r.planReferers(ctx, s)
}

// mayWrite refuses a server that is read-only to this account. It asks by a statement that changes nothing: a server that is read-only
// refuses it before it looks for the table, which does not exist.
func mayWrite(ctx context.Context, s *session) error {
	err := s.Exec(ctx, "UPDATE /* risso: may it be changed? */ "+repo.JournalSchema+".nothing SET nothing = 1")
	switch n := mysql.ErrorNumber(err); {
	case n == errno.OptionPrevents || n == errno.ReadOnlyServer:
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case n == 0:
		return err
	}
	return nil
}

// refuseFindings ends a restore of what the target does not know, unless that was allowed.
func (r *run) refuseFindings() error {
	if r.o.SkipIncompatible {
		return nil
	}
	var list []string
	n := 0
	for _, f := range r.plan.Findings {
		if f.Mapped != "" {
			continue
		}
		if n++; n <= 5 {
			list = append(list, f.What+": "+f.Why)
		}
	}
	if n == 0 {
		return nil
	}
	more := ""
	if n > len(list) {
		more = fmt.Sprintf("; and %d more", n-len(list))
	}
	return &Incompatible{Findings: r.plan.Findings, text: strings.Join(list, "; ") + more}
}

// Incompatible says what the target does not know. It is ErrIncompatible.
type Incompatible struct {
	Findings []Finding
	text     string
}

// Error is the first of the findings.
func (e *Incompatible) Error() string { return ErrIncompatible.Error() + ": " + e.text }

// Is makes it ErrIncompatible.
func (e *Incompatible) Is(target error) bool { return target == ErrIncompatible }

// rehearseAll tries in a separate session what a server of another kind may not understand. Nothing is changed.
func (r *run) rehearseAll(ctx context.Context) error {
	s, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := r.rehearse(ctx, s); err != nil {
		return err
	}
	if err := r.rehearsePrograms(ctx, s); err != nil {
		return err
	}
	return r.rehearseAccounts(ctx, s)
}

// Rehearsals go on in several sessions, each with its own temporary tables; the number of tables held in memory at once, and the number for which
// one more session is worth opening.
const (
	heldTables = 256
	perSession = 16
)

// rehearse makes each table as a temporary one, without rows: so the server itself says what it does not understand.
// Temporary tables have no partitions, no foreign keys and no full-text keys: those are only read.
func (r *run) rehearse(ctx context.Context, s *session) error {
	sessions := []*session{s}
	for len(sessions) < min(r.threads, len(r.tables)/perSession) {
		more, err := r.open(ctx)
		if err != nil {
			return err
		}
		defer more.Close()
		sessions = append(sessions, more)
	}
	for _, s := range sessions {
		if err := s.use(ctx, "mysql"); err != nil {
			return err
		}
	}
	var stay []ref
	for list := range slices.Chunk(r.tables, heldTables) {
		held := make([]*fitting, len(list))
		for i, at := range list {
			f, err := r.beginFit(at)
			if err != nil {
				return err
			}
			held[i] = f
		}
		var next atomic.Int64
		var all sync.WaitGroup
		for _, s := range sessions {
			all.Go(func() {
				for i := int(next.Add(1)) - 1; i < len(held); i = int(next.Add(1)) - 1 {
					f := held[i]
					f.def, f.clauses, f.lost, f.err = r.fit(ctx, s, f.def)
				}
			})
		}
		all.Wait()
		for _, f := range held {
			ok, err := r.endFit(f)
			if err != nil {
				return err
			}
			if ok {
				stay = append(stay, f.at)
				continue
			}
			t := f.table
			r.leftOut[leftTable(t.Schema, t.Name)] = true
			r.plan.Tables, r.plan.Rows, r.plan.Bytes = r.plan.Tables-1, r.plan.Rows-t.Rows, r.plan.Bytes-t.Bytes
		}
	}
	r.tables = stay
	return nil
}

// quietly are words of definitions that a server which does not know them reads over.
var quietly = []string{"INVISIBLE", "CHECK", "SRID", "ENFORCED", "IGNORED", "DESC", "ENCRYPTION", "AUTOEXTEND_SIZE"}

// rehearseTable makes a table and drops it. lost are words that the server read over.
func (s *session) rehearseTable(ctx context.Context, def definition) (lost []string, err error) {
	def, _ = def.foreignKeys()
	var items []string
	for _, item := range def.items {
		if !strings.HasPrefix(item, "FULLTEXT KEY") {
			items = append(items, item)
		}
	}
	def.items = items
	if at := partitioning(def.tail); at >= 0 {
		def.tail = def.tail[:at]
	}
	def.tail = withoutUnion(def.tail)
	const name = "`risso_rehearsal`"
	statement := "CREATE TEMPORARY TABLE /* risso: does it know this? */ " + strings.TrimPrefix(def.statement(name), "CREATE TABLE ")
	if err := s.Exec(ctx, statement); err != nil {
		return nil, err
	}
	defer func() {
		if derr := s.Exec(ctx, "DROP TEMPORARY TABLE "+name); err == nil {
			err = derr
		}
	}()
	var shown string
	err = s.Query(ctx, "SHOW CREATE TABLE "+name, func(row [][]byte) error {
		shown = string(row[1])
		return nil
	})
	if err != nil {
		return nil, err
	}
	has, wants := wordsOf(shown), wordsOf(statement)
	for _, word := range quietly {
		switch n := wants[word] - has[word]; {
		case n > 0 && has[word] > 0:
			lost = append(lost, fmt.Sprintf("%s, in %d of %s,", word, n, digits.Counted(int64(wants[word]), "place")))
		case n > 0:
			lost = append(lost, word)
		}
	}
	return lost, nil
}

// withoutUnion takes out which tables a MERGE table is over: they are not there yet, and the server opens them to show it.
func withoutUnion(tail string) string {
	begin, end := asDefault.Find(tail, "UNION", "=")
	if begin < 0 {
		return tail
	}
	t := sqltext.Tokens(tail[end:])
	inside, _, ok := sqltext.Group(t)
	if !ok {
		return tail
	}
	return strings.TrimRight(tail[:begin], " ") + tail[end+t[len(inside)+1].End:]
}

// unversioned is a definition without SYSTEM VERSIONING, which temporary tables cannot have.
func (d definition) unversioned() definition {
	tail := without(d.tail, "WITH", "SYSTEM", "VERSIONING")
	if tail == d.tail {
		return d
	}
	d.tail = tail
	var items, times []string
	for _, item := range d.items {
		if asDefault.Has(item, "GENERATED", "ALWAYS", "AS", "ROW") {
			name, _, _ := unquoted(item)
			times = append(times, mysql.Quote(name))
		}
	}
	for _, item := range d.items {
		if strings.HasPrefix(item, "PERIOD FOR SYSTEM_TIME") || asDefault.Has(item, "GENERATED", "ALWAYS", "AS", "ROW") {
			continue
		}
		if isAnyKey(item) { // the end of a row's time is part of each key that is unique
			for _, name := range times {
				item = strings.Replace(item, ","+name, "", 1)
			}
		}
		items = append(items, without(item, "WITHOUT", "SYSTEM", "VERSIONING"))
	}
	d.items = items
	return d
}

// timeless is a definition without periods of the application, which temporary tables of MariaDB cannot have either.
func (d definition) timeless() definition {
	d.items = slices.DeleteFunc(slices.Clone(d.items), func(item string) bool {
		return strings.HasPrefix(item, "PERIOD FOR ") || isAnyKey(item) && strings.HasSuffix(item, overlaps)
	})
	return d
}

// overlaps is the end of a key with a period in it.
const overlaps = " WITHOUT OVERLAPS)"

// unnumbered is a definition without numbers of sequences, which are not there yet.
func (d definition) unnumbered() definition {
	d.items = slices.Clone(d.items)
	for i, item := range d.items {
		if !strings.HasPrefix(item, "`") {
			continue
		}
		if value := defaultOf(item[nameEnd(item):]); strings.HasPrefix(value, "nextval(") || strings.HasPrefix(value, "lastval(") {
			at := placeOf(item, " DEFAULT ")
			d.items[i] = item[:at] + strings.TrimPrefix(item[at:], " DEFAULT "+value)
		}
	}
	return d
}

// wordsOf counts the words outside of quotes, also in comments that only some servers read.
func wordsOf(s string) map[string]int {
	out := map[string]int{}
	words(s, "", func(_ [2]string, word string) string {
		out[word]++
		return word
	})
	return out
}

// setPosition makes the target record that it has what the backup's server had done.
func (r *run) setPosition(ctx context.Context, s **session) error {
	if !r.o.SetGTID {
		return nil
	}
	set := strings.ReplaceAll(r.header.Position.GTIDSet, "\n", "")
	if r.result.Rolled != nil && r.result.Rolled.GTIDSet != "" {
		set = r.result.Rolled.GTIDSet
	}
	if set == "" {
		return errors.New("--set-gtid: the backup has no GTIDs: the server had none")
	}
	statements := r.server.SetGTIDs(set)
	if state := r.header.Position.State; state != "" && r.server.GTIDsByDomain() { // else who compares takes what others wrote for something that it never had
		all, err := wholeState(state, set)
		if err != nil {
			return err
		}
		statements = slices.Insert(statements, 1, r.server.RememberTransactions(all))
	}
	return r.again(ctx, s, func(s *session) error {
		for _, st := range statements {
			if err := s.Exec(ctx, st); err != nil && mysql.ErrorNumber(err) != errNoBinlog {
				return fmt.Errorf("set the GTIDs of the target: %w", err)
			}
		}
		return nil
	})
}

// wholeState is what a server has had: the last transaction of each server at a backup, and up to where it was rolled forward since.
func wholeState(state, position string) (string, error) {
	s, err := mysql.ParseBinlogState(state)
	if err != nil {
		return "", fmt.Errorf("the GTIDs of the backup: %w", err)
	}
	p, err := mysql.ParseBinlogState(position)
	if err != nil {
		return "", fmt.Errorf("the GTIDs of the backup: %w", err)
	}
	return s.Union(p).String(), nil
}

// errNoBinlog is what MariaDB says to RESET MASTER when it writes no binary log.
const errNoBinlog = 1186

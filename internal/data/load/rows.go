package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// table is a table that is under way.
type table struct {
	repo.Table
	schema, name string // on the target
	id           string // in the journal, as SQL
	def          definition
	later        []string     // keys that are made after the rows are there
	foreign      []string     // foreign keys that are made when all tables are there
	shape        define.Table // of the backup, under the name in the target
	key          chunk.Key
	columns      int
	past         *pastColumns // what leaves its rows; nil: nothing
	statement    string       // LOAD DATA
	prefix       string       // INSERT
	bulk         string       // INSERT with parameters
	text         []bool       // columns that take text only
	transacts    bool         // its engine in the target takes rows back
	resumed      bool         // its rows may be in partly
	away         bool         // the server does not take its definition
	inserts      atomic.Bool  // LOAD DATA does not do for it
	large        atomic.Bool  // INSERT does not either: it has rows that are too large for one
	together     bool         // with others of its task it is noted as equal
	same         bool         // it is, and was not noted yet
	computed     bool         // see definition.computes
	checked      bool         // the server may refuse rows for a CHECK
	loose        atomic.Bool  // it may have: its checks are not enforced until its rows are in
	lane         *lane        // one LOAD DATA at a time; nil: any number

	left    atomic.Int64 // chunks that are not in yet
	mu      sync.Mutex
	sum     chunk.Rows // what was read back
	toSum   int        // chunks that are not compared yet
	note    string     // the first chunk that differs
	said    string     // the first warning about its values
	untyped bool       // types in its JSON documents are others
}

func (t *table) quoted() string { return mysql.Quote(t.schema) + "." + mysql.Quote(t.name) }

// Memory: a chunk up to this size is held as a whole, which is quicker; a larger one is read twice. All sessions share
// rowMemory.
const rowMemory = 96 << 20

// batchBytes is the default of Options.BatchBytes.
const batchBytes = 64 << 20

// loadChunk loads the rows of a chunk that are not in.
func (r *run) loadChunk(ctx context.Context, s **session, t *table, number int) error {
	c := t.Chunks[number]
	held := c.Bytes <= int64(rowMemory/r.threads) && !c.Big
	var raw []byte
	if held {
		b, err := r.readWhole(ctx, t, c)
		if err != nil {
			return err
		}
		defer r.buffers.Put(b)
		raw = b.Bytes()
	} else if err := r.checkChunk(ctx, t, c); err != nil {
		return err
	}
	check := t.resumed // what the journal says has to be asked for
	reported := int64(0)
	again := r.again
	if !t.transacts { // its caller starts over
		again, check = r.attempt, false
	}
	err := again(ctx, s, func(s *session) error {
		var done int64
		if check {
			n, whole, err := readChunk(ctx, s, t, number)
			if err != nil || whole {
				return err
			}
			done = n
		}
		check = true
		var src io.Reader
		f := feedBytes(raw, t.columns)
		if !held {
			rc, err := r.chunkOf(ctx, t, c.Hash)
			if err != nil {
				return err
			}
			defer rc.Close()
			src = rc
			f = feedReader(src, t.columns)
		}
		if err := f.skip(done); err != nil {
			return err
		}
		loose, err := r.loosen(ctx, s, t)
		if err != nil {
			return err
		}
		err = r.loadBatches(ctx, s, t, number, f, done, &reported)
		if !loose && t.refusedByCheck(err) {
			t.loose.Store(true)
			return errAgain
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("load chunk %d of %s: %w", number+1, t.quoted(), r.explainMeeting(t, err))
	}
	r.bytes.Add(c.Bytes - reported)
	return nil
}

// loadBatches loads what a feed returns, a transaction at a time.
func (r *run) loadBatches(ctx context.Context, s *session, t *table, number int, f *feed, done int64, reported *int64) error {
	c := t.Chunks[number]
	for {
		more, err := f.next(r.o.BatchBytes)
		if err != nil {
			return err
		}
		if !more {
			if done != c.Rows {
				return fmt.Errorf("it has %s, the manifest says %d: %w", digits.Counted(done, "row"), c.Rows, repo.ErrDamaged)
			}
			return nil
		}
		if err := s.Exec(ctx, "START TRANSACTION"); err != nil {
			return err
		}
		if err := r.sendRows(ctx, s, t, c, f); err != nil {
			return err
		}
		done += f.rows
		if err := s.Exec(ctx, noteChunk(t, number, done, done == c.Rows)); err != nil {
			return err
		}
		if err := s.Exec(ctx, "COMMIT"); err != nil {
			return err
		}
		if *reported+f.raw <= c.Bytes {
			*reported += f.raw
			r.bytes.Add(f.raw)
		}
	}
}

// sendRows sends the rows of a batch and makes sure that the server took each as it was.
func (r *run) sendRows(ctx context.Context, s *session, t *table, c repo.Chunk, f *feed) error {
	err := r.senderOf(s, t, c)(ctx, s, t, f)
	if errors.Is(err, errTooLarge) && r.localFiles {
		t.large.Store(true)
		return errAgain
	}
	return err
}

// loadRows sends the rows of a batch as a file. If the server refuses that way what it takes as INSERT, the table's rows are
// INSERTed from now on: every session whose chunk is under way gets that, not only the first.
func (r *run) loadRows(ctx context.Context, s *session, t *table, f *feed) error {
	err := s.Load(ctx, t.statement, f)
	if err == nil {
		err = s.complaints(ctx, t)
	}
	var w *warned
	refused := strconv.Itoa(mysql.ErrorNumber(err)) == warnNoDefault || errors.As(err, &w) && w.code == warnNoDefault
	if refused && !t.large.Load() { // what is too large for an INSERT has no other way
		t.inserts.Store(true)
		return errAgain
	}
	return err
}

// Numbers of warnings and errors.
const (
	// warnNoDefault is what LOAD DATA of MySQL 8.0 reports for a geometry that is NOT NULL, whatever its value (seen with
	// 8.0.15). INSERT takes it.
	warnNoDefault = "1364"
	// warnTruncated is the warning for an ENUM's value 0, which means a value that the ENUM does not have.
	warnTruncated = "1265"
)

// harmless are warnings that say nothing about rows: what the server's next version will no longer have.
var harmless = map[string]bool{"1287": true, "1681": true, "3719": true, "3778": true}

// errAgain asks for the same once more.
var errAgain = errors.New("once more")

// warned is a warning of the server about rows that it was given.
type warned struct{ code, text string }

func (w *warned) Error() string {
	return fmt.Sprintf("%v: warning %s, %s", ErrNotKept, w.code, w.text)
}

func (w *warned) Unwrap() error { return ErrNotKept }

// complaints turns warnings into an error: without strict modes a server skips rows that it cannot take, or changes
// them. (MySQL manual, "LOAD DATA Statement": LOCAL has the effect of IGNORE.)
func (s *session) complaints(ctx context.Context, t *table) error {
	var warnings int64
	err := s.Query(ctx, "SHOW /* risso: did it take all rows as they are? */ COUNT(*) WARNINGS", func(row [][]byte) (err error) {
		warnings, err = strconv.ParseInt(string(row[0]), 10, 64)
		return err
	})
	if err != nil || warnings == 0 {
		return err
	}
	var first *warned
	seen := int64(0)
	err = s.Query(ctx, "SHOW WARNINGS LIMIT 1000", func(row [][]byte) error {
		code, text := string(row[1]), string(row[2])
		seen++
		switch {
		case harmless[code], code == warnTruncated && t.mayBeZero(text):
		case t.computed && ofValues[code]:
			t.noteOnce("the server said: warning " + code + ", " + text)
		case first == nil:
			first = &warned{code: code, text: text}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case first != nil:
		return first
	case seen < warnings && t.checked && !t.loose.Load():
		return errUnseen
	}
	return nil
}

// noteOnce keeps what may explain why a table differs, if it does.
func (t *table) noteOnce(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.said == "" {
		t.said = text
	}
}

// mayBeZero reports whether a warning is about an ENUM, which may have the value 0. The comparison shows whether it kept it.
func (t *table) mayBeZero(warning string) bool {
	return slices.ContainsFunc(t.Columns, func(c repo.Column) bool {
		return c.Type == "enum" && strings.Contains(warning, "'"+c.Name+"'")
	})
}

// insertRows sends the rows of a batch as INSERTs.
func (r *run) insertRows(ctx context.Context, s *session, t *table, f *feed) error {
	return r.asBytes(ctx, s, func() error {
		ins := inserts{f: f, prefix: t.prefix, json: t.text, size: min(1<<20, r.maxPacket/2), most: r.maxPacket - 1024}
		for {
			statement, rows, err := ins.next()
			if err != nil || rows == 0 {
				return err
			}
			if err := s.Exec(ctx, statement); err != nil {
				return err
			}
			if err := s.complaints(ctx, t); err != nil {
				return err
			}
		}
	})
}

// readWhole reads a chunk into memory: it is whole and undamaged before any of it is sent.
func (r *run) readWhole(ctx context.Context, t *table, c repo.Chunk) (*bytes.Buffer, error) {
	var b *bytes.Buffer
	err := r.patient(ctx, func() error {
		rc, err := r.chunkOf(ctx, t, c.Hash)
		if err != nil {
			return err
		}
		defer rc.Close()
		if b == nil {
			b, _ = r.buffers.Get().(*bytes.Buffer)
		}
		if b == nil {
			b = new(bytes.Buffer)
		}
		b.Reset()
		b.Grow(int(c.Bytes) + bytes.MinRead)
		_, err = b.ReadFrom(rc)
		return err
	})
	if err == nil && int64(b.Len()) != c.Bytes {
		err = fmt.Errorf("chunk %.12s of %s.%s has %d bytes, the manifest says %d: %w", c.Hash, t.Schema, t.Name, b.Len(), c.Bytes, repo.ErrDamaged)
	}
	return b, err
}

// checkChunk reads a chunk that is too large for memory once, to know that it is undamaged.
func (r *run) checkChunk(ctx context.Context, t *table, c repo.Chunk) error {
	return r.patient(ctx, func() error {
		rc, err := r.chunkOf(ctx, t, c.Hash)
		if err != nil {
			return err
		}
		defer rc.Close()
		n, err := io.Copy(io.Discard, rc)
		if err == nil && n != c.Bytes {
			err = fmt.Errorf("chunk %.12s of %s.%s has %d bytes, the manifest says %d: %w", c.Hash, t.Schema, t.Name, n, c.Bytes, repo.ErrDamaged)
		}
		return err
	})
}

// tries is how often a place is asked for a chunk. Its adapter tries again by itself; this is for a stream that breaks off.
const tries = 4

// patient asks the place again if it failed, but not if it returned damaged bytes.
func (r *run) patient(ctx context.Context, f func() error) error {
	pause := firstPause
	for i := 1; ; i++ {
		err := f()
		if err == nil || i == tries || ctx.Err() != nil || errors.Is(err, repo.ErrDamaged) {
			return err
		}
		if err := delay.For(ctx, pause); err != nil {
			return err
		}
		pause *= 4
	}
}

// skip skips the first rows.
func (f *feed) skip(rows int64) error {
	for range rows {
		for range f.columns {
			null, err := f.length()
			if err != nil {
				return torn(err)
			}
			for !null && f.left > 0 {
				if err := f.need(1); err != nil {
					return torn(err)
				}
				k := f.w - f.r
				if uint64(k) > f.left {
					k = int(f.left)
				}
				f.took(k)
				f.left -= uint64(k)
			}
		}
	}
	f.state, f.col = atValue, 0
	return nil
}

// textOnly are types that do not take a value's text as bytes: MySQL's JSON refuses them (error 3144), and MariaDB's UUID and
// addresses take them for their inner form.
var textOnly = map[string]bool{"json": true, "uuid": true, "inet4": true, "inet6": true, "xmltype": true}

// statements makes those that load a table. What takes text only gets it by way of a variable. Then the AUTO_INCREMENT column
// passes through one too: MySQL (5.7.22, 8.0.15, seen) forgets at a SET clause that a value in the list was given, and makes a
// new one for 0 in spite of NO_AUTO_VALUE_ON_ZERO.
func (t *table) statements() {
	var columns, list, sets, params []string
	anyText := slices.ContainsFunc(t.Columns, func(c repo.Column) bool { return textOnly[c.Type] })
	for i, c := range t.Columns {
		name := mysql.Quote(c.Name)
		columns = append(columns, name)
		t.text = append(t.text, textOnly[c.Type])
		v := "@risso" + strconv.Itoa(i)
		shape, _ := t.shape.Column(c.Name)
		param := "?"
		if textOnly[c.Type] {
			param = "CONVERT(? USING utf8mb4)"
		}
		params = append(params, param)
		switch {
		case textOnly[c.Type]:
			list, sets = append(list, v), append(sets, name+" = CONVERT("+v+" USING utf8mb4)")
		case anyText && shape.Auto:
			list, sets = append(list, v), append(sets, name+" = "+v)
		default:
			list = append(list, name)
		}
	}
	set := ""
	if len(sets) > 0 {
		set = " SET " + strings.Join(sets, ", ")
	}
	t.columns = len(t.Columns)
	t.statement = "LOAD DATA " + mark + " LOCAL INFILE 'risso' INTO TABLE " + t.quoted() + " CHARACTER SET binary (" + strings.Join(list, ", ") + ")" + set
	t.prefix = "INSERT " + mark + " INTO " + t.quoted() + " (" + strings.Join(columns, ", ") + ") VALUES "
	t.bulk = t.prefix + "(" + strings.Join(params, ", ") + ")"
}

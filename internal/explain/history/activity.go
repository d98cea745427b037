package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
	"github.com/rissodb/risso/internal/store/events"
)

// ActivityStatus is how looking at the active sessions goes.
type ActivityStatus struct {
	Working       bool    `json:"working"`
	Step          int     `json:"step"`           // seconds between two readings
	Seconds       float64 `json:"seconds"`        // how long the last one took, without the way to the server and back
	Last          int64   `json:"last,omitempty"` // unix seconds of the last one
	fleet.Trouble         // why it is not working
}

// Limits of the sampler.
const (
	maxFound        = 300 // rows of a minute, by class, wait, user, host and schema; what is beyond is added up
	maxClasses      = 20000
	activityTimeout = 5 * time.Second
	readerLife      = 10 * time.Minute // then the server is asked again what it offers
	otherValue      = "(other)"        // replaces the users, hosts and schemas beyond maxFound
)

// sampler looks each second which sessions run a statement, and adds up by minute what they were found doing. It has its own
// connection and belongs to one goroutine except for status.
type sampler struct {
	c      *Collector
	conn   *mysql.Conn
	reader *read.ActivityReader
	madeAt time.Time     // of reader
	trip   time.Duration // the way to the server and back
	pace   pace

	names    identifier
	texts    sqltext.Classifier
	byNumber []identity          // of texts
	byDigest map[string]identity // by the server's normalised text

	minute  int64 // unix seconds; 0: none
	found   map[events.Activity]*events.Activity
	seen    map[string]identity // classes of this minute
	noted   map[string]int64    // when a class was stored
	pending []events.ActivityMinute
	plans   running

	mu    sync.Mutex
	state ActivityStatus
	notes []fleet.Trouble
}

func newSampler(c *Collector) *sampler {
	s := &sampler{c: c, byDigest: map[string]identity{}, found: map[events.Activity]*events.Activity{}, seen: map[string]identity{}, noted: map[string]int64{}, pace: pace{step: 1, slow: slowReading}}
	s.state = ActivityStatus{Step: 1, Trouble: fleet.Trouble{Why: "the first second is not over"}}
	return s
}

func (s *sampler) status() (ActivityStatus, []fleet.Trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, slices.Clone(s.notes)
}

// run reads until ctx ends; then what was found in the current minute is stored.
func (s *sampler) run(ctx context.Context) {
	defer s.disconnect()
	s.c.Traffic.Turn(ctx)
	failures := 0
	for {
		began := time.Now()
		wait := time.Duration(s.pace.step) * time.Second
		if err := s.sample(ctx, began); err != nil && ctx.Err() == nil {
			s.failed(err)
			failures++
			wait = min(time.Duration(failures)*2*time.Second, 30*time.Second)
		} else {
			failures = 0
		}
		// Half a second away from the reading of numbers, which is at the full second.
		next := began.Truncate(time.Second).Add(wait + 500*time.Millisecond)
		if s.c.Traffic.Rest(ctx, max(time.Until(next), 100*time.Millisecond)) {
			s.failed(errNotFirst)
			s.c.Traffic.Turn(ctx)
		}
		if ctx.Err() != nil {
			ectx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
			defer cancel()
			s.flush(ectx)
			return
		}
	}
}

func (s *sampler) failed(err error) {
	account := s.c.Traffic.FirstAccount()
	if s.conn != nil {
		account = s.conn.Server.QuotedAccount()
	}
	s.disconnect()
	trouble := fleet.Trouble{Why: err.Error()}
	var e *mysql.Error
	if errors.As(err, &e) {
		trouble = s.c.refused(e, "sessions are")
	} else if mysql.ClassOf(err) == mysql.ClassPrivilege {
		trouble = fleet.Trouble{Why: "the account may not see what other sessions do", Remedy: fmt.Sprintf("GRANT PROCESS ON *.* TO %[1]s; GRANT SELECT ON performance_schema.* TO %[1]s", account)}
	}
	s.c.Logger.Debug("active sessions were not read", "instance", s.c.instance.ID, "err", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Working, s.state.Trouble = false, trouble
}

func (s *sampler) disconnect() {
	if s.conn != nil {
		s.c.leave(s.conn)
		s.conn, s.reader = nil, nil
	}
}

func (s *sampler) connect(ctx context.Context, now time.Time) (err error) {
	if s.conn == nil {
		cctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		if s.conn, err = s.c.enter(cctx); err != nil {
			return err
		}
		s.trip = time.Hour
		for range 3 {
			began := time.Now()
			if err := s.conn.Exec(cctx, "DO /* risso: how far away is the server? */ 0"); err != nil {
				return err
			}
			s.trip = min(s.trip, time.Since(began))
		}
	}
	if s.reader == nil || now.Sub(s.madeAt) > readerLife {
		s.reader, err = read.NewActivityReader(ctx, s.conn)
		s.madeAt = now
	}
	return err
}

// sample reads once.
func (s *sampler) sample(ctx context.Context, now time.Time) error {
	if at := now.Unix() / 60 * 60; at != s.minute {
		s.flush(ctx)
		s.minute = at
	}
	rctx, cancel := context.WithTimeout(ctx, activityTimeout)
	defer cancel()
	if err := s.connect(rctx, now); err != nil {
		return err
	}
	began := time.Now()
	list, more, err := s.reader.Read(rctx)
	if err != nil {
		return err
	}
	took := max(time.Since(began)-s.trip, 0)
	step := s.pace.step
	for i := range list {
		s.add(&list[i], float64(step))
	}
	s.pace.next(took)
	notes := s.reader.Gaps()
	if more {
		notes = append(notes, fleet.Trouble{What: "what sessions wait for", Why: "more sessions run a statement than Risso reads"})
	}
	if s.pace.step > 1 {
		notes = append(notes, fleet.Trouble{What: "what sessions wait for, each second",
			Why: fmt.Sprintf("a reading takes longer than %s, so they are read every %d seconds", slowReading, s.pace.step)})
	}
	s.mu.Lock()
	s.state = ActivityStatus{Working: true, Step: s.pace.step, Seconds: took.Seconds(), Last: now.Unix()}
	s.notes = notes
	s.mu.Unlock()
	return s.catch(rctx, now.Unix(), list)
}

// pace steps back while readings are dear.
type pace struct {
	step  int           // seconds
	quick int           // readings in a row that were cheap
	slow  time.Duration // a reading that takes longer is dear, one that takes half as long cheap
}

// When to step back, and when to come nearer again.
const (
	slowReading = 20 * time.Millisecond
	quickInRow  = 30
)

var paces = []int{1, 2, 5}

func (p *pace) next(took time.Duration) {
	i := max(slices.Index(paces, p.step), 0)
	switch {
	case took > p.slow:
		i, p.quick = min(i+1, len(paces)-1), 0
	case took > p.slow/2:
		p.quick = 0
	default:
		if p.quick++; p.quick >= quickInRow {
			i, p.quick = max(i-1, 0), 0
		}
	}
	p.step = paces[i]
}

// classOf finds the class of a session's statement, or of its blocker's.
func (s *sampler) classOf(digestText, text string) identity {
	if digestText != "" {
		id, ok := s.byDigest[digestText]
		if !ok {
			if len(s.byDigest) > maxClasses {
				clear(s.byDigest)
			}
			id = s.names.of(digestText)
			s.byDigest[digestText] = id
		}
		return id
	}
	if s.texts.Len() > maxClasses {
		s.texts, s.byNumber = sqltext.Classifier{}, nil
	}
	n := s.texts.Classify([]byte(text))
	if n == len(s.byNumber) {
		s.byNumber = append(s.byNumber, s.names.of(text))
	}
	return s.byNumber[n]
}

// add counts a session that was found.
func (s *sampler) add(f *read.Session, weight float64) {
	id := s.classOf(f.DigestText, f.Text)
	s.seen[id.id] = id
	key := events.Activity{Class: id.id, Wait: f.Wait, Schema: f.Schema, User: f.User, Host: f.Host}
	if f.BlockerText != "" {
		b := s.classOf("", f.BlockerText)
		s.seen[b.id] = b
		key.Blocker = b.id
	}
	a := s.found[key]
	if a == nil {
		row := key
		a = &row
		s.found[key] = a
	}
	a.Calls++
	a.Seconds += weight
}

// flush stores the minute that is over, and what waits from before.
func (s *sampler) flush(ctx context.Context) {
	if len(s.found) > 0 {
		if len(s.pending) >= maxPending {
			s.pending = s.pending[1:]
		}
		s.pending = append(s.pending, events.ActivityMinute{Instance: s.c.instance.ID, Time: s.minute, Rows: bounded(s.found, maxFound)})
	}
	if err := s.store(ctx); err != nil && ctx.Err() == nil {
		s.c.Logger.Warn("what sessions do is waiting to be stored", "instance", s.c.instance.ID, "err", err)
	}
	s.found = map[events.Activity]*events.Activity{}
	s.seen = map[string]identity{}
	if len(s.noted) > maxClasses {
		clear(s.noted)
	}
}

func (s *sampler) store(ctx context.Context) error {
	var classes []events.Class
	for id, n := range s.seen {
		if s.minute-s.noted[id] < classEvery {
			continue
		}
		classes = append(classes, events.Class{Instance: s.c.instance.ID, ID: id, Fingerprint: n.fingerprint, Verb: n.verb, Tables: n.tables, FirstSeen: s.minute, LastSeen: s.minute})
	}
	if err := s.c.Store.AddClasses(ctx, classes...); err != nil {
		return err
	}
	for _, c := range classes {
		s.noted[c.ID] = s.minute
	}
	if len(s.pending) == 0 {
		return nil
	}
	if _, err := s.c.Store.AddActivity(ctx, s.pending...); err != nil {
		return err
	}
	s.pending = nil
	return nil
}

// bounded returns the heaviest rows, up to a limit; what is beyond is added up by class and wait, and beyond twice as many by
// wait alone, so that no second is lost.
func bounded(found map[events.Activity]*events.Activity, most int) []events.Activity {
	rows := make([]events.Activity, 0, len(found))
	for _, a := range found {
		rows = append(rows, *a)
	}
	slices.SortFunc(rows, func(a, b events.Activity) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Wait, b.Wait), cmp.Compare(a.User, b.User), cmp.Compare(a.Host, b.Host),
			cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Blocker, b.Blocker))
	})
	if len(rows) <= most {
		return rows
	}
	rest := map[events.Activity]int{} // key → place in out
	out := rows[:most:most]
	for _, r := range rows[most:] {
		key := events.Activity{Class: r.Class, Wait: r.Wait, Schema: otherValue, User: otherValue, Host: otherValue}
		if _, there := rest[key]; !there && len(out) >= 2*most {
			key.Class = otherID
		}
		i, there := rest[key]
		if !there {
			i = len(out)
			rest[key] = i
			out = append(out, key)
		}
		out[i].Calls += r.Calls
		out[i].Seconds += r.Seconds
	}
	return out
}

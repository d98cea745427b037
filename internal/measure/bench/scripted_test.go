package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// scripted imitates a server whose answers come exactly when a test says so, which no real server can be made to do. All
// that depends on how servers behave is tested on real ones.
type scripted struct {
	answer func(n int64, stop *drive.Stop) error // of the n-th statement since the beginning, from 1
	open   func(n int64) error                   // of the n-th connection; nil: all succeed
	n      atomic.Int64
	opened atomic.Int64
}

func (t *scripted) Dialect() drive.Dialect { return drive.MySQL }
func (t *scripted) String() string         { return "scripted" }

func (t *scripted) Open(_ context.Context, stop *drive.Stop) (drive.Session, error) {
	if n := t.opened.Add(1); t.open != nil {
		if err := t.open(n); err != nil {
			return nil, err
		}
	}
	return &scriptedSession{t: t, stop: stop}, nil
}

type scriptedSession struct {
	t      *scripted
	stop   *drive.Stop
	counts [3]int64
}

func (s *scriptedSession) Prepare(kind drive.Kind, sql string) (*drive.Stmt, error) {
	return &drive.Stmt{Kind: kind, SQL: sql}, nil
}

func (s *scriptedSession) Do(st *drive.Stmt, _ ...drive.Arg) (drive.Result, error) {
	if st.Keep { // the run's own question for the version
		return drive.Result{Rows: 1, Values: []drive.Value{{Text: []byte("scripted 1")}}}, nil
	}
	err := s.t.answer(s.t.n.Add(1), s.stop)
	if err == nil {
		s.counts[st.Kind]++
	}
	return drive.Result{}, err
}

func (s *scriptedSession) Exec(kind drive.Kind, _ string) (drive.Result, error) {
	return s.Do(&drive.Stmt{Kind: kind})
}
func (s *scriptedSession) Dialect() drive.Dialect    { return drive.MySQL }
func (s *scriptedSession) Counts() *[3]int64         { return &s.counts }
func (s *scriptedSession) SetPatience(time.Duration) {}
func (s *scriptedSession) Close() error              { return nil }

// work is a workload of these statements, run one after the other as one transaction.
type work []string

func (w work) Name() string { return "work" }

func (w work) Client(s drive.Session, _ int, _ *rand.Rand) (workload.Client, error) {
	c := &workClient{session: s}
	for _, sql := range w {
		st, err := s.Prepare(drive.Write, sql)
		if err != nil {
			return nil, err
		}
		c.statements = append(c.statements, st)
	}
	return c, nil
}

type workClient struct {
	session    drive.Session
	statements []*drive.Stmt
}

func (c *workClient) Transaction() error {
	for _, st := range c.statements {
		if _, err := c.session.Do(st); err != nil {
			return err
		}
	}
	return nil
}

// takes is a server that answers after a time.
func takes(d time.Duration) *scripted {
	return &scripted{answer: func(int64, *drive.Stop) error { time.Sleep(d); return nil }}
}

// hang waits until the run gives up.
func hang(stop *drive.Stop) error {
	for !stop.IsSet() {
		time.Sleep(time.Millisecond)
	}
	return drive.ErrStopped
}

var errFull = &drive.ServerError{Code: 1114, State: "HY000", Message: "The table is full"}

func lost() error { return fmt.Errorf("%w: scripted", drive.ErrLost) }

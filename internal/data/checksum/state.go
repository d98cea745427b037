package checksum

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/digits"
)

// state is the file that remembers what was compared: lines of JSON, the first says of which servers, the others are added.
// A line that a killed process did not write to its end is left out.
type state struct {
	mu    sync.Mutex
	file  *os.File
	next  time.Time
	known map[string]bool  // tables that are done
	done  []Table          // by an earlier run
	place map[string]place // where an earlier run was in a table
}

// line is one line of the file: one of its fields.
type line struct {
	Servers string `json:"servers,omitempty"`
	Done    *Table `json:"done,omitempty"`
	At      *place `json:"at,omitempty"`
}

// place is how far all servers were compared in a table: everything up to there is equal.
type place struct {
	Table  string      `json:"table"` // schema.table
	Bound  chunk.Bound `json:"bound"`
	Order  string      `json:"order"` // under which it was found: after an ALTER TABLE other rows may come before it
	Rows   int64       `json:"rows"`
	Bytes  int64       `json:"bytes"`
	Chunks int64       `json:"chunks"`
}

// stateEvery is how often the place within a table is written.
const stateEvery = 2 * time.Second

// openState opens the file; path "" remembers nothing.
func openState(path string, resume bool, servers string) (*state, error) {
	s := &state{known: map[string]bool{}, place: map[string]place{}}
	if path == "" {
		return s, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the state file: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: another checksum uses %s", ErrState, path)
	}
	s.file = f
	size := int64(0)
	if resume {
		if size, err = s.read(servers); err != nil {
			f.Close()
			return nil, err
		}
	}
	if err = f.Truncate(size); err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err == nil && size == 0 {
		err = s.write(line{Servers: servers})
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("write the state file: %w", err)
	}
	return s, nil
}

// read reads what an earlier run wrote and returns the size of its complete lines.
func (s *state) read(servers string) (size int64, err error) {
	in := bufio.NewReader(s.file)
	for first := true; ; first = false {
		b, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // the end, or half a line
			return size, nil
		}
		if err != nil {
			return 0, fmt.Errorf("read the state file: %w", err)
		}
		var l line
		if err := json.Unmarshal(bytes.TrimSpace(b), &l); err != nil {
			return 0, fmt.Errorf("%w: %s is damaged; remove it to start over", ErrState, s.file.Name())
		}
		size += int64(len(b))
		switch {
		case first && l.Servers != servers:
			return 0, fmt.Errorf("%w: %s belongs to other servers; remove it, or give another file", ErrState, s.file.Name())
		case l.Done != nil:
			s.known[l.Done.Schema+"."+l.Done.Name] = true
			delete(s.place, l.Done.Schema+"."+l.Done.Name)
			s.done = append(s.done, *l.Done)
		case l.At != nil:
			s.place[l.At.Table] = *l.At
		}
	}
}

func (s *state) write(l line) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = s.file.Write(append(b, '\n'))
	return err
}

// has reports whether an earlier run compared a table to its end.
func (s *state) has(schema, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[schema+"."+name]
}

// table notes a table that is done. What remained unknown is looked at again by the next run.
func (s *state) table(t Table) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil || t.Verdict().Open() {
		return nil
	}
	if err := s.write(line{Done: &t}); err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	return nil
}

// at notes how far a table is, now and then.
func (s *state) at(p *plan, b chunk.Bound, n counts) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil || time.Now().Before(s.next) {
		return nil
	}
	s.next = time.Now().Add(stateEvery)
	if err := s.write(line{At: &place{Table: p.schema + "." + p.name, Bound: b, Order: p.cutOrder(), Rows: n.rows, Bytes: n.bytes, Chunks: n.chunks}}); err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	return nil
}

// resume returns where an earlier run was in a table, and counts what it had read.
func (s *state) resume(p *plan, t *Table) chunk.Bound {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.place[p.schema+"."+p.name]
	if !ok || p.key.Cuts == 0 || p.key.Check(at.Bound) != nil || len(at.Bound) != p.key.Cuts || at.Order != p.cutOrder() {
		return nil
	}
	t.Rows, t.Bytes, t.Chunks = at.Rows, at.Bytes, at.Chunks
	t.Notes = append(t.Notes, "its first "+digits.Plural(at.Rows, "row was", "rows were")+" compared by an earlier run")
	return at.Bound
}

// cutOrder is the order of the primary's rows by what they are cut at.
func (p *plan) cutOrder() string { return chunk.Order(p.here, p.key.Columns(), "") }

// close ends the file, and removes it when all is done.
func (s *state) close(whole bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	var err error
	if whole {
		err = os.Remove(s.file.Name())
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	return errors.Join(err, s.file.Close())
}

// counts is what was read up to a place.
type counts struct{ rows, bytes, chunks int64 }

// marks finds the place up to which a table is equal on all servers, in whatever order they finish the chunks.
type marks struct {
	mu    sync.Mutex
	off   []bool // servers that do not count
	spoil bool   // what differs is in memory only, and a failed server is missing chunks: a later run must read from before that
	ahead map[int64]*marked
	next  int64  // the first chunk that not all are through with
	total counts // of the chunks before
}

// marked is a chunk that not all are through with.
type marked struct {
	bound chunk.Bound
	counts
	through []bool // which of the servers are
}

func newMarks(n int, t *Table) *marks {
	return &marks{off: make([]bool, n), ahead: map[int64]*marked{}, total: counts{t.Rows, t.Bytes, t.Chunks}}
}

// leave drops a server that is not compared, or no longer. Unless that is as it should be, no place is noted from now
// on: it does not have what the others have.
func (m *marks) leave(i int, rightly bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.off[i] = true
	m.spoil = m.spoil || !rightly
}

// pass notes that a server is through with a chunk, and whether it is clean. It returns the place up to which all are, if that
// moved.
func (m *marks) pass(i int, s span, clean bool) (b chunk.Bound, n counts, moved bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spoil = m.spoil || !clean; m.spoil {
		clear(m.ahead)
		return nil, n, false
	}
	c := m.ahead[s.index]
	if c == nil {
		c = &marked{s.Upper, counts{s.rows, s.bytes, 1}, append([]bool{}, m.off...)}
		m.ahead[s.index] = c
	}
	c.through[i] = true
	for {
		c := m.ahead[m.next]
		if c == nil {
			break
		}
		for i, through := range c.through {
			if !through && !m.off[i] {
				return b, m.total, moved && len(b) > 0
			}
		}
		delete(m.ahead, m.next)
		m.next++
		m.total.rows += c.rows
		m.total.bytes += c.bytes
		m.total.chunks += c.chunks
		b, moved = c.bound, true
	}
	return b, m.total, moved && len(b) > 0
}

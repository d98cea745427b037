package main

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// meter stands between Risso and a server, and adds up what each question costs: from one command of a session to its next, the thread
// that serves it works for nobody else. So the figures are exact to the microsecond, whatever else the server and the machine do.
type meter struct {
	path string // of its socket
	node *sandbox.Node
	db   *sql.DB // to find threads
	ln   net.Listener
	work sync.WaitGroup

	mu       sync.Mutex
	open     map[*metered]bool
	asked    map[string]asking
	problems []error
}

// asking is how often a question was asked, and the processor time of the server for all of them.
type asking struct {
	times int
	cost  time.Duration
}

// metered is a session.
type metered struct {
	client, server net.Conn
	tid            int
	question       string        // that is being answered, or was last
	before         time.Duration // time of the thread when it was asked
}

// newMeter listens on a socket in front of a server.
func newMeter(n *sandbox.Node, path string) (*meter, error) {
	db, err := n.DB()
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	m := &meter{path: path, node: n, db: db, ln: ln, open: map[*metered]bool{}, asked: map[string]asking{}}
	m.work.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			m.work.Go(func() { m.serve(c) })
		}
	})
	return m, nil
}

func (m *meter) close() error {
	err := m.ln.Close()
	m.mu.Lock()
	for s := range m.open {
		s.client.Close() // what is on the way is of no interest
		s.server.Close()
	}
	m.mu.Unlock()
	m.work.Wait()
	return errors.Join(err, m.db.Close(), errors.Join(m.problems...))
}

func (m *meter) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", m.node.Socket)
	if err != nil {
		m.problem(err)
		return
	}
	defer server.Close()
	s := &metered{client: client, server: server}
	m.mu.Lock()
	m.open[s] = true
	m.mu.Unlock()
	greeting, err := packet(server)
	if err != nil {
		return
	}
	if _, err := client.Write(greeting); err != nil {
		return
	}
	m.work.Go(func() {
		_, _ = io.Copy(client, server) // until one of them hangs up
		client.Close()
	})
	if err := m.ask(s, connectionOf(greeting)); err != nil {
		m.problem(err)
	}
	m.mu.Lock()
	m.settle(s)
	delete(m.open, s)
	m.mu.Unlock()
}

// ask passes on what the client sends, and notes each command.
func (m *meter) ask(s *metered, connection uint32) error {
	for {
		p, err := packet(s.client)
		if err != nil {
			return nil // it hung up
		}
		if p[3] == 0 && len(p) > 4 { // a command: all that belongs to logging in has a higher number
			if err := m.note(s, connection, p[4:]); err != nil {
				return err
			}
		}
		if _, err := s.server.Write(p); err != nil {
			return nil
		}
	}
}

// note begins the account of a command.
func (m *meter) note(s *metered, connection uint32, command []byte) error {
	const quit, query = 1, 3
	if command[0] == quit {
		return nil
	}
	tid := s.tid
	if tid == 0 {
		if err := m.db.QueryRow(threadOf(m.node), connection).Scan(&tid); err != nil {
			return fmt.Errorf("find the thread of connection %d: %w", connection, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.tid = tid
	m.settle(s)
	s.question = "another command"
	if command[0] == query {
		s.question = questionOf(string(command[1:]))
	}
	a := m.asked[s.question]
	a.times++
	m.asked[s.question] = a
	return nil
}

// settle adds what the thread of a session used since the last time to the question that it was asked.
func (m *meter) settle(s *metered) {
	if s.tid == 0 {
		return
	}
	awaitSleep(m.node.PID, s.tid)
	now, err := threadTime(m.node.PID, s.tid)
	if err != nil { // the session has ended
		return
	}
	if s.question != "" {
		a := m.asked[s.question]
		a.cost += now - s.before
		m.asked[s.question] = a
	}
	s.before = now
}

// begin forgets what was so far.
func (m *meter) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.open {
		m.settle(s)
	}
	clear(m.asked)
}

// so is what was asked since begin.
func (m *meter) so() map[string]asking {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.open {
		m.settle(s)
	}
	return maps.Clone(m.asked)
}

func (m *meter) problem(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problems = append(m.problems, err)
}

// awaitSleep waits until a thread has gone to sleep, for a moment: before, its time is not complete.
func awaitSleep(pid, tid int) {
	for range 40 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
		if err != nil {
			return
		}
		if i := strings.LastIndex(string(b), ") "); i >= 0 && strings.HasPrefix(string(b[i+2:]), "S") {
			return
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// threadOf asks for the thread of the operating system that serves a connection.
func threadOf(n *sandbox.Node) string {
	if strings.HasPrefix(n.Server, "mariadb") {
		return "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = ?"
	}
	return "SELECT THREAD_OS_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = ?"
}

// packet reads a packet of the protocol, with its head.
func packet(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	p := append(head, make([]byte, n)...)
	_, err := io.ReadFull(r, p[4:])
	return p, err
}

// connectionOf is the connection's number in the packet with which a server greets: after its protocol and its version, which ends in a zero.
func connectionOf(greeting []byte) uint32 {
	_, rest, found := strings.Cut(string(greeting[5:]), "\x00")
	if !found || len(rest) < 4 {
		return 0
	}
	return binary.LittleEndian.Uint32([]byte(rest))
}

var (
	mark    = regexp.MustCompile(`/\* risso: ([^*]*) \*/`)
	varying = regexp.MustCompile(`[0-9]+`)
)

// questionOf is what a statement of Risso asks, in the words of its mark; without one, its beginning.
func questionOf(statement string) string {
	if m := mark.FindStringSubmatch(statement); m != nil {
		return m[1]
	}
	return varying.ReplaceAllString(shorten(strings.ReplaceAll(statement, "/* risso */ ", ""), 60), "N")
}

// askedFor waits and says what was asked meanwhile.
func (m *meter) askedFor(ctx context.Context, d time.Duration, pids ...int) (list map[string]asking, used []float64, err error) {
	m.begin()
	used, err = cores(ctx, d, pids...)
	return m.so(), used, err
}

package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Sight is what an agent sees of its server from beside it.
type Sight struct {
	Asked   time.Time `json:"asked,omitzero"` // when the look began that this is from; zero: an older agent, or it has not looked yet
	Answers bool      `json:"answers"`
	Since   time.Time `json:"since,omitzero"`   // since when it does, or does not
	Error   string    `json:"error,omitempty"`  // why it does not
	Hangs   bool      `json:"hangs"`            // it takes connections, and does not answer
	Full    bool      `json:"full"`             // it has no room for a connection: it lives
	Written time.Time `json:"written,omitzero"` // when a transaction was last seen to have come, by its GTIDs
	GTIDs   string    `json:"gtids,omitempty"`  // then
	Process *Process  `json:"process"`          // nil: the server is not on this machine, or does not say where its process is
	Disk    *Disk     `json:"disk"`             // of its data directory; nil likewise
}

// Process is a server's process.
type Process struct {
	PID    int    `json:"pid"`
	Alive  bool   `json:"alive"`
	State  string `json:"state,omitempty"` // as /proc has it: R, S, D (waits for a disk), T (stopped)
	Frozen bool   `json:"frozen"`          // it is stopped: it neither works nor ends connections
}

// Disk is where data lies.
type Disk struct {
	Path string `json:"path"`
	Free uint64 `json:"free_bytes"`
	Full bool   `json:"full"`
}

// fullBelow is how much room a disk has that is called full: InnoDB grows its files by up to that much at once.
const fullBelow = 64 << 20

// eyes look at a server again and again.
type eyes struct {
	target mysql.Target

	mu     sync.Mutex
	sight  Sight
	server mysql.Server // as it was when it answered
	id     string       // then: server_uuid, of MariaDB server_id
	here   bool         // it is on this machine
	pid    int
	began  string    // when that process began, as /proc has it
	own    int64     // its session there; 0: none
	since  int64     // since when the server runs, in unix seconds; 0: not known
	met    time.Time // when that was asked last
}

// lookPatience is how long an answer is waited for.
const lookPatience = time.Second

// run looks until ctx ends.
func (e *eyes) run(ctx context.Context) {
	var c *mysql.Conn
	defer func() {
		if c != nil {
			_ = c.Close()
		}
	}()
	for ctx.Err() == nil {
		began := time.Now()
		look, cancel := context.WithTimeout(ctx, lookPatience)
		var err error
		if c == nil {
			if c, err = mysql.Connect(look, e.target.WithPatience(lookPatience), nil); err == nil {
				e.meet(c.Server)
				e.identify(look, c)
				e.born(look, c)
			}
		}
		gtids := ""
		if err == nil {
			gtids, err = c.Text(look, "SELECT /* risso: was something written? */ @@GLOBAL."+c.Server.ExecutedTransactions())
		}
		if err != nil && c != nil {
			_ = c.Close()
			c = nil
		}
		hangs := err != nil && mysql.ClassOf(err) == mysql.ClassTimeout && mysql.Accepts(ctx, e.target, lookPatience)
		cancel()
		if ctx.Err() == nil {
			e.saw(began, gtids, err, hangs)
		}
		_ = delay.For(ctx, DefaultEvery-time.Since(began))
	}
}

// meet learns where the server's process is.
func (e *eyes) meet(s mysql.Server) {
	host, _ := os.Hostname()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.server, e.own, e.here, e.pid = s, s.ConnectionID, false, 0
	if host == "" || !strings.EqualFold(host, s.Hostname) {
		return
	}
	file := s.PidFile
	if !filepath.IsAbs(file) {
		file = filepath.Join(s.DataDir, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return
	}
	if _, began, ok := processOf(pid); ok {
		e.here, e.pid, e.began = true, pid, began
	}
}

// identify notes who the server is.
func (e *eyes) identify(ctx context.Context, c *mysql.Conn) {
	rows, err := c.Maps(ctx, c.Server.StandingQuery())
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, row := range rows {
		if err == nil {
			e.id = row["uuid"]
		}
	}
}

// who is the server, when it answered last; "": it has not.
func (e *eyes) who() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.id
}

// sameLife is by how much two readings of when a server was started differ, which it tells by how long it runs.
const sameLife = 2

// born notes since when the server runs.
func (e *eyes) born(ctx context.Context, c *mysql.Conn) {
	since, err := read.Started(ctx, c)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		return
	}
	if !sameStart(since, e.since) {
		e.since = since
	}
	e.met = time.Now()
}

// sameStart reports whether two readings of when a server was started are of the same start.
func sameStart(a, b int64) bool { return a-b <= sameLife && b-a <= sameLife }

// session is the number of its session on the server; it may be over.
func (e *eyes) session() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.own
}

// life is since when the server runs, the same number as long as it does, 0 if that is not known; and when it was asked: what was seen later is not of an earlier life.
func (e *eyes) life() (since int64, asked time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.since, e.met
}

// saw notes a look.
func (e *eyes) saw(began time.Time, gtids string, err error, hangs bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &e.sight
	s.Asked = began
	if answers := err == nil; answers != s.Answers || s.Since.IsZero() {
		s.Answers, s.Since = answers, time.Now()
	}
	s.Error, s.Hangs, s.Full = "", hangs, mysql.ClassOf(err) == mysql.ClassFull
	if err != nil {
		s.Error = err.Error()
	} else if gtids != s.GTIDs {
		if s.GTIDs != "" {
			s.Written = time.Now()
		}
		s.GTIDs = gtids
	}
}

// now is what is seen now. The process and the disk are looked at anew.
func (e *eyes) now() Sight {
	e.mu.Lock()
	s, pid, began, dir, here := e.sight, e.pid, e.began, e.server.DataDir, e.here
	e.mu.Unlock()
	if !here {
		return s
	}
	p := Process{PID: pid}
	if state, since, ok := processOf(pid); ok && since == began {
		p.Alive, p.State, p.Frozen = state != "Z" && state != "X", state, state == "T" || state == "t"
	}
	s.Process = &p
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil {
		free := fs.Bavail * uint64(fs.Bsize)
		s.Disk = &Disk{Path: dir, Free: free, Full: free < fullBelow}
	}
	return s
}

// processOf is the state of a process, and when it began.
func processOf(pid int) (state, began string, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", false
	}
	end := strings.LastIndexByte(string(text), ')') // the name may have blanks
	f := strings.Fields(string(text[end+1:]))
	const start = 19 // starttime, counted from the state
	if len(f) <= start {
		return "", "", false
	}
	return f[0], f[start], true
}

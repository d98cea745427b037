package agree

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// monotonic is a clock that all processes of a machine have in common, and that nobody sets.
func monotonic() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

func TestMain(m *testing.M) {
	data := os.Getenv("RISSO_CONTROLLER")
	if data == "" {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, controllerProcess(context.Background(), data))
	os.Exit(1)
}

// controllerProcess is a controller in a process of its own, which says each few milliseconds whether it acts.
func controllerProcess(ctx context.Context, data string) error {
	f, _, err := OpenFolder(data)
	if err != nil {
		return err
	}
	s, err := Prepare(ctx, filepath.Join(data, "state.db"), f)
	if err != nil {
		return err
	}
	n, err := Open(ctx, Options{Store: s, Folder: f, Dialer: newCutter(f.Name, filepath.Join(filepath.Dir(data), "cuts")), Keep: 40, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		return err
	}
	acts, err := os.OpenFile(filepath.Join(data, "acts"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	go n.WhileLeader(ctx, func(ctx context.Context) {
		for ; ctx.Err() == nil; time.Sleep(3 * time.Millisecond) {
			at := monotonic()
			if epoch := n.Epoch(); epoch > 0 && ctx.Err() == nil {
				fmt.Fprintln(acts, at, epoch)
			}
		}
	})
	if known, err := os.OpenFile(filepath.Join(filepath.Dir(data), f.Name+".heard"), os.O_WRONLY|os.O_APPEND, 0o600); err == nil {
		go tellHeard(ctx, n, known)
	}
	return n.Run(ctx)
}

// cutter makes connections that a file of cuts, "c1 c2" for the way from c1 to c2, holds up as a network that loses everything.
type cutter struct {
	name string
	file string
	cuts atomic.Pointer[string]
}

func newCutter(name, file string) *cutter {
	c := &cutter{name: name, file: file}
	c.read()
	go func() {
		for ; ; time.Sleep(5 * time.Millisecond) {
			c.read()
		}
	}()
	return c
}

func (c *cutter) read() {
	b, _ := os.ReadFile(c.file) // absent: nothing is cut
	text := string(b)
	c.cuts.Store(&text)
}

func (c *cutter) cut(address string) bool {
	return strings.Contains(*c.cuts.Load(), c.name+" "+address+"\n")
}

func (c *cutter) wait(ctx context.Context, address string) error {
	for c.cut(address) {
		select {
		case <-ctx.Done():
			return os.ErrDeadlineExceeded
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// DialContext connects, when it is not cut.
func (c *cutter) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if err := c.wait(ctx, address); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	return &cutConn{Conn: conn, c: c, address: address, life: life, end: end}, nil
}

type cutConn struct {
	net.Conn
	c        *cutter
	address  string
	deadline atomic.Int64
	life     context.Context
	end      context.CancelFunc
}

func (c *cutConn) held() error {
	ctx := c.life
	if at := c.deadline.Load(); at != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, time.Unix(0, at))
		defer cancel()
	}
	return c.c.wait(ctx, c.address)
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if held := c.held(); held != nil {
		return 0, held
	}
	return n, err
}

func (c *cutConn) Write(p []byte) (int, error) {
	if err := c.held(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *cutConn) SetDeadline(t time.Time) error { c.keep(t); return c.Conn.SetDeadline(t) }

func (c *cutConn) SetReadDeadline(t time.Time) error { c.keep(t); return c.Conn.SetReadDeadline(t) }

func (c *cutConn) SetWriteDeadline(t time.Time) error { c.keep(t); return c.Conn.SetWriteDeadline(t) }

func (c *cutConn) keep(t time.Time) {
	at := int64(0)
	if !t.IsZero() {
		at = t.UnixNano()
	}
	c.deadline.Store(at)
}

func (c *cutConn) Close() error { c.end(); return c.Conn.Close() }

// process is a controller in a process of its own.
type process struct {
	name, data, address string
	cmd                 *exec.Cmd
	log                 *os.File
}

type cluster struct {
	t     *testing.T
	dir   string
	procs []*process
	disk  string // options of a tmpfs for each; empty: they have no disk of their own
}

// newCluster starts three controllers.
func newCluster(t *testing.T, beat int, disk string) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), disk: disk}
	for i := range 3 {
		c.add(fmt.Sprint("c", i+1), beat, i == 0)
	}
	c.allVote(3)
	return c
}

// add makes a controller and starts it.
func (c *cluster) add(name string, beat int, first bool) *process {
	t := c.t
	t.Helper()
	p := &process{name: name, data: filepath.Join(c.dir, name), address: sandboxtest.FreeAddress(t)}
	if err := os.MkdirAll(p.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if c.disk != "" {
		if err := unix.Mount("tmpfs", p.data, "tmpfs", 0, c.disk); err != nil {
			t.Skipf("a small file system cannot be mounted here (root is needed): %v", err)
		}
		t.Cleanup(func() { unix.Unmount(p.data, unix.MNT_DETACH) })
	}
	s := Settings{Cluster: "test", Name: name, Address: p.address, Heartbeat: beat}
	if first {
		f, err := MakeFolder(p.data, s)
		if err == nil {
			err = Found(t.Context(), filepath.Join(p.data, "state.db"), f)
		}
		if err != nil {
			t.Fatal(err)
		}
	} else {
		f, _, err := OpenFolder(c.procs[0].data)
		if err != nil {
			t.Fatal(err)
		}
		var peers []Peer
		for _, o := range c.procs {
			peers = append(peers, Peer{o.name, o.address})
		}
		i, err := f.Invitation(peers)
		if err == nil {
			_, err = JoinFolder(p.data, s, i)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c.procs = append(c.procs, p)
	c.start(p)
	return p
}

func (c *cluster) start(p *process) {
	c.t.Helper()
	var err error
	if p.log, err = os.OpenFile(filepath.Join(c.dir, p.name+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		c.t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), "RISSO_CONTROLLER="+p.data)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { c.kill(p) })
}

func (c *cluster) kill(p *process) {
	if p.cmd != nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		p.log.Close()
		p.cmd = nil
	}
}

// status asks a controller; false: it does not answer.
func (p *process) status() (o Overview, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	text, err := state.DialDoor(filepath.Join(p.data, state.Door)).Ask(ctx, http.MethodPost, "/status", nil)
	return o, err == nil && json.Unmarshal(text, &o) == nil
}

// leader is who acts, as it says itself; nil: nobody does.
func (c *cluster) leader() *process {
	for _, p := range c.procs {
		if o, ok := p.status(); ok {
			for _, m := range o.Members {
				if m.Name == p.name && m.Epoch > 0 {
					return p
				}
			}
		}
	}
	return nil
}

func (c *cluster) allVote(n int) {
	c.t.Helper()
	c.until(func() bool {
		for _, p := range c.procs {
			o, ok := p.status()
			votes := 0
			for _, m := range o.Members {
				if m.Votes && m.Error == "" {
					votes++
				}
			}
			if !ok || votes != n {
				return false
			}
		}
		return true
	}, "%d controllers that vote", n)
}

// until is await.Until, with the logs of the controllers if it fails.
func (c *cluster) until(is func() bool, format string, args ...any) {
	c.t.Helper()
	await.Until(c.t, is, format, args...)
}

// cut separates controllers from others, both ways.
func (c *cluster) cut(alone ...*process) {
	var text strings.Builder
	for _, a := range alone {
		for _, p := range c.procs {
			if !slices.Contains(alone, p) {
				fmt.Fprintf(&text, "%s %s\n%s %s\n", a.name, p.address, p.name, a.address)
			}
		}
	}
	c.write("cuts", text.String())
}

func (c *cluster) write(name, text string) {
	c.t.Helper()
	if err := errors.Join(os.WriteFile(filepath.Join(c.dir, name+".new"), []byte(text), 0o600), os.Rename(filepath.Join(c.dir, name+".new"), filepath.Join(c.dir, name))); err != nil {
		c.t.Fatal(err)
	}
}

// store opens the state of a controller as commands do.
func (c *cluster) store(p *process) *state.Store {
	c.t.Helper()
	s, err := state.Open(c.t.Context(), filepath.Join(p.data, "state.db"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { s.Close() })
	return s
}

// ledger is what was acknowledged.
type ledger struct {
	mu          sync.Mutex
	keys        []string
	begun, done []time.Time
}

// writers write by every controller until stop is called: documents, and silences, of which a second one is another row.
func (c *cluster) writers() (l *ledger, stop func()) {
	l = &ledger{}
	ctx, cancel := context.WithCancel(c.t.Context())
	var all sync.WaitGroup
	for _, p := range c.procs {
		s := c.store(p)
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key, begun := p.name+"/"+strconv.Itoa(i), time.Now()
				_, err := s.PutDocument(ctx, state.Document{Kind: "k", Key: key, Body: json.RawMessage(`{}`)})
				if err == nil {
					_, err = s.AddSilence(ctx, state.SilenceRow{End: time.Now().Add(time.Hour), Body: json.RawMessage(`"` + key + `"`)})
				}
				if err != nil {
					time.Sleep(20 * time.Millisecond)
					continue
				}
				l.mu.Lock()
				l.keys, l.begun, l.done = append(l.keys, key), append(l.begun, begun), append(l.done, time.Now())
				l.mu.Unlock()
			}
		})
	}
	return l, func() { cancel(); all.Wait() }
}

// first is the first acknowledgement of a write that began after a moment.
func (l *ledger) first(after time.Time) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, at := range l.begun {
		if at.After(after) {
			return l.done[i], true
		}
	}
	return time.Time{}, false
}

// settle holds that all controllers have the same, and all that was acknowledged, once.
func (c *cluster) settle(l *ledger) {
	t := c.t
	t.Helper()
	var want string
	for _, p := range c.procs {
		s := c.store(p)
		c.until(func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			return s.Level(ctx) == nil
		}, "%s to be level", p.name)
		docs, err := s.Documents(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		there := map[string]bool{}
		for _, d := range docs {
			there[d.Key] = true
			if d.Version != 1 {
				t.Errorf("%s: document %s was written %d times", p.name, d.Key, d.Version)
			}
		}
		silences, rows := p.silences(t)
		for key, n := range silences {
			if n != 1 {
				t.Errorf("%s: silence %s is there %d times", p.name, key, n)
			}
		}
		l.mu.Lock()
		for _, key := range l.keys {
			if !there[key] || silences[key] != 1 {
				t.Errorf("%s: %s was acknowledged, and is lost", p.name, key)
			}
		}
		l.mu.Unlock()
		have := fmt.Sprint(len(docs), len(rows), docs, rows)
		if want = cmp.Or(want, have); have != want {
			t.Errorf("%s has other rows than %s", p.name, c.procs[0].name)
		}
	}
}

// silences counts them by what they hold; rows is all of them.
func (p *process) silences(t *testing.T) (count map[string]int, rows []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(p.data, "state.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	found, err := db.Query("SELECT id, ends, body FROM silences ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	count = map[string]int{}
	for found.Next() {
		var id, ends int64
		var body string
		if err := found.Scan(&id, &ends, &body); err != nil {
			t.Fatal(err)
		}
		count[strings.Trim(body, `"`)]++
		rows = append(rows, fmt.Sprint(id, ends, body))
	}
	return count, rows
}

// act is a time in which a controller said that it acts.
type act struct {
	who         string
	epoch       int64
	begin, last int64
}

// acts are all of these, and holds that no two of them overlap.
func (c *cluster) acts() (list []act) {
	t := c.t
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(c.dir, "*", "acts"))
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		var now act
		for lines.Scan() {
			var at, epoch int64
			if n, _ := fmt.Sscan(lines.Text(), &at, &epoch); n != 2 {
				continue
			}
			if epoch != now.epoch {
				if now.epoch != 0 {
					list = append(list, now)
				}
				now = act{filepath.Base(filepath.Dir(file)), epoch, at, at}
			}
			now.last = at
		}
		f.Close()
		if now.epoch != 0 {
			list = append(list, now)
		}
	}
	slices.SortFunc(list, func(a, b act) int { return cmp.Compare(a.begin, b.begin) })
	for i := 1; i < len(list); i++ {
		if a, b := list[i-1], list[i]; a.last >= b.begin || a.epoch >= b.epoch {
			t.Errorf("two acted at once, or their epochs are not in order: %+v and %+v", a, b)
		}
	}
	return list
}

// TestLeaderKilled: the leader is killed while all write; nothing that was acknowledged is lost or twice, and no two act at once.
func TestLeaderKilled(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("RISSO_ROUNDS")); err == nil {
		rounds = n
	}
	c := newCluster(t, beatOfProcesses, "")
	l, stop := c.writers()
	var took []time.Duration
	for range rounds {
		var p *process
		c.until(func() bool { p = c.leader(); return p != nil }, "a leader")
		time.Sleep(time.Duration(200+rand.IntN(600)) * time.Millisecond)
		if p = c.leader(); p == nil { // a busy machine
			continue
		}
		killed := time.Now()
		c.kill(p)
		var at time.Time
		c.until(func() (ok bool) { at, ok = l.first(killed); return ok }, "a write after the leader was killed")
		took = append(took, at.Sub(killed))
		c.start(p)
		c.allVote(3)
	}
	stop()
	c.settle(l)
	list := c.acts()
	for _, p := range c.procs {
		if cut, _ := filepath.Glob(filepath.Join(p.data, FolderName, "snapshots", "[0-9]*-[0-9]*-*")); len(cut) == 0 || strings.HasPrefix(filepath.Base(cut[0]), "1-1-") && len(cut) == 1 {
			t.Errorf("%s has not cut its log: %v", p.name, cut)
		}
	}
	slices.Sort(took)
	t.Logf("%d writes were acknowledged, %d leaderships; from kill -9 of the leader to the first write: %v", len(l.keys), len(list), took)
}

// beatOfProcesses is the default.
const beatOfProcesses = int(DefaultHeartbeat / time.Millisecond)

// others are all but one.
func (c *cluster) others(p *process) (list []*process) {
	return slices.DeleteFunc(slices.Clone(c.procs), func(o *process) bool { return o == p })
}

// leads waits until one of these acts.
func (c *cluster) leads(list []*process) (p *process) {
	c.t.Helper()
	c.until(func() bool {
		p = c.leader()
		return p != nil && slices.Contains(list, p)
	}, "a leader")
	return p
}

// writes says whether a controller gets a write acknowledged within a time.
func (c *cluster) writes(p *process, key string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), within)
	defer cancel()
	_, err := c.store(p).PutDocument(ctx, state.Document{Kind: "probe", Key: key, Body: json.RawMessage(`{}`)})
	return err
}

// TestCut: a leader that is cut off, whole or one way, or that stands still, acts no longer when another one does.
func TestCut(t *testing.T) {
	c := newCluster(t, beatOfProcesses, "")
	l, stop := c.writers()
	old := c.leads(c.procs)
	c.cut(old)
	now := c.leads(c.others(old))
	if o, ok := old.status(); !ok || slices.ContainsFunc(o.Members, func(m Status) bool { return m.Name == old.name && m.Epoch > 0 }) {
		t.Errorf("%s is cut off, and is %+v, %v", old.name, o, ok)
	}
	if err := c.writes(old, "cut", 2*time.Second); err == nil {
		t.Errorf("a write by %s, which is cut off, was acknowledged", old.name)
	}
	if err := c.writes(now, "majority", time.Minute); err != nil {
		t.Errorf("a write by %s: %v", now.name, err)
	}
	c.cut()
	c.allVote(3)

	old = c.leads(c.procs)
	var oneWay strings.Builder
	for _, p := range c.others(old) {
		fmt.Fprintf(&oneWay, "%s %s\n", old.name, p.address) // it hears others, and they do not hear it
	}
	c.write("cuts", oneWay.String())
	c.leads(c.others(old))
	c.cut()
	c.allVote(3)

	for range 2 {
		old = c.leads(c.procs)
		if err := old.cmd.Process.Signal(unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		c.until(func() bool {
			for _, p := range c.others(old) {
				if o, ok := p.status(); ok && slices.ContainsFunc(o.Members, func(m Status) bool { return m.Name == p.name && m.Epoch > 0 }) {
					return true
				}
			}
			return false
		}, "a leader beside one that stands still")
		if err := old.cmd.Process.Signal(unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
		c.allVote(3)
	}
	stop()
	c.settle(l)
	t.Logf("%d leaderships, %d writes", len(c.acts()), len(l.keys))
}

// TestLostAndReplaced: all are killed at once and come back; one loses its disk and joins again; then the first one, which made the keys, is lost.
func TestLostAndReplaced(t *testing.T) {
	c := newCluster(t, beatOfProcesses, "")
	l, stop := c.writers()
	time.Sleep(500 * time.Millisecond)
	for _, p := range c.procs {
		c.kill(p)
	}
	stop()
	for _, p := range c.procs {
		c.start(p)
	}
	c.allVote(3)
	c.settle(l)
	if len(l.keys) == 0 {
		t.Fatal("nothing was written")
	}

	lost := c.procs[2]
	c.kill(lost)
	if err := os.RemoveAll(lost.data); err != nil {
		t.Fatal(err)
	}
	c.procs = c.procs[:2]
	c.add("c3", beatOfProcesses, false)
	c.allVote(3)
	c.settle(l)

	c.kill(c.procs[0])
	first := c.procs[0]
	c.procs = c.procs[1:]
	c.leads(c.procs)
	door := state.DialDoor(filepath.Join(c.procs[0].data, state.Door))
	if _, err := door.Ask(t.Context(), http.MethodPost, "/remove", []byte(`{"name":"c1"}`)); err != nil {
		t.Fatal(err)
	}
	c.add("c4", beatOfProcesses, false)
	c.allVote(3)
	c.settle(l)
	c.start(first) // it was removed, and nobody listens to it
	time.Sleep(time.Second)
	c.allVote(3)
	if o, ok := first.status(); !ok || slices.ContainsFunc(o.Members, func(m Status) bool { return m.Name != first.name && m.Error == "" }) {
		t.Errorf("a controller that was removed is answered: %+v, %v", o, ok)
	}
	c.settle(l)
}

// TestRemoveAmidLoss: with one of three killed another one that lives is not removed, as the one that would be left could agree on nothing; the lost one is.
func TestRemoveAmidLoss(t *testing.T) {
	c := newCluster(t, beatOfProcesses, "")
	c.kill(c.procs[2])
	c.leads(c.procs[:2])
	remove := func(name string) error {
		_, err := state.DialDoor(filepath.Join(c.procs[0].data, state.Door)).Ask(t.Context(), http.MethodPost, "/remove", []byte(`{"name":"`+name+`"}`))
		return err
	}
	for _, name := range []string{"c1", "c2"} {
		if err := remove(name); !errors.Is(err, state.ErrRejected) || !strings.Contains(err.Error(), "risso controller remove c3") {
			t.Errorf("the removal of %s: %v, want it refused, with what to do", name, err)
		}
	}
	if err := c.writes(c.procs[1], "both", time.Minute); err != nil {
		t.Errorf("a write after that: %v", err)
	}
	if err := remove("c3"); err != nil {
		t.Fatal(err)
	}
	if err := c.writes(c.procs[1], "two", time.Minute); err != nil {
		t.Errorf("a write by two: %v", err)
	}
	if err := remove("c2"); err != nil {
		t.Errorf("the removal of one of two that live: %v", err)
	}
	if err := c.writes(c.procs[0], "one", time.Minute); err != nil {
		t.Errorf("a write by one: %v", err)
	}
}

// TestLeaderWithFullDisk: another one leads, and the one whose disk is full has everything when there is room again.
func TestLeaderWithFullDisk(t *testing.T) {
	c := newCluster(t, beatOfProcesses, "size=6m")
	l, stop := c.writers()
	old := c.leads(c.procs)
	ballast, err := os.Create(filepath.Join(old.data, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = ballast.Write(make([]byte, 4096))
	}
	ballast.Close()
	c.leads(c.others(old))
	if err := c.writes(c.others(old)[0], "elsewhere", time.Minute); err != nil {
		t.Errorf("a write elsewhere: %v", err)
	}
	if err := os.Remove(ballast.Name()); err != nil {
		t.Fatal(err)
	}
	stop()
	c.allVote(3)
	c.settle(l)
	c.acts()
}

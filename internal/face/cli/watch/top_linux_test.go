package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// childArgs is set where the test's program is risso top itself.
const childArgs = "RISSO_TEST_TOP"

// TestMain keeps the journal of kills away from the account that runs the tests.
func TestMain(m *testing.M) {
	if args := os.Getenv(childArgs); args != "" {
		cmd := NewTop(screen.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.ExecuteContext(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "risso-state-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_STATE_HOME", dir)
	code := sandboxtest.Main(m)
	os.RemoveAll(dir)
	os.Exit(code)
}

// player is a terminal with somebody at it.
type player struct {
	t             *testing.T
	master, slave *os.File
	mu            sync.Mutex
	text          string
}

func newPlayer(t *testing.T, width, height uint16) *player {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{t: t, master: master, slave: slave}
	p.resize(width, height)
	t.Cleanup(func() { slave.Close(); master.Close() })
	go func() { // ends when the terminal is closed
		buf := make([]byte, 1<<16)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			p.mu.Lock()
			p.text += string(buf[:n])
			p.mu.Unlock()
		}
	}()
	return p
}

func (p *player) resize(width, height uint16) {
	if err := unix.IoctlSetWinsize(int(p.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *player) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text
}

var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// frame is the last screen that is complete: another one began after it.
func (p *player) frame() []string {
	frames := strings.Split(p.all(), home)
	if len(frames) < 3 {
		return nil
	}
	return strings.Split(escapes.ReplaceAllString(frames[len(frames)-2], ""), "\r\n")
}

// types sends keys.
func (p *player) types(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits for a screen with all of these in it.
func (p *player) sees(want ...string) {
	p.t.Helper()
	await.Until(p.t, func() bool {
		text := strings.Join(p.frame(), "\n")
		for _, w := range want {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	}, "a screen with %q", want)
}

// top runs risso top at a terminal until the function that it returns is called, which returns how it ended.
func (p *player) top(args ...string) (wait func() error) {
	cmd := NewTop(screen.Streams{In: p.slave, Out: p.slave, Err: p.slave})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(p.t.Context()) }()
	return func() error { return <-done }
}

// client is a connection that does not say that it is Risso's.
func client(t *testing.T, n *sandbox.Node) *mysql.Conn {
	t.Helper()
	target, err := mysql.ParseTarget(n.DSN + "?connectionAttributes=program_name:shop")
	if err != nil {
		t.Fatal(err)
	}
	c, err := mysql.Connect(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestKill: who blocks is found on the screen, is killed after two questions, and those that waited go on.
func TestKill(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Lend(t, spec)
			ctx := t.Context()
			blocker, waiter := client(t, n), client(t, n)
			for _, sql := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB", "INSERT INTO shop.t VALUES (1,0),(2,0),(3,0)", "BEGIN", "UPDATE shop.t SET v = v + 1"} {
				if err := blocker.Exec(ctx, sql); err != nil {
					t.Fatal(err)
				}
			}
			id := blocker.Server.ConnectionID
			went := make(chan error, 1)
			go func() { went <- waiter.Exec(ctx, "UPDATE shop.t SET v = 100 WHERE id = 2") }()
			p := newPlayer(t, 80, 24)
			wait := p.top("--dsn", n.DSN, "--no-host")
			p.sees("[Processes]", "UPDATE shop.t SET v")
			p.types("2")
			p.sees("[Locks]", fmt.Sprint(id), "keeps 1 waiting", "row lock")
			for i, l := range p.frame() {
				if len([]rune(l)) > 80 || i >= 24 {
					t.Errorf("line %d of a screen of 80×24: %q", i+1, l)
				}
			}
			p.types("k")
			p.sees(fmt.Sprintf("KILL %d on", id), "3 changes of rows", "1 connection waits for it", "y goes on")
			p.types("n")
			p.sees(fmt.Sprintf("KILL %d was left", id))
			p.types("ky")
			p.sees("Sure?")
			select {
			case err := <-went:
				t.Fatalf("the waiter went on before the second answer: %v", err)
			default:
			}
			p.types("y")
			p.sees("sent at", "Journal:")
			if err := <-went; err != nil {
				t.Errorf("the waiter: %v", err)
			}
			if err := blocker.Exec(ctx, "DO 1"); err == nil {
				t.Error("the blocker lives, want it killed")
			}
			p.sees("Nobody waits for a lock")
			p.types("q")
			if err := wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			await.Until(t, func() bool { return strings.HasSuffix(p.all(), leaveScreen) }, "the screen given back at the end")
			journaled(t, fmt.Sprintf("KILL %d", id))
		})
	}
}

// journaled looks for a kill in the journal.
func journaled(t *testing.T, statement string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "risso", "kills", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var k killed
		if err := json.Unmarshal(b, &k); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if k.Statement == statement && k.By != "" && k.Session.Transaction != nil && k.Session.Transaction.RowsModified == 3 {
			return
		}
	}
	t.Errorf("the journal has no %s with its 3 changes in %v", statement, files)
}

// TestKillStatement: only the statement ends, its connection and its transaction stay; Risso's own connections are refused.
func TestKillStatement(t *testing.T) {
	n := sandboxtest.Lend(t, "mysql-9.7")
	ctx := t.Context()
	sleeper := client(t, n)
	ended := make(chan error, 1)
	go func() { ended <- sleeper.Exec(ctx, "DO SLEEP(1000)") }()
	p := newPlayer(t, 100, 30)
	wait := p.top("--dsn", n.DSN, "--no-host")
	p.sees("DO SLEEP(1000)")
	p.types("e") // no plan of a DO: it is said, and nothing breaks
	p.sees("No plan")
	p.types("/sleep(1000\r")
	p.sees("1 of", "filter: sleep(1000")
	p.types("xy")
	p.sees("Sure?")
	p.types("y")
	<-ended
	if err := sleeper.Exec(ctx, "DO 1"); err != nil {
		t.Errorf("the connection after KILL QUERY: %v, want it alive", err)
	}
	p.types("ci/show\r") // among all sessions: Risso's own
	p.sees("SHOW /* risso", "filter: show")
	p.types("k")
	p.sees("is not killed", "Risso's own")
	p.types("q")
	if err := wait(); err != nil {
		t.Error(err)
	}
}

// TestTerminalGivenBack: Ctrl-Z and Ctrl-C give the terminal back as it was, and it takes the new size when that changes.
func TestTerminalGivenBack(t *testing.T) {
	n := sandboxtest.Lend(t, "mariadb")
	p := newPlayer(t, 80, 24)
	before, err := term.GetState(int(p.slave.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	same := func() bool {
		now, err := term.GetState(int(p.slave.Fd()))
		return err == nil && *now == *before
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childArgs+"=--no-host --dsn "+n.DSN, "NO_COLOR=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.slave, p.slave, p.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	p.sees("[Processes]")
	if same() {
		t.Error("the terminal is not raw while top runs")
	}
	if strings.Contains(p.all(), string(bold)) || strings.Contains(p.all(), string(chosen)) {
		t.Error("NO_COLOR is set, but there are colours")
	}
	p.types("\x1a")
	await.Until(t, func() bool { return state(t, cmd.Process.Pid) == "T" && same() }, "a stopped process and the terminal as it was")
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool { return !same() }, "the terminal raw again")
	p.resize(60, 12)
	await.Until(t, func() bool {
		f := p.frame()
		return len(f) == 12 && len([]rune(f[0])) <= 60
	}, "a screen of 60×12")
	p.types("\x03")
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C it ended with %v", err)
	}
	if !same() {
		t.Error("the terminal is not as it was")
	}
}

// state is a process' state letter.
func state(t *testing.T, pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest[:1]
}

package sandbox

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox/datadir"
)

// Node is one server of a sandbox.
type Node struct {
	Name         string `json:"name"`
	Role         string `json:"role"` // the role it was created for; a failover does not change it
	Server       string `json:"server"`
	Version      string `json:"version"`
	Host         string `json:"host"`
	Port         int    `json:"port"`
	Socket       string `json:"socket"`
	Datadir      string `json:"datadir"`
	PID          int    `json:"pid"` // 0 if it is not running
	State        State  `json:"state"`
	DSN          string `json:"dsn"`           // root over the Unix socket, without a password
	DefaultsFile string `json:"defaults_file"` // account and password for a client over TCP, mode 0600
	ErrorLog     string `json:"error_log"`

	Program Server  `json:"program"`
	Process process `json:"process"` // its last start
	Galera  *Galera `json:"galera,omitempty"`
	// Namespace is the network namespace that it is in, if the sandbox has a network of its own.
	Namespace string `json:"namespace,omitempty"`

	sandbox *Sandbox
	exited  chan struct{} // closed when the process that this one started is gone; nil for another's
	command *exec.Cmd     // that process; how it ended is known when exited is closed
	logged  int           // bytes that its log had before the last start
}

// errPortTaken is the reason of a start that found another program on the port.
var errPortTaken = errors.New("the port is taken by another program")

// errNoAIO is the reason of a start for which the kernel had no room for asynchronous I/O left: a MySQL takes some 2,500 of the
// 65,536 requests that fs.aio-max-nr allows on a machine, and does not start without. MariaDB goes on by itself.
var errNoAIO = errors.New("the machine has no asynchronous I/O requests left (fs.aio-max-nr)")

// simulatedAIO lets InnoDB make do without it.
const simulatedAIO = "--innodb-use-native-aio=OFF"

func (n *Node) dir() string { return filepath.Dir(n.Datadir) }

// Config is for a connection as root over the Unix socket.
func (n *Node) Config() *mysql.Config {
	c := n.plainConfig()
	c.Timeout = 5 * time.Second
	c.Logger = &mysql.NopLogger{} // its errors come back to the caller anyway
	return c
}

// plainConfig says who and where, and nothing else.
func (n *Node) plainConfig() *mysql.Config {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User = "unix", n.Socket, "root"
	return c
}

// TCPConfig is for a connection over TCP with the sandbox's account.
func (n *Node) TCPConfig() (*mysql.Config, error) {
	password, err := n.sandbox.Password()
	if err != nil {
		return nil, err
	}
	c := n.Config()
	c.Net, c.Addr = "tcp", net.JoinHostPort(n.Host, strconv.Itoa(n.Port))
	c.User, c.Passwd = n.sandbox.User, password
	if n.Namespace != "" {
		clients, err := n.sandbox.Network.Place(Clients)
		if err != nil {
			return nil, err
		}
		c.DialFunc = clients.Dial
	}
	return c, nil
}

// DB opens a pool of connections as root. The caller closes it.
func (n *Node) DB() (*sql.DB, error) { return open(n.Config()) }

func open(c *mysql.Config) (*sql.DB, error) {
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", c.Addr, err)
	}
	return sql.OpenDB(connector), nil
}

// Start starts the server, with further arguments such as
// --wsrep-new-cluster where given, and returns when it answers.
func (n *Node) Start(ctx context.Context, args ...string) error {
	if n.refresh() != StateStopped {
		return nil
	}
	var ports []int
	if n.Namespace == "" {
		ports = append(ports, n.Port)
	}
	if n.Galera != nil {
		ports = append(ports, n.Galera.Port, n.Galera.ISTPort, n.Galera.SSTPort)
	}
	for _, port := range ports {
		hold, err := holdPort(port)
		if err != nil {
			return fmt.Errorf("node %s: port %d: %w", n.Name, port, err)
		}
		defer hold.release()
	}
	return n.start(ctx, args...)
}

// StartClosed starts the server like Start, but closed to clients who write, whatever its configuration says: so a group's servers have to come back.
func (n *Node) StartClosed(ctx context.Context) error {
	r, err := recipeFor(n.Program)
	if err != nil {
		return err
	}
	return n.Start(ctx, dashed(r.readOnly)...)
}

// start runs the program and waits until it answers. The caller holds the port.
func (n *Node) start(ctx context.Context, args ...string) error {
	err := n.startWith(ctx, args...)
	if errors.Is(err, errNoAIO) {
		return n.startWith(ctx, append(slices.Clone(args), simulatedAIO)...)
	}
	return err
}

func (n *Node) startWith(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, n.sandbox.timeout, fmt.Errorf("no answer after %s", n.sandbox.timeout))
	defer cancel()
	if err := n.unused(ctx); err != nil {
		return err
	}
	if err := n.launch(args); err != nil {
		return fmt.Errorf("node %s: start: %w", n.Name, err)
	}
	if err := n.sandbox.save(); err != nil {
		return err
	}
	err := n.awaitAnswer(ctx)
	if err == nil && n.Galera != nil {
		err = n.awaitSynced(ctx)
	}
	if err != nil {
		return fmt.Errorf("node %s: start: %w", n.Name, err)
	}
	n.refresh()
	return nil
}

// dying is how long a server may take to let go of its files after it was killed.
const dying = 5 * time.Second

// unused refuses a data directory on which another server works, whatever it is called. One that is just ending is waited for.
func (n *Node) unused(ctx context.Context) error {
	l := datadir.At(n.Datadir)
	for began := time.Now(); l.State == datadir.InUse && time.Since(began) < dying; l = datadir.At(n.Datadir) {
		if err := delay.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	if l.State != datadir.InUse {
		return nil
	}
	return fault.New(fault.InUse, "end that process first; risso check datadir "+fleet.ShellWord(n.Datadir)+" looks again", fmt.Errorf("node %s: the data directory is %s", n.Name, l.Words))
}

// Environ is the environment that the node's program wants.
func (n *Node) Environ() []string { return environ(n.Program.Basedir) }

// launch runs the server as a process in its own session, so that it outlives
// Risso and a Ctrl-C in the terminal does not reach it.
func (n *Node) launch(args []string) error {
	console, err := os.OpenFile(filepath.Join(n.dir(), "console.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer console.Close()
	// The folder is in the arguments: that is how a process is recognized as ours.
	args = append([]string{"--defaults-file=" + n.configPath(), "--datadir=" + n.Datadir}, args...)
	cmd := exec.Command(n.Program.Binary, args...)
	cmd.Env = environ(n.Program.Basedir)
	cmd.Dir = n.dir()
	cmd.Stdout, cmd.Stderr = console, console
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if fi, err := os.Stat(n.ErrorLog); err == nil {
		n.logged = int(fi.Size())
	}
	if n.sandbox.Clock {
		if err := n.ownClock(cmd); err != nil {
			return err
		}
	}
	if err := inNamespace(n.Namespace, cmd.Start); err != nil {
		return err
	}
	exited := make(chan struct{})
	// Ends with the server. Without it, a dead server would stay as a zombie.
	go func() {
		defer close(exited)
		_ = cmd.Wait() // why it ended is in its log, and how in the command
	}()
	p, err := identify(cmd.Process.Pid)
	if err != nil {
		p = process{PID: cmd.Process.Pid} // gone already: awaitAnswer says why
	}
	n.sandbox.mu.Lock()
	defer n.sandbox.mu.Unlock()
	n.Process, n.PID, n.exited, n.command = p, p.PID, exited, cmd
	return nil
}

// awaitAnswer returns when root can log in.
func (n *Node) awaitAnswer(ctx context.Context) error {
	db, err := n.DB()
	if err != nil {
		return err
	}
	defer db.Close()
	var last error
	for {
		if _, err := os.Stat(n.Socket); err == nil {
			if last = db.PingContext(ctx); last == nil {
				return nil
			}
		}
		select {
		case <-n.exited:
			return n.deathReason()
		case <-ctx.Done():
			if log := n.logErrors(); log != "" {
				return fmt.Errorf("%w: %s", context.Cause(ctx), log)
			}
			return errors.Join(context.Cause(ctx), last)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Ended returns a channel that is closed when the server that this process started is gone; nil for another's.
func (n *Node) Ended() <-chan struct{} { return n.exited }

// ErrKilled says that something else than itself ended a server.
var ErrKilled = errors.New("something else stopped the server: it was killed, as the kernel does when memory runs out, or shut down")

// Killed reports whether the server that this process started was ended by something else than itself. Until it has ended it was not.
func (n *Node) Killed() bool {
	if n.exited == nil {
		return false
	}
	select {
	case <-n.exited:
		return Killed(n.command.ProcessState)
	default:
		return false
	}
}

// Killed reports whether a program was ended from outside: a signal that no fault of its own raises, or, for a server, an orderly
// shutdown. Servers end with a number above 0 when they crash, or with the signal that they crashed by.
func Killed(st *os.ProcessState) bool {
	if st == nil { // it could not be waited for
		return false
	}
	w, ok := st.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return false
	case w.Signaled():
		return !slices.Contains([]syscall.Signal{syscall.SIGSEGV, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGILL, syscall.SIGFPE, syscall.SIGTRAP, syscall.SIGSYS}, w.Signal())
	}
	return w.ExitStatus() == 0
}

// LastErrors are the last errors in the server's log, in a line; "" if there are none.
func (n *Node) LastErrors() string { return n.logErrors() }

// deathReason says, from the log, why a server ended while it started.
func (n *Node) deathReason() error {
	log := n.logErrors()
	if whole, err := os.ReadFile(n.ErrorLog); err == nil && bytes.Contains(whole[min(n.logged, len(whole)):], []byte("Cannot initialize AIO sub-system")) {
		return fmt.Errorf("%w: %s", errNoAIO, log)
	}
	for _, sign := range []string{"Bind on TCP/IP port", "Address already in use"} {
		if strings.Contains(log, sign) {
			return fmt.Errorf("%w: %s", errPortTaken, log)
		}
	}
	if n.Killed() {
		return fmt.Errorf("%s ended: %w", n.Program.Name, ErrKilled)
	}
	return fmt.Errorf("%s ended: %s", n.Program.Name, log)
}

// logErrors are the last errors in the logs of the node.
func (n *Node) logErrors() string {
	for _, path := range []string{n.ErrorLog, filepath.Join(n.dir(), "console.log")} {
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			return lastErrors(string(b))
		}
	}
	return ""
}

// Stop shuts the server down cleanly and returns when it is gone.
func (n *Node) Stop(ctx context.Context) error {
	if err := n.Kill(syscall.SIGTERM); err != nil {
		return err
	}
	// A paused process would not see it.
	if err := n.Kill(syscall.SIGCONT); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("it does not stop"))
	defer cancel()
	return n.awaitEnd(ctx)
}

// Kill sends a signal to the server: SIGKILL is a crash, SIGSTOP a hang, SIGCONT
// ends it. After SIGKILL it returns when the server is gone, after SIGSTOP when
// it stands. A server that does not run is no error.
func (n *Node) Kill(sig syscall.Signal) error {
	p, _, ok := n.find()
	if !ok {
		return nil
	}
	if err := p.signal(sig, n.Datadir); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), 10*time.Second, errors.New("it does not stop"))
	defer cancel()
	switch sig {
	case syscall.SIGKILL:
		return n.awaitEnd(ctx)
	case syscall.SIGSTOP:
		return n.awaitStand(ctx, p)
	}
	return nil
}

// awaitStand waits until no thread of a process runs. A stop begins when the first of them notices it, which may be late on a busy machine, and the others serve on until then.
func (n *Node) awaitStand(ctx context.Context, p process) error {
	for p.runs() {
		if err := delay.For(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

func (n *Node) awaitEnd(ctx context.Context) error {
	for n.refresh() != StateStopped {
		if err := delay.For(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

// find returns the process that serves the node's data: the recorded one, or
// one that an up, which died before it could record it, has started.
func (n *Node) find() (p process, letter byte, ok bool) {
	n.sandbox.mu.Lock()
	p = n.Process
	n.sandbox.mu.Unlock()
	if letter, ok = p.alive(n.Datadir); ok {
		return p, letter, true
	}
	found, err := processesUnder(n.Datadir)
	if err != nil {
		return process{}, 0, false
	}
	for _, p := range found {
		if letter, ok := p.alive(n.Datadir); ok {
			return p, letter, true
		}
	}
	return process{}, 0, false
}

// refresh reads whether the node runs.
func (n *Node) refresh() State {
	p, letter, ok := n.find()
	n.sandbox.mu.Lock()
	defer n.sandbox.mu.Unlock()
	switch {
	case !ok:
		n.State, n.PID = StateStopped, 0
	case letter == 'T' || letter == 't':
		n.State, n.PID = StatePaused, p.PID
	default:
		n.State, n.PID = StateRunning, p.PID
	}
	return n.State
}

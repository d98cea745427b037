package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/avail/chaos/ledger"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/sandbox"
)

// Process is a controller that is a program of this machine, at a place of a sandbox's network.
type Process struct {
	Title string
	Args  []string // the program first
	Env   []string // besides this process's
	Place sandbox.Place
	Log   string // file that gets what it prints
	// Started is called with each process that was started; may be nil.
	Started func(pid int) error
	// Ready waits until it works; nil: at once.
	Ready func(ctx context.Context) error

	mu  sync.Mutex
	cmd *exec.Cmd
}

var _ Controller = (*Process)(nil)

// Name is its title.
func (p *Process) Name() string { return p.Title }

// Start starts it, unless it runs.
func (p *Process) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return nil
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Title, err)
	}
	defer log.Close()
	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for this process, which then ends that one
	if err := p.Place.Do(cmd.Start); err != nil {
		return fmt.Errorf("start %s: %w", p.Title, err)
	}
	p.cmd = cmd
	if p.Started != nil {
		if err := p.Started(cmd.Process.Pid); err != nil {
			return err
		}
	}
	if p.Ready == nil {
		return nil
	}
	if err := p.Ready(ctx); err != nil {
		return fmt.Errorf("start %s: %w; its log is %s", p.Title, err, p.Log)
	}
	return nil
}

// Kill kills it.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
	p.cmd = nil
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.Title, err)
	}
	return nil
}

// Lab is a sandbox with a group of servers and controllers that fail it over.
type Lab struct {
	Box
	Dir   string // of all its files
	Group string
	Risso string // the program
}

// LabOptions say what a lab is made of.
type LabOptions struct {
	Dir      string // is made
	Group    string
	Risso    string // the program
	Server   string // what sandbox.Find understands
	Replicas int
	SemiSync bool
	Disk     int64
	Clock    bool
	// Controllers is how many share their state; 0: clients wait until the primary is back.
	Controllers int
	Say         func(string)
	// Started is called with each controller's process; may be nil.
	Started func(pid int) error
}

// servePort and agreePort are those of the first controller, at its place; the others' are the next but one.
const (
	servePort = 8306
	agreePort = 8307
)

// OpenLab makes one. Whoever called it closes it, also when it failed.
func OpenLab(ctx context.Context, o LabOptions) (*Lab, error) {
	l := &Lab{Dir: o.Dir, Group: o.Group, Risso: o.Risso}
	settings := []string{"loose_slave_parallel_threads=4", "loose_slave_parallel_mode=conservative"} // they apply in parallel, as servers in production do
	if o.Controllers == 0 {
		// Replicas say soon that a primary sends nothing any more: other controllers go by that. Risso counts heartbeats, and stops receivers that wait sooner than those that connect anew.
		settings = append(settings, "loose_slave_net_timeout=4", "loose_replica_net_timeout=4")
	}
	s, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(o.Dir, "servers"), Name: "chaos", Servers: []string{o.Server}, Topology: sandbox.TopologyReplication, Settings: settings,
		Replicas: o.Replicas, SemiSync: o.SemiSync, Network: true, Disk: o.Disk, Clock: o.Clock, Progress: o.Say})
	if err != nil {
		return l, err
	}
	l.Sandbox = s
	if err := l.Prepare(ctx); err != nil || o.Controllers == 0 {
		return l, err
	}
	return l, l.control(ctx, o)
}

// control makes the group and starts its controllers.
func (l *Lab) control(ctx context.Context, o LabOptions) error {
	place, err := l.Sandbox.Network.Place(sandbox.Control)
	if err != nil {
		return err
	}
	config := filepath.Join(l.Dir, "risso.json")
	if err := l.writeConfig(config); err != nil {
		return err
	}
	args := []string{"group", "create", l.Group, "--config", config, "--all", "--rebuild", "--pause", "1s", "--about", "staging: a sandbox of risso chaos"}
	if o.SemiSync {
		args = append(args, "--semi-sync")
	}
	if _, err := l.risso(ctx, args...); err != nil {
		return err
	}
	if err := l.ready(ctx); err != nil {
		return err
	}
	text, err := l.risso(ctx, "token", "create", "chaos", "--output", "json")
	if err != nil {
		return err
	}
	var token struct{ Token string }
	if err := json.Unmarshal([]byte(text), &token); err != nil || token.Token == "" {
		return fmt.Errorf("risso token create: %w", errors.Join(err, errors.New("it gives no token")))
	}
	var ask []func(context.Context) (ledger.Server, error)
	for i := range o.Controllers {
		if o.Controllers > 1 {
			if err := l.join(ctx, place.Address, i); err != nil {
				return err
			}
		}
		address := net.JoinHostPort(place.Address, strconv.Itoa(servePort+2*i))
		where := l.asks("http://"+address+"/primary?group="+url.QueryEscape(l.Group), token.Token)
		p := &Process{Title: controllerName(i), Args: []string{l.Risso, "serve", "--config", config, "--data", l.data(i), "--no-host", "--listen", address, "--failover", "auto"},
			Place: place, Started: o.Started, Log: filepath.Join(l.Dir, controllerName(i)+".log"), Ready: tells(where)}
		ask = append(ask, where)
		l.Controllers = append(l.Controllers, p)
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	l.Where = anyOf(ask)
	return nil
}

// controllerName is that of a controller, and of its folder.
func controllerName(i int) string {
	if i == 0 {
		return "controller"
	}
	return fmt.Sprint("controller", i+1)
}

func (l *Lab) data(i int) string { return filepath.Join(l.Dir, controllerName(i)) }

// join makes a controller one of several; the first one founds them.
func (l *Lab) join(ctx context.Context, host string, i int) error {
	address := net.JoinHostPort(host, strconv.Itoa(agreePort+2*i))
	if i == 0 {
		_, err := l.risso(ctx, "controller", "init", "--name", controllerName(i), "--address", address)
		return err
	}
	invitation := filepath.Join(l.Dir, controllerName(i)+".invitation")
	if _, err := l.risso(ctx, "controller", "invite", invitation); err != nil {
		return err
	}
	_, err := l.rissoOf(ctx, l.data(i), "controller", "join", invitation, "--name", controllerName(i), "--address", address)
	return err
}

// tells waits until a controller tells where the primary is.
func tells(where func(context.Context) (ledger.Server, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("it tells no primary after a minute"))
		defer cancel()
		for {
			if _, err := where(ctx); err == nil {
				return nil
			} else if ctx.Err() != nil {
				return errors.Join(context.Cause(ctx), err)
			}
			_ = delay.For(ctx, 50*time.Millisecond)
		}
	}
}

// anyOf asks one controller after the other until one knows, as clients do that have several addresses: who has seen an epoch believes no older one. A controller that
// does not lead learns of a new primary some tenths of a second later.
func anyOf(ask []func(context.Context) (ledger.Server, error)) func(context.Context) (ledger.Server, error) {
	var newest atomic.Uint64
	return func(ctx context.Context) (ledger.Server, error) {
		var errs []error
		for _, f := range ask {
			s, err := f(ctx)
			for err == nil {
				seen := newest.Load()
				if s.Epoch < seen {
					err = fmt.Errorf("it tells of epoch %d, and %d was told of", s.Epoch, seen)
				} else if newest.CompareAndSwap(seen, s.Epoch) {
					return s, nil
				}
			}
			errs = append(errs, err)
		}
		return ledger.Server{}, errors.Join(errs...)
	}
}

// Heal ends a fault. A member that was filled anew is back in the group when it returns.
func (l *Lab) Heal(ctx context.Context, f Fault, target string) (damage string, err error) {
	damage, err = l.Box.Heal(ctx, f, target)
	if err != nil || damage == "" || l.Where == nil {
		return damage, err
	}
	for {
		g, err := l.group(ctx)
		if err != nil {
			return damage, err
		}
		if i := g.Find(target); i >= 0 && g.Members[i].Status == group.Secondary {
			return damage, l.ready(ctx)
		}
		if err := delay.For(ctx, 500*time.Millisecond); err != nil {
			return damage, fmt.Errorf("%s was filled anew, and is not back in the group: %w", target, err)
		}
	}
}

// Tend waits until members that the group keeps out, because of transactions that only they have, are rebuilt: the controllers do that by themselves.
func (l *Lab) Tend(ctx context.Context) (rebuilt []string, err error) {
	if l.Where == nil {
		return nil, nil
	}
	waited := map[string]bool{}
	for {
		g, err := l.group(ctx)
		if err != nil {
			return nil, err
		}
		out := 0
		for _, m := range g.Members {
			switch {
			case m.Status == group.Faulty && m.Unlogged: // a person decides: all that it took without a replica was promised to nobody, or is in the ledger
				if _, err := l.risso(ctx, "group", "rebuild", l.Group, m.Name, "--yes"); err != nil {
					return rebuilt, err
				}
				waited[m.Name] = true
				out++
			case m.Status == group.Faulty && m.Errant != "": // one that is FAULTY otherwise is on its way back
				if m.Rebuild != nil && m.Rebuild.Tries > 0 {
					return rebuilt, fmt.Errorf("%s: %s", m.Name, m.Rebuild.Words(time.Now()))
				}
				waited[m.Name] = true
				out++
			case waited[m.Name]:
				delete(waited, m.Name)
				rebuilt = append(rebuilt, m.Name)
			}
		}
		if out == 0 {
			if len(rebuilt) > 0 {
				err = l.ready(ctx)
			}
			return rebuilt, err
		}
		if err := delay.For(ctx, 500*time.Millisecond); err != nil {
			return rebuilt, context.Cause(ctx)
		}
	}
}

// group is how the group stands, by the first controller's data folder.
func (l *Lab) group(ctx context.Context) (group.Group, error) {
	text, err := l.risso(ctx, "group", "show", l.Group, "--output", "json")
	if err != nil {
		return group.Group{}, err
	}
	var a struct{ Groups []group.Group }
	if err := json.Unmarshal([]byte(text), &a); err != nil || len(a.Groups) != 1 {
		return group.Group{}, fmt.Errorf("risso group show: %w: %s", err, text)
	}
	return a.Groups[0], nil
}

// ready lets members that are new hear from the primary as often as the others.
func (l *Lab) ready(ctx context.Context) error {
	_, err := l.risso(ctx, "group", "prepare", l.Group, "--yes", "--state", filepath.Join(l.Dir, "prepare"))
	return err
}

// Command runs a command of Risso where the controller is, with its data folder, and returns what it prints.
func (l *Lab) Command(ctx context.Context, args ...string) (string, error) {
	return l.risso(ctx, args...)
}

// risso runs a command about the group where the controllers are, with the data folder of the first one.
func (l *Lab) risso(ctx context.Context, args ...string) (string, error) {
	return l.rissoOf(ctx, l.data(0), args...)
}

func (l *Lab) rissoOf(ctx context.Context, data string, args ...string) (string, error) {
	place, err := l.Sandbox.Network.Place(sandbox.Control)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, l.Risso, append(args, "--data", data)...)
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := place.Do(cmd.Start); err != nil {
		return "", err
	}
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("risso %s: %w: %s", strings.Join(args[:2], " "), err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}

// writeConfig writes what risso serve watches. The password is in the nodes' own option files.
func (l *Lab) writeConfig(path string) error {
	type server struct {
		Name         string `json:"name"`
		DSN          string `json:"dsn"`
		DefaultsFile string `json:"defaults_file"`
	}
	var c struct {
		Servers []server `json:"servers"`
	}
	for _, n := range l.Sandbox.Nodes {
		c.Servers = append(c.Servers, server{n.Name, fmt.Sprintf("%s@tcp(%s)/", l.Sandbox.User, address(n)), n.DefaultsFile})
	}
	text, err := json.MarshalIndent(c, "", " ")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the controller's configuration: %w", err)
	}
	return nil
}

// asks returns how clients ask the controller where the primary is.
func (l *Lab) asks(address, token string) func(context.Context) (ledger.Server, error) {
	place, err := l.Sandbox.Network.Place(sandbox.Clients)
	if err != nil {
		return func(context.Context) (ledger.Server, error) { return ledger.Server{}, err }
	}
	client := &http.Client{Transport: bearer{&http.Transport{DialContext: place.Dial, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}, token}}
	return func(ctx context.Context) (ledger.Server, error) { return AskPrimary(ctx, client, address) }
}

// bearer adds a token to each request.
type bearer struct {
	http.RoundTripper
	token string
}

// RoundTrip is http.RoundTripper's.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// AskPrimary asks risso serve for the primary of a group: the address is that of /primary?group=NAME.
func AskPrimary(ctx context.Context, client *http.Client, address string) (ledger.Server, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return ledger.Server{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return ledger.Server{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return ledger.Server{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return ledger.Server{}, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(text)))
	}
	var a struct {
		Server  string `json:"server"`
		Address string `json:"address"`
		Epoch   uint64 `json:"epoch"`
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return ledger.Server{}, fmt.Errorf("%s: %w", address, err)
	}
	if a.Address == "" {
		return ledger.Server{}, errors.New("there is no primary")
	}
	return ledger.Server{Name: a.Server, Address: a.Address, Epoch: a.Epoch}, nil
}

// Close ends the controllers. The servers go down, too, and with them their data, unless they are to be kept.
func (l *Lab) Close(ctx context.Context, keep bool) error {
	var errs []error
	for _, c := range l.Controllers {
		errs = append(errs, c.Kill())
	}
	if l.Sandbox != nil && !keep {
		errs = append(errs, l.Sandbox.Down(ctx))
	}
	return errors.Join(errs...)
}

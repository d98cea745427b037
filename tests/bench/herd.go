package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// What is promised of many groups that one risso serve watches.
const (
	herdGroups = 200
	herdCores  = 0.5
	// herdRead is how many groups have their members read each second, too: of more, the servers that take the place of all would have nothing left for them.
	herdRead = 40
)

// herd is many groups that one risso serve watches.
type herd struct {
	b       *bench
	dir     string
	boxes   []*sandbox.Sandbox
	groups  []string
	serve   *process
	address string
	token   string
}

// close ends it.
func (h *herd) close(ctx context.Context) {
	if h.serve != nil {
		h.serve.stop()
	}
	for _, sb := range h.boxes {
		down(ctx, sb)
	}
}

// newHerd starts groups of three real servers each.
func (b *bench) newHerd(ctx context.Context, name string, servers []string, disk int64) (*herd, error) {
	h := &herd{b: b, dir: filepath.Join(b.work, name)}
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		return h, err
	}
	for i, server := range servers {
		sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(h.dir, "servers"), Name: fmt.Sprintf("g%d", i), Servers: []string{server}, Topology: sandbox.TopologyReplication, Replicas: 2, SemiSync: true, Disk: disk,
			Settings: []string{"max_connections=1000"}})
		if err != nil {
			return h, err
		}
		h.boxes = append(h.boxes, sb)
	}
	return h, nil
}

// data are the arguments that name the data folder.
func (h *herd) data(args ...string) []string {
	return append(args, "--data", filepath.Join(h.dir, "data"))
}

// run runs a command of Risso.
func (h *herd) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, h.b.risso, args...)
	cmd.Env = append(os.Environ(), "RISSO_TOKEN="+h.token)
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("risso %s: %w: %s", strings.Join(args[:2], " "), err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}

// group makes a group of a sandbox's servers, which are reached at a host.
func (h *herd) group(ctx context.Context, name string, sb *sandbox.Sandbox, host string, flags ...string) error {
	password, err := sb.Password()
	if err != nil {
		return err
	}
	option := filepath.Join(h.dir, name+".cnf")
	if err := os.WriteFile(option, fmt.Appendf(nil, "[client]\nuser=%s\npassword=%s\n", sb.User, password), 0o600); err != nil {
		return err
	}
	args := append(h.data("group", "create", name, "--semi-sync", "--pause", "1s", "--defaults-file", option), flags...)
	for _, n := range sb.Nodes {
		args = append(args, "--dsn", fmt.Sprintf("%s-%s=%s@tcp(%s)/", name, n.Name, sb.User, net.JoinHostPort(host, strconv.Itoa(n.Port))))
	}
	if _, err := h.run(ctx, args...); err != nil {
		return err
	}
	h.groups = append(h.groups, name)
	return nil
}

// watch starts risso serve, and waits until it tells a primary of each group.
func (h *herd) watch(ctx context.Context, args ...string) (err error) {
	if h.token == "" {
		if h.token, err = h.newToken(ctx); err != nil {
			return err
		}
	}
	if h.address, err = freePort(); err != nil {
		return err
	}
	h.serve, err = h.b.launch("serve", nil, h.b.risso, append(h.data("serve", "--host-only", "--listen", h.address, "--failover", "auto"), args...)...)
	if err != nil {
		return err
	}
	return h.serve.await(ctx, 5*time.Minute, func() bool {
		for _, g := range h.groups {
			if _, err := h.get(ctx, "/primary?group="+g); err != nil {
				return false
			}
		}
		return true
	})
}

// newToken makes a token for questions.
func (h *herd) newToken(ctx context.Context) (string, error) {
	text, err := h.run(ctx, h.data("token", "create", "bench", "--output", "json")...)
	if err != nil {
		return "", err
	}
	var token struct{ Token string }
	if err := json.Unmarshal([]byte(text), &token); err != nil {
		return "", fmt.Errorf("risso token create: %w", err)
	}
	return token.Token, nil
}

// get asks risso serve.
func (h *herd) get(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "curl", "-sf", "-H", "@-", "http://"+h.address+path)
	cmd.Stdin = strings.NewReader("Authorization: Bearer " + h.token + "\n")
	out, err := cmd.Output()
	return string(out), err
}

// alarms counts how often risso serve took a primary for dead, and how often it let another one follow.
func (h *herd) alarms(ctx context.Context) (dead, moved int, err error) {
	text, err := h.run(ctx, "events", "--url", "http://"+h.address, "--kind", "failover", "--limit", "5000", "--output", "json")
	if err != nil {
		return 0, 0, err
	}
	var a struct{ Events []struct{ Text string } }
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return 0, 0, fmt.Errorf("risso events: %w", err)
	}
	for _, e := range a.Events {
		switch {
		case strings.Contains(e.Text, " is dead"):
			dead++
		case strings.Contains(e.Text, " as the primary of "):
			moved++
		}
	}
	return dead, moved, nil
}

// nuisance is something that happens to all primaries at once, and is no death. It lasts for two seconds, on a busy machine longer.
type nuisance struct {
	name string
	do   func(ctx context.Context, h *herd) (lasted time.Duration, err error)
}

// nuisances are what a failover may not come of.
var nuisances = []nuisance{{"a stall of 2 s (SIGSTOP, SIGCONT)", stallAll}, {"a slow disk (20 writes a second)", slowAll}, {"full processors (four busy processes for each)", busyAll}}

// primary is who takes the writes of a group now.
func (h *herd) primary(ctx context.Context, i int) (*sandbox.Node, error) {
	text, err := h.get(ctx, "/primary?group="+h.groups[i])
	if err != nil {
		return nil, fmt.Errorf("the primary of %s: %w", h.groups[i], err)
	}
	var p struct{ Address string }
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("the primary of %s: %w", h.groups[i], err)
	}
	for _, n := range h.boxes[i].Nodes {
		if strings.HasSuffix(p.Address, ":"+strconv.Itoa(n.Port)) {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the primary of %s, %s, is none of its servers", h.groups[i], p.Address)
}

// primaries does something with the primary of each group for two seconds, with all at the same time, and undoes it. lasted is the longest that it was so.
func (h *herd) primaries(ctx context.Context, do, undo func(n *sandbox.Node) error) (lasted time.Duration, err error) {
	errs, took := make([]error, len(h.boxes)), make([]time.Duration, len(h.boxes))
	var all sync.WaitGroup
	for i := range h.boxes {
		n, err := h.primary(ctx, i)
		if err != nil {
			return 0, err
		}
		all.Go(func() {
			began := time.Now()
			errs[i] = do(n)
			errs[i] = errors.Join(errs[i], pause(ctx, 2*time.Second-time.Since(began)), undo(n))
			took[i] = time.Since(began)
		})
	}
	all.Wait()
	return slices.Max(took), errors.Join(errs...)
}

func stallAll(ctx context.Context, h *herd) (time.Duration, error) {
	signal := func(s syscall.Signal) func(n *sandbox.Node) error {
		return func(n *sandbox.Node) error { return n.Kill(s) }
	}
	return h.primaries(ctx, signal(syscall.SIGSTOP), signal(syscall.SIGCONT))
}

func slowAll(ctx context.Context, h *herd) (time.Duration, error) {
	return h.primaries(ctx, func(n *sandbox.Node) error { return n.Slow(20) }, (*sandbox.Node).Fast)
}

func busyAll(ctx context.Context, _ *herd) (time.Duration, error) {
	began := time.Now()
	ctx, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	var all sync.WaitGroup
	for range 4 * runtime.NumCPU() {
		all.Go(func() { _ = exec.CommandContext(ctx, "sh", "-c", "while :; do :; done").Run() }) // ends with ctx
	}
	all.Wait()
	return time.Since(began), nil
}

// alarms lets all primaries stall, and have slow disks and busy processors, again and again: none of that is a death.
func (b *bench) alarms(ctx context.Context, s *section) error {
	if os.Geteuid() != 0 {
		return errors.New("only root can slow the disks of servers")
	}
	servers, rounds := []string{"mariadb", "mysql-9.7", "mariadb", "mysql-9.7", "mariadb", "mysql-9.7"}, 10*b.rounds
	if b.quick {
		servers, rounds = servers[:2], 6*b.rounds
	}
	h, err := b.newHerd(ctx, "alarms", servers, 1<<30)
	defer h.close(ctx)
	if err != nil {
		return err
	}
	for i, sb := range h.boxes {
		if err := h.group(ctx, fmt.Sprintf("g%d", i), sb, "127.0.0.1"); err != nil {
			return err
		}
		if _, err := h.run(ctx, h.data("group", "prepare", h.groups[i], "--yes", "--state", filepath.Join(h.dir, "prepare"))...); err != nil {
			return err
		}
	}
	if err := h.watch(ctx); err != nil {
		return err
	}
	stop, err := h.load(ctx)
	defer stop()
	if err != nil {
		return err
	}
	t := s.table("what happens to the primaries of all groups at once", "what", "rounds", "longest s", "taken for dead", "failed over")
	all, bad, before := 0, 0, [2]int{}
	for _, what := range nuisances {
		count, longest := 0, time.Duration(0)
		for count*len(nuisances) < rounds {
			lasted, err := what.do(ctx, h)
			if err != nil {
				return err
			}
			longest = max(longest, lasted)
			if err := pause(ctx, time.Second); err != nil {
				return err
			}
			count += len(h.groups)
		}
		if err := pause(ctx, 3*time.Second); err != nil { // what was believed is told
			return err
		}
		dead, moved, err := h.alarms(ctx)
		if err != nil {
			return err
		}
		t.row(what.name, strconv.Itoa(count), figure(longest.Seconds()), strconv.Itoa(dead-before[0]), strconv.Itoa(moved-before[1]))
		say("alarms: %s, %d rounds: %d taken for dead", what.name, count, dead-before[0])
		all, bad, before = all+count, max(dead, moved), [2]int{dead, moved}
	}
	if err := h.notices(ctx, before[0]); err != nil {
		return err
	}
	s.note("%d groups of three servers, MariaDB 10.11 and MySQL 9.7 in turn, each with a writer; one risso serve --failover auto watches them. A round is one group's: all primaries have the same at a time, so that the machine is busier than by one. At the end a primary was killed, and that was told: the rounds were watched.", len(h.groups))
	s.Figures["rounds"], s.Figures["alarms"] = float64(all), float64(bad)
	s.below(fmt.Sprintf("false alarms in %d rounds", all), float64(bad), 1, "")
	return nil
}

// notices kills a primary: a controller that does not tell of that proves nothing by what it does not tell.
func (h *herd) notices(ctx context.Context, before int) error {
	p, err := h.primary(ctx, 0)
	if err != nil {
		return err
	}
	if err := p.Kill(syscall.SIGKILL); err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < time.Minute; {
		dead, _, err := h.alarms(ctx)
		if err != nil || dead > before {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	return errors.New("risso serve did not tell of a primary that was killed: its silence proves nothing")
}

// load lets a writer write to each primary until stop is called.
func (h *herd) load(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	stop = func() { cancel(); all.Wait() }
	for _, sb := range h.boxes {
		db, err := sb.Primary().DB()
		if err != nil {
			return stop, err
		}
		if _, err := db.ExecContext(ctx, "CREATE TABLE test.written (id INT AUTO_INCREMENT PRIMARY KEY)"); err != nil {
			db.Close()
			return stop, err
		}
		all.Go(func() { write(ctx, db) })
	}
	return stop, nil
}

// write inserts rows until ctx ends. What fails is tried again: the server is disturbed on purpose.
func write(ctx context.Context, db *sql.DB) {
	defer db.Close()
	for ctx.Err() == nil {
		_, _ = db.ExecContext(ctx, "INSERT INTO test.written VALUES (NULL)")
		_ = pause(ctx, 50*time.Millisecond)
	}
}

// manyGroups measures the processor time of one risso serve that watches many groups.
func (b *bench) manyGroups(ctx context.Context, s *section) error {
	boxes, groups := 4, herdGroups
	if b.quick {
		boxes, groups = 2, 20
	}
	h, err := b.newHerd(ctx, "many", slices.Repeat([]string{"mysql-9.7"}, boxes), 0)
	defer h.close(ctx)
	if err != nil {
		return err
	}
	var gates []net.Listener
	defer func() {
		for _, g := range gates {
			_ = g.Close()
		}
	}()
	t := s.table("one risso serve --failover auto", "groups", "members", "members are", "cores", "resident, MB")
	measured := func(what string, args ...string) (float64, error) {
		if err := h.watch(ctx, args...); err != nil {
			return 0, err
		}
		defer func() { h.serve.stop(); h.serve = nil }()
		say("many: all are watched")
		if err := pause(ctx, b.window/6); err != nil {
			return 0, err
		}
		used, err := cores(ctx, b.window, h.serve.pid())
		if err != nil {
			return 0, err
		}
		memory, err := resident(h.serve.pid())
		if err != nil {
			return 0, err
		}
		t.row(strconv.Itoa(len(h.groups)), strconv.Itoa(3*len(h.groups)), what, figure(used[0]), figure(memory/1e6))
		return used[0], nil
	}
	for i := range groups {
		if err := b.one(ctx, h, i, &gates); err != nil {
			return err
		}
		if i+1 == min(herdRead, groups) {
			read, err := measured("read each second")
			if err != nil {
				return err
			}
			s.Figures["cores_read"], s.Figures["groups_read"] = read, float64(i+1)
		}
		if (i+1)%10 == 0 {
			say("many: %d groups", i+1)
		}
	}
	used, err := measured("only failed over (--no-members)", "--no-members")
	if err != nil {
		return err
	}
	s.Figures["groups"], s.Figures["cores"] = float64(groups), used
	s.note("%d real servers take the place of %d, which do not fit into this machine's memory: each stands in %d groups, at an address of its own in each (127.77.N.1, passed on to the server by this benchmark). So risso serve has as many connections, and asks and gets as much, as with %d servers; only its own processor time counts.",
		3*boxes, 3*groups, groups/boxes, 3*groups)
	if groups < herdGroups {
		s.note("Not %d groups: to see that it works.", herdGroups)
	}
	s.below(fmt.Sprintf("%d groups, watched for failover", groups), used, herdCores, " cores")
	return nil
}

// one makes the group of a number, at an address of its own.
func (b *bench) one(ctx context.Context, h *herd, i int, gates *[]net.Listener) error {
	sb, host := h.boxes[i%len(h.boxes)], fmt.Sprintf("127.77.%d.1", i/len(h.boxes)+1)
	for _, n := range sb.Nodes {
		g, err := gate(net.JoinHostPort(host, strconv.Itoa(n.Port)), fmt.Sprintf("127.0.0.1:%d", n.Port))
		if err != nil {
			return err
		}
		*gates = append(*gates, g)
	}
	return h.group(ctx, fmt.Sprintf("g%d", i), sb, host, "--manual") // else those that share servers would point them at their own addresses, in turns
}

// gate passes connections on.
func gate(at, to string) (net.Listener, error) {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, err
	}
	go func() { // ends with l
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go pass(in, to)
		}
	}()
	return l, nil
}

// pass copies between a client and a server until one of them ends.
func pass(in net.Conn, to string) {
	defer in.Close()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	go func() {
		_, _ = io.Copy(out, in)
		out.Close()
	}()
	_, _ = io.Copy(in, out)
}

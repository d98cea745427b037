package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// The load and the goals. Published for pyclustercheck: 500 answers a second, outliers of 70 s, 470 time-outs under 500 clients.
const (
	healthClients = 500
	healthRate    = 20000
	healthLatest  = 0.1 // seconds
)

// healthRequest is what HAProxy's option httpchk sends.
const healthRequest = "OPTIONS / HTTP/1.0\r\n\r\n"

// health asks risso health and clustercheck under xinetd about the same node of Galera, by the same load.
func (b *bench) health(ctx context.Context, s *section) error {
	dir, err := os.MkdirTemp("", "rb-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	say("health: starting a node of Galera")
	box, err := sandbox.Up(ctx, sandbox.Options{Name: "b", Dir: dir, Servers: []string{"mariadb"}, Topology: sandbox.TopologyGalera, Replicas: 1})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := box.Down(ctx); err != nil {
			say("health: %v", err)
		}
	}()
	n := box.Primary()
	long := 20 * time.Second
	if b.quick {
		long = 5 * time.Second
	}
	p, address, err := b.healthProcess(ctx, n)
	if err != nil {
		return err
	}
	defer p.stop()
	before, err := cpuTime(p.pid())
	if err != nil {
		return err
	}
	say("health: %d clients ask risso health for %s", healthClients, long)
	ours, err := askAll(address, healthRequest, healthClients, long)
	if err != nil {
		return err
	}
	after, err := cpuTime(p.pid())
	if err != nil {
		return err
	}
	perSecond := float64(ours.Answers+ours.Others) / (after - before).Seconds()
	t := s.table(fmt.Sprintf("%d clients, a connection each, as fast as they are answered, for %s", healthClients, long), "program", "answers/s", "200", "503", "timed out", "broken", "half within", "99 % within", "slowest")
	row := func(name string, c balanced) {
		t.row(name, figure(c.Rate), fmt.Sprint(c.Answers), fmt.Sprint(c.Others), fmt.Sprint(c.TimedOut), fmt.Sprint(c.Failed), c.P50.String(), c.P99.String(), c.Max.String())
	}
	row("risso health", ours)
	dead, err := b.healthTruth(ctx, n, address)
	if err != nil {
		return err
	}
	s.Figures["answers_s"], s.Figures["answers_cpu_s"], s.Figures["slowest_s"], s.Figures["hang_s"] = ours.Rate, perSecond, ours.Max.Seconds(), dead.Seconds()
	s.note("Clients and risso have the machine's processors in common: what its clients take, and others beside, answers do not get. An answer's own processor time says what a core gives.")
	if err := b.clustercheck(ctx, s, n, long, row); err != nil {
		return err
	}
	s.atLeast("answers a second of risso health's processor time", perSecond, healthRate, "")
	s.atLeast("answers a second by the clock", ours.Rate, healthRate, "")
	s.below("requests timed out or broken", float64(ours.TimedOut+ours.Failed), 1, "")
	s.below("slowest answer", ours.Max.Seconds(), healthLatest, "s")
	s.below("from a hang to the first 503", dead.Seconds(), 1, "s")
	return nil
}

// healthProcess starts risso health with one processor of Go's.
func (b *bench) healthProcess(ctx context.Context, n *sandbox.Node) (*process, netip.AddrPort, error) {
	at, err := freePort()
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	p, err := b.launch("health", []string{"GOMAXPROCS=1"}, b.risso, "health", "--dsn", n.DSN, "--listen", at)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	address := netip.MustParseAddrPort(at)
	if err := p.await(ctx, time.Minute, func() bool { return healthStatus(address) == 200 }); err != nil {
		p.stop()
		return nil, netip.AddrPort{}, err
	}
	return p, address, nil
}

// healthStatus is the status of one answer; 0: there was none.
func healthStatus(address netip.AddrPort) int {
	c, err := askAll(address, healthRequest, 1, 20*time.Millisecond)
	switch {
	case err != nil || c.Answers+c.Others == 0:
		return 0
	case c.Others > 0:
		return 503
	}
	return 200
}

// healthTruth freezes the server and returns how long answers were 200 after that.
func (b *bench) healthTruth(ctx context.Context, n *sandbox.Node, address netip.AddrPort) (time.Duration, error) {
	if err := n.Kill(syscall.SIGSTOP); err != nil {
		return 0, err
	}
	begin := time.Now()
	defer n.Kill(syscall.SIGCONT)
	for healthStatus(address) != 503 {
		if time.Since(begin) > 30*time.Second {
			return 0, fmt.Errorf("risso health says 200 of a server that hangs for 30 s")
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return 0, err
		}
	}
	return time.Since(begin), nil
}

// clustercheck runs the script that the environment variable CLUSTERCHECK names, from a public repository of Percona, under xinetd: no package has it.
func (b *bench) clustercheck(ctx context.Context, s *section, n *sandbox.Node, long time.Duration, row func(string, balanced)) error {
	script, xinetd := os.Getenv("CLUSTERCHECK"), "/usr/sbin/xinetd"
	if script == "" {
		s.note("clustercheck is missing here: set CLUSTERCHECK to the path of its script.")
		return nil
	}
	if _, err := os.Stat(xinetd); err != nil {
		s.note("xinetd is not installed, so clustercheck is missing here.")
		return nil
	}
	at, err := freePort()
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(at, ":")
	// The script's client is called mysql. One version of it takes the server from an option file in the environment, another from its sixth argument.
	bin := filepath.Join(b.work, "ccbin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return err
	}
	client, err := exec.LookPath("mariadb")
	if err != nil {
		return err
	}
	if err := os.Symlink(client, filepath.Join(bin, "mysql")); err != nil && !os.IsExist(err) {
		return err
	}
	options := filepath.Join(b.work, "cc.cnf")
	if err := os.WriteFile(options, []byte("[client]\nuser=root\nsocket="+n.Socket+"\n"), 0o600); err != nil {
		return err
	}
	wrapper := filepath.Join(bin, "check")
	if err := os.WriteFile(wrapper, []byte("#!/bin/sh\nexport MYSQL_USERNAME=root MYSQL_PASSWORD= DEFAULTS_EXTRA_FILE="+options+" PATH="+bin+":$PATH\nexec /bin/bash "+script+" root '' 0 /dev/null 1 "+options+"\n"), 0o700); err != nil {
		return err
	}
	config := filepath.Join(b.work, "xinetd.conf")
	text := "service mysqlchk\n{\n disable = no\n type = UNLISTED\n flags = REUSE\n socket_type = stream\n protocol = tcp\n port = " + port +
		"\n bind = 127.0.0.1\n wait = no\n user = root\n server = " + wrapper + "\n per_source = UNLIMITED\n instances = UNLIMITED\n cps = 100000 1\n}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	p, err := b.launch("xinetd", nil, xinetd, "-dontfork", "-stayalive", "-pidfile", filepath.Join(b.work, "xinetd.pid"), "-f", config)
	if err != nil {
		return err
	}
	defer p.stop()
	address := netip.MustParseAddrPort(at)
	if err := p.await(ctx, time.Minute, func() bool {
		c, err := askAll(address, healthRequest, 1, time.Second)
		return err == nil && c.Answers+c.Others > 0
	}); err != nil {
		return fmt.Errorf("xinetd with clustercheck: %w: %s", err, strings.TrimSpace(p.tail()))
	}
	say("health: %d clients ask clustercheck for %s", healthClients, long)
	theirs, err := askAll(address, healthRequest, healthClients, long)
	if err != nil {
		return err
	}
	row("clustercheck under xinetd", theirs)
	s.Figures["clustercheck_s"] = theirs.Rate
	if theirs.Others > theirs.Answers {
		s.note("Most of clustercheck's answers are 503: under this load its client does not get its answer in time, or the script asks for what this server does not have.")
	}
	return nil
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// notRun are printed lines that cannot be run here, and why.
var notRun = []struct{ pattern, why string }{
	{`s3:|sftp://|clickhouse://|postgres://`, "a store or server that a scenario of its own starts"},
	{`age1…|--identity|--encrypt-to`, "a key that the reader makes"},
	{`backup accept|--gtid|--before|--after|--skip|--backup 2|show --from \S+ 2|--remove|--at |--to-time '2026|--start|--server db1`, "a name that only the reader's own server or place has"},
	{`mysql-5\.7|mysql-8\.0|galera|~/src|--physical|--datadir|clone`, "another server than the one here"},
	{`tpcc|ontime|matrix|compare|scale|replay|--failover|schemas`, "a benchmark longer than a test may take: its own scenario runs it"},
	{`bench report|\.json|binlog\.0000|--file|mysql-bin\.|slow\.log\.|\.log\b|\.sql|epyc|sweep`, "a file of the reader's"},
	{`4711|--connection|--latest|restore --dsn`, "a connection that is just doing something"},
	{`/etc/|/usr/local|fpath|bash_completion|:8306|--listen`, "a place of the whole machine"},
	{`\| *dot |mysql shop`, "a program that is not Risso's"},
	{`--record|http://`, "another risso serve"},
	{`^risso (alert|events?|incident|topology --url)\b`, "a risso serve in which something rings: tests/scenario runs them"},
	{`^risso advise (--kept|accept|postpone|silence|undo)`, "a risso serve that keeps the finding: TestJSONAnswers runs them"},
	{`^risso check [^b]`, "a risso serve, or its exit code says how the machine is: tests/scenario runs them"},
	{`--fail-on `, "its exit code says how the server is set"},
	{`status_2|customer_status|advise prove`, "an index or a finding that only the reader's own server has"},
	{`^risso gtid (errant|where|repair|back)`, "its exit code says what is errant: the command's own test runs them"},
	{`(replica|source|executed)\.txt|words\.txt|accounts rotate|diff .*--since`, "a file, an account or a risso serve of the reader's"},
	{`semisync (on|off) .*--yes`, "writes wait from then on: TestTurn carries it out"},
	{`words\.txt|accounts rotate|diff .*--since`, "a file, an account or a risso serve of the reader's"},
	{`^risso (controller|state) `, "a machine of its own, and what the reader has in the data folder: tests/scenario runs them"},
	{`--reach`, "addresses that only the reader's network has"},
	{`^risso user |token create .*--user|audit actions --who`, "a user of the reader's, and a password: TestAccess runs them"},
	{`^risso (group|switchover|failover|receipt)\b`, "a group of three servers: TestFailoverByHand and TestJSONAnswers run them"},
	{`^risso shard `, "two groups of servers: TestShard runs them"},
	{`^risso chaos`, "minutes of faults, or a group that may be broken: the command's own test runs it"},
	{`…`, "an ellipsis"},
	{`^risso publish `, "a risso serve that has groups: TestPublish runs them"},
	{`^risso route status`, "a risso route that runs: TestRouteStatus runs it"},
	{`risso agent `, "controllers of the reader's: TestAgentEnds runs it"},
	{`^risso replica `, "a third server, or a replica that stopped: TestReplica runs them"},
	{`^(\./)?risso (serve|top|sandbox|trace|drill|check backup --config|doctor|grants|size|topology)\b.*(--config|RISSO)`, "a config file of the reader's"},
}

// endless are commands that run until a signal.
var endless = regexp.MustCompile(`^risso (serve|top|route|binlog follow|sandbox load|health --dsn \S+ --max-lag)\b`)

// shorter makes of the reader's sizes and times what a test has room for.
var shorter = strings.NewReplacer("--table-size 250000", "--table-size 200", "--for 60s", "--for 300ms", "--for 1m", "--for 300ms", "--for 5m", "--for 300ms", "--for 2m", "--for 300ms",
	"--for 30s", "--for 300ms", "--warmup auto", "--warmup 0s", "--for 10s", "--for 1s", "--threads 64", "--threads 4", "--threads 16", "--threads 4")

// TestPrintedCommandsRun runs what README, docs and help print, as printed, on a separate machine: a network in which db1 is a
// primary, db2 its replica and spare an empty server, all at port 3306.
func TestPrintedCommandsRun(t *testing.T) {
	if os.Getenv("RISSO_PRINTED_INSIDE") == "" {
		enterNamespaces(t)
		return
	}
	inside := newPrintedMachine(t)
	seen, ran := map[string]bool{}, 0
	list := printedCommands(t)
	slices.SortStableFunc(list, func(a, b printed) int { return last(a) - last(b) })
lines:
	for _, p := range list {
		line := shorter.Replace(strings.ReplaceAll(p.shellLine(), "./risso ", "risso "))
		if line == "" || seen[line] {
			continue
		}
		seen[line] = true
		for _, n := range notRun {
			if regexp.MustCompile(n.pattern).MatchString(line) {
				continue lines
			}
		}
		ran++
		inside.run(t, p.where, line)
	}
	if ran < 60 {
		t.Errorf("only %d lines were run, want at least 60", ran)
	}
	t.Logf("%d of %d lines were run", ran, len(seen))
}

// last says how late a line has to come: a check wants a drill before it, and what ends a sandbox comes after all that use it.
func last(p printed) int {
	for i, part := range []string{"sandbox down --all", "sandbox down", "check backup", "risso restore"} {
		if strings.Contains(p.line, part) {
			return 9 - 2*i - strings.Count(p.line, "--dry-run") // a restore gets in the way of the next one
		}
	}
	return 0
}

// enterNamespaces runs the test again in its own namespaces.
func enterNamespaces(t *testing.T) {
	sandboxtest.Need(t, "mariadb")
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, for a network and a mount table of its own")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPrintedCommandsRun$", "-test.v", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), "RISSO_PRINTED_INSIDE=1")
	// Everything left running inside ends with the process that is number 1 there.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID}
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skipf("no namespaces here: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(lastLines(string(out), 4))
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// printedMachine is where the lines are run.
type printedMachine struct{ home, bin string }

func newPrintedMachine(t *testing.T) *printedMachine {
	t.Helper()
	m := &printedMachine{home: t.TempDir()}
	command(t, "mount", "--make-rprivate", "/")
	command(t, "mount", "-t", "proc", "proc", "/proc")
	command(t, "ip", "link", "set", "lo", "up")
	command(t, "ip", "address", "add", "10.0.0.2/32", "dev", "lo")
	m.bin = filepath.Join(m.home, "bin")
	if err := os.MkdirAll(m.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if built := os.Getenv("RISSO_BIN"); built != "" {
		if err := os.Symlink(built, filepath.Join(m.bin, "risso")); err != nil {
			t.Fatal(err)
		}
	} else {
		command(t, "go", "build", "-o", filepath.Join(m.bin, "risso"), "../../../cmd/risso")
	}
	settings := []string{"performance_schema=ON", "performance_schema_consumer_events_statements_current=ON"}
	pair := sandboxtest.Pair(t, "mariadb", settings...)
	spare, empty := sandboxtest.Up(t, "mariadb", settings...), sandboxtest.Up(t, "mariadb")
	db := openNode(t, pair.Nodes[0])
	for _, q := range []string{"CREATE DATABASE sbtest", "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, status INT, total INT, KEY (status))",
		"INSERT INTO shop.orders SELECT seq, seq % 7, seq FROM shop.seq_1_to_2000", "CREATE TABLE shop.sessions (id INT PRIMARY KEY)", "INSERT INTO shop.sessions VALUES (1)",
		"CREATE TABLE shop.stores (id INT PRIMARY KEY, name VARCHAR(40), place POINT, delivers POLYGON)"} {
		mustExec(t, db, q)
	}
	for _, n := range []*sandbox.Node{pair.Nodes[0], spare, empty} {
		admin := openNode(t, n)
		for _, user := range []string{"'risso'@'%' IDENTIFIED BY 'secret'", "'root'@'%'", "'repl'@'%'"} {
			mustExec(t, admin, "CREATE OR REPLACE USER "+user)
			name, _, _ := strings.Cut(user, " ")
			mustExec(t, admin, "GRANT ALL PRIVILEGES ON *.* TO "+name+" WITH GRANT OPTION")
		}
		mustExec(t, admin, "CREATE USER 'app'@'%' IDENTIFIED BY 'secret'") // a benchmark refuses a server on which it sees other data
		mustExec(t, admin, "GRANT ALL PRIVILEGES ON sbtest.* TO 'app'@'%'")
		mustExec(t, admin, "CREATE DATABASE IF NOT EXISTS sbtest")
	}
	m.hosts(t, map[string]*sandbox.Node{"127.0.0.11:3306": pair.Nodes[0], "10.0.0.2:3306": pair.Nodes[1], "127.0.0.13:3306": spare, "127.0.0.14:3306": empty})
	m.folders(t, map[string]string{"mysqld": pair.Nodes[0].Socket, "spare": spare.Socket, "empty": empty.Socket})
	return m
}

// hosts assigns the servers the addresses that the documents use.
func (m *printedMachine) hosts(t *testing.T, at map[string]*sandbox.Node) {
	t.Helper()
	for address, n := range at {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		go forward(ln, n.Socket)
	}
	hosts := filepath.Join(m.home, "hosts")
	text := "127.0.0.1 localhost\n127.0.0.11 db1 vip host old\n10.0.0.2 db2 new\n127.0.0.13 spare new-db\n127.0.0.14 empty\n"
	if err := os.WriteFile(hosts, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, "mount", "--bind", hosts, "/etc/hosts")
}

// forward hands connections on to a server's socket.
func forward(ln net.Listener, socket string) {
	for {
		in, err := ln.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("unix", socket)
		if err != nil {
			in.Close()
			continue
		}
		go func() { _, _ = io.Copy(out, in); out.Close(); in.Close() }()
		go func() { _, _ = io.Copy(in, out); out.Close(); in.Close() }()
	}
}

// folders makes those that the documents name, under a folder of the test: the rest of the machine is not to be touched.
func (m *printedMachine) folders(t *testing.T, sockets map[string]string) {
	t.Helper()
	for _, d := range []string{"var/lib/risso", "backups", ".config/fish/completions"} {
		if err := os.MkdirAll(filepath.Join(m.home, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, socket := range sockets {
		dir := filepath.Join(m.home, "run", name)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Symlink(socket, filepath.Join(dir, "mysqld.sock"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(m.home, ".my.cnf"), []byte("[client]\nuser=risso\npassword=secret\nsocket="+sockets["mysqld"]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.run(t, "a first backup", "risso backup --dsn 'risso@tcp(db1)/' --to /backups/db1")
	m.run(t, "its logs", "risso binlog follow --dsn 'repl@tcp(db1)/' --to /backups/db1 --once")
	m.run(t, "tables for benchmarks", "risso bench prepare read_write --dsn 'app:secret@tcp(db1:3306)/sbtest'")
	m.run(t, "a sandbox", "risso sandbox up mine --topology replication --replicas 1")
	t.Cleanup(func() { m.run(t, "its end", "risso sandbox down --all") })
}

func (m *printedMachine) run(t *testing.T, where, line string) {
	t.Helper()
	if strings.Contains(line, "--sandbox look") {
		defer m.run(t, where, "risso sandbox down look")
	}
	line = strings.TrimSuffix(line, " &") // it is ended below
	real := strings.NewReplacer("PLACE", "/backups/db1", "SECOND", "/backups/second").Replace(line)
	if strings.HasPrefix(line, "risso bench") { // a benchmark has a separate server
		real = strings.ReplaceAll(real, "unix(/run/mysqld/", "unix("+m.home+"/run/spare/")
	}
	if strings.HasPrefix(line, "risso restore") { // and a restore an empty one
		real = strings.NewReplacer("db2", "empty", "unix(/run/mysqld/", "unix("+m.home+"/run/empty/").Replace(real)
	}
	for _, path := range []string{"/run/mysqld", "/backups", "/var/lib/risso"} {
		real = regexp.MustCompile(`(^|[ ('=])`+path+`\b`).ReplaceAllString(real, "${1}"+m.home+path)
	}
	long := time.Duration(0)
	if endless.MatchString(line) {
		long = 3 * time.Second // enough to begin; it ends when it is stopped
	}
	out, err := m.shell(t, real, long)
	if err != nil && long > 0 && (strings.Contains(err.Error(), "signal: interrupt") || strings.Contains(out, "risso: interrupted")) { // it had not begun, on a machine that is busy
		out, err = m.shell(t, real, 10*long)
	}
	if err != nil {
		t.Errorf("%s: %s: %v: %s", where, line, err, lastLines(out, 8))
	}
}

// shell runs a line to its end, or, if long is not 0, interrupts it after that.
func (m *printedMachine) shell(t *testing.T, line string, long time.Duration) (said string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	sh := exec.CommandContext(ctx, "/bin/bash", "-c", "set -o pipefail\nexec "+line)
	if strings.ContainsAny(line, "|&;<>") {
		sh = exec.CommandContext(ctx, "/bin/bash", "-c", "set -o pipefail\n"+line)
	}
	sh.Dir = m.home
	sh.Env = []string{"HOME=" + m.home, "PATH=" + m.bin + ":" + os.Getenv("PATH"), "XDG_CACHE_HOME=" + cacheHome(), "LANG=C.UTF-8"}
	var out bytes.Buffer
	sh.Stdout, sh.Stderr, sh.WaitDelay = &out, &out, time.Second
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	if long > 0 {
		defer time.AfterFunc(long, func() { _ = sh.Process.Signal(os.Interrupt) }).Stop()
	}
	err = sh.Wait()
	return out.String(), err
}

// cacheHome is where script/setup put servers.
func cacheHome() string {
	if d := os.Getenv("XDG_CACHE_HOME"); d != "" {
		return d
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".cache")
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, fmt.Sprint(string(out)))
	}
}

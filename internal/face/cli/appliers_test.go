package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/avail/applier"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/face/cli/appliers"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// applierPair is a primary whose logs are studied, and its replica.
type applierPair struct {
	*testing.T
	primary, replica *sandbox.Node
	source, target   *mysql.Conn
}

const (
	applierSessions = 4
	applierEach     = 60   // transactions of a session
	applierRows     = 3    // of a transaction
	applierLong     = 3000 // of the long one
)

func newApplierPair(t *testing.T, spec string) applierPair {
	box := sandboxtest.Pair(t, spec)
	p := applierPair{T: t, primary: box.Nodes[0], replica: box.Nodes[1]}
	p.source, p.target = sandboxtest.Connect(t, p.primary), sandboxtest.Connect(t, p.replica)
	p.run(p.source, "CREATE DATABASE shop", "CREATE TABLE shop.items (id INT PRIMARY KEY, n INT NOT NULL)", "CREATE TABLE shop.counter (id INT PRIMARY KEY, n INT NOT NULL)",
		"CREATE TABLE shop.big (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL)", "INSERT INTO shop.counter VALUES (1, 0)")
	var rows []string
	for i := range applierLong {
		rows = append(rows, fmt.Sprintf("(%d, 0)", i))
	}
	p.run(p.source, "INSERT INTO shop.items VALUES "+strings.Join(rows, ", "))
	return p
}

func (p applierPair) run(c *mysql.Conn, statements ...string) {
	p.Helper()
	for _, s := range statements {
		if err := c.Exec(p.Context(), s); err != nil {
			p.Fatalf("%s: %v", s, err)
		}
	}
}

func (p applierPair) value(c *mysql.Conn, variable string) string {
	p.Helper()
	v, err := c.Text(p.Context(), "SELECT @@GLOBAL."+variable)
	if err != nil {
		p.Fatal(err)
	}
	return v
}

// load changes rows in several sessions at the same time, each its own, and before them what extra says, and returns the log that has it.
func (p applierPair) load(extra func(session, i int) string) (log string) {
	p.Helper()
	p.run(p.source, "FLUSH BINARY LOGS")
	log, _ = sandboxtest.LogPosition(p, p.source)
	var g errgroup.Group
	for s := range applierSessions {
		c := sandboxtest.Connect(p, p.primary)
		g.Go(func() error {
			for i := range applierEach {
				from := s*applierEach*applierRows + i*applierRows
				list := []string{"BEGIN", fmt.Sprintf("UPDATE shop.items SET n = n + 1 WHERE id BETWEEN %d AND %d", from, from+applierRows-1), "COMMIT"}
				if first := extra(s, i); first != "" {
					list = slices.Insert(list, 1, first)
				}
				for _, x := range list {
					if err := c.Exec(p.Context(), x); err != nil {
						return fmt.Errorf("%s: %w", x, err)
					}
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		p.Fatal(err)
	}
	p.run(p.source, "FLUSH BINARY LOGS")
	return filepath.Join(p.primary.Datadir, log)
}

// apart is nothing in addition.
func apart(int, int) string { return "" }

// study is what the command says of a log; the primary tells it the keys.
func (p applierPair) study(log string) (a appliers.Answer) {
	p.Helper()
	if err := json.Unmarshal([]byte(mustRun(p.T, "appliers", log, "--dsn", p.primary.DSN, "-o", "json")), &a); err != nil {
		p.Fatal(err)
	}
	if want := int64(applierSessions * applierEach); a.Transactions != want || a.Incomplete || len(a.Guessed) > 0 || len(a.Notes) > 0 {
		p.Errorf("%s: got %d transactions, incomplete %v, keys guessed %v, %v; want all of %d", filepath.Base(log), a.Transactions, a.Incomplete, a.Guessed, a.Notes, want)
	}
	return a
}

// level waits until the replica has all.
func (p applierPair) level() {
	p.Helper()
	want, err := mysql.LoggedGTIDs(p.Context(), p.source)
	if err != nil {
		p.Fatal(err)
	}
	await.Until(p, func() bool {
		have, err := mysql.ExecutedGTIDs(p.Context(), p.target)
		return err == nil && have.ContainsSet(want)
	}, "the replica has not applied %s", want)
}

// TestLogTwice: a log that is named twice, also by a link, is wrong use: it would count twice.
func TestLogTwice(t *testing.T) {
	log := filepath.Join(t.TempDir(), "binlog.000001")
	if err := os.WriteFile(log, []byte("\xfebin"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "binlog.000002")
	if err := os.Symlink(log, link); err != nil {
		t.Fatal(err)
	}
	for _, again := range []string{log, link} {
		for _, command := range [][]string{{"appliers"}, {"binlog", "search"}} {
			if code, _, errs := call(t, append(command, log, again)...); code != 2 || !strings.Contains(errs, "the same file") {
				t.Errorf("%v with %s twice: got %d %s; want wrong use", command, again, code, errs)
			}
		}
	}
}

// TestAppliers: on pairs of all servers, what is said of logs whose course is known is true, what is advised can be done, and does what was
// said it would.
func TestAppliers(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			p := newApplierPair(t, spec)
			p.free()
			p.hot()
			p.long()
			p.onReplica()
			p.damaged()
			p.watched()
			p.few()
		})
	}
}

// free: transactions that share no row. Where the log does not let them run at the same time, what is advised makes the source write one that
// does, with the gain that was said.
func (p applierPair) free() {
	a := p.study(p.load(apart))
	if want := int64(applierSessions * applierEach * applierRows); a.Rows != want || a.Limits == nil {
		p.Errorf("got %d rows, want %d", a.Rows, want)
	}
	best := a.Main()
	if w, ok := a.Of(applier.WriteSet); ok {
		best = w
	}
	if got := best.At(applierSessions); got < 3.5 {
		p.Errorf("%s: got %v times on 4 workers, want nearly 4: %+v", best.Mode, got, a.Curves)
	}
	if advised := a.Advise(p.source.Server); len(advised) != len(a.Advice) {
		p.Errorf("the log says %d are advised, its server %d", len(a.Advice), len(advised))
	}
	statements := p.source.Server.TrackWriteSets()
	told := slices.ContainsFunc(a.Advice, func(x applier.Advice) bool { return x.Where == "source" && slices.Equal(x.Statements, statements) })
	if len(statements) > 0 && told != (best.At(applier.MostWorkers) > 1.25*a.Main().At(applier.MostWorkers)) {
		p.Errorf("write sets: advised %v, for %v instead of %v", told, best.Ceiling, a.Main().Ceiling)
	}
	if len(statements) > 0 {
		p.run(p.source, statements...)
		after := p.study(p.load(apart))
		if got, said := after.Main().At(applierSessions), best.At(applierSessions); got < 0.9*said {
			p.Errorf("with write sets: got %v times on 4 workers, as it was said %v: %+v", got, said, after.Main())
		}
	}
	if statements := p.source.Server.GroupCommits(); !p.source.Server.AlwaysWriteSets() {
		if len(statements) == 0 {
			p.Error("want a way to make commits wait for each other")
		}
		p.run(p.source, statements...)
		for _, s := range statements {
			name, value, _ := strings.Cut(strings.TrimPrefix(s, "SET GLOBAL "), " = ")
			if got := p.value(p.source, name); got != value {
				p.Errorf("%s: got %s", s, got)
			}
		}
		grouped := p.study(p.load(apart))
		if c, ok := grouped.Of(applier.Conservative); ok && c.At(applierSessions) <= 1.05 {
			p.Errorf("commits that wait for each other: got %+v, want groups", c)
		}
		for _, s := range statements {
			name, _, _ := strings.Cut(strings.TrimPrefix(s, "SET GLOBAL "), " = ")
			p.run(p.source, "SET GLOBAL "+name+" = DEFAULT")
		}
	}
}

// hot: every transaction changes the same row.
func (p applierPair) hot() {
	a := p.study(p.load(func(int, int) string { return "UPDATE shop.counter SET n = n + 1 WHERE id = 1" }))
	if len(a.Limits) == 0 {
		p.Fatalf("got no limit: %+v", a.Curves)
	}
	if l := a.Limits[0]; a.Main().Ceiling > 1.05 || a.Workers != 1 || l.Kind != applier.HotRow || l.Name != "id=1" || l.Table != "shop.counter" || l.Share < 0.9 {
		p.Errorf("got %v times, %d workers, %+v; want no gain, because of shop.counter", a.Main().Ceiling, a.Workers, l)
	}
	if len(a.Advice) == 0 || len(a.Advice[0].Statements) > 0 {
		p.Errorf("got %+v, want no setting", a.Advice)
	}
}

// long: one of the transactions is as long as a thousand others.
func (p applierPair) long() {
	log := p.load(func(session, i int) string {
		if session == 0 && i == applierEach/2 {
			return "INSERT INTO shop.big (n) SELECT n FROM shop.items"
		}
		return ""
	})
	a := p.study(log)
	if len(a.Limits) == 0 || a.Limits[0].Kind != applier.LongOne {
		p.Fatalf("got %+v, want the long transaction", a.Limits)
	}
	l := a.Limits[0]
	if l.Long.Rows != applierLong+applierRows || !slices.Contains(l.Long.Tables, "shop.big") || l.Share < 0.3 {
		p.Errorf("got %+v %+v, want %d rows of shop.big", l, l.Long, applierLong+applierRows)
	}
	out := mustRun(p.T, "binlog", "search", log, "--table", "shop.big", "--dsn", p.primary.DSN)
	if !strings.HasPrefix(out, l.Name+" ") {
		p.Errorf("got %s, which changed nothing of shop.big:\n%s", l.Name, out)
	}
}

// onReplica carries out what is advised for replicas.
func (p applierPair) onReplica() {
	server := p.target.Server
	p.run(p.target, server.ApplyWith(3, "optimistic")...)
	got := ""
	for _, v := range server.Appliers() {
		if x, err := p.target.Text(p.Context(), "SELECT @@GLOBAL."+v.Variable); err == nil {
			got = x
		}
	}
	if got != "3" {
		p.Errorf("got %s workers, want 3", got)
	}
	for _, s := range server.QueueForAppliers(1 << 20) {
		p.run(p.target, s)
		if got := p.value(p.target, "slave_parallel_max_queued"); got != strconv.Itoa(1<<20) {
			p.Errorf("%s: got %s", s, got)
		}
	}
	p.level()
}

// damaged: what was cut is said, also through compression, and columns that the log does not name are guessed at.
func (p applierPair) damaged() {
	setting := "log_bin_compress"
	if !p.source.Server.GTIDsByDomain() {
		setting = "binlog_transaction_compression"
	}
	if p.source.Exec(p.Context(), "SET GLOBAL "+setting+" = ON") == nil {
		a := p.study(p.load(apart))
		if want := int64(applierSessions * applierEach * applierRows); a.Rows != want || a.Main().At(applierSessions) < 3 {
			p.Errorf("compressed: got %d rows, %v times on 4 workers", a.Rows, a.Main().At(applierSessions))
		}
		p.run(p.source, "SET GLOBAL "+setting+" = OFF")
	}
	whole := p.load(apart)
	b, err := os.ReadFile(whole)
	if err != nil {
		p.Fatal(err)
	}
	dir := p.TempDir()
	cut, next := filepath.Join(dir, "binlog.000001"), filepath.Join(dir, "binlog.000002")
	if err := os.WriteFile(cut, b[:len(b)/2], 0o600); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(next, b, 0o600); err != nil {
		p.Fatal(err)
	}
	out := mustRun(p.T, "appliers", cut)
	if !strings.Contains(out, "note: binlog.000001: ") || !strings.Contains(out, "or was cut") || !strings.Contains(out, "first column was taken for it") {
		p.Errorf("a log that was cut: got\n%s", out)
	}
	if code, out, errs := call(p.T, "appliers", cut, next); code != 1 || !strings.Contains(out, "although another log follows") || !strings.Contains(errs, "not all of these logs") {
		p.Errorf("cut, and another follows: got %d %s\n%s", code, errs, out)
	}
	if code, _, errs := call(p.T, "appliers", whole, "--since", "2100-01-01"); code != 1 || !strings.Contains(errs, "no transactions") || !strings.Contains(errs, "--since") {
		p.Errorf("after the end: got %d %s", code, errs)
	}
	var recent appliers.Answer
	if err := json.Unmarshal([]byte(mustRun(p.T, "appliers", "--dsn", p.primary.DSN, "-o", "json")), &recent); err != nil {
		p.Fatal(err)
	}
	if recent.Logs < 5 || recent.Transactions < 5*applierSessions*applierEach {
		p.Errorf("from the server: got %d transactions in %d logs", recent.Transactions, recent.Logs)
	}
}

// few: an account that may not see the threads, or read the logs, is told which GRANT it lacks, and nothing else.
func (p applierPair) few() {
	p.run(p.source, "CREATE USER few@localhost IDENTIFIED BY 'Secret-1'", "GRANT "+p.source.Server.ReplicaPrivilege()+", "+p.source.Server.LogsPrivilege()+" ON *.* TO few@localhost")
	p.level()
	for _, c := range []struct {
		on          *sandbox.Node
		at          *mysql.Conn
		args, grant string
	}{
		{p.replica, p.target, "--live --for 1s", "GRANT "},
		{p.primary, p.source, "--since 1h", "REPLICATION SLAVE"},
	} {
		args := append([]string{"appliers", "--dsn", "few:Secret-1@unix(" + c.on.Socket + ")/"}, strings.Fields(c.args)...)
		code, out, errs := call(p.T, args...)
		if code != 1 || strings.Contains(out, "does not run") || strings.Contains(errs, "user and password") || !strings.Contains(errs, c.grant) {
			p.Errorf("%s: got %d %s\n%s; want the GRANT that it lacks", c.args, code, errs, out)
		}
		grant := "GRANT REPLICATION SLAVE ON *.* TO few@localhost"
		if i := strings.Index(errs, "GRANT "); i >= 0 {
			grant = strings.TrimRight(strings.TrimSpace(errs[i:]), ")")
		}
		p.run(c.at, grant)
		mustRun(p.T, args...)
	}
}

// watched looks at the replica's workers: at rest, behind, and stopped.
func (p applierPair) watched() {
	p.level()
	watch := func() (a appliers.LiveAnswer) {
		p.Helper()
		if err := json.Unmarshal([]byte(mustRun(p.T, "appliers", "--live", "--for", "1s", "--dsn", p.replica.DSN, "-o", "json")), &a); err != nil {
			p.Fatal(err)
		}
		return a
	}
	if a := watch(); a.Verdict != applier.KeepsUp || len(a.Workers) != 3 || a.Applied != 0 {
		p.Errorf("at rest: got %+v, want that it keeps up, with 3 workers", a)
	}
	stop, start := p.target.Server.ApplyWith(3, "optimistic")[0], p.target.Server.ApplyWith(3, "optimistic")
	p.run(p.target, stop)
	if a := watch(); a.Verdict != applier.Stopped {
		p.Errorf("stopped: got %+v", a)
	}
	// A worker waits for a lock of a session, and the others, or the one that gives out, for it.
	p.load(apart)
	holder := sandboxtest.Connect(p, p.replica)
	p.run(p.target, "SET GLOBAL "+p.target.Server.ReadOnlyVariable()+" = OFF")
	p.run(holder, "BEGIN", "SELECT * FROM shop.items WHERE id = 0 FOR UPDATE")
	p.run(p.target, start[len(start)-1])
	await.Until(p, func() bool { a := watch(); return a.Verdict != applier.KeepsUp && a.Verdict != applier.Stopped }, "a replica that waits for a row's lock keeps up")
	a := watch()
	if a.Oldest == nil || a.Oldest.Open < 1 {
		p.Errorf("behind a lock: got %+v, %+v; want the transaction that is open", a, a.Oldest)
	}
	p.run(holder, "COMMIT")
	p.level()
	out := mustRun(p.T, "appliers", "--live", "--for", "1s", "--dsn", p.replica.DSN)
	if !strings.Contains(out, "The replica keeps up") || !strings.Contains(out, "WORKER") {
		p.Errorf("as text: got\n%s", out)
	}
	if code, _, errs := call(p.T, "appliers", "--live", "--for", "1s", "--dsn", p.primary.DSN); code != 1 || !strings.Contains(errs, "does not replicate") {
		p.Errorf("of a primary: got %d %s", code, errs)
	}
}

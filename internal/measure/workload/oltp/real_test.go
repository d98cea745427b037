package oltp

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// server is one of the servers that sysbench and risso both work on.
type server struct {
	t        *testing.T
	kind     string
	target   drive.Target   // database sbtest
	theirs   drive.Target   // another database, with tables made by sysbench
	s        drive.Session  // on sbtest
	sysbench []string       // flags that lead sysbench there, without the database
	log      func() []entry // what the server was asked since the last call
}

// entry is one line of the server's log of statements.
type entry struct{ command, sql string }

// eachServer runs a test on a MariaDB, a MySQL 9.7 and a PostgreSQL.
func eachServer(t *testing.T, f func(s *server)) {
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		t.Run(kind, func(t *testing.T) { f(mysqlServer(t, kind)) })
	}
	t.Run("postgres", func(t *testing.T) { f(postgresServer(t)) })
}

func mysqlServer(t *testing.T, kind string) *server {
	t.Helper()
	at, err := mysql.ParseTarget(sandboxtest.Lend(t, kind).DSN)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, kind: kind, target: drive.ForMySQL(at.WithDatabase("sbtest")), theirs: drive.ForMySQL(at.WithDatabase("theirs"))}
	s.sysbench = []string{"--db-driver=mysql", "--mysql-user=root", "--mysql-socket=" + at.Socket(), "--mysql-db="}
	root := s.open(drive.ForMySQL(at))
	s.do(root, "CREATE DATABASE sbtest", "CREATE DATABASE theirs", "SET GLOBAL log_output='TABLE'", "TRUNCATE TABLE mysql.general_log", "SET GLOBAL general_log=ON")
	s.s = s.open(s.target)
	s.log = func() []entry {
		s.do(root, "SET GLOBAL general_log=OFF")
		rows := s.ask(root, "SELECT command_type, CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE command_type IN ('Prepare','Execute','Query') ORDER BY event_time, thread_id")
		s.do(root, "TRUNCATE TABLE mysql.general_log", "SET GLOBAL general_log=ON")
		var out []entry
		for _, r := range rows {
			out = append(out, entry{string(r[0].Text), strings.Replace(string(r[1].Text), "START TRANSACTION", "BEGIN", 1)})
		}
		return out
	}
	return s
}

func postgresServer(t *testing.T) *server {
	t.Helper()
	pg := sandboxtest.LendPostgres(t, "log_statement=all", "log_min_error_statement=panic")
	s := &server{t: t, kind: "postgres"}
	at := func(database string) drive.Target {
		target, err := drive.ForPostgres(pg.URL(database))
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	s.target, s.theirs = at("sbtest"), at("theirs")
	s.sysbench = []string{"--db-driver=pgsql", "--pgsql-user=postgres", "--pgsql-host=" + pg.Dir, "--pgsql-db="}
	root := s.open(at("postgres"))
	s.do(root, "CREATE DATABASE sbtest", "CREATE DATABASE theirs")
	s.s = s.open(s.target)
	before, err := os.Stat(pg.Log)
	if err != nil {
		t.Fatal(err)
	}
	read := int(before.Size())
	s.log = func() []entry {
		text, err := os.ReadFile(pg.Log)
		if err != nil {
			t.Fatal(err)
		}
		var out []entry
		for _, m := range regexp.MustCompile(`(?m)LOG:  (execute [^:]*|statement): (.*)$|DETAIL:  parameters: (.*)$`).FindAllStringSubmatch(strings.ReplaceAll(string(text[read:]), "\n\t", " "), -1) {
			if m[3] != "" {
				out[len(out)-1].sql = withParameters(out[len(out)-1].sql, m[3])
				continue
			}
			out = append(out, entry{map[bool]string{true: "Query", false: "Execute"}[m[1] == "statement"], strings.Replace(m[2], "START TRANSACTION", "BEGIN", 1)})
		}
		read = len(text)
		return out
	}
	return s
}

// withParameters puts PostgreSQL's list of parameters into a statement.
func withParameters(sql, list string) string {
	params := regexp.MustCompile(`\$(\d+) = ('[^']*')`).FindAllStringSubmatch(list, -1)
	for _, p := range slices.Backward(params) {
		value := p[2]
		if n := strings.Trim(value, "'"); !strings.Contains(n, "-") {
			value = n
		}
		sql = strings.ReplaceAll(sql, "$"+p[1], value)
	}
	return sql
}

func (s *server) open(target drive.Target) drive.Session {
	s.t.Helper()
	var stop drive.Stop
	c, err := target.Open(s.t.Context(), &stop)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.SetPatience(time.Minute)
	return c
}

func (s *server) do(c drive.Session, statements ...string) {
	s.t.Helper()
	for _, sql := range statements {
		if _, err := c.Exec(drive.Other, sql); err != nil {
			s.t.Fatalf("%s: %v", sql, err)
		}
	}
}

func (s *server) ask(c drive.Session, sql string) [][]drive.Value {
	s.t.Helper()
	rows, err := workload.Ask(c, sql)
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return rows
}

func (s *server) count(c drive.Session, sql string) int64 {
	s.t.Helper()
	return s.ask(c, sql)[0][0].Int
}

// bySysbench runs the real one.
func (s *server) bySysbench(database, script, command string, flags ...string) {
	s.t.Helper()
	args := append([]string{script}, s.sysbench...)
	args[len(args)-1] += database
	out, err := exec.CommandContext(s.t.Context(), "sysbench", append(append(args, flags...), command)...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "FATAL") {
		s.t.Fatalf("sysbench %s %s: %v\n%s", script, command, err, out)
	}
}

func needSysbench(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("sysbench"); err != nil {
		lack.Of(t, "sysbench is not installed: run script/setup")
	}
}

// params are the defaults with few rows.
func params(change func(p *workload.Params)) workload.Params {
	p := workload.Defaults()
	p.Tables, p.TableSize, p.Seed = 3, 1000, 1
	if change != nil {
		change(&p)
	}
	return p
}

func (s *server) workload(name string, p workload.Params) *oltp {
	s.t.Helper()
	w, err := New(name, p)
	if err != nil {
		s.t.Fatal(err)
	}
	return w.(*oltp)
}

func (s *server) prepare(name string, p workload.Params) {
	s.t.Helper()
	if err := s.workload(name, p).Prepare(s.t.Context(), workload.PrepareOptions{Target: s.target, Threads: 2}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) cleanup() {
	s.t.Helper()
	if err := s.workload("read_write", params(nil)).Cleanup(s.t.Context(), workload.PrepareOptions{Target: s.target, Threads: 2}); err != nil {
		s.t.Fatal(err)
	}
}

// run runs n transactions.
func (s *server) run(c drive.Session, name string, p workload.Params, n int) {
	s.t.Helper()
	client, err := s.workload(name, p).Client(c, 0, rand.New(rand.NewPCG(3, 4)))
	if err != nil {
		s.t.Fatal(err)
	}
	for range n {
		if err := client.Transaction(); err != nil {
			s.t.Fatalf("%s: %v", name, err)
		}
	}
}

var (
	between = regexp.MustCompile(`BETWEEN (\d+) AND (\d+)`)
	text    = regexp.MustCompile(`'(\d{11}(?:-\d{11})*)\s*'`)
	table   = regexp.MustCompile(`sbtest\d+`)
	number  = regexp.MustCompile(`-?\b\d+\b`)
	space   = regexp.MustCompile(`\s+`)
	command = regexp.MustCompile(`^(BEGIN|COMMIT|SELECT|INSERT|UPDATE|DELETE)\b`)
)

// shape is a statement without its values, but with the width of ranges and the length of texts.
func shape(sql string) string {
	sql = strings.TrimSpace(space.ReplaceAllString(sql, " "))
	sql = between.ReplaceAllStringFunc(sql, func(m string) string {
		v := between.FindStringSubmatch(m)
		from, _ := strconv.Atoi(v[1])
		to, _ := strconv.Atoi(v[2])
		return fmt.Sprintf("BETWEEN x AND x plus n%d", to-from)
	})
	sql = text.ReplaceAllStringFunc(sql, func(m string) string {
		return fmt.Sprintf("text of n%d", len(text.FindStringSubmatch(m)[1]))
	})
	return number.ReplaceAllString(table.ReplaceAllString(sql, "sbtestN"), "x")
}

// shapes are those of all executed statements of a workload in a log; prepared ones are marked.
func shapes(log []entry) []string {
	var out []string
	for _, e := range log {
		if sql := strings.TrimSpace(e.sql); e.command != "Prepare" && command.MatchString(sql) && (strings.Contains(sql, "sbtest") || len(sql) < 8) {
			out = append(out, e.command+" "+shape(sql))
		}
	}
	return out
}

// TestSameStatements has sysbench and risso run the same workloads, and compares what the server logged: the shapes of
// the statements, their order, and how they were sent.
func TestSameStatements(t *testing.T) {
	needSysbench(t)
	const events = 40
	small := []string{"--tables=3", "--table-size=1000", "--threads=1", "--time=0", "--events=" + strconv.Itoa(events)}
	cases := []struct {
		name, script string
		flags        []string
		change       func(p *workload.Params)
	}{
		{"read_only", "oltp_read_only", nil, nil},
		{"read_write", "oltp_read_write", nil, nil},
		{"write_only", "oltp_write_only", nil, nil},
		{"point_select", "oltp_point_select", nil, nil},
		{"update_index", "oltp_update_index", nil, nil},
		{"update_non_index", "oltp_update_non_index", nil, nil},
		{"insert", "oltp_insert", nil, nil},
		{"insert", "oltp_insert", []string{"--auto_inc=off"}, func(p *workload.Params) { p.NoAutoInc = true }},
		{"delete", "oltp_delete", nil, nil},
		{"select_random_points", "select_random_points", []string{"--tables=1"}, func(p *workload.Params) { p.Tables = 1 }},
		{"select_random_ranges", "select_random_ranges", []string{"--tables=1", "--delta=7"}, func(p *workload.Params) { p.Tables, p.Delta = 1, 7 }},
		{"read_write", "oltp_read_write", []string{"--skip_trx=on", "--range_size=7", "--point_selects=2", "--sum_ranges=3", "--index_updates=3", "--delete_inserts=2"}, func(p *workload.Params) {
			p.SkipTransactions, p.RangeSize, p.PointSelects, p.SumRanges, p.IndexUpdates, p.DeleteInserts = true, 7, 2, 3, 3, 2
		}},
		{"read_only", "oltp_read_only", []string{"--range_selects=off"}, func(p *workload.Params) { p.NoRangeSelects = true }},
		{"read_write", "oltp_read_write", []string{"--db-ps-mode=disable"}, func(p *workload.Params) { p.Unprepared = true }},
	}
	eachServer(t, func(s *server) {
		s.prepare("read_write", params(nil))
		for i, c := range cases {
			s.t.Run(fmt.Sprint(c.name, i), func(t *testing.T) {
				old := s.t
				s.t = t
				defer func() { s.t = old }()
				s.log()
				s.bySysbench("sbtest", c.script, "run", append(slices.Clone(small), c.flags...)...)
				theirs := s.log()
				s.run(s.s, c.name, params(c.change), events)
				ours := slices.DeleteFunc(s.log(), func(e entry) bool { // what Risso asks before it begins
					return strings.Contains(e.sql, "/* risso: ")
				})
				a, b := shapes(theirs), shapes(ours)
				if len(a) < events {
					t.Fatalf("sysbench's log has %d statements of %d events: %.500v", len(a), events, theirs)
				}
				if !slices.Equal(a, b) {
					for i := range min(len(a), len(b)) {
						if a[i] != b[i] {
							t.Fatalf("statement %d: sysbench, want b[i]\n%s\nrisso\n%s", i, a[i], b[i])
						}
					}
					t.Fatalf("sysbench ran %d statements, risso %d; want a %v", len(a), len(b), b)
				}
				samePrepared(t, theirs, ours)
				if c.name == "read_only" {
					oneTable(t, "sysbench", theirs)
					oneTable(t, "risso", ours)
				}
			})
		}
	})
}

// samePrepared compares the statements that were prepared, where the server logs that.
func samePrepared(t *testing.T, theirs, ours []entry) {
	t.Helper()
	list := func(log []entry) (out []string) {
		for _, e := range log {
			if sql := strings.TrimSpace(space.ReplaceAllString(e.sql, " ")); e.command == "Prepare" && sql != "BEGIN" {
				out = append(out, sql)
			}
		}
		slices.Sort(out)
		return out
	}
	if a, b := list(theirs), list(ours); !slices.Equal(a, b) {
		t.Errorf("sysbench prepared: want a %v\n%s\nrisso\n%s", b, strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
}

// oneTable holds that the point selects of a transaction are all on one table, and not always on the same.
func oneTable(t *testing.T, who string, log []entry) {
	t.Helper()
	seen, group := map[string]bool{}, ""
	for _, e := range log {
		switch sql := strings.TrimSpace(e.sql); {
		case sql == "BEGIN":
			group = ""
		case e.command != "Prepare" && strings.Contains(sql, " WHERE id="):
			name := table.FindString(sql)
			if group != "" && group != name {
				t.Fatalf("%s: a transaction selects from %s and %s", who, group, name)
			}
			group = name
			seen[name] = true
		}
	}
	if len(seen) != 3 {
		t.Errorf("%s: point selects of 40 transactions on %d tables of 3, want 3", who, len(seen))
	}
}

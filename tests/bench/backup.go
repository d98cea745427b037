package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

// dumper is a program that takes a logical backup into a folder.
type dumper struct {
	name string
	run  func(dir string) *exec.Cmd
}

// dumped is what it cost once.
type dumped struct {
	wall, client, server float64 // seconds; client and server of processor time
	memory, size         float64 // bytes
	lock                 float64 // seconds
	reads                float64 // pages that the server read from its disk
}

// backup compares logical backups of the same server, round by round.
func (b *bench) backup(ctx context.Context, s *section) error {
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(b.work, "sb"), Servers: []string{b.server}, Settings: []string{"log_bin=binlog", "innodb_buffer_pool_size=2G", "innodb_flush_log_at_trx_commit=0", "sync_binlog=0", "max_binlog_size=1G"}})
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	node := sb.Primary()
	say("backup: making %d MB of mixed tables", b.megabytes)
	rows, err := mixedTables(ctx, node, b.megabytes)
	if err != nil {
		return err
	}
	socket, threads := node.Socket, "2"
	mydumper := func(more ...string) func(string) *exec.Cmd {
		return func(dir string) *exec.Cmd {
			return exec.CommandContext(ctx, "mydumper", append([]string{"--no-schemas", "-u", "root", "-S", socket, "-B", "mix", "-t", threads, "-o", dir}, more...)...)
		}
	}
	risso := func(more ...string) func(string) *exec.Cmd {
		return func(dir string) *exec.Cmd {
			return exec.CommandContext(ctx, b.risso, append([]string{"backup", "--dsn", "root@unix(" + socket + ")/", "--to", dir, "--schema", "mix", "--threads", threads, "--output", "json"}, more...)...)
		}
	}
	tools := []dumper{
		{"risso, uncompressed", risso("--compress", "none")},
		{"mydumper", mydumper()},
		{"mydumper, and sync", func(dir string) *exec.Cmd { // as safe against a loss of power as Risso's, which syncs each chunk
			return exec.CommandContext(ctx, "bash", "-c", `mydumper --no-schemas -u root -S "$1" -B mix -t "$2" -o "$3" && sync "$3"/*`, "-", socket, threads, dir)
		}},
		{"risso", risso()},
		{"mydumper -c", mydumper("-c")},
		{"mysqldump | zstd -1", func(dir string) *exec.Cmd {
			return exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", `mysqldump --no-defaults -uroot -S "$1" --single-transaction mix | zstd -1 -T2 -q >"$2/dump.sql.zst"`, "-", socket, dir)
		}},
	}
	got := map[string][]dumped{}
	var raw float64
	for round := range b.rounds {
		for i := range tools {
			t := tools[(i+round)%len(tools)]
			say("backup: round %d, %s", round+1, t.name)
			before, err := pagesRead(ctx, node)
			if err != nil {
				return err
			}
			d, err := b.dumpOnce(ctx, t, node.PID, &raw)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			after, err := pagesRead(ctx, node)
			if err != nil {
				return err
			}
			d.reads = after - before
			got[t.name] = append(got[t.name], d)
		}
	}
	b.backupReport(s, tools, got, raw, float64(rows))
	return nil
}

// pagesRead is how many pages the server has read into its buffer pool.
func pagesRead(ctx context.Context, node *sandbox.Node) (float64, error) {
	res, err := node.Query(ctx, "SHOW GLOBAL STATUS LIKE 'Innodb_pages_read'")
	if err != nil {
		return 0, err
	}
	if len(res) == 0 || len(res[0].Rows) != 1 || res[0].Rows[0][1] == nil {
		return 0, errors.New("the server does not count the pages that it reads")
	}
	return strconv.ParseFloat(*res[0].Rows[0][1], 64)
}

// dumpOnce runs a tool into an empty folder.
func (b *bench) dumpOnce(ctx context.Context, t dumper, pid int, raw *float64) (d dumped, err error) {
	dir, err := os.MkdirTemp(b.work, "dump-")
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d, out, err := spend(t.run(dir), pid)
	if err != nil {
		return d, err
	}
	d.size, err = folderSize(dir)
	var result struct {
		Backup struct {
			Bytes float64 `json:"bytes"`
			Lock  float64 `json:"lock_seconds"`
		} `json:"backup"`
	}
	if strings.HasPrefix(t.name, "risso") {
		if err := json.Unmarshal(out, &result); err != nil {
			return d, err
		}
		*raw, d.lock = result.Backup.Bytes, result.Backup.Lock
	}
	return d, err
}

// spend runs a program and says what it and the server cost, and what the program said.
func spend(cmd *exec.Cmd, pid int) (d dumped, said []byte, err error) {
	before, err := cpuTime(pid)
	if err != nil {
		return d, nil, err
	}
	var out, trouble bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &trouble
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return d, nil, fmt.Errorf("%w: %.300s", err, trouble.String())
	}
	d.wall = time.Since(start).Seconds()
	after, err := cpuTime(pid)
	if err != nil {
		return d, nil, err
	}
	d.server = (after - before).Seconds()
	d.client = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		d.memory = float64(u.Maxrss) * 1024
	}
	return d, out.Bytes(), nil
}

func folderSize(dir string) (size float64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		st, err := e.Info()
		if err == nil {
			size += float64(st.Size())
		}
		return err
	})
	return size, err
}

func (b *bench) backupReport(s *section, tools []dumper, got map[string][]dumped, raw, rows float64) {
	pick := func(name string, f func(dumped) float64) float64 {
		var v []float64
		for _, d := range got[name] {
			v = append(v, f(d))
		}
		return median(v)
	}
	speed := func(d dumped) float64 { return raw / 1e6 / d.wall }
	perCPU := func(d dumped) float64 { return raw / 1e6 / (d.client + d.server) }
	server := func(d dumped) float64 { return d.server / rows * 1e6 }
	t := s.table(fmt.Sprintf("%s MB of rows, %s rows, %s, 2 sessions, medians of %d rounds in turns", figure(raw/1e6), figure(rows), b.server, b.rounds),
		"tool", "MB/s", "MB per processor second, server's included", "server, µs a row", "pages read", "client, s", "memory, MB", "written, MB")
	for _, tool := range tools {
		n := tool.name
		t.row(n, figure(pick(n, speed)), figure(pick(n, perCPU)), figure(pick(n, server)), figure(pick(n, func(d dumped) float64 { return d.reads })), figure(pick(n, func(d dumped) float64 { return d.client })),
			figure(pick(n, func(d dumped) float64 { return d.memory / 1e6 })), figure(pick(n, func(d dumped) float64 { return d.size / 1e6 })))
		key := strings.NewReplacer(" ", "_", ",", "", "|_", "", "-", "").Replace(n)
		s.Figures[key+"_mb_per_s"], s.Figures[key+"_mb_per_cpu_s"], s.Figures[key+"_server_us_per_row"] = pick(n, speed), pick(n, perCPU), pick(n, server)
	}
	ratio := func(a, b string, f func(dumped) float64) float64 { return pick(a, f) / pick(b, f) }
	s.atLeast("uncompressed, MB/s as a ratio to mydumper's", ratio("risso, uncompressed", "mydumper", speed), 1, "")
	s.atLeast("compressed, MB/s as a ratio to mydumper -c", ratio("risso", "mydumper -c", speed), 5, "")
	s.atLeast("compressed, MB/s as a ratio to mysqldump | zstd -1", ratio("risso", "mysqldump | zstd -1", speed), 2, "")
	s.note("mydumper leaves its files to the system's cache; Risso has synced all that it says is stored. Beside mydumper with a sync at the end: %s times.", figure(ratio("risso, uncompressed", "mydumper, and sync", speed)))
	s.below("server's processor time a row, as a ratio to mydumper's", ratio("risso", "mydumper", server), 1.0001, "")
	s.below("memory", pick("risso", func(d dumped) float64 { return d.memory / 1e6 }), 200, " MB")
	s.below("nobody could commit for", pick("risso", func(d dumped) float64 { return d.lock * 1000 }), 100, " ms")
	s.note("One of the tables has a DOUBLE and a FLOAT, which Risso reads as the eight bytes that they are, at less cost for the server: mydumper and mysqldump read text, and of a FLOAT six digits.")
}

// mixedTables makes schema mix: one table as sysbench has it, orders, documents, measurements, and 200 small ones.
func mixedTables(ctx context.Context, node *sandbox.Node, megabytes int) (rows int64, err error) {
	to, err := mysql.ParseTarget(node.DSN)
	if err != nil {
		return 0, err
	}
	s, err := to.ConnectStream(ctx, mysql.StreamOptions{})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	const numbers = "(SELECT a.d + b.d * 10 + c.d * 100 + d.d * 1000 AS n FROM ten a, ten b, ten c, ten d)"
	statements := []string{"SET SESSION sql_log_bin = 0", "CREATE DATABASE mix", "USE mix", "CREATE TABLE ten (d INT PRIMARY KEY)", "INSERT INTO ten VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
		"CREATE TABLE sbtest (id INT AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k))",
		"CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, placed DATETIME NOT NULL, total DECIMAL(12,2), state ENUM('new','paid','sent'), address VARCHAR(200), note TEXT, KEY (customer), KEY (placed))",
		"CREATE TABLE documents (id BINARY(16) PRIMARY KEY, body JSON, changed TIMESTAMP NOT NULL)",
		"CREATE TABLE measurements (sensor INT, at DATETIME(3), value DOUBLE, raw FLOAT, PRIMARY KEY (sensor, at))"}
	blocks := max(1, megabytes*1e6/(4*10000*400)*2)
	for i := range blocks {
		n := strconv.Itoa(i)
		statements = append(statements,
			"INSERT INTO sbtest (k, c, pad) SELECT FLOOR(RAND() * 1000000), CONCAT_WS('-', LPAD(FLOOR(RAND()*1e11),11,'0'), LPAD(FLOOR(RAND()*1e11),11,'0'), LPAD(FLOOR(RAND()*1e11),11,'0'), LPAD(FLOOR(RAND()*1e11),11,'0'), LPAD(FLOOR(RAND()*1e11),11,'0'), LPAD(FLOOR(RAND()*1e11),11,'0'), LPAD(FLOOR(RAND()*1e11),11,'0'), LPAD(FLOOR(RAND()*1e11),11,'0'), LPAD(FLOOR(RAND()*1e11),11,'0'), LPAD(FLOOR(RAND()*1e11),11,'0')), CONCAT_WS('-', LPAD(FLOOR(RAND()*1e11),11,'0'), LPAD(FLOOR(RAND()*1e11),11,'0'), LPAD(FLOOR(RAND()*1e11),11,'0'), LPAD(FLOOR(RAND()*1e11),11,'0'), LPAD(FLOOR(RAND()*1e11),11,'0')) FROM "+numbers+" x",
			"INSERT INTO orders (customer, placed, total, state, address, note) SELECT FLOOR(RAND() * 50000), '2024-01-01' + INTERVAL n + 10000 * "+n+" SECOND, RAND() * 1000, ELT(1 + n % 3, 'new', 'paid', 'sent'), CONCAT(n, ' Long Street, Some Town ', n % 100), IF(n % 4, NULL, REPEAT('leave it with the neighbours; ', 1 + n % 20)) FROM "+numbers+" x",
			"INSERT INTO documents SELECT UNHEX(LEFT(SHA2(CONCAT("+n+", '-', n), 256), 32)), JSON_OBJECT('number', n, 'title', CONCAT('Document ', n), 'tags', JSON_ARRAY('a', 'b', n % 7), 'text', REPEAT('lorem ipsum ', 1 + n % 40)), '2024-01-01' + INTERVAL n SECOND FROM "+numbers+" x",
			"INSERT INTO measurements SELECT n % 100, '2024-01-01' + INTERVAL (n DIV 100 + 100 * "+n+") SECOND, RAND() * 100, RAND() * 100 FROM "+numbers+" x")
	}
	for i := range 200 {
		statements = append(statements, fmt.Sprintf("CREATE TABLE small_%d (id INT PRIMARY KEY, name VARCHAR(50))", i), fmt.Sprintf("INSERT INTO small_%d SELECT d, 'name' FROM ten", i))
	}
	statements = append(statements, "ANALYZE TABLE sbtest, orders, documents, measurements")
	for _, q := range statements {
		if err := s.Exec(ctx, q); err != nil {
			return 0, fmt.Errorf("%.80s: %w", q, err)
		}
	}
	return int64(blocks)*40000 + 2010, nil
}

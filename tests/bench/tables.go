package main

import (
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

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

const (
	tablesEach = 65   // of a schema
	peersUpTo  = 30   // schemas: with 300 neither of the others finished in minutes
	tablesGoal = 600. // seconds for 10,000 schemas
)

// tables takes backups of a server of very many empty tables: 10,000 schemas of 65 are the goal.
func (b *bench) tables(ctx context.Context, s *section) error {
	socket, pid, end, err := b.manyTables(ctx)
	if err != nil {
		return err
	}
	defer end()
	count, err := countTables(ctx, socket)
	if err != nil {
		return err
	}
	place := filepath.Join(b.work, "place")
	risso := func(args ...string) func(string) *exec.Cmd {
		return func(string) *exec.Cmd {
			return exec.CommandContext(ctx, b.risso, append(args, "--output", "json")...)
		}
	}
	backup := risso("backup", "--dsn", "root@unix("+socket+")/", "--to", place, "--threads", "2")
	tools := []dumper{{"risso", backup}, {"risso, again", backup}, {"risso verify", risso("verify", "--from", place)}}
	if b.schemas <= peersUpTo && b.socket == "" {
		tools = append(tools,
			dumper{"mydumper", func(dir string) *exec.Cmd {
				return exec.CommandContext(ctx, "mydumper", "-u", "root", "-S", socket, "-x", "^tenant_", "-t", "2", "-o", dir)
			}},
			dumper{"mysqldump", func(dir string) *exec.Cmd {
				return exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", `mysqldump --no-defaults -uroot -S "$1" --single-transaction --all-databases >"$2/dump.sql"`, "-", socket, dir)
			}})
	}
	t := s.table(fmt.Sprintf("%s empty tables in %s schemas, %s, 2 sessions, once", figure(count), figure(count/tablesEach), b.server),
		"tool", "seconds", "ms a table", "client, ms of processor a table", "server, ms of processor a table", "memory, MB", "files")
	for _, tool := range tools {
		say("tables: %s", tool.name)
		dir := filepath.Join(b.work, "peer")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		d, said, err := spend(tool.run(dir), pid)
		if err != nil {
			return fmt.Errorf("%s: %w", tool.name, err)
		}
		if strings.HasPrefix(tool.name, "risso") {
			dir = place
		}
		files, err := countFiles(dir)
		if err != nil {
			return err
		}
		t.row(tool.name, figure(d.wall), figure(d.wall/count*1000), figure(d.client/count*1000), figure(d.server/count*1000), figure(d.memory/1e6), figure(files))
		key := strings.NewReplacer(" ", "_", ",", "").Replace(tool.name)
		s.Figures[key+"_ms_per_table"], s.Figures[key+"_client_ms"], s.Figures[key+"_server_ms"], s.Figures[key+"_memory"] = d.wall/count*1000, d.client/count*1000, d.server/count*1000, d.memory
		if dir != place {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			continue
		}
		s.below(tool.name+": memory", d.memory/1e6, 200, " MB")
		if tool.name != "risso verify" {
			s.below(tool.name+": a table", d.wall/count*1000, tablesGoal*1000/10000/tablesEach, " ms")
			if err := sameTables(said, count); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameTables sees that a backup has all tables.
func sameTables(said []byte, count float64) error {
	var result struct {
		Backup struct {
			Tables float64 `json:"tables"`
		} `json:"backup"`
	}
	if err := json.Unmarshal(said, &result); err != nil {
		return err
	}
	if result.Backup.Tables != count {
		return fmt.Errorf("the backup has %v tables, the server %v", result.Backup.Tables, count)
	}
	return nil
}

// manyTables returns a server that has them, and what ends it.
func (b *bench) manyTables(ctx context.Context) (socket string, pid int, end func(), err error) {
	if b.socket != "" {
		pid, err = pidOf(ctx, b.socket)
		return b.socket, pid, func() {}, err
	}
	o := sandbox.Options{Dir: filepath.Join(b.work, "sb"), Servers: []string{b.server}, Settings: []string{
		"innodb_file_per_table=OFF", "innodb_doublewrite=OFF", "innodb_flush_log_at_trx_commit=0", "sync_binlog=0", "innodb_buffer_pool_size=512M"}}
	if b.server == "mariadb" { // a table is a page of the common file: small pages spare disk
		const small = "innodb_page_size=4k"
		o.Data = func(ctx context.Context, dir string) ([]string, error) {
			out, err := exec.CommandContext(ctx, "mariadb-install-db", "--no-defaults", "--datadir="+dir, "--auth-root-authentication-method=normal", "--skip-test-db", "--"+small).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("mariadb-install-db: %w: %.300s", err, out)
			}
			return []string{small, "debug_no_sync=ON"}, err
		}
	}
	sb, err := sandbox.Up(ctx, o)
	if err != nil {
		return "", 0, nil, err
	}
	say("tables: making %d schemas of %d tables", b.schemas, tablesEach)
	if err := makeTables(ctx, sb.Primary().DSN, b.schemas); err != nil {
		down(ctx, sb)
		return "", 0, nil, err
	}
	return sb.Primary().Socket, sb.Primary().PID, func() { down(ctx, sb) }, nil
}

// makeTables makes schemas of empty tables with two sessions.
func makeTables(ctx context.Context, dsn string, schemas int) error {
	const sessions = 2
	to, err := mysql.ParseTarget(dsn)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for from := range sessions {
		g.Go(func() error {
			st, err := to.ConnectStream(ctx, mysql.StreamOptions{})
			if err != nil {
				return err
			}
			defer st.Close()
			statements := []string{"SET SESSION sql_log_bin = 0"}
			for i := from; i < schemas; i += sessions {
				name := fmt.Sprintf("tenant_%05d", i)
				statements = append(statements, "CREATE DATABASE "+name, "USE "+name)
				for n := range tablesEach {
					key := ""
					if n%5 == 0 {
						key = ", KEY (customer)"
					}
					statements = append(statements, fmt.Sprintf("CREATE TABLE t_%02d (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, name VARCHAR(100) NOT NULL DEFAULT '', price DECIMAL(12,2), "+
						"state ENUM('new','paid','sent'), note TEXT, made DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP%s) COMMENT='of a tenant'", n, key))
				}
				for _, q := range statements {
					if err := st.Exec(ctx, q); err != nil {
						return fmt.Errorf("%.80s: %w", q, err)
					}
				}
				statements = statements[:0]
			}
			return nil
		})
	}
	return g.Wait()
}

// askSocket returns a single value.
func askSocket(ctx context.Context, socket, query string) (value string, err error) {
	to, err := mysql.ParseTarget("root@unix(" + socket + ")/")
	if err != nil {
		return "", err
	}
	st, err := to.ConnectStream(ctx, mysql.StreamOptions{})
	if err != nil {
		return "", err
	}
	defer st.Close()
	err = st.Query(ctx, query, func(row [][]byte) error { value = string(row[0]); return nil })
	return value, err
}

func countTables(ctx context.Context, socket string) (float64, error) {
	n, err := askSocket(ctx, socket, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(n, 64)
}

// pidOf is the process of a server of this machine.
func pidOf(ctx context.Context, socket string) (int, error) {
	name, err := askSocket(ctx, socket, "SELECT @@pid_file")
	if err != nil {
		return 0, err
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

func countFiles(dir string) (n float64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return n, err
}

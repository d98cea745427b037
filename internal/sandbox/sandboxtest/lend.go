package sandboxtest

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
)

// shelf holds the servers of a test program that wait for the next test.
var shelf struct {
	mu   sync.Mutex
	open bool // Main runs the tests, and ends the servers here
	free map[string][]lendable
}

// lendable is a server that one test after another has.
type lendable interface {
	clean() error // makes it as it was before the test
	down() error
}

// lent is a MySQL or MariaDB.
type lent struct {
	box       *sandbox.Sandbox
	dir       string
	process   int
	users     []string
	variables map[string]string
	watched   map[string]string // what performance_schema looks at
}

// Main runs a package's tests, which may borrow servers, and ends those servers: func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }.
func Main(m *testing.M) int {
	shelf.open, shelf.free = true, map[string][]lendable{}
	code := m.Run()
	for _, list := range shelf.free {
		for _, l := range list {
			if err := l.down(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	return code
}

// Parallel lets so many tests of a package run at the same time, unless the command says how many: those that wait for time to pass most of the
// time may be more than there are processors. It is called by TestMain, and reads the flags.
func Parallel(n int) error {
	flag.Parse()
	f := flag.Lookup("test.parallel")
	if f.Value.String() != f.DefValue {
		return nil
	}
	return f.Value.Set(strconv.Itoa(n))
}

// Lend lends a test a server for itself until it ends, and that another test of the package may have had before: what
// that one made is gone, schemas, accounts, global variables and what performance_schema noted of statements, but not the rest that the
// server counts and logs. To start a server takes seconds of a processor; tests that need a fresh one, or break it, call Up. A server
// whose test fails is not lent again.
func Lend(t testing.TB, spec string, settings ...string) *sandbox.Node {
	t.Helper()
	Need(t, spec)
	key := strings.Join(append([]string{spec}, settings...), "\n")
	return lend(t, key, func() (*lent, error) { return newLent(t.Context(), spec, settings) }).box.Primary()
}

// lend takes a server from the shelf, or else a new one, and puts it back with the end of the test.
func lend[T lendable](t testing.TB, key string, make func() (T, error)) T {
	t.Helper()
	shelf.mu.Lock()
	if !shelf.open {
		shelf.mu.Unlock()
		t.Fatal("the package has no TestMain that calls sandboxtest.Main")
	}
	var l T
	list := shelf.free[key]
	taken := len(list) > 0
	if taken { // read here: what is put back takes the same place
		l = list[len(list)-1].(T)
		shelf.free[key] = list[:len(list)-1]
	}
	shelf.mu.Unlock()
	if !taken {
		var err error
		if l, err = make(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if !t.Failed() {
			err := l.clean()
			if err == nil {
				shelf.mu.Lock()
				defer shelf.mu.Unlock()
				shelf.free[key] = append(shelf.free[key], l)
				return
			}
			t.Logf("the server is not lent again: %v", err)
		}
		if err := l.down(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func newLent(ctx context.Context, spec string, settings []string) (*lent, error) {
	dir, err := Folder("rt-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	l := &lent{dir: dir}
	if settings, err = cheaper(dir, []string{spec}, settings); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	l.box, err = sandbox.Up(ctx, sandbox.Options{Dir: dir, Name: "t", Servers: []string{spec}, Settings: settings, StartTimeout: 2 * time.Minute, AnswerTimeout: patience, Find: Find})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	l.process = l.box.Primary().PID
	err = l.ask(func(db *sql.DB) (err error) {
		if l.users, err = column(ctx, db, accounts); err != nil {
			return err
		}
		if l.variables, err = l.settings(ctx); err != nil {
			return err
		}
		l.watched, err = watched(ctx, db)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, l.down())
	}
	return l, nil
}

func (l *lent) down() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(l.box.Down(ctx), os.RemoveAll(l.dir))
}

const accounts = "SELECT CONCAT(QUOTE(user), '@', QUOTE(host)) FROM mysql.user"

func (l *lent) clean() error {
	l.box.Refresh()
	if n := l.box.Primary(); n.State != sandbox.StateRunning || n.PID != l.process {
		return errors.New("it was ended, or started anew")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return l.ask(func(db *sql.DB) error {
		schemas, err := column(ctx, db, "SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')")
		if err != nil {
			return err
		}
		for _, name := range schemas {
			if _, err := db.ExecContext(ctx, "DROP DATABASE `"+strings.ReplaceAll(name, "`", "``")+"`"); err != nil {
				return err
			}
		}
		users, err := column(ctx, db, accounts)
		if err != nil {
			return err
		}
		for _, user := range users {
			if !slices.Contains(l.users, user) {
				if err := drop(ctx, db, user); err != nil {
					return err
				}
			}
		}
		if _, err = db.ExecContext(ctx, "CREATE DATABASE test"); err != nil {
			return err
		}
		if err := l.reset(ctx, db); err != nil { // after accounts: partial_revokes, for one, stays on while one needs it
			return err
		}
		return l.forget(ctx, db)
	})
}

// drop removes an account, or a role, which MariaDB has another statement for.
func drop(ctx context.Context, db *sql.DB, account string) error {
	_, err := db.ExecContext(ctx, "DROP USER "+account)
	if role, is := strings.CutSuffix(account, "@''"); err != nil && is {
		_, err = db.ExecContext(ctx, "DROP ROLE "+role)
	}
	return err
}

// settings are the global variables that say how the server works, not how far it is.
func (l *lent) settings(ctx context.Context) (map[string]string, error) {
	at, err := mysql.ParseTarget(l.box.Primary().DSN)
	if err != nil {
		return nil, err
	}
	c, err := mysql.Connect(ctx, at, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return read.StillVariables(ctx, c)
}

// reset gives global variables the values that they began with.
func (l *lent) reset(ctx context.Context, db *sql.DB) error {
	now, err := l.settings(ctx)
	if err != nil {
		return err
	}
	for name, value := range l.variables {
		if now[name] == value {
			continue
		}
		if _, err := db.ExecContext(ctx, "SET GLOBAL "+name+" = '"+strings.ReplaceAll(value, "'", "''")+"'"); err != nil {
			if _, err := db.ExecContext(ctx, "SET GLOBAL "+name+" = "+value); err != nil { // a number
				return fmt.Errorf("%s was %q, is %q: %w", name, value, now[name], err)
			}
		}
	}
	return nil
}

// watched is what performance_schema looks at: for each consumer and instrument the statement that sets it so.
func watched(ctx context.Context, db *sql.DB) (map[string]string, error) {
	list, err := column(ctx, db, `SELECT CONCAT('setup_consumers SET ENABLED = "', ENABLED, '" WHERE NAME = "', NAME, '"') FROM performance_schema.setup_consumers
		UNION ALL SELECT CONCAT('setup_instruments SET ENABLED = "', ENABLED, '", TIMED = "', COALESCE(TIMED, 'NO'), '" WHERE NAME = "', NAME, '"') FROM performance_schema.setup_instruments`)
	out := map[string]string{}
	for _, set := range list {
		_, name, _ := strings.Cut(set, " WHERE ")
		out[name] = set
	}
	return out, err
}

// forget lets performance_schema look at what it looked at before, and empties what it has noted of statements.
func (l *lent) forget(ctx context.Context, db *sql.DB) error {
	now, err := watched(ctx, db)
	if err != nil {
		return err
	}
	for name, set := range l.watched {
		if now[name] == set {
			continue
		}
		if _, err := db.ExecContext(ctx, "UPDATE performance_schema."+set); err != nil {
			return err
		}
	}
	// The digests come last: what empties the others is one, too.
	tables, err := column(ctx, db, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'performance_schema' AND table_name LIKE 'events_statements%' ORDER BY table_name LIKE '%by_digest'")
	if err != nil {
		return err
	}
	for _, name := range tables {
		if _, err := db.ExecContext(ctx, "TRUNCATE TABLE performance_schema."+name); err != nil {
			return err
		}
	}
	return nil
}

// ask runs f on one connection, with foreign keys unchecked, for schemas go in any order, and quotes that mean the same everywhere.
func (l *lent) ask(f func(db *sql.DB) error) error {
	db, err := l.box.Primary().DB()
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("SET foreign_key_checks = 0, sql_mode = ''"); err != nil {
		return err
	}
	return f(db)
}

func column(ctx context.Context, db *sql.DB, query string) (out []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

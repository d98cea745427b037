package mirror

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// number reads a status variable.
func number(t *testing.T, db *sql.DB, status string) (n int) {
	t.Helper()
	var name string
	if err := db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE '"+status+"'").Scan(&name, &n); err != nil {
		t.Fatalf("%s: %v", status, err)
	}
	return n
}

// TestSemiSync lets a server wait for an encrypting mirror: a commit waits while the mirror's process is stopped, and everything that was
// committed is in the mirror after server and mirror are killed.
func TestSemiSync(t *testing.T) {
	for _, c := range []struct{ spec, word, load string }{{"mysql-9.7", "source", "plugin_load_add=semisync_source.so"}, {"mariadb", "master", "max_binlog_size=64K"}} {
		t.Run(c.spec, func(t *testing.T) {
			n := sandboxtest.Up(t, c.spec, append(settings(c.spec), c.load)...)
			db := open(t, n)
			exec1(t, db, "CREATE TABLE test.t (id INT PRIMARY KEY, v TEXT)",
				"SET GLOBAL rpl_semi_sync_"+c.word+"_timeout = 3600000", "SET GLOBAL rpl_semi_sync_"+c.word+"_enabled = ON")
			who, dir, cache := encrypted(t)
			p := process(t, dir, cache, "semi", n.DSN)
			prefix := "Rpl_semi_sync_" + c.word
			await.Until(t, func() bool { return number(t, db, prefix+"_clients") == 1 }, "connected")
			var done []string
			insert := func(id int) error {
				_, err := db.ExecContext(t.Context(), "INSERT INTO test.t VALUES (?, ?)", id, mark(id))
				return err
			}
			for id := range 20 {
				if err := insert(id); err != nil {
					t.Fatal(err)
				}
				done = append(done, mark(id))
			}
			if yes, no := number(t, db, prefix+"_yes_tx"), number(t, db, prefix+"_no_tx"); yes < 20 || no > 0 {
				t.Errorf("%d transactions were acknowledged, %d were not; want yes at least 20, no at most 0", yes, no)
			}
			stopped(t, p.Process, db, func() error { return insert(20) })
			done = append(done, mark(20))

			var mu sync.Mutex
			var wg sync.WaitGroup
			var next atomic.Int64
			next.Store(1000)
			for range 4 {
				wg.Go(func() {
					for {
						id := int(next.Add(1))
						if insert(id) != nil {
							return // the server was killed
						}
						mu.Lock()
						done = append(done, mark(id))
						mu.Unlock()
					}
				})
			}
			await.Until(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(done) > 300 }, "at work")
			if err := n.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
			p.Process.Kill()
			p.Wait()
			have := contents(t, keyed(dir, who), dir)
			for _, m := range done {
				if !bytes.Contains(have, []byte(m)) {
					t.Errorf("%s was committed and is not in the mirror, want []byte(m) in it", m)
				}
			}
			t.Logf("%d commits, all in the mirror", len(done))
		})
	}
}

func mark(id int) string { return fmt.Sprintf("mark-%06d;", id) }

// stopped commits while the mirror's process is stopped, and lets it go on.
func stopped(t *testing.T, p *os.Process, db *sql.DB, commit func() error) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool { return asleep(t, p.Pid) }, "stopped")
	end := make(chan error, 1)
	go func() { end <- commit() }()
	await.Until(t, func() bool {
		var waiting int
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM INFORMATION_SCHEMA.PROCESSLIST WHERE STATE LIKE 'Waiting for semi-sync ACK%'").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		return waiting == 1
	}, "waiting")
	select {
	case err := <-end:
		t.Errorf("the commit ended while the mirror was stopped: %v", err)
		end <- err
	case <-time.After(300 * time.Millisecond):
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-end:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the commit does not end when the mirror goes on")
	}
}

// asleep reports whether all threads of a process are stopped: on a starved machine some run on for a while.
func asleep(t *testing.T, pid int) bool {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("no threads: got %v; want len(tasks) not 0", err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile(task)
		if err != nil {
			return false // it ended just now
		}
		if _, rest, ok := bytes.Cut(b, []byte(") ")); !ok || len(rest) == 0 || rest[0] != 'T' {
			return false
		}
	}
	return true
}

// contents is what is in all logs of a place, one after the other.
func contents(t *testing.T, place Place, dir string) []byte {
	t.Helper()
	list, err := List(t.Context(), place, dir)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, s := range list {
		for _, f := range s.Files(place, dir) {
			in, err := f.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.ReadFrom(in)
			in.Close()
			if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
		}
	}
	return b.Bytes()
}

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/lack"
)

// The tests in this file run real servers.

func TestReplication(t *testing.T) {
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			needServer(t, spec)
			s := up(t, Options{Servers: []string{spec}, Topology: TopologyReplication, Replicas: 2})
			query(t, s.Primary(), "CREATE TABLE test.t (a INT PRIMARY KEY); INSERT INTO test.t VALUES (7)")
			ids := map[string]bool{}
			for _, n := range s.Nodes {
				ids[query(t, n, "SELECT @@server_id")] = true
				if n.Role != RoleReplica {
					continue
				}
				eventually(t, n, "SELECT COALESCE((SELECT COUNT(*) FROM information_schema.tables WHERE table_schema='test' AND table_name='t'), 0)", "1")
				eventually(t, n, "SELECT SUM(a) FROM test.t", "7")
				readOnly := "SELECT @@super_read_only"
				if n.Program.Family == FamilyMariaDB {
					readOnly = "SELECT @@read_only"
				}
				if got := query(t, n, readOnly); got != "1" {
					t.Errorf("%s: %s gives %s, want \"1\"", n.Name, readOnly, got)
				}
			}
			if len(ids) != 3 {
				t.Errorf("server ids are %v, not three different ones", ids)
			}
			checkAccess(t, s)
			checkSecrets(t, s)
			checkList(t, s)
		})
	}
}

// checkAccess: the account works over TCP, root does not.
func checkAccess(t *testing.T, s *Sandbox) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, n := range s.Nodes {
		c, err := n.TCPConfig()
		if err != nil {
			t.Fatal(err)
		}
		db, err := open(c)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.PingContext(ctx); err != nil {
			t.Errorf("%s: account over TCP: %v", n.Name, err)
		}
		c = c.Clone()
		c.User, c.Passwd = "root", ""
		root, err := open(c)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		if err := root.PingContext(ctx); err == nil {
			t.Errorf("%s: root without a password gets in over TCP", n.Name)
		}
	}
}

// checkSecrets: the password is in private files only, and nobody else can
// look into the folder.
func checkSecrets(t *testing.T, s *Sandbox) {
	t.Helper()
	password, err := s.Password()
	if err != nil || len(password) < 20 {
		t.Fatalf("password of %d characters: got %v; want at least 20", len(password), err)
	}
	if fi, err := os.Stat(s.Dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("folder: got %v, %v; want Perm() 0o700", fi.Mode(), err)
	}
	err = filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file of the server
		}
		if err != nil {
			return err
		}
		if !bytes.Contains(b, []byte(password)) {
			return nil
		}
		rel, _ := filepath.Rel(s.Dir, path)
		base := filepath.Base(path)
		fi, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case base == secretFile || base == "client.cnf":
			if fi.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v, want Perm() 0o600", rel, fi.Mode())
			}
		case strings.HasPrefix(rel, "replica") && (base == "master.info" || base == "mysql.ibd" || base == "slave_master_info.ibd" || strings.HasPrefix(base, "ib_logfile") || strings.HasPrefix(base, "#ib_redo") || strings.HasSuffix(base, ".dblwr") || base == "ibdata1"):
			// Where a replica itself keeps what it logs in with.
		default:
			t.Errorf("the password stands in %s", rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range s.Nodes {
		if strings.Contains(strings.Join(argv(n.PID), " "), password) {
			t.Errorf("%s: the password stands in the arguments", n.Name)
		}
	}
}

// checkList: another process would see the same.
func checkList(t *testing.T, s *Sandbox) {
	t.Helper()
	all, err := List(filepath.Dir(s.Dir))
	if err != nil || len(all) != 1 {
		t.Fatalf("got %d sandboxes listed, %v; want 1", len(all), err)
	}
	if all[0].State != StateRunning || !all[0].Ready || len(all[0].Nodes) != len(s.Nodes) {
		t.Errorf("listed as %+v; want State StateRunning, Ready true, len(Nodes) %v", all[0], len(s.Nodes))
	}
	for i, n := range all[0].Nodes {
		if n.PID != s.Nodes[i].PID || n.State != StateRunning || n.Port != s.Nodes[i].Port || n.DSN != "root@unix("+n.Socket+")/" {
			t.Errorf("node listed as %+v; want PID s.Nodes[i].PID, State StateRunning, Port s.Nodes[i].Port, DSN %v", n, "root@unix("+n.Socket+")/")
		}
	}
}

func TestMixedVersionsReplicate(t *testing.T) {
	needServer(t, "mysql-5.7")
	needServer(t, "mysql-8.0")
	s := up(t, Options{Servers: []string{"mysql-5.7", "mysql-8.0"}, Topology: TopologyReplication, Replicas: 1})
	if s.Nodes[0].Server != "mysql-5.7" || s.Nodes[1].Server != "mysql-8.0" {
		t.Errorf("nodes are %s and %s; want s.Nodes[0].Server \"mysql-5.7\", s.Nodes[1].Server \"mysql-8.0\"", s.Nodes[0].Server, s.Nodes[1].Server)
	}
}

func TestGalera(t *testing.T) {
	needServer(t, "mariadb")
	if _, err := provider(mustFind(t, "mariadb")); err != nil {
		lack.Of(t, "Galera's library is not installed: run script/setup: "+err.Error())
	}
	s := up(t, Options{Topology: TopologyGalera})
	const size = "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'"
	for _, n := range s.Nodes {
		eventually(t, n, size, "3")
	}
	query(t, s.Nodes[2], "CREATE TABLE test.t (a INT PRIMARY KEY); INSERT INTO test.t VALUES (7)")
	eventually(t, s.Nodes[0], "SELECT SUM(a) FROM test.t", "7")
	checkAccess(t, s)

	// A node that crashed comes back and gets what it missed.
	if err := s.Nodes[1].Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, s.Nodes[0], size, "2")
	query(t, s.Nodes[0], "INSERT INTO test.t VALUES (8)")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Nodes[1].Start(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, s.Nodes[1], "SELECT SUM(a) FROM test.t", "15")
}

func mustFind(t *testing.T, spec string) Server {
	t.Helper()
	s, err := Find(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNodesFailAndComeBack(t *testing.T) {
	needServer(t, "mariadb")
	s := up(t, Options{Topology: TopologyReplication, Replicas: 1})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	primary, replica := s.Nodes[0], s.Nodes[1]

	steps := []struct {
		name string
		do   func() error
		want State
	}{
		{"pause", func() error { return primary.Kill(syscall.SIGSTOP) }, StatePaused},
		{"go on", func() error { return primary.Kill(syscall.SIGCONT) }, StateRunning},
		{"crash", func() error { return primary.Kill(syscall.SIGKILL) }, StateStopped},
		{"start", func() error { return primary.Start(ctx) }, StateRunning},
		{"start again", func() error { return primary.Start(ctx) }, StateRunning},
		{"stop", func() error { return primary.Stop(ctx) }, StateStopped},
		{"stop again", func() error { return primary.Stop(ctx) }, StateStopped},
		{"start after stop", func() error { return primary.Start(ctx) }, StateRunning},
		{"pause, then stop", func() error { return errors.Join(primary.Kill(syscall.SIGSTOP), primary.Stop(ctx)) }, StateStopped},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		// A signal that stops a process takes a moment.
		await.Until(t, func() bool {
			s.Refresh()
			return primary.State == step.want
		}, "%s: a node that is %s", step.name, step.want)
	}
	if s.State != StatePartial {
		t.Errorf("a sandbox without its primary is %s, want StatePartial", s.State)
	}
	if err := primary.Start(ctx, "--max-connections=33"); err != nil {
		t.Fatal(err)
	}
	if got := query(t, primary, "SELECT @@max_connections"); got != "33" {
		t.Errorf("max_connections is %s: the argument was lost, want \"33\"", got)
	}
	query(t, primary, "CREATE TABLE test.t (a INT)")
	eventually(t, replica, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema='test'", "1")
}

func TestSettingsReachTheServer(t *testing.T) {
	needServer(t, "mariadb")
	s := up(t, Options{Settings: []string{"max_connections=77", "performance_schema=ON"}})
	if got := query(t, s.Primary(), "SELECT @@max_connections + @@performance_schema"); got != "78" {
		t.Errorf("got %s, want \"78\"", got)
	}
}

func TestServerThatDoesNotStartSaysWhy(t *testing.T) {
	needServer(t, "mariadb")
	dir := t.TempDir()
	_, err := Up(t.Context(), Options{Dir: dir, CacheDir: cacheDir, Settings: []string{"no_such_thing=1"}})
	if err == nil || !strings.Contains(err.Error(), "no_such_thing") {
		t.Errorf("got %v; want an error, \"no_such_thing\" in the error", err)
	}
	mustBeClean(t, dir)
}

func TestLongPathGetsShortSockets(t *testing.T) {
	needServer(t, "mariadb")
	dir := filepath.Join(t.TempDir(), strings.Repeat("long-", 20))
	s := up(t, Options{Dir: dir})
	if s.SocketDir == "" || len(s.Primary().Socket) > socketLimit {
		t.Fatalf("socket is %s; want s.SocketDir not \"\", len(s.Primary().Socket) at most %v", s.Primary().Socket, socketLimit)
	}
	if fi, err := os.Stat(s.SocketDir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("folder of sockets: got %v, %v; want Mode().Perm() 0o700", fi, err)
	}
	if err := Down(t.Context(), dir, s.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.SocketDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of sockets is left: %v, want fs.ErrNotExist", err)
	}
	mustBeClean(t, dir)
}

// TestNoAIO: where other servers have taken the machine's asynchronous I/O, a sandbox makes do without.
func TestNoAIO(t *testing.T) {
	for _, spec := range []string{"mysql-9.7", "mysql-5.7"} {
		needServer(t, spec)
	}
	takeAIO(t)
	t.Run("full", func(t *testing.T) {
		for _, spec := range []string{"mysql-9.7", "mysql-5.7"} {
			t.Run(spec, func(t *testing.T) {
				t.Parallel()
				if got := query(t, up(t, Options{Servers: []string{spec}}).Primary(), "SELECT @@innodb_use_native_aio"); got != "0" {
					t.Errorf("innodb_use_native_aio is %s: there was room, want \"0\"", got)
				}
			})
		}
	})
}

// takeAIO takes what fs.aio-max-nr leaves, also what others give back, until the test ends: all but so little that a MySQL, which
// does without if there is nothing, sees some and then has too little.
func takeAIO(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	full := make(chan error, 1)
	go func() { // ends with the test
		defer close(done)
		var taken []uintptr
		for ctx.Err() == nil {
			for n := uintptr(4096); n >= 256; n /= 2 {
				var id uintptr // aio_context_t
				_, _, errno := syscall.Syscall(syscall.SYS_IO_SETUP, n, uintptr(unsafe.Pointer(&id)), 0)
				for ; errno == 0; _, _, errno = syscall.Syscall(syscall.SYS_IO_SETUP, n, uintptr(unsafe.Pointer(&id)), 0) {
					taken, id = append(taken, id), 0
				}
				if errno != syscall.EAGAIN {
					full <- errno
					return
				}
			}
			select {
			case full <- nil:
			default:
			}
			time.Sleep(time.Millisecond)
		}
		for _, id := range taken {
			_, _, _ = syscall.Syscall(syscall.SYS_IO_DESTROY, id, 0, 0)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	if err := <-full; err != nil {
		t.Fatal(err)
	}
}

// TestOfBirth: what a data directory has for good is as asked for, too.
func TestOfBirth(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			needServer(t, spec)
			s := up(t, Options{Servers: []string{spec}, Settings: []string{"loose_innodb-page-size=8192", "lower_case_table_names=1"}})
			if got := query(t, s.Primary(), "SELECT CONCAT(@@innodb_page_size, ' ', @@lower_case_table_names)"); got != "8192 1" {
				t.Errorf("got %s, want 8192 1", got)
			}
		})
	}
}

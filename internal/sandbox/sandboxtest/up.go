package sandboxtest

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/postgres"
)

// patience is how long a test waits for the answer to a Query: a server that hangs ends the test that asked it, by its name, and not
// all of them by go test's own limit.
const patience = 5 * time.Minute

// cheaper is settings with which servers cost a test less; a test may set them otherwise. InnoDB of MySQL makes do without the kernel's
// asynchronous I/O: what a machine has of it (fs.aio-max-nr) is enough for some 25 servers, and tests of several packages run at once.
// MariaDB gets a certificate, which lies in dir: since 11.4 it else makes an RSA key with each start, for most of what that costs.
func cheaper(dir string, specs, settings []string) ([]string, error) {
	var mine []string
	if slices.ContainsFunc(specs, func(s string) bool { return strings.HasPrefix(s, "mysql") }) {
		mine = append(mine, "innodb_use_native_aio=OFF")
	}
	if slices.ContainsFunc(specs, func(s string) bool { return strings.HasPrefix(s, "mariadb-11") }) {
		pair, err := certificate()
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(dir, 0o700); err != nil { // a test may leave it to the sandbox
			return nil, err
		}
		file := filepath.Join(dir, "certificate.pem")
		if err := os.WriteFile(file, pair, 0o600); err != nil {
			return nil, err
		}
		mine = append(mine, "ssl_cert="+file, "ssl_key="+file)
	}
	return append(mine, settings...), nil
}

// Up starts one server for a test and ends it with the test. settings are "key=value" for its option file.
func Up(t testing.TB, spec string, settings ...string) *sandbox.Node {
	t.Helper()
	return Sandbox(t, sandbox.Options{Servers: []string{spec}, Settings: settings}).Primary()
}

// Pair starts a primary with one replica for a test.
func Pair(t testing.TB, spec string, settings ...string) *sandbox.Sandbox {
	t.Helper()
	return Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 1, Settings: settings})
}

// Sandbox starts servers for a test and ends them with the test, which is skipped where one of them is not installed. Name and
// folder it chooses itself where the options have none, and how long a server may take to start.
func Sandbox(t testing.TB, o sandbox.Options) *sandbox.Sandbox {
	t.Helper()
	for _, spec := range o.Servers {
		Need(t, spec)
	}
	o.Name, o.StartTimeout, o.AnswerTimeout, o.Find = cmp.Or(o.Name, "t"), 2*time.Minute, patience, Find
	if o.Dir == "" {
		o.Dir = shortDir(t)
	}
	var err error
	if o.Settings, err = cheaper(o.Dir, o.Servers, o.Settings); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s, err := sandbox.Up(ctx, o)
	if errors.Is(err, sandbox.ErrNoGalera) {
		lack.Of(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Down(ctx); err != nil {
			t.Errorf("down: %v", err)
		}
	})
	return s
}

// Folder makes a folder for servers of tests, with a name that leaves room for the path of a socket: in memory, where script/test
// has found room for it (RISSO_TEST_MEMORY), for most of what a test's server writes is never read. No test takes the power from the
// machine; of a server that is killed the kernel keeps what it wrote, there as on a disk.
func Folder(prefix string) (string, error) {
	return os.MkdirTemp(os.Getenv("RISSO_TEST_MEMORY"), prefix)
}

// shortDir is a Folder that goes with the test.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := Folder("rt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Postgres starts a PostgreSQL server and ends it with the test, which is skipped if PostgreSQL is not installed. It
// does not wait for its disk, unless settings ("name=value") say otherwise.
func Postgres(t testing.TB, settings ...string) *postgres.Server {
	t.Helper()
	if _, err := postgres.Find(""); errors.Is(err, sandbox.ErrNoServer) {
		lack.Of(t, "PostgreSQL is not installed: run script/setup")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s, err := postgres.Up(ctx, postgres.Options{Settings: append([]string{"fsync=off"}, settings...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Down(ctx); err != nil {
			t.Errorf("down: %v", err)
		}
	})
	return s
}

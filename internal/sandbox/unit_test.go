package sandbox

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
)

func TestServes(t *testing.T) {
	const dir = "/boxes/a"
	for _, c := range []struct {
		args string
		want bool
	}{
		{"mysqld --defaults-file=/boxes/a/n/my.cnf --datadir=/boxes/a/n/data", true},
		{"ld.so --library-path /x mysqld --datadir=/boxes/a/n/data --basedir=/usr", true},
		{"sh wsrep_sst_mariabackup --role joiner --datadir /boxes/a/n/data/ --parent 7", true},
		{"rsync --daemon --config=/boxes/a/n/data/rsync_sst.conf", true},
		{"mysqld --datadir=/boxes/ab/n/data", false},
		{"mysqld --datadir=/var/lib/mysql", false},
		{"tail -f /boxes/a/n/error.log", false},
		{"mariadb --defaults-file=/boxes/a/n/client.cnf", false},
		{"vi --datadir", false},
		{"", false},
	} {
		if got := serves(strings.Fields(c.args), dir); got != c.want {
			t.Errorf("serves(%q) is %v, want %v", c.args, got, c.want)
		}
	}
}

func TestBadRequests(t *testing.T) {
	for name, o := range map[string]Options{
		"name":            {Name: "../x"},
		"hidden name":     {Name: ".x"},
		"topology":        {Topology: "ring"},
		"lone replica":    {Replicas: 1},
		"too many":        {Topology: TopologyReplication, Replicas: 100},
		"negative":        {Topology: TopologyReplication, Replicas: -1},
		"more servers":    {Topology: TopologyReplication, Replicas: 1, Servers: []string{"mariadb", "mariadb", "mariadb"}},
		"server":          {Servers: []string{"oracle"}},
		"path":            {Servers: []string{"./nothing/here"}},
		"setting":         {Settings: []string{"a b"}},
		"line break":      {Settings: []string{"a=b\nplugin-load=x"}},
		"own setting":     {Settings: []string{"datadir=/x"}},
		"own, with loose": {Settings: []string{"loose-log-error=/x"}},
	} {
		dir := t.TempDir()
		o.Dir, o.CacheDir = dir, dir
		_, err := Up(t.Context(), o)
		if fault.Code(err) != fault.Usage {
			t.Errorf("%s: got %v, want fault.Usage", name, err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("%s: it made %v, want none", name, entries)
		}
	}
}

func TestMissingServerSaysWhereItLooked(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("RISSO_SERVERS", filepath.Join(dir, "mine"))
	t.Setenv("PATH", filepath.Join(dir, "path"))
	_, err := Find(t.Context(), "mysql-1.2")
	if !errors.Is(err, ErrNoServer) {
		t.Fatalf("got %v, want ErrNoServer", err)
	}
	for _, want := range []string{"mysql-1.2", filepath.Join(dir, "mine"), filepath.Join(dir, "path"), filepath.Join(dir, "cache/risso/servers"), "/usr/sbin", "/opt/*", "script/setup", "mariadb-server"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}

func TestFindsServersByFolderAndPath(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("RISSO_SERVERS", filepath.Join(dir, "mine"))
	fakeServer(t, filepath.Join(dir, "cache/risso/servers/a/bin/mysqld"), "mysqld  Ver 8.4.3 for Linux on x86_64 (MySQL Community Server - GPL)")
	fakeServer(t, filepath.Join(dir, "mine/b/libexec/mysqld"), "/x/mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server (GPL), Release 28, Revision 47601f19)")
	fakeServer(t, filepath.Join(dir, "mine/c/bin/mariadbd"), "mariadbd  Ver 99.4.2-MariaDB for Linux on x86_64 (MariaDB Server)")
	fakeServer(t, filepath.Join(dir, "tar/mysql-8.4.9-linux/bin/mysqld"), "mysqld  Ver 8.4.9 for Linux on x86_64 (MySQL Community Server - GPL)")
	for spec, want := range map[string]string{
		"mysql-8.4":                  "mysql-8.4 8.4.3",
		"percona":                    "percona-8.0 8.0.36-28",
		"percona-8.0.36":             "percona-8.0 8.0.36-28",
		"mariadb":                    "mariadb-99.4 99.4.2", // the newest
		"mariadb-99":                 "mariadb-99.4 99.4.2",
		filepath.Join(dir, "tar"):    "mysql-8.4 8.4.9",
		filepath.Join(dir, "mine/c"): "mariadb-99.4 99.4.2",
		filepath.Join(dir, "mine/b/libexec/mysqld"): "percona-8.0 8.0.36-28",
	} {
		s, err := Find(t.Context(), spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
		} else if got := s.Name + " " + s.Version; got != want {
			t.Errorf("%s is %s, not %s", spec, got, want)
		}
	}
}

// What the system has goes before what was fetched in addition, although that is newer: its programs (mariadb-backup, clients)
// are on PATH.
func TestInstalledServerGoesFirst(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("RISSO_SERVERS", "")
	t.Setenv("PATH", filepath.Join(dir, "path")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	fakeServer(t, filepath.Join(dir, "path/mariadbd"), "mariadbd  Ver 98.1.1-MariaDB for Linux on x86_64 (MariaDB Server)")
	fakeServer(t, filepath.Join(dir, "cache/risso/servers/mariadb-99.4/bin/mariadbd"), "mariadbd  Ver 99.4.2-MariaDB for Linux on x86_64 (MariaDB Server)")
	fakeServer(t, filepath.Join(dir, "cache/risso/servers/percona-98.0/bin/mysqld"), "mysqld  Ver 98.0.1 for Linux on x86_64 (Percona Server)")
	fakeServer(t, filepath.Join(dir, "cache/risso/servers/percona-99.0/bin/mysqld"), "mysqld  Ver 99.0.1 for Linux on x86_64 (Percona Server)")
	for spec, want := range map[string]string{"mariadb": "mariadb-98.1", "mariadb-99.4": "mariadb-99.4", "percona": "percona-99.0", "percona-98": "percona-98.0"} {
		s, err := Find(t.Context(), spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
		} else if s.Name != want {
			t.Errorf("%s is %s, not %s", spec, s.Name, want)
		}
	}
}

// fakeServer is a program with the answer to --version only.
func fakeServer(t *testing.T, path, version string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+version+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestRecipes(t *testing.T) {
	for version, want := range map[string]string{
		"5.7.22": "CHANGE MASTER", "8.0.15": "CHANGE MASTER", "8.0.23": "CHANGE REPLICATION", "9.7.0": "CHANGE REPLICATION",
	} {
		r, err := recipeFor(Server{Family: FamilyMySQL, Version: version})
		if err != nil || !strings.HasPrefix(r.follow[0], want) {
			t.Errorf("MySQL %v: got %v, %v; want %q at its beginning", version, r.follow, err, want)
		}
	}
	for family, version := range map[Family]string{FamilyMySQL: "5.6.50", FamilyMariaDB: "10.1.0"} {
		if _, err := recipeFor(Server{Family: family, Version: version}); err == nil {
			t.Errorf("%s %v has a recipe", family, version)
		}
	}
}

func TestHeldPort(t *testing.T) {
	h, err := holdPort(0)
	if err != nil {
		t.Fatal(err)
	}
	defer h.release()
	// No one that asks for any free port gets it.
	for range 200 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if l.Addr().(*net.TCPAddr).Port == h.Port {
			t.Fatal("the held port was given away")
		}
		other, err := holdPort(0)
		if err != nil {
			t.Fatal(err)
		}
		defer other.release()
		if other.Port == h.Port {
			t.Fatal("the held port was held twice")
		}
	}
	// The server for which it is held can listen on it.
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(h.Port))
	if err != nil {
		t.Fatalf("the server cannot have the port: %v", err)
	}
	l.Close()
}

func TestCopyKeepsContentAndHoles(t *testing.T) {
	dir := t.TempDir()
	content := make([]byte, 1<<20)
	copy(content[300<<10:], "in the middle")
	copy(content[len(content)-3:], "end")
	src := filepath.Join(dir, "src")
	if err := os.WriteFile(src, content, 0o640); err != nil {
		t.Fatal(err)
	}
	for name, keep := range map[string]bool{"template": true, "copy": false} {
		dst := filepath.Join(dir, name)
		if err := copyFile(dst, src, keep); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(dst)
		if err != nil || string(got) != string(content) {
			t.Errorf("%s differs: %v; want string(got) %v", name, err, string(content))
		}
		src = dst // the second is a copy of a file with holes
	}
}

func TestReadsAnyRecord(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{"empty": "", "cut": `{"name": "cut", "nodes": [{`, "none": "\x00"} {
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if name != "none" {
			if err := os.WriteFile(filepath.Join(dir, recordFile), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := List(root)
	if err != nil || len(all) != 3 {
		t.Fatalf("got %d, %v; want 3", len(all), err)
	}
	for _, s := range all {
		if s.State != StatePartial {
			t.Errorf("%s is %s, want StatePartial", s.Name, s.State)
		}
		if err := s.Down(t.Context()); err != nil {
			t.Error(err)
		}
	}
	mustBeClean(t, root)
	if all, err := List(filepath.Join(root, "nowhere")); err != nil || len(all) != 0 {
		t.Errorf("got %v, %v; want none", all, err)
	}
	if _, err := Open(root, "../x"); fault.Code(err) != fault.Usage {
		t.Errorf("got %v, want fault.Usage", err)
	}
}

// TestNearest prefers the same series, then newer versions, and in a series its flavour.
func TestNearest(t *testing.T) {
	var found []Server
	for _, name := range []string{"mariadb 10.11.19", "mariadb 10.6.3", "mysql 9.7.4", "mysql 8.0.36", "mysql 8.0.15", "percona 8.4.2"} {
		family, version, _ := strings.Cut(name, " ")
		found = append(found, Server{Name: name, Family: Family(family), Version: version})
	}
	for _, c := range []struct {
		like   string
		series bool // only of the same
		want   string
	}{
		{"mysql 8.0.15", true, "mysql 8.0.15"}, {"mysql 8.0.20", true, "mysql 8.0.36"}, {"mysql 5.7.22", true, ""}, {"mysql 5.7.22", false, "mysql 8.0.15"}, {"mysql 8.0.30", true, "mysql 8.0.36"}, {"mysql 8.0.41", true, "mysql 8.0.36"}, {"mysql 8.5.0", false, "mysql 9.7.4"},
		{"percona 8.0.36", true, "mysql 8.0.36"}, {"percona 8.4.9", true, "percona 8.4.2"}, {"percona 5.7.1", false, "mysql 8.0.15"}, {"mysql 8.4.1", true, "percona 8.4.2"},
		{"mariadb 10.6.9", true, "mariadb 10.6.3"}, {"mariadb 11.4.1", true, ""}, {"mariadb 11.4.1", false, "mariadb 10.11.19"}, {"mariadb 10.11.3", false, "mariadb 10.11.19"}, {"mariadb 10.5.0", false, "mariadb 10.6.3"},
	} {
		family, version, _ := strings.Cut(c.like, " ")
		like := Server{Family: Family(family), Version: version}.Kind()
		var suits func(fleet.Server) bool
		if c.series {
			suits = func(s fleet.Server) bool { return s.Number.SameSeries(like.Number) }
		}
		got, err := nearest(found, nil, like, suits)
		if got.Name != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, ErrNoServer) {
			t.Errorf("like %s, of its series %t: got %q, %v; want %q", c.like, c.series, got.Name, err, c.want)
		}
	}
}

func TestWaitsAsLongAsAReplicaComesNearer(t *testing.T) {
	start := time.Now()
	n := nearer{at: start, limit: time.Minute}
	for _, c := range []struct {
		after    time.Duration
		position string
		want     bool
	}{
		{30 * time.Second, "", true},
		{50 * time.Second, "0-1-1", true},
		{100 * time.Second, "0-1-2", true}, // longer than the limit in all
		{160 * time.Second, "0-1-2", true},
		{161 * time.Second, "0-1-2", false},
	} {
		if got := n.waits(c.position, start.Add(c.after)); got != c.want {
			t.Errorf("at %q after %s: waits %t, want %t", c.position, c.after, got, c.want)
		}
	}
	if n = (nearer{at: start, limit: time.Minute}); n.waits("", start.Add(61*time.Second)) {
		t.Error("waits for a replica that never began")
	}
}

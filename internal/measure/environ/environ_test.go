package environ

import (
	"encoding/json"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/host"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func taken(t *testing.T, from Source) *Environment {
	t.Helper()
	e, err := Take(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func target(t *testing.T, dsn string) mysql.Target {
	t.Helper()
	at, err := mysql.ParseTarget(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func value(s Server, name string) string {
	for _, v := range s.Changed {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// TestRealServers records each server of this machine over its socket, changes something, records it again over TCP, and
// expects these differences to be reported and no others.
func TestRealServers(t *testing.T) {
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			node := sandboxtest.Up(t, spec)
			a := taken(t, MySQL(target(t, "root@unix("+node.Socket+")/")))
			if !strings.Contains(strings.ToLower(a.Server.Flavour), spec[:5]) || a.Server.Port != node.Port {
				t.Errorf("the server is %+v; want spec[:5] in strings.ToLower(a.Server.Flavour), Port %v", a.Server, node.Port)
			}
			if a.Connection.Kind != "socket" || !strings.Contains(a.Connection.Network, "same network namespace") {
				t.Errorf("the connection is %+v; want Kind \"socket\", \"same network namespace\" in Network", a.Connection)
			}
			if a.ServerHost == nil || a.ServerHost.Data == nil || a.ServerHost.Data.FileSystem == "" || a.ServerHost.Data.Options == "" || a.ServerHost.Data.SizeBytes == 0 {
				t.Fatalf("nothing is known of the disk under the data: %+v %+v; want a.ServerHost not nil, Data not nil, Data.FileSystem not \"\", Data.Options not \"\", Data.SizeBytes not 0",
					a.ServerHost, a.Unknown)
			}
			if spec != "mysql-5.7" && (a.Server.AllVariables || len(a.Server.Changed) > 80) || spec == "mysql-5.7" && !a.Server.AllVariables {
				t.Errorf("all: %v, %d variables", a.Server.AllVariables, len(a.Server.Changed))
			}
			if got := value(a.Server, "innodb_buffer_pool_size"); got != "67108864" { // the sandbox sets it
				t.Errorf("innodb_buffer_pool_size is %q, want \"67108864\"", got)
			}
			for _, quiet := range []string{"timestamp", "gtid_executed", "min_examined_row_limit"} { // what moves, and what the probe sets
				if got := value(a.Server, quiet); got != "" && !a.Server.AllVariables {
					t.Errorf("%s is told as changed to %q", quiet, got)
				}
			}
			b := changeAndTake(t, node)
			for _, d := range Differences(a, b) {
				switch d.What {
				case "innodb_flush_log_at_trx_commit":
					if d.B != "2" {
						t.Errorf("got %v, want B \"2\"", d)
					}
				case "connection", "network", "TLS", "load average before the run":
				default:
					t.Errorf("nobody changed that: %v", d)
				}
			}
			if words := strings.Join(differing(a, b), "\n"); !strings.Contains(words, "innodb_flush_log_at_trx_commit: ") || !strings.Contains(words, "connection: socket in A, TCP in B") {
				t.Errorf("got %v; want \"innodb_flush_log_at_trx_commit: \" in it, \"connection: socket in A, TCP in B\" in it", words)
			}
		})
	}
}

// changeAndTake sets a variable and records over TCP, with TLS where the server has it.
func changeAndTake(t *testing.T, node *sandbox.Node) *Environment {
	t.Helper()
	c, err := mysql.Connect(t.Context(), target(t, "root@unix("+node.Socket+")/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, q := range []string{"SET GLOBAL innodb_flush_log_at_trx_commit = 2", "CREATE USER environ@'127.0.0.1' IDENTIFIED BY 'verysecret'", "GRANT ALL ON *.* TO environ@'127.0.0.1'"} {
		if _, err := c.Maps(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	dsn := "environ:verysecret@tcp(" + net.JoinHostPort("127.0.0.1", strconv.Itoa(node.Port)) + ")/"
	if c.Server.Number >= 90000 && !c.Server.MariaDB() { // the older ones of the sandbox have no TLS that this driver speaks
		dsn += "?tls=skip-verify"
	}
	e := taken(t, MySQL(target(t, dsn)))
	if e.Connection.Kind != "TCP" || !strings.HasPrefix(e.Connection.Network, "loopback") {
		t.Errorf("the connection is %+v; want Kind \"TCP\", \"loopback\" at the beginning of Network", e.Connection)
	}
	if strings.HasSuffix(dsn, "verify") && e.Connection.TLS == "" {
		t.Error("the encrypted connection is not told as such")
	}
	if text, err := json.Marshal(e); err != nil || strings.Contains(string(text), "verysecret") {
		t.Errorf("the password is in the record, or %v; want no \"verysecret\" in it", err)
	}
	return e
}

func TestThisMachine(t *testing.T) {
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s := h.Setup()
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if s.Kernel != strings.TrimSpace(string(kernel)) || s.CPUs < 1 || s.CPUs < runtime.NumCPU() || s.MemoryBytes < 1<<28 || s.CPUModel == "" && runtime.GOARCH == "amd64" {
		t.Errorf("%+v", s)
	}
	if l := h.Limits(0); l.Affinity == "" {
		t.Errorf("got %+v, want Affinity not \"\"", l)
	}
	data, err := h.Storage(0, t.TempDir())
	if err != nil || data.FileSystem == "" || !strings.HasPrefix(data.Options, "r") {
		t.Errorf("got %+v %v; want FileSystem not \"\", \"r\" at the beginning of Options", data, err)
	}
	if h.NetworkNamespace(0) == "" || h.InterfaceKind("lo") != "loopback" {
		t.Error("the network namespace, or the loopback, is not known")
	}
}

// TestPostgres records a PostgreSQL, when this machine has one.
func TestPostgres(t *testing.T) {
	pg := sandboxtest.Postgres(t, "synchronous_commit=off", "archive_command=secretword")
	at, err := drive.ForPostgres(pg.URL("") + "&sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	e := taken(t, Postgres(at))
	if e.Server.Flavour != "PostgreSQL" || !strings.HasPrefix(e.Server.Version, pg.Version) || e.Connection.Kind != "socket" {
		t.Errorf("got %+v %+v; want Flavour \"PostgreSQL\", %q at the beginning of Version, Kind \"socket\"", e.Server, e.Connection, pg.Version)
	}
	if got := value(e.Server, "synchronous_commit"); got != "off" {
		t.Errorf("synchronous_commit is %q of %v, want \"off\"", got, e.Server.Changed)
	}
	if got := value(e.Server, "archive_command"); got != "(hidden)" {
		t.Errorf("archive_command is %q, want \"(hidden)\"", got)
	}
	if e.ServerHost == nil || e.ServerHost.Data == nil || e.ServerHost.Data.Folder != pg.Data {
		t.Errorf("got %+v %+v; want e.ServerHost not nil, Data not nil, Data.Folder %v", e.ServerHost, e.Unknown, pg.Data)
	}
}

func TestDifferences(t *testing.T) {
	spins := true
	a := &Environment{Client: Client{Setup: host.Setup{CPUModel: "EPYC", CPUs: 64, Kernel: "6.1", Load: host.Load{One: 0.1}}}, Server: Server{Flavour: "MariaDB", Version: "10.11", Changed: []Variable{
		{Name: "sync_binlog", Value: "1"}, {Name: "datadir", Value: "/a"}, {Name: "innodb_doublewrite", Value: "OFF"}, {Name: "init_connect", Value: ""}}},
		ServerHost: &ServerHost{Data: &host.Storage{FileSystem: "ext4", Options: "rw,noatime", Device: "sda", Rotational: &spins}}}
	b := &Environment{Client: Client{Setup: host.Setup{CPUModel: "EPYC", CPUs: 64, Kernel: "6.8", Load: host.Load{One: 3}}}, Server: Server{Flavour: "MariaDB", Version: "10.11", Changed: []Variable{
		{Name: "sync_binlog", Value: "0"}, {Name: "datadir", Value: "/b"}, {Name: "init_connect", Value: "x"}}}}
	got := differing(a, b)
	for _, want := range []string{"kernel: 6.1 in A, 6.8 in B", "file system: ext4 in A, none in B", "load average before the run: 0.1 in A, 3 in B", "sync_binlog: 1 in A, 0 in B",
		"innodb_doublewrite: OFF in A, the default in B", "init_connect: (empty) in A, x in B", "rotational: yes, according to the kernel in A, none in B"} {
		if !slices.Contains(got, want) {
			t.Errorf("not told: %s\n%s", want, strings.Join(got, "\n"))
		}
	}
	if strings.Contains(strings.Join(got, "\n"), "datadir") {
		t.Error("where the data lies makes nothing faster")
	}
	if d := differing(a, a); len(d) != 0 {
		t.Errorf("one environment differs from itself: got %v, want none", d)
	}
	if d := differing(a, nil); len(d) != 1 || !strings.Contains(d[0], "not recorded in B") {
		t.Errorf("got %v; want len(d) 1, \"not recorded in B\" in d[0]", d)
	}
	b.Server.AllVariables = true
	if d := strings.Join(differing(a, b), "\n"); strings.Contains(d, "the default") || !strings.Contains(d, "sync_binlog: 1 in A, 0 in B") {
		t.Errorf("a server that tells all variables does not tell which are the default: want no \"the default\" in it, \"sync_binlog: 1 in A, 0 in B\" in it:\n%s",
			d)
	}
}

// differing says in words what differs between two environments.
func differing(a, b *Environment) []string {
	var out []string
	for _, d := range Differences(a, b) {
		out = append(out, d.String())
	}
	return out
}

package scenario_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"database/sql/driver"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
)

// ward is the servers on which some of the forty checks are made true, in stages.
type ward struct {
	flavour string
	stages  []string
	nodes   map[string]*sandbox.Node // by the names that risso advise has them by: p and r, or x
	order   []string
	shift   string    // file with the shift of x's clock
	disk    *slowDisk // of x
	resting []func()  // end what is under way, such as a load
}

// newWard starts the servers of a place: a primary with its replica, or a server on a disk and with a clock of its own.
func newWard(t *testing.T, flavour, place string) *ward {
	t.Helper()
	w := &ward{flavour: flavour, nodes: map[string]*sandbox.Node{}}
	settings := []string{"performance_schema=ON", "performance_schema_consumer_events_statements_current=ON", "performance_schema_consumer_events_statements_history=ON",
		"performance_schema_instrument=wait/lock/metadata/sql/mdl=ON", "innodb_flush_log_at_trx_commit=1", "sync_binlog=1", "local_infile=OFF"}
	if flavour == "mariadb" {
		settings = append(settings, "expire_logs_days=7")
	}
	if place == "primary" {
		w.stages, w.order = []string{"pair", "late"}, []string{"p", "r"}
		s := up(t, sandbox.Options{Name: "s", Servers: []string{flavour}, Topology: sandbox.TopologyReplication, Replicas: 1, Settings: settings, StartTimeout: patience})
		w.nodes["p"], w.nodes["r"] = s.Nodes[0], s.Nodes[1]
		return w
	}
	w.order = []string{"x"}
	if place == "pile" {
		w.stages = []string{"pile"}
		redo := "innodb_redo_log_capacity=8M"
		if flavour == "mariadb" {
			redo = "innodb_log_file_size=4M"
		}
		w.nodes["x"] = up(t, sandbox.Options{Name: "s", Servers: []string{flavour}, StartTimeout: patience, Settings: append(settings, redo, "innodb_adaptive_flushing=OFF", "innodb_io_capacity=100", "innodb_max_dirty_pages_pct=99",
			"innodb_buffer_pool_size=64M", "innodb_flush_log_at_trx_commit=0", "skip_log_bin", "performance_schema=OFF")}).Primary()
		return w
	}
	w.stages = []string{"special", "clock"}
	w.disk = newSlowDisk(t)
	if flavour != "mariadb" { // which syncs so often that a disk on a loop device takes minutes
		settings = append(settings, "innodb_flush_log_at_trx_commit=0", "skip_log_bin", "innodb_doublewrite=OFF", "innodb_flush_method=nosync")
	}
	n := up(t, sandbox.Options{Dir: w.disk.dir, Name: "s", Servers: []string{flavour}, StartTimeout: patience, Settings: append(settings, append(certified(t, w), "innodb_buffer_pool_size=8M")...)}).Primary()
	w.nodes["x"] = n
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.shift = filepath.Join(tempDir(t), "shift")
	write(t, w.shift, "+0")
	startFaked(t, n, w.shift)
	return w
}

// startFaked starts a server that was stopped with a clock that the file shift moves.
func startFaked(t *testing.T, n *sandbox.Node, shift string) {
	t.Helper()
	libs, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err != nil || len(libs) == 0 {
		lack.Of(t, "libfaketime is not installed: run script/setup")
	}
	cmd := exec.Command(n.Program.Binary, "--defaults-file="+filepath.Join(filepath.Dir(n.Datadir), "my.cnf"), "--datadir="+n.Datadir)
	cmd.Env = append(environment(tempDir(t)), "LD_PRELOAD="+libs[0], "FAKETIME_TIMESTAMP_FILE="+shift, "FAKETIME_CACHE_DURATION=1", "DONT_FAKE_MONOTONIC=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	await(t, "the server answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := n.Query(ctx, "SELECT 1")
		return err == nil
	})
}

// server is the name of the server that has what a check finds.
func (w *ward) server(c *wrong) string {
	if c.at != "" {
		return c.at
	}
	return w.order[0]
}

// advise runs risso advise on the servers.
func (w *ward) advise(t *testing.T) answered {
	t.Helper()
	args := []string{"--unused-after", "1ms", "--look", "2500ms"}
	for _, name := range w.order {
		args = append(args, "--dsn", name+"="+w.nodes[name].DSN)
	}
	return advise(t, args...)
}

// during keeps something going until the stage's findings were seen.
func (w *ward) during(t *testing.T, end func()) {
	t.Helper()
	w.resting = append(w.resting, end)
	t.Cleanup(func() { w.rest(t) })
}

// rest ends what is under way.
func (w *ward) rest(t *testing.T) {
	t.Helper()
	list := w.resting
	w.resting = nil
	for _, end := range list {
		end()
	}
}

// session is one session of a server, which ends with the test at the latest.
type session struct {
	*sql.Conn
	db *sql.DB
}

// end ends it; what it does at the moment is undone.
func (s session) end() {
	_ = s.Conn.Raw(func(any) error { return driver.ErrBadConn }) // or it would be kept for another
	_ = s.Conn.Close()
	_ = s.db.Close()
}

func (w *ward) session(t *testing.T, at string) session {
	t.Helper()
	db, err := w.nodes[at].DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return session{c, db}
}

func in(t *testing.T, c *sql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := c.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// sets makes something true by statements on a server.
func sets(at, statements string) func(*testing.T, *ward) {
	return func(t *testing.T, w *ward) { execSQL(t, w.nodes[at], statements) }
}

const (
	itsStatement = "its statement"
	itsAdvice    = "what it advises"
)

// states runs the finding's statement on a server.
func states(at string) func(*testing.T, *ward, fleet.Advice) {
	return func(t *testing.T, w *ward, f fleet.Advice) {
		if f.Statement == "" {
			t.Errorf("%s %s has no statement: %s", f.ID, f.Object, f.Advice)
			return
		}
		execSQL(t, w.nodes[at], f.Statement)
	}
}

// certified lets a server have a certificate that ends in a few days.
func certified(t *testing.T, w *ward) []string {
	t.Helper()
	certify(t, w.disk.dir, 5*24*time.Hour)
	return []string{"ssl_cert=" + filepath.Join(w.disk.dir, "server.pem"), "ssl_key=" + filepath.Join(w.disk.dir, "server.pem")}
}

// certify writes a certificate, with its key, into a folder.
func certify(t *testing.T, dir string, valid time.Duration) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "forty"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(valid)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "server.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))+string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// fillDisk lets a file take all but a fiftieth of its file system.
func fillDisk(t *testing.T, name string) {
	t.Helper()
	var now syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(name), &now); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, int64(now.Bavail-now.Blocks/50)*now.Bsize); err != nil {
		t.Fatal(err)
	}
}

// slowDisk is a file system on a loop device of its own, whose writes another load may slow.
type slowDisk struct {
	dir    string // where it is mounted
	loop   string // /dev/loop0
	backed string // major:minor of the disk that its file is on
}

// newSlowDisk makes it; the test is skipped where that cannot be.
func newSlowDisk(t *testing.T) *slowDisk {
	t.Helper()
	d := &slowDisk{dir: tempDirIn(t, servers)}
	image := filepath.Join(tempDir(t), "disk")
	shell := func(command string) string {
		out, err := exec.Command("sh", "-c", command).CombinedOutput()
		if err != nil {
			t.Skipf("SKIPPED: no file system of its own can be mounted here: %s: %v: %s", command, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	shell("truncate -s 1200M " + image + " && mkfs.ext4 -q -m 0 " + image)
	d.loop = shell("losetup --direct-io=on --show -f " + image)
	t.Cleanup(func() { _ = exec.Command("losetup", "-d", d.loop).Run() })
	shell("mount " + d.loop + " " + d.dir)
	t.Cleanup(func() {
		if out, err := exec.Command("umount", d.dir).CombinedOutput(); err != nil {
			t.Errorf("unmount: %v: %s", err, out)
		}
	})
	d.backed = shell("stat -c %Hd:%Ld " + image)
	return d
}

// canSlow says why writes to the disk cannot be slowed; "" if they can.
func canSlow() string {
	if _, err := os.Stat("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device"); err != nil {
		return "it takes a control group that slows writes (blkio of version 1), and this machine has none"
	}
	return ""
}

// slow lets something write to the disk, and the disk take a quarter of a second for each write, until the stage's findings were seen.
func (d *slowDisk) slow(t *testing.T, w *ward) {
	t.Helper()
	writes := func() string { // that are done
		text, err := os.ReadFile("/sys/block/" + filepath.Base(d.loop) + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(text))[4]
	}
	await(t, "nobody else writes to the disk", func() bool { // whose writes are not slowed
		_ = exec.Command("sync", "-f", d.dir).Run()
		before := writes()
		time.Sleep(2 * time.Second)
		return writes() == before
	})
	group := fmt.Sprintf("/sys/fs/cgroup/blkio/risso-forty-%d-%s", os.Getpid(), filepath.Base(d.loop))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(group, "blkio.throttle.write_iops_device"), d.backed+" 4")
	cmd := exec.Command("sh", "-c", "echo $$ > "+group+"/cgroup.procs; while :; do dd if=/dev/zero of="+filepath.Join(d.dir, "load")+" bs=4k count=4 oflag=direct conv=notrunc status=none || exit; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.during(t, func() {
		_ = os.WriteFile(filepath.Join(group, "blkio.throttle.write_iops_device"), []byte(d.backed+" 0"), 0o644) // what waits goes on
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		await(t, "the control group is empty", func() bool { return os.Remove(group) == nil })
	})
}

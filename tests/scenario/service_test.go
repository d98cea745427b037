package scenario_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/lack"
)

// serviceUnit is the unit file that docs/operate.md prints.
func serviceUnit(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```ini\n(.*?)```").FindStringSubmatch(string(text))
	if m == nil {
		t.Fatal("docs/operate.md has no unit file")
	}
	return m[1]
}

// TestServiceUnit has systemd read the unit file of docs/operate.md.
func TestServiceUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		lack.Of(t, "systemd-analyze is not installed: run script/setup")
	}
	file := filepath.Join(tempDir(t), "risso.service")
	write(t, file, strings.NewReplacer("/usr/local/bin/risso", binary, "User=risso", "User=root").Replace(serviceUnit(t)))
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || strings.Contains(string(out), "risso.service") {
		t.Errorf("%v: got %s; want no \"risso.service\" in it", err, out)
	}
}

// TestStrictSystem runs Risso as ProtectSystem=strict does: all of the disk is read-only, except its own folder and what
// ReadWritePaths names.
func TestStrictSystem(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can make a mount table of its own")
	}
	if out, err := exec.Command("unshare", "--mount", "mount", "-o", "remount,bind,ro", "/").CombinedOutput(); err != nil {
		t.Skipf("no mount table of its own can be had: %v: %s", err, out)
	}
	n := single(t, "mariadb")
	execSQL(t, n, "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY); INSERT INTO shop.orders VALUES (1)")
	home, place := tempDir(t), tempDir(t)
	conf := filepath.Join(home, "risso.yaml")
	write(t, conf, fmt.Sprintf("servers:\n  - name: shop\n    dsn: %q\n    protect: {place: %s}\n", n.DSN, filepath.Join(place, "backup")))
	for _, writable := range []bool{false, true} {
		script := fmt.Sprintf("mount --bind %[1]s %[1]s; mount --bind %[2]s %[2]s; ", home, place)
		if !writable {
			script += fmt.Sprintf("mount -o remount,bind,ro %s; ", place)
		}
		script = "set -e; mount --make-rprivate /; " + script + `mount -o remount,bind,ro /; cd /; exec "$@"`
		cmd := exec.Command("unshare", "--mount", "sh", "-c", script, "sh", binary, "serve", "--listen", "127.0.0.1:0", "--no-host", "--config", conf, "--data", filepath.Join(home, "data"))
		r := launchCommand(t, cmd, environment(home, "XDG_CONFIG_HOME=", "TMPDIR="+home))
		r.awaitReady(t)
		r.awaitTicks(t, "shop", 1)
		r.start(t, "shop/backup")
		want := "failed"
		if writable {
			want = "ok"
		}
		await(t, "the end of the backup", func() bool {
			o, _, _ := strings.Cut(r.protected(t, "shop").outcomes("backup"), " ")
			return o == want
		})
		if p := r.protected(t, "shop"); !writable && !strings.Contains(p.Runs[0].Text, "read-only file system") {
			t.Errorf("it says %s", p.Runs[0].Text)
		}
		for _, e := range r.events(t, "", "store") {
			t.Errorf("%s", e.Text)
		}
		r.stop(t, syscall.SIGTERM)
	}
}

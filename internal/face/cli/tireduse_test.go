package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// builtRisso is the program itself, for what only a separate process shows: the one that script/test made, or a pure build.
func builtRisso(t *testing.T) string {
	t.Helper()
	if built := os.Getenv("RISSO_BIN"); built != "" {
		return built
	}
	path := filepath.Join(t.TempDir(), "risso")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../../cmd/risso")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// TestTiredUse uses commands as a tired user does: each ends with the right exit code, in time, with one line that says what is
// wrong, and never with a panic or a password.
func TestTiredUse(t *testing.T) {
	t.Parallel()
	n := sandboxtest.Up(t, "mariadb")
	bin, dir := builtRisso(t), t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty := write("empty", "", 0o644)
	one := "servers:\n  - name: db1\n    dsn: 'root@tcp(127.0.0.1:1)/'\n"
	closed := "root@tcp(127.0.0.1:1)/"
	wrong := "root:s3cret@unix(" + n.Socket + ")/"
	place := filepath.Join(dir, "place")
	for _, c := range []struct {
		line string // DIR, SERVER, …; a shell runs it
		code int
		says string // a regular expression; on standard error
	}{
		{"risso serv", 2, `did you mean serve`},
		{"risso top --dns x", 2, `did you mean --dsn`},
		{"risso list backup", 2, `no command "list"`},
		{"risso backup lst", 2, `did you mean list`},
		{"risso backup -to x", 2, `.`},
		{"risso backup --to", 2, `--to`},
		{"risso backup", 2, `--to`},
		{"risso top -o yaml --dsn '" + closed + "'", 2, `text, json`},
		{"risso top --count many --dsn '" + closed + "'", 2, `count`},
		{"risso digest --limit -5 " + empty, 2, `limit`},
		{"risso bench run point_selct --dsn '" + closed + "'", 2, `point_select`},
		{"risso bench run point_select --for 10 --dsn '" + closed + "'", 2, `10`},
		{"risso bench run point_select --for -1s --dsn '" + closed + "'", 2, `for|time`},
		{"risso bench run point_select --threads 0 --dsn '" + closed + "x'", 2, `threads`},
		{"risso top --count 1 --dsn 'root@tcp(127.0.0.1:99999)/'", 2, `99999|port`},
		{"risso grants --dsn 'not a dsn'", 2, `DSN|name`},
		{"risso grants --for backups --dsn '" + closed + "'", 2, `backup`},
		{"risso grants --dsn '" + closed + "'", 1, `refuses connections.*running`},
		{"risso grants --dsn 'root@unix(DIR/no.sock)/'", 1, `refuses connections`},
		{"risso grants --dsn '" + wrong + "'", 1, `Access denied.*check user and password`},
		{"risso explain 'SELEC 1' --dsn SERVER", 2, `SELEC`},
		{"risso explain --dsn SERVER", 2, `.`},
		{"risso explain 'SELECT 1' 'SELECT 2' --dsn SERVER", 2, `.`},
		{"risso digest", 2, `.`},
		{"risso digest DIR", 1, `is a (directory|folder)`},
		{"risso digest DIR/none", 1, `no such file`},
		{"risso bench report " + empty, 2, `empty|JSON|no result`},
		{"risso bench compare " + empty + " " + empty, 2, `.`},
		{"risso bench report DIR", 2, `is a (directory|folder)`},
		{"risso binlog list DIR", 1, `is a (directory|folder)|no binary log`},
		{"risso binlog search /dev/null --table x.y", 1, `.`},
		{"risso config check DIR", 2, `is a (directory|folder)`},
		{"risso config check DIR/none", 2, `no such file`},
		{"risso config check " + empty, 0, ``},
		{"risso config check " + write("listen.yaml", "listen: 99999\n", 0o644), 2, `host:port`},
		{"risso config check " + write("port.yaml", "listen: 127.0.0.1:x\n", 0o644), 2, `host:port`},
		{"risso config check " + write("negative.yaml", "retention: -5d\n", 0o644), 2, `retention`},
		{"risso config check " + write("tabs.yaml", "servers:\n\t- name: db1\n", 0o644), 2, `tab`},
		{"risso config check " + write("tabintext.yaml", "servers:\n  - name: db1\n    dsn: |\n      a\n      \tb\n    x: [\n\n\n", 0o644), 2, `near line [789]|line [789]`},
		{"risso config check " + write("bom.yaml", "\ufeff"+one, 0o644), 0, ``},
		{"risso config check " + write("crlf.yaml", strings.ReplaceAll(one, "\n", "\r\n"), 0o644), 0, ``},
		{"risso config check " + write("twice.yaml", one+"  - name: db1\n    dsn: 'root@tcp(127.0.0.1:2)/'\n", 0o644), 2, `db1`},
		{"risso config check " + write("keytwice.yaml", one+"servers: []\n", 0o644), 2, `line 4: .*line 1`},
		{"risso config check " + write("unknown.yaml", one+"    pasword: x\n", 0o644), 2, `line 4: unknown field pasword`},
		{"risso config check " + write("two.yaml", one+"---\n"+one, 0o644), 2, `.`},
		{"risso config check " + write("binary.yaml", "\x00\x01\xff\xfe", 0o644), 2, `.`},
		{"risso config check " + write("deep.yaml", strings.Repeat("[", 20000), 0o644), 2, `.`},
		{"risso config check " + write("list.yaml", "- a\n- b\n", 0o644), 2, `.`},
		{"risso serve --config " + write("nodata.yaml", one, 0o644) + " --data " + empty, 1, `folder|directory`},
		{"risso backup list --from " + place, 1, `.`},
		{"risso backup list --from " + empty, 2, `.`},
		{"risso backup show --from DIR 20200101", 1, `.`},
		{"risso restore --from " + place + " --into SERVER", 1, `.`},
		{"risso verify --from s3://", 2, `.`},
		{"risso checksum --dsn SERVER --replica SERVER", 1, `.`},
		{"risso sandbox down nosuch", 2, `nosuch`},
		{"risso sandbox exec nosuch -- 'SELECT 1'", 2, `nosuch`},
		{"risso sandbox up 'a/b'", 2, `.`},
		{"risso sandbox up x --servers mysql-4.0", 1, `mysql-4.0`},
		{"risso trace abc --dsn SERVER", 2, `abc`},
		{"risso man", 2, `--to`},
		{"risso man --to " + empty, 1, `.`},
		{"risso completion basch", 2, `bash`},
		{"risso help nosuch", 2, `nosuch`},
		{"risso token revoke nobody --data DIR/tokens", 1, `nobody`},
		{"risso token create '' --data DIR/tokens", 1, `name`},
		{"risso version extra", 2, `extra|accepts|unknown|no command`},
		// Streams, surroundings.
		{"{ risso help || test $? = 141; } | head -1", 0, ``},
		{"{ risso digest --help || test $? = 141; } | head -1", 0, ``},
		{"{ risso explain 'SELECT 1' --dsn SERVER || test $? = 141; } | true", 0, ``},
		{"risso version >/dev/full", 1, `no space`},
		{"risso grants --dsn SERVER >/dev/full", 1, `no space`},
		{"risso doctor --no-host --dsn SERVER --listen 127.0.0.1:0 >/dev/full", 1, `no space`},
		{"risso bench list >/dev/full", 1, `no space`},
		{"risso config check " + filepath.Join(dir, "bom.yaml") + " >/dev/full", 1, `no space`},
		{"risso help >/dev/full", 1, `no space`},
		{"risso explain - --dsn SERVER </dev/null", 2, `.`},
		{"LANG=C LC_ALL=C TERM=dumb NO_COLOR=1 COLUMNS=3 risso explain 'SELECT 1' --dsn SERVER", 0, ``},
		{"TZ=Nowhere/Nothing risso token list --data DIR/tokens", 0, ``},
		{"env -u HOME -u XDG_STATE_HOME -u XDG_CONFIG_HOME -u XDG_CACHE_HOME risso version", 0, ``},
		{"env -u HOME -u XDG_STATE_HOME -u XDG_CONFIG_HOME -u XDG_CACHE_HOME risso explain 'SELECT 1' --dsn SERVER", 0, ``},
		{"HOME=/proc risso backup key", 1, `/proc`},
		{"HOME=/proc risso token list", 1, `/proc`},
	} {
		line := strings.NewReplacer("DIR", dir, "SERVER", "'"+n.DSN+"'").Replace(c.line)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		sh := exec.CommandContext(ctx, "/bin/bash", "-c", "set -o pipefail\n"+line)
		sh.Dir, sh.Env = dir, []string{"PATH=" + filepath.Dir(bin) + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "LANG=C.UTF-8", "RISSO_SANDBOX_DIR=" + filepath.Join(dir, "boxes"), "XDG_CACHE_HOME=" + cacheHome()}
		var out, said bytes.Buffer
		sh.Stdout, sh.Stderr, sh.WaitDelay = &out, &said, time.Second
		err := sh.Run()
		cancel()
		code := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		text := said.String()
		if code != c.code || !regexp.MustCompile(`(?i)`+c.says).MatchString(text) || c.code == 0 && text != "" || strings.Count(text, "\n") > 3 {
			t.Errorf("%s: ends with %d, want %d; says %q, want %q; writes %.200q", c.line, code, c.code, text, c.says, out.String())
		}
		if all := text + out.String(); strings.Contains(all, "goroutine ") || strings.Contains(all, "s3cret") {
			t.Errorf("%s: got %s; want no \"goroutine \" in it, no \"s3cret\" in it", c.line, all)
		}
	}
}

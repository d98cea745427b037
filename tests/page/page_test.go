// Package page_test looks at the page as people do: a real browser, a real Risso, a real server under load.
package page_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
)

// TestPageInBrowser runs ui/e2e in Chromium, all but the pages of statements.
func TestPageInBrowser(t *testing.T) {
	needBrowser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dir := t.TempDir()
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(dir, "sandboxes"), Name: "page", Servers: []string{"mariadb"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Down(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	loadCtx, stopLoad := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- sb.Load(loadCtx, sandbox.LoadOptions{Rate: 40}, nil) }()
	defer func() { stopLoad(); <-done }()

	node := sb.Primary()
	url := serve(t, binary(t, dir, "RISSO_BIN", "1"), filepath.Join(dir, "data"), "watched=root@unix("+node.Socket+")/")
	// The browser's tests ask for a restart of the server in the middle of theirs.
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := node.Kill(syscall.SIGKILL); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		time.Sleep(3 * time.Second) // long enough for the page to notice
		if err := node.Start(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	defer control.Close()

	playwright(ctx, t, []string{"page.spec.ts", "restart.spec.ts"}, "RISSO_URL="+url, "RISSO_INSTANCE=watched",
		fmt.Sprintf(`RISSO_RESTART_CMD=node -e "fetch('%s').then(r => process.exit(r.ok ? 0 : 1))"`, control.URL))
}

// needBrowser skips where the browser or what drives it is missing.
func needBrowser(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		lack.Of(t, "node is not installed: run script/setup")
	}
	if _, err := exec.LookPath("chromium"); err != nil && os.Getenv("CHROMIUM") == "" {
		lack.Of(t, "chromium is not installed: run script/setup")
	}
	if _, err := os.Stat("../../ui/node_modules/.bin/playwright"); err != nil {
		lack.Of(t, "the page's packages are not installed: run script/setup")
	}
}

// playwright runs specs of ui/e2e; that none ran is a failure.
func playwright(ctx context.Context, t *testing.T, specs []string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "node_modules/.bin/playwright", append([]string{"test"}, specs...)...)
	cmd.Dir = "../../ui"
	cmd.Env = append(append(os.Environ(), "CI=1"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		said := regexp.MustCompile(`(?m)^ +\d+\) .*|^ +(Test timeout|\w*Error:|Locator:|Expected|Received).*`).FindAllString(string(out), 8)
		t.Errorf("the page's tests failed: %v: %s", err, strings.Join(strings.Fields(strings.Join(said, "; ")), " "))
	}
	t.Log(string(out))
	if !regexp.MustCompile(`\d+ passed`).Match(out) {
		t.Error("no test of the page ran")
	}
}

// binary is the program, with or without cgo: the one that the environment names, or else built now.
func binary(t *testing.T, dir, env, cgo string) string {
	t.Helper()
	if bin := os.Getenv(env); bin != "" {
		return bin
	}
	bin := filepath.Join(dir, "risso-cgo"+cgo)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../../cmd/risso")
	build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// serve starts the real binary on any free port and returns the address of the page.
func serve(t *testing.T, bin, data, dsn string) string {
	t.Helper()
	return serveWith(t, bin, "--data", data, "--dsn", dsn)
}

// serveWith is the same with further flags.
func serveWith(t *testing.T, bin string, flags ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), bin, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	ended := make(chan struct{})
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("risso serve ended with %v", err)
		}
		if t.Failed() {
			t.Log("risso serve said:\n" + said.String())
		}
	})
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "ready on "); ok {
			go func() { // further output must not block it
				defer close(ended)
				for lines.Scan() {
					said.WriteString(lines.Text() + "\n")
				}
			}()
			return strings.Fields(rest)[0]
		}
		t.Log(lines.Text())
	}
	close(ended)
	t.Fatal("risso serve did not become ready")
	return ""
}

package cli

import (
	"bufio"
	"context"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
)

// routing starts risso route, whose controller is not there, until the test ends, and returns where it tells its state.
func routing(t *testing.T) (status string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	said, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- Main(ctx, []string{"route", "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0,role=replica,max-lag=5s", "--group", "shop", "--url", "http://127.0.0.1:1", "--status", "127.0.0.1:0"},
			screen.Streams{In: strings.NewReader(""), Out: io.Discard, Err: w})
		_ = w.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("risso route ended with %d, want 0", code)
		}
	})
	form := regexp.MustCompile(`state on http://(\S+)/`)
	for lines := bufio.NewScanner(said); status == "" && lines.Scan(); {
		if m := form.FindStringSubmatch(lines.Text()); m != nil {
			status = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	if status == "" {
		t.Fatal("risso route does not say where it tells its state")
	}
	return status
}

// TestRouteStatus: a router says what it follows, and that nobody has told it anything.
func TestRouteStatus(t *testing.T) {
	at := routing(t)
	for {
		code, out, said := call(t, "route", "status", "--status", at)
		if code != 0 {
			t.Fatalf("%d %s %s", code, out, said)
		}
		if !strings.Contains(out, "refused") { // it has not asked yet
			continue
		}
		for _, want := range []string{"group shop, epoch 0, never told; primary: none", "controller http://127.0.0.1:1: does not answer", "primary     0     0", "replica     0     0"} {
			if !strings.Contains(out, want) {
				t.Errorf("want %q in\n%s", want, out)
			}
		}
		return
	}
}

// TestRouteStatusInUse: an address that is in use is to be replaced by the flag that named it.
func TestRouteStatusInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	code, _, said := call(t, "route", "--listen", "127.0.0.1:0", "--group", "shop", "--url", "http://127.0.0.1:1", "--status", ln.Addr().String())
	if code != fault.InUse || !strings.Contains(said, "choose another with --status") || strings.Contains(said, "--listen") {
		t.Errorf("code %d: %s", code, said)
	}
}

package agree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tellHeard says again and again up to when a controller knows what was agreed on, and how many of the probes are there, which it looks at after that.
func tellHeard(ctx context.Context, n *Node, to *os.File) {
	for ; ; time.Sleep(3 * time.Millisecond) {
		heard := n.Heard()
		at := monotonic() - int64(time.Since(heard))
		list, err := n.Store.Documents(ctx, "probe")
		if err == nil && !heard.IsZero() {
			fmt.Fprintln(to, at, len(list))
		}
	}
}

// heard is up to when a controller knows what was agreed on, as it said last, and holds that it never said so of a moment at which more probes were
// written than it had.
func (c *cluster) heard(p *process, written []int64) (last int64) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, p.name+".heard"))
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var has int
		if n, _ := fmt.Sscan(line, &last, &has); n == 2 && has < len(written) && last > written[has]+int64(beatOfProcesses)*2*int64(time.Millisecond) {
			c.t.Fatalf("%s says that it knows what was agreed on %s after probe %d was written, and has %d", p.name, time.Duration(last-written[has]), has+1, has)
		}
	}
	return last
}

// TestHeard: a controller whose disk is full, or that stood still, does not say that it knows what the others agreed on meanwhile.
func TestHeard(t *testing.T) {
	c := newCluster(t, beatOfProcesses, "size=6m")
	late := c.others(c.leads(c.procs))[0]
	c.kill(late)
	if err := os.WriteFile(filepath.Join(c.dir, late.name+".heard"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.start(late)
	c.allVote(3)
	var written []int64
	probe := func() {
		t.Helper()
		if err := c.writes(c.others(late)[0], strconv.Itoa(len(written)), time.Minute); err != nil {
			t.Fatal(err)
		}
		written = append(written, monotonic())
	}
	knows := func() {
		t.Helper()
		c.until(func() bool { return c.heard(late, written) > written[len(written)-1] }, "%s to know what was agreed on", late.name)
	}
	probe()
	knows()

	ballast, err := os.Create(filepath.Join(late.data, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = ballast.Write(make([]byte, 4096))
	}
	ballast.Close()
	for range 40 { // until there is no room in what the files have, either
		probe()
	}
	time.Sleep(5 * time.Duration(beatOfProcesses) * time.Millisecond)
	c.heard(late, written)
	if err := os.Remove(ballast.Name()); err != nil {
		t.Fatal(err)
	}
	knows()

	for range 5 {
		if err := late.cmd.Process.Signal(unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Duration(beatOfProcesses) * time.Millisecond)
		probe()
		time.Sleep(3 * time.Duration(beatOfProcesses) * time.Millisecond)
		if err := late.cmd.Process.Signal(unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
		knows()
	}
}

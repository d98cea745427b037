package chaos

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/chaos/ledger"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// boxed is a sandbox with all that faults need, ready to be written to.
func boxed(t *testing.T, o sandbox.Options) *Box {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make network namespaces and mount file systems")
	}
	b := &Box{Sandbox: sandboxtest.Sandbox(t, o)}
	if err := b.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// run runs faults for a test: short ones.
func run(t *testing.T, b *Box, in Cluster, dir string, settle time.Duration, list []Fault) (*Certificate, error) {
	t.Helper()
	path := filepath.Join(dir, "ledger.jsonl")
	book, err := ledger.Create(path, "test", b.Members())
	if err != nil {
		t.Fatal(err)
	}
	names, err := b.Names(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		list[i].Least, list[i].Before = 500*time.Millisecond, 200*time.Millisecond
	}
	r := Run{Cluster: in, Faults: list, Book: book, Writers: 3, Pause: 5 * time.Millisecond, Limit: 3 * time.Second, Settle: settle,
		Journal: func(string, Fault, string) error { return nil }, Say: func(s string) { t.Log(s) }}
	rerr := r.Do(t.Context(), 7, names, nil)
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	again, sum, err := ledger.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Judge(again)
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Sign(path, sum, key); err != nil {
		t.Fatal(err)
	}
	return c, rerr
}

// TestFaults: each fault that needs no controller, on real servers. Nothing that was acknowledged is lost, clients write again, and the certificate can be verified, as JSON and
// as its page, but not when somebody has changed it or its ledger.
func TestFaults(t *testing.T) {
	t.Parallel()
	b := boxed(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 1, Network: true, Disk: 500 << 20, Clock: true})
	var possible []Kind
	for _, k := range Kinds() {
		if b.Can(k) == nil {
			possible = append(possible, k)
		}
	}
	if len(possible) != len(Kinds())-3 {
		t.Errorf("possible are %s; want all but those of controllers", Listed(possible))
	}
	dir := t.TempDir()
	c, err := run(t, b, b, dir, 2*time.Minute, Plan(7, possible, len(possible)))
	if err != nil {
		t.Fatal(err)
	}
	if !c.Passed || c.Totals.Faults != len(possible) || c.Totals.Acknowledged < 100 || c.Totals.Lost+c.Totals.Doubles > 0 || len(c.Final) != 2 {
		t.Errorf("got %+v, passed %t, violations %v; want all faults, nothing lost", c.Totals, c.Passed, c.Violations)
	}
	for _, k := range c.Kinds {
		switch k.Kind {
		case Kill, Freeze, Partition, PartitionIn, PartitionOut:
			if k.Worst < 400*time.Millisecond {
				t.Errorf("%s: clients could not write for %s; want about as long as the fault lasted", k.Kind, k.Worst)
			}
		}
	}
	verifies(t, c, dir)
}

// verifies holds that a certificate is verified, and one that was changed is not.
func verifies(t *testing.T, c *Certificate, dir string) {
	t.Helper()
	plain, page := filepath.Join(dir, "certificate.json"), filepath.Join(dir, "certificate.html")
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var html bytes.Buffer
	if err := c.WritePage(&html); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string][]byte{plain: text, page: html.Bytes()} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(path); err != nil {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
		if err := os.WriteFile(path, bytes.Replace(text, []byte(`"passed":true`), []byte(`"passed":false`), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(path); err == nil || !strings.Contains(err.Error(), "somebody changed it") {
			t.Errorf("%s was changed: %v", filepath.Base(path), err)
		}
	}
	book := filepath.Join(dir, "ledger.jsonl")
	whole, err := os.ReadFile(book)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plain, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(book, bytes.Replace(whole, []byte(`"n":5,`), []byte(`"n":4,`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(plain); err == nil || !strings.Contains(err.Error(), "is not the ledger") {
		t.Errorf("the ledger was changed: %v", err)
	}
}

// careless is a cluster that promotes its replica as soon as the primary is cut off, and tells nobody to stop.
type careless struct {
	*Box
	promoted atomic.Bool
}

func (c *careless) Break(ctx context.Context, f Fault, target string) error {
	if err := c.Box.Break(ctx, f, target); err != nil {
		return err
	}
	replica := c.Sandbox.Nodes[1]
	if _, err := replica.Query(ctx, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only=OFF"); err != nil {
		return err
	}
	c.promoted.Store(true)
	return nil
}

func (c *careless) where(context.Context) (ledger.Server, error) {
	n, epoch := c.Sandbox.Nodes[0], uint64(1)
	if c.promoted.Load() {
		n, epoch = c.Sandbox.Nodes[1], 2
	}
	return ledger.Server{Name: n.Name, Address: address(n), Epoch: epoch}, nil
}

// TestBrokenPromises: a group that has two writers, and loses what the first of them acknowledged, gets no certificate, and is told why.
func TestBrokenPromises(t *testing.T) {
	t.Parallel()
	b := boxed(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 1, Network: true})
	in := &careless{Box: b}
	b.Where = in.where
	dir := t.TempDir()
	c, err := run(t, b, in, dir, 3*time.Second, Plan(1, []Kind{Partition}, 3))
	if err == nil || c.Passed || c.Totals.Doubles == 0 || c.Totals.Lost == 0 || c.Totals.Faults != 1 {
		t.Errorf("%v, passed %t, %+v; want an end after the first fault, with losses and second writers", err, c.Passed, c.Totals)
	}
	all := strings.Join(c.Violations, "\n")
	for _, want := range []string{"two writers: primary took a write", "after replica1 had acknowledged one", "the first: writer ", "only 1 of 3 planned faults"} {
		if !strings.Contains(all, want) {
			t.Errorf("no word of %q in:\n%s", want, all)
		}
	}
	for _, f := range c.Final {
		if f.Server == "replica1" && len(f.Lost) == 0 {
			t.Error("rows that only the old primary has are not lost")
		}
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "certificate.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(path); err != nil {
		t.Errorf("a certificate of a failure cannot be verified: %v", err)
	}
}
